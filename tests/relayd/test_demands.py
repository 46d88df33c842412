"""Demands out of bills, logs, networks and tables of others, and the study of a bill."""

from __future__ import annotations

import csv
import gzip
import io
import json
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

import relayd as library
from planner.model.errors import FormatError, InputError
from relayd.bills import INTERNET, OTHER, RECEIVED, UNREADABLE, UNSTATED, Bill, read_bill
from relayd.catalogue.loading import load_catalogue
from relayd.demands import read_demands
from tests.relayd.conftest import Relayd
from tests.relayd.test_field_cases import given


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


CATALOGUE, STUDY = ("data", "catalogue", "import"), ("study", "bill")
LOG = Path(__file__).parent / "integrations" / "event_log.jsonl"

CUR_1 = (
    "identity/LineItemId,bill/BillingPeriodStartDate,lineItem/LineItemType,lineItem/UsageType,"
    "lineItem/UsageAmount,lineItem/CurrencyCode,lineItem/UnblendedCost",
    "1,2026-10-01T00:00:00Z,Usage,USE1-EUC1-AWS-Out-Bytes,300,USD,6.0000000001",
    "2,2026-11-01T00:00:00Z,Usage,USE1-EUC1-AWS-Out-ABytes,100,USD,4",
    "3,2026-11-01T00:00:00Z,Usage,DataTransfer-Out-Bytes,50,USD,4.5",
    "4,2026-11-01T00:00:00Z,Usage,EUC1-USE1-AWS-In-Bytes,400,USD,0",
    "5,2026-11-01T00:00:00Z,Usage,EU-BoxUsage:c6i.large,720,USD,61.2",
    "6,2026-11-01T00:00:00Z,Usage,US-DataTransfer-Out-Bytes,9,USD,0.81",
    "7,2026-11-01T00:00:00Z,Credit,USE1-EUC1-AWS-Out-Bytes,300,USD,-1",
)
CUR_2 = (
    "bill_billing_period_start_date,line_item_usage_type,line_item_usage_amount,"
    "line_item_unblended_cost,product_from_region_code,product_to_region_code",
    "2026-11-01 00:00:00.000,EU-EUC1-AWS-Out-Bytes,7,0.14,,",
    "2026-11-01 00:00:00.000,Whatever-AWS-Out-Bytes,7,0.14,us-east-1,eu-central-1",
    "2026-11-01 00:00:00.000,USE1-ZZZ9-AWS-Out-Bytes,5,0.10,,",
)
EA = (
    "Date,MeterCategory,MeterSubCategory,MeterName,Quantity,UnitOfMeasure,CostInBillingCurrency,"
    "BillingCurrencyCode,ResourceLocation",
    "11/03/2026,Bandwidth,Inter-Region,Intra Continent Data Transfer Out,40,1 GB,0.8,USD,US East 2",
    "11/03/2026,Bandwidth,,Standard Data Transfer Out,10,1 GB,0.87,USD,EU West",
    "11/03/2026,Bandwidth,,Standard Data Transfer In,10,1 GB,0,USD,eastus2",
    "11/03/2026,Bandwidth,,Standard Data Transfer Out,10,10 GB,8.7,USD,eastus2",
    "11/03/2026,Virtual Machines,,D4as v7,24,1 Hour,4.1,USD,eastus2",
)
GOOGLE: list[dict[str, Any]] = [
    {
        "sku": {"description": f"Network {what}"},
        "location": {"region": "us-central1"},
        "usage": {"amount": 2e12, "unit": "bytes"},
        "cost": cost,
        "currency": "USD",
        "invoice": {"month": "202611"},
        "credits": [{"amount": -1}],
    }
    for what, cost in (
        ("Inter Region Data Transfer Out from Americas to Netherlands", 100.25),
        ("Inter Region Data Transfer Out from Americas to Atlantis", 1e-7),
        ("Internet Data Transfer Out from Americas to Australia", 3),
        ("Inter Region Data Transfer In from APAC to Americas", 0),
    )
]


def bill_of(*lines: str) -> Bill:
    found = read_bill("\n".join(lines), "bill", load_catalogue())
    assert found
    return found


