"""Many transfers between the same ends, which learn from each other which path is best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, inf, log, sqrt
from typing import NamedTuple

from planner.exploring.choice import Belief, Path, Sent, choose
from planner.exploring.outcome import DIRECT, Outcome
from planner.model.achieved import SCORE_90
from planner.model.answer import Bounded
from planner.model.calibration import with_links_at
from planner.model.errors import InfeasibleError
from planner.model.units import S_PER_H, duration_s, gbps_text, rate_text
from planner.transfer.decision import Decision, decide
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
    names, known = list(options), [one for one in of_pair if one.via in options]
    if not names:
        only = "Only several paths together meet the limits, so that none is tried."
        return ExploringDecision(decision, Exploration("", "", 0.0, 0.0, ()), only)
    sent = [
        Sent(names.index(one.via), log(_rate_gbps(one, options[one.via])), one.ended_s)
        for one in known
    ]
    if now_s is None:
        now_s = max((one.ended_s for one in sent), default=0.0)
    paths = [_path(option) for option in options.values()]
    choice = choose(paths, sent, now_s, request.explore)
    via, best = names[choice.path], names[choice.best]
    beliefs = dict(zip(options, choice.beliefs, strict=True))
    decision, options = _believing(decision, options, {one.via: beliefs[one.via] for one in known})
    rates = tuple(_known(name, options[name], known) for name in options)
    learnt = Exploration(via, best, choice.spent, choice.allowed, rates)
    said = "estimates" if not sent else f"estimates and {len(sent)} past transfers"
    return ExploringDecision(
        replace(decision, chosen=options.get(via, decision.chosen)),
        learnt,
        f"By {said}, {_reason(learnt, request.explore)}",
        () if choice.meets_limits else (_missed(said, paths[choice.path], learnt),),
    )


def _rate_gbps(outcome: Outcome, option: Option) -> float:
    """Return the rate of a past transfer, were it over as many VMs as an option."""
    vms = max(option.allocation.src_vms, option.allocation.dst_vms)
    return outcome.rate_gbps * vms / (outcome.vms or vms)


def _believing(
    decision: Decision, options: Mapping[str, Option], beliefs: Mapping[str, Belief]
) -> tuple[Decision, dict[str, Option]]:
    """Return the decision and the options with what was learnt of some paths.

    Each path has its links to itself, so they are as fast as it is believed to be. Where no plan
    meets the limits any more, they are left out.
    """
    if not beliefs:
        return decision, dict(options)
    network, figures, request = decision.search.network, decision.figures, decision.request
    for via, belief in beliefs.items():
        rate_gbps, reach = options[via].allocation.rate_gbps, exp(SCORE_90 * sqrt(belief.variance))
        share = exp(belief.mean) / rate_gbps
        relay = next(iter(options[via].relays), None)
        shares = Bounded(share, share / reach, share * reach)
        network = with_links_at(shares, network, figures.pairs_of(relay))
    try:
        decision = decide(request, network, decision.search.prices)
    except InfeasibleError:
        limits = dict.fromkeys(("deadline_s", "min_throughput_gbps", "budget_usd"))
        decision = decide(request.with_(**limits), network, decision.search.prices)
    paths = {path.region: path for path in decision.search.transfer.paths}
    again = {
        via: decision.search.on_path(paths.get(next(iter(option.relays), None)))
        for via, option in options.items()
    }
    return decision, {via: option for via, option in again.items() if option}


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


def _known(via: str, option: Option, outcomes: Sequence[Outcome]) -> KnownRate:
    rates = option.rate_at("low"), option.allocation.rate_gbps, option.rate_at("high")
    return KnownRate(via, *rates, sum(one.via == via for one in outcomes))


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
        f"By {said}, no path meets the limits: they demand {rate_text(taken.least_gbps)} "
        f"of {_named(learnt.via)}, which has {gbps_text(gbps)}."
    )


def _named(via: str) -> str:
    return "the direct path" if via == DIRECT else via
