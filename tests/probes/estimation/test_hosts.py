"""Windows of hosts as they come and of tuned ones, held against open measurements of 2022."""

from __future__ import annotations

import csv
from functools import cache
from statistics import mean, median

import pytest

from planner.model.baseline.changed_hosts import with_tuned_hosts, with_vm_types
from planner.model.estimate import BOUNDS
from planner.model.network import Network, Snapshot
from planner.model.throughput import flow_share_of_steady, law_of, stock_window_mb
from probes.estimation import Estimator
from probes.samples import Sample, Samples
from tests.probes.estimation.cross_validation import (
    CATALOGUE,
    JANUARY,
    JANUARY_S,
    Pair,
    estimated,
    grid,
    providers,
    round_trips,
    steady,
)
from tests.shared_data import shared

UNTUNED = "aggregate_untuned_2022-01-17_part.csv"
FAR_MS = 200.0


def rtt_ms(pair: Pair) -> float:
    return round_trips().get(pair) or round_trips().get(pair[::-1]) or 0.0


@cache
def untuned() -> dict[Pair, float]:
    """Return steady rates of 64 connections between hosts as they come."""
    return {
        pair: steady(pair, received)
        for pair, received in grid(UNTUNED).items()
        if unmeasured().usual.link(*pair)
    }


@cache
def unmeasured() -> Network:
    return estimated([])


def test_far_links_of_hosts_as_they_come_end_where_their_windows_do() -> None:
    """Nothing was measured but round trips. With the laws alone, azure > azure is 140 % off."""
    errors: dict[str, list[float]] = {}
    held = []
    for pair, gbps in untuned().items():
        if rtt_ms(pair) > FAR_MS:
            found = unmeasured().link(*pair).aggregate_gbps
            errors.setdefault(providers(pair), []).append(abs(found.expected / gbps - 1))
            held.append(found.low <= gbps <= found.high)
    assert len(held) > 50
    assert mean(held) >= 0.8
    assert median(error for of in errors.values() for error in of) < 0.1
    for limited in ("aws > aws", "azure > azure", "gcp > aws"):
        assert median(errors[limited]) < 0.1, limited
    # What no receiver's window explains: senders on Google Cloud keep less in flight.
    for limited in ("gcp > azure", "gcp > gcp"):
        assert median(errors[limited]) < 0.15, limited


def test_tests_of_hosts_as_they_come_are_no_news_of_the_law() -> None:
    """Windows explain them: links too near for windows to matter stay as they were."""
    far = [pair for pair in untuned() if rtt_ms(pair) > FAR_MS and providers(pair) == "aws > aws"]
    tests = [
        Sample(*pair, "aggregate_mbps", 1000 * untuned()[pair], JANUARY_S, "test", 64, 60.0, True)
        for pair in far
    ]
    rtts = [Sample(*pair, "rtt_ms", rtt_ms(pair), JANUARY_S, "ping") for pair in untuned()]
    network = network_of([*tests, *rtts])
    for pair in far:
        link = network.link(*pair)
        assert link.limited_by == "window"
        assert link.aggregate_gbps.expected == pytest.approx(untuned()[pair], rel=0.1)
    near = network.link("aws:us-east-1", "aws:us-west-2").aggregate_gbps
    assert near.expected == pytest.approx(4.84, rel=0.02)


@pytest.mark.parametrize("stated", [True, False])
def test_hosts_are_tuned_where_tests_state_or_show_it(stated: bool) -> None:
    """Of the tuned grid, a few links into each type: the others are not held to stock windows."""
    measured = sorted(grid(JANUARY))[::40]
    network = estimated(measured, stated=stated)
    errors = []
    for pair in set(grid(JANUARY)) - set(measured):
        if rtt_ms(pair) > FAR_MS and providers(pair) in {"aws > aws", "gcp > aws"}:
            found = network.link(*pair).aggregate_gbps
            errors.append(abs(found.expected / steady(pair, grid(JANUARY)[pair]) - 1))
    assert len(errors) > 250
    assert median(errors) < 0.07
    into = network.sites["aws:eu-west-1"].window_mb
    assert into.origin.method == "windows-of-tests"
    assert into.expected > 1.5 * stock_window_mb("aws")