def told(bill: Bill) -> dict[tuple[str, str], tuple[int, float, Decimal]]:
    return {p: (rows, float(bill.volume_gb[p]), bill.paid[p]) for p, rows in bill.rows.items()}


def test_usage_types_of_aws_say_both_ends() -> None:
    bill = bill_of(*CUR_1)
    pair = ("aws:us-east-1", "aws:eu-central-1")
    assert told(bill) == {
        pair: (3, 400.0, Decimal("9.0000000001")),
        ("aws:us-east-1", INTERNET): (1, 50.0, Decimal("4.5")),
        ("aws:eu-central-1", RECEIVED): (1, 400.0, Decimal(0)),
        (OTHER, OTHER): (1, 0.0, Decimal("61.2")),
        (UNREADABLE, UNREADABLE): (1, 9.0, Decimal("0.81")),
    }
    assert bill.demands_gb() == {pair: 200.0}  # of a mean month of two
    (note,) = bill.notes()
    assert "2026-10 to 2026-11: 9.00 USD was paid for these in all. Not planned" in note
    assert "4.50 USD was paid for the internet, 0.81 USD was paid for traffic that" in note


def test_columns_of_aws_go_before_codes_and_unknown_ends_are_not_guessed() -> None:
    assert {p: gb for p, (_, gb, _) in told(bill_of(*CUR_2)).items()} == {
        ("aws:eu-west-1", "aws:eu-central-1"): 7.0,
        ("aws:us-east-1", UNSTATED): 5.0,
        (UNREADABLE, UNREADABLE): 7.0,
    }


def test_azure_does_not_say_to_which_region() -> None:
    assert told(bill_of(*EA)) == {
        ("azure:eastus2", UNSTATED): (1, 40.0, Decimal("0.8")),
        ("azure:westeurope", INTERNET): (1, 10.0, Decimal("0.87")),
        ("azure:eastus2", RECEIVED): (1, 10.0, Decimal(0)),
        (UNREADABLE, UNREADABLE): (1, 0.0, Decimal("8.7")),
        (OTHER, OTHER): (1, 0.0, Decimal("4.1")),
    }
    newer = [EA[0].replace("CostInBillingCurrency", "costInUsd"), EA[1].replace("USD", "EUR")]
    assert bill_of(*newer).currency == "USD"


@pytest.mark.parametrize("shape", ["lines", "list", "csv"])
def test_skus_of_google_name_the_place_that_receives(shape: str) -> None:
    text = "\n".join(map(json.dumps, GOOGLE)) if shape == "lines" else json.dumps(GOOGLE)
    if shape == "csv":
        stream = io.StringIO()
        heads = ["sku.description", "location.region", "usage.amount_in_pricing_units"]
        rows = csv.writer(stream)
        rows.writerow([*heads, "usage.pricing_unit", "cost", "invoice.month"])
        for one in GOOGLE:
            where, gib = "us-central1", 2e12 / 2**30
            said = [one["sku"]["description"], where, gib, "gibibyte", one["cost"], "202611"]
            rows.writerow(said)
        text = stream.getvalue()
    bill = bill_of(text)
    assert {p: (round(gb, 6), paid) for p, (_, gb, paid) in told(bill).items()} == {
        ("gcp:us-central1", "gcp:europe-west4"): (2000.0, Decimal("100.25")),
        ("gcp:us-central1", UNSTATED): (2000.0, Decimal("1e-7")),
        ("gcp:us-central1", INTERNET): (2000.0, Decimal(3)),
        ("gcp:us-central1", RECEIVED): (2000.0, Decimal(0)),
    }
    assert (bill.months, bill.span) == (1, "2026-11")


def test_a_bill_that_would_not_add_up_is_refused() -> None:
    for damaged in ("8,2026-11-01,Usage,x,1,USD,much", "8,2026-11-01", "9,2026-11,,x,1,EUR,3"):
        with pytest.raises(FormatError, match="can't be read, or is of another currency"):
            bill_of(*CUR_1, damaged)
    with pytest.raises(FormatError, match="got 'much'"):
        bill_of(*CUR_1, "8,2026-11-01,Usage,x,1,USD,much")
    assert read_bill("src,dst,gb\na,b,3\n", "x", load_catalogue()) is None


