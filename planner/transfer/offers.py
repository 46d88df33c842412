"""The offers of an answer: every way to carry out the transfer that it knows, in one list.

Each is what the planner answers to the request with the offer's change, or has among its offers
then: a single relay that is not worth it is compared, not recommended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf
from operator import itemgetter
from typing import Any, NamedTuple

from planner.model.link_array import KINDS
from planner.transfer import wording
from planner.transfer.allocation import Allocation
from planner.transfer.decision import AS_GOOD, Decision, chosen_option, slack, with_one_vm
from planner.transfer.options import MARGINAL, Option
from planner.transfer.plan import Offer, Verdict

# What an hour is worth to others, USD: with the frontier, what they would be answered is offered.
WORTHS_USD_PER_H = (0.0, 5.0, 50.0, 500.0, inf)


class Offered(NamedTuple):
    """An option that may be offered, and the fields of the request to change for it."""

    option: Option
    change: dict[str, Any]
    name: str = ""
    why: str = ""


def verdict_of(allocation: Allocation) -> Verdict:
    """Return the verdict of an allocation."""
    if not allocation.relay_vms:
        return "direct"
    return "split" if len(allocation.flows) > 1 else "relay"


def outlined(option: Option) -> dict[str, Any]:
    """Return the figures that an answer gives of an option over any paths."""
    return {
        "verdict": verdict_of(option.allocation),
        "relays": tuple(option.figures.regions[relay] for relay in option.relays),
        "throughput_gbps": option.allocation.rate_gbps,
        "duration_s": option.duration_s,
        "cost_usd": option.cost,
        "vms": option.figures.vms(option.allocation),
    }


def at_other_worths(decision: Decision) -> list[Offered]:
    """Return what is answered where an hour is worth more or less, the cheapest first."""
    request, search, found = decision.request, decision.search, list[Offered]()
    for worth in WORTHS_USD_PER_H:
        change: dict[str, Any] = {"objective": "value", "time_value_usd_per_h": worth}
        if worth in (0.0, inf):
            change = {"objective": "time" if worth else "cost"}
        asked = request.with_(**change)
        if option := chosen_option(asked, search.network, search.prices):
            found.append(Offered(option, change, why=f"Least {wording.terms_of(asked)}"))
    return found


def offers_of(decision: Decision, others: Iterable[Offered]) -> tuple[Offer, ...]:
    """Return the offers, the recommended one first, and of those that are alike the first."""
    found, first = dict[Any, Offer](), Offered(decision.chosen, {}, why=wording.rule(decision))
    for way in (first, *_ways(decision), *others):
        offer = _offer(decision, way)
        figures = f"{offer.duration_s:.6g} {offer.cost_usd.total:.6g}"
        found.setdefault((*offer.paths, *offer.vms.items(), figures), offer)
    return tuple(found.values())


def _ways(decision: Decision) -> Iterator[Offered]:
    """Yield the direct path, single relays, one VM a region, and the best of all numbers."""
    request, figures, best = decision.request, decision.figures, decision.widest.choice
    best_alone = best and len(best.chosen.allocation.flows) == 1 and best.chosen
    for option in (decision.direct, *decision.relays, best_alone):
        if option:
            relay = figures.regions[option.relays[0]] if option.relays else "none"
            vms_in = {**request.vms_in, **figures.vms(option.allocation)}
            yield Offered(option, {"relays": relay, "vms_in": vms_in})
    if request.vms is None and (one := with_one_vm(decision)):
        yield Offered(one, {"vms": 1}, why="One VM in each region")


def _offer(decision: Decision, way: Offered) -> Offer:
    option, chosen, direct = way.option, decision.chosen, decision.fastest_direct
    figures, flows = option.figures, option.allocation.flows
    pairs = [pair for path in flows for pair in figures.pairs_of(path)]
    paths = tuple((figures.request.src, *(b for _, b in figures.pairs_of(f))) for f in flows)
    outline, why = outlined(option), [way.why] if way.why else []
    over = " and ".join(["direct"] * bool(option.allocation.direct_gbps) + [*outline["relays"]])
    name = {"direct": "direct", "relay": f"relay at {over}", "split": f"split over {over}"}
    room = slack(decision.request.hour_usd, option.value_usd, option.allocation.egress_usd)
    if MARGINAL * chosen.value_usd < chosen.value_usd - option.value_usd <= room:
        why.append(f"less than {AS_GOOD:.0%} better, for which no VM is added")
    faster = None
    if direct and option is not direct:
        faster = float((option.durations_s < direct.durations_s * (1 - MARGINAL)).mean())
    return Offer(
        name=way.name or name[outline["verdict"]],
        **outline,
        paths=paths,
        addresses=tuple(figures.estimates(*pair).address for pair in pairs),
        faster=faster,
        evidence=max((figures.deciding(*pair).source for pair in pairs), key=KINDS.index),
        limit=wording.bottleneck_of_path(figures, *max(flows.items(), key=itemgetter(1))),
        recommended=option is chosen,
        why="; ".join(why),
        change=way.change,
    )
