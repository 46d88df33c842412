"""The plan of one transfer with least cost, or least cost plus time, and within limits.

The program is in shares *y* of paths and *t*, the inverse of the rate: where VMs are *n*, paths
carry *A y <= n t* (Charnes and Cooper). Numbers of VMs are sums of zeros and ones *z*, *w* is
*z t*, and *p* is *z* times the round trip of the longest path.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from tests.referee.networks import Floats
from tests.referee.transfer import (
    LEAST_SHARE,
    MOST_PATHS,
    ROUND_TRIPS,
    Answer,
    Path,
    Question,
    may_split,
    paths_of,
    priced,
    rows_of,
    singles,
)


class _Program:
    """Rows and bounds of one program, over named columns."""

    def __init__(self, q: Question, paths: list[Path], *, restricted: bool) -> None:
        self.q, self.paths, self.restricted = q, paths, restricted
        self.regions = sorted({r for p in paths for r in p.regions})
        n, m = len(paths), len(self.regions) * q.vms
        self.share, self.use = slice(0, n), slice(n, 2 * n)
        self.t, self.longest = 2 * n, 2 * n + 1
        self.z, self.w = slice(2 * n + 2, 2 * n + 2 + m), slice(2 * n + 2 + m, 2 * n + 2 + 2 * m)
        self.p = slice(2 * n + 2 + 2 * m, 2 * n + 2 + 3 * m)
        self.size = 2 * n + 2 + 3 * m
        self.rate = float(min(q.net.send[q.src], q.net.receive[q.dst])) * q.vms
        slowest = min(sum(a.rates.values()) for a in singles(q))
        self.most_t = self.rate / slowest * 1.01
        self.rows: list[Floats] = []
        self.right: list[float] = []

    def column(self, region: int, k: int) -> int:
        """Return which VM, of those counted, is the k-th of a region."""
        return self.regions.index(region) * self.q.vms + k

    def add(self, entries: dict[int, float], right: float) -> None:
        """Add a row ``entries <= right``."""
        row = np.zeros(self.size)
        row[list(entries)] = list(entries.values())
        self.rows.append(row)
        self.right.append(right)

    def fill(self) -> None:
        vms, top = self.q.vms, self.most_t
        farthest = max(path.rtt for path in self.paths)
        for coefficients, region, limit in rows_of(self.q, self.paths):
            entries = dict(enumerate(coefficients))
            for k in range(vms):
                entries[self.w.start + self.column(region, k)] = -limit / self.rate
            self.add(entries, 0.0)
        for index, path in enumerate(self.paths):
            self.add({index: 1.0, self.use.start + index: -1.0}, 0.0)
            if self.restricted:
                self.add({index: -1.0, self.use.start + index: LEAST_SHARE}, 0.0)
            self.add({self.use.start + index: path.rtt, self.longest: -1.0}, 0.0)
            for region in path.regions:
                column = self.z.start + self.column(region, 0)
                self.add({self.use.start + index: 1.0, column: -1.0}, 0.0)
        for region in self.regions:
            for k in range(vms):
                z, w = self.z.start + self.column(region, k), self.w.start + self.column(region, k)
                self.add({w: 1.0, self.t: -1.0}, 0.0)
                self.add({w: 1.0, z: -top}, 0.0)
                self.add({w: -1.0, self.t: 1.0, z: top}, top)
                p = self.p.start + self.column(region, k)
                self.add({self.longest: 1.0, p: -1.0, z: farthest}, farthest)
                if k:
                    self.add({z: 1.0, z - 1: -1.0}, 0.0)
        paths = len(self.paths)
        most = 1 if not may_split(self.q) else (MOST_PATHS if self.restricted else paths)
        self.add({self.use.start + i: 1.0 for i in range(paths)}, float(most))

    def usd(self) -> Floats:
        """Return the cost as coefficients."""
        q, row = self.q, np.zeros(self.size)
        row[self.share] = [q.volume * p.fee for p in self.paths]
        for region in self.regions:
            for k in range(q.vms):
                hourly = float(q.net.hourly[region])
                row[self.z.start + self.column(region, k)] = hourly * q.start / 3600
                row[self.p.start + self.column(region, k)] = hourly * ROUND_TRIPS / 3600
                row[self.w.start + self.column(region, k)] = (
                    hourly * 8 * q.volume / self.rate / 3600
                )
        return row

    def seconds(self) -> Floats:
        """Return the time after VMs have started as coefficients."""
        row = np.zeros(self.size)
        row[self.t], row[self.longest] = 8 * self.q.volume / self.rate, ROUND_TRIPS
        return row

    def solve(self, objective: Floats) -> Answer | None:
        """Return the best plan, with rates as large as its VMs and shares allow."""
        whole = np.zeros(self.size)
        whole[self.use] = whole[self.z] = 1
        high = np.full(self.size, np.inf)
        high[self.use] = high[self.z] = 1.0
        sums = np.zeros(self.size)
        sums[self.share] = 1.0
        scale = max(float(np.abs(objective).max()), 1e-300)
        rows, right = np.array(self.rows), np.array(self.right)
        found = milp(
            objective / scale,
            constraints=[LinearConstraint(rows, -np.inf, right), LinearConstraint(sums, 1.0, 1.0)],
            integrality=whole,
            bounds=Bounds(0.0, high),
            options={"mip_rel_gap": 1e-6},
        )
        if found.x is None:
            return None
        share = np.where(found.x[self.share] > 1e-7, found.x[self.share], 0.0)
        share = share / share.sum()
        vms = {
            region: round(
                sum(found.x[self.z.start + self.column(region, k)] for k in range(self.q.vms))
            )
            for region in self.regions
        }
        rate = min(
            (
                limit * vms[region] / float(coefficients @ share)
                for coefficients, region, limit in rows_of(self.q, self.paths)
                if coefficients @ share > 0
            ),
            default=0.0,
        )
        return priced(self.q, self.paths, share * rate, vms) if rate > 0 else None


def _bound_time(q: Question, program: _Program, objective: str, best: float) -> None:
    """Leave out plans so slow that the VMs of both ends and the hours alone cost too much."""
    hourly = float(q.net.hourly[q.src] + q.net.hourly[q.dst])
    if objective == "value":
        hourly += q.hour
    factor = hourly * 8 * q.volume / program.rate / 3600
    if objective == "time":
        factor = 8 * q.volume / program.rate
    if factor > 0:
        program.most_t = min(program.most_t, max(1.0, best / factor) * 1.01)


def cheapest(
    q: Question,
    objective: str,
    *,
    deadline: float = math.inf,
    budget: float = math.inf,
    least_rate: float = 0.0,
    restricted: bool = True,
) -> Answer | None:
    """Return the plan that is best by an objective (time, cost or value) within limits."""
    paths = paths_of(q)
    if not paths:
        return None
    program = _Program(q, paths, restricted=restricted)
    alone = [
        answer
        for answer in singles(q)
        if answer.duration <= deadline
        and answer.usd <= budget
        and sum(answer.rates.values()) >= least_rate
    ]
    best = min(alone, key=lambda a: a.worth(objective, q.hour), default=None)
    if best is not None:
        _bound_time(q, program, objective, best.worth(objective, q.hour))
    if not may_split(q) or len(paths) == 1:
        return best
    program.fill()
    seconds, usd = program.seconds(), program.usd()
    if deadline < math.inf:
        _limit(program, seconds, deadline - q.start)
    if budget < math.inf:
        _limit(program, usd, budget)
    if least_rate > 0:
        program.add({program.t: 1.0}, program.rate / least_rate)
    goal = {"time": seconds, "cost": usd, "value": usd + q.hour / 3600 * seconds}[objective]
    found = program.solve(goal)
    if found is None or best is None:
        return found or best
    return min(found, best, key=lambda a: a.worth(objective, q.hour))


def _limit(program: _Program, row: Floats, right: float) -> None:
    scale = max(float(np.abs(row).max()), 1e-300)
    program.rows.append(row / scale)
    program.right.append(right / scale)
