"""Schedules once more, for tests: random instances, and models that share no solver.

The full program over all slots and paths through SciPy's HiGHS, every set of transfers tried; and a
check of a schedule's periods against every cap at every moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from math import inf

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.shared_resources import Floats, SiteResources
from planner.schedule.plan import SchedulePlan
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, TimedTransfer

Entry = tuple[int, int, float]
CONNECTIONS = 16


@dataclass(frozen=True)
class World:
    """A network without distances, its fees, and VMs.

    `rate` is what one VM pair reaches, `flows` what all connections of a VM would.
    """

    rate: Floats
    flows: Floats
    egress: Floats
    ingress: Floats
    vms: np.ndarray
    fees: Floats
    may_relay: np.ndarray

    @property
    def names(self) -> list[str]:
        return [f"r{i:02d}" for i in range(len(self.rate))]

    def schedule(self, *transfers: TimedTransfer, **more: object) -> SchedulePlan:
        names = self.names
        network = Network.from_matrices(
            names,
            self.rate,
            rtt_ms=0.0,
            per_flow_mbps=self.flows / CONNECTIONS * 1000,
            egress_gbps=list(self.egress),
            ingress_gbps=list(self.ingress),
        )
        request = ScheduleRequest(
            tuple(transfers),
            connections=CONNECTIONS,
            vms_in={n: int(v) for n, v in zip(names, self.vms, strict=True)},
            avoid=[n for n, may in zip(names, self.may_relay, strict=True) if not may],
            **more,  # type: ignore[arg-type]
        )
        prices = FlatPrices(names, self.fees, 1.0)
        return recommend_schedule(request, network, prices)

    def with_vms(self, more: dict[str, int]) -> World:
        vms = self.vms.copy()
        for name, count in more.items():
            vms[self.names.index(name)] += count
        return replace(self, vms=vms)

    def loads(self, src: int, hop: int, dst: int) -> dict[int, float]:
        n = len(self.rate)
        found: dict[int, float] = {}
        for u, v in [(src, dst)] if hop == dst else [(src, hop), (hop, dst)]:
            for row, load in (
                (u, 1 / self.flows[u, v]),
                (n + v, 1 / self.flows[u, v]),
                (2 * n + u, 1 / self.egress[u]),
                (3 * n + v, 1 / self.ingress[v]),
                (4 * n + u * n + v, 1 / self.rate[u, v]),
                (4 * n + n * n + u * n + v, 1 / self.rate[u, v]),
            ):
                found[row] = found.get(row, 0.0) + load
        return found

    @property
    def row_sites(self) -> np.ndarray:
        """Site of each row that :meth:`loads` names."""
        sites = np.arange(len(self.rate))
        return np.concatenate(
            [np.tile(sites, 4), np.repeat(sites, len(sites)), np.tile(sites, len(sites))]
        )

    @property
    def limits(self) -> Floats:
        """VMs of each row that :meth:`loads` names."""
        return np.asarray(self.vms[self.row_sites], dtype=float)

    def resources(self) -> SiteResources:
        return SiteResources(
            self.rate, self.flows, self.egress, self.ingress, self.vms.astype(float), self.may_relay
        )

    def paths(self, src: int, dst: int) -> list[int]:
        return [
            k
            for k in range(len(self.rate))
            if k != src
            and self.rate[src, k] > 0
            and (k == dst or (self.rate[k, dst] > 0 and self.may_relay[k]))
        ]


def world(seed: int) -> World:
    """Three to six sites, with caps that bind or not, missing links, several VMs."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 7))
    rate = random.uniform(0.5, 10, (n, n)) * random.uniform(0.5, 2, (n, 1))
    rate[(random.random((n, n)) < 0.15) & (seed % 3 == 0)] = 0.0
    np.fill_diagonal(rate, 0.0)
    rate[0, 1] = rate[0, 1] or 3.0
    return World(
        rate,
        rate * random.uniform(1, 6, (n, n)),
        random.uniform(3, 12, n),
        random.uniform(3, 12, n),
        random.integers(1, 3, n),
        random.choice([0.01, 0.02, 0.09], (n, n)),
        random.random(n) < 0.8,
    )


def transfers(of: World, seed: int, count: int, fill: float) -> list[TimedTransfer]:
    """Return transfers that ask for about a share of what their own windows could carry."""
    random = np.random.default_rng(1000 + seed)
    found: list[TimedTransfer] = []
    n = len(of.rate)
    while len(found) < count:
        src, dst = (int(i) for i in random.choice(n, 2, replace=False))
        if not of.paths(src, dst):
            continue
        start = float(random.uniform(0, 3000))
        window = float(random.uniform(60, 2000))
        fastest = max(1 / max(of.loads(src, k, dst).values()) for k in of.paths(src, dst))
        volume = fill * random.uniform(0.05, 1.0) * fastest * window / 8
        found.append(
            TimedTransfer(
                f"t{len(found)}",
                of.names[src],
                of.names[dst],
                float(volume),
                start,
                start + window,
                int(random.integers(0, 3)),
            )
        )
    return found


