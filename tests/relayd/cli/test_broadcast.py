"""Broadcasts and re-planning from the library and the command line: answers and errors."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import relayd as library
from tests.relayd.conftest import Outcome

Relayd = Callable[..., Outcome]
DESTINATIONS = ["aws:eu-west-1", "gcp:europe-west1", "azure:japaneast", "gcp:asia-south1"]
ASKED = ("broadcast", "aws:us-east-1", *DESTINATIONS, "--volume", "500GB")


def test_library_and_command_line_give_the_same_plan(relayd: Relayd) -> None:
    outcome = relayd(*ASKED, "--objective", "time", "--json")
    assert outcome.code == 0, outcome.err
    shown = json.loads(outcome.out)
    assert [delivery["region"] for delivery in shown["destinations"]] == DESTINATIONS
    plan = library.open().broadcast("aws:us-east-1", DESTINATIONS, volume_gb=500, objective="time")
    assert isinstance(plan, library.BroadcastPlan)
    assert plan.plan_id == shown["plan_id"]
    assert plan.verdict in {"tree", "trees"}
    assert plan.gain is not None
    assert plan.gain > 2


def test_people_get_the_comparison_the_trees_and_what_would_help(relayd: Relayd) -> None:
    out = " ".join(relayd(*ASKED, "--objective", "time", "--frontier", "--trees").out.split())
    for words in (
        "4 destinations, 500 GB each",
        "each copy direct",
        "all through",
        "chosen:",
        "connections",
        "frontier",
        "VMs:",
        "No plan ends before",
        "Snapshot",
    ):
        assert words in out
    direct = relayd(*ASKED, "--relays", "none").out
    assert "Send each copy direct." in direct
    assert "there is no other plan" in direct


def test_rules_and_names_hold(relayd: Relayd) -> None:
    wan = library.open()
    ends = ["eu-west-1", "azure:japaneast"]
    plan = wan.broadcast("aws:us-east-1", ends, objective="time", allow=["provider:aws"])
    relays = {relay for tree in plan.trees for relay in tree.relays}
    assert all(relay.startswith("aws:") for relay in relays)
    assert wan.broadcast("us-east", ends).warnings[0].startswith("us-east: took")
    with pytest.raises(library.InputError, match="to avoid"):
        wan.broadcast("aws:us-east-1", ends, avoid=["country:JP"])
    with pytest.raises(library.InputError, match="several names"):
        wan.broadcast("aws:us-east-1", "aws:eu-west-1")
    far = wan.broadcast("aws:us-east-1", ["gcp:europe-west4"])
    assert far.destinations[0].region == "gcp:europe-west4"


@pytest.mark.parametrize(
    ("further", "code", "words"),
    [
        (("nowhere",), 2, "nowhere"),
        (("aws:us-east-1",), 2, "source itself"),
        (("aws:eu-west-1",), 2, "twice"),
        (("--volume", "-5GB"), 2, "volume"),
        (("--volume", "lots"), 2, "--volume"),
        (("--deadline", "1s"), 3, "Allow at least"),
        (("--vms", "0"), 2, "vms"),
        (("--margin", "x"), 2, "--margin"),
    ],
)
def test_wrong_questions_are_named(
    relayd: Relayd, further: tuple[str, ...], code: int, words: str
) -> None:
    outcome = relayd(*ASKED, *further)
    assert outcome.code == code
    assert outcome.out == ""
    assert words in outcome.err


# ---- re-planning ---------------------------------------------------------------------------------


def test_a_plan_in_progress_is_kept_on_the_same_snapshot(tmp_path: Path, relayd: Relayd) -> None:
    demands = tmp_path / "demands.csv"
    demands.write_text(
        "src,dst,volume_gb\naws:us-east-1,aws:sa-east-1,200\nazure:eastus,aws:us-east-1,100\n"
    )
    transfer = ("plan", "--src", "azure:eastus", "--dst", "aws:ap-northeast-1", "--volume", "500GB")
    for question in (transfer, ("shuffle", demands), ASKED):
        plan = tmp_path / "plan.json"
        plan.write_text(relayd(*question, "--json").out)
        outcome = relayd("replan", plan, "--moved", "50GB", "--elapsed", "2min", "--json")
        assert outcome.code == 0, outcome.err
        answer = json.loads(outcome.out)
        assert answer["verdict"] == "keep"
        assert answer["plan_id"] == json.loads(plan.read_text())["plan_id"]
        told = relayd("replan", plan, "--moved", "50GB", "--elapsed", "2min")
        assert told.out.startswith("Keep to the plan.")
    plan.write_text(relayd("shuffle", demands, "--json").out)
    pair = relayd(
        "replan", plan, "--moved", "us-east-1>aws:sa-east-1=150GB", "--elapsed", "5min", "--json"
    )
    assert json.loads(pair.out)["remaining_gb"] == pytest.approx(150)


def test_new_measurements_change_the_plan(tmp_path: Path, relayd: Relayd) -> None:
    def measured(direct_mbps: int, hour: int) -> None:
        rows = ["src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at"]
        ends = ["azure:eastus", "aws:ap-northeast-1", "gcp:us-central1"]
        for src in ends:
            for dst in ends:
                if src != dst:
                    mbps = direct_mbps if (src, dst) == (ends[0], ends[1]) else 6000
                    rows += [
                        f"{src},{dst},100,{mbps},64,60,{began_s + 3600 * hour + 60 * i:.0f}"
                        for i in range(3)
                    ]
        table = tmp_path / "measured.csv"
        table.write_text("\n".join(rows) + "\n")
        outcome = relayd("import", "csv", table, "--db", db)
        assert outcome.code == 0, outcome.err

    began_s = time.time() - 10 * 3600
    db = tmp_path / "relayd.db"
    measured(9000, 1)
    wan = library.open(db)
    plan = wan.plan("azure:eastus", "aws:ap-northeast-1", volume_gb=2000, objective="time", vms=1)
    kept = wan.replan(plan, moved_gb=300, elapsed_s=480)
    assert kept.verdict == "keep"
    for hour in (2, 3, 4, 5, 6):
        measured(400, hour)
    assert wan.refresh().id != plan.snapshot.id
    answer = wan.replan(plan.model_dump_json(), moved_gb=300, elapsed_s=480)
    assert answer.verdict == "change", answer
    assert answer.planned_on == plan.snapshot.id
    assert answer.snapshot == wan.snapshot
    assert answer.plan is not None
    assert answer.plan["verdict"] != "direct"
    path = tmp_path / "plan.json"
    path.write_text(plan.model_dump_json())
    out = relayd("replan", path, "--moved", "300GB", "--elapsed", "8min", "--db", db).out
    assert out.startswith("Change the plan.")
    assert "start 1 at" in out


@pytest.mark.parametrize(
    ("content", "moved", "words"),
    [
        ("", "5GB", "not JSON"),
        ("{}", "5GB", "is not a plan"),
        ("[1]", "5GB", "is not a plan"),
        ('{"plan_id": "x", "snapshot": {}, "request": {}, "vms": {}, "paths": []}', "5GB", "plan"),
        ("{}", "5", "no unit"),
        ("{}", "a=5GB", "names no pair"),
    ],
)
def test_wrong_plans_in_progress_are_named(
    tmp_path: Path, relayd: Relayd, content: str, moved: str, words: str
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text(content)
    outcome = relayd("replan", plan, "--moved", moved, "--elapsed", "1min")
    assert outcome.code == 2
    assert words in outcome.err
    assert relayd("replan", tmp_path / "none", "--moved", "5GB", "--elapsed", "1min").code == 2
