"""Candidates in the order of the objective, with how sure their order is.

A candidate has as many VMs as a plan would take, there and in each of the regions of the use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

import numpy as np

from planner.comparison.plan import BestOfProvider, Ranked, Ranking
from planner.comparison.request import ComparisonRequest
from planner.model.answer import FeeLine, identified
from planner.model.errors import DataError
from planner.model.link_array import KINDS
from planner.model.network import Network, Snapshot
from planner.model.pricing import Prices, provider_of
from planner.model.shared_resources import Floats
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, S_PER_H, duration_text, usd_text
from planner.model.vm_limits import row_place, vms_by_region
from planner.shared_vms.candidates import fewest_vms
from planner.shared_vms.connections import Streams
from planner.shared_vms.drawn_times import drawn_links
from planner.shared_vms.problem import shared_figures


class EvaluatedCandidate(NamedTuple):
    """A candidate, evaluated."""

    ranked: Ranked  # as in the answer, except for its rank
    value: float  # expected value of the objective; the least is the best
    drawn: Floats | None
    """Length draws: the same in each draw of the unknowns; None where the objective is about the
    bounds."""
    fees: tuple[FeeLine, ...]  # those besides egress, which its cost contains


def evaluated(
    request: ComparisonRequest, network: Network, prices: Prices, region: str
) -> EvaluatedCandidate | None:
    """Evaluate one candidate; the volume for its own region need not be sent.

    None where a link or its price is not known, or where there is nothing to send.
    """
    regions = (region, *(other for other in request.regions if other != region))
    n, towards = len(regions), request.direction == "to"
    ends = [(0, at) if towards else (at, 0) for at in range(1, n)]
    names = [(regions[src], regions[dst]) for src, dst in ends]
    try:
        links = [network.link(*pair) for pair in names]
        figures = shared_figures(
            request, network, prices, regions, may_relay=np.zeros(n, dtype=bool), needed=ends
        )
    except DataError:
        return None
    if not min((link.rate_gbps(request.connections) for link in links), default=0.0) > 0:
        return None
    gbit, rtts = np.zeros((n, n)), [link.rtt_ms for link in links]
    for pair in ends:
        gbit[pair] = request.volume_gb * BITS_PER_BYTE
    rtts_ms = np.array([rtt.expected for rtt in rtts])
    ramp_s, start_s = ramp_up_s(float(rtts_ms.max())), figures.start_s(np.ones(n))
    lead_s, hour_usd = ramp_s + start_s, request.hour_usd
    figures = figures.with_vms(fewest_vms(request, figures, gbit, lead_s, hour_usd)[0])
    resources, vms = figures.resources, figures.resources.vms
    time_s = Streams.of(gbit).time_s(resources, request.connections, vms, resources.time_s(gbit))
    duration_s, cost = time_s + lead_s, figures.cost(gbit, vms, time_s + ramp_s)
    fastest_s, slowest_s = figures.range_s(gbit, vms, duration_s, lead_s)

    def worth(busy_s: Floats) -> Floats:
        """Value times in USD with what they cost; in s where time alone counts."""
        if hour_usd == inf:
            return busy_s + start_s
        spent_usd = cost.egress + figures.vm_usd(vms, busy_s)
        return np.asarray(spent_usd + hour_usd * (busy_s + start_s) / S_PER_H)

    value, drawn = float(worth(np.array(time_s + ramp_s))), None
    if request.objective == "stability":
        value = slowest_s / duration_s
    elif request.objective == "latency":
        value, drawn = float(rtts_ms.mean()), (drawn_links(names, rtts) * rtts_ms).mean(axis=1)
    else:
        times = figures.drawn_times(network, request.connections)
        drawn = worth(times.times_s(gbit, vms) + ramp_s)
    moved_gb = request.volume_gb * len(links)
    row = resources.row(int(figures.levels_s(gbit, vms).argmax()))
    ranked = Ranked(
        rank=0,
        region=region,
        vm_type=network.sites[region].vm_type,
        duration_s=duration_s,
        duration_s_low=fastest_s,
        duration_s_high=slowest_s,
        throughput_gbps=moved_gb * BITS_PER_BYTE / time_s,
        cost_usd=cost,
        gb_per_usd=moved_gb / cost.total if cost.total else None,
        rtt_ms=float(rtts_ms.mean()),
        worst_rtt_ms=float(rtts_ms.max()),
        limit=f"{row.kind} {'' if row.link else 'at '}{row_place(row, regions)}",
        source=max((link.aggregate_gbps.source for link in links), key=KINDS.index),
        rank_low=None,
        rank_high=None,
        probability=None,
        vm_start_s=start_s,
        vms=vms_by_region(regions, vms),
    )
    return EvaluatedCandidate(ranked, value, drawn, figures.fee_lines(gbit, vms, duration_s))


LEAST_SHARE = 0.05
"""Share of draws outside a range of ranks, on either side."""
CLOSE = 0.5
"""A candidate that is the best in a smaller share of draws is not sure."""


def recommend_candidates(
    request: ComparisonRequest,
    snapshot: Snapshot,
    candidates: Iterable[tuple[str, Network, Prices]],
    *,
    notes: tuple[str, ...] = (),
) -> Ranking:
    """Rank candidates, the best first; a DataError if none can be evaluated.

    Each is a region, a network whose site there has the candidate's VM type, and prices; the answer
    rests on the snapshot. Notes say how the request's names were understood, and go first among the
    warnings.
    """
    found, unknown = [], []
    for region, network, prices in candidates:
        if made := evaluated(request, network, prices, region):
            found.append(made)
        elif (region,) != request.regions:
            unknown.append(region)
    if not found:
        raise DataError(
            "No candidate has a link to all the regions, at a price that is known. Name other "
            "candidates, measure the links, or import measurements."
        )
    found.sort(
        key=lambda of: (of.value, of.ranked.cost_usd.total, of.ranked.region, of.ranked.vm_type)
    )
    ranks = _drawn_ranks(found)
    ranked = [_placed(one.ranked, place, ranks) for place, one in enumerate(found)]
    best: dict[str, BestOfProvider] = {}
    for one in ranked:
        of = provider_of(one.region)
        best.setdefault(of, BestOfProvider(of, one.region, one.vm_type, one.rank))
    warnings = list(notes)
    if unknown:
        few = ", ".join(dict.fromkeys(unknown[:3]))
        few += f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        warnings.append(f"Left out, because a link or its price is not known: {few}.")
    return identified(
        Ranking(
            plan_id="",
            snapshot=snapshot,
            request=request.described(),
            reason=_reason(request, ranked),
            fees=found[0].fees,
            compared=len(ranked),
            candidates=tuple(ranked[: request.most]),
            providers=tuple(best.values()),
            warnings=tuple(warnings),
        )
    )


def _drawn_ranks(found: Sequence[EvaluatedCandidate]) -> Floats | None:
    """Return each candidate's rank in each draw, shape (draws, candidates); ties share one."""
    drawn = [one.drawn for one in found if one.drawn is not None]
    if len(drawn) < len(found):
        return None
    return np.array([np.searchsorted(np.sort(row), row) + 1.0 for row in np.array(drawn).T])


