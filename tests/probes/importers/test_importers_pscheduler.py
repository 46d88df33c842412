"""Results of pScheduler, and archives of perfSONAR."""

from __future__ import annotations

import json

import pytest

from planner.model.errors import FormatError, InputError
from probes.importers import pscheduler
from tests.probes.importers.reading import FIXTURES, outcomes, reasons, samples

FILES = FIXTURES / "pscheduler"


def test_throughput_is_the_rate_after_the_transient() -> None:
    (sample,) = samples("", FILES / "throughput.json")
    assert (sample.metric, sample.value, sample.connections) == ("aggregate_mbps", 900.0, 4)
    assert (sample.duration_s, sample.tool) == (10.0, "pscheduler iperf3")
    assert sample.measured_at_s == 1568127335.0  # 2019-09-10T14:55:35Z
    (of_archive,) = samples("", FILES / "archive.json")
    assert (of_archive.metric, of_archive.value) == ("per_flow_mbps", 9100.0)
    assert (of_archive.duration_s, of_archive.measured_at_s) == (30.0, 1672531200.0)


def test_round_trips_count_once_in_a_batch_that_says_them_thrice() -> None:
    assert [(one.metric, one.value) for one in samples("", FILES / "batch.json")] == [
        ("loss_pct", 0.0),
        ("rtt_ms", 12.95),
        ("jitter_ms", pytest.approx(0.05)),
    ]


def test_one_way_delays_give_loss_alone() -> None:
    found = outcomes("", FILES / "one_way.json")
    assert [one.value for one in samples("", FILES / "one_way.json")] == [0.5]
    assert reasons(found) == {pscheduler.ONE_WAY: 1}


def test_failures_other_tests_and_several_pairs() -> None:
    failed = json.dumps({"result-merged": {"succeeded": False, "error": "no route"}})
    assert reasons(outcomes("", failed)) == {pscheduler.FAILED: 1}
    trace = json.dumps({"result-merged": {"succeeded": True, "paths": []}})
    assert reasons(outcomes("", trace)) == {pscheduler.OTHER_TEST: 1}
    one = json.loads((FILES / "throughput.json").read_text())
    two = {**one, "test": {"spec": {"source": "a", "dest": "c"}}}
    with pytest.raises(FormatError, match="several hosts"):
        outcomes("", json.dumps([one, two]))
    reverse = {**one, "test": {"spec": {**one["test"]["spec"], "reverse": True}}}
    (sample,) = samples("", json.dumps(reverse))
    assert (sample.src, sample.dst) == ("gcp:us-east1", "aws:us-east-1")


def test_series_of_esmond_need_their_metric() -> None:
    series = FIXTURES / "esmond/series.json"
    (sample,) = samples("", series, metric="per_flow_bps")
    assert (sample.metric, sample.value, sample.tool) == ("per_flow_mbps", 9300.0, "esmond")
    assert sample.measured_at_s == 1_400_000_000
    with pytest.raises(InputError, match="does not say what its values are"):
        outcomes("", series)
