"""What is recommended keeps every limit and promise, whatever was asked on whatever network."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise, permutations
from math import inf, log
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import relayd
from planner.model.errors import DataError, InfeasibleError
from planner.model.estimate import Estimate, exactly
from planner.model.network import Network
from planner.model.pricing import FlatPrices, Prices
from planner.solvers.joint import Risk
from planner.transfer.plan import Plan
from planner.transfer.problem import LEAST_PART, Relays, transfer_problem
from planner.transfer.recommendation import recommend
from planner.transfer.request import Objective, TransferRequest
from tests.planner import independent
from tests.planner.independent import below, near
from tests.planner.networks import stated_network
from tests.planner.transfer.strategies import (
    Answered,
    answer,
    answers,
    networks,
    patient,
    prices,
    requests,
)


def ends_held(network: Network, src: str, dst: str) -> tuple[bool, bool]:
    """Whether the rate of one VM pair holds a VM that sends, and one that receives."""
    link, sends, receives = network.link(src, dst), network.sites[src], network.sites[dst]
    at_receiver = receives.ingress_gbps.expected < sends.egress_gbps.expected
    by_cap = link.limited_by == "vm"
    return not (by_cap and at_receiver), link.limited_by != "window" and (not by_cap or at_receiver)


def assert_sound(plan: Any, request: TransferRequest, network: Network) -> None:
    """Check a plan against the request's limits and the network's figures."""
    stated = json.loads(plan.model_dump_json(), parse_constant=pytest.fail)
    assert stated["verdict"] in {"direct", "relay", "split"}
    # Money, time and rates are what such things can be.
    for cost in (plan.cost_usd, plan.direct.cost_usd):
        if cost:
            assert cost.egress >= 0
            assert cost.vm >= 0
            assert cost.total == near(cost.egress + cost.vm)
    assert below(plan.throughput_gbps_low, plan.throughput_gbps)
    assert below(plan.throughput_gbps, plan.throughput_gbps_high)
    assert plan.throughput_gbps > 0
    assert plan.duration_s >= 8 * request.volume_gb / plan.throughput_gbps * (1 - 1e-9)
    # Paths add up.
    assert sum(path.share for path in plan.paths) == near(1.0)
    assert sum(path.throughput_gbps for path in plan.paths) == near(plan.throughput_gbps)
    # Rules.
    relays = [path.regions[1] for path in plan.paths if len(path.regions) == 3]
    ends = (request.src, request.dst)
    assert not set(relays) & (request.forbidden | set(ends))
    assert all((path.regions[0], path.regions[-1]) == ends for path in plan.paths)
    if request.relays == "none":
        assert not relays
        assert plan.best_relay is None
    elif request.relays == "one":
        assert len(relays) <= 1
    elif request.relays != "any":
        assert set(relays) <= {request.relays}
    if request.connections < 8:
        assert len(plan.paths) == 1
    assert (plan.verdict == "direct") == (not relays)
    # Only what takes part is paid for.
    assert set(plan.vms) == {region for path in plan.paths for region in path.regions}
    # Limits.
    assert all(
        count <= request.vm_limits.most(network.sites[region]) for region, count in plan.vms.items()
    )
    assert below(plan.cost_usd.total, request.budget_usd or inf)
    assert below(plan.duration_s, request.deadline_s or inf)
    assert below(request.min_throughput_gbps or 0.0, plan.throughput_gbps)
    # What VMs and links carry (the hose model), from the network's own figures.
    for path in plan.paths:
        assert path.connections >= 1
        for link in pairwise(path.regions):
            figures = network.link(*link)
            assert below(path.throughput_gbps, path.connections * figures.rate_gbps(1))
            held = ends_held(network, *link)
            vms = min(plan.vms[end] for end, is_held in zip(link, held, strict=True) if is_held)
            assert below(path.throughput_gbps, figures.aggregate_gbps.expected * vms)
        for relay in path.regions[1:-1]:
            assert path.connections <= request.connections * plan.vms[relay]
            site = network.sites[relay]
            caps = min(site.ingress_gbps.expected, site.egress_gbps.expected)
            assert below(path.throughput_gbps, caps * plan.vms[relay])
    assert min(path.share for path in plan.paths) >= LEAST_PART * (1 - 1e-6)
    opened = sum(path.connections for path in plan.paths)
    assert opened <= request.connections * plan.vms[request.src]
    sends, receives = network.sites[request.src], network.sites[request.dst]
    assert below(plan.throughput_gbps, sends.egress_gbps.expected * plan.vms[request.src])
    assert below(plan.throughput_gbps, receives.ingress_gbps.expected * plan.vms[request.dst])
    # A relay only where it is better, or direct can't do it.
    if relays and plan.direct.feasible and request.objective == "time":
        assert plan.duration_s < plan.direct.duration_s
    for one in (plan.best_relay, *plan.alternatives) if plan.best_relay else ():
        if one.gain is not None:
            assert one.gain_low <= one.gain <= one.gain_high
            assert 0 <= one.probability <= 1


def assert_frontier_sound(plan: Plan, request: TransferRequest, network: Network) -> None:
    """Check that no point is beaten by another, and that the plan is one of them."""
    for point in plan.frontier:
        assert not set(point.relays) & request.forbidden
        assert all(n <= request.vm_limits.most(network.sites[r]) for r, n in point.vms.items())
    points = [(point.duration_s, point.cost_usd.total) for point in plan.frontier]
    assert (plan.duration_s, plan.cost_usd.total) in points
    for (slow_s, cheap_usd), (fast_s, dear_usd) in pairwise(points):
        assert slow_s > fast_s
        assert cheap_usd < dear_usd


def assert_names_the_limit(error: InfeasibleError, request: TransferRequest) -> None:
    """Check that a limit is named which was asked for: without any, something is possible."""
    named = {
        "budget": request.budget_usd,
        "deadline": request.deadline_s,
        "Gbit/s is above": request.min_throughput_gbps,
    }
    assert any(word in error.limit and limit for word, limit in named.items()), error


@patient
@given(requests(), networks(), prices(), st.booleans())
def test_every_plan_and_frontier_is_sound(
    request: TransferRequest, network: Network, price_list: FlatPrices, frontier: bool
) -> None:
    request = replace(request, frontier=frontier)
    try:
        plan = recommend(request, network, price_list, now_s=1e9)
    except InfeasibleError as error:
        assert_names_the_limit(error, request)
        return
    except DataError:
        problem = transfer_problem(request, network, price_list)
        assert problem.direct is None
        return
    assert_sound(plan, request, network)
    if frontier:
        assert_frontier_sound(plan, request, network)
    again = recommend(request, network, price_list, now_s=1e9)
    assert again.model_dump_json() == plan.model_dump_json()


@patient
@given(answers)
def test_how_many_relays_are_compared_decides_nothing(usual: Answered) -> None:
    few, many = (
        recommend(replace(usual.request, candidates=n), usual.network, usual.prices, now_s=1e9)
        for n in (1, 100)
    )
    alternatives = usual.plan.alternatives
    assert few.alternatives == ()
    assert many.alternatives[: len(alternatives)] == alternatives
    for plan in (few, many):
        if plan.best_relay == usual.plan.best_relay:
            same: dict[str, Any] = {"alternatives": (), "offers": (), "plan_id": "", "request": {}}
            assert replace(plan, **same) == replace(usual.plan, **same)


# ---- infeasible, and what would do -----------------------------------------------------------


# What may be used: splits, one relay, direct alone; or too few connections to divide.
PERMITTED = st.sampled_from([("any", 64), ("any", 4), ("one", 64), ("none", 64)])


def most_rate_gbps(request: TransferRequest, network: Network, price_list: Prices) -> float:
    """Return the greatest rate over all that the request permits, or give the example up."""
    whole = transfer_problem(request, network, price_list)
    if request.relays == "any" and request.may_split:
        most = independent.most_rate_gbps(whole)
    else:  # one relay, beside direct only where connections divide
        parts = [replace(whole, relays=Relays.of([]))]
        for relay in whole.relays:
            beside = whole.direct if request.may_split else None
            parts.append(replace(whole, direct=beside, relays=Relays.of([relay])))
        most = max(map(independent.most_rate_gbps, parts))
    assume(most > 0.01)
    return most


def out_of_reach(
    limit: str, share: float, request: TransferRequest, network: Network, price_list: Prices
) -> TransferRequest:
    """Return a request with a limit of a share of what can be had, or give the example up."""
    most = most_rate_gbps(request, network, price_list)
    if limit == "deadline":
        return replace(request, deadline_s=share * 800 / most)
    if limit == "rate":
        return replace(request, min_throughput_gbps=most / share)
    plan = answer(replace(request, objective="cost"), network, price_list).plan
    assume(plan.cost_usd.total > 0.05)
    return replace(request, objective="cost", budget_usd=plan.cost_usd.total * share)


def fault_of(
    request: TransferRequest, network: Network, price_list: Prices
) -> InfeasibleError | None:
    try:
        recommend(request, network, price_list)
    except InfeasibleError as error:
        return error
    return None


REMEDIES: dict[str, tuple[str, dict[str, str]]] = {
    "rate": (
        "above the",
        {"min_throughput_gbps": r"at most ([\d.]+) Gbit/s", "vms": r"raise `vms` to (\d+)"},
    ),
    "budget": ("budget of", {"budget_usd": r"Raise the budget to \$([\d.,]+) or"}),
    "deadline": ("deadline", {"deadline_s": r"Allow at least .*\((\d+) s\)"}),
}
"""What is said of a limit, and the changes of a request that each would do."""


@pytest.mark.parametrize("limit", REMEDIES)
@patient
@given(networks(), prices(), PERMITTED, st.floats(0.1, 0.95), st.sampled_from([None, 1, 3]))
def test_each_remedy_for_a_limit_out_of_reach_does(
    limit: str,
    network: Network,
    price_list: FlatPrices,
    permitted: tuple[str, int],
    share: float,
    vms: int | None,
) -> None:
    relays, connections = permitted
    request = TransferRequest(
        *("aws:a", "gcp:f"), volume_gb=100.0, vms=vms, relays=relays, connections=connections
    )
    asked = out_of_reach(limit, share, request, network, price_list)
    said, remedies = REMEDIES[limit]
    error = fault_of(asked, network, price_list)
    if error is None:
        assert limit == "budget"  # the plan was not the cheapest of all, but one of fewer VMs
        return
    assert said in str(error)
    for field, words in remedies.items():
        remedy = re.search(words, error.remedy)
        assert remedy, error
        figure = float(remedy[1].replace(",", ""))
        change = {field: int(figure) if field == "vms" else figure}
        recommend(asked.with_(**change), network, price_list)


# ---- modes -----------------------------------------------------------------------------------


def three_regions(
    direct: Estimate, link: Estimate, rtt_ms: float = 10.0, flow_mbps: float = 1e5
) -> Network:
    """Return a, b and c, of which c is a relay between a and b."""
    rates = {
        pair: direct if {*pair} == {"x:a", "x:b"} else link
        for pair in permutations(FREE_REGIONS, 2)
    }
    return stated_network(rates, rtt_ms=rtt_ms, flow_mbps=flow_mbps)


FREE_REGIONS = ("x:a", "x:b", "x:c")
FREE = FlatPrices(FREE_REGIONS)


def planned(network: Network, price_list: Prices = FREE, **asked: Any) -> Any:
    """Return the plan of 1000 GB from a to b in the least time, unless asked otherwise."""
    usual = {"volume_gb": 1000.0, "objective": "time"}
    return recommend(TransferRequest("x:a", "x:b", **{**usual, **asked}), network, price_list)


@pytest.mark.parametrize(
    ("link", "margin", "risk", "verdict"),
    [
        (exactly(1.11), 0.1, "averse", "relay"),
        (exactly(1.09), 0.1, "bold", "direct"),
        (Estimate(1.6, 2.0, 2.5), 0.1, "averse", "relay"),
        (Estimate(1.6, 2.0, 2.5), 0.9, "averse", "direct"),
        # Half of the draws of the lesser of two such links are below 1.1.
        (Estimate(0.8, 1.25, 2.0), 0.1, "averse", "direct"),
        (Estimate(0.8, 1.25, 2.0), 0.1, "bold", "relay"),
    ],
)
def test_a_relay_must_be_worth_the_margin_at_the_attitude_to_risk(
    link: Estimate, margin: float, risk: Risk, verdict: str
) -> None:
    asked: dict[str, Any] = {"margin": margin, "risk": risk, "relays": "x:c", "connections": 4}
    plan = planned(three_regions(exactly(1.0), link), vms=1, **asked)
    assert plan.verdict == verdict
    relay = plan.best_relay
    assert relay.gain == near(link.expected)
    # Both links must reach it, each with the probability of a log-normal figure.
    if link.high > link.low:
        spread = log(link.high / link.low) / 2 / 1.645
        each = NormalDist(log(link.expected), spread).cdf
        both = (1 - each(log(1 + margin))) ** 2
        assert relay.probability == pytest.approx(both, abs=0.05)
        low = (1 - each(log(relay.gain_low))) ** 2
        assert low == pytest.approx(0.95, abs=0.02)
    chosen = plan.direct if verdict == "direct" else relay
    assert chosen.throughput_gbps_low == plan.throughput_gbps_low
    assert chosen.throughput_gbps_high == plan.throughput_gbps_high
    assert chosen.connections == plan.paths[0].connections
    assert chosen.vms == plan.vms
    # Where it may go either way, the answer says what would settle it.
    open_ = 0.05 <= relay.probability <= 0.95 and link.expected > 1
    assert bool(plan.measure_first) == open_
    assert open_ == any(advice.action.startswith("Measure") for advice in plan.advice)


def test_what_both_paths_share_does_not_count_against_a_relay() -> None:
    """A source's cap that may be anything leaves the gain as sure as the links are."""
    network = three_regions(exactly(3.0), exactly(9.0))
    sites = dict(network.sites)
    sites["x:b"] = replace(sites["x:b"], ingress_gbps=Estimate(0.5, 100.0, 200.0))
    relay = planned(network.with_(sites=sites), relays="x:c").best_relay
    assert relay.gain_low == near(1.0)  # where the cap is below both
    assert relay.probability > 0.7


