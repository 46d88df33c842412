"""Questions about many transfers, from the command line and the library: answers and errors.

That all surfaces give one answer, and one error, is for tests/law to show.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relayd as library
from tests.relayd.building import imported, table
from tests.relayd.conftest import Relayd
from tests.shared_data import GRID_VM_TYPES

DESTINATIONS = ["aws:eu-west-1", "gcp:europe-west1", "azure:japaneast", "gcp:asia-south1"]
COPIES = f"plan broadcast aws:us-east-1 {' '.join(DESTINATIONS)} --volume 500GB"
SCHEDULE = """\
id,src,dst,volume,start,deadline,priority
backup,azure:eastus,aws:ap-northeast-1,1.5TB,0,2h,0
model,azure:eastus,gcp:us-central1,800GB,30min,1h,2
logs,aws:us-east-1,azure:westeurope,9TB,0,90min,1
archive,azure:eastus,aws:us-east-1,3TB,,,
"""
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
FILES = {
    "list.csv": LIST,
    "matrix.csv": MATRIX,
    "nested.json": json.dumps(NESTED),
    "entries.json": json.dumps(
        {
            "demands": [
                {"src": src, "dst": dst, "volume_gb": gb}
                for src, row in NESTED.items()
                for dst, gb in row.items()
            ]
        }
    ),
    "t.csv": SCHEDULE,
    "in.csv": "region,input_gb\n" + "".join(f"{region},{gb}GB\n" for region, gb in INPUT.items()),
    "in.json": json.dumps(INPUT),
    "tasks.json": json.dumps(TASKS),
}


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write all files to the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        Path(name).write_text(content)


def answer(relayd: Relayd, question: str, *more: object) -> Any:
    outcome = relayd(*question.split(), *more, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (
            f"{COPIES} --objective time --frontier --trees",
            "4 destinations, 500 GB each;each copy direct;all through;chosen:;frontier;VMs:;"
            "No plan ends before;Snapshot",
        ),
        (f"{COPIES} --relays none", "Send each copy direct.;there is no other plan"),
        (
            "plan schedule t.csv --periods --vms 1",
            "2 admitted, 1 refused, 1 best effort;backup |#;What would do;- logs: a deadline of;"
            "Gbit/s;Snapshot baseline",
        ),
        ("plan schedule t.csv --explain 0", "3 admitted, 0 refused"),
        (
            "plan shuffle list.csv --frontier --pairs",
            "3 pairs among 4 regions, 650 GB;all at once, direct;best direct rates;frontier;"
            "One more VM at aws:us-east-1:;Snapshot baseline",
        ),
        (
            "plan place reduce in.json --links heterogeneous",
            "promised;really takes;hose;heterogeneous;equal;egress, USD",
        ),
        ("plan place tasks tasks.json", "Proven;map-us, join"),
        (
            "plan compare --with eu-west-1 --candidates us-east --most 3",
            "ranks first of;est of each provider",
        ),
    ],
)
def test_people_see_the_comparison_and_what_would_help(
    relayd: Relayd, question: str, words: str
) -> None:
    outcome = relayd(*question.split())
    assert outcome.code == 0, outcome.err
    out = " ".join(outcome.out.split())
    for word in words.split(";"):
        assert word in out


@pytest.mark.parametrize(
    ("question", "code", "words"),
    [
        (f"{COPIES} nowhere", 2, "nowhere"),
        (f"{COPIES} aws:eu-west-1", 2, "twice"),
        (f"{COPIES} --deadline 1s", 3, "Allow at least"),
        ("plan shuffle none.csv", 2, "none.csv"),
        ("plan place reduce in.json --budget 1usd", 3, "Allow at least"),
        ("plan compare", 2, "Missing --with"),
        ("plan compare --with sa --types m5.huge", 2, "--types has what is not a VM"),
        ("plan compare --with sa --candidates provider:acme", 2, "--candidates names a provider"),
    ],
)
def test_wrong_questions_are_named(relayd: Relayd, question: str, code: int, words: str) -> None:
    outcome = relayd(*question.split())
    assert (outcome.code, outcome.out) == (code, "")
    assert words in outcome.err


@pytest.mark.parametrize(
    ("question", "content", "words"),
    [
        ("plan shuffle", "", "nothing but blank lines"),
        ("plan shuffle", "src,dst,volume_gb\n", "no rows"),
        ("plan shuffle", "src,dst,size\na,b,3\n", "--columns src=src,dst=dst,volume_gb=size"),
        ("plan shuffle", "src,dst,volume_gb\naws:us-east-1,aws:sa-east-1\n", "line 2"),
        ("plan shuffle", "src,dst,volume_gb\naws:us-east-1,aws:sa-east-1,-4\n", "0 or more"),
        (
            "plan shuffle",
            "src,dst,volume_gb\nus-east,sa,4\naws:us-east-1,aws:sa-east-1,4\n",
            "twice",
        ),
        ("plan shuffle", ",aws:us-east-1\naws:sa-east-1,3,4\n", "line 2"),
        ("plan shuffle", "{", "not JSON"),
        ("plan shuffle", '{"aws:us-east-1": 4}', "must map destinations"),
        ("plan shuffle", '[{"src": "a"}]', "it has src ('a')"),
        ("plan schedule", "id,src,dst\nx,aws:us-east-1,aws:sa-east-1\n", "volume_gb"),
        ("plan schedule", "id,src,dst,volume,deadline\nx,us-east,sa,4,soon\n", "deadline"),
        ("plan schedule", "[1]", "rows of source"),
        ("plan place tasks", "[]", "tasks"),
        ("plan place tasks", json.dumps({**TASKS, "traffic": [{"src": "a"}]}), "traffic 1"),
        ("plan place tasks", json.dumps({**TASKS, "vms": [{"id": "a"}]}), "region is missing"),
        ("transfers replan --moved 5GB --elapsed 1min", "", "not JSON"),
        ("transfers replan --moved 5GB --elapsed 1min", "{}", "is not a plan"),
        ("transfers replan --moved 5 --elapsed 1min", "{}", "no unit"),
        ("transfers replan --moved a=5GB --elapsed 1min", "{}", "names no pair"),
    ],
)
def test_wrong_files_are_named(relayd: Relayd, question: str, content: str, words: str) -> None:
    Path("wrong").write_text(content)
    outcome = relayd(*question.split(), "wrong")
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err


def test_every_shape_of_inputs_gets_the_same_plan(relayd: Relayd) -> None:
    shuffles = [
        answer(relayd, f"plan shuffle {name}")
        for name in ("list.csv", "matrix.csv", "nested.json", "entries.json")
    ]
    assert len({plan["plan_id"] for plan in shuffles}) == 1
    pairs = {(pair["src"], pair["dst"]): pair["volume_gb"] for pair in shuffles[0]["pairs"]}
    assert set(pairs) == {(src, dst) for src, row in NESTED.items() for dst in row}
    wan = library.open()
    regions = list(dict.fromkeys([*NESTED, "aws:ap-northeast-1"]))
    matrix = np.zeros((4, 4))
    for (src, dst), volume_gb in pairs.items():
        matrix[regions.index(src), regions.index(dst)] = volume_gb
    reduces = [answer(relayd, f"plan place reduce {name}") for name in ("in.csv", "in.json")]
    assert reduces[0] == reduces[1]
    keys, *lines = [line.split(",") for line in SCHEDULE.splitlines()]
    entries = [dict(zip(keys, line, strict=True)) for line in lines]
    Path("t.json").write_text(json.dumps({"transfers": entries}))
    schedules = [answer(relayd, f"plan schedule {name}") for name in ("t.csv", "t.json")]
    assert schedules[0] == schedules[1]
    tasks = answer(relayd, "plan place tasks tasks.json")
    assert tasks["assignment"] == {"map-us": "us", "map-eu": "eu", "join": "us"}
    traffic = {("map-us", "join"): 120, ("map-eu", "join"): 80}
    for found, shown in (
        (wan.shuffle(matrix, regions=regions), shuffles[0]),
        (wan.shuffle(pairs), shuffles[0]),
        (wan.place_reduce(list(INPUT.items())), reduces[0]),
        (wan.schedule(entries), schedules[0]),
        (wan.place_tasks({"map-us": 4, "map-eu": 4, "join": 2}, traffic, TASKS["vms"]), tasks),
    ):
        assert found.plan_id == shown["plan_id"]


def test_rules_and_names_hold(wan: library.Wan) -> None:
    ends = ["eu-west-1", "azure:japaneast"]
    plan = wan.broadcast("aws:us-east-1", ends, objective="time", allow=["provider:aws"])
    relays = {relay for tree in plan.trees for relay in tree.relays}
    assert all(relay.startswith("aws:") for relay in relays)
    assert wan.broadcast("us-east", ends).warnings[0].startswith("us-east is taken for")
    with pytest.raises(library.InputError, match="several names"):
        wan.broadcast("aws:us-east-1", "aws:eu-west-1")
    reduced = wan.place_reduce(INPUT, reduce_in=["aws:us-east-1", "gcp:us-central1"])
    assert set(reduced.fractions) <= {"aws:us-east-1", "gcp:us-central1"}
    for refused in (
        lambda: wan.broadcast("aws:us-east-1", ends, avoid=["country:JP"]),
        lambda: wan.place_reduce(INPUT, avoid=["country:US"]),
    ):
        with pytest.raises(library.InputError, match="to avoid"):
            refused()
    # Regions beyond the baseline take part.
    assert "gcp:europe-west4" not in wan.network.sites
    assert wan.shuffle({("aws:us-east-1", "gcp:europe-west4"): 100}).pairs[0].dst.endswith("4")
    assert (
        wan.broadcast("aws:us-east-1", ["gcp:europe-west4"]).destinations[0].region
        == "gcp:europe-west4"
    )


def test_rules_bind_relays_of_a_shuffle(wan: library.Wan) -> None:
    volumes = {("azure:eastus", "aws:ap-northeast-1"): 200.0}

    def relays(**rules: object) -> set[str]:
        asked: dict[str, Any] = {"vms": 1, "vm_types": GRID_VM_TYPES, **rules}
        plan = wan.shuffle(volumes, objective="cost", deadline_s=280.0, **asked)
        return {r for pair in plan.pairs for path in pair.paths for r in path.regions[1:-1]}

    assert relays()
    assert {wan.catalogue.region(relay).country for relay in relays(allow=["country:US"])} == {"US"}
    assert not relays(relays="none", vms_in={"azure:eastus": 3, "aws:ap-northeast-1": 3})
    with pytest.raises(library.InfeasibleError):
        relays(relays="none")


# ---- schedules -----------------------------------------------------------------------------------


def test_low_rates_promise_less_and_a_stored_schedule_is_gone_on_with(relayd: Relayd) -> None:
    asked = "plan schedule t.csv --vms 1 --rates"
    stored, low = (answer(relayd, asked, rates) for rates in ("expected", "low"))
    assert stored["end_s"] < low["end_s"]
    Path("plan.json").write_text(json.dumps(stored))
    late = "late,aws:us-east-1,azure:westeurope,300GB,3h"
    table(Path("new.csv"), "id,src,dst,volume,deadline", late)
    plan = answer(relayd, "plan schedule new.csv --vms 1 --after plan.json --now 40min")
    assert {t["id"]: t["verdict"] for t in plan["transfers"]} == {
        "backup": "admitted",
        "model": "admitted",
        "archive": "best effort",
        "late": "admitted",
    }
    assert plan["now_s"] == 2400
    Path("broken.json").write_text('{"transfers": [{"verdict": "admitted"}], "now_s": 0}')
    wrong = relayd("plan", "schedule", "new.csv", "--after", "broken.json")
    assert (wrong.code, "transfer 1" in wrong.err) == (2, True)


def test_tariffs_are_read_and_wrong_ones_named(relayd: Relayd) -> None:
    Path("tariffs.csv").write_text("src,dst,rate,usd_per_gb\nus-east,ap-northeast-1,2gbps,0.01\n")
    plan = answer(relayd, "plan schedule t.csv --tariffs tariffs.csv")
    assert plan["request"]["tariffs"][0]["rate_gbps"] == 2.0
    assert plan["tariffs"][0]["id"] == "tariff1"
    for rows, words in (
        ("src,dst\nus-east-1,aws:us-east-1\n", "tariffs tariff1, dst is the source itself"),
        ("src,dst,end\naws:us-east-1,gcp:us-east1,25h,x\n", "line 2"),
    ):
        Path("tariffs.csv").write_text(rows)
        wrong = relayd("plan", "schedule", "t.csv", "--tariffs", "tariffs.csv")
        assert (wrong.code, words in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("tariffs", "used"),
    [
        ([(0.08, "0.1gbps")] * 3, False),  # below the mean, above what the last GB costs
        ([(0.075, None)], True),
        ([(0.0, "0.1gbps")], True),
    ],
)
def test_tariffs_save_what_the_meters_tiers_charge_less(
    wan: library.Wan, tariffs: list[tuple[float, str | None]], used: bool
) -> None:
    link = {"src": "azure:eastus", "dst": "aws:us-east-1"}
    bulk = [{"id": "bulk", **link, "volume": "60TB", "deadline": "240h"}]
    plain_usd = wan.schedule(bulk).cost_usd.egress
    stated = [
        {**link, "per_gb_usd": usd, "rate": rate, "monthly_usd": 100} for usd, rate in tariffs
    ]
    plan = wan.schedule(bulk, tariffs=stated)
    saved_usd = sum(use.saved_usd for use in plan.tariffs)
    assert plan.cost_usd.egress == pytest.approx(plain_usd - saved_usd)
    assert plan.bound_usd <= plan.cost_usd.egress
    for use in plan.tariffs:
        assert (use.saved_usd > 1.0) == used == (use.volume_gb > 0.0)
        if use.break_even_gb is not None:
            assert use.break_even_gb * use.saved_usd == pytest.approx(100 * use.volume_gb)


# ---- comparisons ---------------------------------------------------------------------------------


def test_types_are_compared_where_their_provider_has_them(wan: library.Wan) -> None:
    found = wan.compare_candidates(
        ["eu-west-1"],
        candidates=["aws:us-east-1", "gcp:us-east1", "aws:eu-west-1"],
        types=["m5.large", "m5.8xlarge", "gcp:n2-standard-32"],
        objective="time",
    )
    assert {(one.region, one.vm_type) for one in found.candidates} == {
        ("aws:us-east-1", "aws:m5.large"),
        ("aws:us-east-1", "aws:m5.8xlarge"),
        ("gcp:us-east1", "gcp:n2-standard-32"),
    }
    assert sum(one.probability or 0.0 for one in found.candidates) == pytest.approx(1.0)
    asked: dict[str, Any] = {"relays": "none", "objective": "time"}
    for one in found.candidates:  # a single transfer says the same of each
        vm_types = {one.region: one.vm_type}
        plan = wan.plan(one.region, "aws:eu-west-1", vm_types=vm_types, **asked)
        assert one.vms == plan.vms
        assert one.duration_s == pytest.approx(plan.duration_s)
        assert one.cost_usd.egress == pytest.approx(plan.cost_usd.egress)
        # A single transfer's VMs are not paid for while it gets up to speed.
        assert one.cost_usd.total == pytest.approx(plan.cost_usd.total, rel=1e-3)


def test_only_what_is_compared_has_to_be_young_enough(relayd: Relayd, tmp_path: Path) -> None:
    row = f"aws:us-east-1,aws:eu-west-1,{datetime.now(UTC).isoformat()},4.5"
    db = imported(tmp_path / "links.db", "src,dst,measured_at,aggregate_gbps", row)
    asked = ("plan", "compare", "--with", "aws:eu-west-1", "--db", db, "--max-age", "1d")
    places = ("--candidates", "aws:us-east-1", "--candidates", "gcp:us-east1")
    assert relayd(*asked, *places, "--types", "m5.large").code == 0
    outcome = relayd(*asked, *places)
    assert "gcp:us-east1 -> aws:eu-west-1 has not been measured" in outcome.err


# ---- re-planning ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_plan_in_progress_is_kept_on_the_same_snapshot(relayd: Relayd) -> None:
    transfer = "plan azure:eastus aws:ap-northeast-1 --volume 500GB"
    for question in (transfer, "plan shuffle list.csv", COPIES):
        plan = answer(relayd, question)
        Path("plan.json").write_text(json.dumps(plan))
        progress = "transfers replan plan.json --moved 50GB --elapsed 2min"
        found = answer(relayd, progress)
        assert (found["verdict"], found["plan_id"]) == ("keep", plan["plan_id"])
        assert relayd(*progress.split()).out.startswith("Keep to the plan.")


def test_progress_may_be_told_of_one_pair_of_a_shuffle(relayd: Relayd) -> None:
    Path("plan.json").write_text(json.dumps(answer(relayd, "plan shuffle list.csv")))
    moved = "--moved us-east-1>azure:westeurope=150GB --elapsed 5min"
    pair = answer(relayd, f"transfers replan plan.json {moved}")
    assert pair["remaining_gb"] == pytest.approx(500)


@pytest.mark.slow
def test_new_measurements_change_the_plan(tmp_path: Path, relayd: Relayd) -> None:
    began_s, db = time.time() - 10 * 3600, tmp_path / "relayd.db"
    ends = ["azure:eastus", "aws:ap-northeast-1", "gcp:us-central1"]

    def measured(direct_mbps: int, hour: int) -> None:
        rows = [
            f"{src},{dst},100,{direct_mbps if [src, dst] == ends[:2] else 6000},64,60,"
            f"{began_s + 3600 * hour + 60 * i:.0f}"
            for src, dst in permutations(ends, 2)
            for i in range(3)
        ]
        head = "src,dst,rtt_ms,aggregate_mbps,connections,duration_s,measured_at"
        imported(db, head, *rows)

    measured(9000, 1)
    wan = library.open(db)
    plan = wan.plan(*ends[:2], volume_gb=2000, objective="time", vms=1)
    assert wan.replan(plan, moved_gb=300, elapsed_s=480).verdict == "keep"
    for hour in (2, 3, 4, 5, 6):
        measured(400, hour)
    assert wan.refresh().id != plan.snapshot.id
    found = wan.replan(plan.model_dump_json(), moved_gb=300, elapsed_s=480)
    assert found.verdict == "change", found
    assert (found.planned_on, found.snapshot) == (plan.snapshot.id, wan.snapshot)
    assert found.plan is not None
    assert found.plan["verdict"] != "direct"
    Path("plan.json").write_text(plan.model_dump_json())
    relayd("data", "links")  # what importing said is of no interest
    out = relayd(
        "transfers", "replan", "plan.json", "--moved", "300GB", "--elapsed", "8min", "--db", db
    ).out
    assert out.startswith("Change the plan.")
    assert "start 1 at" in out


def test_plans_state_their_vcpus_and_which_quotas_to_check(wan: library.Wan) -> None:
    ends = "aws:us-east-1", "azure:westeurope"
    types = {"aws": "aws:m5.8xlarge", "azure": "azure:D32_v5"}
    asked = {"vms": 3, "relays": "none", "vm_types": types}
    plans = (
        wan.plan(*ends, volume_gb=1000, **asked),  # type: ignore[arg-type]
        wan.shuffle({ends: 1000.0}, **asked),  # type: ignore[arg-type]
        wan.broadcast(ends[0], [ends[1]], volume_gb=1000, **asked),  # type: ignore[arg-type]
    )
    for plan in plans:
        assert plan.vcpus == {region: 32 * count for region, count in plan.vms.items()}
        (said,) = (text for text in plan.warnings if "vCPUs" in text)
        assert "96 at aws:us-east-1" in said
    one = wan.plan(*ends, vms=1, vm_types=types)
    assert set(one.vcpus.values()) == {32}
    assert not [text for text in one.warnings if "vCPUs" in text]


def test_a_file_of_transfers_is_decided_as_by_the_library(relayd: Relayd, tmp_path: Path) -> None:
    file, lines = tmp_path / "many.csv", tmp_path / "many.jsonl"
    file.write_text(
        "src,dst,volume,vms,deadline\neu,sa,2TB,,\nus-east,sa,5GB,3,1h\neu,sa,9TB,,70s\n"
    )
    lines.write_text(
        '{"src": "eu", "dst": "sa", "volume": "2TB"}\n{"src": "us-east", "dst": "sa"}\n'
    )
    fields: dict[str, Any] = {
        "volume_gb": [2000, 5, 9000],
        "vms": [2, 3, 2],
        "deadline_s": [None, 3600, 70],
    }
    expected = library.open().decide(["eu", "us-east", "eu"], "sa", **fields)
    assert expected["verdict"].tolist() == ["direct", "direct", "infeasible"]
    found = relayd("plan", "--many", file, "--vms", "2", "--json")
    rows = json.loads(found.out)["decisions"]
    assert [[row[name] for name in expected.dtype.names or ()] for row in rows] == [
        [None if one != one else one for one in row] for row in expected.tolist()
    ]
    shown = relayd("plan", "--many", lines, "--volume", "5GB", "--vms", "3", "--format", "csv").out
    assert shown.splitlines()[2].split(",")[:3] == ["aws:us-east-1", "aws:sa-east-1", "direct"]
    assert shown.splitlines()[2].split(",")[10] == str(rows[1]["duration_s"])
    lines.write_text('{"src": "eu", "dst": "sa"}\n{"src": "eu"}\n')
    Path("volumes").write_text("volume\n5\n")
    placed = relayd("plan", "us-east", "sa", "--many", "volumes", "--vms", "3", "--format", "csv")
    assert placed.out.splitlines()[1] == shown.splitlines()[2]
    Path("matrix").write_text("GB,us-east,sa\nus-east,,5\nsa,,\n")
    matrix = relayd("plan", "--many", "matrix", "--vms", "3", "--format", "csv").out
    assert matrix.splitlines() == placed.out.splitlines()
    wrong = relayd("plan", "--many", lines)
    assert (wrong.code, "dst is missing in row 2" in wrong.err) == (2, True)
