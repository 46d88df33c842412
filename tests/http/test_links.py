"""What is behind one link: its series over time, what happened to it, what its figures rest on."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from probes.estimation.current_samples import LinkShift
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.snapshots.link_evidence import evidence_of
from relayd.sources.stored import StoredWan
from relayd.store import open_store
from relayd.store.events import Events
from relayd.store.links import LevelShifts
from relayd.store.samples.ingest import append
from relayd.store.samples.retention import compact
from tests.http.running import Answer, Served, served

SRC, DST, OLD = "aws:us-east-1", "aws:us-west-2", "aws:eu-west-1"
LINK, SMALL = f"/v1/links/{SRC}/{DST}", f"/v1/links/{SRC}/{OLD}"
BEGIN_S, EVERY_S = 1.7e9, 600.0


def rtts(dst: str, count: int, level_ms: float, begin_s: float = BEGIN_S) -> list[Sample]:
    """Return quiet round trips, none like another."""
    return [
        Sample(SRC, dst, "rtt_ms", level_ms + math.sin(number), begin_s + number * EVERY_S, "ping")
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Return a store with a link of 3,000 round trips, and how many of them were made small."""
    store = tmp_path_factory.mktemp("links") / "relayd.db"
    with open_store(store, mode="create") as opened:
        append(opened, rtts(OLD, 3000, 110.0))
        return store, compact(opened, 86400.0, period="day").samples


@pytest.fixture(scope="module")
def running(compacted: tuple[Path, int]) -> Iterator[Served]:
    """A link with 3,000 round trips, a change of level in the end, and a night of trouble."""
    store, _ = compacted
    end_s = BEGIN_S + 3000 * EVERY_S
    with open_store(store, mode="write") as opened:
        append(opened, rtts(DST, 3000, 110.0))
        append(opened, rtts(DST, 40, 170.0, end_s))
        append(opened, [Sample(SRC, DST, "aggregate_mbps", 4800.0, end_s, "iperf3", 64, 60.0)])
        with opened.database.transaction():
            LevelShifts(opened.database).add(
                LinkShift(SRC, DST, "rtt_ms", BEGIN_S + 50, BEGIN_S + 900, 90.0, 110.0)
            )
        for before, after in (("up", "degraded"), ("degraded", "down"), ("down", "up")):
            Events(opened.database).add(
                "leg", f"{SRC}>{DST}", {"from": before, "to": after, "reason": "it was seen"}
            )
        Events(opened.database).add("leg", f"{DST}>{SRC}", {"from": "up", "to": "down"})
        make_snapshot(opened, load_catalogue())
    with served(store) as service:
        yield service


def test_a_long_series_is_summed_up_without_losing_a_sample(running: Served) -> None:
    whole = running.get(f"{LINK}/summary?metric=rtt_ms&bins=60&list_up_to=2000").json
    assert {seen["metric"]: seen["samples"] for seen in whole["metrics"]} == {
        "rtt_ms": 3040,
        "aggregate_mbps": 1,
    }
    assert whole["samples"] == sum(each["samples"] for each in whole["bins"]) == 3040
    assert sum(bar["samples"] for bar in whole["histogram"]) == 3040
    assert 2 <= len(whole["bins"]) <= 60
    assert whole["points"] is None
    assert all(each["low"] <= each["median"] <= each["high"] for each in whole["bins"])
    assert len(whole["quantiles"]) == 101
    assert whole["quantiles"] == sorted(whole["quantiles"])
    assert whole["quantiles"][50] == pytest.approx(110.0, abs=0.3)
    assert whole["has_shape"]

    last_s = BEGIN_S + 3000 * EVERY_S
    few = running.get(f"{LINK}/summary?since_s={last_s}&until_s={last_s + 6000}&list_up_to=99")
    values = [point["value"] for point in few.json["points"]]
    assert len(values) == few.json["samples"] == 11
    assert few.json["points"][0]["at_s"] == last_s
    assert statistics.median(values) == pytest.approx(170.0, abs=1)
    none = running.get(f"{LINK}/summary?metric=loss_pct&list_up_to=9").json
    assert (none["samples"], none["bins"], none["points"], none["has_shape"]) == (0, [], [], False)
    assert running.get(f"{LINK}/summary?since_s=9&until_s=8").status == 422
    assert running.get("/v1/links/nowhere/sa/summary").status == 422


