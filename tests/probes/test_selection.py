"""The frugal choice: sound tasks, and plans almost as good as with everything measured."""

from __future__ import annotations

import csv
from functools import cache

import numpy as np

from planner.network import Network, Snapshot
from planner.pricing import CataloguePrices
from probes.campaign.costing import all_pairs_tasks
from probes.campaign.selection import cap_tasks, choose_legs, per_flow_tasks, rtt_tasks
from probes.estimation import Estimator
from probes.samples import Sample
from relayd.catalogue import load_catalogue
from tests.shared_data import shared

CATALOGUE = load_catalogue()
WHEN_S = 1_650_000_000.0
Pair = tuple[str, str]


@cache
def grid() -> tuple[list[str], dict[Pair, float], dict[Pair, Sample]]:
    """Regions of the catalogue on the January 2022 grid, their RTTs, and one test of each pair."""
    tests: dict[Pair, Sample] = {}
    with shared("aggregate_2022-01.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["throughput_received_gbps"]:
                mbps = 1000 * float(row["throughput_received_gbps"])
                tests[row["src"], row["dst"]] = Sample(
                    row["src"], row["dst"], "aggregate_mbps", mbps, WHEN_S, "iperf3", 64, 5.0
                )
    regions = [
        r.id for r in CATALOGUE.regions.values()
        if r.baseline and any(r.id in pair for pair in tests)
    ]  # fmt: skip
    rtts = {}
    with shared("rtt_2022-04.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["rtt_clean_ms"]:
                rtts[row["src"], row["dst"]] = float(row["rtt_clean_ms"])
    return regions, rtts, {p: s for p, s in tests.items() if set(p) <= set(regions)}


def network_of(samples: list[Sample]) -> Network:
    regions, rtts, _ = grid()
    estimator = Estimator(CATALOGUE)
    estimator.add(
        Sample(*pair, "rtt_ms", ms, WHEN_S, "ping")
        for pair, ms in rtts.items()
        if set(pair) <= set(regions)
    )
    estimator.add(samples)
    return estimator.network(Snapshot("t", "", "")).restricted_to(regions)


def rates(network: Network) -> np.ndarray:
    names = list(network.sites)
    found = np.zeros((len(names), len(names)))
    for leg in network:
        found[network.index[leg.src], network.index[leg.dst]] = leg.rate_gbps(64)
    return found


def achieved_share(believed: np.ndarray, truth: np.ndarray) -> float:
    """Mean share of the best possible throughput that plans made on beliefs reach."""
    shares = []
    for src in range(len(truth)):
        for dst in range(len(truth)):
            if src == dst or truth[src, dst] <= 0:
                continue

            def plan(r: np.ndarray, src: int = src, dst: int = dst) -> tuple[int, float]:
                through = np.minimum(r[src], r[:, dst])
                relay = int(through.argmax())
                return (relay, through[relay]) if through[relay] > 1.1 * r[src, dst] else (-1, 0.0)

            relay = plan(believed)[0]
            best = plan(truth)[0]
            got, could = (
                truth[src, dst] if way < 0 else min(truth[src, way], truth[way, dst])
                for way in (relay, best)
            )
            shares.append(got / could)
    return float(np.mean(shares))


def test_frugal_plans_are_nearly_as_good_for_a_twentieth_of_the_money() -> None:
    regions, _, tests = grid()
    assert len(regions) > 30
    truth_network = network_of(list(tests.values()))
    truth = rates(truth_network)
    region_of = {region: region for region in regions}
    samples: list[Sample] = []
    spent_usd = volume_gb = 0.0
    for _ in range(30):
        network = network_of(samples)
        prices = CataloguePrices(CATALOGUE, network)
        choice = choose_legs(region_of, network, prices, budget_usd=15.0 - spent_usd)
        if not choice.tasks:
            break
        assert choice.regret_after <= choice.regret
        for task in choice.tasks:
            (pair,) = task.pairs
            gb = truth_network.leg(*pair).rate_gbps(64) * task.duration_s / 8
            volume_gb += gb
            spent_usd += gb * prices.egress_usd_per_gb(*pair, gb)
            if pair in tests:
                samples.append(tests[pair])
    everything = all_pairs_tasks(regions, lambda a, b: 5.0, connections=64, duration_s=5.0)
    yardstick_gb = sum(
        truth_network.leg(*task.pairs[0]).rate_gbps(64) * 5.0 / 8 for task in everything
    )
    share = achieved_share(rates(network_of(samples)), truth)
    print(
        f"{len(samples)} legs, {volume_gb:.0f} GB of {yardstick_gb:.0f}, {spent_usd:.2f} USD, {share:.4f}"
    )
    assert share >= 0.98
    assert share > achieved_share(rates(network_of([])), truth)
    assert volume_gb * 20 <= yardstick_gb


def test_tasks_are_of_the_fleet_and_of_the_right_kind() -> None:
    regions, _, _ = grid()
    network = network_of([])
    hosts = {f"host-{i}": region for i, region in enumerate(regions)}
    assert len(rtt_tasks(list(hosts))) == len(hosts) * (len(hosts) - 1) / 2
    flows = per_flow_tasks(hosts, network)
    assert 3 <= len(flows) <= 9
    for task in flows:
        ((src, dst),) = task.pairs
        assert 60 <= network.leg(hosts[src], hosts[dst]).rtt_ms.expected <= 250
    for task in cap_tasks(hosts, network):
        sources, destinations = {a for a, _ in task.pairs}, {b for _, b in task.pairs}
        assert min(len(sources), len(destinations)) == 1
        assert 2 <= max(len(sources), len(destinations)) <= 4


def test_it_stops_when_nothing_is_left_to_learn_or_to_spend() -> None:
    regions, _, tests = grid()
    region_of = {region: region for region in regions}
    known = network_of(list(tests.values()))
    prices = CataloguePrices(CATALOGUE, known)
    assert choose_legs(region_of, known, prices).tasks == []
    unknown = network_of([])
    broke = choose_legs(region_of, unknown, prices, budget_usd=0.0)
    assert broke.tasks == []
    assert "budget" in broke.reason
    first = choose_legs(region_of, unknown, prices, batch=5)
    assert first.tasks == choose_legs(region_of, unknown, prices, batch=5).tasks
    assert 1 <= len(first.tasks) <= 5
