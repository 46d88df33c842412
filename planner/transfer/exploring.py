"""Many transfers between the same ends, which learn from each other which path is best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, log, sqrt
from typing import NamedTuple

from planner.exploring.choice import Belief, Path, PathChoice, Sent, choose
from planner.exploring.outcome import DIRECT, Outcome
from planner.model.achieved import SCORE_90
from planner.model.units import S_PER_H, duration_s, gbps_text
from planner.transfer.decision import Decision
from planner.transfer.options import Option
from planner.transfer.plan import Exploration, KnownRate


class ExploringDecision(NamedTuple):
    """A decision for one path, with the estimates behind it, its reason and its warnings."""

    decision: Decision
    exploration: Exploration
    why: str
    warnings: tuple[str, ...] = ()


def explored(decision: Decision, now_s: float | None) -> ExploringDecision:
    """Return the decision for one path: the best by estimates, or one to try.

    Parameters
    ----------
    decision : Decision
        Of a request with `explore`. Where only several paths together meet its limits, they stay
        what is chosen.
    now_s : float, optional
        Seconds since 1970; without it, when the last of the outcomes ended.
    """
    request, regions = decision.request, decision.figures.regions
    options = {DIRECT: decision.direct} if decision.direct else {}
    options |= {regions[option.relays[0]]: option for option in decision.relays}
    of_pair = [one for one in request.outcomes if (one.src, one.dst) == (request.src, request.dst)]
    names = list(options)
    if not names:
        only = "Only several paths together meet the limits, so that none is tried."
        return ExploringDecision(decision, Exploration("", "", 0.0, 0.0, ()), only)
    sent = [
        Sent(names.index(one.via), log(one.rate_gbps), one.ended_s)
        for one in of_pair
        if one.via in options
    ]
    if now_s is None:
        now_s = max((one.ended_s for one in sent), default=0.0)
    paths = [_path(option) for option in options.values()]
    choice = choose(paths, sent, now_s, request.explore)
    via, best = names[choice.path], names[choice.best]
    learnt = Exploration(via, best, choice.spent, choice.allowed, _rates(choice, names, of_pair))
    said = "estimates" if not sent else f"estimates and {len(sent)} past transfers"
    return ExploringDecision(
        replace(decision, chosen=options[via]),
        learnt,
        f"By {said}, {_reason(learnt, request.explore)}",
        () if choice.meets_limits else (_missed(said, paths[choice.path], learnt),),
    )


def _path(option: Option) -> Path:
    """Return the cost of a transfer over a path by its rate: fees, VMs, and time at its value."""
    request, gbps = option.figures.request, option.allocation.rate_gbps
    # By estimates it meets the limits, if only but for rounding.
    least_gbps = min(gbps, request.least_rate_gbps(option.lead_s))
    belief = Belief.of_bounds(option.rate_at("low"), gbps, option.rate_at("high"))
    move_s = duration_s(request.volume_gb, gbps)
    if request.hour_usd == inf:
        return Path(belief, option.lead_s, move_s * gbps, least_gbps)
    fixed, per_hour_usd = option.value_by_rate()
    return Path(belief, fixed, per_hour_usd * move_s / S_PER_H * gbps, least_gbps)


def _rates(
    choice: PathChoice, names: Sequence[str], outcomes: Sequence[Outcome]
) -> tuple[KnownRate, ...]:
    found = []
    for via, belief in zip(names, choice.beliefs, strict=True):
        reach = exp(SCORE_90 * sqrt(belief.variance))
        gbps = exp(belief.mean)
        count = sum(one.via == via for one in outcomes)
        found.append(KnownRate(via, gbps / reach, gbps, gbps * reach, count))
    return tuple(found)


def _reason(learnt: Exploration, share: float) -> str:
    if learnt.via != learnt.best:
        return (
            f"{_named(learnt.best)} is best, but {_named(learnt.via)} is tried: what that teaches "
            f"may be worth more than it costs. Trials may cost {share:.1%} of what transfers cost."
        )
    if learnt.spent > learnt.allowed:
        return f"{_named(learnt.best)} is best. Trials have cost what they may; none is made now."
    return f"{_named(learnt.best)} is best, and nothing else is worth a trial now."


def _missed(said: str, taken: Path, learnt: Exploration) -> str:
    gbps = next(rate.gbps for rate in learnt.rates if rate.via == learnt.via)
    return (
        f"By {said}, no path meets the limits: they demand {gbps_text(taken.least_gbps)} Gbit/s "
        f"of {_named(learnt.via)}, which has {gbps_text(gbps)}."
    )


def _named(via: str) -> str:
    return "the direct path" if via == DIRECT else via