def test_the_margin_does_not_stand_in_the_way_of_what_direct_cannot_do() -> None:
    network = three_regions(exactly(1.0), Estimate(0.5, 2.0, 3.0))
    plan = planned(network, objective="value", vms=1, min_throughput_gbps=1.5)
    assert plan.verdict != "direct"
    assert not plan.direct.feasible


@pytest.mark.parametrize("objective", ["value", "time"])
def test_small_transfers_stay_direct(objective: str) -> None:
    """Getting up to speed over two links costs more than a faster path saves."""
    network = three_regions(exactly(1.0), exactly(2.0), rtt_ms=100.0)
    assert planned(network, volume_gb=0.05, objective=objective).verdict == "direct"
    assert planned(network, objective=objective).verdict != "direct"


def test_latency_needs_a_relative_and_an_absolute_gain() -> None:
    def plan(direct_ms: float, link_ms: float) -> Any:
        rtt = np.array([[0, direct_ms, link_ms], [direct_ms, 0, link_ms], [link_ms, link_ms, 0]])
        network = Network.from_matrices(FREE_REGIONS, np.ones((3, 3)), rtt_ms=rtt)
        return planned(network, objective="latency")

    assert plan(200.0, 50.0).verdict == "relay"
    assert plan(200.0, 95.0).verdict == "direct"  # 5 % and 9 ms
    assert plan(20.0, 7.0).verdict == "direct"  # 25 %, but 5 ms
    assert plan(20.0, 50.0).verdict == "direct"


