"""The best plan of one transfer, from the formulas of docs/planning.md ("The model")."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from tests.referee.networks import Floats, Network

ROUND_TRIPS = 8.5  # of slow start, on each link of the longest path
LEAST_TO_SPLIT = 8  # connections a VM
MOST_PATHS = 3
LEAST_SHARE = 0.05
FURTHER = 1.055  # what a path beyond three must bring, and a little


@dataclass(frozen=True)
class Question:
    """One transfer; ``start`` is the VMs', in seconds."""

    net: Network
    src: int
    dst: int
    volume: float
    vms: int = 1
    connections: int = 64
    relays: str = "any"
    start: float = 60.0
    hour: float = 20.0  # what one is worth


@dataclass(frozen=True)
class Path:
    """Regions of a path, what one connection carries, and round trips in seconds."""

    regions: tuple[int, ...]
    one: float
    rtt: float
    fee: float


@dataclass(frozen=True)
class Answer:
    """A plan: rates of paths and VMs of regions, with its figures."""

    rates: dict[tuple[int, ...], float]
    vms: dict[int, int]
    duration: float
    usd: float

    def worth(self, objective: str, hour: float) -> float:
        """Return what the objective makes least."""
        if objective == "time":
            return self.duration
        return self.usd + (hour * self.duration / 3600 if objective == "value" else 0.0)


def paths_of(q: Question) -> list[Path]:
    """Return direct, where there is a link, and each permitted path over one relay."""
    found: list[tuple[int, ...]] = [(q.src, q.dst)] if q.net.link(q.src, q.dst) else []
    if q.relays != "none":
        found += [(q.src, r, q.dst) for r in q.net.relays(q.src, q.dst)]
    return [_path(q.net, regions) for regions in found]


def _path(net: Network, regions: tuple[int, ...]) -> Path:
    links = list(pairwise(regions))
    return Path(
        regions,
        min(float(net.one[i, j]) for i, j in links),
        sum(float(net.rtt[i, j]) for i, j in links) / 1000,
        sum(float(net.fee[i, j]) for i, j in links),
    )


def rows_of(q: Question, paths: list[Path]) -> list[tuple[Floats, int, float]]:
    """Return rows ``coefficients @ rates <= right * VMs``: (coefficients, region, right)."""
    net, k = q.net, q.connections
    rows: list[tuple[Floats, int, float]] = []
    everything = np.ones(len(paths))
    rows.append((everything, q.src, float(net.send[q.src])))
    rows.append((everything, q.dst, float(net.receive[q.dst])))
    rows.append((np.array([1 / p.one for p in paths]), q.src, float(k)))
    for index, path in enumerate(paths):
        alone = np.zeros(len(paths))
        alone[index] = 1.0
        for i, j in pairwise(path.regions):
            rows.append((alone, i, net.sent(i, j, k)))
            if net.ends_in_path(i, j):
                rows.append((alone, j, float(net.aggregate[i, j])))
        for relay in path.regions[1:-1]:
            rows.append((alone, relay, float(min(net.send[relay], net.receive[relay]))))
            rows.append((alone / path.one, relay, float(k)))
    return rows


def priced(q: Question, paths: list[Path], rates: Floats, vms: dict[int, int]) -> Answer:
    """Return a plan's figures: VMs are paid from their start until the last byte."""
    rate = float(rates.sum())
    used = [p for p, x in zip(paths, rates, strict=True) if x > 1e-9 * rate]
    sending = 8 * q.volume / rate
    usd = q.volume * sum(x / rate * p.fee for p, x in zip(paths, rates, strict=True))
    regions = {r for p in used for r in p.regions}
    duration = q.start + sending + ROUND_TRIPS * max(p.rtt for p in used)
    usd += sum(q.net.hourly[r] * vms[r] for r in regions) * duration / 3600
    by_path = {p.regions: float(x) for p, x in zip(paths, rates, strict=True) if p in used}
    return Answer(by_path, {r: vms[r] for r in regions}, duration, float(usd))


def may_split(q: Question) -> bool:
    """Whether connections suffice to split over several paths."""
    return q.connections >= LEAST_TO_SPLIT


