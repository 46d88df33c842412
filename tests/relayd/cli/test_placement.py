"""Placements from the library and the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import relayd as library
from tests.relayd.conftest import Outcome

Relayd = Callable[..., Outcome]
INPUT = {"aws:us-east-1": 400, "azure:westeurope": 250, "gcp:us-central1": 150}
TASKS: dict[str, Any] = {
    "tasks": [{"id": "map-us", "cpus": 4}, {"id": "map-eu", "cpus": 4}, {"id": "join", "cpus": 2}],
    "traffic": [
        {"src": "map-us", "dst": "join", "volume_gb": 120},
        {"src": "map-eu", "dst": "join", "volume_gb": "80GB"},
    ],
    "vms": [
        {"id": "us", "region": "aws:us-east-1", "cpus": 6},
        {"id": "eu", "region": "azure:westeurope", "cpus": 4},
    ],
}


def test_every_shape_of_inputs_gets_the_same_fractions(tmp_path: Path, relayd: Relayd) -> None:
    rows = "".join(f"{region},{gb}GB\n" for region, gb in INPUT.items())
    (tmp_path / "in.csv").write_text("region,input_gb\n" + rows)
    (tmp_path / "in.json").write_text(json.dumps(INPUT))
    found = []
    for name in ("in.csv", "in.json"):
        outcome = relayd("place", "reduce", tmp_path / name, "--json")
        assert outcome.code == 0, outcome.err
        found.append(json.loads(outcome.out))
    assert found[0] == found[1]
    assert library.open().place_reduce(INPUT).plan_id == found[0]["plan_id"]
    assert library.open().place_reduce(list(INPUT.items())).plan_id == found[0]["plan_id"]


def test_people_see_both_assumptions_side_by_side(tmp_path: Path, relayd: Relayd) -> None:
    (tmp_path / "in.json").write_text(json.dumps(INPUT))
    out = relayd("place", "reduce", tmp_path / "in.json", "--links", "heterogeneous").out
    for words in ("promised", "really takes", "hose", "heterogeneous", "equal", "egress, USD"):
        assert words in out
    refused = relayd("place", "reduce", tmp_path / "in.json", "--budget", "1usd")
    assert refused.code == 3
    assert "Allow at least" in refused.err


def test_rules_say_where_not_to_reduce() -> None:
    wan = library.open()
    found = wan.place_reduce(INPUT, reduce_in=["aws:us-east-1", "gcp:us-central1"])
    assert set(found.fractions) <= {"aws:us-east-1", "gcp:us-central1"}
    with pytest.raises(library.InputError, match="to avoid"):
        wan.place_reduce(INPUT, avoid=["country:US"])


def test_tasks_are_placed_from_a_file_and_from_python(tmp_path: Path, relayd: Relayd) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps(TASKS))
    out = relayd("place", "tasks", tmp_path / "tasks.json").out
    assert "Proven" in out
    assert "map-us, join" in out
    found = json.loads(relayd("place", "tasks", tmp_path / "tasks.json", "--json").out)
    assert found["assignment"] == {"map-us": "us", "map-eu": "eu", "join": "us"}
    traffic = {("map-us", "join"): 120, ("map-eu", "join"): 80}
    cpus = {"map-us": 4, "map-eu": 4, "join": 2}
    mine = library.open().place_tasks(cpus, traffic, TASKS["vms"])
    assert mine.plan_id == found["plan_id"]


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"tasks": None}, 2, "tasks"),
        ({"tasks": [{"id": "map-us", "cpus": "x"}]}, 2, "not a number"),
        ({"tasks": [{"id": "map-us"}]}, 2, "not among the tasks"),
        ({"vms": [{"id": "a", "region": "nowhere", "cpus": 1}]}, 2, "nowhere"),
        ({"vms": [{"id": "a"}]}, 2, "region: is missing"),
        ({"traffic": [{"src": "a"}]}, 2, "traffic 1"),
        ({"vms": [{"id": "a", "region": "aws:us-east-1", "cpus": 1}]}, 3, "Add VMs"),
    ],
)
def test_wrong_tasks_are_named(
    tmp_path: Path, relayd: Relayd, change: dict[str, Any], code: int, words: str
) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps({**TASKS, **change}))
    outcome = relayd("place", "tasks", tmp_path / "tasks.json")
    assert outcome.code == code
    assert words in outcome.err
    (tmp_path / "tasks.json").write_text("[]")
    assert relayd("place", "tasks", tmp_path / "tasks.json").code == 2
