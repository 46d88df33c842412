"""Shuffles from the library and the command line: shapes of demands, answers, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import relayd as library
from relayd.questions.matrix_threads import one_matrix_thread
from tests.relayd.conftest import Outcome

Relayd = Callable[..., Outcome]
LIST = """\
src,dst,volume_gb
azure:eastus,aws:ap-northeast-1,200
aws:us-east-1,azure:westeurope,0.3TB
azure:westeurope,aws:us-east-1,150
"""
MATRIX = """\
,azure:eastus,aws:ap-northeast-1,aws:us-east-1,azure:westeurope
azure:eastus,7,200,,
aws:us-east-1,,,,300GB
azure:westeurope,,,150,0
"""
NESTED: dict[str, dict[str, object]] = {
    "azure:eastus": {"aws:ap-northeast-1": 200},
    "aws:us-east-1": {"azure:westeurope": "300GB"},
    "azure:westeurope": {"aws:us-east-1": 150},
}


def test_every_shape_of_demands_gets_the_same_plan(tmp_path: Path, relayd: Relayd) -> None:
    entries = [
        {"src": src, "dst": dst, "volume_gb": gb}
        for src, row in NESTED.items()
        for dst, gb in row.items()
    ]
    plans = []
    for name, content in (
        ("list.csv", LIST),
        ("matrix.csv", MATRIX),
        ("nested.json", json.dumps(NESTED)),
        ("entries.json", json.dumps({"demands": entries})),
    ):
        (tmp_path / name).write_text(content)
        outcome = relayd("shuffle", tmp_path / name, "--json")
        assert outcome.code == 0, outcome.err
        plans.append(json.loads(outcome.out))
    assert len({plan["plan_id"] for plan in plans}) == 1
    first = plans[0]
    assert {(pair["src"], pair["dst"]) for pair in first["pairs"]} == {
        (src, dst) for src, row in NESTED.items() for dst in row
    }

    wan = library.open()
    regions = list(dict.fromkeys([*NESTED, "aws:ap-northeast-1"]))
    matrix = np.zeros((4, 4))
    for pair in first["pairs"]:
        matrix[regions.index(pair["src"]), regions.index(pair["dst"])] = pair["volume_gb"]
    assert wan.shuffle(matrix, regions=regions).plan_id == first["plan_id"]
    volumes = {(pair["src"], pair["dst"]): pair["volume_gb"] for pair in first["pairs"]}
    assert wan.shuffle(volumes).plan_id == first["plan_id"]


def test_people_get_the_comparison_and_what_would_help(tmp_path: Path, relayd: Relayd) -> None:
    demands = tmp_path / "demands.csv"
    demands.write_text(LIST + "azure:eastus,gcp:us-central1,100\n")
    out = relayd("shuffle", demands, "--frontier", "--pairs").out
    for words in (
        "4 pairs among 5 regions, 750 GB",
        "all at once, direct",
        "best direct rates",
        "frontier",
        "One more VM at each end of aws:us-east-1 -> azure",
        "Snapshot baseline",
    ):
        assert words in out
    more = json.loads(relayd("shuffle", demands, "--vms", "2", "--json").out)
    one = json.loads(relayd("shuffle", demands, "--json").out)
    assert more["duration_s"] < 0.6 * one["duration_s"]
    assert set(more["vms"].values()) <= {1, 2}


def test_a_region_beyond_the_baseline_takes_part(relayd: Relayd) -> None:
    wan = library.open()
    assert "gcp:europe-west4" not in wan.network.sites
    plan = wan.shuffle({("aws:us-east-1", "gcp:europe-west4"): 100})
    assert plan.pairs[0].dst == "gcp:europe-west4"


def test_rules_bind_relays_and_ends() -> None:
    wan = library.open()
    volumes = {("azure:eastus", "aws:ap-northeast-1"): 200.0}
    hurry = {"objective": "cost", "deadline_s": 280.0}

    def relays(**rules: object) -> set[str]:
        plan = wan.shuffle(volumes, **hurry, **rules)  # type: ignore[arg-type]
        return {r for pair in plan.pairs for path in pair.paths for r in path.regions[1:-1]}

    assert relays()
    assert relays(allow=["country:US"]) == {
        r for r in relays(allow=["country:US"]) if wan.catalogue.region(r).country == "US"
    }
    assert not relays(relays="none", vms_in={"azure:eastus": 3, "aws:ap-northeast-1": 3})
    with pytest.raises(library.InfeasibleError):
        relays(relays="none")
    with pytest.raises(library.InputError, match="to avoid"):
        relays(avoid=["country:JP"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no rows"),
        ("src,dst,volume_gb\n", "no rows"),
        ("src,dst,size\na,b,3\n", "line 1"),
        ("src,dst,volume_gb\naws:us-east-1,aws:sa-east-1\n", "line 2"),
        ("src,dst,volume_gb\naws:us-east-1,aws:sa-east-1,many\n", "line 2"),
        ("src,dst,volume_gb\naws:us-east-1,aws:sa-east-1,-4\n", "0 or more"),
        ("src,dst,volume_gb\naws:us-east-1,aws:us-east-1,4\n", "nothing to move"),
        ("src,dst,volume_gb\nus-east,sa,4\naws:us-east-1,aws:sa-east-1,4\n", "given twice"),
        ("src,dst,volume_gb\nnowhere,sa,4\n", "nowhere"),
        (",aws:us-east-1\naws:sa-east-1,3,4\n", "line 2"),
        ("{", "not JSON"),
        ('{"aws:us-east-1": 4}', "must map destinations"),
        ('[{"src": "a"}]', "entry 1"),
    ],
)
def test_wrong_demands_are_named(tmp_path: Path, relayd: Relayd, content: str, words: str) -> None:
    demands = tmp_path / "demands.csv"
    demands.write_text(content)
    outcome = relayd("shuffle", demands)
    assert outcome.code == 2
    assert outcome.out == ""
    assert words in outcome.err


def test_a_deadline_that_cannot_be_met_exits_with_3(tmp_path: Path, relayd: Relayd) -> None:
    demands = tmp_path / "demands.csv"
    demands.write_text(LIST)
    outcome = relayd("shuffle", demands, "--deadline", "10s")
    assert outcome.code == 3
    assert "Allow at least" in outcome.err
    assert relayd("shuffle", tmp_path / "none.csv").code == 2


def test_a_plan_leaves_the_matrix_library_with_the_threads_that_it_had() -> None:
    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        assert set(threads()) == {2}
        with one_matrix_thread():
            assert set(threads()) == {1}
            library.open().shuffle({("aws:us-east-1", "azure:westeurope"): 10})
            assert set(threads()) == {1}  # who is still inside keeps the limit
        assert set(threads()) == {2}
        with pytest.raises(library.InputError):
            library.open().shuffle({("aws:us-east-1", "azure:westeurope"): -1})
        assert set(threads()) == {2}
