"""``relayd study report`` on stores with nothing, little and much, with truths planted in them.

What each analysis finds is for tests/probes/analysis; here it is found in a store and shown.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from itertools import permutations
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import relayd
from planner.model.estimate import AddressKind
from probes.analysis.steady_state import Interval
from probes.campaign.throughput_tests import Findings, steady_sample
from probes.metrics import Metric
from probes.samples import Sample, Samples
from probes.tools.interface import Result
from relayd.__main__ import main
from relayd.catalogue.loading import load_catalogue
from relayd.history import StoredHistory
from relayd.report import make_report
from relayd.store import open_store
from relayd.transfers.register import TransferRegister
from tests.relayd.building import ping, rate, stored, table
from tests.shared_data import shared

REGIONS = (
    *("aws:us-east-1", "aws:eu-west-1", "aws:ap-southeast-1", "aws:sa-east-1"),
    *("azure:eastus", "azure:westeurope", "gcp:us-east1", "gcp:asia-east1"),
)
START_S = 1_788_220_800.0  # midnight UTC
_KEYS = (
    "throughput heterogeneity relays stability forecasts calibration transients buckets transfers "
    "directions addresses caps sweeps latency packets fees"
)
KEYS = _KEYS.split()


def report(db: Path, *options: str, only: str = "") -> dict[str, Any]:
    output = db.with_suffix(".json")
    chosen = [word for key in only.split() for word in ("--section", key)]
    words = ["--db", str(db), "--output", str(output), *chosen, *options]
    assert main(["study", "report", *words]) == 0
    sections = json.loads(output.read_text())["sections"]
    assert [section["key"] for section in sections] == (only.split() or KEYS)
    return {section["key"]: section for section in sections}


def figures(db: Path, section: str) -> dict[str, Any]:
    found: dict[str, Any] = report(db, only=section)[section]["figures"]
    return found


def of_parquet(db: Path) -> dict[str, Any]:
    """Return the report of a store's samples, exported as Parquet."""
    folder = db.with_suffix("")
    assert main(["data", "export", "samples", "--db", str(db), "-o", str(folder)]) == 0
    return report(folder)


def with_intervals(sample: Sample, mbps: Iterable[float]) -> Sample:
    """Return a test as it is stored that had these rates, of a second each."""
    intervals = tuple(Interval(1.0, float(value)) for value in mbps)
    mean = sum(one.mbps for one in intervals) / len(intervals)
    result = Result(
        (sample._replace(value=mean, duration_s=None, warmed_up=False),), 0.0, intervals
    )
    return steady_sample([result], Findings())


def test_nothing_is_concluded_from_nothing_and_one_sample_is_shown(tmp_path: Path) -> None:
    found = report(stored(tmp_path / "empty.db", []))
    assert not any(section["concluded"] for section in found.values())
    assert all(section["statements"] for section in found.values())
    only = rate("aws:us-east-1", "gcp:us-east1", 4800.0, START_S)
    found = report(stored(tmp_path / "one.db", [only]))
    assert found["throughput"]["figures"]["aggregate_mbps"][0]["mean"] == 4800
    assert not found["relays"]["concluded"]
    assert "no conclusion" in " ".join(found["heterogeneity"]["statements"])


def planted_in(db: Path, regions: tuple[str, ...]) -> Path:
    """Two weeks of half hours: flows by distance, aggregates at a cap that is higher at night."""
    generator = np.random.default_rng(1)
    samples: list[Sample] = []
    times = START_S + np.arange(14 * 48) * 1800.0
    night = (times % 86_400) < 6 * 3600
    for (i, src), (j, dst) in permutations(enumerate(regions), 2):
        noise = 1 + 0.02 * generator.normal(size=(3, times.size))
        rtt_ms = 15.0 * (1 + abs(i - j)) + (250 if {i, j} == {0, 7} else 0)
        mbps = 4800.0 * np.where(night, 1.1, 1.0) * np.abs(noise[2])
        if (src, dst) == ("azure:eastus", "aws:sa-east-1"):
            mbps[100:120] = 4.0  # ten hours, one way
        for metric, connections, values in (
            ("rtt_ms", None, rtt_ms * np.abs(noise[0])),
            ("per_flow_mbps", 1, 8 * 3000 / rtt_ms * np.abs(noise[1])),
            ("aggregate_mbps", 64, mbps),
        ):
            samples += [
                Sample(src, dst, metric, float(value), float(at), "test", connections)  # type: ignore[arg-type]
                for value, at in zip(values, times, strict=True)
            ]
    return stored(db, samples)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted_in(tmp_path_factory.mktemp("report") / "planted.db", REGIONS)


