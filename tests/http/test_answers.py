"""What the service answers is what the library says."""

from __future__ import annotations

import gzip
import json
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import relayd
from planner.model.document import NETWORK_COLUMNS, network_of, network_of_columns
from relayd.http.answers import relay_gains_bytes
from tests.http.running import REGIONS, Served
from tests.properties import examples
from tests.relayd.test_field_cases import given as given_case

PAIR = {"src": "us-east", "dst": "sa"}


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ends=st.permutations(REGIONS[:3]).map(lambda names: names[:2]),
    volume_gb=st.floats(0.001, 1e6),
    objective=st.sampled_from(["value", "time", "cost", "latency"]),
    vms=st.integers(1, 12),
    connections=st.sampled_from([1, 8, 64]),
    avoid=st.sampled_from([[], ["provider:gcp"], ["gcp:us-east1"]]),
    frontier=st.booleans(),
)
def test_a_plan_is_the_librarys(
    service: Served, measured: Path, ends: list[str], frontier: bool, **more: Any
) -> None:
    asked = {"src": ends[0], "dst": ends[1], "frontier": frontier, **more}
    expected = relayd.open(measured).plan(**asked).model_dump("json")
    posted = service.ask("POST", "/v1/plans", asked)
    path = "/v1/plans?" + urlencode({**asked, "frontier": str(frontier).lower()}, True)
    got, again = service.get(path), service.get(path)
    batch = service.ask("POST", "/v1/plans/batch", {"plans": [asked]}).json
    for answer in (posted.json, got.json, again.json, batch["results"][0]["plan"]):
        assert answer == expected
    assert got.headers["Relayd-Snapshot"] == expected["snapshot"]["id"] == batch["snapshot"]["id"]


MANY: dict[str, Any] = {
    "src": [*REGIONS[:3], REGIONS[0]] * 300,
    "dst": REGIONS[3],
    "volume_gb": [1, "2TB", 30, 400] * 300,
    "vms": [None, 2, 3, None] * 300,
    "budget_usd": [None, None, 0.0001, None] * 300,
}


def test_decisions_are_the_librarys(service: Served, measured: Path) -> None:
    expected = relayd.open(measured).decide(**MANY)
    assert {*expected["verdict"]} >= {"direct", "infeasible"}
    with relayd.RemoteWan(service.url) as wan:
        assert str(wan.decide(**MANY).tolist()) == str(expected.tolist())
    columns = service.ask("POST", "/v1/decisions", MANY).json["decisions"]
    assert set(columns) == set(expected.dtype.names or ())
    for name, values in columns.items():
        assert [None if one != one else one for one in expected[name].tolist()] == values
    kind = "application/vnd.apache.arrow.stream"
    stream = service.ask("POST", "/v1/decisions", MANY, headers={"Accept": kind}).content
    table = pytest.importorskip("pyarrow").ipc.open_stream(stream).read_all()
    assert table.column("cost_usd").to_numpy() == pytest.approx(expected["cost_usd"], nan_ok=True)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"src": [*["us-east"] * 700, "us-eas"]}, "[700] src"),
        ({"volume_gb": [1, 0], "vms": [1] * 3}, "volume_gb"),
        ({"volume_gb": [1, 0] * 600}, "volume_gb[1]"),
        ({"src": ["eu"] * 10_001}, "src"),
        ({"volum": [3] * 1200}, "[0] volum"),
        ({"objective": ["time", "fast"] * 600}, "[1] objective"),
        ({"src": 7}, "src"),
    ],
)
def test_wrong_decisions_name_the_transfer(
    service: Served, change: dict[str, object], field: str
) -> None:
    asked = (
        {"src": "us-east", "dst": "sa"} if "volume_gb" not in change and "src" in change else MANY
    )
    answer = service.ask("POST", "/v1/decisions", {**asked, **change})
    assert answer.status == 422
    assert answer.json["field"] == field


def test_files_of_demands_are_read_as_the_library_reads_them(service: Served) -> None:
    bill = given_case("51", "ag_cur.csv")
    log = Path(__file__).parents[1] / "relayd" / "integrations" / "event_log.jsonl"
    many = "src,dst,TB\n" + "".join(f"site:a{n},site:b{n},{n + 1}\n" for n in range(80_000))
    for text in (bill.read_text(), log.read_text(), many):
        read = relayd.read_demands("it", text=text)
        answer = service.ask("POST", "/v1/demands", {"text": text})
        assert answer.json["notes"] == list(read.notes)
        found = {(one["src"], one["dst"]): one["volume_gb"] for one in answer.json["demands"]}
        assert found == read
    plan = service.ask("POST", "/v1/shuffles", {"demands": [*answer.json["demands"][:1]]})
    assert plan.json["kind"] == "unknown-region"  # such as `site:a0`
    odd = service.ask("POST", "/v1/demands", {"text": "sender,receiver,moved\nus-east,sa,5\n"})
    assert (odd.status, "--columns src=sender" in odd.json["detail"]) == (422, True)
    moved = {"text": "a,b\n1,2\n", "unit": "furlong"}
    assert service.ask("POST", "/v1/demands", moved).json["field"] == "volume_gb"