def quickest(q: Question, *, whole: bool = False, most_paths: int | None = None) -> Answer | None:
    """Return the plan of least time with all stated VMs, or None where there is no path.

    Parameters
    ----------
    whole : bool
        Each path takes a whole number of connections, rather than fractions.
    most_paths : int, optional
        At most so many paths, each with at least 5 % of the rate; without it, any and of any rate.
    """
    paths = paths_of(q)
    vms = dict.fromkeys(range(q.net.size), q.vms)
    best: Answer | None = None
    for longest in sorted({p.rtt for p in paths}):
        allowed = [p for p in paths if p.rtt <= longest]
        rates = _most(q, allowed, whole=whole, most_paths=most_paths)
        if rates is None or rates.sum() <= 0:
            continue
        answer = priced(q, allowed, rates, vms)
        if best is None or answer.duration < best.duration:
            best = answer
    return best


def quickest_as_promised(q: Question, *, whole: bool) -> Answer | None:
    """Return the quickest plan of at most three paths, or of more where each further brings 5 %."""
    most = MOST_PATHS if may_split(q) else 1
    best = quickest(q, whole=whole, most_paths=most)
    while best is not None and most > 1 and len(best.rates) == most:
        most += 1
        more = quickest(q, whole=whole, most_paths=most)
        if more is None or FURTHER * more.duration > best.duration:
            break
        best = more
    return best


def _most(q: Question, paths: list[Path], *, whole: bool, most_paths: int | None) -> Floats | None:
    """Return rates that add up to the most."""
    n = len(paths)
    if not whole and most_paths is None:
        rows = rows_of(q, paths)
        found = linprog(
            -np.ones(n),
            A_ub=np.array([c for c, _, _ in rows]),
            b_ub=np.array([right * q.vms for _, _, right in rows]),
        )
        return np.asarray(found.x) if found.status == 0 else None
    # Rates, connections of each path (whole or not), and whether it is used.
    rows = rows_of(q, paths)
    matrix = [np.concatenate([c, np.zeros(2 * n)]) for c, _, _ in rows]
    right = [limit * q.vms for _, _, limit in rows]
    top = float(min(q.net.send[q.src], q.net.receive[q.dst])) * q.vms
    for index, path in enumerate(paths):
        row = np.zeros(3 * n)
        row[index], row[n + index] = 1.0, -path.one
        matrix.append(row)
        right.append(0.0)
        row = np.zeros(3 * n)
        row[index], row[2 * n + index] = 1.0, -top
        matrix.append(row)
        right.append(0.0)
        if most_paths is not None:
            row = np.zeros(3 * n)
            row[:n] = LEAST_SHARE
            row[index] -= 1.0
            row[2 * n + index] = LEAST_SHARE * top
            matrix.append(row)
            right.append(LEAST_SHARE * top)
    matrix.append(np.repeat([0.0, 1.0, 0.0], n))
    right.append(float(q.connections * q.vms))
    matrix.append(np.repeat([0.0, 0.0, 1.0], n))
    right.append(float(n if most_paths is None else most_paths))
    found = milp(
        np.repeat([-1.0, 0.0, 0.0], n),
        constraints=LinearConstraint(np.array(matrix), -np.inf, right),
        integrality=np.repeat([0, int(whole), 1], n),
        bounds=Bounds(0.0, np.repeat([np.inf, np.inf, 1.0], n)),
    )
    if found.x is None:
        return None
    rates = np.asarray(found.x[:n])
    return np.where(rates > 1e-7 * rates.sum(), rates, 0.0)


def singles(q: Question) -> list[Answer]:
    """Return every plan over one path, with each number of VMs up to those stated."""
    answers = []
    for path in paths_of(q):
        for counts in product(range(1, q.vms + 1), repeat=len(path.regions)):
            vms = dict(zip(path.regions, counts, strict=True))
            rate = min(right * vms[region] / float(c[0]) for c, region, right in rows_of(q, [path]))
            answers.append(priced(q, [path], np.array([rate]), vms))
    return answers
