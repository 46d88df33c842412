"""Files of public repositories, each imported without its format and with the right value."""

from __future__ import annotations

import re
from typing import Any

import networkx
import pytest

import relayd
from planner.model.errors import FormatError
from tests.probes.importers.reading import FIXTURES, outcomes, samples

FILES = FIXTURES / "public"
_NAMES = {"src": "srcRegion", "dst": "destRegion", "per_flow_mbps": "received_mbps"}


def test_every_file_is_named_with_its_source() -> None:
    named = re.findall(r"^\| (\S+) \| \S+/\S+ \|", (FILES / "SOURCES.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(one.name for one in FILES.iterdir() if one.suffix != ".md")
    assert len(named) >= 12


def test_iperf_2_with_enhanced_reports() -> None:
    found = samples("", FILES / "perfkit-iperf_results.txt", force=True)
    rates = {(one.metric, one.connections): one.value for one in found}
    assert rates["per_flow_mbps", 1] == 1966.0
    assert rates["aggregate_mbps", 2] == 1970.0
    assert rates["udp_mbps", 1] == pytest.approx(1.05)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("perfkit-netperf_results.txt", "holds no test of netperf"),  # its lines are wrapped
        ("jc-freebsd12-traceroute.out", "is traceroute's output"),
    ],
)
def test_what_tells_too_little_is_refused_by_name(name: str, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        outcomes("", FILES / name)


def test_rows_of_a_study_with_columns_of_its_own() -> None:
    found = samples("", FILES / "wanify-dynamic100_20.json", columns=_NAMES, provider="aws")
    assert len(found) == 20
    rates: dict[Any, float] = {(one.src, one.dst): one.value for one in found}
    assert rates["aws:eu-west-1", "aws:sa-east-1"] == 62.0
    assert rates["aws:ap-northeast-1", "aws:ap-southeast-2"] == 102.0


def test_one_stream_of_iperf_3_0() -> None:
    (sample,) = samples("", FILES / "iperf3-python-results.json")
    assert (sample.metric, sample.value, sample.intervals) == ("per_flow_mbps", 933.94152, 12)
    assert (sample.tool, sample.measured_at_s) == ("iperf3 3.0.11", 1498663888.0)


def test_the_last_hop_of_a_report_of_mtr() -> None:
    found = {str(one.metric): one.value for one in samples("", FILES / "mtr-exporter-report.json")}
    assert found == {"loss_pct": 0.0, "rtt_ms": 20.74, "jitter_ms": 2.54}


def test_a_network_in_the_form_of_the_topology_zoo() -> None:
    file = FIXTURES / "graph" / "zoo.graphml"
    found = samples("", file, provider="zoo")
    assert {(one.src, one.dst, one.value) for one in found} == {
        ("zoo:Santa-Clara", "zoo:Seattle", 45.0),
        ("zoo:Seattle", "zoo:Santa-Clara", 45.0),
    }
    network = relayd.open(networkx.read_graphml(file)).network
    assert network.links["Seattle"]["Santa-Clara"].aggregate_gbps.expected == 0.045
