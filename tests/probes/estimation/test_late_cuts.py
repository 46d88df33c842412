"""Links whose rate falls after a while: short tests do not hide it, and steady links have none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from probes.analysis.series.late_cuts import lasting, rate_cut
from probes.analysis.series.steady import Interval
from probes.campaign.findings import Findings, steady_sample
from probes.samples import Sample
from probes.tools.interface import Result
from relayd.__main__ import main
from tests.probes.estimation.test_estimation import estimated
from tests.probes.importers.test_importers_iperf3 import long_test

START_S = 1_790_000_000.0
SRC, DST = "azure:eastus", "azure:westeurope"


def probe(levels: list[tuple[float, int]], number: int, *, noise: float = 0.03) -> Sample:
    """Return what a campaign keeps of a test with such seconds of such rates."""
    generator = np.random.default_rng(number)
    intervals = tuple(
        Interval(1.0, mbps * generator.normal(1, noise))
        for mbps, count in levels
        for _ in range(count)
    )
    mean = float(np.mean([interval.mbps for interval in intervals]))
    at_s = START_S + 600.0 * number
    raw = Sample(SRC, DST, "aggregate_mbps", mean, at_s, "iperf3", 64, float(len(intervals)), True)
    return steady_sample([Result((raw,), 0.0, intervals)], Findings())


def test_long_tests_tell_what_lasts_however_many_short_ones_there_are() -> None:
    by_volume = [
        probe([(mbps, round(72e3 / mbps)), (900, 40)], k)
        for k, mbps in enumerate((1800, 2200, 2600, 3000))
    ]
    short = [probe([(2400, 8)], 10 + k) for k in range(5)]
    cut = rate_cut([*by_volume, *short])
    assert cut is not None
    assert cut.cause == "volume"
    assert cut.after_gb == pytest.approx(9, rel=0.05)
    assert (cut.before_gbps, cut.after_gbps) == pytest.approx((2.4, 0.9), rel=0.05)
    assert lasting([*by_volume, *short], cut) == by_volume
    by_time = rate_cut(
        [probe([(mbps, 60), (900, 40)], k) for k, mbps in enumerate((1800, 2400, 3e3))]
    )
    assert by_time is not None
    assert by_time.cause == "time"
    assert by_time.after_s == pytest.approx(60, abs=2)


def test_steady_links_have_no_fall() -> None:
    assert not any(
        rate_cut([probe([(2000, 150)], 100 * k + j, noise=0.1) for j in range(3)])
        for k in range(40)
    )
    # One of five long tests fell: something happened, but it is not how the link is.
    once = [probe([(2000, 100), (900, 50)], 0), *(probe([(2000, 150)], k) for k in range(1, 5))]
    assert rate_cut(once) is None


def test_an_estimate_is_of_what_lasts_and_says_what_goes_before() -> None:
    samples = [probe([(2000, 36), (900, 40)], k) for k in range(3)]
    samples += [probe([(2000, 8)], k) for k in range(3, 6)]
    estimate = estimated(*samples).link(SRC, DST).aggregate_gbps
    assert estimate.expected == pytest.approx(0.9, rel=0.1)
    figures = estimate.origin.figures
    assert figures is not None
    assert figures.rate_cut is not None
    assert figures.rate_cut.after_gb == pytest.approx(9, rel=0.05)
    held = estimated(*(probe([(2000, 80)], k) for k in range(3)))
    steady = held.link(SRC, DST).aggregate_gbps.origin.figures
    assert steady is not None
    assert steady.rate_cut is None


def test_a_plan_counts_on_what_imported_tests_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Four iperf3 files: 2 Gbit/s for 10 GB (40 s), then 1."""
    generator = np.random.default_rng(1)
    db = str(tmp_path / "falls.db")
    for number in range(4):
        rates = [float((2000 if k < 40 else 1000) * generator.normal(1, 0.02)) for k in range(120)]
        document = json.loads(long_test(rates))
        document["start"]["test_start"]["num_streams"] = 64
        document["start"]["timestamp"]["timesecs"] += 600 * number
        file = tmp_path / f"{number}.json"
        file.write_text(json.dumps(document))
        # The client of a reverse test receives.
        assert main(["import", "iperf3", str(file), "--db", db, "--src", DST, "--dst", SRC]) == 0
    capsys.readouterr()
    ask = [
        "plan",
        "--db",
        db,
        "--src",
        SRC,
        "--dst",
        DST,
        "--relays",
        "none",
        "--vms",
        "1",
        "--json",
    ]
    rate = {}
    for volume in (5, 30, 3000):
        assert main([*ask, "--volume", f"{volume}GB"]) == 0
        found = json.loads(capsys.readouterr().out)
        rate[volume] = found["throughput_gbps"]
        assert any(
            "falls from 2 to" in said or "falls from 1.99" in said for said in found["warnings"]
        )
    lasts = rate[3000]
    assert rate[5] / lasts == pytest.approx(2, rel=0.05)
    assert rate[30] / lasts == pytest.approx(1.2, rel=0.05)
