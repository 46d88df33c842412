"""The frugal choice: sound tasks, and plans almost as good as with everything measured."""

from __future__ import annotations

import csv
import re
from bisect import bisect
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, permutations, product
from pathlib import Path
from random import Random
from statistics import mean, stdev

import pytest

from benchmarks.achieved import Achieved, achieved
from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices
from planner.transfer.request import Objective
from probes.campaign.costing import Allowance, Meter, frugal_allowance, task_volume_gb
from probes.campaign.regret import RateMatrices, regret_on, regret_once_measured
from probes.campaign.rounds import schedule
from probes.campaign.selection import ENOUGH, cap_tasks, choose_links, per_flow_tasks
from probes.estimation import Estimator
from probes.samples import Sample, Samples
from tests.probes.campaign.everything import all_pairs_tasks
from tests.shared_data import grid_catalogue, shared

CATALOGUE = grid_catalogue()
PRICE = Meter(CATALOGUE).price
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
        r.id
        for r in CATALOGUE.regions.values()
        if r.baseline and any(r.id in pair for pair in tests)
    ]
    rtts = {}
    with shared("rtt_2022-04.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["rtt_clean_ms"]:
                rtts[row["src"], row["dst"]] = float(row["rtt_clean_ms"])
    return regions, rtts, {p: s for p, s in tests.items() if set(p) <= set(regions)}


def network_of(samples: list[Sample]) -> Network:
    regions, rtts, _ = grid()
    pings = (
        Sample(*pair, "rtt_ms", ms, WHEN_S, "ping")
        for pair, ms in rtts.items()
        if set(pair) <= set(regions)
    )
    estimator = Estimator(Samples.of([*pings, *samples]), CATALOGUE)
    return estimator.network(Snapshot("t", "", "")).with_(restricted_to=regions)


@cache
def measured() -> Network:
    """Return what is known once each link was tested."""
    return network_of(list(grid()[2].values()))


@cache
def unmeasured() -> Network:
    """Return what is known from round trips alone."""
    return network_of([])


@dataclass(frozen=True)
class Frugal:
    """The result of a frugal campaign on the grid."""

    network: Network
    links: int
    share_of_bytes: float
    share_of_usd: float


@cache
def frugal() -> Frugal:
    """Choose links on what is known, and measure them on the grid, until nothing is left to spend.

    Bytes and dollars are those that the grid's own rates move, not those that were expected.
    """
    regions, _, tests = grid()
    truth = network_of(list(tests.values()))
    prices = CataloguePrices(CATALOGUE, truth)

    def volume_gb(pair: Pair) -> float:
        return truth.link(*pair).rate_gbps(64) * 5.0 / 8

    def usd(pair: Pair) -> float:
        return volume_gb(pair) * prices.egress_usd_per_gb(*pair, volume_gb(pair))

    region_of = {region: region for region in regions}
    samples: list[Sample] = []
    spent_gb = spent_usd = 0.0
    network = network_of(samples)
    everything = all_pairs_tasks(regions, lambda s, d: network.link(s, d).rate_gbps(64))
    allowance = frugal_allowance(everything, region_of, PRICE)
    while True:
        choice = choose_links(
            region_of, network, PRICE, allowance=allowance.after(spent_usd, spent_gb)
        )
        if not choice.tasks:
            break
        for task in choice.tasks:
            (pair,) = task.pairs
            spent_gb += volume_gb(pair)
            spent_usd += usd(pair)
            samples += [tests[pair]] if pair in tests else []
        network = network_of(samples)
    pairs = list(permutations(regions, 2))
    return Frugal(
        network,
        len(samples),
        spent_gb / sum(map(volume_gb, pairs)),
        spent_usd / sum(map(usd, pairs)),
    )


@cache
def plans_on(how: str, objective: Objective) -> Achieved:
    """Return the share of the best plans' rate, without measurements or after a frugal campaign."""
    believed = frugal().network if how == "frugally" else unmeasured()
    return achieved(believed, measured(), lambda n: CataloguePrices(CATALOGUE, n), objective)


@pytest.mark.thorough
def test_frugal_plans_are_nearly_as_good_for_a_twentieth_of_the_bytes() -> None:
    """Links are chosen by the decisions of plans; by sure gains, it made them cheaper alone."""
    found = frugal()
    assert len(grid()[0]) > 30
    assert found.links >= 20
    assert found.share_of_bytes <= 1 / 20
    assert found.share_of_usd <= 1 / 20
    plans = plans_on("frugally", "value")
    assert plans.per_usd >= 0.98
    assert plans.per_usd_p10 >= 0.98
    assert plans.rate >= 0.98
    before = plans_on("nothing", "time")
    after = plans_on("frugally", "time")
    assert after.per_usd >= before.per_usd + 0.02
    assert after.per_usd_p10 >= before.per_usd_p10 + 0.1
    assert after.rate >= before.rate + 0.01
    assert after.rate >= 0.975


def test_hosts_of_regions_without_figures_are_left_out() -> None:
    regions, _, tests = grid()
    network = network_of(list(tests.values())[:40])
    hosts = {f"host-{i}": region for i, region in enumerate(regions)}
    more = {**hosts, "newcomer": "gcp:nowhere9"}
    assert per_flow_tasks(more, network) == per_flow_tasks(hosts, network)
    assert cap_tasks(more, network) == cap_tasks(hosts, network)
    links = [(regions[0], regions[1])]
    unknown = [("gcp:nowhere9", regions[0]), (regions[0], "gcp:nowhere9")]
    assert regret_once_measured(network, regions, links + unknown, 64) == regret_once_measured(
        network, regions, links, 64
    )


@pytest.mark.thorough
def test_the_regret_that_measuring_saves_is_foretold_as_the_docs_say() -> None:
    page = (Path(__file__).parents[3] / "docs" / "measuring-method.md").read_text()
    regions, _, _ = grid()
    nothing, everything = unmeasured(), measured()
    truth = RateMatrices.of(everything, regions, 64).expected
    before = regret_once_measured(nothing, regions, (), 64)

    def points(network: Network) -> tuple[float, float]:
        """Return the forecast and the true saving of measuring a network's links, in percent."""
        links = [(link.src, link.dst) for link in network if link.aggregate_gbps.samples]
        foretold = before - regret_once_measured(nothing, regions, links, 64)
        rates = [RateMatrices.of(known, regions, 64) for known in (nothing, network)]
        saved = regret_on(rates[0], truth) - regret_on(rates[1], truth)
        return 100 * foretold, 100 * saved

    frugally, wholly = points(frugal().network), points(everything)
    assert "foretold to save {:.1f} percentage points and saved {:.1f};".format(*frugally) in page
    assert "foretold to save {:.1f} and saved {:.1f},".format(*wholly) in page


@pytest.mark.thorough
def test_links_to_blame_save_more_regret_than_links_by_chance_for_the_same_money(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On fleets of parts of the grid: one campaign is one draw, and by chance links do as well."""
    page = (Path(__file__).parents[3] / "docs" / "measuring-method.md").read_text()
    regions, rtts, all_tests = grid()
    chosen, by_money, by_count = [], [], []
    for number in range(10):
        fleet = sorted(Random(100 + number).sample(regions, 24))
        tests = {pair: test for pair, test in all_tests.items() if {*pair} <= {*fleet}}
        with monkeypatch.context() as patched:
            patched.setitem(globals(), "grid", lambda of=(fleet, rtts, tests): of)
            frugal.cache_clear()
            found = _saved(frugal().network, tests)
        chosen.append(found[0])
        by_money.append(found[1])
        by_count.append(found[2])
    frugal.cache_clear()
    over = [own - other for own, other in zip(chosen, by_money, strict=True)]
    error = stdev(over) / len(over) ** 0.5
    assert mean(over) > 2 * error
    shown = (
        f"saved {mean(chosen):.1f} points in the mean of ten; links drawn by chance saved "
        f"{mean(by_money):.1f} for as much money, which is {mean(over):.1f} less (standard error "
        f"{error:.1f}), and as many links by chance {mean(by_count):.1f}"
    )
    assert shown in page, shown


def _saved(frugally: Network, tests: dict[Pair, Sample]) -> tuple[float, float, float]:
    """Return the points of regret that a campaign saves, and links by chance of as much money.

    The third is of as many links by chance; both are means of eight draws.
    """
    regions, everything = grid()[0], network_of(list(tests.values()))
    truth = RateMatrices.of(everything, regions, 64).expected
    prices = CataloguePrices(CATALOGUE, everything)
    before = regret_on(RateMatrices.of(network_of([]), regions, 64), truth)

    def usd(pair: Pair) -> float:
        gb = everything.link(*pair).rate_gbps(64) * 5.0 / 8
        return gb * prices.egress_usd_per_gb(*pair, gb)

    def saved(network: Network) -> float:
        return 100 * (before - regret_on(RateMatrices.of(network, regions, 64), truth))

    links = [(link.src, link.dst) for link in frugally if link.aggregate_gbps.samples]
    by_money, by_count = [], []
    for seed in range(8):
        order = sorted(tests)
        Random(seed).shuffle(order)
        within = bisect(list(accumulate(map(usd, order))), sum(map(usd, links)))
        by_money.append(saved(network_of([tests[pair] for pair in order[:within]])))
        by_count.append(saved(network_of([tests[pair] for pair in order[: len(links)]])))
    return saved(frugally), mean(by_money), mean(by_count)


@pytest.mark.thorough
def test_the_docs_have_these_figures() -> None:
    page = (Path(__file__).parents[3] / "docs" / "measuring-method.md").read_text()
    found = frugal()
    objectives: tuple[Objective, ...] = ("value", "time")
    for objective, how in product(objectives, ("nothing", "frugally")):
        plans = plans_on(how, objective)
        (row,) = re.findall(rf"^\| `{objective}` \| {how} \| (.*) \|$", page, re.MULTILINE)
        shown = [float(cell.removesuffix(" %")) for cell in row.split(" | ")]
        figures = (plans.per_usd, plans.per_usd_p10, plans.rate, plans.rate_p10)
        assert shown == pytest.approx([100 * figure for figure in figures], abs=0.1)
    parts = (round(1 / found.share_of_bytes), round(1 / found.share_of_usd))
    assert f"{found.links} links, for 1/{parts[0]} of the bytes and 1/{parts[1]} of the" in page


def test_links_that_have_drifted_are_measured_again_and_others_are_not() -> None:
    region_of = {region: region for region in grid()[0]}

    def again(days: float) -> set[tuple[str, str]]:
        """Pairs of providers whose links are chosen when tests are so old."""
        known = measured().with_(aged_to_s=WHEN_S + 86400 * days)
        tasks = choose_links(region_of, known, PRICE, threshold=0.0).tasks
        ends = [[host.partition(":")[0] for host in task.pairs[0]] for task in tasks]
        return {(src, dst) for src, dst in ends}

    assert again(0) == set()
    assert ("azure", "azure") in again(30)  # a quarter of a year of memory
    assert ("aws", "aws") not in again(30)  # ten years


def test_a_small_fleet_may_spend_what_a_few_links_take() -> None:
    for count, share in ((4, 1.0), (8, 24 / 56), (40, 1 / 30)):
        regions = [r.id for r in CATALOGUE.regions.values() if r.baseline][:count]
        tasks = all_pairs_tasks(regions, lambda s, d: 4.0)
        allowance = frugal_allowance(tasks, {r: r for r in regions}, PRICE)
        assert allowance.gb == pytest.approx(share * sum(map(task_volume_gb, tasks)))
        assert allowance.after(1e9, allowance.gb / 2).gb == pytest.approx(allowance.gb / 2)
        assert allowance.after(1e9, 0.0).usd == 0


def test_tasks_are_of_the_fleet_and_of_the_right_kind() -> None:
    regions, _, _ = grid()
    network = unmeasured()
    hosts = {f"host-{i}": region for i, region in enumerate(regions)}
    flows = per_flow_tasks(hosts, network)
    assert 3 <= len(flows) <= 9
    for task in flows:
        ((src, dst),) = task.pairs
        assert 60 <= network.link(hosts[src], hosts[dst]).rtt_ms.expected <= 250
    for task in cap_tasks(hosts, network):
        sources, destinations = {a for a, _ in task.pairs}, {b for _, b in task.pairs}
        assert min(len(sources), len(destinations)) == 1
        assert 2 <= max(len(sources), len(destinations)) <= 4


def test_caps_of_all_vms_take_the_fewest_peers_that_show_them_in_turn() -> None:
    regions, _, _ = grid()
    network = measured()
    hosts = {f"host-{i}": region for i, region in enumerate(regions)}
    tasks = cap_tasks(hosts, network, every=True)
    hubs: list[tuple[str, bool]] = []
    for task in tasks:
        outwards = len({src for src, _ in task.pairs}) == 1
        hub = hosts[task.pairs[0][0 if outwards else 1]]
        hubs.append((hub, outwards))
        site = network.sites[hub]
        cap = site.egress_gbps if outwards else site.ingress_gbps
        surely = [
            network.link(hosts[src], hosts[dst]).rate_gbps(64, "low") for src, dst in task.pairs
        ]
        assert 2 <= len(task.pairs) <= 4
        assert sum(surely) >= ENOUGH * cap.expected or len(task.pairs) == 4
        assert sum(surely[:-1]) < ENOUGH * cap.expected or len(task.pairs) == 2
    assert Counter(hubs) == Counter(product(regions, (True, False)))
    # One VM takes part in 2 of its own; the peers of all are spread over all that are fit.
    rounds = schedule(tasks)
    busiest = max(Counter(host for task in tasks for host in task.hosts).values())
    assert len(rounds) <= busiest + 2
    assert len(rounds) <= len(regions) / 2


def test_it_stops_when_nothing_is_left_to_learn_or_to_spend() -> None:
    region_of = {region: region for region in grid()[0]}
    assert choose_links(region_of, measured(), PRICE).tasks == []
    unknown = unmeasured()
    for nothing in (Allowance(usd=0.0), Allowance(gb=0.0)):
        broke = choose_links(region_of, unknown, PRICE, allowance=nothing)
        assert broke.tasks == []
        assert "budget" in broke.reason
    first = choose_links(region_of, unknown, PRICE, batch=5)
    assert first.tasks == choose_links(region_of, unknown, PRICE, batch=5).tasks
    assert 1 <= len(first.tasks) <= 5
