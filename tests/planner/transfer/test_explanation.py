"""Reasons and limits are true: their figures are the plan's, and what they claim follows."""

from __future__ import annotations

import re
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from planner.model.answer import Bottleneck
from planner.model.errors import DataError, InfeasibleError
from planner.model.estimate import exactly
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.units import gbps_text, rate_text
from planner.transfer.plan import Plan
from planner.transfer.problem import Relays, TransferProblem, transfer_problem
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.planner.independent import most_rate_gbps, near
from tests.planner.networks import stated_network
from tests.planner.transfer.strategies import (
    REGIONS,
    Answered,
    answer,
    answers,
    networks,
    patient,
    prices,
    requests,
)


def relays_alone(
    request: TransferRequest, network: Network, price_list: FlatPrices
) -> tuple[dict[str, float], dict[str, float]]:
    """Return what each relay alone carries at most, and what it then costs, by relay."""
    rates, costs_usd = {}, {}
    for region in REGIONS[1:-1] if request.relays in {"any", "one"} else [request.relays]:
        alone = replace(request, objective="time", budget_usd=None, relays=region)
        try:
            best = recommend(alone, network, price_list).best_relay
        except (InfeasibleError, DataError):
            continue
        if best:
            rates[region], costs_usd[region] = best.throughput_gbps, best.cost_usd.total
    return rates, costs_usd


def gains(request: TransferRequest, network: Network, price_list: FlatPrices) -> list[float]:
    """Return how often each relay carries what the direct path does, with all VMs of both."""
    free = replace(request, budget_usd=None, deadline_s=None, min_throughput_gbps=None)
    rates, _ = relays_alone(free, network, price_list)
    alone = replace(free, objective="time", relays="none")
    direct_gbps = recommend(alone, network, price_list).throughput_gbps
    return [rate / direct_gbps for rate in rates.values()]


def links_of(plan: Plan) -> set[tuple[str, str]]:
    return {
        pair for path in plan.paths for pair in zip(path.regions, path.regions[1:], strict=False)
    }


def is_said(text: str, value: float, digits: int) -> bool:
    """Whether a printed figure is a value's, but for its last digit."""
    return bool(abs(float(text) - value) <= 0.51 * 10**-digits)


def margins(request: TransferRequest, plan: Plan) -> tuple[float, float]:
    """Return the least and the greatest margin that a relay must beat: fees are certain, and free.

    It may have been compared with a direct plan of more VMs, which is better by up to 5 % of all
    but fees.
    """
    direct = plan.direct
    if request.objective == "latency":
        return request.margin, request.margin
    if request.hour_usd == inf or direct.cost_usd is None or direct.duration_s is None:
        return request.margin, request.margin
    fees_usd = direct.cost_usd.egress
    beyond_usd = direct.cost_usd.vm + request.hour_usd * direct.duration_s / 3600
    if fees_usd + beyond_usd <= 0:
        return request.margin, request.margin
    least, most = (usd / (usd + fees_usd or 1.0) for usd in (beyond_usd / 1.05, beyond_usd))
    return request.margin * least, request.margin * most


FEES_OF_RELAYS = np.full((len(REGIONS), len(REGIONS)), 0.02)
FEES_OF_RELAYS[0, -1] = 0.05
"""Direct costs 1.25 times what relays do, and nothing but fees: no margin is left to beat."""

KNOWN = np.full((len(REGIONS), len(REGIONS)), np.nan)
KNOWN[[0, 0, 1], [1, -1, -1]] = [100.0, 50.0, 100.0]
TWICE_AS_FAST = Network.from_matrices(REGIONS, KNOWN / KNOWN * 0.5, per_flow_mbps=KNOWN)
"""One connection of either link of a relay carries twice what one direct connection does."""


