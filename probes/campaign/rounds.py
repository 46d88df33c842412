"""Tasks into rounds: no VM in two bandwidth probes at once, and as few rounds as possible.

RTT probes send next to nothing, so all of them share the first round. Other probes are edges (or,
for caps, sets) of hosts, and rounds are their colours. All pairs of n hosts are coloured by the
circle method of round-robin tournaments, with the fewest colours there can be; whatever else there
is goes into the first round with room, the hosts with most probes first.

A round lasts as long as its longest probe. Long ones are therefore put together first, and
shorter ones fill the seats that are left, wherever that ends sooner than the fewest rounds would.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from probes.campaign.tasks import PHASES, Phase, ProbeTask

# Rounds that differ less are taken to last equally long.
SAME_LENGTH = 1.1


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
        What starting a round costs; weighs fewer rounds against shorter ones.

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
    layered: list[list[ProbeTask]] = []
    for layer in _layers(tasks):
        # Seats in longer rounds cost no time.
        layered += _packed(_seated(layer, layered, may_open=False))
    arrangements = (_packed(tasks), layered)
    best = min(arrangements, key=lambda g: (sum(_longest(one) + gap_s for one in g), len(g)))
    return sorted(best, key=_longest, reverse=True)


def _layers(tasks: Sequence[ProbeTask]) -> list[list[ProbeTask]]:
    """Return tasks of about the same length together, longest first."""
    layers: list[list[ProbeTask]] = []
    for task in sorted(tasks, key=lambda task: -task.duration_s):
        if layers and layers[-1][0].duration_s <= task.duration_s * SAME_LENGTH:
            layers[-1].append(task)
        else:
            layers.append([task])
    return layers


def _packed(tasks: Sequence[ProbeTask]) -> list[list[ProbeTask]]:
    """Return few groups with disjoint hosts: the fewer of a tournament and first fits."""
    degrees = Counter(host for task in tasks for host in task.hosts)
    pairs = [task for task in tasks if len(task.hosts) == 2]
    busiest = sorted(pairs, key=lambda task: -max(degrees[host] for host in task.hosts))
    first_fit: list[list[ProbeTask]] = []
    _seated(busiest, first_fit, may_open=True)
    groups = min(_tournament(pairs), first_fit, key=len)
    many = [task for task in tasks if len(task.hosts) != 2]
    many.sort(key=lambda task: (-len(task.hosts), -task.duration_s))
    _seated(many, groups, may_open=True)
    return groups


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


def _seated(
    tasks: Sequence[ProbeTask], groups: list[list[ProbeTask]], *, may_open: bool
) -> list[ProbeTask]:
    """Put each task into the first group whose hosts are free; return those without a seat."""
    busy: dict[str, int] = defaultdict(int)  # host to a bit for each of its groups
    for number, group in enumerate(groups):
        for host in {host for task in group for host in task.hosts}:
            busy[host] |= 1 << number
    left = []
    for task in tasks:
        taken = 0
        for host in task.hosts:
            taken |= busy[host]
        first = (~taken & (taken + 1)).bit_length() - 1
        if first == len(groups):
            if not may_open:
                left.append(task)
                continue
            groups.append([])
        groups[first].append(task)
        for host in task.hosts:
            busy[host] |= 1 << first
    return left


def _longest(group: Sequence[ProbeTask]) -> float:
    return max(task.duration_s for task in group)
