"""Inputs that people had, from public reports of other tools, read with the value that is right."""

from __future__ import annotations

import json
import re
import sqlite3
from math import exp, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.model.errors import DataError, InputError
from relayd.sources.wan import Wan
from relayd.store import open_store
from tests.relayd.building import table
from tests.relayd.conftest import Outcome, Relayd
from tests.shared_data import shared

ENDS = ("--src", "aws:us-east-1", "--dst", "gcp:us-east4")
AT = ("--measured-at", "2026-11-25")


def given(number: str, name: str) -> Path:
    """Return a file of the inputs of a case."""
    folder: Path = shared("aggregate_2022-01.csv").parents[1] / "field-cases"
    return next(folder.glob(f"{number}-*")) / "input" / name


def stored(db: Path) -> list[tuple[str, float, dict[str, Any]]]:
    """Return metric, value and detail of each stored sample."""
    asked = "select name, value, detail from samples join metrics on metric_id = metrics.id"
    with sqlite3.connect(db) as opened:
        return [
            (name, value, json.loads(detail or "{}"))
            for name, value, detail in opened.execute(asked)
        ]


def flat(told: Outcome) -> str:
    """Return the output of a command, in one line."""
    return " ".join(told.out.split())


def test_both_directions_under_the_same_keys_are_told_apart(relayd: Relayd, db: Path) -> None:
    assert relayd("import", "iperf3", given("01", "test.json"), *ENDS, "--db", db).code == 0
    asked = "SELECT src, dst, metric, connections, value FROM measurements ORDER BY value"
    with sqlite3.connect(db) as opened:
        assert opened.execute(asked).fetchall() == [
            ("gcp:us-east4", "aws:us-east-1", "aggregate_mbps", 8, 900.0),
            ("aws:us-east-1", "gcp:us-east4", "aggregate_mbps", 8, 4800.0),
        ]


def test_a_link_that_stalls_in_a_third_of_seconds_moves_two_thirds(
    relayd: Relayd, db: Path
) -> None:
    assert relayd("import", "iperf3", given("07", "test.json"), *ENDS, "--db", db).code == 0
    ((metric, value, detail),) = stored(db)
    assert metric == "per_flow_mbps"
    assert value == pytest.approx(627, rel=0.05)
    assert [change["pattern"] for change in detail["findings"]] == ["stall"]
    # 19 of 29 seconds moved data: their share is known to within its standard error.
    asked = ("plan", ENDS[1], ENDS[3], "-n", "1", "--vms", "1", "--relays", "none", "--json")
    plan = json.loads(relayd(*asked, "--volume", "100GB", "--db", db).out)
    expected, error = plan["throughput_gbps"], detail["mean_error"]
    assert expected == pytest.approx(value / 1000, rel=0.03)
    assert 1 / (1 + 29 * error**2) == pytest.approx(value / 940, rel=0.02)
    assert plan["throughput_gbps_low"] <= expected * exp(-1.645 * error)
    assert plan["throughput_gbps_high"] < 1.15 * expected


def test_pings_longer_than_the_mtu_are_no_loss(relayd: Relayd, db: Path) -> None:
    told = relayd("import", "ping", given("10", "ping.txt"), *ENDS, *AT, "--db", db)
    assert told.code == 5
    assert "message too long: the MTU here is 1460; ping with -s 1432 or less" in told.out
    assert stored(db) == []


