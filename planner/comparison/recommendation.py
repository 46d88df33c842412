"""Candidates in the order of the objective, with how sure their order is.

A candidate is one VM, with one in each of the regions of the use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from operator import mul
from typing import NamedTuple

import numpy as np

from planner.comparison.plan import BestOfProvider, Ranked, Ranking
from planner.comparison.request import ComparisonRequest
from planner.model.answer import Cost, FeeLine, identified
from planner.model.errors import DataError
from planner.model.estimate import Kind
from planner.model.link import Link
from planner.model.network import Network, Snapshot
from planner.model.pricing import Prices, hourly_usd, links_gbps, provider_of
from planner.model.shared_resources import Floats, Row
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, S_PER_H, duration_text, usd_text
from planner.shared_vms.connections import Streams
from planner.shared_vms.drawn_times import DrawnTimes, drawn_links
from planner.shared_vms.fees import LinkFees
from planner.shared_vms.problem import resources_at_bounds

_SURENESS: tuple[Kind, ...] = ("measured", "inferred", "baseline")


class EvaluatedCandidate(NamedTuple):
    """A candidate, evaluated.

    Attributes
    ----------
    ranked : Ranked
        As in the answer, except for its rank.
    value : float
        Expected value of the objective; the least is the best.
    drawn : array, length draws, or None
        The same in each draw of the unknowns; None where the objective is about the bounds.
    fees : tuple of FeeLine
        Those besides egress, which its cost contains.
    """

    ranked: Ranked
    value: float
    drawn: Floats | None
    fees: tuple[FeeLine, ...]


class _Star:
    """The links between a candidate and the regions of the use, with what they carry.

    Raises
    ------
    DataError
        If a link or its price is not known.
    """

    def __init__(
        self, request: ComparisonRequest, network: Network, prices: Prices, region: str
    ) -> None:
        self.request, self.network = request, network
        self.regions = (region, *(other for other in request.regions if other != region))
        n, towards = len(self.regions), request.direction == "to"
        self.ends = [(0, at) if towards else (at, 0) for at in range(1, n)]
        self.links: dict[tuple[int, int], Link] = {}
        fees = LinkFees(prices, self.regions)
        for src, dst in self.ends:
            self.links[src, dst] = network.link(self.regions[src], self.regions[dst])
            fees.add(src, dst)
        self.gbit = np.zeros((n, n))
        for pair in self.ends:
            self.gbit[pair] = request.volume_gb * BITS_PER_BYTE
        self.egress_usd = fees.usd(self.gbit) if self.links else 0.0
        fees_usd_per_h = hourly_usd(prices, self.regions)
        self.vm_usd_per_h = sum(map(prices.vm_usd_per_h, self.regions)) + fees_usd_per_h
        starts_s = [request.starts_s(network.sites[at]) for at in self.regions]
        self.vm_start_s = max(starts_s)
        vms_usd_per_h = map(prices.vm_usd_per_h, self.regions)
        self.started_usd = sum(map(mul, vms_usd_per_h, starts_s)) / S_PER_H
        self.started_usd += fees_usd_per_h * self.vm_start_s / S_PER_H
        self.fees = fees

    @property
    def carries(self) -> bool:
        """Return whether there is something to send, and all links can carry it."""
        count = self.request.connections
        return min((link.rate_gbps(count) for link in self.links.values()), default=0.0) > 0

    def cost(self, duration_s: float) -> Cost:
        """Return the cost of a duration: fees, and a VM in each region."""
        hours = (duration_s - self.vm_start_s) / S_PER_H
        return Cost.of(self.egress_usd, self.started_usd + self.vm_usd_per_h * hours)

    def worth(self, duration_s: float) -> float:
        """Return cost plus time in USD; the duration itself where time alone counts."""
        if self.request.hour_usd == inf:
            return duration_s
        return self.cost(duration_s).total + self.request.hour_usd * duration_s / S_PER_H

    def rtts_ms(self) -> tuple[Floats, Floats]:
        """Return the expected round-trip time of each link, and that in each draw."""
        rtts = [link.rtt_ms for link in self.links.values()]
        expected_ms = np.array([rtt.expected for rtt in rtts])
        names = [(self.regions[src], self.regions[dst]) for src, dst in self.ends]
        return expected_ms, drawn_links(names, rtts) * expected_ms


def evaluated(
    request: ComparisonRequest, network: Network, prices: Prices, region: str
) -> EvaluatedCandidate | None:
    """Evaluate one candidate; the volume for its own region need not be sent.

    None where a link or its price is not known, or where there is nothing to send.
    """
    try:
        star = _Star(request, network, prices, region)
    except DataError:
        return None
    if not star.carries:
        return None
    regions, gbit, vms = star.regions, star.gbit, np.ones(len(star.regions))
    no_relays = np.zeros(len(regions), dtype=bool)
    sites = network, regions, star.links, vms, no_relays, request.connections
    at = resources_at_bounds(*sites, link_gbps=links_gbps(prices, regions))
    expected, low, high = at["expected"], at["low"], at["high"]
    time_s = Streams.of(gbit).time_s(expected, request.connections, vms, expected.time_s(gbit))
    fast_s, slow_s = expected.bounds_s(gbit, vms, low, high)
    rtts_ms, drawn_rtts_ms = star.rtts_ms()
    lead_s = star.vm_start_s + ramp_up_s(float(rtts_ms.max()))
    duration_s, slowest_s = time_s + lead_s, max(slow_s, time_s) + lead_s
    value, drawn = star.worth(duration_s), None
    if request.objective == "stability":
        value = slowest_s / duration_s
    elif request.objective == "latency":
        value, drawn = float(rtts_ms.mean()), drawn_rtts_ms.mean(axis=1)
    else:
        times = DrawnTimes(network, regions, expected, low, high, request.connections)
        drawn = np.array([star.worth(s + lead_s) for s in times.times_s(gbit, vms).tolist()])
    moved_gb, cost = request.volume_gb * len(star.links), star.cost(duration_s)
    ranked = Ranked(
        0,
        region,
        network.sites[region].vm_type,
        duration_s,
        min(fast_s, time_s) + lead_s,
        slowest_s,
        moved_gb * BITS_PER_BYTE / time_s,
        cost,
        moved_gb / cost.total if cost.total else None,
        float(rtts_ms.mean()),
        float(rtts_ms.max()),
        _limit(expected.row(int(expected.loads(gbit).argmax())), regions),
        max((link.aggregate_gbps.source for link in star.links.values()), key=_SURENESS.index),
        None,
        None,
        None,
        star.vm_start_s,
    )
    fees = star.fees.lines(gbit, vms * duration_s / S_PER_H)
    return EvaluatedCandidate(ranked, value, drawn, fees)


def _limit(row: Row, regions: tuple[str, ...]) -> str:
    if row.link:
        return f"path {regions[row.link[0]]} -> {regions[row.link[1]]}"
    return f"{row.kind} at {regions[row.site]}"


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
    """Rank candidates, the best first.

    Parameters
    ----------
    request : ComparisonRequest
    snapshot : Snapshot
        The data that the answer rests on.
    candidates : iterable of (region, network, prices)
        A region, and a network whose site there has the candidate's VM type.
    notes : tuple of str
        How the request's names were understood; goes first among the warnings.

    Raises
    ------
    DataError
        If no candidate can be evaluated.
    """
    found, unknown = [], []
    for region, network, prices in candidates:
        one = evaluated(request, network, prices, region)
        if one:
            found.append(one)
        elif (region,) != request.regions:
            unknown.append(region)
    if not found:
        raise DataError(
            "No candidate has a link to all the regions, at a price that is known. Name other "
            "candidates, measure the links, or import measurements."
        )
    found.sort(
        key=lambda one: (
            one.value,
            one.ranked.cost_usd.total,
            one.ranked.region,
            one.ranked.vm_type,
        )
    )
    ranks = _drawn_ranks(found)
    ranked = [_placed(one.ranked, place, ranks) for place, one in enumerate(found)]
    warnings = list(notes)
    if unknown:
        few = ", ".join(dict.fromkeys(unknown[:3]))
        warnings.append(
            f"Left out, because a link or its price is not known: {few}"
            f"{f' and {len(unknown) - 3} more' if len(unknown) > 3 else ''}."
        )
    return identified(
        Ranking(
            plan_id="",
            snapshot=snapshot,
            request=request.described(),
            reason=_reason(request, ranked),
            fees=found[0].fees,
            compared=len(ranked),
            candidates=tuple(ranked[: request.most]),
            providers=_providers(ranked),
            warnings=tuple(warnings),
        )
    )


def _drawn_ranks(found: Sequence[EvaluatedCandidate]) -> Floats | None:
    """Return each candidate's rank in each draw, shape (draws, candidates); ties share one."""
    drawn = [one.drawn for one in found if one.drawn is not None]
    if len(drawn) < len(found):
        return None
    values = np.array(drawn).T
    order = values.argsort(axis=1, kind="stable")
    in_order = np.take_along_axis(values, order, axis=1)
    # Tied candidates get the rank of the first.
    new = np.ones_like(in_order, dtype=bool)
    new[:, 1:] = in_order[:, 1:] > in_order[:, :-1]
    places = np.maximum.accumulate(np.where(new, np.arange(len(found)), 0), axis=1) + 1.0
    ranks = np.empty_like(values)
    np.put_along_axis(ranks, order, places, axis=1)
    return ranks