def test_a_plan_can_be_the_decision_alone(service: Served) -> None:
    path = f"/v1/plans?{urlencode(PAIR)}"
    whole, few = service.get(path).json, service.get(f"{path}&details=decision").json
    assert whole["advice"]
    assert not any(few[key] for key in ("advice", "alternatives", "best_relay"))
    for key in ("verdict", "paths", "vms", "throughput_gbps_low", "duration_s", "cost_usd"):
        assert few[key] == whole[key]


@pytest.mark.parametrize(
    ("asked", "status", "kind", "members"),
    [
        ({"src": "us-eas", "dst": "sa"}, 422, "unknown-region", {"field": "src"}),
        ({**PAIR, "budget_usd": 0.0001}, 422, "infeasible", {}),
        ({**PAIR, "max_age_s": 1}, 409, "data", {}),
        ({**PAIR, "volum": "1TB"}, 422, "input", {"field": "volum"}),
        ({**PAIR, "volume": 5}, 422, "input", {"field": "volume", "value": 5}),
    ],
)
def test_errors_say_what_the_librarys_exceptions_say(
    service: Served, asked: dict[str, object], status: int, kind: str, members: dict[str, object]
) -> None:
    answer = service.ask("POST", "/v1/plans", asked)
    problem = answer.json
    assert answer.status == problem["status"] == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert problem["kind"] == kind
    assert problem["request_id"] == answer.headers["X-Request-ID"]
    assert members.items() <= problem.items()
    if kind == "unknown-region":
        assert "us-east" in problem["near"]
    if kind == "infeasible":
        assert problem["limit"]
        assert problem["remedy"]


@pytest.mark.parametrize(
    ("path", "asked", "field"),
    [
        ("/v1/shuffles", {"demands": [[f"r{i}", "sa", 1] for i in range(10_001)]}, "demands"),
        (
            "/v1/broadcasts",
            {"src": "us-east", "destinations": [f"r{i}" for i in range(101)]},
            "destinations",
        ),
        (
            "/v1/placements/tasks",
            {
                "tasks": [{"id": "map", "cpus": 1}],
                "traffic": [],
                "vms": [{"id": f"v{i}", "region": "us-east", "cpus": 1} for i in range(201)],
            },
            "vms",
        ),
    ],
)
def test_the_service_has_limits_of_its_own(
    service: Served, path: str, asked: dict[str, Any], field: str
) -> None:
    answer = service.ask("POST", path, asked)
    assert answer.status == 422
    assert answer.json["field"] == field
    assert "for this service" in answer.json["detail"]


def test_pages_together_are_the_whole(service: Served, measured: Path) -> None:
    wan = relayd.open(measured)
    seen: list[tuple[str, str]] = []
    cursor = ""
    while True:
        page = service.get(f"/v1/links?limit=700{cursor}").json
        seen += [(link["src"], link["dst"]) for link in page["links"]]
        if page["next_cursor"] is None:
            break
        cursor = "&cursor=" + quote(page["next_cursor"])
    assert seen == sorted((link.src, link.dst) for link in wan.network)
    measured_links = service.get("/v1/links?source=measured&limit=1000").json["links"]
    assert len(measured_links) == len(REGIONS) * (len(REGIONS) - 1)
    assert {"gcp:us-east1"} == {
        link["src"] for link in service.get("/v1/links?src=gcp:us-east1").json["links"]
    }


def test_the_history_of_a_link_has_its_samples_a_page_at_a_time(service: Served) -> None:
    path = "/v1/links/us-east/sa/history?limit=1"
    first = service.get(path).json
    second = service.get(f"{path}&cursor={quote(first['next_cursor'])}").json
    assert second["next_cursor"] is None
    metrics = {s["metric"]: s["value"] for s in first["samples"] + second["samples"]}
    assert metrics == {"rtt_ms": 100.0, "aggregate_mbps": 4000.0}
    assert service.get("/v1/links/us-east/sa/history?metric=loss_pct").json["samples"] == []


