"""Every offer of an answer is what the planner answers to whoever asks for it."""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any

import pytest

import relayd
from planner.model.errors import InfeasibleError
from planner.transfer.plan import Offer, Plan
from relayd.catalogue.loading import load_catalogue
from tests.planner.grid import january_grid

SETTINGS: tuple[dict[str, Any], ...] = (
    {"volume_gb": 500},
    {"volume_gb": 3000, "objective": "time"},
    {"volume_gb": 1000, "time_value_usd_per_h": 200, "vms": 2, "budget_usd": 2000},
)
PAIRS = 6


def found(plan: Plan, offer: Offer) -> Offer | None:
    """Return the offer of a plan that is the same way, at the same time and price."""
    return next(
        (
            one
            for one in plan.offers
            if (one.paths, one.vms) == (offer.paths, offer.vms)
            and one.duration_s == pytest.approx(offer.duration_s, rel=1e-6)
            and one.cost_usd.total == pytest.approx(offer.cost_usd.total, rel=1e-6)
        ),
        None,
    )


@pytest.mark.parametrize("asked", SETTINGS, ids=("value", "time", "limits"))
def test_every_offer_is_what_the_planner_answers(asked: dict[str, Any]) -> None:
    network = january_grid().network()
    wan = relayd.Wan(load_catalogue(), network)
    pairs = Random(3).sample(list(permutations(network.sites, 2)), PAIRS)
    verdicts = set()
    for src, dst in pairs:
        try:
            plan = wan.plan(src, dst, frontier=True, **asked)
        except InfeasibleError:
            continue
        first, *others = plan.offers
        assert first.recommended
        assert not any(one.recommended for one in others)
        assert (first.duration_s, first.cost_usd, first.vms) == (
            plan.duration_s,
            plan.cost_usd,
            plan.vms,
        )
        known = {one.duration_s for one in (plan.best_relay, *plan.alternatives) if one}
        known |= {one.outcome.duration_s for one in plan.advice if one.outcome}
        assert known <= {one.duration_s for one in plan.offers}
        for offer in plan.offers:
            verdicts.add(offer.verdict)
            answer = wan.plan(**{**plan.request, **offer.change})
            same = found(answer, offer)
            assert same, (src, dst, offer)
            # A relay is compared where it is not worth it; all else is recommended.
            assert same.recommended or offer.verdict == "relay"
            if offer.faster is not None and offer.duration_s and plan.direct.duration_s:
                sooner = offer.duration_s < plan.direct.duration_s * (1 - 1e-6)
                assert offer.faster == pytest.approx(float(sooner), abs=0.7)
    assert {"direct", "relay"} <= verdicts


def test_a_plan_that_is_not_the_best_says_the_rule_that_chose_it() -> None:
    wan = relayd.Wan(load_catalogue(), january_grid().network())
    told = 0
    for src, dst in Random(4).sample(list(permutations(wan.sites(), 2)), 20):
        plan = wan.plan(src, dst, volume_gb=500)
        rule, *others = (one.why for one in plan.offers)
        assert "ost plus time at $20/h" in rule
        if "fewest VMs within 5% of the least" not in rule:
            continue
        told += 1
        assert rule in " ".join(str(plan).split())
        for offer, why in zip(plan.offers[1:], others, strict=True):
            if "less than 5% better" in why:
                assert sum(offer.vms.values()) > sum(plan.vms.values())
    assert told
