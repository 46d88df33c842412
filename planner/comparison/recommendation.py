"""Candidates in the order of the objective, with how sure their order is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from planner.comparison.candidate import EvaluatedCandidate, evaluated
from planner.comparison.plan import BestOfProvider, Ranked, Ranking
from planner.comparison.request import ComparisonRequest
from planner.model.answer import identified
from planner.model.errors import DataError
from planner.model.network import Network, Snapshot
from planner.model.pricing import Prices, provider_of
from planner.model.shared_resources import Floats
from planner.model.units import duration_text, usd_text

LEAST_SHARE = 0.05
"""Of draws, on either side of a range of ranks."""
CLOSE = 0.5
"""A best candidate that is the best in fewer draws is not sure."""


def recommend_candidates(
    request: ComparisonRequest,
    snapshot: Snapshot,
    candidates: Iterable[tuple[str, Network, Prices]],
    *,
    notes: tuple[str, ...] = (),
) -> Ranking:
    """Return candidates, the best first.

    Parameters
    ----------
    request : ComparisonRequest
    snapshot : Snapshot
        What the answer rests on.
    candidates : iterable of (region, network, prices)
        A region, and a network whose site there has the candidate's VM type.
    notes : tuple of str
        What was understood from the request's names; goes first among the warnings.

    Raises
    ------
    DataError
        If nothing is known of any.
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
            compared=len(ranked),
            candidates=tuple(ranked[: request.most]),
            providers=_providers(ranked),
            warnings=tuple(warnings),
        )
    )


def _drawn_ranks(found: Sequence[EvaluatedCandidate]) -> Floats | None:
    """Return each candidate's rank in each draw, shape (draws, candidates); equals share one."""
    drawn = [one.drawn for one in found if one.drawn is not None]
    if len(drawn) < len(found):
        return None
    values = np.array(drawn).T
    order = values.argsort(axis=1, kind="stable")
    in_order = np.take_along_axis(values, order, axis=1)
    # The rank of the first of its equals.
    new = np.ones_like(in_order, dtype=bool)
    new[:, 1:] = in_order[:, 1:] > in_order[:, :-1]
    places = np.maximum.accumulate(np.where(new, np.arange(len(found)), 0), axis=1) + 1.0
    ranks = np.empty_like(values)
    np.put_along_axis(ranks, order, places, axis=1)
    return ranks


def _placed(one: Ranked, place: int, ranks: Floats | None) -> Ranked:
    """Return a candidate with its rank, and how sure that is."""
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