USAGE = st.sampled_from([line.split(",")[3] for line in CUR_1[1:]])
CENTS = st.decimals(-9, 999, places=10)


@drawn(st.lists(st.tuples(USAGE, st.sampled_from(["", "x", "12.5"]), CENTS), max_size=40))
def test_lines_add_up_to_the_bill(rows: list[tuple[str, str, Decimal]]) -> None:
    lines = [
        f"{i},2026-11,Usage,{usage},{gb},USD,{paid}" for i, (usage, gb, paid) in enumerate(rows)
    ]
    bill = bill_of(*CUR_1, *lines)
    assert sum(bill.paid.values()) == Decimal("75.5100000001") + sum(paid for *_, paid in rows)
    assert bill.rows.total() == 7 + len(rows)


def made_up(rows: int) -> Iterator[str]:
    """Yield three months of a bill between ten regions."""
    codes = ["USE1", "USE2", "USW2", "EUC1", "EUW1", "APN1", "APS1", "SAE1", "CAN1", "EUW3"]
    yield CUR_1[0] + "".join(f",resourceTags/user:{i}" for i in range(60))
    for i in range(rows):
        src, dst = codes[i % 10], codes[(i + 1 + i // 10 % 9) % 10]
        usage = f"{src}-{dst}-AWS-Out-Bytes" if i % 3 else f"{src}-DataTransfer-Out-Bytes"
        yield (
            f"{i},2026-{9 + i % 3:02d}-01,Usage,{usage},{i / 7:.9f},USD,{i / 900:.10f}" + ",x" * 60
        )


def test_a_bill_is_studied_to_the_cent_in_seconds(relayd: Relayd, tmp_path: Path) -> None:
    rows = [*made_up(40_000)]
    paid = sum((Decimal(row.split(",")[6]) for row in rows[1:]), Decimal(0))
    file = tmp_path / "bill.csv.gz"
    file.write_bytes(gzip.compress("\n".join(rows).encode()))
    began_s = time.process_time()
    found = json.loads(relayd("study", "bill", file, "--json").out)
    assert time.process_time() - began_s < 10
    assert len(found["traffic"]) > 60
    assert sum(one["rows"] for one in found["traffic"]) == 40_000
    assert round(sum(one["paid_usd"] for one in found["traffic"]), 2) == float(round(paid, 2))
    assert round(found["paid_usd"], 6) == float(round(paid, 6))
    pairs = [one for one in found["traffic"] if one["dst"] != INTERNET]
    assert all(one["direct_usd"] >= one["list_usd"] * 0.999 and one["direct_s"] for one in pairs)


def test_a_study_compares_prices_and_other_ways(relayd: Relayd, wan: library.Wan) -> None:
    Path("bill").write_text("\n".join(CUR_1))
    found = json.loads(relayd("study", "bill", "bill", "--json").out)
    lines = {(one["src"], one["dst"]): one for one in found["traffic"]}
    pair = lines["aws:us-east-1", "aws:eu-central-1"]
    plan = wan.plan("aws:us-east-1", "aws:eu-central-1", volume_gb=200, objective="cost")
    assert plan.direct.cost_usd
    assert plan.best_relay
    assert pair["list_usd"] == pytest.approx(2 * plan.direct.cost_usd.egress)
    assert pair["direct_usd"] == pytest.approx(2 * plan.direct.cost_usd.total)
    assert pair["direct_s"] == plan.direct.duration_s
    assert pair["other_usd"] <= 2 * plan.best_relay.cost_usd.total
    assert lines["aws:us-east-1", INTERNET]["list_usd"] == pytest.approx(50 * 0.09)
    assert relayd("study", "bill", "bill").code == 0
    Path("euros").write_text("\n".join(CUR_1).replace("USD", "EUR"))
    refused = relayd("study", "bill", "euros")
    assert (refused.code, "is in EUR" in refused.err) == (2, True)


def test_a_bill_is_drawn(relayd: Relayd) -> None:
    pytest.importorskip("vl_convert")
    Path("bill.csv").write_text("\n".join(CUR_1))
    paid = json.loads(relayd("study", "bill", "bill.csv", "--json").out)
    assert relayd("study", "bill", "bill.csv", "-o", "bill.html").code == 0
    text = Path("bill.html").read_text()
    assert "<svg" in text
    assert "cheapest other way" in text
    for line in paid["traffic"]:
        assert f"<td>{line['paid_usd']:,.2f}</td>" in text


def test_a_bill_is_demands_of_a_shuffle(relayd: Relayd) -> None:
    bill = given("51", "ag_cur.csv")
    answer = json.loads(relayd("plan", "shuffle", bill, "--json").out)
    assert {(one["src"], one["dst"]): one["volume_gb"] for one in answer["pairs"]} == {
        ("aws:us-east-1", "aws:eu-central-1"): 51_200,
        ("aws:us-east-1", "aws:ap-northeast-1"): 10_240,
    }
    assert "1,228.80 USD was paid for these in all." in " ".join(answer["warnings"])
    azure = Path("azure.csv")
    azure.write_text("\n".join(EA))
    refused = relayd("plan", "shuffle", azure)
    assert (refused.code, "`relayd study bill azure.csv`" in refused.err) == (2, True)


def test_demands_of_any_kind_are_transfers_of_a_schedule(relayd: Relayd) -> None:
    answer = relayd("plan", "schedule", given("51", "ag_cur.csv"), "--due", "30d", "--json")
    found = json.loads(answer.out)["transfers"]
    assert {(one["src"], one["dst"], one["volume_gb"], one["deadline_s"]) for one in found} == {
        ("aws:us-east-1", "aws:eu-central-1", 51_200, 30 * 86_400),
        ("aws:us-east-1", "aws:ap-northeast-1", 10_240, 30 * 86_400),
    }
    assert "1,228.80 USD was paid for these in all." in answer.err
    Path("own.csv").write_text("src,dst,gb,deadline\nus-east,sa,5,1h\nsa,us-east,5,\n")
    own = json.loads(relayd("plan", "schedule", "own.csv", "--due", "6h", "--json").out)
    assert [one["deadline_s"] for one in own["transfers"]] == [3600, 21_600]
    Path("odd.csv").write_text("sender,receiver,moved\nus-east,sa,5\n")
    for name, said in (("odd.csv", "--columns"), ("missing.csv", "can't be read")):
        refused = relayd("plan", "schedule", name, "--due", "6h")
        assert (refused.code, said in refused.err) == (2, True)


def test_what_a_job_wrote_goes_to_readers_by_their_shares() -> None:
    demands = read_demands(str(LOG))
    written = {"aws:us-east-1": 252948, "azure:eastus": 417848, "aws:ap-northeast-1": 139266}
    for src, size in written.items():
        sent = sum(gb for (start, _), gb in demands.items() if start == src)
        assert 0 < sent < size * 1e-9
    assert "which has no pairs" in demands.notes[0]
    plain = Path("log")
    plain.write_text(LOG.read_text().replace('{"REGION": "azure:eastus"}', "{}"))
    with pytest.raises(InputError, match="do not say where a host is"):
        read_demands("log")
    placed = read_demands("log", regions={"127.0.0.1": "gcp:us-east1"})
    assert sum(placed.values()) == pytest.approx(sum(demands.values()))


def test_a_log_without_writers_says_what_is_needed(relayd: Relayd) -> None:
    refused = relayd("plan", "shuffle", given("52", "spark.json"))
    assert refused.code == 2
    assert "is an event log of Spark" in refused.err
    assert "Shuffle Bytes Written" in refused.err


@pytest.mark.parametrize(
    ("text", "gb", "more"),
    [
        ("source,target,Traffic [GiB],note\nParis,Lyon,10,x\n", 10.73741824, {}),
        ("from,to,sent_bytes\nParis,Lyon,10000000000\n", 10, {}),
        ("src,dst,volume\nParis,Lyon,2 TiB\n", 2199.023255552, {}),
        ("src,dst,volume\nParis,Lyon,2\n", 2000, {"unit": "TB"}),
        ("a,b,rate\nParis,Lyon,8\n", 8000, {"unit": "TB"}),
        ("TB,Paris,Lyon\nParis,,1.5\nLyon,0,\n", 1500, {}),
        (',Paris,Lyon\nParis,,"1,500 MB"\nLyon,0,\n', 1.5, {}),
        ('[{"a": "Paris", "b": "Lyon", "rate": 2}]', 2, {}),
        ('{"rows": [{"src": "Paris", "dst": "Lyon", "kilobytes": 5e6}]}', 5, {}),
        ("TB\tParis\tLyon\nParis\t\t1.5\nLyon\t0\t\n", 1500, {}),
        ("from;to;GB\n\nParis;Lyon;5\n", 5, {}),
        ("| from | to | GB |\n|---|---|---|\n| Paris | Lyon | 5 |\n", 5, {}),
        ("<table><tr><th>from<th>to<th>MB</tr><tr><td>Paris<td>Lyon<td>5000</tr></table>", 5, {}),
    ],
)
def test_tables_are_read_in_any_unit(
    tmp_path: Path, text: str, gb: float, more: dict[str, str]
) -> None:
    file = tmp_path / "table"
    file.write_text(text)
    columns = {"src": "a", "dst": "b", "volume_gb": "rate"} if "rate" in text else {}
    demands = read_demands(str(file), columns=columns, unit=more.get("unit", ""))
    assert demands == {("Paris", "Lyon"): pytest.approx(gb)}


def test_a_damaged_table_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "table"
    file.write_text("from;to;GB\nParis;Lyon;5\nLyon;Paris\n")
    with pytest.raises(FormatError, match="line 3 has fewer columns"):
        read_demands(str(file))


def test_bits_for_bytes_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "table"
    file.write_text("src,dst,data (Gb)\nParis,Lyon,3\n")
    with pytest.raises(InputError, match="is in bits"):
        read_demands(str(file))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("origin,sink,sent_bytes\nus-east-1,eu-west-1,5\n", "volume_gb=sent_bytes"),
        ("when,source host,peer,n\n2026-11-01,us-east-1,eu-west-1,5\n", "volume_gb=n' --unit GB"),
    ],
)
def test_the_line_that_would_read_an_unknown_table_does(
    relayd: Relayd, text: str, words: str
) -> None:
    Path("x.csv").write_text(text)
    refused = relayd("plan", "shuffle", "x.csv")
    assert (refused.code, "sent_bytes ('5', in B)" in refused.err) == (2, "sent" in text)
    assert words in refused.err
    line = refused.err.strip().partition("relayd plan ")[2].replace("'", "")
    words_of = line.split(" --columns ")[1].split(" --unit ")
    read = relayd(
        *("plan", "shuffle", "x.csv", "--columns", words_of[0]),
        *(("--unit", words_of[1]) if words_of[1:] else ()),
    )
    assert (read.code, read.err) == (0, "")


