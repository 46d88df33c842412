"""From transfers with schedule_problem on a network to the figures of the time-expanded program."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from planner.fields.demands import Demands
from planner.model.errors import DataError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats, SiteResources
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE
from planner.schedule.request import ScheduleRequest
from planner.schedule.slot_program import Commodity
from planner.schedule.tariffs import LinkTariffs
from planner.schedule.timed_transfer import TimedTransfer
from planner.shuffle.problem import ShuffleProblem, shuffle_problem
from planner.shuffle.request import ShuffleRequest

# Relays that add more than this to the round trip are left out, so that the time kept free for
# getting up to speed, which is that of the longest path, grows by 1.3 s at most.
MOST_DETOUR_MS = 150.0


@dataclass(frozen=True)
class Pending:
    """A transfer of which something is still to be sent.

    Attributes
    ----------
    left_gb : float
    known : bool
        Whether it is part of a schedule already: it is decided before all others, and has begun to
        get up to speed in time.
    """

    transfer: TimedTransfer
    left_gb: float
    known: bool = False


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
    """

    problem: ShuffleProblem
    resources: SiteResources
    cuts_s: Floats
    commodities: tuple[Commodity, ...]
    starts_s: tuple[float, ...]
    tariffs: LinkTariffs


def schedule_problem(
    request: ScheduleRequest,
    pending: Sequence[Pending],
    now_s: float,
    network: Network,
    prices: Prices,
    unused: Collection[str] = (),
) -> ScheduleProblem:
    """Return the figures of a schedule of what is pending from a time on.

    Parameters
    ----------
    unused : collection of str
        Ids of tariffs to do without.

    Raises
    ------
    InputError, DataError
        As for a shuffle: ends that are not in the network, or that nothing leads between. Tariffs
        that change too often.
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
    resources = problem.low if request.rates == "low" else problem.resources
    index = {region: position for position, region in enumerate(problem.regions)}
    starts, hops_of = [], []
    for item in pending:
        i, j = index[item.transfer.src], index[item.transfer.dst]
        hops, ramp_s = _hops(resources, problem.rtt_ms, i, j)
        if not len(hops) and resources.rate_gbps[i, j] <= 0:
            raise DataError(
                f"At these rates nothing leads from {item.transfer.src} to {item.transfer.dst}. "
                "Measure or import one of its links, or plan with the expected rates."
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
        )
        commodities.append(commodity)
        longest_s = max(longest_s, _alone_s(resources, commodity))
    cuts = np.append(cuts, cuts[-1] + 1.0 + 1.01 * longest_s)
    return ScheduleProblem(problem, resources, cuts, tuple(commodities), tuple(starts), tariffs)


def _hops(resources: SiteResources, rtt_ms: Floats, i: int, j: int) -> tuple[np.ndarray, float]:
    """Return the relays of a pair, and the time that its longest path takes to be up to speed."""
    rate = resources.rate_gbps
    may = resources.may_relay & (rate[i] > 0) & (rate[:, j] > 0)
    may[[i, j]] = False
    hops = np.nonzero(may)[0]
    around = rtt_ms[i, hops] + rtt_ms[hops, j]
    shortest = float(rtt_ms[i, j]) if rate[i, j] > 0 else float(around.min(initial=np.inf))
    kept = around <= shortest + MOST_DETOUR_MS
    longest = max(shortest, float(around[kept].max(initial=0.0)))
    return hops[kept], ramp_up_s(longest) if np.isfinite(longest) else 0.0


def _alone_s(resources: SiteResources, commodity: Commodity) -> float:
    """Return how long a transfer takes alone, direct if it can, else over its fastest relay."""
    i, j = commodity.src, commodity.dst
    times = []
    for hop in [j] if commodity.direct else commodity.hops.tolist():
        links = np.zeros_like(resources.rate_gbps)
        links[i, hop] = commodity.volume_gbit
        if hop != j:
            links[hop, j] = commodity.volume_gbit
        times.append(resources.time_s(links))
    return min(times, default=0.0)