@patient
@given(requests(), networks(), prices())
@example(
    TransferRequest(
        REGIONS[0],
        REGIONS[-1],
        volume_gb=1.0,
        time_value_usd_per_h=0.0,
        margin=0.0,
        budget_usd=0.25,
        connections=1,
        vm_start_s=0.0,
    ),
    TWICE_AS_FAST,
    FlatPrices(REGIONS, np.nan_to_num(KNOWN) * (KNOWN == 100) * 0.0014),
)
@example(
    TransferRequest(REGIONS[0], REGIONS[-1], volume_gb=1.0, time_value_usd_per_h=0.0, margin=0.5),
    Network.from_matrices(REGIONS, np.full((len(REGIONS), len(REGIONS)), 5.0)),
    FlatPrices(REGIONS, FEES_OF_RELAYS),
)
def test_a_reason_says_what_follows_from_the_figures(
    request: TransferRequest, network: Network, price_list: FlatPrices
) -> None:
    plan: Any = answer(request, network, price_list).plan
    reason, best = plan.reason, plan.best_relay
    direct_gbps = plan.direct.throughput_gbps
    relays = {region for path in plan.paths for region in path.regions[1:-1]}
    limits = (request.budget_usd, request.deadline_s, request.min_throughput_gbps)

    named = {region for region in REGIONS[1:-1] if region in reason}
    assert named <= relays | {one.relay for one in plan.alternatives} | (
        {best.relay} if best else set()
    ) | ({region for region in REGIONS if best is None or re.search("better|fastest", reason)})
    if relays:
        assert relays <= named

    assert ("Only the direct path was asked for" in reason) == (
        request.relays == "none" and plan.verdict == "direct"
    )
    problem = transfer_problem(request, network, price_list)
    if "No relay path is known or permitted" in reason:
        assert not problem.relays
    if match := re.search(r"The fastest relay, (\S+), carries (\S+)x but costs (\S+) USD", reason):
        assert request.budget_usd
        rates, costs_usd = relays_alone(request, network, price_list)
        assert rates[match[1]] > direct_gbps
        assert rates[match[1]] >= max(rates.values()) * (1 - 1e-9)
        assert costs_usd[match[1]] > request.budget_usd
        alike, _ = relays_alone(
            replace(request, vms=max(plan.direct.vms.values())), network, price_list
        )
        assert is_said(match[2], alike[match[1]] / direct_gbps, 2)
    if "No relay can meet" in reason:
        assert best is None
        assert problem.relays
        assert any(limits)
    if match := re.search(
        r"No relay is (much )?faster: the best, (\S+), carries (\S+)x and costs", reason
    ):
        most = 1.05 if match[1] else 1.0
        assert float(match[3]) <= most + 0.0051
        assert all(gain <= most * (1 + 1e-9) for gain in gains(request, network, price_list))
    if match := re.search(r"The best relay, (\S+), carries ([\d.]+)x but costs ([\d.]+)x", reason):
        assert best.relay == match[1]
        assert is_said(match[2], best.throughput_gbps / direct_gbps, 2)
        if plan.direct.cost_usd.total > 1e-9:
            ratio = best.cost_usd.total / plan.direct.cost_usd.total
            assert abs(float(match[3]) / ratio - 1) < 0.5 or is_said(match[3], ratio, 1)
        assert request.hour_usd < inf
    if match := re.search(r"carries (\S+) Gbit/s where direct carries (\S+?)( |,)", reason):
        assert plan.verdict != "direct"
        assert match[1] == gbps_text(plan.throughput_gbps)
        assert match[2] == gbps_text(direct_gbps)
    if "cannot meet" in reason:
        assert not plan.direct.feasible
        assert any(limits)
    if "Nothing is known of the direct path" in reason:
        assert plan.direct.throughput_gbps is None
    if match := re.search(r"(is only|may be) ([\d.]+)x better in .*, (which does not|but)", reason):
        assert plan.verdict == "direct"
        assert match[3] == ("but" if match[1] == "may be" else "which does not")
        least, most = margins(request, plan)
        if match[1] == "may be":
            assert float(match[2]) >= 1 + least - 0.0051
        else:
            assert float(match[2]) <= 1 + most + 0.0051
    if plan.verdict != "direct" and plan.direct.feasible and request.objective != "latency":
        stated = re.search(r"\(([\d.]+)x to (\S+)x as (?:fast|good)", reason)
        if stated is None:  # infinitely better
            assert plan.cost_usd.total == 0
        else:
            assert float(stated[2]) >= 1 + margins(request, plan)[0] - 0.0051