@pytest.mark.parametrize(
    ("number", "words", "samples"),
    [
        ("16", "iperf3 test.json", [("per_flow_mbps", 900.0)]),
        ("19", "iperf3 test.json", [("per_flow_mbps", 900.0), ("per_flow_mbps", 910.0)]),
        ("17", "iperf out.txt", [("per_flow_mbps", 921.0)]),
        ("20", "iperf out.csv", [("per_flow_mbps", 949.925)]),
        ("25", "ping ping.txt", [("loss_pct", 0.0), ("rtt_ms", 19.4)]),
    ],
    ids=[
        "a side figure that is no number costs nothing else",
        "a list of documents is as good as one a line",
        "lines with the times of a log",
        "the CSV of iperf 2 counts at the sender",
        "a German ping tells its loss",
    ],
)
def test_what_tools_have_written_is_read(
    relayd: Relayd, db: Path, number: str, words: str, samples: list[tuple[str, float]]
) -> None:
    kind, name = words.split()
    told = relayd("import", kind, given(number, name), *ENDS, *AT, "--db", db)
    assert told.code == 0
    as_of = "2026-11-25T00" if kind == "ping" else "2026-11-01T10"  # its own time, where it has one
    assert f"as of {as_of}:00:00Z" in told.out
    found = stored(db)
    assert [(metric, value) for metric, value, _ in found] == samples
    assert found[0][2].get("counted_at") == ("sender" if name == "out.csv" else None)


def test_rows_of_a_study_are_read_by_the_names_of_its_columns(relayd: Relayd, db: Path) -> None:
    columns = "src=srcRegion,dst=destRegion,per_flow_mbps=received_mbps"
    columns += ",src_vm=machineType,dst_vm=machineType"
    asked = ("import", "csv", given("29", "run.json"), "--provider", "aws", "--columns", columns)
    assert relayd(*asked, *AT, "--db", db).code == 0
    ((metric, value, _),) = stored(db)
    assert (metric, value) == ("per_flow_mbps", 62.0)
    for wrong, said in (("src=from", "is no column of the file"), ("x=src", "does not know")):
        refused = relayd("import", "csv", given("29", "run.json"), "--columns", wrong, "--db", db)
        assert (refused.code, said in refused.err) == (2, True)


def test_a_matrix_is_read_as_the_figure_that_it_is_of(relayd: Relayd, db: Path) -> None:
    assert relayd("import", "csv", given("30", "m.csv"), "--metric", "rtt_ms", "--db", db).code == 0
    found = [(metric, value) for metric, value, _ in stored(db)]
    assert sorted(found) == [("rtt_ms", ms) for ms in (75.0, 75.0, 122.0, 122.0, 190.0, 190.0)]
    assert relayd("import", "csv", given("30", "m.csv"), "--metric", "luck", "--db", db).code == 2


def test_a_list_of_records_is_no_matrix(relayd: Relayd, db: Path) -> None:
    """The older API of cloudping.co."""
    file = given("42", "ab_cloudping_old.json")
    asked = ("import", file, "--provider", "aws", "--db", db)
    told = relayd(*asked, "--metric", "rtt_ms")
    assert (told.code, "--columns src=region,dst=regionTo,rtt_ms=average" in told.err) == (2, True)
    columns = ("--columns", "src=region,dst=regionTo,rtt_ms=average")
    for metric in ((), ("--metric", "rtt_ms")):
        assert relayd(*asked, *columns, *metric).code == 0
        asked_for = "SELECT src, dst, value FROM measurements ORDER BY value"
        with sqlite3.connect(db) as opened:
            assert opened.execute(asked_for).fetchall() == [
                ("aws:us-east-1", "aws:eu-west-1", 68.3),
                ("aws:eu-west-1", "aws:us-east-1", 68.5),
            ]


def test_zones_of_node_labels_stand_for_their_regions(relayd: Relayd) -> None:
    told = relayd("plan", "shuffle", given("53", "demands.csv"), "--vms", 1)
    assert (told.code, "azure:eastus -> gcp:europe-west4" in told.out) == (0, True)


def test_a_plan_rests_on_tests_of_single_flows_whose_addresses_are_not_stated(
    relayd: Relayd, db: Path
) -> None:
    assert relayd("import", "csv", given("56", "grid.csv"), "--db", db).code == 0
    asked = ("plan", "gcp:us-east1", "gcp:europe-west4", "--vms", 1, "-n", 1, "--relays", "none")
    told = flat(relayd(*asked, "--volume", "10GB", "--db", db))
    assert "Rests on 1 measured link" in told
    assert "was planned over public addresses" in told