@pytest.mark.thorough
def test_planted_truths_are_found_and_the_page_is_whole_in_itself(planted: Path) -> None:
    found = report(planted)
    heterogeneity = found["heterogeneity"]["figures"]
    assert heterogeneity["aggregate_mbps"]["homogeneous"] == len(REGIONS)
    assert heterogeneity["per_flow_mbps"]["homogeneous"] == 0
    assert heterogeneity["per_flow_mbps"]["median_fastest_over_slowest"] > 2
    relays = found["relays"]["figures"]
    # Over 370 ms, 64 connections carry 4,150 of 4,800 Mbit/s,
    # less what the law of its class says.
    assert relays["many_connections"]["maximum"] < 1.25
    # 370 ms directly; 60 and 75 ms by way of the middle.
    assert relays["one_connection"]["maximum"] == pytest.approx(370 / 75, rel=0.05)
    assert relays["latency"]["maximum"] == pytest.approx(370 / 135, rel=0.05)
    stability = found["stability"]["figures"]
    assert stability["aggregate_mbps_day"]["with_a_pattern"] == 56
    assert stability["rtt_ms_day"]["with_a_pattern"] <= 3
    directions = found["directions"]["figures"]["aggregate_mbps"]
    assert directions["collapses"] == 1
    assert directions["median_ratio"] < 1.02
    foretold = found["forecasts"]["figures"]
    assert foretold["aggregate_mbps_forecast_6h"]["foretold"] == 55  # but the collapsed one
    assert foretold["aggregate_mbps_forecast_6h"]["median_skill"] > 0.1
    assert foretold["rtt_ms_forecast_6h"]["foretold"] <= 2
    assert foretold["rtt_ms_autocorrelation"]["remember"] <= 8
    assert "10 %" in " ".join(found["heterogeneity"]["statements"])
    # The last day alone can't show a daily pattern.
    assert "aggregate_mbps_day" not in report(planted, "--since", "1d")["stability"]["figures"]
    page = planted.with_suffix(".html")
    assert main(["study", "report", "--db", str(planted), "--output", str(page)]) == 0
    text = page.read_text()
    assert text.count("<svg") >= 6
    assert not re.search(r"(src|href)=[\"'](?!#)|<script", text)  # nothing is fetched
    assert all(f'id="{key}"' in text for key in KEYS)


def series(db: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["study", "series", "--db", str(db), "--json", *options]) == 0
    sections = json.loads(capsys.readouterr().out)["sections"]
    return {section["key"]: section for section in sections}


def test_a_link_is_analysed_in_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ("aws:us-east-1", "aws:sa-east-1", "azure:eastus")
    db = planted_in(tmp_path / "three.db", few)
    link = ["--src", "aws:us-east-1", "--dst", "azure:eastus"]
    found = series(db, capsys, *link, "--horizon", "6h")
    assert found["periods"]["figures"]["day"]["present"]
    assert found["forecast"]["figures"]["forecast"]["useful"]
    assert "no conclusion" in " ".join(found["periods"]["statements"])  # of two weeks
    assert found["levels"]["figures"]["levels"] is None
    collapsed = ["--src", "azure:eastus", "--dst", "aws:sa-east-1"]
    ten_hours = series(db, capsys, *collapsed)["levels"]
    assert ten_hours["figures"]["shifts"][0]["after"] < 5
    nothing = series(db, capsys, *link, "--metric", "loss")
    assert not nothing["occurrences"]["concluded"]
    assert main(["study", "series", "--db", str(db), *link, "--metric", "rtt"]) == 0
    assert "# rtt_ms of aws:us-east-1 > azure:eastus" in capsys.readouterr().out


