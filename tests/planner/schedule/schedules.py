"""Schedules once more, for tests: random instances, and models that share no solver.

The full program over all slots and paths through SciPy's HiGHS, every set of transfers tried; and
checks of a schedule's periods, moment by moment, against caps, disks and what links charge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from math import inf
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, hstack, vstack

from planner.model.shared_resources import Floats
from planner.schedule.plan import PathRate, Period, SchedulePlan, TransferSchedule
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, Tariff, TimedTransfer
from tests.planner.worlds import CONNECTIONS, World

MONTH_S = 730 * 3600.0


def scheduled(of: World, *transfers: TimedTransfer, **more: Any) -> Any:
    request = ScheduleRequest(
        tuple(transfers),
        connections=CONNECTIONS,
        vms_in=of.vms_in,
        avoid=[n for n, may in zip(of.names, of.may_relay, strict=True) if not may],
        **{"vms": 1, "vms_running": True, **more},
    )
    return recommend_schedule(request, of.network(), of.prices())


def transfers(of: World, seed: int, count: int, fill: float) -> list[TimedTransfer]:
    """Return transfers that ask for about a share of what their own windows could carry."""
    random = np.random.default_rng(1000 + seed)
    found: list[TimedTransfer] = []
    while len(found) < count:
        src, dst = (int(i) for i in random.choice(len(of.rate), 2, replace=False))
        if not of.paths(src, dst):
            continue
        start = float(random.uniform(0, 3000))
        window = float(random.uniform(60, 2000))
        fastest = max(1 / max(of.loads(path).values()) for path in of.paths(src, dst))
        volume = fill * random.uniform(0.05, 1.0) * fastest * window / 8
        ends = of.names[src], of.names[dst]
        priority = int(random.integers(0, 3))
        name = f"t{len(found)}"
        found.append(TimedTransfer(name, *ends, float(volume), start, start + window, priority))
    return found


def valued(of: list[TimedTransfer], seed: int) -> list[TimedTransfer]:
    """Return the same with values: none, whole dollars, or any amount for most of them."""
    dollars = np.random.default_rng(2000 + seed).lognormal(3, 1, len(of)).tolist()
    if seed % 4 == 0:
        return of
    if seed % 4 == 1:
        dollars = [float(np.ceil(usd)) for usd in dollars]
    return [
        replace(t, value_usd=usd if seed % 4 == 1 or n % 4 else None)
        for n, (t, usd) in enumerate(zip(of, dollars, strict=True))
    ]


def random_tariffs(of: World, seed: int, last_s: float = 4000.0) -> list[Tariff]:
    """Return tariffs of some links: several of one link, recurring or not, any rate or some."""
    random = np.random.default_rng(3000 + seed)
    found = []
    for number in range(int(random.integers(2, 7))):
        src, dst = (int(site) for site in random.choice(len(of.rate), 2, replace=False))
        start_s = float(random.uniform(0, last_s / 2))
        length_s = float(random.uniform(50, last_s))
        recurs = random.random() < 0.4
        tariff = Tariff(
            f"f{number}",
            of.names[src],
            of.names[dst],
            rate_gbps=None if random.random() < 0.2 else float(random.uniform(0.05, 4.0)),
            per_gb_usd=float(random.choice([0.0, 0.005, 0.05])),
            start_s=start_s,
            end_s=start_s + length_s if recurs or random.random() < 0.6 else None,
            every_s=length_s * float(random.uniform(1.0, 3.0)) if recurs else None,
        )
        found.append(tariff)
    return found


def nights(asked: list[TimedTransfer], relays: Sequence[str]) -> list[Tariff]:
    """Return tariffs that transfers can use by storage: early to a relay, and late from there."""
    found: list[Tariff] = []
    for transfer in asked:
        window_s = (transfer.deadline_s or 0.0) - transfer.start_s
        for relay in {*relays} - {transfer.src, transfer.dst}:
            for src, dst, from_s in ((transfer.src, relay, 0.0), (relay, transfer.dst, 0.7)):
                start_s = transfer.start_s + from_s * window_s
                end_s = start_s + 0.3 * window_s
                found.append(Tariff(f"n{len(found)}", src, dst, start_s=start_s, end_s=end_s))
    return found


def changes_s(tariff: Tariff, last_s: float) -> Iterator[float]:
    """Yield when a tariff begins and ends to hold."""
    turn_s = tariff.start_s
    while turn_s < last_s:
        yield turn_s
        if tariff.end_s is not None:
            yield min(last_s, turn_s + tariff.end_s - tariff.start_s)
        turn_s += tariff.every_s or inf


@dataclass(frozen=True)
class FullColumn:
    """A volume of a transfer over links, each in a slot; what waits between them is stored."""

    number: int
    links: tuple[tuple[int, int, int], ...]
    usd_per_gbit: float

    @property
    def paths(self) -> list[tuple[int, tuple[int, ...]]]:
        """Slots and paths: a relay that stores nothing is passed in one slot."""
        (slot, u, v), *second = self.links
        if not second or second[0][0] != slot:
            return [(at, (src, dst)) for at, src, dst in self.links]
        return [(slot, (u, v, second[0][2]))]


@dataclass
class Full:
    """The whole program: every transfer, slot and path, every pair of slots through storage.

    `disks` are GB and USD per GB-month by site. Variables are the Gbit of each column, then what
    each tariff carries of a link in each slot.
    """

    of: World
    asked: list[TimedTransfer]
    tariffs: Sequence[Tariff] = ()
    disks: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        cuts = {t.start_s for t in self.asked} | {t.deadline_s or 0.0 for t in self.asked}
        first_s, last_s = min(cuts), max(cuts)
        for tariff in self.tariffs:
            cuts |= {time for time in changes_s(tariff, last_s) if time >= first_s}
        self.cuts = np.array(sorted(cuts))
        self.middles = (self.cuts[1:] + self.cuts[:-1]) / 2
        self.columns = [
            column for number, t in enumerate(self.asked) for column in self._of(number, t)
        ]
        rows, lengths = len(self.of.limits), np.diff(self.cuts)
        limits = (lengths[:, None] * self.of.limits[None, :]).ravel().tolist()
        entries = [
            (slot * rows + row, column, load)
            for column, of_column in enumerate(self.columns)
            for slot, path in of_column.paths
            for row, load in self.of.loads(path).items()
        ]
        for site, (gb, _) in self.disks.items():
            for slot in range(len(lengths)):
                entries += [
                    (len(limits), column, 1.0)
                    for column, one in enumerate(self.columns)
                    if one.links[0][2] == site and one.links[0][0] <= slot < one.links[-1][0]
                ]
                limits.append(8 * gb)
        self.volumes = np.array([8 * t.volume_gb for t in self.asked])
        self.owners = np.array([column.number for column in self.columns])
        self.usd = np.array([column.usd_per_gbit for column in self.columns])
        self.most = np.full(len(self.columns), inf)
        self._add_tariffs(entries, limits, lengths)
        row_of, column_of, loads = zip(*entries, strict=True)
        shape = (len(limits), len(self.usd))
        self.caps = coo_matrix((loads, (row_of, column_of)), shape=shape).tocsr()
        self.limits = np.array(limits)
        moved = (self.owners, np.arange(len(self.owners)))
        shape = (len(self.asked), len(self.usd))
        self.moved = coo_matrix((np.ones(len(self.owners)), moved), shape=shape).tocsr()

    def _of(self, number: int, transfer: TimedTransfer) -> Iterator[FullColumn]:
        i, j = self.of.names.index(transfer.src), self.of.names.index(transfer.dst)
        window = [
            slot
            for slot, (start_s, end_s) in enumerate(pairwise(self.cuts))
            if start_s >= transfer.start_s and end_s <= (transfer.deadline_s or inf)
        ]
        paths = self.of.paths(i, j)
        for path in paths:
            usd = sum(self.of.fees[link] for link in pairwise(path)) / 8
            for slot in window:
                links = tuple((slot, u, v) for u, v in pairwise(path))
                yield FullColumn(number, links, usd)
            if len(path) == 3 and path[1] in self.disks:
                for one, other in combinations(window, 2):
                    stored_s = float(self.middles[other] - self.middles[one])
                    stored_usd = self.disks[path[1]][1] / 8 * stored_s / MONTH_S
                    links = ((one, i, path[1]), (other, path[1], j))
                    yield FullColumn(number, links, usd + stored_usd)

    def _add_tariffs(
        self, entries: list[tuple[int, int, float]], limits: list[float], lengths: Floats
    ) -> None:
        """Add what tariffs carry: of each link and slot no more than is sent there."""
        rows: dict[tuple[int, int, int], int] = {}
        usd: list[float] = []
        most: list[float] = []
        for tariff in self.tariffs:
            link = self.of.names.index(tariff.src), self.of.names.index(tariff.dst)
            for slot, middle_s in enumerate(self.middles.tolist()):
                if tariff.holds_at(middle_s):
                    row = rows.setdefault((slot, *link), len(limits) + len(rows))
                    entries.append((row, len(self.usd) + len(usd), 1.0))
                    usd.append((tariff.per_gb_usd - self.of.fees[link]) / 8)
                    most.append((tariff.rate_gbps or inf) * lengths[slot])
        for column, one in enumerate(self.columns):
            entries += [(rows[link], column, -1.0) for link in one.links if link in rows]
        limits += [0.0] * len(rows)
        self.usd, self.most = np.append(self.usd, usd), np.append(self.most, most)

    def solve(self, cost: Floats, whole: set[int], partly: int | None = None) -> float:
        """Return the least cost with some moved whole, and one as far as it goes; inf if not."""
        inside = np.isin(np.arange(len(self.volumes)), list(whole))
        least = np.where(inside, self.volumes, 0.0)
        most = np.where(np.arange(len(self.volumes)) == partly, self.volumes, least)
        solved = linprog(
            cost,
            A_ub=vstack([self.caps, self.moved, -self.moved]),
            b_ub=np.concatenate([self.limits, most, -least]),
            bounds=np.column_stack([np.zeros(len(self.most)), self.most]),
            method="highs",
        )
        assert solved.status in {0, 2}, solved.message
        return float(solved.fun) if solved.status == 0 else inf

    def fits(self, whole: set[int]) -> bool:
        return self.solve(np.zeros(len(self.usd)), whole) < inf

    def most_moved_gbit(self, whole: set[int], number: int) -> float:
        cost = np.zeros(len(self.usd))
        cost[: len(self.owners)] = np.where(self.owners == number, -1.0, 0.0)
        return -self.solve(cost, whole, number)

    def best(self, before: set[int], worth: dict[int, float]) -> float:
        """Return the most that transfers moved beside others are worth, by trying every set."""
        sets = [
            frozenset(some) for size in range(len(worth) + 1) for some in combinations(worth, size)
        ]
        sets.sort(key=lambda some: -sum(worth[number] for number in some))
        too_much: list[frozenset[int]] = []
        for some in sets:
            if any(few <= some for few in too_much):
                continue
            if self.fits(before | some):
                return sum(worth[number] for number in some)
            too_much.append(some)
        raise AssertionError("What was admitted before does not fit.")

    def least_usd(self, whole: set[int]) -> float:
        """Return the least fees and storage, in USD."""
        return self.solve(self.usd, whole)

    def fewest_vms(self) -> float:
        """Return the least sum of further VMs, in fractions, that lets everything be moved."""
        lengths, sites = np.diff(self.cuts), self.of.row_sites
        rows = np.arange(len(lengths) * len(sites))
        each_s = -np.repeat(lengths, len(sites))
        shape = (self.caps.shape[0], len(self.of.rate))
        more = coo_matrix((each_s, (rows, np.tile(sites, len(lengths)))), shape=shape)
        nothing = coo_matrix((self.moved.shape[0], len(self.of.rate)))
        solved = linprog(
            np.append(np.zeros(len(self.usd)), np.ones(len(self.of.rate))),
            A_ub=vstack([hstack([self.caps, more]), hstack([-self.moved, nothing])]),
            b_ub=np.concatenate([self.limits, -self.volumes]),
            method="highs",
        )
        assert solved.status == 0, solved.message
        return float(solved.fun)


# ---- checks of periods ---------------------------------------------------------------------


def sent(plan: SchedulePlan) -> Iterator[tuple[TransferSchedule, Period, PathRate]]:
    for transfer in plan.transfers:
        for period in transfer.periods:
            for path in period.paths:
                yield transfer, period, path


def stored_usd(plan: SchedulePlan, disk_gb: Mapping[str, float], usd: float) -> float:
    """Return what the periods of a plan store costs, having checked that nothing lies too much."""
    changes: list[tuple[float, float, str, float]] = []
    lies: dict[tuple[str, str], float] = {}
    for transfer, period in ((t, period) for t in plan.transfers for period in t.periods):
        for path in period.paths:
            for region, sign in ((path.regions[0], -1), (path.regions[-1], 1)):
                if region not in {transfer.src, transfer.dst}:
                    rate = sign * path.throughput_gbps / 8
                    changes.append((period.start_s, period.end_s, region, rate))
                    at = transfer.id, region
                    lies[at] = lies.get(at, 0.0) + rate * (period.end_s - period.start_s)
        assert all(
            gb >= -1e-5 * transfer.volume_gb for (of, _), gb in lies.items() if of == transfer.id
        )
    assert all(
        abs(gb) <= 1e-5 * plan.transfer(number).volume_gb for (number, _), gb in lies.items()
    )
    total = 0.0
    for region in disk_gb:
        lies_gb = gb_s = 0.0
        for start, end in pairwise(sorted({time for change in changes for time in change[:2]})):
            rate = sum(r for a, b, where, r in changes if where == region and a <= start < b)
            gb_s += (lies_gb + rate * (end - start) / 2) * (end - start)
            lies_gb += rate * (end - start)
            assert lies_gb <= disk_gb[region] * (1 + 1e-5)
        total += gb_s * usd / MONTH_S
    return total


def charged_usd(of: World, plan: SchedulePlan, tariffs: Sequence[Tariff]) -> float:
    """Return what links and tariffs charge for the periods of a plan, moment by moment."""
    links = [
        (period.start_s, period.end_s, link, path.throughput_gbps)
        for _, period, path in sent(plan)
        for link in pairwise(path.regions)
    ]
    last_s = max((end_s for _, end_s, *_ in links), default=0.0)
    times = {time for start_s, end_s, *_ in links for time in (start_s, end_s)}
    times |= {time for tariff in tariffs for time in changes_s(tariff, last_s)}
    usd = 0.0
    for start_s, end_s in pairwise(sorted(times)):
        middle_s = (start_s + end_s) / 2
        rates: dict[tuple[str, str], float] = {}
        for begin_s, stop_s, link, rate in links:
            if begin_s <= middle_s < stop_s:
                rates[link] = rates.get(link, 0.0) + rate
        for link, left in rates.items():
            fee = float(of.fees[of.names.index(link[0]), of.names.index(link[1])])
            for tariff in sorted(tariffs, key=lambda tariff: tariff.per_gb_usd):
                on_it = (tariff.src, tariff.dst) == link and tariff.per_gb_usd < fee
                if on_it and tariff.holds_at(middle_s):
                    part = min(left, tariff.rate_gbps or inf)
                    usd += part * tariff.per_gb_usd / 8 * (end_s - start_s)
                    left -= part
            usd += left * fee / 8 * (end_s - start_s)
    return usd


def assert_kept(of: World, plan: SchedulePlan) -> None:
    """Check caps at every moment, windows, volumes and promises."""
    for transfer in plan.transfers:
        if transfer.verdict == "refused":
            assert not transfer.periods
            continue
        moved = before = 0.0
        for period in transfer.periods:
            assert before - 1e-9 <= period.start_s < period.end_s
            assert period.start_s >= transfer.start_s - 1e-9
            before = period.end_s
            carried = sum(path.throughput_gbps for path in period.paths)
            assert abs(carried - period.throughput_gbps) <= 1e-9 * carried
            arrives = (p.throughput_gbps for p in period.paths if p.regions[-1] == transfer.dst)
            moved += sum(arrives) * (period.end_s - period.start_s) / 8
        assert abs(moved - transfer.volume_gb) <= 1e-6 * transfer.volume_gb
        assert transfer.end_s == before
        if transfer.verdict == "admitted":
            assert transfer.deadline_s is not None
            assert transfer.end_s <= transfer.deadline_s * (1 + 1e-9)
    events: list[tuple[float, float, dict[int, float]]] = []
    for transfer, period, path in sent(plan):
        at = tuple(of.names.index(region) for region in path.regions)
        assert at in of.paths(at[0], at[-1])
        ends = {transfer.src, transfer.dst}
        assert (path.regions[0], path.regions[-1]) == (transfer.src, transfer.dst) or (
            {*path.regions} & plan.request["disk_gb"].keys() and {*path.regions} & ends
        )
        loads = {row: load * path.throughput_gbps for row, load in of.loads(at).items()}
        events.append((period.start_s, period.end_s, loads))
    times = np.unique([time for event in events for time in event[:2]])
    used = np.zeros((max(0, len(times) - 1), len(of.limits)))
    for start, end, loads in events:
        first, last = np.searchsorted(times, (start, end))
        for row, load in loads.items():
            used[first:last, row] += load
    assert (used <= of.limits * (1 + 1e-5)).all(), used.max()