def test_a_report_of_mtr_is_told_apart_and_read(relayd: Relayd, db: Path) -> None:
    told = relayd("import", "ping", given("21", "mtr.json"), *ENDS, *AT, "--db", db)
    assert (told.code, "Use `relayd import mtr`" in told.err) == (2, True)
    assert relayd("import", "mtr", given("21", "mtr.json"), *ENDS, *AT, "--db", db).code == 0
    found = {metric: value for metric, value, _ in stored(db)}
    assert found == {"rtt_ms": 20.6, "loss_pct": 10.0, "jitter_ms": 0.4}


def test_results_of_perfkit_are_read_over_both_kinds_of_address(relayd: Relayd, db: Path) -> None:
    told = relayd("import", "iperf3", given("26", "pkb.json"), *ENDS, "--db", db)
    assert (told.code, "Use `relayd import perfkit`" in told.err) == (2, True)
    assert relayd("import", "perfkit", given("26", "pkb.json"), "--db", db).code == 0
    assert [(metric, value) for metric, value, _ in stored(db)] == [
        ("per_flow_mbps", 5916.0),
        ("per_flow_mbps", 634.0),
    ]
    with open_store(db, mode="read") as store:
        assert [one.address for one in store.samples.read()] == ["private", None]


def test_a_test_paced_by_fair_queueing_is_not_the_path(relayd: Relayd, db: Path) -> None:
    told = relayd("import", "iperf3", given("39", "test.json"), *ENDS, "--db", db)
    assert told.code == 5
    assert "what was asked for, not what the path gives (--fq-rate)" in told.out
    assert stored(db) == []
    assert (
        relayd("import", "iperf3", given("39", "test.json"), *ENDS, "--db", db, "--force").code == 0
    )
    ((_, value, detail),) = stored(db)
    assert (value, detail["paced_at_mbps"]) == (1000.0, 1000.0)


def test_samples_of_a_vm_type_that_no_catalogue_has_count_and_say_so(
    relayd: Relayd, db: Path, tmp_path: Path
) -> None:
    as_given = str(tmp_path / "given.db")
    assert relayd("import", "csv", given("05", "m.csv"), "--db", as_given).code == 0
    asked = ("plan", "aws:eu-west-1", "aws:us-west-1", "--vms", 1, "-n", 1, "--json")
    plan = json.loads(relayd(*asked, "--db", as_given).out)
    assert plan["direct"]["throughput_gbps"] == pytest.approx(0.09, rel=0.06)
    unknown = tmp_path / "m.csv"
    unknown.write_text(given("05", "m.csv").read_text().replace("t2.medium", "m4.xlarge"))
    told = relayd("import", "csv", unknown, "--db", db)
    assert told.code == 0
    assert "samples at aws:eu-west-1 were taken with m4.xlarge, which the catalogue" in flat(told)
    plan = json.loads(relayd(*asked, "--db", db).out)
    assert plan["direct"]["throughput_gbps"] == pytest.approx(0.09, rel=0.06)  # but for slow start
    assert any("measured with m4.xlarge" in warning for warning in plan["warnings"])
    assert "taken with m4.xlarge" in flat(
        relayd("data", "samples", "list", "--disputed", "--db", db)
    )
    assert "taken with m4.xlarge" in flat(relayd("data", "doctor", "--db", db))


HEADER = "src,dst,aggregate_gbps,connections,duration_s,measured_at,src_vm,dst_vm"
FROM, TO = "aws:eu-west-1", "aws:us-west-1"