def valued(of: list[TimedTransfer], seed: int) -> list[TimedTransfer]:
    """Return the same with values: none, whole dollars, or any amount for most of them."""
    random = np.random.default_rng(2000 + seed)
    dollars = random.lognormal(3, 1, len(of))
    if seed % 4 == 0:
        return of
    if seed % 4 == 1:
        return [replace(t, value_usd=float(np.ceil(v))) for t, v in zip(of, dollars, strict=True)]
    return [
        replace(t, value_usd=float(v) if n % 4 else None)
        for n, (t, v) in enumerate(zip(of, dollars, strict=True))
    ]


@dataclass(frozen=True)
class FullColumn:
    """A volume of a transfer over links, each in a slot; what waits between them is stored."""

    number: int
    links: tuple[tuple[int, int, int], ...]
    stored_usd_per_gbit: float = 0.0


@dataclass
class Full:
    """The whole program: every transfer, slot and path, and every pair of slots through storage.

    `disks` are GB and USD per GB-month by site.
    """

    of: World
    asked: list[TimedTransfer]
    more_cuts: tuple[float, ...] = ()
    disks: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cuts = (
            {*self.more_cuts} | {t.start_s for t in self.asked} | {t.deadline_s for t in self.asked}
        )
        self.cuts = np.array(sorted(time for time in cuts if time is not None))
        self.columns: list[FullColumn] = []
        entries: list[Entry] = []
        middles = (self.cuts[1:] + self.cuts[:-1]) / 2
        rows = len(self.of.limits)
        self.slots = len(self.cuts) - 1
        for number, transfer in enumerate(self.asked):
            i, j = self.ends(transfer)
            window = [
                slot
                for slot in range(self.slots)
                if self.cuts[slot] >= transfer.start_s
                and self.cuts[slot + 1] <= (transfer.deadline_s or inf)
            ]
            for slot in window:
                for hop in self.of.paths(i, j):
                    sites = (i, j) if hop == j else (i, hop, j)
                    links = tuple((slot, u, v) for u, v in pairwise(sites))
                    self.columns.append(FullColumn(number, links))
            for site in {*self.disks} & {*self.of.paths(i, j)} - {j}:
                for one, other in combinations(window, 2):
                    stored_s = middles[other] - middles[one]
                    usd = self.disks[site][1] / 8 * float(stored_s) / (730 * 3600)
                    links = ((one, i, site), (other, site, j))
                    self.columns.append(FullColumn(number, links, usd))
        lengths = np.diff(self.cuts)
        # Variables are volumes in Gbit.
        limits = (lengths[:, None] * self.of.limits[None, :]).ravel().tolist()
        for column, of_column in enumerate(self.columns):
            entries += [
                (slot * rows + row, column, load)
                for slot, u, v in of_column.links
                for row, load in self.of.loads(u, v, v).items()
            ]
        for site, (gb, _) in self.disks.items():
            for slot in range(self.slots):
                entries += [
                    (len(limits), column, 1.0)
                    for column, of_column in enumerate(self.columns)
                    if of_column.links[0][2] == site
                    and of_column.links[0][0] <= slot < of_column.links[-1][0]
                ]
                limits.append(8 * gb)
        row_of, column_of, loads = zip(*entries, strict=True)
        shape = (len(limits), len(self.columns))
        self.caps = coo_matrix((loads, (row_of, column_of)), shape=shape).tocsr()
        self.limits = np.array(limits)
        owner = np.array([column.number for column in self.columns])
        self.moved = coo_matrix(
            (np.ones(len(owner)), (owner, np.arange(len(owner)))),
            shape=(len(self.asked), len(owner)),
        ).tocsr()
        self.volumes = np.array([8 * t.volume_gb for t in self.asked])

    def ends(self, transfer: TimedTransfer) -> tuple[int, int]:
        return self.of.names.index(transfer.src), self.of.names.index(transfer.dst)

    def solve(self, cost: Floats, whole: set[int], partly: int | None = None) -> float:
        """Return the least cost with some moved whole, and one as far as it goes; inf if not."""
        most = np.array(
            [v if n in whole or n == partly else 0.0 for n, v in enumerate(self.volumes)]
        )
        least = np.array([v if n in whole else 0.0 for n, v in enumerate(self.volumes)])
        from scipy.sparse import vstack

        solved = linprog(
            cost,
            A_ub=vstack([self.caps, self.moved, -self.moved]),
            b_ub=np.concatenate([self.limits, most, -least]),
            method="highs",
        )
        assert solved.status in {0, 2}, solved.message
        return float(solved.fun) if solved.status == 0 else inf

    def most_moved_gbit(self, whole: set[int], number: int) -> float:
        cost = np.array([-1.0 if c.number == number else 0.0 for c in self.columns])
        return -self.solve(cost, whole, number)

    def best(self, before: set[int], worth: dict[int, float]) -> float:
        """Return the most that transfers moved beside others are worth, by trying every set."""
        sets = [
            frozenset(some) for size in range(len(worth) + 1) for some in combinations(worth, size)
        ]
        sets.sort(key=lambda some: -sum(worth[number] for number in some))
        too_much: list[frozenset[int]] = []
        nothing = np.zeros(len(self.columns))
        for some in sets:
            if any(few <= some for few in too_much):
                continue
            if self.solve(nothing, before | some) < inf:
                return sum(worth[number] for number in some)
            too_much.append(some)
        raise AssertionError("What was admitted before does not fit.")

    def least_fees(self, whole: set[int]) -> float:
        return self.solve(self.fees_usd, whole)

    @property
    def fees_usd(self) -> Floats:
        """Fees and storage of a Gbit of each column."""
        return np.array(
            [
                sum(self.of.fees[u, v] for _, u, v in column.links) / 8 + column.stored_usd_per_gbit
                for column in self.columns
            ]
        )


