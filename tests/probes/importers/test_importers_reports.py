"""mtr's reports and PerfKitBenchmarker's results."""

from __future__ import annotations

import json

from probes.importers import mtr, perfkit
from tests.probes.importers.reading import FIXTURES, outcomes, reasons, samples, skipped

REPORT = (FIXTURES / "mtr/report.json").read_text()
RESULTS = FIXTURES / "perfkit/results.json"


def test_the_last_hop_of_mtr_counts_if_it_is_the_host_asked_for() -> None:
    found = {one.metric: one.value for one in samples("mtr", REPORT)}
    assert found == {"loss_pct": 5.0, "rtt_ms": 31.77, "jitter_ms": 0.41}
    for other in ("198.51.100.1", "???"):
        assert skipped("mtr", REPORT.replace('host": "203.0.113.9', f'host": "{other}')) == [
            (1, mtr.NOT_REACHED)
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
    assert reasons(outcomes("perfkit", RESULTS)) == {perfkit.NOT_USED: 1}


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