@pytest.mark.parametrize("vm", ["", "t2.medium"])
def test_tests_of_no_known_vm_type_are_at_most_its_card_and_give_way_to_others(
    relayd: Relayd, tmp_path: Path, db: Path, vm: str
) -> None:
    def direct_gbps() -> float:
        plan = json.loads(relayd("plan", FROM, TO, "--db", db, "--vms", 1, "--json").out)
        return float(plan["direct"]["throughput_gbps"])

    def add(gbps: float, vm: str, *days: int) -> str:
        rows = [f"{FROM},{TO},{gbps},64,30,2026-11-{day}T00:00Z,{vm},{vm}" for day in days]
        file = table(tmp_path / f"{days[0]}.csv", HEADER, *rows)
        return flat(relayd("import", "csv", file, "--db", db))

    add(95.0, vm, 20)
    assert direct_gbps() <= 10.0  # the network card of the default, m5.8xlarge
    assert "quarantine" not in add(4.5, "m5.8xlarge", 21)
    add(9.0, vm, *range(22, 28))
    assert direct_gbps() == pytest.approx(4.5, rel=0.08)
    assert "taken with c5n.large, which is not the VM type in use there" in add(
        3.0, "c5n.large", 19
    )


def test_the_whole_bill_of_private_subnets_is_planned(relayd: Relayd, tmp_path: Path) -> None:
    """60 TB through a NAT gateway at 0.048 USD per GB cost 2,880 USD more, in either direction."""
    refused = relayd("plan", FROM, TO, "--catalogue", given("35", "nat.toml"))
    assert (refused.code, "[[fee]]" in refused.err) == (2, True)
    fee = tmp_path / "fee.toml"
    stated = 'name = "NAT gateway"\nat = "aws:eu-west-1"\ndirection = "both"\nusd_per_gb = 0.048\n'
    fee.write_text(f"[[fee]]\n{stated}")
    for ends in (("aws:eu-west-1", "azure:westeurope"), ("azure:westeurope", "aws:eu-west-1")):
        asked = ("plan", *ends, "--volume", "60TB")
        without = json.loads(relayd(*asked, "--json").out)
        plan = json.loads(relayd(*asked, "--catalogue", fee, "--json").out)
        assert plan["cost_usd"]["total"] == pytest.approx(without["cost_usd"]["total"] + 2880)
        line = {"name": "NAT gateway", "quantity": 60000.0, "unit": "GB", "usd_per_unit": 0.048}
        assert plan["fees"] == [line | {"usd": pytest.approx(2880.0)}]
        for said in (without, plan):
            assert "Prices of egress hold for VMs with public addresses" in said["warnings"][-1]
    told = relayd("plan", *ends, "--volume", "60TB", "--catalogue", fee)
    assert "- NAT gateway: 60,000 GB at $0.048: $2,880.00" in told.out


def test_demands_that_are_no_numbers_are_refused(wan: Wan, relayd: Relayd, tmp_path: Path) -> None:
    matrix = np.array([[nan, 5.0], [nan, 0.0]])
    with pytest.raises(InputError, match="sa-east-1 -> us-east-1 must be a finite"):
        wan.shuffle(matrix, regions=["us-east-1", "sa-east-1"])
    own = np.array([[nan, 5.0], [1.0, nan]])
    assert len(wan.shuffle(own, regions=["us-east-1", "sa-east-1"]).pairs) == 2
    rows = ("us-east-1,eu-west-1,nan", "us-east-1,sa-east-1,5")
    told = relayd("plan", "shuffle", table(tmp_path / "x.csv", "src,dst,volume_gb", *rows))
    assert told.code == 2
    assert "us-east-1 -> eu-west-1 must be a finite number of GB" in told.err


def test_china_is_not_any_region(wan: Wan) -> None:
    """Beijing to Virginia is traffic to the internet, across a border."""
    ends = "aws:cn-north-1", "aws:us-east-1"
    with pytest.raises(DataError, match="No model crosses China's border"):
        wan.plan(*ends, volume_gb=100)
    (tier,) = wan.catalogue.egress_price(*ends).tiers
    assert tier.usd_per_gb >= 0.933 / 7.2  # CNY for a USD


