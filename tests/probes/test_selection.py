"""The frugal choice: sound tasks, and plans almost as good as with everything measured."""

from __future__ import annotations

import csv
from functools import cache
from itertools import pairwise, permutations, product

from planner.network import Network, Snapshot
from planner.pricing import CataloguePrices
from planner.recommendation import recommend
from planner.request import Objective, TransferRequest
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


def throughput_per_usd(believed: Network, truth: Network, objective: Objective) -> float:
    """What plans made on beliefs really carry for a dollar, over what plans on the truth do.

    Plans are `relayd plan`'s own, for 500 GB with one VM a region, over half of the regions.
    """
    names = list(truth.sites)
    made, best = 0.0, 0.0
    for src, dst in product(names[::2], names[1::2]):
        request = TransferRequest(src, dst, volume_gb=500.0, objective=objective, relays="one")
        for network, total in ((believed, "made"), (truth, "best")):
            plan = recommend(request, network, CataloguePrices(CATALOGUE, network))
            # By the truth, a path carries what its slowest leg does.
            carried = max(
                min(truth.leg(a, b).rate_gbps(64) for a, b in pairwise(path.regions))
                for path in plan.paths
            )
            per_usd = carried / plan.cost_usd.total
            if total == "made":
                made += per_usd
            else:
                best += per_usd
    return made / best


def test_frugal_plans_are_nearly_as_good_for_a_twentieth_of_the_bytes() -> None:
    regions, _, tests = grid()
    assert len(regions) > 30
    truth = network_of(list(tests.values()))

    def volume_gb(pair: Pair) -> float:
        return truth.leg(*pair).rate_gbps(64) * 5.0 / 8

    everything_gb = sum(map(volume_gb, permutations(regions, 2)))
    region_of = {region: region for region in regions}
    samples: list[Sample] = []
    measured_gb = 0.0
    while True:
        network = network_of(samples)
        prices = CataloguePrices(CATALOGUE, network)
        choice = choose_legs(region_of, network, prices, batch=5)
        batch_gb = sum(volume_gb(task.pairs[0]) for task in choice.tasks)
        if not choice.tasks or (measured_gb + batch_gb) * 20 > everything_gb:
            break
        assert choice.regret_after <= choice.regret
        measured_gb += batch_gb
        samples += [tests[task.pairs[0]] for task in choice.tasks if task.pairs[0] in tests]
    assert len(samples) >= 20
    assert throughput_per_usd(network, truth, "value") >= 0.98
    unmeasured = throughput_per_usd(network_of([]), truth, "time")
    assert throughput_per_usd(network, truth, "time") >= max(0.95, unmeasured)


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
