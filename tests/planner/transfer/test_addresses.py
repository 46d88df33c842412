"""Links over public and private addresses in one plan: neither cap of a VM is exceeded."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import inf
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner.model.estimate import AddressKind, Estimate, exactly
from planner.model.link import Link
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.vm_limits import caps_by_kind
from planner.transfer.optimum import fastest, most_rate_gbps
from planner.transfer.problem import transfer_problem
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.planner.networks import stated_network
from tests.planner.transfer.strategies import seeds
from tests.properties import examples

NAMES = ("a:s", "b:d", "a:r", "a:q", "b:t")
FREE = FlatPrices(NAMES)


def private_caps(egress_gbps: float, ingress_gbps: float) -> dict[str, Estimate]:
    return {
        "private_egress_gbps": exactly(egress_gbps),
        "private_ingress_gbps": exactly(ingress_gbps),
    }


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Return a small network whose VMs have other caps over private addresses."""
    random = Random(draw(seeds))
    sites = {}
    for name in NAMES:
        public, private = exactly(random.uniform(2.0, 10.0)), random.uniform(10.0, 40.0)
        caps = {"egress_gbps": public, "ingress_gbps": public}
        sites[name] = {**caps, **private_caps(private, private)}
    pairs = [*itertools.permutations(NAMES, 2)]
    links = {
        pair: {
            "per_flow_mbps": exactly(random.uniform(50.0, 2000.0)),
            "address": random.choice(["public", "private"]),
        }
        for pair in pairs
    }
    rates = {pair: random.uniform(0.5, 30.0) for pair in pairs}
    return stated_network(rates, links=links, sites=sites)


@given(networks(), st.integers(1, 3))
@settings(max_examples=examples(20))
def test_no_plan_exceeds_either_cap_of_a_vm(network: Network, vms: int) -> None:
    request = TransferRequest(NAMES[0], NAMES[1], objective="time", vms=vms)
    whole = transfer_problem(request, network, FREE)
    problem = replace(whole, most_paths=inf, least_part=0.0)
    found = fastest(problem)
    assert found is not None
    flows = {name: found.flows.get(k, 0.0) for k, name in enumerate(NAMES)}
    exact = exact_rate_gbps(network, request.connections, vms)
    assert found.rate_gbps <= exact * (1 + 1e-6)
    assert found.rate_gbps >= most_rate_gbps(problem) * (1 - 1e-6)
    for end, hops, outward, count in (
        (NAMES[0], {NAMES[1]: found.direct_gbps, **relayed(flows)}, True, found.src_vms),
        (NAMES[1], {NAMES[0]: found.direct_gbps, **relayed(flows)}, False, found.dst_vms),
    ):
        of_kind: dict[AddressKind, float] = {"public": 0.0, "private": 0.0}
        for other, gbps in hops.items():
            link = network.link(end, other) if outward else network.link(other, end)
            of_kind[link.address] += gbps
        site = network.sites[end]
        cap_of = site.egress if outward else site.ingress
        most = count * (1 + 1e-6)
        assert of_kind["public"] <= cap_of("public").expected * most
        assert sum(of_kind.values()) <= cap_of("private").expected * most


def relayed(flows: dict[str, float]) -> dict[str, float]:
    return {name: gbps for name, gbps in flows.items() if gbps}


def exact_rate_gbps(network: Network, connections: int, vms: int) -> float:
    """Return the greatest rate with two rows for the caps of each VM, by HiGHS."""
    src, dst = NAMES[:2]
    rows, limits = [], []
    paths = [(src, dst), *((src, via, dst) for via in NAMES[2:])]
    bounds = []
    for path in paths:
        links = [network.link(a, b) for a, b in itertools.pairwise(path)]
        most = [min(link.rate_gbps(connections), *caps(network, link)) for link in links]
        bounds.append((0.0, vms * min(most)))
    for end, at in ((src, 0), (dst, -1)):
        site = network.sites[end]
        cap_of = site.egress if end == src else site.ingress
        ends = [network.link(*(path[:2] if at == 0 else path[-2:])) for path in paths]
        rows.append([1.0 if link.address == "public" else 0.0 for link in ends])
        limits.append(vms * cap_of("public").expected)
        rows.append([1.0] * len(paths))
        limits.append(vms * max(cap_of("private").expected, cap_of("public").expected))
        rows.append([1 / (connections * link.rate_gbps(1)) for link in ends])
        limits.append(vms)
    found = linprog(-np.ones(len(paths)), A_ub=rows, b_ub=limits, bounds=bounds)
    assert found.status == 0
    return float(-found.fun)


def caps(network: Network, link: Link) -> tuple[float, float]:
    source, destination = network.sites[link.src], network.sites[link.dst]
    return source.egress(link.address).expected, destination.ingress(link.address).expected


@given(networks(), st.data())
@settings(max_examples=examples(20))
def test_no_volumes_exceed_either_cap_of_shared_vms(network: Network, data: st.DataObject) -> None:
    """What the weighed row lets through is within both rows."""
    n = len(NAMES)
    egress, ingress, out_weights, in_weights = caps_by_kind(network, NAMES)
    links = np.array(
        data.draw(st.lists(st.floats(0.0, 9.0), min_size=n * n, max_size=n * n))
    ).reshape(n, n)
    np.fill_diagonal(links, 0.0)
    public = np.array(
        [[a != b and network.link(a, b).address == "public" for b in NAMES] for a in NAMES]
    )
    for cap, weights, axis, kind_cap in (
        (egress, out_weights, 1, [site.egress for site in network.sites.values()]),
        (ingress, in_weights, 0, [site.ingress for site in network.sites.values()]),
    ):
        load = (links * weights).sum(axis=axis) / cap
        exact = np.maximum(
            (links * public).sum(axis=axis) / [of("public").expected for of in kind_cap],
            links.sum(axis=axis) / [of("private").expected for of in kind_cap],
        )
        assert (load >= exact * (1 - 1e-9)).all()
        assert (load <= 2 * exact * (1 + 1e-9)).all()


def test_the_cap_of_one_kind_of_address_is_a_bottleneck_of_its_own() -> None:
    src, relay, dst = "azure:c", "aws:a", "gcp:e"
    links = {
        (src, dst): (100.0, "public", "window"),
        (src, relay): (567.5, "private", "path"),
        (relay, dst): (200.0, "private", "vm"),
    }
    caps = {
        relay: (7.8, 1.0, 25.9, 13.6),
        src: (4.7, 19.3, 11.2, 12.2),
        dst: (5.0, 7.8, 12.8, 17.1),
    }
    network = stated_network(
        {(src, dst): 10.3, (src, relay): 4.3, (relay, dst): 5.0},
        links={
            pair: {"per_flow_mbps": exactly(mbps), "address": kind, "limited_by": limit}
            for pair, (mbps, kind, limit) in links.items()
        },
        sites={
            name: {
                "egress_gbps": exactly(egress),
                "ingress_gbps": exactly(ingress),
                **private_caps(*private),
            }
            for name, (egress, ingress, *private) in caps.items()
        },
    )
    request = TransferRequest(
        src, dst, volume_gb=30000, vms=1, vms_in={src: 6}, min_throughput_gbps=9.4
    )
    plan = recommend(request, network, FlatPrices(list(network.sites), 0.05, 1.0))
    found = {(one.constraint, one.region): one.gain_per_unit for one in plan.bottlenecks}
    assert found["ingress cap", dst] == pytest.approx(7.8)
