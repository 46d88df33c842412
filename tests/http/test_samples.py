"""Samples: each once, on disk before it is acknowledged, whatever happens."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from relayd.store import open_store
from relayd.store.events import Events
from tests.http.running import REGIONS, Served, read_events, run, settled
from tests.waiting import eventually

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


def stored(service: Served, src: str, dst: str) -> list[float]:
    with open_store(service.db, mode="read") as store:
        return sorted(store.samples.read(src=src, dst=dst, metric="rtt_ms").column("value"))


def test_each_sample_is_kept_once_and_wrong_ones_are_told(changing: Served) -> None:
    src, dst = REGIONS[1], REGIONS[3]
    sample = {**SAMPLE, "src": src, "dst": dst}
    wrong: list[Any] = [
        {**sample, "src": "nowhere"},
        {**sample, "src": "aws:invented-1"},
        {**sample, "dst": src},
        {**sample, "metric": "speed"},
        {**sample, "value": -1},
        {**sample, "value": 0},
        {**sample, "value": "5"},
        {**sample, "measured_at_s": 1.7e12},
        {**sample, "secret": 1},
        {**sample, "connections": 0},
        {**sample, "detail": {"a": "x" * 5000}},
        {},
        {**sample, "metric": "loss_pct", "value": 101},
    ]
    body = {"samples": [sample, *wrong, sample, {**sample, "value": 115.5}]}
    first = changing.ask("POST", "/v1/samples", body).json
    assert (first["accepted"], first["duplicates"], first["rejected"]) == (2, 1, len(wrong))
    assert [told["row"] for told in first["rejections"]] == list(range(2, len(wrong) + 2))
    assert "is not declared" in first["rejections"][1]["reason"]
    assert "names one region as both ends for rtt_ms" in first["rejections"][2]["reason"]
    assert all(len(told["reason"]) > 5 for told in first["rejections"])
    again = changing.ask("POST", "/v1/samples", body).json
    assert (again["accepted"], again["duplicates"], again["batch_id"]) == (0, 3, None)
    nothing = changing.ask("POST", "/v1/samples", {"samples": wrong})
    assert nothing.status == 422
    assert len(nothing.json["rejections"]) == len(wrong)
    history = changing.get(f"/v1/links/{src}/{dst}/history?metric=rtt_ms").json["samples"]
    assert {each["value"] for each in history} == {100.0, 114.25, 115.5}
    assert stored(changing, src, dst) == [100.0, 114.25, 115.5]


def test_thousands_of_invented_regions_keep_no_snapshot_from_being_made(changing: Served) -> None:
    """One body of over 400 KiB, which was accepted once, after which no snapshot came."""
    flood = [{**SAMPLE, "src": f"aws:invented-{n}", "dst": f"gcp:made-up-{n}"} for n in range(2000)]
    body = json.dumps({"samples": flood}).encode().ljust(421 * 1024)
    told = changing.ask("POST", "/v1/samples", body)
    assert (told.status, len(told.json["rejections"])) == (422, 100)
    settled(changing)
    before = changing.get("/v1/snapshots").json["snapshots"][0]["id"]
    sent = {"samples": [{**SAMPLE, "value": 99.5}]}
    assert changing.ask("POST", "/v1/samples", sent).json["accepted"] == 1
    eventually(lambda: changing.get("/v1/snapshots").json["snapshots"][0]["id"] != before)
    ready = changing.get("/readyz").json
    assert (ready["status"], ready["warnings"]) == ("ready", [])
    regions = {region["id"] for region in changing.get("/v1/regions").json["regions"]}
    assert not any("invented" in region for region in regions)


def test_a_stream_is_read_line_by_line(changing: Served) -> None:
    sample = {**SAMPLE, "dst": REGIONS[2]}
    many = [{**sample, "value": 100 + n / 64} for n in range(1, 3000)]
    good = changing.ask("POST", "/v1/samples", lines(*many), LINES).json
    assert (good["accepted"], good["rejected"]) == (2999, 0)
    mixed = lines(sample, b"", b"nope", b'{"src":1,"src":2}', b"[" * 99, b"\xff") + b'{"cut":'
    told = changing.ask("POST", "/v1/samples", mixed, LINES).json
    assert (told["accepted"] + told["duplicates"], told["rejected"]) == (1, 5)
    assert [rejection["row"] for rejection in told["rejections"]] == [3, 4, 5, 6, 7]
    empty = changing.ask("POST", "/v1/samples", b"", LINES).json
    assert (empty["accepted"], empty["rejected"]) == (0, 0)


def test_what_no_measurement_can_show_changes_nothing_and_is_told(guarded: Served) -> None:
    src, dst = REGIONS[1], REGIONS[0]
    sample = {**SAMPLE, "src": src, "dst": dst}
    cap = {"dst": src, "metric": "egress_cap_mbps"}
    rate = {"metric": "aggregate_mbps", "src_vm": "m5.8xlarge", "dst_vm": "m5.8xlarge"}
    impossible = {
        "c6in.xlarge": {**sample, **cap, "value": 100_000},
        "card carries": {**sample, **rate, "value": 90_000},
        "light": {**sample, "value": 0.001},
        "future": {**sample, "measured_at_s": time.time() + 3600},
    }
    body = {"samples": [*impossible.values(), sample]}
    told = guarded.ask("POST", "/v1/samples", body, guarded.by("robot")).json
    assert (told["accepted"], told["rejected"], told["quarantined"]) == (1, 0, 4)
    reasons = [each["reason"] for each in told["quarantine"]]
    assert [word in reason for word, reason in zip(impossible, reasons, strict=True)] == [True] * 4
    again = guarded.ask("POST", "/v1/samples", body, guarded.by("robot")).json
    assert (again["duplicates"], again["batch_id"]) == (1, None)
    assert stored(guarded, src, dst) == [100.0, 114.25]
    listed = json.loads(run("data", "samples", "list", "--json", db=guarded.db).stdout)["batches"]
    assert (listed[0]["token"], listed[0]["address"]) == ("robot", "127.0.0.1")
    assert listed[0]["quarantined"] == 4
    shown = run("data", "samples", "quarantine", db=guarded.db).stdout
    assert all(reason in shown for reason in reasons)
    assert "robot" in shown
    assert guarded.tokens["robot"] not in shown


def test_a_store_takes_so_many_ways_to_measure_and_so_many_series_of_a_token(
    bounded: Served,
) -> None:
    many = [{**SAMPLE, "value": 100 + n / 8, "tool": f"made up {n}"} for n in range(9)]
    answer = bounded.ask("POST", "/v1/samples", lines(*many), LINES)
    assert (answer.status, answer.json["kind"]) == (422, "input")
    assert "than the 3 that tokens may" in answer.json["detail"]
    kinds = [{**SAMPLE, "address": kind} for kind in ("public", "private")]
    known = bounded.ask("POST", "/v1/samples", lines(*kinds), LINES)
    assert known.json["accepted"] == 2
    back = {**SAMPLE, "src": SAMPLE["dst"], "dst": SAMPLE["src"]}
    answer = bounded.ask("POST", "/v1/samples", lines(back, *kinds), LINES)
    assert (answer.status, answer.json["field"]) == (422, "series")
    assert "3, more than the 2 that" in answer.json["detail"]
    assert "`max_series`" in answer.json["remedy"]
    again = {**kinds[0], "value": 115.0}
    assert bounded.ask("POST", "/v1/samples", lines(again), LINES).json["accepted"] == 1
    assert bounded.metric('relayd_samples_ingested_total{result="over_limit"}') == "12.0"
    kept = stored(bounded, SAMPLE["src"], SAMPLE["dst"])
    assert kept == [100.0, SAMPLE["value"], SAMPLE["value"], 115.0]


def test_a_stream_may_only_be_so_long(bounded: Served) -> None:
    src, dst = REGIONS[2:]
    sample = {**SAMPLE, "src": src, "dst": dst}
    many = lines(*({**sample, "value": float(n)} for n in range(1, 2000)))
    answer = bounded.ask("POST", "/v1/samples", many, LINES)
    assert (answer.status, answer.json["kind"]) == (413, "too-large")
    assert stored(bounded, src, dst) == [100.0]


def test_new_samples_become_a_new_snapshot_and_an_event(changing: Served) -> None:
    src, dst = REGIONS[2:]
    plan = f"/v1/plans?src={src}&dst={dst}&vms=1"
    settled(changing)
    before = changing.get(plan).json
    (said_mbps,) = (
        1e3 * link["aggregate_gbps"]["expected"]
        for link in changing.get("/v1/snapshots/current").json["links"]
        if (link["src"], link["dst"]) == (src, dst)
    )
    tested = {"metric": "aggregate_mbps", "value": 6000.0, "connections": 64, "duration_s": 60.0}
    sent = {"src": src, "dst": dst, **tested, "warmed_up": True, "measured_at_s": time.time()}
    of = '{metric="aggregate_mbps",source="measured"}'

    def errors() -> dict[str, float]:
        text = changing.get("/metrics").content.decode().splitlines()
        named = (line.split() for line in text if "estimate_error_ratio_" in line[:35])
        return {name.partition("ratio_")[2]: float(value) for name, value in named}

    counted = errors().get(f"count{of}", 0)
    summed = errors().get(f"sum{of}", 0)
    changing.ask("POST", "/v1/samples", {"samples": [sent]})
    after = eventually(
        lambda: (found := changing.get(plan).json)["snapshot"] != before["snapshot"] and found
    )
    assert after["direct"]["throughput_gbps"] < before["direct"]["throughput_gbps"]
    # What was measured is held against what the snapshot before it had said.
    eventually(lambda: errors().get(f"count{of}") == counted + 1)
    error = abs(6000 - said_mbps) / said_mbps
    assert errors()[f"sum{of}"] - summed == pytest.approx(error)
    snapshot = {"kind": "snapshot", "subject": after["snapshot"]["id"]}
    assert read_events(changing, "/v1/events?after=0", 1, snapshot)


def test_a_reader_of_events_goes_on_where_it_was(changing: Served) -> None:
    # In one transaction, as the service adds events of its own.
    with open_store(changing.db, mode="write") as opened, opened.database.transaction():
        events = Events(opened.database)
        numbers = [events.add("leg", f"a>{n}", {"n": n}) for n in range(5)]
    found = read_events(changing, "/v1/events", 3, after=numbers[1])
    assert [event["id"] for event in found] == numbers[2:]
    assert found[0]["detail"] == {"n": 2}
    assert changing.get("/v1/events", **{"Last-Event-ID": "x"}).status == 422