def _placed(one: Ranked, place: int, ranks: Floats | None) -> Ranked:
    """Return a candidate with its rank, its range and its probability of being the best."""
    found = replace(one, rank=place + 1)
    if ranks is None:
        return found
    own, best = np.sort(ranks[:, place]), ranks == 1
    edge = round(LEAST_SHARE * len(own))
    probability = float((best[:, place] / best.sum(axis=1)).mean())
    low, high = int(own[edge]), int(own[-1 - edge])
    return replace(found, rank_low=low, rank_high=high, probability=probability)


def _reason(request: ComparisonRequest, ranked: Sequence[Ranked]) -> str:
    best = ranked[0]
    what = {
        "value": f"costs least, at {usd_text(request.time_value_usd_per_h)} for an hour",
        "time": "is done first",
        "cost": "costs least",
        "latency": "has the least mean round-trip time",
        "stability": "loses least time if rates are as low as their bounds",
    }[request.objective]
    figure = {
        "latency": f"{best.rtt_ms:.0f} ms",
        "stability": f"{best.duration_s_high / best.duration_s - 1:.0%}",
    }.get(request.objective, f"{duration_text(best.duration_s)}, {usd_text(best.cost_usd.total)}")
    said = f"{_named(best)} {what}: {figure}."
    if len(ranked) == 1:
        return f"{said} It is the only candidate."
    second = ranked[1]
    if best.probability is None:
        return f"{said} {_named(second)} is next."
    sure = f"It is the best in {best.probability:.0%} of what the estimates allow"
    if best.probability < CLOSE:
        sure += ", so others may be as good: measure before you settle"
    return f"{said} {sure}. {_named(second)} is next, the best in {second.probability:.0%}."


def _named(one: Ranked) -> str:
    return f"{one.region} with {one.vm_type}" if one.vm_type else one.region
