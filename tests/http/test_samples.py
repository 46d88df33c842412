"""Samples: each once, on disk before it is acknowledged, whatever happens."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any

import pytest

from relayd.store import open_store
from tests.http.running import TIMEOUT_S, Served, eventually, run, served

SAMPLE: dict[str, Any] = {
    "src": "aws:us-east-1",
    "dst": "aws:sa-east-1",
    "metric": "rtt_ms",
    "value": 114.25,
    "measured_at_s": 1.7e9,
}
LINES = {"Content-Type": "application/x-ndjson"}


def lines(*samples: Any) -> bytes:
    return b"".join(
        (sample if isinstance(sample, bytes) else json.dumps(sample).encode()) + b"\n"
        for sample in samples
    )


def stored(db: Path) -> list[float]:
    with open_store(db, mode="read") as store:
        found = store.samples.read(src="aws:us-east-1", dst="aws:sa-east-1", metric="rtt_ms")
        return found.column("value")


def test_each_sample_is_kept_once_and_wrong_ones_are_told(store: Path) -> None:
    with served(store) as service:
        wrong: list[Any] = [
            {**SAMPLE, "src": "nowhere"},
            {**SAMPLE, "src": "aws:invented-1"},
            {**SAMPLE, "dst": "aws:us-east-1"},
            {**SAMPLE, "metric": "speed"},
            {**SAMPLE, "value": -1},
            {**SAMPLE, "value": 0},
            {**SAMPLE, "value": "5"},
            {**SAMPLE, "measured_at_s": 1.7e12},
            {**SAMPLE, "secret": 1},
            {**SAMPLE, "connections": 0},
            {**SAMPLE, "detail": {"a": "x" * 5000}},
            {},
            {**SAMPLE, "metric": "loss_pct", "value": 101},
        ]
        body = {"samples": [SAMPLE, *wrong, SAMPLE, {**SAMPLE, "value": 115.5}]}
        first = service.ask("POST", "/v1/samples", body).json
        assert (first["accepted"], first["duplicates"], first["rejected"]) == (2, 1, len(wrong))
        assert [told["row"] for told in first["rejections"]] == list(range(2, len(wrong) + 2))
        assert "is not declared" in first["rejections"][1]["reason"]
        assert all(len(told["reason"]) > 5 for told in first["rejections"])
        again = service.ask("POST", "/v1/samples", body).json
        assert (again["accepted"], again["duplicates"], again["batch_id"]) == (0, 3, None)
        nothing = service.ask("POST", "/v1/samples", {"samples": wrong})
        assert nothing.status == 422
        assert len(nothing.json["rejections"]) == len(wrong)
        history = service.get("/v1/links/aws:us-east-1/aws:sa-east-1/history?metric=rtt_ms").json
    assert {sample["value"] for sample in history["samples"]} == {100.0, 114.25, 115.5}
    assert sorted(stored(store)) == [100.0, 114.25, 115.5]


def test_thousands_of_invented_regions_keep_no_snapshot_from_being_made(store: Path) -> None:
    """One body of over 400 KiB, which was accepted once, after which no snapshot came."""
    quick = {"RELAYD_SERVE_REFRESH_S": "0.1", "RELAYD_SERVE_SNAPSHOT_EVERY_S": "0.1"}
    flood = [{**SAMPLE, "src": f"aws:invented-{n}", "dst": f"gcp:made-up-{n}"} for n in range(2000)]
    body = json.dumps({"samples": flood}).encode().ljust(421 * 1024)
    with served(store, environment=quick) as service:
        told = service.ask("POST", "/v1/samples", body)
        assert (told.status, len(told.json["rejections"])) == (422, 100)
        before = service.get("/v1/snapshots").json["snapshots"][0]["id"]
        assert service.ask("POST", "/v1/samples", {"samples": [SAMPLE]}).json["accepted"] == 1
        eventually(lambda: service.get("/v1/snapshots").json["snapshots"][0]["id"] != before)
        ready = service.get("/readyz").json
        assert (ready["status"], ready["warnings"]) == ("ready", [])
        regions = {region["id"] for region in service.get("/v1/regions").json["regions"]}
        assert not any("invented" in region for region in regions)


def test_a_stream_is_read_line_by_line(changing: Served) -> None:
    service = changing
    many = [{**SAMPLE, "value": 100 + n / 64} for n in range(1, 3000)]
    good = service.ask("POST", "/v1/samples", lines(*many), LINES).json
    assert (good["accepted"], good["rejected"]) == (2999, 0)
    mixed = lines(SAMPLE, b"", b"nope", b'{"src":1,"src":2}', b"[" * 99, b"\xff") + b'{"cut":'
    told = service.ask("POST", "/v1/samples", mixed, LINES).json
    assert (told["accepted"] + told["duplicates"], told["rejected"]) == (1, 5)
    assert [rejection["row"] for rejection in told["rejections"]] == [3, 4, 5, 6, 7]
    empty = service.ask("POST", "/v1/samples", b"", LINES).json
    assert (empty["accepted"], empty["rejected"]) == (0, 0)


def test_what_no_measurement_can_show_changes_nothing_and_is_told(store: Path) -> None:
    cap = {"src": "aws:us-east-1", "dst": "aws:us-east-1", "metric": "egress_cap_mbps"}
    rate = {"metric": "aggregate_mbps", "src_vm": "m5.8xlarge", "dst_vm": "m5.8xlarge"}
    impossible: list[Any] = [
        {**SAMPLE, **cap, "value": 100_000},
        {**SAMPLE, **rate, "value": 90_000},
        {**SAMPLE, "value": 0.001},
        {**SAMPLE, "measured_at_s": time.time() + 3600},
    ]
    with served(store, auth=True) as service:
        made = run("serve", "token", "create", "robot", "--scope", "ingest", "--json", db=store)
        secret = json.loads(made.stdout)["token"]
        bearer = {"Authorization": f"Bearer {secret}"}
        eventually(
            lambda: service.ask("POST", "/v1/samples", b"", {**LINES, **bearer}).status == 200
        )
        body = {"samples": [*impossible, SAMPLE]}
        told = service.ask("POST", "/v1/samples", body, bearer).json
        assert (told["accepted"], told["rejected"], told["quarantined"]) == (1, 0, 4)
        reasons = [each["reason"] for each in told["quarantine"]]
        for reason, word in zip(
            reasons, ("c6in.xlarge", "card carries", "light", "future"), strict=True
        ):
            assert word in reason
        again = service.ask("POST", "/v1/samples", body, bearer).json
        assert (again["duplicates"], again["batch_id"]) == (1, None)
    assert sorted(stored(store)) == [100.0, 114.25]
    (batch, *_) = json.loads(run("data", "samples", "list", "--json", db=store).stdout)["batches"]
    assert (batch["token"], batch["address"], batch["quarantined"]) == ("robot", "127.0.0.1", 4)
    listed = run("data", "samples", "quarantine", db=store).stdout
    assert all(reason in listed for reason in reasons)
    assert "robot" in listed
    assert secret not in listed


def test_a_store_takes_so_many_ways_to_measure_and_so_many_series_of_a_token(store: Path) -> None:
    limits = {"RELAYD_SERVE_MAX_SETUPS": "6", "RELAYD_SERVE_MAX_SERIES": "2"}
    with served(store, environment=limits) as service:
        many = [{**SAMPLE, "value": 100 + n / 8, "tool": f"made up {n}"} for n in range(9)]
        answer = service.ask("POST", "/v1/samples", lines(*many), LINES)
        assert (answer.status, answer.json["kind"]) == (422, "input")
        assert "than the 3 that tokens may" in answer.json["detail"]
        kinds = [{**SAMPLE, "address": kind} for kind in ("public", "private")]
        known = service.ask("POST", "/v1/samples", lines(*kinds), LINES)
        assert known.json["accepted"] == 2
        back = {**SAMPLE, "src": SAMPLE["dst"], "dst": SAMPLE["src"]}
        answer = service.ask("POST", "/v1/samples", lines(back, *kinds), LINES)
        assert (answer.status, answer.json["field"]) == (422, "series")
        assert "3, more than the 2 that" in answer.json["detail"]
        assert "`max_series`" in answer.json["remedy"]
        again = {**kinds[0], "value": 115.0}
        assert service.ask("POST", "/v1/samples", lines(again), LINES).json["accepted"] == 1
        counted = service.get("/metrics").content.decode()
        assert 'relayd_samples_ingested_total{result="over_limit"} 12.0' in counted
    assert sorted(stored(store)) == [100.0, SAMPLE["value"], SAMPLE["value"], 115.0]


def test_a_stream_may_only_be_so_long(store: Path) -> None:
    with served(store, environment={"RELAYD_SERVE_SAMPLES_MB": "0.05"}) as service:
        many = lines(*({**SAMPLE, "value": float(n)} for n in range(1, 2000)))
        answer = service.ask("POST", "/v1/samples", many, LINES)
        assert (answer.status, answer.json["kind"]) == (413, "too-large")
    assert stored(store) == [100.0]


def test_new_samples_become_a_new_snapshot_and_an_event(store: Path) -> None:
    quick = {"RELAYD_SERVE_REFRESH_S": "0.1", "RELAYD_SERVE_SNAPSHOT_EVERY_S": "0.1"}
    with served(store, environment=quick) as service:
        before = service.get("/v1/plans?src=us-east&dst=sa").json
        (said_mbps,) = (
            1e3 * link["aggregate_gbps"]["expected"]
            for link in service.get("/v1/snapshots/current").json["links"]
            if (link["src"], link["dst"]) == ("aws:us-east-1", "aws:sa-east-1")
        )
        sent = {
            **SAMPLE,
            "metric": "aggregate_mbps",
            "value": 2000.0,
            "connections": 64,
            "duration_s": 60.0,
            "warmed_up": True,
            "measured_at_s": time.time() - 60,
        }
        service.ask("POST", "/v1/samples", {"samples": [sent]})
        after = eventually(
            lambda: (
                (found := service.get("/v1/plans?src=us-east&dst=sa").json)["snapshot"]
                != before["snapshot"]
                and found
            )
        )
        assert after["direct"]["throughput_gbps"] < before["direct"]["throughput_gbps"]
        # What was measured is held against what the snapshot before it had said.
        of = '{metric="aggregate_mbps",source="measured"}'

        def errors() -> dict[str, float]:
            lines = service.get("/metrics").content.decode().splitlines()
            named = (line.split() for line in lines if "estimate_error_ratio_" in line[:35])
            return {name.partition("ratio_")[2]: float(value) for name, value in named}

        assert eventually(errors)[f"count{of}"] == 1
        assert errors()[f"sum{of}"] == pytest.approx(abs(2000 - said_mbps) / said_mbps)
        events = read_events(service, "/v1/events?after=0", 2)
        assert after["snapshot"]["id"] in [
            event["subject"] for event in events if event["kind"] == "snapshot"
        ]


def read_events(service: Served, path: str, count: int, **headers: str) -> list[dict[str, Any]]:
    """Return the first events of a stream."""
    connection = http.client.HTTPConnection(service.host, service.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        assert response.headers["Content-Type"] == "text/event-stream"
        found: list[dict[str, Any]] = []
        while len(found) < count:
            line = response.readline()
            assert line, "the stream ended"
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
        return found
    finally:
        connection.close()


def test_a_reader_of_events_goes_on_where_it_was(store: Path) -> None:
    from relayd.store.events import Events

    with open_store(store, mode="write") as opened:
        events = Events(opened.database)
        numbers = [events.add("leg", f"a>{n}", {"n": n}) for n in range(5)]
    with served(store) as service:
        found = read_events(service, "/v1/events", 3, **{"Last-Event-ID": str(numbers[1])})
        assert [event["id"] for event in found] == numbers[2:]
        assert found[0]["detail"] == {"n": 2}
        assert service.get("/v1/events", **{"Last-Event-ID": "x"}).status == 422
