"""Reports and archives of monitoring: Smokeping, Prometheus, mtr, PerfKit and perfSONAR."""

from __future__ import annotations

import json
from statistics import median, pstdev
from typing import Any

import pytest

from planner.model.errors import FormatError, InputError
from probes.importers import pscheduler, tools
from tests.probes.importers.reading import FIXTURES, outcomes, reasons, samples, skipped

FETCHED = FIXTURES / "smokeping" / "fetched.txt"
T = 1_795_395_600.0
"""The beginning of an hour."""


def values(found: list[Any], metric: str) -> list[float]:
    return [sample.value for sample in found if sample.metric == metric]


def test_rounds_that_rrdtool_printed() -> None:
    found = samples("smokeping", FETCHED)
    # Twelve rounds of 20 pings 5 minutes apart; the 4th lost 2, the 7th all, the 8th one.
    assert values(found, "loss_pct") == [0, 0, 0, 10, 0, 0, 100, 5, 0, 0, 0, 0]
    assert len(values(found, "rtt_ms")) == 11
    assert found[1].value == pytest.approx(88.76192)
    assert found[1].measured_at_s == 1795000200
    assert (found[1].src, found[1].dst_zone, found[1].tool) == ("aws:us-east-1", "b", "smokeping")
    fourth = [s for s in found if s.measured_at_s == 1795001100]
    row = next(line for line in FETCHED.read_text().splitlines() if line.startswith("1795001100"))
    times_ms = [float(word) * 1e3 for word in row.split()[4:] if word != "-nan"]
    assert len(times_ms) == 18
    assert fourth[2].value == pytest.approx(pstdev(times_ms))
    assert fourth[0].read_detail() == {"packets": 20, "replies": 18}
    counted = reasons(outcomes("smokeping", FETCHED))
    assert sorted(counted.values()) == [1, 3]
    assert counted["nothing was measured then (-nan)"] == 3


def test_rows_that_are_no_rounds_are_left_out() -> None:
    header = " loss median ping1 ping2\n\n"
    rows = "1795000200: 3 0.1 0.1 0.1\nsoon: 0 0.1 0.1 0.1\n1795000500: 0 0.1 0.1\n"
    counted = reasons(outcomes("smokeping", header + rows + "1795000800: 0 0.1 0.1 0.1"))
    assert counted == {
        "more pings were lost than were sent": 1,
        "not a time and a figure for each column": 2,
        "last line has no line end, so its last figure may be cut off": 1,
    }
    with pytest.raises(FormatError, match="rrdtool fetch"):
        outcomes("smokeping", "1795000200: 0 0.1 0.1 0.1\n")


def test_echoes_that_prometheus_kept() -> None:
    found = samples("blackbox", FIXTURES / "blackbox" / "icmp.json")
    assert [s.metric for s in found] == ["loss_pct", "rtt_ms", "jitter_ms"]
    lost, rtt, _ = found
    assert (lost.value, lost.read_detail()) == (0, {"packets": 9, "replies": 9})
    assert rtt.value == pytest.approx(0.116241)
    assert rtt.measured_at_s == 1795395307.85
    assert rtt.tool == "blackbox icmp"


def test_handshakes_count_and_other_durations_do_not() -> None:
    (rtt, _) = samples("blackbox", FIXTURES / "blackbox" / "http.json")
    assert (rtt.metric, rtt.tool) == ("rtt_ms", "blackbox http")
    assert 0 < rtt.value < 5
    found = outcomes("blackbox", FIXTURES / "blackbox" / "tcp.json")
    assert reasons(found) == {
        "probes of one target without a round-trip time (neither ICMP nor HTTP)": 1
    }


def answer(*series: tuple[dict[str, str], list[tuple[float, float]]]) -> str:
    """Return an answer of Prometheus."""
    result = [
        {"metric": labels, "values": [[at_s, str(value)] for at_s, value in points]}
        for labels, points in series
    ]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def test_probes_of_an_hour_are_one_sample_and_failures_are_loss() -> None:
    rtt = {"__name__": "probe_icmp_duration_seconds", "phase": "rtt", "instance": "a"}
    success = {"__name__": "probe_success", "instance": "a"}
    probes = [(T + 60.0 * n, 0.1 + 0.001 * (n % 7), n % 10 != 3) for n in range(90)]
    content = answer(
        (rtt, [(at_s, value if answered else 0.0) for at_s, value, answered in probes]),
        (success, [(at_s, float(answered)) for at_s, _, answered in probes]),
    )
    found = samples("blackbox", content)
    hours = [
        [1e3 * value for _, value, answered in part if answered]
        for part in (probes[:60], probes[60:])
    ]
    assert values(found, "loss_pct") == pytest.approx([10.0, 10.0])
    assert values(found, "rtt_ms") == pytest.approx([median(part) for part in hours])
    assert values(found, "jitter_ms") == pytest.approx([pstdev(part) for part in hours])
    assert {s.measured_at_s for s in found} == {T, T + 3600}


