"""Schedules from the library and the command line: files, answers, going on, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import relayd as library
from tests.relayd.conftest import Outcome

Relayd = Callable[..., Outcome]
ROWS = """\
id,src,dst,volume,start,deadline,priority
backup,azure:eastus,aws:ap-northeast-1,1.5TB,0,2h,0
model,azure:eastus,gcp:us-central1,800GB,30min,1h,2
logs,aws:us-east-1,azure:westeurope,9TB,0,90min,1
archive,azure:eastus,aws:us-east-1,3TB,,,
"""


def test_files_and_the_library_get_the_same_schedule(tmp_path: Path, relayd: Relayd) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    keys, *lines = [line.split(",") for line in ROWS.splitlines()]
    entries = [dict(zip(keys, line, strict=True)) for line in lines]
    (tmp_path / "t.json").write_text(json.dumps({"transfers": entries}))
    plans = []
    for name in ("t.csv", "t.json"):
        outcome = relayd("schedule", tmp_path / name, "--json")
        assert outcome.code == 0, outcome.err
        plans.append(json.loads(outcome.out))
    assert plans[0] == plans[1]
    assert [t["verdict"] for t in plans[0]["transfers"]] == [
        "admitted",
        "admitted",
        "refused",
        "best effort",
    ]
    assert library.open().schedule(entries).plan_id == plans[0]["plan_id"]


def test_people_get_bars_of_time_and_what_would_do(tmp_path: Path, relayd: Relayd) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    out = relayd("schedule", tmp_path / "t.csv", "--periods").out
    for words in (
        "2 admitted, 1 refused, 1 best effort",
        "backup   |#",
        "What would do",
        "- logs: a deadline of",
        "Gbit/s",
        "Snapshot baseline",
    ):
        assert words in out
    more = relayd("schedule", tmp_path / "t.csv", "--vms", "4", "--explain", "0").out
    assert "3 admitted, 0 refused" in more


def test_low_rates_promise_less(tmp_path: Path, relayd: Relayd) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    end_s = []
    for rates in ("expected", "low"):
        plan = json.loads(relayd("schedule", tmp_path / "t.csv", "--rates", rates, "--json").out)
        end_s.append(plan["end_s"])
    assert end_s[0] < end_s[1]


def test_a_stored_schedule_is_gone_on_with(tmp_path: Path, relayd: Relayd) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    (tmp_path / "plan.json").write_text(relayd("schedule", tmp_path / "t.csv", "--json").out)
    (tmp_path / "new.csv").write_text(
        "id,src,dst,volume,deadline\nlate,aws:us-east-1,azure:westeurope,300GB,3h\n"
    )
    outcome = relayd(
        "schedule",
        tmp_path / "new.csv",
        "--after",
        tmp_path / "plan.json",
        "--now",
        "40min",
        "--json",
    )
    plan = json.loads(outcome.out)
    assert {t["id"]: t["verdict"] for t in plan["transfers"]} == {
        "backup": "admitted",
        "model": "admitted",
        "archive": "best effort",
        "late": "admitted",
    }
    assert plan["now_s"] == 2400
    (tmp_path / "broken.json").write_text('{"transfers": [{"verdict": "admitted"}], "now_s": 0}')
    wrong = relayd("schedule", tmp_path / "new.csv", "--after", tmp_path / "broken.json")
    assert wrong.code == 2
    assert "transfer 1" in wrong.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no rows"),
        ("id,src,dst,volume\n", "nothing to move"),
        ("id,src,dst\nx,aws:us-east-1,aws:sa-east-1\n", "volume_gb"),
        ("id,src,dst,volume\nx,aws:us-east-1\n", "line 2"),
        ("id,src,dst,volume\nx,nowhere,aws:sa-east-1,4\n", "nowhere"),
        ("src,dst,volume\nus-east,aws:us-east-1,4\n", "source itself"),
        ("id,src,dst,volume,deadline\nx,us-east,sa,4,soon\n", "deadline"),
        ("id,src,dst,volume\nx,us-east,sa,4\nx,us-east,sa,4\n", "id twice"),
        ("[1]", "list of objects"),
        ("{", "not JSON"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, relayd: Relayd, content: str, words: str) -> None:
    (tmp_path / "t.csv").write_text(content)
    outcome = relayd("schedule", tmp_path / "t.csv")
    assert outcome.code == 2
    assert outcome.out == ""
    assert words in outcome.err


def test_tariffs_are_read_and_wrong_ones_named(tmp_path: Path, relayd: Relayd) -> None:
    (tmp_path / "t.csv").write_text(ROWS)
    tariffs = tmp_path / "tariffs.csv"
    tariffs.write_text("src,dst,rate,usd_per_gb\nus-east,ap-northeast-1,2gbps,0.01\n")
    outcome = relayd("schedule", tmp_path / "t.csv", "--tariffs", tariffs, "--json")
    assert outcome.code == 0, outcome.err
    plan = json.loads(outcome.out)
    assert plan["request"]["tariffs"][0]["rate_gbps"] == 2.0
    assert plan["tariffs"][0]["id"] == "tariff1"
    for rows, words in (
        ("src,dst\nus-east-1,aws:us-east-1\n", "tariffs tariff1, dst: is the source itself"),
        ("src,dst,rate\natlantis,sa,1gbps\n", "atlantis"),
        ("src,dst,rate\naws:us-east-1,gcp:us-east1,fast\n", "tariffs tariff1, rate_gbps"),
        ("src,dst,end\naws:us-east-1,gcp:us-east1,25h,x\n", "line 2"),
    ):
        tariffs.write_text(rows)
        wrong = relayd("schedule", tmp_path / "t.csv", "--tariffs", tariffs)
        assert wrong.code == 2
        assert words in wrong.err


@pytest.mark.parametrize(
    ("tariffs", "used"),
    [
        ([(0.08, "0.1gbps")], False),  # below the mean, above what the last GB costs
        ([(0.08, "0.1gbps")] * 3, False),  # of which each alone would save
        ([(0.075, None)], True),
        ([(0.0, "0.1gbps")], True),
    ],
)
def test_tariffs_save_what_the_meters_tiers_charge_less(
    tariffs: list[tuple[float, str | None]], used: bool
) -> None:
    wan, link = library.open(), {"src": "azure:eastus", "dst": "aws:us-east-1"}
    bulk = [{"id": "bulk", **link, "volume": "60TB", "deadline": "240h"}]
    plain_usd = wan.schedule(bulk).cost_usd.egress
    plan = wan.schedule(
        bulk,
        tariffs=[
            {**link, "per_gb_usd": usd, "rate": rate, "monthly_usd": 100} for usd, rate in tariffs
        ],
    )
    saved_usd = sum(use.saved_usd for use in plan.tariffs)
    assert plan.cost_usd.egress == pytest.approx(plain_usd - saved_usd)
    assert plan.bound_usd <= plan.cost_usd.egress
    for use in plan.tariffs:
        assert (use.saved_usd > 1.0) == used == (use.volume_gb > 0.0)
        if use.break_even_gb is not None:
            assert use.break_even_gb * use.saved_usd == pytest.approx(100 * use.volume_gb)
