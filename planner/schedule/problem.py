"""The volumes still to be sent, and the figures of the program over time slots."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from planner.fields.demands import Demands
from planner.model.errors import DataError, InputError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats, SiteResources
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE
from planner.schedule.plan import Period, SchedulePlan, TransferSchedule
from planner.schedule.program import Commodity, Disk
from planner.schedule.request import ScheduleRequest, TimedTransfer
from planner.schedule.tariffs import MONTH_S, LinkTariffs
from planner.schedule.usage import NOTHING_STORED
from planner.shuffle.problem import ShuffleProblem, shuffle_problem
from planner.shuffle.request import ShuffleRequest

# Relays that add more than this to the round trip are left out, so that the time kept free for
# getting up to speed, which is that of the longest path, grows by 1.3 s at most.
MOST_DETOUR_MS = 150.0
# Relays with disk, times transfers, times slots of time: each is a variable and a row.
MOST_STOCKS = 100_000
ROUNDING = 1e-6
# Of a transfer's volume: less is the rounding of a sum.
NOTHING_LEFT = 1e-9


@dataclass(frozen=True)
class PendingTransfer:
    """A transfer that still has volume to send.

    Attributes
    ----------
    left_gb : float
    known : bool
        Whether it is part of a schedule already: it is decided before all others, and has begun to
        get up to speed in time.
    stored_gb : mapping
        Its volume stored at relays, by region.
    """

    transfer: TimedTransfer
    left_gb: float
    known: bool = False
    stored_gb: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ScheduleProgress:
    """The progress of a schedule.

    Attributes
    ----------
    order : tuple of TransferSchedule
        All transfers of the schedule, unchanged.
    past : dict
        Id to the periods before now.
    pending : tuple of PendingTransfer
    done : tuple of TransferSchedule
        Transfers that have ended, or were given up partway.
    """

    order: tuple[TransferSchedule, ...]
    past: dict[str, tuple[Period, ...]]
    pending: tuple[PendingTransfer, ...]
    done: tuple[TransferSchedule, ...]

    @property
    def ids(self) -> frozenset[str]:
        """Ids that new transfers can't have; one that was refused may be asked for again."""
        return frozenset(transfer.id for transfer in self.order)

    @classmethod
    def of(cls, existing: SchedulePlan | None, now_s: float) -> ScheduleProgress:
        """Return the progress of a schedule at a time, assuming that it was followed.

        Raises
        ------
        InputError
            If the time is before the one that the schedule was planned from.
        """
        if existing is None:
            return cls((), {}, (), ())
        if now_s < existing.now_s:
            raise InputError(
                "now",
                f"is before the schedule in progress, made at {existing.now_s:g} s",
                value=now_s,
            )
        past, pending, done, order = {}, [], [], []
        for transfer in existing.transfers:
            before = tuple(
                replace(period, end_s=min(period.end_s, now_s))
                for period in transfer.periods
                if period.start_s < now_s
            )
            if transfer.verdict == "refused" and not before:
                continue
            order.append(transfer)
            past[transfer.id] = before
            moved_gbit = {transfer.dst: 0.0}
            for period in before:
                for region, gbit in period.moved_gbit(transfer.src, transfer.dst).items():
                    moved_gbit[region] = moved_gbit.get(region, 0.0) + gbit
            left_gb = transfer.volume_gb - moved_gbit.pop(transfer.dst) / BITS_PER_BYTE
            if transfer.verdict == "refused" or left_gb <= NOTHING_LEFT * transfer.volume_gb:
                done.append(replace(transfer, periods=before, egress_usd=0.0, stored=()))
            else:
                asked = TimedTransfer(**TimedTransfer.figures_of(transfer))
                stored_gb = {
                    region: gbit / BITS_PER_BYTE
                    for region, gbit in moved_gbit.items()
                    if gbit > NOTHING_STORED * transfer.volume_gb
                }
                pending.append(PendingTransfer(asked, left_gb, known=True, stored_gb=stored_gb))
        return cls(tuple(order), past, tuple(pending), tuple(done))


@dataclass(frozen=True)
class ScheduleProblem:
    """The figures of a schedule.

    Attributes
    ----------
    problem : ShuffleProblem
    resources : SiteResources
        At the rates that guarantees rest on.
    cuts_s : array
        The last slot is beyond all deadlines, and long enough for any transfer alone.
    commodities : tuple of Commodity
        Of the transfers that have a deadline, in the order given.
    starts_s : tuple of float
        When each pending transfer can be up to speed.
    tariffs : LinkTariffs
    disks : mapping
        By site.
    """

    problem: ShuffleProblem
    resources: SiteResources
    cuts_s: Floats
    commodities: tuple[Commodity, ...]
    starts_s: tuple[float, ...]
    tariffs: LinkTariffs
    disks: Mapping[int, Disk]


