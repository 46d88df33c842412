"""What the service answers is what the library says."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import relayd
from planner.model.document import NETWORK_COLUMNS, network_of, network_of_columns
from relayd.tables.matrices import MATRIX_METRICS, MatrixMetric
from tests.http.running import REGIONS, Served
from tests.properties import examples

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
    service: Served,
    measured: Path,
    ends: list[str],
    volume_gb: float,
    objective: str,
    vms: int,
    connections: int,
    avoid: list[str],
    frontier: bool,
) -> None:
    asked: dict[str, Any] = {
        "src": ends[0],
        "dst": ends[1],
        "volume_gb": volume_gb,
        "objective": objective,
        "vms": vms,
        "connections": connections,
        "avoid": avoid,
        "frontier": frontier,
    }
    expected = relayd.open(measured).plan(**asked).model_dump("json")
    posted = service.ask("POST", "/v1/plans", asked)
    got = service.get("/v1/plans?" + urlencode({**asked, "frontier": str(frontier).lower()}, True))
    again = service.get(
        "/v1/plans?" + urlencode({**asked, "frontier": str(frontier).lower()}, True)
    )
    batch = service.ask("POST", "/v1/plans/batch", {"plans": [asked]}).json
    for answer in (posted.json, got.json, again.json, batch["results"][0]["plan"]):
        assert answer == expected
    assert got.headers["Relayd-Snapshot"] == expected["snapshot"]["id"] == batch["snapshot"]["id"]


def test_a_batch_answers_each_for_itself_and_in_order(service: Served) -> None:
    volumes = [float(n) for n in range(1, 60)]
    plans: list[dict[str, object]] = [{**PAIR, "volume_gb": volume} for volume in volumes]
    plans[7] = {"src": "us-east"}
    plans[30] = {**PAIR, "src": "nowhere-at-all"}
    results = service.ask("POST", "/v1/plans/batch", {"plans": plans}).json["results"]
    assert len(results) == len(plans)
    for volume, result in zip(volumes, results, strict=True):
        if volume in (8.0, 31.0):
            assert result["plan"] is None
        else:
            assert result["problem"] is None
            assert result["plan"]["request"]["volume_gb"] == volume
    assert results[7]["problem"]["field"] == "dst"
    assert results[30]["problem"]["kind"] == "unknown-region"


@pytest.mark.parametrize(
    ("asked", "status", "kind", "members"),
    [
        ({"src": "us-eas", "dst": "sa"}, 422, "unknown-region", {"field": "src"}),
        ({"src": "us-east", "dst": "us-east"}, 422, "input", {"field": "dst"}),
        ({**PAIR, "budget_usd": 0.0001}, 422, "infeasible", {}),
        ({**PAIR, "max_age_s": 1}, 409, "data", {}),
        ({**PAIR, "volume_gb": 0}, 422, "input", {"field": "volume_gb", "value": 0}),
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


@pytest.mark.parametrize("metric", MATRIX_METRICS)
def test_a_matrix_is_the_librarys(service: Served, measured: Path, metric: MatrixMetric) -> None:
    path = f"/v1/matrix?metric={metric}&measured_only=true"
    answer, short = service.get(path).json, service.get(f"{path}&digits=3").json
    expected = relayd.open(measured).matrix(metric, measured_only=True)
    assert answer["regions"] == list(expected.regions)
    assert answer["unit"] == expected.unit
    for ours, theirs, rounded in zip(
        answer["values"], expected.values.tolist(), short["values"], strict=True
    ):
        # An age grows while this runs.
        assert ours == [
            None if math.isnan(value) else pytest.approx(value, abs=300 * (metric == "age"))
            for value in theirs
        ]
        assert rounded == [None if v is None else float(f"{v:.3g}") for v in ours]
    sources = expected.sources and [list(row) for row in expected.sources]
    assert answer["sources"] == sources


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


def test_the_current_snapshot_is_enough_to_decide_with(service: Served, measured: Path) -> None:
    graph = service.get("/v1/snapshots/current").json
    assert {site["region"] for site in graph["sites"]} == set(relayd.open(measured).known_regions())
    link = next(
        link
        for link in graph["links"]
        if (link["src"], link["dst"]) == ("aws:us-east-1", "aws:sa-east-1")
    )
    assert link["rtt_ms"]["expected"] == 100.0
    listed = service.get("/v1/snapshots").json["snapshots"]
    assert listed[0]["id"] == graph["snapshot"]["id"]


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