def test_rare_losses_are_not_lost_in_medians(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One minute in a hundred of one pair loses packets, and no minute of the other does."""
    lossy = np.random.default_rng(4).random(3000) < 0.01
    samples = [
        Sample(src, "aws:sa-east-1", "loss_pct", float(value), START_S + 60.0 * k, "ping")
        for src, values in (("gcp:us-east1", 5.0 * lossy), ("aws:us-east-1", 0.0 * lossy))
        for k, value in enumerate(values)
    ]
    db = stored(tmp_path / "loss.db", samples)
    counted = figures(db, "packets")["loss_occurrences"]
    assert (counted["lossy"], counted["pairs_without_loss"]) == (lossy.sum(), 1)
    link = ["--src", "gcp:us-east1", "--dst", "aws:sa-east-1", "--metric", "loss"]
    of_link = series(db, capsys, *link)["occurrences"]["figures"]["loss"]
    assert of_link["low"] < 0.01 < of_link["high"]


def test_files_first_packets_and_rates_of_udp_are_analysed(tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    here, there = "aws:us-east-1", "gcp:us-east1"
    lines = ["src,dst,measured_at_s,transfer_s,volume_mb"]
    for k in range(40):
        seconds = 10 * generator.normal(1, 0.02) * (2 if k % 10 == 0 else 1)
        lines.append(f"{here},{there},{START_S + 360 * k},{seconds},105")
    samples = []
    for k in range(24):
        rtt_ms, at_s = 20 * generator.normal(1, 0.01), START_S + 60.0 * k
        slow = json.dumps({"first_ms": rtt_ms + 4})
        samples.append(ping(here, there, rtt_ms, START_S + k, detail=slow))
        asked = 100.0 + 50 * k
        sent = min(asked, 1000.0) * generator.normal(1, 0.005)
        flat = sent if sent <= 600 else 600 if sent <= 850 else 600 - (sent - 850)
        told = {"offered_mbps": sent, "asked_mbps": asked, "lower_bound": sent < 1.02 * flat}
        detail = json.dumps(told)
        samples.append(Sample(here, there, "udp_mbps", flat, at_s, "iperf3", 1, detail=detail))
    db = stored(tmp_path / "methods.db", samples)
    assert main(["import", "csv", str(table(tmp_path / "scp.csv", *lines)), "--db", str(db)]) == 0
    with open_store(db, mode="write") as store:  # what a program reports counts, too
        register = TransferRegister(store.database, relayd.open(db), "test")
        register.begin_transfer(here, there, id="one", volume_gb=0.105, at_s=START_S)
        register.end_transfer("one", at_s=START_S + 10)
    found = report(db, only="transfers sweeps packets")
    (files,) = found["transfers"]["figures"]["transfers"]
    assert (files["transfers"], files["volume_gb"]) == (41, pytest.approx(0.105))
    assert files["median_s"] == pytest.approx(10, rel=0.02)
    assert files["percentile_95_over_median"] == pytest.approx(2, rel=0.1)
    (sweep,) = found["sweeps"]["figures"]["sweeps"]
    assert sweep["sender_cap_mbps"] == pytest.approx(1000, rel=0.02)
    assert sweep["flattening_edge_mbps"] == pytest.approx(600, rel=0.03)
    assert sweep["penalty_edge_mbps"] == pytest.approx(900, rel=0.05)
    (capacity,) = found["sweeps"]["figures"]["capacity"]
    assert (capacity["mbps"], capacity["is_lower_bound"]) == (pytest.approx(600, rel=0.03), False)
    first = found["packets"]["figures"]["first_packets"]
    assert first["slow"][0]["extra_ms"] == pytest.approx(4)


def test_buckets_of_vms_are_read_from_their_tests(tmp_path: Path) -> None:
    """5,000 Mbit/s for 25 GB, then 1,000, which also fill the bucket again."""
    at_s, tokens_gb, samples = START_S, 20.0, []
    for k, pause_s in enumerate([3600.0, 60.0, 80.0, 3600.0]):
        full_s = round(2 * tokens_gb)
        rates = np.random.default_rng(k).normal(1, 0.03, full_s + 30)
        rates *= np.where(np.arange(rates.size) < full_s, 5000, 1000)
        test = rate("aws:us-east-1", REGIONS[k + 1], 0.0, at_s, src_vm="aws:t3.large")
        samples.append(with_intervals(test, rates))
        at_s += rates.size + pause_s
        tokens_gb = min(20.0, pause_s / 8)
    (bucket,) = figures(stored(tmp_path / "bursts.db", samples), "buckets")["buckets"]
    assert (bucket["vm_type"], bucket["refilling"]) == ("aws:t3.large", "bucket")
    assert bucket["depth_gb"] == pytest.approx(20, rel=0.1)
    assert bucket["refill_mbps"] == pytest.approx(1000, rel=0.1)


def test_vms_of_one_type_that_differ_are_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = np.random.default_rng(8)
    samples = [
        rate(
            *("azure:eastus", "azure:eastus", level * generator.normal(1, 0.01)),
            *(START_S + 60.0 * k, None),
            metric="egress_cap_mbps",
            src_vm="A2",
            src_zone=zone,
        )
        for zone, level in zip("abcdef", (200, 200, 200, 450, 650, 200), strict=True)
        for k in range(3)
    ]
    db = stored(tmp_path / "caps.db", samples)
    found = figures(db, "caps")["egress_azure:A2"]
    assert (found["vms"], found["vms_differ"]) == (6, True)
    assert main(["study", "report", "--db", str(db), "--section", "caps"]) == 0
    said = capsys.readouterr().out  # Markdown is the default
    assert said.startswith("# What the samples show")
    assert "| azure:A2 | egress | 6 | 20" in said
    rows = [line for line in said.splitlines() if line.startswith("|")]
    assert all(row.endswith("|") for row in rows)


def test_private_and_public_addresses_are_told_apart(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    samples = []
    for i, (src, dst) in enumerate(permutations(REGIONS[:4], 2)):
        for number in range(6):
            kind: AddressKind = "public" if number % 2 else "private"
            mbps = 7000.0 * (1.25 if kind == "private" else 1.0)
            values: dict[Metric, float] = {"aggregate_mbps": mbps, "rtt_ms": 20.0 + 5 * i}
            for metric, value in values.items():
                noisy = value * float(1 + 0.02 * generator.normal())
                samples.append(
                    Sample(src, dst, metric, noisy, START_S + 60.0 * number, "test", address=kind)
                )
    found = report(stored(tmp_path / "kinds.db", samples), only="addresses")["addresses"]
    assert (found["concluded"], found["samples"]) == (True, len(samples))
    rates, rtts = found["figures"]["aggregate_mbps"], found["figures"]["rtt_ms"]
    assert (rates["legs"], rates["differs"], rtts["differs"]) == (12, True, False)
    assert rates["private_over_public"] == pytest.approx(1.25, rel=0.02)
    one_kind = [sample for sample in samples if sample.address == "public"]
    found = report(stored(tmp_path / "one.db", one_kind), only="addresses")["addresses"]
    assert not found["concluded"]


def test_what_happens_inside_tests_is_told(tmp_path: Path) -> None:
    """EC2 bursts, one path of Azure falls after 9 GB at whatever rate, one has two levels."""
    generator = np.random.default_rng(3)
    samples = []
    for number in range(8):
        fast = 2000 + 500 * number
        until, slow = round(9 * 8000 / fast), 2000 if number % 3 else 4000
        for src, dst, levels in (
            ("aws:us-east-1", "aws:eu-west-1", [9600] * 5 + [4800] * 40),
            ("azure:eastus", "azure:westeurope", [fast] * until + [1500] * 15),
            ("gcp:us-east1", "gcp:asia-east1", [slow] * 30),
            ("gcp:us-east1", "aws:us-east-1", [5000] * 30),
        ):
            mbps = np.array(levels) * (1 + 0.03 * generator.normal(size=len(levels)))
            test = rate(src, dst, 0.0, START_S + 600 * number)
            samples.append(with_intervals(test, mbps))
    odd = samples[-1]._replace(  # details of another tool
        measured_at_s=START_S - 60, intervals=3, detail='{"findings": [5, {"pattern": "drop"}]}'
    )
    db = stored(tmp_path / "inside.db", [odd, *samples])
    everything = report(db)
    assert of_parquet(db) == everything
    found = everything["transients"]
    inside = found["figures"]["aggregate_mbps_within_tests"]
    assert inside["tests"] == 33
    changes = {(c["providers"], c["pattern"]): c for c in inside["changes"]}
    assert set(changes) == {("aws > aws", "burst"), ("azure > azure", "drop")}
    burst = changes["aws > aws", "burst"]
    assert (burst["found"], burst["after_s"]) == (8, 5)
    assert changes["azure > azure", "drop"]["after_gb"] == pytest.approx(9, rel=0.05)
    (cause,) = inside["drop_causes"]
    assert cause == {"src": "azure:eastus", "dst": "azure:westeurope", "cause": "volume"}
    (pair,) = found["figures"]["aggregate_mbps_between_tests"]["two_levels"]
    assert (pair["src"], pair["dst"]) == ("gcp:us-east1", "gcp:asia-east1")
    assert (pair["low_mbps"], pair["high_mbps"]) == pytest.approx((2000, 4000), rel=0.02)
    assert "No test with one connection kept its intervals." in found["statements"]


def test_slow_start_is_no_reason_to_relay(tmp_path: Path) -> None:
    """One cap for all, tested for 5 s from a cold start over round trips from 40 to 320 ms."""
    cap_mbps, lately_s = 4800.0, time.time() - 3600
    cold: dict[str, Any] = {"duration_s": 5.0, "warmed_up": False}
    samples = []
    for (i, src), (j, dst) in permutations(enumerate(REGIONS), 2):
        rtt_ms = 40.0 * (1 + abs(i - j))
        test = rate(src, dst, cap_mbps * (1 - 8.5 * rtt_ms / 5000), lately_s, **cold)
        samples += [ping(src, dst, rtt_ms, lately_s), test._replace(metric="udp_mbps")]
        # One test would leave each estimate part of its class's law, and laws differ by distance.
        samples += [test._replace(measured_at_s=lately_s - 60 * n) for n in range(6)]
    db = stored(tmp_path / "cold.db", samples)
    found = report(db, only="throughput relays")
    assert found["throughput"]["figures"]["aggregate_mbps"][0]["mean"] == pytest.approx(cap_mbps)
    assert found["relays"]["figures"]["many_connections"]["maximum"] < 1.02
    assert main(["study", "report", "--db", str(db), "--output", str(tmp_path / "cold.md")]) == 0
    assert "336 tests" in (tmp_path / "cold.md").read_text()


def test_report_matrix_and_plans_say_one_thing_of_relays(tmp_path: Path) -> None:
    """Also where throughput alone was measured: estimated round trips take slow start out."""
    db, rates = tmp_path / "grid.db", shared("skyplane/throughput_2022-01.csv")
    words = ["import", "skyplane-throughput", str(rates), "--db", str(db)]
    assert main([*words, "--measured-at", "2022-01-15"]) == 0
    told = figures(db, "relays")["many_connections"]
    with closing(relayd.open(db)) as wan:
        measured = wan.matrix("relay-gain", measured_only=True)
        known = np.maximum(measured.values[np.isfinite(measured.values)], 1.0)
        assert told["pairs"] == known.size
        for least, share in ((1.1, told["share_1_1"]), (1.5, told["share_1_5"])):
            assert share == pytest.approx(float((known >= least - 1e-9).mean()), abs=1e-3)
        everywhere = wan.matrix("relay-gain")
        for src, dst in Random(1).sample(list(permutations(measured.regions, 2)), 15):
            plan = wan.plan(src, dst, volume_gb=1e5, vms=1, objective="time")
            assert plan.verdict != "relay" or everywhere[src, dst] > 1.1


class _CountedHistory(StoredHistory):
    """A store's history that counts its readings."""

    readings = 0

    def read(self, since_s: float = -inf) -> Samples:
        self.readings += 1
        return super().read(since_s)


@pytest.mark.parametrize("since_s", [None, START_S + 6 * 86_400])
def test_samples_are_read_once_and_sections_leave_them_alone(
    tmp_path: Path, since_s: float | None
) -> None:
    """Cold tests, which some sections correct, in one report, and section by section."""
    cold: dict[str, Any] = {"duration_s": 5.0, "warmed_up": False, "src_zone": "a"}
    draw, samples = Random(4), []
    for (i, src), (j, dst) in permutations(enumerate(REGIONS[:4]), 2):
        for half_day in range(16):
            at_s, noise = START_S + 43_200 * half_day, draw.lognormvariate(0, 0.1)
            kind: AddressKind = "private" if half_day % 2 else "public"
            test = rate(src, dst, 4000 * noise, at_s, **cold)._replace(address=kind)
            flow = test._replace(metric="per_flow_mbps", value=500 * noise, connections=1)
            samples += [test, flow, ping(src, dst, 30 * (1 + abs(i - j)) * noise, at_s)]
    with open_store(stored(tmp_path / "cold.db", samples), mode="read") as store:
        catalogue, history = load_catalogue(), _CountedHistory(store)
        whole = make_report(history, catalogue, since_s=since_s)
        # Whether bounds held is judged from all days before, also those that are left out.
        assert history.readings == (1 if since_s is None else 2)
        for section in whole.sections:
            alone = make_report(history, catalogue, since_s=since_s, only=[section.key])
            assert alone.sections == [section], section.key
        assert {"throughput", "relays", "directions", "addresses"} <= {
            section.key for section in whole.sections if section.concluded
        }


def test_what_draws_charts_is_looked_for_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    words = ["study", "report", "--db", str(tmp_path / "none.db"), "--output"]
    assert main([*words, str(tmp_path / "r.html")]) == 2
    assert "pip install 'relayd[report]'" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "r.md")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_wrong_options_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    db = str(stored(tmp_path / "empty.db", []))
    for words, said in (
        (["--db", db, "--since", "yesterday"], "--since"),
        (["--db", str(tmp_path / "none.db")], "does not exist"),
        (["--db", db, "--output", str(tmp_path / "no" / "x.md")], "--output"),
        (["--db", db, "--section", "caps", "--section", "x"], "Sections are throughput"),
    ):
        assert main(["study", "report", *words]) == 2
        assert said in capsys.readouterr().err


def test_calibration_counts_what_bounds_of_before_held(tmp_path: Path) -> None:
    """Daily tests of one level, but for one link that falls to a tenth on the last day."""
    draw = np.random.default_rng(3)
    samples = []
    for src, dst in permutations(REGIONS[:4], 2):
        for day in range(10):
            falls = day == 9 and (src, dst) == (REGIONS[0], REGIONS[1])
            mbps = 4800.0 * draw.normal(1.0, 0.002) * (0.1 if falls else 1.0)
            samples.append(rate(src, dst, mbps, START_S + 86400.0 * day))
    section = report(stored(tmp_path / "days.db", samples), only="calibration")["calibration"]
    assert (section["concluded"], section["samples"]) == (True, 120)
    of_all = section["figures"]["aggregate_mbps"]["all"]
    assert of_all["predictions"] == 12 * 9
    assert of_all["share"] == pytest.approx(1 - 1 / 108)
    assert of_all["low"] < of_all["share"] < of_all["high"] <= 1
    assert section["figures"]["aggregate_mbps"]["by_providers"].keys() == {"aws > aws"}
    assert any("per_flow_mbps: no conclusion" in said for said in section["statements"])
    assert any("too wide" in said for said in section["statements"])