def stored_usd(plan: SchedulePlan, disk_gb: Mapping[str, float], usd: float) -> float:
    """Return what the periods of a plan store costs, having checked that nothing lies too much."""
    changes: list[tuple[float, float, str, float]] = []
    for transfer in plan.transfers:
        lies: dict[str, float] = {}
        for period in transfer.periods:
            length = period.end_s - period.start_s
            for path in period.paths:
                for region, sign in ((path.regions[0], -1), (path.regions[-1], 1)):
                    if region not in {transfer.src, transfer.dst}:
                        rate = sign * path.throughput_gbps / 8
                        changes.append((period.start_s, period.end_s, region, rate))
                        lies[region] = lies.get(region, 0.0) + rate * length
                        assert lies[region] >= -1e-5 * transfer.volume_gb
        assert all(abs(gb) <= 1e-5 * transfer.volume_gb for gb in lies.values())
    total = 0.0
    for region in disk_gb:
        lies_gb = gb_s = 0.0
        for start, end in pairwise(sorted({time for change in changes for time in change[:2]})):
            rate = sum(r for a, b, where, r in changes if where == region and a <= start < b)
            gb_s += (lies_gb + rate * (end - start) / 2) * (end - start)
            lies_gb += rate * (end - start)
            assert lies_gb <= disk_gb[region] * (1 + 1e-5)
        total += gb_s * usd / (730 * 3600)
    return total


def assert_kept(of: World, plan: SchedulePlan) -> None:
    """Check caps at every moment, windows, volumes and promises."""
    names = of.names
    events: list[tuple[float, float, dict[int, float]]] = []
    for transfer in plan.transfers:
        if transfer.verdict == "refused":
            assert not transfer.periods
            continue
        moved = sum(
            path.throughput_gbps * (period.end_s - period.start_s) / 8
            for period in transfer.periods
            for path in period.paths
            if path.regions[-1] == transfer.dst
        )
        assert abs(moved - transfer.volume_gb) <= 1e-6 * transfer.volume_gb
        assert transfer.end_s is not None
        before = 0.0
        for period in transfer.periods:
            assert before - 1e-9 <= period.start_s < period.end_s
            assert period.start_s >= transfer.start_s - 1e-9
            before = period.end_s
            carried = sum(path.throughput_gbps for path in period.paths)
            assert abs(carried - period.throughput_gbps) <= 1e-9 * carried
            for path in period.paths:
                i, hop, j = (names.index(path.regions[at]) for at in (0, 1, -1))
                assert hop in of.paths(i, j)
                assert (path.regions[0], path.regions[-1]) == (transfer.src, transfer.dst) or (
                    {*path.regions} & plan.request["disk_gb"].keys()
                    and {*path.regions} & {transfer.src, transfer.dst}
                )
                loads = {r: x * path.throughput_gbps for r, x in of.loads(i, hop, j).items()}
                events.append((period.start_s, period.end_s, loads))
        assert transfer.end_s == before
        if transfer.verdict == "admitted":
            assert transfer.deadline_s is not None
            assert transfer.end_s <= transfer.deadline_s * (1 + 1e-9)
    times = np.unique([time for event in events for time in event[:2]])
    used = np.zeros((max(0, len(times) - 1), len(of.limits)))
    for start, end, loads in events:
        first, last = np.searchsorted(times, (start, end))
        for row, load in loads.items():
            used[first:last, row] += load
    assert (used <= of.limits * (1 + 1e-5)).all(), used.max()
