"""The volumes still to be sent, and the figures of the program over time slots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from planner.fields.demands import Demands
from planner.fields.shared import DEFAULT_TIME_VALUE_USD_PER_H
from planner.model.errors import DataError, InputError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats, SiteResources
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE
from planner.schedule.plan import Period, TransferSchedule
from planner.schedule.request import ScheduleInProgress, ScheduleRequest, TimedTransfer
from planner.schedule.tariffs import MONTH_S, LinkTariffs
from planner.shared_vms.candidates import fewest_vms
from planner.shuffle.problem import ShuffleProblem, shuffle_problem
from planner.shuffle.request import ShuffleRequest

Route: TypeAlias = tuple[int, ...]
"""The sites of a path in order; of one into storage, without the destination, and of one out of
it, without the source."""

# Relays that add more than this to the round trip may be used later than others, so that the time
# kept free for getting up to speed, which is that of the longest path, grows by 1.3 s at most.
MOST_DETOUR_MS = 150.0
# Relays with disk, times transfers, times slots of time: each is a variable and a row.
MOST_STOCKS = 100_000
ROUNDED_SHARE = 1e-6
"""Rounding of a solver, which justifies neither another second nor another VM."""
TOGETHER = 1e-3
"""Part of its window that a transfer may start later, to start with another."""
# Of a transfer's volume: less is the rounding of a sum.
NOTHING_LEFT, NOTHING_STORED = 1e-9, 1e-6


class Disk(NamedTuple):
    """The storage of a site, and the price of keeping a Gbit there for a second."""

    most_gbit: float
    usd_per_gbit_s: float


@dataclass(frozen=True)
class PendingTransfer:
    """A transfer that still has volume to send."""

    transfer: TimedTransfer
    left_gb: float
    # Whether it is part of a schedule already: it is decided before all others, and has begun to
    # get up to speed in time
    known: bool = False
    # Its volume stored at relays, by region
    stored_gb: Mapping[str, float] = field(default_factory=dict)
    # When its VMs began to start: None for now, minus infinity once it has sent
    starting_s: float | None = None
    past: tuple[Period, ...] = ()  # before now


def progress_of(
    existing: ScheduleInProgress | None, now_s: float
) -> list[PendingTransfer | TransferSchedule]:
    """Return what a schedule has left to send at a time if it was followed, and what has ended.

    In the schedule's order; a transfer given up partway has ended, and one that was refused before
    it sent anything is left out: it may be asked for again.

    Raises InputError if the time is before the one that the schedule was planned from.
    """
    if existing is None:
        return []
    if now_s < existing.now_s:
        problem = f"is before the schedule in progress, made at {existing.now_s:g} s"
        raise InputError("now", problem, value=now_s)
    found: list[PendingTransfer | TransferSchedule] = []
    for transfer in existing.transfers:
        past = tuple(
            replace(period, end_s=min(period.end_s, now_s))
            for period in transfer.periods
            if period.start_s < now_s
        )
        if transfer.verdict == "refused" and not past:
            continue
        moved_gb = defaultdict[str, float](float)
        for period in past:
            for region, gbit in period.moved_gbit(transfer.src, transfer.dst).items():
                moved_gb[region] += gbit / BITS_PER_BYTE
        volume_gb = transfer.volume_gb
        left_gb = volume_gb - moved_gb.pop(transfer.dst, 0.0)
        if transfer.verdict == "refused" or left_gb <= NOTHING_LEFT * volume_gb:
            ended = replace(transfer, periods=past, egress_usd=0.0, remedies=None, stored=())
            found.append(ended)
            continue
        asked = TimedTransfer(**TimedTransfer.figures_of(transfer))
        least_gb = NOTHING_STORED * volume_gb / BITS_PER_BYTE
        stored_gb = {region: gb for region, gb in moved_gb.items() if gb > least_gb}
        since_s = -inf if past else existing.now_s
        found.append(PendingTransfer(asked, left_gb, True, stored_gb, since_s, past))
    return found


@dataclass(frozen=True)
class Commodity:
    """A pending transfer among sites, with or without a deadline."""

    item: PendingTransfer  # what is left of it
    src: int  # its sites
    dst: int
    volume_gbit: float
    start_s: float  # when it can be up to speed
    # Slots in which it may send by its deadline, from first to last, both included. None if last is
    # before first, as it is without a deadline
    first: int
    last: int
    hops: np.ndarray  # sites that may relay it
    distant: np.ndarray  # those of them on paths that take longer to be up to speed
    later: int  # the first slot in which it may use distant relays
    direct: bool  # whether there is a direct link
    # Stored at relays at the first cut: volume by site, part of `volume_gbit`
    stored_gbit: Mapping[int, float]

    @property
    def transfer(self) -> TimedTransfer:
        """The transfer as it was asked for."""
        return self.item.transfer

    def delivers(self, route: Route) -> bool:
        """Return whether a route ends at the destination rather than in storage."""
        return route[-1] == self.dst

    def routes(self) -> list[Route]:
        """Return all paths: direct first."""
        direct = [(self.src, self.dst)] if self.direct else []
        return [*direct, *((self.src, hop, self.dst) for hop in self.hops.tolist())]


@dataclass(frozen=True)
class ScheduleProblem:
    """The figures of a schedule."""

    problem: ShuffleProblem
    resources: SiteResources  # at the rates that guarantees rest on
    cuts_s: Floats  # the last slot is beyond all deadlines, and long enough for any transfer alone
    commodities: tuple[Commodity, ...]  # all pending transfers, in the order given
    tariffs: LinkTariffs
    disks: Mapping[int, Disk]  # by site

    @property
    def timed(self) -> list[int]:
        """Numbers of the transfers that have a deadline."""
        every = enumerate(self.commodities)
        return [number for number, of in every if of.transfer.deadline_s is not None]


def schedule_problem(
    request: ScheduleRequest,
    problem: ShuffleProblem,
    pending: Sequence[PendingTransfer],
    now_s: float,
    unused: Collection[str] = (),
) -> ScheduleProblem:
    """Return the figures of a schedule for pending transfers from a time on.

    Raises InputError for tariffs that change too often, and disk that is not at a relay, is smaller
    than the volume stored there, or may be used by too many transfers; DataError if no path
    connects what is stored with its end.

    Parameters
    ----------
    problem : ShuffleProblem
        Of :func:`as_shuffle`, with the numbers of VMs that there may be.
    unused : collection of str
        Ids of tariffs to do without.
    """
    index = {region: position for position, region in enumerate(problem.regions)}
    disks = _disks(request, pending, index)
    resources = problem.low if request.rates == "low" else problem.resources
    relays_of, starts, laters, ends_s = [], [], [], {}
    for number, item in enumerate(pending):
        transfer = item.transfer
        relays = _relays(item, resources, problem, index)
        running_s = now_s if item.starting_s is None else item.starting_s
        running_s += problem.start_s(np.isin(problem.regions, (transfer.src, transfer.dst)))
        running_s = max(transfer.start_s, running_s)
        start_s, later_s = (max(now_s, running_s + s) for s in (relays.ramp_s, relays.longest_s))
        if transfer.deadline_s is not None:
            ends_s[number] = transfer.deadline_s
            if later_s <= start_s + TOGETHER * (transfer.deadline_s - start_s):
                start_s = later_s
        relays_of.append(relays)
        starts.append(start_s)
        laters.append(later_s)
    # What starts up to speed at nearly the same time does so at one: each time makes a slot.
    latest_s = inf
    for number in sorted(ends_s, key=lambda number: -starts[number]):
        room_s = 0.0 if pending[number].known else TOGETHER * (ends_s[number] - starts[number])
        if latest_s > starts[number] + room_s:
            latest_s = starts[number]
        starts[number] = latest_s
        laters[number] = max(laters[number], latest_s)
    tariffs = LinkTariffs(request.tariffs, problem.regions, problem.usd_per_gbit, unused)
    times = [now_s, *ends_s.values(), *(of[number] for number in ends_s for of in (starts, laters))]
    cuts = tariffs.cuts_s(time for time in times if time >= now_s)
    commodities, longest_s = [], 0.0
    for number, item in enumerate(pending):
        i, j = index[item.transfer.src], index[item.transfer.dst]
        of = starts[number], laters[number], ends_s.get(number, now_s)
        first, later, end = np.searchsorted(cuts, of).tolist()
        commodity = Commodity(
            item,
            i,
            j,
            item.left_gb * BITS_PER_BYTE,
            starts[number],
            first,
            end - 1,
            relays_of[number].hops,
            relays_of[number].distant,
            later,
            direct=bool(resources.rate_gbps[i, j] > 0),
            stored_gbit={index[r]: gb * BITS_PER_BYTE for r, gb in item.stored_gb.items()},
        )
        commodities.append(commodity)
        if number in ends_s:  # alone: direct if possible, else by its fastest relay
            routes = commodity.routes()[: 1 if commodity.direct else None]
            times_s = (_alone_s(resources, route, commodity.volume_gbit) for route in routes)
            longest_s = max(longest_s, min(times_s, default=0.0))
    cuts = np.append(cuts, cuts[-1] + 1.0 + 1.01 * longest_s)
    if len(disks) * len(ends_s) * len(cuts) > MOST_STOCKS:
        raise InputError(
            "disk_gb",
            f"is at {len(disks)} relays, for {len(ends_s)} transfers over {len(cuts) - 1} "
            f"slots of time, together more than {MOST_STOCKS:,}",
            remedy="Give fewer relays disk, or transfers with the same starts and deadlines.",
        )
    return ScheduleProblem(problem, resources, cuts, tuple(commodities), tariffs, disks)


def as_shuffle(
    request: ScheduleRequest, pending: Sequence[PendingTransfer], network: Network, prices: Prices
) -> ShuffleProblem:
    """Return the figures of all pending transfers, as if they were sent together.

    No path may connect the ends of some, see :func:`is_connected`.

    Raises InputError, DataError, InfeasibleError as for a shuffle: ends that are not in the
    network, or whose quotas leave no VM, or an unknown fee.
    """
    demands = defaultdict[tuple[str, str], float](float)
    for item in pending:
        demands[item.transfer.src, item.transfer.dst] += item.left_gb
    same = ("vms", "vms_in", "connections", "relays", "avoid", "vm_start_s", "vms_running")
    asked = ShuffleRequest(Demands(demands), **{name: getattr(request, name) for name in same})
    return shuffle_problem(asked, network, prices, needs_paths=False)


def with_vms_of_largest(
    request: ScheduleRequest,
    problem: ShuffleProblem,
    pending: Sequence[PendingTransfer],
    now_s: float,
) -> ShuffleProblem:
    """Return the same with the most VMs of each region that any transfer would take alone, direct.

    Those that the request states stay.
    """
    regions, most, found = problem.regions, problem.resources.vms, np.zeros(len(problem.regions))
    counts = [1]
    for item in pending:
        transfer = item.transfer
        ends = [regions.index(transfer.src), regions.index(transfer.dst)]
        link, links = tuple(ends), np.zeros_like(problem.rtt_ms)
        links[link] = item.left_gb * BITS_PER_BYTE
        lead_s = problem.start_s(links.sum(0) + links.sum(1)) + ramp_up_s(problem.rtt_ms[link])
        window_s = (transfer.deadline_s or inf) - max(now_s, transfer.start_s)
        alone, count = dict[str, float](), int(most.max())
        if problem.resources.rate_gbps[link]:
            of = request, problem, links, lead_s, DEFAULT_TIME_VALUE_USD_PER_H, window_s
            alone, count = fewest_vms(*of)
        counts.append(count)
        found[ends] = np.maximum(found[ends], [alone.get(regions[end], most[end]) for end in ends])
    vms = np.where(found > 0, found, np.minimum(most, max(counts)))
    stated = np.array([region in request.vms_in for region in regions])
    vms = np.where(stated, most, vms)
    return problem.with_vms(dict(zip(regions, vms.tolist(), strict=True)))


def _disks(
    request: ScheduleRequest, pending: Sequence[PendingTransfer], index: Mapping[str, int]
) -> dict[int, Disk]:
    """Return the disk of each site, after checking that it holds the volume stored there."""
    lies_gb = defaultdict[str, float](float)
    for item in pending:
        for region, gb in item.stored_gb.items():
            lies_gb[region] += gb
    for region, gb in lies_gb.items():
        disk_gb = request.disk_gb.get(region)
        if gb > (disk_gb or 0.0) * (1 + ROUNDED_SHARE):
            problem = f"is less than the {gb:.6g} GB that the schedule in progress has there"
            remedy = "Give all disk again on which something lies."
            raise InputError(f"disk_gb {region}", problem, value=disk_gb, remedy=remedy)
    found = {}
    for region, gb in request.disk_gb.items():
        if region in request.forbidden or region not in index:
            remedy = "Leave it out, or change the rules (`avoid`, `allow`)."
            problem = "is at a region that may not relay"
            raise InputError(f"disk_gb {region}", problem, remedy=remedy)
        most_gbit = max(gb, lies_gb.get(region, 0.0)) * BITS_PER_BYTE
        usd_per_gbit_s = request.disk_price(region) / BITS_PER_BYTE / MONTH_S
        found[index[region]] = Disk(most_gbit, usd_per_gbit_s)
    return found


def is_connected(problem: ShuffleProblem, request: ScheduleRequest, of: TimedTransfer) -> bool:
    """Return whether something leads from a transfer's source to its destination."""
    resources = problem.low if request.rates == "low" else problem.resources
    return resources.connects(problem.regions.index(of.src), problem.regions.index(of.dst))


