"""Tasks into rounds: no VM in two bandwidth probes at once, and as few rounds as possible.

RTT probes send next to nothing, so all of them share the first round. Other probes are edges (or,
for caps, sets) of hosts, and rounds are their colours. All pairs of n hosts are coloured by the
circle method of round-robin tournaments, with the fewest colours there can be.

A round lasts as long as its longest probe. Where that ends sooner, long ones are therefore put
together first, each into the first round with room, and shorter ones fill the remaining seats.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from probes.campaign.tasks import PHASES, Phase, ProbeTask


@dataclass(frozen=True, slots=True)
class Round:
    """Tasks that run at the same time; their hosts are disjoint, except in the RTT phase."""

    phase: Phase
    tasks: tuple[ProbeTask, ...]

    @property
    def duration_s(self) -> float:
        """The round lasts as long as its longest task."""
        return max(task.duration_s for task in self.tasks)


def schedule(tasks: Sequence[ProbeTask], *, gap_s: float = 0.0) -> list[Round]:
    """Put every task into one round: phases in their order, longest rounds of a phase first.

    Tasks of equal length take the fewest rounds that are possible for all ordered pairs:
    ``2 (n - 1)`` for an even number of hosts, ``2 n`` for an odd one.

    No task connects a host with itself. `gap_s` is the time to start a round; it weighs fewer
    rounds against shorter ones.
    """
    rounds: list[Round] = []
    for phase in PHASES:
        of_phase = [task for task in tasks if task.phase == phase]
        if phase == "rtt":
            rounds += [Round(phase, tuple(of_phase))] if of_phase else []
            continue
        degrees = Counter(host for task in of_phase for host in task.hosts)
        busiest_first = sorted(
            of_phase, key=lambda t: (-len(t.hosts), -max(degrees[host] for host in t.hosts))
        )
        orders = (_by_days(busiest_first), sorted(busiest_first, key=lambda task: -task.duration_s))
        packed = [[Round(phase, tuple(group)) for group in _seated(order)] for order in orders]
        best = min(packed, key=lambda found: (sum(r.duration_s + gap_s for r in found), len(found)))
        rounds += sorted(best, key=lambda r: r.duration_s, reverse=True)
    return rounds


def _by_days(tasks: Sequence[ProbeTask]) -> list[ProbeTask]:
    """Sort pairs by the circle method, the n-th task of a pair in the n-th tournament."""
    pairs = [task for task in tasks if len(task.hosts) == 2]
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
    others = (task for task in tasks if len(task.hosts) != 2)
    return [*(task for day in sorted(days) for task in days[day]), *others]


def _seated(tasks: Iterable[ProbeTask]) -> list[list[ProbeTask]]:
    """Put each task into the first group whose hosts are free, or into a new one."""
    groups: list[list[ProbeTask]] = []
    busy: dict[str, int] = defaultdict(int)  # host to a bit for each of its groups
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
    return groups
