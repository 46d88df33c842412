"""Data of monitoring: Smokeping's archives, and Prometheus' probes by the blackbox exporter."""

from __future__ import annotations

import json
from statistics import median, pstdev
from typing import Any

import pytest

from planner.model.errors import FormatError
from tests.probes.importers.reading import FIXTURES, outcomes, reasons, samples

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