def test_what_was_made_small_stays_in_the_series(
    running: Served, compacted: tuple[Path, int]
) -> None:
    _, small = compacted
    assert small > 2000
    found = running.get(f"{SMALL}/summary?metric=rtt_ms&bins=40&list_up_to=5000").json
    assert (found["samples"], found["compacted"]) == (3000, small)
    assert sum(each["samples"] for each in found["bins"]) == 3000
    assert min(each["low"] for each in found["bins"]) == pytest.approx(109.0, abs=1e-3)
    assert found["points"] is None


def test_events_of_a_link_come_newest_first_a_page_at_a_time(running: Served) -> None:
    all_at_once = running.get(f"{LINK}/events").json
    assert all_at_once["next_cursor"] is None
    seen: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        page = running.get(f"{LINK}/events?limit=1{cursor and '&cursor=' + quote(cursor)}").json
        seen += page["events"]
        cursor = page["next_cursor"]
    assert running.get(f"{LINK}/events?cursor=bm8").status == 422
    assert seen == all_at_once["events"]
    states = [event["condition"] for event in seen if event["kind"] == "leg"]
    assert states == ["up", "down", "degraded"]
    shifts = [event for event in seen if event["kind"] == "shift"]
    # That which was kept, and that which the newest samples show.
    assert [round(event["before"], -1) for event in shifts] == [110.0, 90.0]
    assert shifts[0]["after"] == pytest.approx(170.0, abs=1)
    assert shifts[0]["at_s"] == pytest.approx(BEGIN_S + 3000 * EVERY_S, abs=EVERY_S)
    assert seen[0]["reason"] == "it was seen"


def test_evidence_is_the_samples_that_counted(running: Served) -> None:
    answer = running.get(f"{LINK}/evidence").json
    link = running.get(LINK).json
    found = {each["quantity"]: each for each in answer["evidence"]}
    (rtt,) = found["rtt_ms"]["series"]
    assert found["rtt_ms"]["kind"] == "samples"
    assert len(rtt["samples"]) == link["link"]["rtt_ms"]["samples"]
    expected = statistics.median(sample["value"] for sample in rtt["samples"])
    assert expected == pytest.approx(link["link"]["rtt_ms"]["expected"])
    assert sum(each["samples"] for each in rtt["left_out"]) + len(rtt["samples"]) == 3040
    assert found["per_flow_mbps"]["kind"] in ("inference", "model")
    # 64 connections carry more than 64 windows of hosts as they come: each carries its share.
    assert "aggregate_gbps" in found["per_flow_mbps"]["rests_on"]
    assert found["loss_pct"]["kind"] == "nothing"
    assert found["egress_gbps"]["region"] == link["sender"]["region"] == SRC
    assert link["usd_per_gb"] > 0
    assert link["light"]["vacuum_ms"] < link["light"]["fibre_ms"] < 110
    assert link["light"]["possible"]
    assert link["state"] is None


def test_the_baseline_rests_on_no_samples(installed: Served) -> None:
    def get(path: str) -> Answer:
        return installed.get(path, **installed.by("first"))

    answer = get(f"{LINK}/evidence").json
    assert {each["kind"] for each in answer["evidence"]} == {"model", "nothing"}
    assert all(not each["series"] for each in answer["evidence"])
    assert get(f"{LINK}/summary").json["metrics"] == []
    assert get(f"{LINK}/events").json["events"] == []
    assert get(f"/v1/links/{SRC}/{SRC}/evidence").status == 404


def test_every_figure_of_a_graph_can_be_followed_back(measured: Path) -> None:
    catalogue = load_catalogue()
    network = StoredWan(catalogue, measured).as_read()
    fields = ("rtt_ms", "per_flow_mbps", "aggregate_gbps")
    checked = 0
    with open_store(measured, mode="read") as store:
        for link in list(network)[::5]:
            for each in evidence_of(store, network, catalogue, link.src, link.dst):
                if each.origin.quantity not in fields:
                    continue
                estimate = getattr(link, each.origin.quantity)
                assert each.origin.estimate == estimate
                if each.origin.kind == "samples":
                    assert sum(len(used.samples) for used in each.used) == estimate.samples
                    checked += 1
                else:
                    assert estimate.source != "measured"
    assert checked >= 3