def schedule_problem(
    request: ScheduleRequest,
    pending: Sequence[PendingTransfer],
    now_s: float,
    network: Network,
    prices: Prices,
    unused: Collection[str] = (),
) -> ScheduleProblem:
    """Return the figures of a schedule for pending transfers from a time on.

    Parameters
    ----------
    unused : collection of str
        Ids of tariffs to do without.

    Raises
    ------
    InputError, DataError
        As for a shuffle: ends that are not in the network, or that no path connects. Tariffs that
        change too often. Disk that is not at a relay, is smaller than the volume stored there, or
        may be used by too many transfers.
    """
    demands: dict[tuple[str, str], float] = {}
    for item in pending:
        pair = item.transfer.src, item.transfer.dst
        demands[pair] = demands.get(pair, 0.0) + item.left_gb
    problem = shuffle_problem(
        ShuffleRequest(
            Demands(demands),
            vms=request.vms,
            vms_in=request.vms_in,
            connections=request.connections,
            relays=request.relays,
            avoid=request.avoid,
            vm_start_s=request.vm_start_s,
        ),
        network,
        prices,
    )
    index = {region: position for position, region in enumerate(problem.regions)}
    disks = _disks(request, pending, index)
    resources = problem.low if request.rates == "low" else problem.resources
    starts, hops_of = [], []
    for item in pending:
        i, j = index[item.transfer.src], index[item.transfer.dst]
        stored = {index[region] for region in item.stored_gb}
        hops, ramp_s = _hops(resources, problem.rtt_ms, i, j, stored)
        if not len(hops) and resources.rate_gbps[i, j] <= 0:
            raise DataError(
                f"At these rates nothing leads from {item.transfer.src} to {item.transfer.dst}. "
                "Measure or import one of its links, or plan with the expected rates."
            )
        if stuck := sorted(stored - set(hops.tolist())):
            raise DataError(
                f"What lies at {problem.regions[stuck[0]]} of {item.transfer.id} can't be sent to "
                f"{item.transfer.dst}: nothing is known of that link any more. Measure it."
            )
        hops_of.append(hops)
        begin_s = item.transfer.start_s if item.known else max(now_s, item.transfer.start_s)
        starts.append(max(now_s, begin_s + ramp_s))
    timed = [number for number, item in enumerate(pending) if item.transfer.deadline_s is not None]
    ends = [item.transfer.deadline_s for item in pending if item.transfer.deadline_s is not None]
    tariffs = LinkTariffs(request.tariffs, problem.regions, problem.usd_per_gbit, unused)
    times = [now_s, *(starts[number] for number in timed), *ends]
    cuts = tariffs.cuts_s(time for time in times if time >= now_s)
    longest_s = 0.0
    commodities = []
    for number in timed:
        item = pending[number]
        assert item.transfer.deadline_s is not None
        i, j = index[item.transfer.src], index[item.transfer.dst]
        commodity = Commodity(
            i,
            j,
            item.left_gb * BITS_PER_BYTE,
            int(np.searchsorted(cuts, starts[number])),
            int(np.searchsorted(cuts, item.transfer.deadline_s)) - 1,
            hops_of[number],
            bool(resources.rate_gbps[i, j] > 0),
            tuple((index[r], gb * BITS_PER_BYTE) for r, gb in item.stored_gb.items()),
        )
        commodities.append(commodity)
        longest_s = max(longest_s, _alone_s(resources, commodity))
    cuts = np.append(cuts, cuts[-1] + 1.0 + 1.01 * longest_s)
    if len(disks) * len(commodities) * len(cuts) > MOST_STOCKS:
        raise InputError(
            "disk_gb",
            f"is at {len(disks)} relays, for {len(commodities)} transfers over {len(cuts) - 1} "
            f"slots of time, together more than {MOST_STOCKS:,}",
            remedy="Give fewer relays disk, or transfers with the same starts and deadlines.",
        )
    return ScheduleProblem(
        problem, resources, cuts, tuple(commodities), tuple(starts), tariffs, disks
    )


def _disks(
    request: ScheduleRequest, pending: Sequence[PendingTransfer], index: Mapping[str, int]
) -> dict[int, Disk]:
    """Return the disk of each site, after checking that it holds the volume stored there."""
    lies_gb: dict[str, float] = {}
    for item in pending:
        for region, gb in item.stored_gb.items():
            lies_gb[region] = lies_gb.get(region, 0.0) + gb
    for region, gb in lies_gb.items():
        if gb > request.disk_gb.get(region, 0.0) * (1 + ROUNDING):
            raise InputError(
                f"disk_gb {region}",
                f"is less than the {gb:.6g} GB that the schedule in progress has there",
                value=request.disk_gb.get(region),
                remedy="Give all disk again on which something lies.",
            )
    for region in request.disk_gb:
        if region in request.forbidden or region not in index:
            raise InputError(
                f"disk_gb {region}",
                "is at a region that may not relay",
                remedy="Leave it out, or change the rules (`avoid`, `allow`).",
            )
    return {
        index[region]: Disk(
            max(gb, lies_gb.get(region, 0.0)) * BITS_PER_BYTE,
            request.disk_price(region) / BITS_PER_BYTE / MONTH_S,
        )
        for region, gb in request.disk_gb.items()
    }


def _hops(
    resources: SiteResources, rtt_ms: Floats, i: int, j: int, stored: Collection[int]
) -> tuple[np.ndarray, float]:
    """Return the relays of a pair, and the time that its longest path takes to be up to speed.

    Relays that already store some of its volume are included.
    """
    rate = resources.rate_gbps
    may = resources.may_relay & (rate[i] > 0) & (rate[:, j] > 0)
    may[[i, j]] = False
    hops = np.nonzero(may)[0]
    around = rtt_ms[i, hops] + rtt_ms[hops, j]
    shortest = float(rtt_ms[i, j]) if rate[i, j] > 0 else float(around.min(initial=np.inf))
    kept = (around <= shortest + MOST_DETOUR_MS) | np.isin(hops, list(stored))
    longest = max(shortest, float(around[kept].max(initial=0.0)))
    return hops[kept], ramp_up_s(longest) if np.isfinite(longest) else 0.0


def _alone_s(resources: SiteResources, commodity: Commodity) -> float:
    """Return the duration of a transfer alone: direct if possible, else by its fastest relay."""
    i, j = commodity.src, commodity.dst
    times = []
    for hop in [j] if commodity.direct else commodity.hops.tolist():
        links = np.zeros_like(resources.rate_gbps)
        links[i, hop] = commodity.volume_gbit
        if hop != j:
            links[hop, j] = commodity.volume_gbit
        times.append(resources.time_s(links))
    return min(times, default=0.0)
