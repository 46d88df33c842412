"""Every gain that pages show is what the planner answers at the settings shown beside it."""

from __future__ import annotations

import json
from itertools import permutations
from math import inf, isnan
from pathlib import Path
from typing import Any

import pytest

import relayd
from relayd.http.answers import relay_gains_bytes
from tests.dashboard.fleets import store_with_history

SETTINGS: list[tuple[float, int]] = [(inf, 1), (20.0, 1), (20.0, 4), (0.0, 1)]


def asked(wan: Any, src: str, dst: str, worth: float, vms: int) -> Any:
    by: dict[str, Any] = {"objective": "time"} if worth == inf else {"time_value_usd_per_h": worth}
    return wan.plan(src, dst, volume_gb=1000, relays="one", vms=vms, candidates=1, **by)


def check_listed(wan: Any, found: dict[str, Any], worth: float, vms: int) -> None:
    """Every figure of the list is of the planner's answer to the same question."""
    for each in found["relays"]:
        plan = asked(wan, each["src"], each["dst"], worth, vms)
        assert each["verdict"] == plan.verdict != "direct"
        assert any(each["relay"] in path.regions[1:-1] for path in plan.paths)
        assert each["gain"] == pytest.approx(plan.throughput_gbps / plan.direct.throughput_gbps)
        assert (each["relay_s"], each["direct_s"]) == (plan.duration_s, plan.direct.duration_s)
        assert each["relay_usd"] == plan.cost_usd.total
        if worth < inf:  # it pays at what the reader says that an hour is worth
            assert each["pays_from_usd_per_h"] <= worth


@pytest.mark.parametrize(("worth", "vms"), SETTINGS)
def test_every_gain_is_what_the_planner_answers_at_the_settings(
    grid_store: Path, worth: float, vms: int
) -> None:
    wan = relayd.open(grid_store)
    found = json.loads(relay_gains_bytes(wan, 5, worth, vms))
    assert (found["time_value_usd_per_h"] or inf, found["vms"]) in {(worth, vms), (inf, vms)}
    assert len(found["relays"]) <= found["pairs"] <= found["asked"] <= found["promising"]
    check_listed(wan, found, worth, vms)


@pytest.mark.parametrize("dst", ["aws:af-south-1", "aws:eu-west-2"])
def test_a_relay_that_pays_by_the_hours_of_its_vms_is_listed(
    grid_store: Path, monkeypatch: pytest.MonkeyPatch, dst: str
) -> None:
    monkeypatch.setattr("relayd.http.answers.MOST_S", inf)
    wan, src = relayd.open(grid_store), "gcp:asia-southeast1"
    plan = asked(wan, src, dst, 0.0, 1)
    assert plan.verdict == "relay"
    assert plan.cost_usd.egress > plan.direct.cost_usd.egress
    found = json.loads(relay_gains_bytes(wan, 50, 0.0, 1))["relays"]
    assert (src, dst) in {(each["src"], each["dst"]) for each in found}


@pytest.mark.thorough
@pytest.mark.parametrize("worth", [0.0, 20.0])
def test_the_list_has_all_pairs_of_the_grid_that_pay(
    grid_store: Path, monkeypatch: pytest.MonkeyPatch, worth: float
) -> None:
    monkeypatch.setattr("relayd.http.answers.MOST_S", inf)
    wan = relayd.open(grid_store)
    found = json.loads(relay_gains_bytes(wan, 4000, worth, 1))
    check_listed(wan, found, worth, 1)
    pays = {
        pair
        for pair in permutations(wan.network.sites, 2)
        if asked(wan, *pair, worth, 1).verdict != "direct"
    }
    assert pays == {(each["src"], each["dst"]) for each in found["relays"]}


def test_links_in_trouble_gain_nothing(tmp_path: Path) -> None:
    wan = relayd.open(store_with_history(tmp_path))
    troubled = set(wan.network.states)
    assert len(troubled) == 2
    matrix = wan.matrix("relay-gain")
    for src, dst in troubled:
        assert isnan(matrix.values[matrix.regions.index(src), matrix.regions.index(dst)])
    found = json.loads(relay_gains_bytes(wan, 50, inf, 1))["relays"]
    assert found
    assert not {(each["src"], each["dst"]) for each in found} & troubled
