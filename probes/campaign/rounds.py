"""Tasks into rounds: no VM in two bandwidth probes at once, and as few rounds as possible.

RTT probes send next to nothing, so all of them share the first round. Probes of one pair are
edges between hosts, and rounds are colours (:mod:`probes.campaign.edge_colouring`). Probes of
many pairs (caps) are sets of hosts; packing those best is NP-hard already for three hosts each,
so the largest go first, each into the first round with room.

A round lasts as long as its longest probe. Long ones are therefore put together first, and
shorter ones fill the seats that are left, wherever that ends sooner than the fewest rounds would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probes.campaign.edge_colouring import colour_edges, fewest_colours
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
        return max(task.duration_s for task in self.tasks)


def schedule(tasks: Sequence[ProbeTask], *, gap_s: float = 0.0) -> list[Round]:
    """Return rounds in the order of phases; RTT tasks all together in the first.

    Within a phase, tasks of equal length take the fewest rounds that are known to be possible:
    ``2 (n - 1)`` for all ordered pairs of an even number of hosts, ``2 n`` for an odd one.

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


def fewest_rounds(tasks: Sequence[ProbeTask]) -> int:
    """Return a number of rounds that no schedule can go below.

    It is the greatest number of tasks of one host, or what follows from each round having room
    for half the hosts at most; for tasks of many pairs the former alone.
    """
    least = 0
    for phase in PHASES:
        of_phase = [task for task in tasks if task.phase == phase]
        if phase == "rtt":
            least += bool(of_phase)
            continue
        busiest = _busiest(of_phase)
        pairs = [task for task in of_phase if len(task.hosts) == 2]
        least += max(busiest, fewest_colours(_edges(pairs)))
    return least


def schedule_s(rounds: Sequence[Round], *, gap_s: float = 0.0) -> float:
    """Return how long rounds take one after the other, with a gap before each."""
    return sum(r.duration_s + gap_s for r in rounds)


def _groups(tasks: Sequence[ProbeTask], gap_s: float) -> list[list[ProbeTask]]:
    """Return the quicker of two arrangements: fewest rounds, or long ones first."""
    whole = _packed(tasks)
    layered: list[list[ProbeTask]] = []
    for layer in _layers(tasks):
        # Seats in longer rounds cost no time.
        layered += _packed(_seated(layer, layered, may_open=False))
    layered.sort(key=_longest, reverse=True)
    return min(
        whole, layered, key=lambda groups: (sum(_longest(g) + gap_s for g in groups), len(groups))
    )


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
    """Return as few groups with disjoint hosts as can be found, longest first."""
    pairs = [task for task in tasks if len(task.hosts) == 2]
    colours = colour_edges(_edges(pairs))
    groups: list[list[ProbeTask]] = [[] for _ in range(max(colours, default=-1) + 1)]
    for task, colour in zip(pairs, colours, strict=True):
        groups[colour].append(task)
    many = [task for task in tasks if len(task.hosts) != 2]
    many.sort(key=lambda task: (-len(task.hosts), -task.duration_s))
    _seated(many, groups, may_open=True)
    return sorted(groups, key=_longest, reverse=True)


def _seated(
    tasks: Sequence[ProbeTask], groups: list[list[ProbeTask]], *, may_open: bool
) -> list[ProbeTask]:
    """Put each task into the first group whose hosts are free; return those without a seat."""
    busy = [{host for task in group for host in task.hosts} for group in groups]
    left = []
    for task in tasks:
        hosts = task.hosts
        for group, taken in zip(groups, busy, strict=True):
            if taken.isdisjoint(hosts):
                group.append(task)
                taken |= hosts
                break
        else:
            if may_open:
                groups.append([task])
                busy.append(set(hosts))
            else:
                left.append(task)
    return left


def _longest(group: Sequence[ProbeTask]) -> float:
    return max((task.duration_s for task in group), default=0.0)


def _busiest(tasks: Sequence[ProbeTask]) -> int:
    counts: dict[str, int] = {}
    for task in tasks:
        for host in task.hosts:
            counts[host] = counts.get(host, 0) + 1
    return max(counts.values(), default=0)


def _edges(pairs: Sequence[ProbeTask]) -> list[tuple[int, int]]:
    place: dict[str, int] = {}
    edges = []
    for task in pairs:
        a, b = sorted(task.hosts)
        edges.append((place.setdefault(a, len(place)), place.setdefault(b, len(place))))
    return edges