ATLAS = {"loss_pct": [0.0, 0.0, 100.0, 100 / 3], "rtt_ms": [88.45, 88.65, 88.5]}
LONG = "src=source,dst=target,rtt_ms=Value,measured_at=Time"


@pytest.mark.parametrize(
    ("number", "name", "options", "right"),
    [
        ("44", "n_sockperf.txt", ENDS, {"rtt_ms": [88.4207]}),
        ("44", "o_qperf.txt", ENDS, {"rtt_ms": [88.4], "per_flow_mbps": [4320.0]}),
        ("46", "q_atlas.json", ENDS, ATLAS),
        (
            "48",
            "y_grafana.csv",
            ("--metric", "rtt_ms"),
            {"rtt_ms": [68.1, 68.3, 68.2, 115, 115, 114]},
        ),
        ("48", "y_grafana_long.csv", ("--columns", LONG), {"rtt_ms": [68.1]}),
        (
            "48",
            "y_grafana_long.csv",
            (),
            "--columns src=source,dst=target,measured_at=Time,rtt_ms=Value",
        ),
        ("29", "run.json", (), "src=srcRegion,dst=destRegion,per_flow_mbps=received_mbps"),
        ("51", "ag_cur.csv", (), "is a cloud bill. It says what was moved, not how fast"),
        ("52", "spark.json", (), "is a Spark event log. `relayd plan shuffle`"),
    ],
)
def test_files_of_more_tools_are_read_or_told_what_they_are(
    relayd: Relayd,
    db: Path,
    number: str,
    name: str,
    options: tuple[str, ...],
    right: dict[str, list[float]] | str,
) -> None:
    provider = () if options == ENDS else ("--provider", "aws")
    told = relayd("import", given(number, name), *options, *provider, "--db", db)
    if isinstance(right, str):
        assert (told.code, right in told.err) == (2, True)
        return
    assert told.code == 0
    assert "already there" not in told.out
    found: dict[str, list[float]] = {}
    for metric, value, _ in stored(db):
        found.setdefault(metric, []).append(value)
    found.pop("jitter_ms", None)
    assert found == {metric: pytest.approx(values) for metric, values in right.items()}


def test_advice_on_windows_ends_at_what_a_flow_may_carry(relayd: Relayd) -> None:
    vms = ("--vms", "1", "-n", "1", "--vm-type", "aws=c7gn.16xlarge")
    told = flat(relayd("plan", "aws:us-east-1", "aws:us-east-2", "--volume", "1TB", *vms))
    assert "direct: 5.00 Gbit/s" in told.partition("Raise TCP windows")[2][:120]


def test_a_data_frame_of_rows_is_demands(wan: Wan) -> None:
    pandas = pytest.importorskip("pandas")
    rows = {"src": ["us-east-1"] * 2, "dst": ["eu-west-1", "sa-east-1"], "volume_gb": [3.0, 5.0]}
    assert len(wan.shuffle(pandas.DataFrame(rows)).pairs) == 2


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("East US 2", "azure:eastus2"),
        ("West Europe", "azure:westeurope"),
        ("US East (N. Virginia)", "aws:us-east-1"),
        ("EU (Ireland)", "aws:eu-west-1"),
        ("Asia Pacific (Tokyo)", "aws:ap-northeast-1"),
    ],
)
def test_names_on_bills_are_regions(relayd: Relayd, name: str, region: str) -> None:
    told = relayd("plan", "--src", name, "--dst", "gcp:us-central1", "--volume", "1GB")
    assert f"{region} -> gcp:us-central1" in told.out


def test_every_case_has_its_test() -> None:
    folders = shared("aggregate_2022-01.csv").parents[1].joinpath("field-cases").iterdir()
    numbers = {folder.name[:2] for folder in folders}
    of_no_file = {"03", "11", "32", "33"}  # commands and calls, above
    assert numbers == {*of_no_file, *re.findall(r'"(\d\d)",', Path(__file__).read_text())}