def test_a_table_of_figures_is_no_demands(relayd: Relayd) -> None:
    Path("x").write_text("src,dst,per_flow_mbps\na,b,3\n")
    refused = relayd("plan", "shuffle", "x")
    assert (refused.code, "Use `relayd import x`" in refused.err) == (2, True)


@pytest.mark.parametrize(
    "command",
    [("plan", "shuffle"), ("plan", "schedule"), ("plan", "--many"), STUDY, CATALOGUE, ("import",)],
)
@pytest.mark.parametrize(
    ("text", "door"),
    [
        ('{"start": {}, "intervals": [], "end": {}}', ("import",)),
        ("\n".join(CUR_1), STUDY),
        (LOG.read_text(), ("plan", "shuffle")),
        ('{"formatVersion": "v1.0", "offerCode": "AmazonEC2"}', CATALOGUE),
    ],
)
def test_what_is_for_another_command_is_sent_there(
    relayd: Relayd, command: tuple[str, ...], text: str, door: tuple[str, ...]
) -> None:
    Path("x").write_text(text)
    answer = relayd(*command, "x")
    is_read = command == door or (command[0] == "plan" and door in {("plan", "shuffle"), STUDY})
    sent = f"`relayd {' '.join(door)}" in answer.err
    assert sent is not is_read
    assert is_read or answer.code == 2