@pytest.mark.parametrize(("cap_gbps", "verdict"), [(10.1, "direct"), (12.0, "split")])
def test_a_split_is_taken_where_it_gains_more_than_a_path_to_run(
    cap_gbps: float, verdict: str
) -> None:
    gbps, caps = np.full((3, 3), 10.0), [cap_gbps] * 3
    network = Network.from_matrices(FREE_REGIONS, gbps, egress_gbps=caps, ingress_gbps=caps)
    assert planned(network, volume_gb=5000, vms=1, margin=0).verdict == verdict


@pytest.mark.parametrize(("low_gbps", "verdict"), [(1.0, "relay"), (6.0, "split")])
def test_of_plans_as_fast_a_cheaper_one_is_taken_unless_its_low_bound_is_worse(
    low_gbps: float, verdict: str
) -> None:
    network = three_regions(Estimate(low_gbps, 6.0, 6.0), exactly(12.0))
    sites = {name: replace(s, egress_gbps=exactly(12.0)) for name, s in network.sites.items()}
    alike = FlatPrices(FREE_REGIONS, 0.1)
    plan = planned(network.with_(sites=sites), alike, volume_gb=5000, vms=1)
    assert (plan.verdict, plan.throughput_gbps) == (verdict, near(12.0))


@pytest.mark.parametrize("objective", ["latency", "value"])
@pytest.mark.parametrize("candidates", [1, 6, 20])
def test_a_relay_within_the_budget_is_found_behind_dearer_and_better_ones(
    objective: Objective, candidates: int
) -> None:
    names = ["x:a", "x:b", *(f"x:r{number}" for number in range(8))]
    rtt_ms, gbps, usd_per_gb = np.full((10, 10), 500.0), np.ones((10, 10)), np.ones((10, 10))
    np.fill_diagonal(rtt_ms, 0.0)
    for relay in range(2, 10):
        rtt_ms[0, relay] = rtt_ms[relay, 1] = 50.0 + relay
        gbps[0, relay] = gbps[relay, 1] = 3.0 - 0.1 * relay
    usd_per_gb[0, 1] = usd_per_gb[9, 1] = 0.0
    network = Network.from_matrices(names, gbps, rtt_ms=rtt_ms)
    asked: dict[str, Any] = {"budget_usd": 150.0, "candidates": candidates, "relays": "one"}
    free_vms = FlatPrices(names, usd_per_gb, 0.0)
    plan = planned(network, free_vms, volume_gb=100.0, objective=objective, **asked)
    assert plan.best_relay.relay == "x:r7"
    assert plan.best_relay.cost_usd.total == near(100.0)