def test_one_flow_of_a_vm_type_tells_of_all_receivers_of_the_type() -> None:
    """Single flows of t2.medium (WANify): median error below 10 %, 90 % with Linux's default."""
    with shared("simultaneous_flows_wanify_part.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if int(row["num_dcs"]) <= 4]
    flows = {(row["src"], row["dst"]): float(row["median_received_mbps"]) for row in rows}
    rtts = [Sample(*pair, "rtt_ms", rtt_ms(pair), JANUARY_S, "ping") for pair in flows]
    vm, type_id = "t3.medium", "aws:t3.medium"
    errors = []
    for probed in [pair for pair in flows if 60 <= rtt_ms(pair) <= 250][::4]:
        one = Sample(*probed, "per_flow_mbps", flows[probed], JANUARY_S, "iperf3", 1, 20.0)
        one = one._replace(src_vm=vm, dst_vm=vm)
        network = with_vm_types(network_of([*rtts, one]), CATALOGUE, {"aws": type_id})
        for pair in set(flows) - {probed}:
            window_mb = network.sites[pair[1]].window_mb
            assert window_mb.origin.method in {"flows-into-vm-type", "flows-into-region"}
            shown = network.link(*pair).per_flow_mbps.expected
            shown *= flow_share_of_steady(window_mb.expected, rtt_ms(pair), 20.0)
            errors.append(abs(shown / flows[pair] - 1))
    assert len(errors) > 100
    assert median(errors) < 0.1


def test_what_senders_keep_in_flight_is_of_hosts_as_they_come() -> None:
    """A receiver that was measured, or raised, was so with its senders."""
    near, far = ("gcp:us-east1", "gcp:us-west1"), ("gcp:us-east1", "azure:australiaeast")
    rtts = [Sample(*pair, "rtt_ms", ms, JANUARY_S, "ping") for pair, ms in ((near, 60), (far, 200))]
    network = network_of(rtts)
    assert network.link(*far).per_flow_mbps.expected == pytest.approx(8 * 2.0 / 0.2)
    assert network.link(*far[::-1]).per_flow_mbps.expected == pytest.approx(8 * 3.0 / 0.2)
    flow = Sample(*far, "per_flow_mbps", 8 * 3.0 / 0.25, JANUARY_S, "iperf3", 1, 60.0, True)
    other = ("gcp:us-west1", far[1])
    known = network_of([*rtts, flow, Sample(*other, "rtt_ms", 250.0, JANUARY_S, "ping")])
    window_mb = known.sites[far[1]].window_mb.expected
    assert known.link(*other).per_flow_mbps.expected == pytest.approx(8 * window_mb / 0.25)
    tuned = with_tuned_hosts(network, CATALOGUE)
    assert tuned.link(*near).per_flow_mbps.expected > 10 * network.link(*near).per_flow_mbps.low


def test_raised_windows_change_what_windows_limit_and_nothing_else() -> None:
    pair, near = ("azure:australiaeast", "azure:brazilsouth"), ("aws:us-east-1", "aws:us-west-2")
    own = Sample(*pair, "rtt_ms", 303.0, JANUARY_S, "ping")
    measured = Sample(*near, "aggregate_mbps", 4000.0, JANUARY_S, "test", 64, 60.0, True)
    network = network_of([own, measured])
    tuned = with_tuned_hosts(network, CATALOGUE)
    before, after = (found.link(*pair) for found in (network, tuned))
    assert before.limited_by == "window"
    assert before.aggregate_gbps.expected == pytest.approx(64 * 8 * 3.0 / 303)
    law = law_of(*pair)
    assert law
    assert after.aggregate_gbps.expected == pytest.approx(float(law.steady_gbps(303.0)))
    assert after.rtt_ms == before.rtt_ms
    assert tuned.link(*near).aggregate_gbps == network.link(*near).aggregate_gbps
    assert tuned.link(*near).per_flow_mbps.expected > network.link(*near).per_flow_mbps.expected
    for link in tuned:
        for bound in BOUNDS:
            assert (
                link.rate_gbps(64, bound)
                >= 0.99 * network.link(link.src, link.dst).rate_gbps(64, bound)
                or network.link(link.src, link.dst).per_flow_mbps.source == "measured"
            )
    assert list(with_tuned_hosts(tuned, CATALOGUE)) == list(tuned)


def network_of(samples: list[Sample]) -> Network:
    return Estimator(Samples.of(samples), CATALOGUE).network(Snapshot("t", "", ""))
