"""Many transfers between the same ends, which learn from each other which path is best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, log, sqrt

from planner.exploring.belief import SCORE_90, Belief, Sent
from planner.exploring.choice import Path, PathChoice, choose
from planner.exploring.outcome import DIRECT, Outcome
from planner.model.units import S_PER_H, duration_s
from planner.transfer.decision import Decider, Decision
from planner.transfer.options import Option
from planner.transfer.plan import Exploration, KnownRate


def explored(
    decider: Decider, decision: Decision, now_s: float | None
) -> tuple[Decision, Exploration, str]:
    """Return the decision for one path: the best by what is known, or one that is tried.

    Parameters
    ----------
    decider, decision
        Of a request with `explore`. Where only several paths together meet its limits, they stay
        what is chosen.
    now_s : float, optional
        On the clock of the outcomes; without it, when the last of them ended.

    Returns
    -------
    tuple
        The decision, what was learnt, and why in words.
    """
    request = decider.request
    relays = [decision.best_relay, *decision.alternatives]
    options = {DIRECT: decision.direct} if decision.direct else {}
    options |= {decider.regions[option.relays[0]]: option for option in relays if option}
    of_pair = [one for one in request.outcomes if (one.src, one.dst) == (request.src, request.dst)]
    names = list(options)
    if not names:
        only = "Only several paths together meet the limits, so that none is tried."
        return decision, Exploration("", "", 0.0, 0.0, ()), only
    sent = [
        Sent(names.index(one.via), log(one.rate_gbps), one.ended_s)
        for one in of_pair
        if one.via in options
    ]
    if now_s is None:
        now_s = max((one.ended_s for one in sent), default=0.0)
    paths = [_path(decider, option) for option in options.values()]
    choice = choose(paths, sent, now_s, request.explore)
    via, best = names[choice.path], names[choice.best]
    learnt = Exploration(via, best, choice.spent, choice.allowed, _rates(choice, names, of_pair))
    why = _reason(via, best, len(sent), request.explore)
    return replace(decision, chosen=options[via]), learnt, why


def _path(decider: Decider, option: Option) -> Path:
    """Return what a transfer over a path costs by its rate: fees, VMs, and time at its value."""
    request, allocation = decider.request, option.allocation
    gbps = allocation.rate_gbps
    low, high = (decider.rate_at(allocation, bound) for bound in ("low", "high"))
    belief = Belief.of_bounds(low, gbps, high)
    move_s, hour_usd = duration_s(request.volume_gb, gbps), request.hour_usd
    if hour_usd == inf:
        return Path(belief, option.ramp_up_s, move_s * gbps)
    vms_usd_per_s = allocation.vm_usd / (move_s + request.vm_start_s)
    fixed = allocation.egress_usd + vms_usd_per_s * request.vm_start_s
    fixed += hour_usd / S_PER_H * option.ramp_up_s
    return Path(belief, fixed, (vms_usd_per_s + hour_usd / S_PER_H) * move_s * gbps)


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


def _reason(via: str, best: str, outcomes: int, share: float) -> str:
    said = "estimates" if not outcomes else f"estimates and {outcomes} past transfers"
    if via == best:
        return f"By {said}, {_named(via)} is best, and nothing else is worth a trial now."
    return (
        f"By {said}, {_named(best)} is best, but {_named(via)} is tried: what that teaches may be "
        f"worth more than it costs. Trials may cost {share:.1%} of what transfers cost."
    )


def _named(via: str) -> str:
    return "the direct path" if via == DIRECT else via
