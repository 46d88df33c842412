"""Tasks into rounds: no VM in two bandwidth probes at once, and as few rounds as possible.

RTT probes send next to nothing, so all of them share the first round. Other probes are edges (or,
for caps, sets) of hosts, and rounds are their colours. All pairs of n hosts are coloured by the
circle method of round-robin tournaments, with the fewest colours there can be.

A round lasts as long as its longest probe. Where that ends sooner, long ones are therefore put
together first, each into the first round with room, and shorter ones fill the remaining seats.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from probes.campaign.tasks import PHASES, Phase, ProbeTask


@dataclass(frozen=True, slots=True)
class Round:
    """Tasks that run at the same time.

    Attributes
    ----------
    phase : Phase
    tasks : tuple of ProbeTask
        Their hosts are disjoint, except in the RTT phase.
    """

    phase: Phase
    tasks: tuple[ProbeTask, ...]

    @property
    def duration_s(self) -> float:
        """The round lasts as long as its longest task."""
        return _longest(self.tasks)


def schedule(tasks: Sequence[ProbeTask], *, gap_s: float = 0.0) -> list[Round]:
    """Return rounds in the order of phases; RTT tasks all together in the first.

    Tasks of equal length take the fewest rounds that are possible for all ordered pairs:
    ``2 (n - 1)`` for an even number of hosts, ``2 n`` for an odd one.

    Parameters
    ----------
    tasks : sequence of ProbeTask
        None connects a host with itself.
    gap_s : float
        Time to start a round; weighs fewer rounds against shorter ones.

    Returns
    -------
    list of Round
        Every task in exactly one; longest rounds of a phase first.
    """
    rounds: list[Round] = []
    for phase in PHASES:
        of_phase = [task for task in tasks if task.phase == phase]
        groups = ([of_phase] if of_phase else []) if phase == "rtt" else _groups(of_phase, gap_s)
        rounds += [Round(phase, tuple(group)) for group in groups]
    return rounds


def _groups(tasks: Sequence[ProbeTask], gap_s: float) -> list[list[ProbeTask]]:
    """Return the quicker of two arrangements: fewest rounds, or long ones first."""
    degrees = Counter(host for task in tasks for host in task.hosts)
    busiest_first = sorted(
        tasks, key=lambda task: (-len(task.hosts), -max(degrees[host] for host in task.hosts))
    )
    tournament = _tournament([task for task in tasks if len(task.hosts) == 2])
    _seat([task for task in busiest_first if len(task.hosts) != 2], tournament)
    first_fit: list[list[ProbeTask]] = []
    _seat(sorted(busiest_first, key=lambda task: -task.duration_s), first_fit)
    best = min(
        (tournament, first_fit), key=lambda g: (sum(_longest(one) + gap_s for one in g), len(g))
    )
    return sorted(best, key=_longest, reverse=True)


def _tournament(pairs: Sequence[ProbeTask]) -> list[list[ProbeTask]]:
    """Group pairs by the circle method, the n-th task of a pair in the n-th tournament."""
    place = {host: i for i, host in enumerate(sorted({h for task in pairs for h in task.hosts}))}
    size = len(place) + len(place) % 2
    seen: Counter[tuple[int, int]] = Counter()
    days: dict[tuple[int, int], list[ProbeTask]] = defaultdict(list)
    for task in pairs:
        i, j = sorted(place[host] for host in task.hosts)
        # The last stands still (none does if the count is odd), the others go round.
        day = (2 * i) % (size - 1) if j == size - 1 else (i + j) % (size - 1)
        days[seen[i, j], day].append(task)
        seen[i, j] += 1
    return [days[day] for day in sorted(days)]


def _seat(tasks: Sequence[ProbeTask], groups: list[list[ProbeTask]]) -> None:
    """Put each task into the first group whose hosts are free, or into a new one."""
    busy: dict[str, int] = defaultdict(int)  # host to a bit for each of its groups
    for number, group in enumerate(groups):
        for host in {host for task in group for host in task.hosts}:
            busy[host] |= 1 << number
    for task in tasks:
        taken = 0
        for host in task.hosts:
            taken |= busy[host]
        first = (~taken & (taken + 1)).bit_length() - 1
        if first == len(groups):
            groups.append([])
        groups[first].append(task)
        for host in task.hosts:
            busy[host] |= 1 << first


def _longest(group: Sequence[ProbeTask]) -> float:
    return max(task.duration_s for task in group)