def _placed(one: Ranked, place: int, ranks: Floats | None) -> Ranked:
    """Return a candidate with its rank, its range and its probability of being the best."""
    if ranks is None:
        return replace(one, rank=place + 1)
    own = np.sort(ranks[:, place])
    edge = round(LEAST_SHARE * len(own))
    best = ranks == 1
    return replace(
        one,
        rank=place + 1,
        rank_low=int(own[edge]),
        rank_high=int(own[-1 - edge]),
        probability=float((best[:, place] / best.sum(axis=1)).mean()),
    )


def _providers(ranked: Sequence[Ranked]) -> tuple[BestOfProvider, ...]:
    best: dict[str, Ranked] = {}
    for one in ranked:
        best.setdefault(provider_of(one.region), one)
    return tuple(
        BestOfProvider(provider, one.region, one.vm_type, one.rank)
        for provider, one in best.items()
    )


def _reason(request: ComparisonRequest, ranked: Sequence[Ranked]) -> str:
    best = ranked[0]
    what = {
        "value": f"costs least, at {usd_text(request.time_value_usd_per_h)} USD for an hour",
        "time": "is done first",
        "cost": "costs least",
        "latency": "has the least mean round-trip time",
        "stability": "loses least time if rates are as low as their bounds",
    }[request.objective]
    figure = {
        "latency": f"{best.rtt_ms:.0f} ms",
        "stability": f"{best.duration_s_high / best.duration_s - 1:.0%}",
    }.get(
        request.objective, f"{duration_text(best.duration_s)}, {usd_text(best.cost_usd.total)} USD"
    )
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
