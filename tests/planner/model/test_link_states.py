"""Links that are down or degraded: plans go around them and say so; nothing changes without any."""

from __future__ import annotations

from math import inf
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import InfeasibleError
from planner.model.link_states import LinkState, Pair, loss_bound_mbps
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import Objective, TransferRequest
from tests.planner.transfer.strategies import patient

REGIONS = ("s", "a", "b", "d")
SINCE = "2026-01-02T03:04:05Z"


def _network(direct_gbps: float = 5.0) -> Network:
    rates = np.full((4, 4), 4.0)
    rates[0, 3] = direct_gbps
    rates[0, 2] = 3.5  # b is the second best relay
    return Network.from_matrices(REGIONS, rates, rtt_ms=80.0)


def _state(src: str, dst: str, condition: str = "down", **fields: float) -> dict[Pair, LinkState]:
    return {(src, dst): LinkState(src, dst, condition, SINCE, "no reply", **fields)}  # type: ignore[arg-type]


def _plan(states: dict[Pair, LinkState], **request: object) -> Plan:
    network = _network().with_(link_states=states)
    asked = TransferRequest("s", "d", **{"vms": 1, **request})  # type: ignore[arg-type]
    return recommend(asked, network, FlatPrices(REGIONS, 0.05, 1.0))


def test_a_link_that_is_down_is_left_for_the_relay_that_survives() -> None:
    assert _plan({}).verdict == "direct"
    plan = _plan(_state("s", "d"), relays="one")
    assert (plan.verdict, plan.paths[0].regions) == ("relay", ("s", "a", "d"))
    assert plan.reason == (
        f"The direct link s -> d is down since {SINCE} (no reply). A relay at a carries the "
        "transfer until it is back."
    )
    assert (plan.direct.feasible, plan.direct.reason) == (False, f"the link is down since {SINCE}")
    assert any("plans will change" in warning for warning in plan.warnings)
    both = _plan({**_state("s", "d"), **_state("a", "d")}, relays="one")
    assert both.paths[0].regions == ("s", "b", "d")
    assert any("Not considered as relays" in w and w.endswith(": a.") for w in both.warnings)
    with pytest.raises(InfeasibleError, match=r"s -> d is down since .*wait until it is back"):
        _plan(_state("s", "d"), relays="none")


@pytest.mark.parametrize(
    ("fields", "expected_gbps"),
    [
        ({"rate_share": 0.1}, 0.5),
        # One flow carried 5 Gbit/s; 64 of them are far from mattering until loss bounds each.
        ({"loss_share": 0.02}, 64 * loss_bound_mbps(0.02, 80.0) / 1e3),
        ({"loss_share": 0.02, "rtt_ms": 160.0}, 64 * loss_bound_mbps(0.02, 160.0) / 1e3),
    ],
)
def test_a_degraded_link_carries_what_it_can(
    fields: dict[str, float], expected_gbps: float
) -> None:
    link = _network().with_(link_states=_state("s", "d", "degraded", **fields)).link("s", "d")
    assert link.rate_gbps(64) == pytest.approx(expected_gbps)
    assert link.rtt_ms.expected == fields.get("rtt_ms", 80.0)
    plan = _plan(_state("s", "d", "degraded", **fields))
    assert plan.verdict in ("relay", "split")
    assert plan.reason.startswith(f"The direct link s -> d is degraded since {SINCE}")


def test_the_bound_by_loss_is_mathis() -> None:
    # 1448 bytes, 100 ms, 1 %: 1.22 x 11584 bit / (0.1 s x 0.1) = 1.42 Mbit/s.
    assert loss_bound_mbps(0.01, 100.0) == pytest.approx(1.4187, rel=1e-3)
    assert loss_bound_mbps(0.0, 100.0) == inf


def test_without_states_of_its_links_a_network_is_as_usual() -> None:
    network = _network()
    for states in ({}, _state("s", "elsewhere"), _state("s", "d", "up")):
        now = network.with_(link_states=states)
        assert now.links is network.usual
        assert now.states == {}
    half = network.with_(link_states=_state("s", "d", "degraded", rate_share=0.5))
    again = half.with_(link_states=half.link_states)
    assert again.link("s", "d").aggregate_gbps.expected == 2.5
    assert half.with_(link_states={}).link("s", "d") == network.link("s", "d")


_conditions = st.dictionaries(
    st.tuples(st.sampled_from(REGIONS), st.sampled_from(REGIONS)).filter(lambda p: p[0] != p[1]),
    st.tuples(
        st.sampled_from(["down", "degraded"]),
        st.floats(0, 1),
        st.floats(0, 1),
        st.none() | st.floats(1, 1000),
    ),
    max_size=12,
)


@patient
@given(_conditions, st.sampled_from(get_args(Objective)))
def test_no_plan_uses_a_link_that_is_down_and_none_gets_better(
    conditions: dict[Pair, tuple[str, float, float, float | None]], objective: str
) -> None:
    states = {
        (src, dst): LinkState(src, dst, condition, SINCE, "", rtt, loss, share)  # type: ignore[arg-type]
        for (src, dst), (condition, loss, share, rtt) in conditions.items()
    }
    now = _network().with_(link_states=states)
    for link in now:
        usual = _network().link(link.src, link.dst)
        for connections in (1, 64):
            for bound in ("low", "expected", "high"):
                assert link.rate_gbps(connections, bound) <= usual.rate_gbps(connections, bound)
        if (state := states.get((link.src, link.dst))) and state.condition == "down":
            assert link.rate_gbps(64, "high") == 0
    try:
        plan = _plan(states, objective=objective)
    except InfeasibleError:
        return
    for path in plan.paths:
        for pair in zip(path.regions, path.regions[1:], strict=False):
            assert pair not in states or states[pair].condition != "down"
    assert plan.throughput_gbps > 0
    plan.model_dump_json()
