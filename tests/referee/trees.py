"""Broadcasts over all trees of a small network (docs/broadcast.md, "The model")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from scipy.optimize import linprog

from tests.referee.networks import MOST_TO_ONE_VM, Network
from tests.referee.transfer import ROUND_TRIPS

Tree = tuple[tuple[int, int], ...]  # links, parent to child


@dataclass(frozen=True)
class Found:
    """Seconds of sending over the best trees, and of slow start on the longest of their paths."""

    seconds: float
    ramp: float


def trees_of(net: Network, src: int, destinations: tuple[int, ...], relays: str) -> Iterator[Tree]:
    """Yield every tree that reaches the destinations; only they and permitted relays forward."""
    others = [
        r for r in range(net.size) if r != src and r not in destinations and r not in net.avoid
    ]
    for count in range(len(others) + 1 if relays == "any" else 1):
        for chosen in combinations(others, count):
            inner = (*destinations, *chosen)
            forwards = {src} if relays == "none" else {src, *inner}
            choices = [[p for p in forwards if p != c and net.link(p, c)] for c in inner]
            for parents in product(*choices):
                above = dict(zip(inner, parents, strict=True))
                if _reaches(src, above) and set(chosen) <= set(parents):
                    yield tuple((p, c) for c, p in above.items())


def _reaches(src: int, above: dict[int, int]) -> bool:
    for node in above:
        at, steps = node, 0
        while at != src:
            at, steps = above[at], steps + 1
            if steps > len(above):
                return False
    return True


def ramp_of(net: Network, tree: Tree) -> float:
    """Return what slow start takes on the longest path from the source."""
    above = {c: p for p, c in tree}

    def trip(node: int) -> float:
        return (
            float(net.rtt[above[node], node]) / 1000 + trip(above[node]) if node in above else 0.0
        )

    return ROUND_TRIPS * max(trip(node) for node in above)


def fastest(
    net: Network, trees: list[Tree], volume: float, vms: int, connections: int
) -> Found | None:
    """Return the least time of sending shares of the volume over trees."""
    if not trees:
        return None
    limits: dict[tuple[str, int, int], float] = {}
    loads: list[dict[tuple[str, int, int], float]] = []
    to_one = min(connections, MOST_TO_ONE_VM)
    for tree in trees:
        row: dict[tuple[str, int, int], float] = {}
        for i, j in tree:
            parts = [
                (("opens", i, i), 1 / net.one[i, j], connections),
                (("sends", i, i), 1.0, net.send[i]),
                (("receives", j, j), 1.0, net.receive[j]),
                (("path", i, j), 1.0, net.sent(i, j, to_one)),
            ]
            if net.ends_in_path(i, j):
                parts.append((("ends", i, j), 1.0, net.aggregate[i, j]))
            for key, amount, limit in parts:
                row[key] = row.get(key, 0.0) + float(amount)
                limits[key] = float(limit) * vms
        loads.append(row)
    keys = list(limits)
    matrix = np.array([[row.get(key, 0.0) / limits[key] for row in loads] for key in keys])
    unit = float(matrix.max(axis=0).min())
    found = linprog(
        np.append(np.zeros(len(trees)), 1.0),
        A_ub=np.column_stack([matrix / unit, -np.ones(len(keys))]),
        b_ub=np.zeros(len(keys)),
        A_eq=np.append(np.ones(len(trees)), 0.0)[None, :],
        b_eq=[1.0],
    )
    if found.status != 0:
        return None
    used = [t for t, share in zip(trees, found.x, strict=False) if share > 1e-9]
    return Found(8 * volume * unit * found.x[-1], max(ramp_of(net, tree) for tree in used))