@patient
@given(answers, st.data())
def test_links_in_use_are_counted_and_those_that_lose_are_named(
    asked: Answered, data: st.DataObject
) -> None:
    losses = {
        (link.src, link.dst): data.draw(st.sampled_from([None, 0.0, 0.5, 1.0, 3.0]))
        for link in asked.network
    }
    lossy = [replace(link, loss_pct=losses[link.src, link.dst]) for link in asked.network]
    network = asked.network.with_(links=asked.network.usual.with_links(lossy))
    plan = recommend(asked.request, network, asked.prices)
    counts = {
        kind: int(number)
        for number, kind in re.findall(
            r"(\d+) (measured|inferred|baseline) links?", plan.confidence
        )
    }
    assert sum(counts.values()) == len(links_of(plan))
    assert rate_text(plan.throughput_gbps_low, plan.throughput_gbps_high) in plan.confidence
    assert ("baseline figures come from models" in plan.confidence) == ("baseline" in counts)
    said = {
        (match[1], match[2])
        for warning in plan.warnings
        if (match := re.match(r"(\S+) -> (\S+) loses", warning))
    }
    assert said == {pair for pair in links_of(plan) if (losses[pair] or 0.0) >= 1.0}


# ---- what limits ---------------------------------------------------------------------------------


STEP = 1e-3
"""Of a VM."""


def limits_of(network: Network, src: str, dst: str, connections: int) -> dict[str, float]:
    """Return what one VM pair can carry at most by each of its limits."""
    link = network.link(src, dst)
    return {
        "path": link.aggregate_gbps.expected,
        "connections": connections * link.per_flow_mbps.expected / 1000,
        "egress cap": network.sites[src].egress_gbps.expected,
        "ingress cap": network.sites[dst].ingress_gbps.expected,
    }


def in_use(
    plan: Plan, request: TransferRequest, network: Network, price_list: FlatPrices
) -> TransferProblem:
    """Return the transfer over a plan's paths and VMs alone."""
    whole = transfer_problem(request, network, price_list)
    regions = list(network.sites)
    return replace(
        whole,
        src=replace(whole.src, quota=plan.vms[request.src]),
        dst=replace(whole.dst, quota=plan.vms[request.dst]),
        direct=whole.direct if any(len(path.regions) == 2 for path in plan.paths) else None,
        relays=Relays.of(
            replace(relay, quota=plan.vms[regions[relay.region or 0]])
            for relay in whole.relays
            if regions[relay.region or 0] in plan.vms
        ),
    )


def resource_of(found: Bottleneck, request: TransferRequest, regions: list[str]) -> str:
    """Return the name that the independent program gives a bottleneck's resource."""
    ends = {request.src: "src", request.dst: "dst"}
    if found.constraint == "relay VM":
        return str(regions.index(found.region))
    if found.region in ends:
        return f"{ends[found.region]} {found.constraint.split()[-1]}"
    src, dst = found.region.split(" -> ")
    if (src, dst) == (request.src, request.dst):
        return "direct path"
    relay = regions.index(dst if src == request.src else src)
    # Connections that the source opens go on over the second link, and accepting holds no VM.
    held_by_source = src == request.src or found.constraint == "connections"
    return f"path into {relay}" if held_by_source else f"path out of {relay}"


