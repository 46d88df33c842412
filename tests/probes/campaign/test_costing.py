"""Costs of campaigns: hand sums, tiers, and measuring all pairs of the catalogue."""

from __future__ import annotations

from math import isclose
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.baseline.modelled_links import baseline_network
from planner.model.catalogue import Catalogue
from probes.campaign.costing import Ledger, Meter, campaign_cost, task_volume_gb
from probes.campaign.rounds import schedule
from probes.campaign.tasks import ProbeTask
from relayd.catalogue.loading import load_catalogue
from tests.probes.campaign.everything import all_pairs_tasks
from tests.properties import examples


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RELAYD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return load_catalogue()


@pytest.fixture(scope="module")
def with_allowance() -> Catalogue:
    """Prices of which the first GB of a month are free, and the last ones cheaper."""
    return load_catalogue([Path(__file__).parents[3] / "configs/prices-free-100gb.toml"])


def test_a_small_campaign_adds_up_by_hand(catalogue: Catalogue) -> None:
    region_of = {"a": "aws:us-east-1", "b": "aws:eu-west-1", "c": "azure:eastus"}
    tasks = [
        ProbeTask("rtt", (("a", "b"),), 0, 2.0),
        ProbeTask("aggregate", (("a", "b"),), 64, 8.0, 5.0),  # 5 GB at 0.02
        ProbeTask("aggregate", (("a", "c"),), 64, 4.0, 2.0),  # 1 GB at 0.09
        ProbeTask("caps", (("a", "b"), ("a", "c")), 64, 8.0, 4.0),  # 2 GB to each
    ]
    cost = campaign_cost(schedule(tasks), region_of, Meter(catalogue))
    assert isclose(cost["volume_gb"], 10.0, rel_tol=1e-6)
    assert isclose(cost["egress_usd"], 0.02 * 5 + 0.09 + 0.02 * 2 + 0.09 * 2, rel_tol=1e-6)
    assert cost["rounds"] == 4
    assert next(iter(cost["regions"])) == "aws:us-east-1"
    assert isclose(cost["regions"]["azure:eastus"]["received_gb"], 3.0)
    assert {phase: part["rounds"] for phase, part in cost["phases"].items()} == {
        "rtt": 1,
        "aggregate": 2,
        "caps": 1,
    }


@settings(max_examples=examples(50))
@given(st.lists(st.floats(0.1, 30_000), min_size=1, max_size=20), st.floats(0, 200_000))
def test_sending_in_parts_costs_what_the_whole_costs(
    catalogue: Catalogue, parts_gb: list[float], before_gb: float
) -> None:
    pair = ("aws:us-east-1", "gcp:us-east1")
    in_parts, at_once = Meter(catalogue), Meter(catalogue)
    for meter in (in_parts, at_once):
        meter.add("aws:eu-west-1", "azure:eastus", before_gb)
    usd = sum(in_parts.add(*pair, part) for part in parts_gb)
    assert isclose(usd, at_once.add(*pair, sum(parts_gb)), rel_tol=1e-9)


def test_a_price_of_ones_own_goes_first(catalogue: Catalogue) -> None:
    meter = Meter(catalogue, usd_per_gb={"onprem:here": 0.0, "aws:us-east-1": 0.5})
    assert meter.add("onprem:here", "aws:us-east-1", 10.0) == 0.0
    assert meter.add("aws:us-east-1", "onprem:here", 10.0) == 5.0


def test_measuring_all_pairs_of_the_catalogue(catalogue: Catalogue) -> None:
    """The yardstick: 40 regions, 64 connections, 5 s.

    At a mean of 5 Gbit/s it would be 4,875 GB; the catalogue's Azure VMs are faster than that.
    """
    network = baseline_network(catalogue)
    regions = list(network.sites)
    tasks = all_pairs_tasks(regions, lambda s, d: network.link(s, d).rate_gbps(64))
    cost = campaign_cost(schedule(tasks), {r: r for r in regions}, Meter(catalogue))
    assert len(tasks) == 1560
    assert cost["rounds"] == 78
    assert isclose(cost["volume_gb"], sum(map(task_volume_gb, tasks)))
    assert 4_500 < cost["volume_gb"] < 7_500
    assert 450 < cost["egress_usd"] < 700
    flat = all_pairs_tasks(regions, lambda s, d: 5.0)
    assert isclose(sum(map(task_volume_gb, flat)), 4875.0)


TASKS = st.builds(
    ProbeTask,
    st.sampled_from(["rtt", "aggregate", "caps"]),
    st.lists(
        st.sampled_from([("a", "b"), ("b", "a"), ("b", "c"), ("c", "a")]), min_size=1, max_size=3
    ).map(tuple),
    st.just(8),
    st.floats(1.0, 3600.0),
    st.floats(0.0, 20.0),
)


@settings(max_examples=examples(100))
@given(
    st.lists(st.tuples(TASKS, st.sampled_from([1.0, 4.0, 16.0]), st.floats(0, 1)), max_size=12),
    st.floats(0, 2000),
    st.floats(0, 200_000),
    st.integers(1, 5),
)
def test_whatever_running_probes_send_of_what_they_may_is_within_the_budget(
    with_allowance: Catalogue,
    probes: list[tuple[ProbeTask, float, float]],
    budget_usd: float,
    before_gb: float,
    at_once: int,
) -> None:
    region_of = {"a": "aws:us-east-1", "b": "gcp:us-east1", "c": "azure:eastus"}
    meter = Meter(with_allowance)
    for region in region_of.values():
        meter.add(region, "gcp:europe-west1", before_gb)
    ledger = Ledger(meter, region_of, budget_usd, (0.0, 0.0))
    running: list[tuple[ProbeTask, float]] = []

    def end() -> None:
        task, gb = running.pop(0)
        ledger.release(task)
        each_gb = gb / len(task.pairs)
        sent = [(src, dst, each_gb) for src, dst in task.pairs]
        if task.phase == "rtt":
            sent += [(dst, src, each_gb) for src, dst in task.pairs]
        ledger.charge(task, sent)

    for task, times, share in probes:
        most_gb = ledger.reserve(task, times)
        if most_gb is not None:
            running.append((task, share * most_gb))
        if len(running) > at_once:
            end()
    while running:
        end()
    assert ledger.usd <= budget_usd * (1 + 1e-9)