NATIVE = """?SNDlib native format; type: network; version: 1.0
META (
  granularity = 5min
  unit = MBITPERSEC
)
NODES (
  Paris ( 2.3 48.9 )
)
LINKS (
  L1 ( Paris N2 ) 0.00 0.00 0.00 0.00 ( 9920.00 133.00 )
)
DEMANDS (
  # <demand_id> ( <source> <target> ) <routing_unit> <demand_value> <max_path_length>
  D1 ( Paris N2 ) 1 800.00 UNLIMITED
  D2 ( N2 Paris ) 1 1.6e2 5
)
"""
XML = """<?xml version="1.0" encoding="ISO-8859-1"?>
<network xmlns="http://sndlib.zib.de/network" version="1.0"><meta>
<granularity>5min</granularity><unit>MBITPERSEC</unit></meta><demands><demand id="D1"><source>Paris
</source><target>N2</target><routingUnit>1</routingUnit><demandValue> 800 </demandValue></demand>
<demand id="D2"><source>N2</source><target>Paris</target><demandValue>160</demandValue></demand>
</demands></network>"""
GRAPHML = """<?xml version="1.0"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="v" for="edge" attr.name="demand_tb" attr.type="double"/>
<key id="l" for="node" attr.name="label" attr.type="string"/><graph edgedefault="directed">
<node id="1"><data key="l">Paris</data></node><node id="N2"/>
<edge source="1" target="N2"><data key="v">0.03</data></edge>
<edge source="N2" target="1"><data key="v">0.006</data></edge></graph></graphml>"""