def over_one_relay(into_mbps: float, out_mbps: float) -> Network:
    """A relay that accepts 0.5 Gbit/s a VM, as much as its first link carries; no direct link."""
    into, out = (REGIONS[0], REGIONS[1]), (REGIONS[1], REGIONS[-1])
    return stated_network(
        {into: 0.5, out: 1.0},
        cap_gbps=2.0,
        rtt_ms=20.0,
        links={
            into: {"per_flow_mbps": exactly(into_mbps)},
            out: {"per_flow_mbps": exactly(out_mbps)},
        },
        sites={REGIONS[1]: {"ingress_gbps": exactly(0.5)}},
    )


TO_THE_LAST = TransferRequest(REGIONS[0], REGIONS[-1], volume_gb=1.0, connections=4)


@patient
@given(requests(), networks(), prices())
@example(TO_THE_LAST, over_one_relay(500.0, 500.0), FlatPrices(REGIONS))
@example(TO_THE_LAST, over_one_relay(500.0, 25.0), FlatPrices(REGIONS))
def test_one_more_unit_brings_what_is_said_and_no_other_limit_binds(
    request: TransferRequest, network: Network, price_list: FlatPrices
) -> None:
    plan = answer(request, network, price_list).plan
    if plan.verdict == "direct":
        (found,) = plan.bottlenecks
        limits = limits_of(network, request.src, request.dst, request.connections)
        gain = limits[found.constraint]
        if found.constraint == "connections":
            gain /= request.connections
        assert found.gain_per_unit == near(gain, 3e-6)
        assert gain <= min(limits.values()) * (1 + 3e-6)
        return
    problem = in_use(plan, request, network, price_list)
    said = dict.fromkeys(["src connections", "dst connections", "src cap", "dst cap"], 0.0)
    said["direct path"] = 0.0
    regions = list(network.sites)
    for relay in problem.relays:
        for name in (str(relay.region), f"path into {relay.region}", f"path out of {relay.region}"):
            said[name] = 0.0
    for found in plan.bottlenecks:
        name = resource_of(found, request, regions)
        assert said[name] == 0.0
        said[name] = found.gain_per_unit
        if found.constraint in {"path", "connections"} and "->" in found.region:
            src, dst = found.region.split(" -> ")
            limits = limits_of(network, src, dst, request.connections)
            first = limits
            if dst == request.dst != src != request.src and found.constraint == "connections":
                first = limits_of(network, request.src, src, request.connections)
            if src == request.src or first is not limits:  # what a destination accepts is no matter
                least = min(first["path"], first["connections"])
                assert limits[found.constraint] <= least * (1 + 1e-9)
    assert any(said.values())
    rate_gbps = most_rate_gbps(problem)
    slack_gbps = 1e-7 * rate_gbps
    for name, gain in said.items():
        # The rate is concave in what there is: a step up brings no more, one down costs no less.
        up = most_rate_gbps(problem, {name: STEP}) - rate_gbps
        down = rate_gbps - most_rate_gbps(problem, {name: -STEP})
        assert up <= gain * STEP * (1 + 1e-6) + slack_gbps, name
        assert down >= gain * STEP * (1 - 1e-6) - slack_gbps, name


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ("egress", "egress cap of a"),
        ("ingress", "ingress cap of b"),
        ("flow", "64 connections a -> b"),
        ("path", "path a -> b"),
    ],
)
def test_a_path_names_its_narrowest_link(changed: str, words: str) -> None:
    small = 2.0
    gbps = np.full((2, 2), small if changed == "path" else 9.0)
    network = Network.from_matrices(
        ["a", "b"],
        gbps,
        per_flow_mbps=np.full((2, 2), small / 64 * 1000 if changed == "flow" else 900.0),
        egress_gbps=[small if changed == "egress" else 8.0, 8.0],
        ingress_gbps=[8.0, small if changed == "ingress" else 8.0],
    )
    request = TransferRequest("a", "b", volume_gb=100.0)
    plan = recommend(request, network, FlatPrices(["a", "b"], 0.02, 1.0))
    assert plan.paths[0].bottleneck.startswith(words)
    assert "2.00 Gbit/s a VM" in plan.paths[0].bottleneck