def test_labels_name_regions_and_one_file_else_holds_one_target() -> None:
    rtt = {"__name__": "probe_icmp_duration_seconds", "phase": "rtt"}
    ends = {"src": "aws:eu-west-1", "dst": "azure:westeurope"}
    content = answer(
        ({**rtt, "instance": "a", **ends}, [(T, 0.02)]),
        ({**rtt, "instance": "b", **ends, "dst": "aws:eu-west-1"}, [(T, 0.001)]),
        ({**rtt, "instance": "c", "src": "aws:eu-west-1"}, [(T, 0.09)]),
    )
    found = outcomes("blackbox", content, src="", dst="gcp:us-east1")
    assert [(s.src, s.dst) for s in samples("blackbox", content, src="")] == [
        ("aws:eu-west-1", "azure:westeurope"),
        ("aws:eu-west-1", "gcp:us-east1"),
    ]
    assert reasons(found) == {"src and dst are the same region": 1}
    refused = '{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}\n'
    with pytest.raises(FormatError, match="parse error: unexpected end"):
        outcomes("blackbox", refused)
    with pytest.raises(FormatError, match="no series of the blackbox exporter"):
        outcomes("blackbox", answer())
    both = answer(({**rtt, "instance": "a"}, [(T, 0.02)]), ({**rtt, "instance": "b"}, [(T, 0.02)]))
    with pytest.raises(FormatError, match=r"several targets \(a, b\)"):
        outcomes("blackbox", both)
    assert len(samples("blackbox", both, force=True)) == 2


# ---- mtr, PerfKitBenchmarker, pScheduler and perfSONAR --------------------------------------

REPORT = (FIXTURES / "mtr/report.json").read_text()
RESULTS = FIXTURES / "perfkit/results.json"


def test_the_last_hop_of_mtr_counts_if_it_is_the_host_asked_for() -> None:
    found = {one.metric: one.value for one in samples("mtr", REPORT)}
    assert found == {"loss_pct": 5.0, "rtt_ms": 31.77, "jitter_ms": 0.41}
    for other in ("198.51.100.1", "???"):
        assert skipped("mtr", REPORT.replace('host": "203.0.113.9', f'host": "{other}')) == [
            (1, tools.NOT_REACHED)
        ]
    # A name may be the address that was asked for.
    assert samples("mtr", REPORT.replace('host": "203.0.113.9', 'host": "vm.example'))
    report = json.loads(REPORT)
    report["report"]["hubs"][-1]["Loss%"] = 100.0
    assert [one.metric for one in samples("mtr", json.dumps(report))] == ["loss_pct"]


def test_results_of_perfkit_name_all_that_matters() -> None:
    rate, rtt, stream = samples("perfkit", RESULTS)
    assert (rate.metric, rate.value, rate.connections) == ("aggregate_mbps", 4800.0, 64)
    assert (rate.src, rate.src_zone, rate.dst, rate.dst_zone) == (
        "aws:us-east-1",
        "a",
        "aws:eu-west-1",
        "b",
    )
    assert (rate.src_vm, rate.duration_s, rate.address) == ("m5.8xlarge", 60.0, None)
    assert (rtt.metric, rtt.value) == ("rtt_ms", 68.2)
    assert (stream.metric, stream.value, stream.address) == ("per_flow_mbps", 512.0, "private")
    assert reasons(outcomes("perfkit", RESULTS)) == {tools.NOT_USED: 1}


def test_iperf_2s_csv_is_cut_into_tests_by_their_beginnings() -> None:
    begun = "192.0.2.1,40000,192.0.2.2,5001"
    seconds = "".join(
        f"2026110110000{s},{begun},3,{s - 1}.0-{s}.0,{bps // 8},{bps}\n"
        for s, bps in enumerate([400_000_000, *[800_000_000] * 8], 1)
    )
    rows = seconds + f"20261101100009,{begun},3,0.0-9.0,850000000,755555555\n"
    rows += "20261101101000,192.0.2.1,40002,192.0.2.2,5001,3,0.0-10.0,500000000,400000000\n"
    rows += "20261101101000,192.0.2.1,40004,192.0.2.2,5001,4,0.0-10.0,500000000,400000000\n"
    rows += "20261101101000,192.0.2.1,0,192.0.2.2,5001,-1,0.0-10.0,1000000000,800000000\n"
    first, second = samples("iperf", rows)
    assert (first.metric, first.value, first.warmed_up) == ("per_flow_mbps", 800.0, True)
    assert (second.metric, second.value, second.connections) == ("aggregate_mbps", 800.0, 2)
    assert second.measured_at_s - first.measured_at_s > 500


PSCHEDULER = FIXTURES / "pscheduler"


def test_throughput_is_the_rate_after_the_transient() -> None:
    (sample,) = samples("", PSCHEDULER / "throughput.json")
    assert (sample.metric, sample.value, sample.connections) == ("aggregate_mbps", 900.0, 4)
    assert (sample.duration_s, sample.tool) == (10.0, "pscheduler iperf3")
    assert sample.measured_at_s == 1568127335.0  # 2019-09-10T14:55:35Z
    (of_archive,) = samples("", PSCHEDULER / "archive.json")
    assert (of_archive.metric, of_archive.value) == ("per_flow_mbps", 9100.0)
    assert (of_archive.duration_s, of_archive.measured_at_s) == (30.0, 1672531200.0)


def test_round_trips_count_once_in_a_batch_that_says_them_thrice() -> None:
    assert [(one.metric, one.value) for one in samples("", PSCHEDULER / "batch.json")] == [
        ("loss_pct", 0.0),
        ("rtt_ms", 12.95),
        ("jitter_ms", pytest.approx(0.05)),
    ]


def test_one_way_delays_give_loss_alone() -> None:
    found = outcomes("", PSCHEDULER / "one_way.json")
    assert [one.value for one in samples("", PSCHEDULER / "one_way.json")] == [0.5]
    assert reasons(found) == {pscheduler.ONE_WAY: 1}


def test_failures_other_tests_and_several_pairs() -> None:
    failed = json.dumps({"result-merged": {"succeeded": False, "error": "no route"}})
    assert reasons(outcomes("", failed)) == {pscheduler.FAILED: 1}
    trace = json.dumps({"result-merged": {"succeeded": True, "paths": []}})
    assert reasons(outcomes("", trace)) == {pscheduler.OTHER_TEST: 1}
    one = json.loads((PSCHEDULER / "throughput.json").read_text())
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