# ---- small volumes, of which getting up to speed is most of the time ---------------------------


def stated(gbps: Any, rtt_ms: Any, **more: Any) -> relayd.Wan:
    found = {"aggregate_gbps": gbps, "rtt_ms": rtt_ms, "usd_per_gb": 0.02, "vm_usd_per_h": 1.5}
    return relayd.open({"regions": list("abcd"), **found, **more})


def test_the_relay_that_ends_sooner_goes_before_the_faster_one() -> None:
    gbps = [[0, 4.75, 4.5, 5], [1, 0, 1, 1], [1, 4.5, 0, 1], [1, 5, 1, 0.0]]
    rtt_ms = [[0, 220, 40, 200], [220, 0, 40, 200], [40, 40, 0, 100], [200, 200, 100, 0.0]]
    of: dict[str, Any] = {"vms": 1, "vms_running": True, "objective": "time", "margin": 0}
    plan = stated(gbps, rtt_ms).plan("a", "b", volume_gb=1, relays="one", **of)
    assert plan.best_relay
    assert plan.best_relay.relay == "c"
    assert plan.duration_s == plan.best_relay.duration_s == pytest.approx(8 / 4.5 + 8.5 * 0.08)


def test_a_split_does_not_wait_for_a_path_that_brings_less() -> None:
    gbps = [[0, 4, 4, 2], [1, 0, 1, 1], [1, 4, 0, 1], [1, 2, 1, 0.0]]
    rtt_ms = [[0, 50, 60, 300], [50, 0, 60, 300], [60, 60, 0, 300], [300, 300, 300, 0.0]]
    wan = stated(gbps, rtt_ms, egress_gbps=[20] * 4, ingress_gbps=[20] * 4)
    of: dict[str, Any] = {"vms": 1, "vms_running": True, "objective": "time", "margin": 0}
    plan = wan.plan("a", "b", volume_gb=1, min_throughput_gbps=5, **of)
    assert {path.regions for path in plan.paths} == {("a", "b"), ("a", "c", "b")}
    assert plan.duration_s == pytest.approx(1 + 8.5 * 0.12)