def test_figures_of_a_matrix_are_as_short_as_asked(service: Served) -> None:
    path = "/v1/matrix?metric=aggregate&measured_only=true"
    whole, short = service.get(path).json, service.get(f"{path}&digits=3").json
    for row, rounded in zip(whole["values"], short["values"], strict=True):
        assert rounded == [None if v is None else float(f"{v:.3g}") for v in row]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/regions",
        "/v1/links?limit=3",
        "/v1/links/us-east/sa",
        "/v1/matrix",
        "/v1/snapshots/current",
    ],
)
def test_what_has_not_changed_is_not_sent_again(service: Served, path: str) -> None:
    first = service.get(path)
    assert first.json["snapshot"]["id"] == first.headers["Relayd-Snapshot"]
    tag = first.headers["ETag"]
    for known in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = service.get(path, **{"If-None-Match": known})
        assert (again.status, again.content) == (304, b"")
        assert again.headers["ETag"] == tag
    assert service.get(path, **{"If-None-Match": '"other"'}).content == first.content
    head = service.ask("HEAD", path)
    assert (head.status, head.headers["ETag"], head.content) == (200, tag, b"")


@pytest.mark.parametrize(
    "path", ["/v1/regions", "/v1/links?limit=1000", "/v1/matrix", "/v1/snapshots/current"]
)
def test_large_answers_are_compressed_for_who_takes_it(service: Served, path: str) -> None:
    plain, packed = service.get(path), service.get(path, **{"Accept-Encoding": "br, gzip;q=0.5"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.content) < len(plain.content) / 2
    assert gzip.decompress(packed.content) == plain.content
    # Two representations have one weak tag, and caches are told what they differ by.
    tag = plain.headers["ETag"]
    assert packed.headers["ETag"] == tag
    assert tag.startswith("W/")
    for seen in (plain, packed):
        assert "Accept-Encoding" in seen.headers["Vary"]
    again = service.get(path, **{"If-None-Match": tag, "Accept-Encoding": "gzip"})
    assert (again.status, again.content) == (304, b"")
    for refused in ("identity", "br"):
        unpacked = service.get(path, **{"Accept-Encoding": refused})
        assert unpacked.content == plain.content
    head = service.ask("HEAD", path, headers={"Accept-Encoding": "gzip"})
    assert (head.status, head.headers["ETag"], head.content) == (200, tag, b"")


def test_plans_are_sent_as_they_are(service: Served) -> None:
    path = "/v1/plans?src=us-east&dst=sa&volume_gb=500"
    assert "Content-Encoding" not in service.get(path, **{"Accept-Encoding": "gzip"}).headers


def test_the_current_snapshot_as_columns_is_the_same_network(service: Served) -> None:
    path = "/v1/snapshots/current"
    document, columns = service.get(path), service.get(path, Accept=NETWORK_COLUMNS)
    assert columns.headers["Content-Type"] == NETWORK_COLUMNS
    assert network_of_columns(columns.content) == network_of(document.json)
    assert len(columns.content) < len(document.content) / 3
    assert columns.headers["ETag"] != document.headers["ETag"]
    known = {"Accept": NETWORK_COLUMNS, "If-None-Match": columns.headers["ETag"]}
    assert service.get(path, **known).status == 304


def test_a_plan_from_the_cache_is_sent_as_it_was_first(service: Served) -> None:
    path = "/v1/plans?src=us-east&dst=sa&volume_gb=77"
    first, again, head = service.get(path), service.get(path), service.ask("HEAD", path)
    assert again.content == first.content
    assert head.content == b""
    for seen in (again, head):
        same = set(first.headers) - {"Date", "X-Request-ID"}
        assert {name: seen.headers[name] for name in same} == {
            name: first.headers[name] for name in same
        }


def test_campaigns_need_a_fleet(service: Served) -> None:
    answer = service.ask("POST", "/v1/campaigns", {"budget_usd": 1})
    assert (answer.status, answer.json["kind"]) == (409, "conflict")
    assert service.get("/v1/campaigns").json["campaigns"] == []
    assert service.get("/v1/campaigns/1").status == 404


def test_pairs_whose_ends_may_run_no_vm_are_left_out(tmp_path: Path) -> None:
    found = json.loads(relay_gains_bytes(relayd.open(), 5, inf, 1))["relays"]
    src = next(entry["src"] for entry in found if entry["src"].startswith("azure:"))
    quota = tmp_path / "quota.toml"
    quota.write_text(f'[[vcpu_quota]]\nregion = "{src}"\nfamily = "cores"\nvcpus = 1\n')
    under_quota = json.loads(relay_gains_bytes(relayd.open(catalogues=[quota]), 5, inf, 1))[
        "relays"
    ]
    assert under_quota
    assert all(src not in (entry["src"], entry["dst"]) for entry in under_quota)