@pytest.mark.parametrize("text", [NATIVE, XML, GRAPHML])
def test_networks_are_demands(relayd: Relayd, text: str) -> None:
    Path("network").write_text(text)
    demands = read_demands("network", regions={"N2": "aws:us-east-1"})
    assert demands == {
        ("Paris", "aws:us-east-1"): pytest.approx(30),
        ("aws:us-east-1", "Paris"): pytest.approx(6),
    }
    assert "".join(demands.notes).endswith("move in 5 min 00 s.") == (text != GRAPHML)
    nodes = "N2=aws:us-east-1,Paris=gcp:Paris"
    planned = relayd("plan", "shuffle", "network", "--regions", nodes)
    assert (planned.code, "aws:us-east-1 -> gcp:europe-west9" in planned.out) == (0, True)


def test_networks_without_a_unit_or_a_volume_are_refused() -> None:
    for text in (NATIVE, XML):
        Path("network").write_text(text.replace("MBITPERSEC", ""))
        with pytest.raises(FormatError, match=r"states no unit.*--unit GB"):
            read_demands("network")
        assert read_demands("network", unit="TB")["Paris", "N2"] == 800_000
    Path("network").write_text(NATIVE.replace("MBIT", "FURLONGS"))
    with pytest.raises(InputError, match="unknown unit 'furlongs/s'"):
        read_demands("network")
    Path("network").write_text(GRAPHML.replace("demand_tb", "colour"))
    with pytest.raises(FormatError, match=r"it has src \('Paris'\), dst \('N2'\), colour"):
        read_demands("network")
    for damaged in (GRAPHML[:-9], f'<!DOCTYPE g SYSTEM "file:///etc/passwd">{GRAPHML[21:]}&x;'):
        Path("network").write_text(damaged)
        with pytest.raises(FormatError, match="is no graph that networkx reads"):
            read_demands("network")


def test_labels_of_nodes_name_regions(wan: library.Wan) -> None:
    for label in ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone"):
        assert wan.resolve(f"{label}=europe-west4").region_id == "gcp:europe-west4"
    assert wan.resolve("topology.kubernetes.io/zone: us-east-1a").region_id == "aws:us-east-1"


def test_files_are_read_with_any_ends_of_lines_and_damage_is_named() -> None:
    file = Path("demands.csv.gz")
    whole = gzip.compress(b"src,dst,volume_gb\rParis,Lyon,3\r\nLyon,Paris,1\n")
    file.write_bytes(whole)
    assert read_demands(file) == {("Paris", "Lyon"): 3, ("Lyon", "Paris"): 1}
    for damaged in (whole[:-9], whole[:-5] + b"12345"):
        file.write_bytes(damaged)
        with pytest.raises(FormatError, match="is damaged"):
            read_demands(file)
    log = LOG.read_text().replace(
        '"Shuffle Bytes Written": ', '"Shuffle Bytes Written": ' + "9" * 400
    )
    Path("log").write_text(log)
    with pytest.raises(FormatError, match="is an event log of Spark without"):
        read_demands("log")