class _Relays(NamedTuple):
    """The relays of a transfer, those of them that are distant, and times to get up to speed.

    `ramp_s` is that of the longest path without a distant relay, `longest_s` that of any.
    """

    hops: np.ndarray
    distant: np.ndarray
    ramp_s: float
    longest_s: float


def _relays(
    item: PendingTransfer,
    resources: SiteResources,
    problem: ShuffleProblem,
    index: Mapping[str, int],
) -> _Relays:
    """Return the relays of a transfer, which has a path."""
    i, j = index[item.transfer.src], index[item.transfer.dst]
    stored, rtt_ms = [index[region] for region in item.stored_gb], problem.rtt_ms
    hops, direct = resources.hops(i, j), resources.rate_gbps[i, j] > 0
    if stuck := sorted(set(stored) - set(hops.tolist())):
        raise DataError(
            f"What lies at {problem.regions[stuck[0]]} of {item.transfer.id} can't be sent to "
            f"{item.transfer.dst}: nothing is known of that link any more. Measure it."
        )
    around = rtt_ms[i, hops] + rtt_ms[hops, j]
    shortest = float(rtt_ms[i, j] if direct else around.min(initial=np.inf))
    far = (around > shortest + MOST_DETOUR_MS) & ~np.isin(hops, stored)
    ramp_s, longest_s = (
        ramp_up_s(max(shortest, float(of.max(initial=0.0)))) for of in (around[~far], around)
    )
    return _Relays(hops, hops[far], ramp_s, longest_s)


def _alone_s(resources: SiteResources, route: Route, volume_gbit: float) -> float:
    loads = resources.route_rows(route).items()
    return volume_gbit * max([load / float(resources.row_vms[row]) for row, load in loads])
