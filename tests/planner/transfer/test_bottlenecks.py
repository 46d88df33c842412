"""What is said to limit a link or a plan is what limits it, by SciPy's HiGHS."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given

from planner.model.answer import Bottleneck
from planner.model.errors import DataError, InfeasibleError
from planner.model.estimate import exactly
from planner.model.link import Link, Site
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.transfer.plan import Plan
from planner.transfer.problem import Relays, TransferProblem, transfer_problem
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.planner.independent import most_rate_gbps, near
from tests.planner.transfer.strategies import REGIONS, networks, patient, prices, requests

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
    caps = [exactly(0.5 if region == REGIONS[1] else 2.0) for region in REGIONS]
    sites = {
        region: Site(region, "", exactly(2.0), cap, exactly(3.0))
        for region, cap in zip(REGIONS, caps, strict=True)
    }
    links: dict[str, dict[str, Link]] = {region: {} for region in REGIONS}
    for src, dst, mbps, gbps in (
        (REGIONS[0], REGIONS[1], into_mbps, 0.5),
        (REGIONS[1], REGIONS[-1], out_mbps, 1.0),
    ):
        links[src][dst] = Link(src, dst, exactly(20.0), exactly(mbps), exactly(gbps))
    return Network(sites, links)


TO_THE_LAST = TransferRequest(REGIONS[0], REGIONS[-1], volume_gb=1.0, connections=4)


@patient
@given(requests(), networks(), prices())
@example(TO_THE_LAST, over_one_relay(500.0, 500.0), FlatPrices(REGIONS))
@example(TO_THE_LAST, over_one_relay(500.0, 25.0), FlatPrices(REGIONS))
def test_one_more_unit_brings_what_is_said_and_no_other_limit_binds(
    request: TransferRequest, network: Network, price_list: FlatPrices
) -> None:
    try:
        plan = recommend(request, network, price_list)
    except (InfeasibleError, DataError):
        assume(False)
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
