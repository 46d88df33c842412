"""nuttcp: captured outputs of the real tool (6.1.2, loopback), whole and damaged."""

from __future__ import annotations

import json
import re
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import FormatError, InputError
from probes.importers import nuttcp
from probes.importers.rates import PACED
from probes.samples import Sample
from tests.probes.importers.reading import FIXTURES, outcomes, patient, samples

FOLDER = FIXTURES / "nuttcp"


def text(name: str) -> str:
    return (FOLDER / f"{name}.txt").read_text()


def test_the_line_of_the_manual() -> None:
    line = "  112.0625 MB /   1.00 sec =  939.5000 Mbps 9 %TX 12 %RX 3 retrans 0.20 msRTT\n"
    (sample,) = samples("nuttcp", line, connections=1)
    assert (sample.metric, sample.value, sample.duration_s) == ("per_flow_mbps", 939.5, 1.0)
    assert not sample.warmed_up
    assert json.loads(sample.detail) == {"retransmits": 3, "connect_rtt_ms": 0.2}


@pytest.mark.parametrize("name", ["plain", "parse"])
@pytest.mark.parametrize(("connections", "metric"), [(1, "per_flow_mbps"), (4, "aggregate_mbps")])
def test_both_forms_give_the_printed_rate(name: str, connections: int, metric: str) -> None:
    (sample,) = samples("nuttcp", text(name), connections=connections)
    printed = re.search(r"= (\d+\.\d+) Mbps|rate_Mbps=(\S+)", text(name))
    assert printed
    assert sample.value == float(printed[1] or printed[2])
    assert (sample.metric, sample.connections) == (metric, connections)
    with pytest.raises(InputError, match="--connections 1"):
        outcomes("nuttcp", text(name))


def test_a_verbose_run_tells_its_streams_and_gives_the_receivers_side() -> None:
    (sample,) = samples("nuttcp", text("verbose"))
    (printed,) = re.findall(r"nuttcp-r: .* = (\S+) Mbps", text("verbose"))
    assert (sample.metric, sample.connections) == ("aggregate_mbps", 3)
    assert sample.value == float(printed)
    assert sample.tool == "nuttcp 6.1.2"
    sender, _, _ = text("verbose").partition("nuttcp-r")
    assert outcomes("nuttcp", sender) == [(1, nuttcp.SENDER_ONLY)]
    assert len(samples("nuttcp", text("verbose") * 3)) == 3


def test_intervals_give_the_median_after_the_transient() -> None:
    (sample,) = samples("nuttcp", text("intervals"), connections=1)
    rates = [
        float(rate)
        for rate in re.findall(r"= +(\S+) Mbps +\d+ retrans$", text("intervals"), re.MULTILINE)
    ]
    assert min(rates) <= sample.value <= max(rates)
    told = json.loads(sample.detail)
    skipped_s = round(told["transient_s"])
    assert sample.value == median(rates[skipped_s : skipped_s + round(sample.duration_s or 0)])
    assert sample.warmed_up


def test_paced_verbose_runs_are_no_measurement_of_the_path() -> None:
    paced = (
        text("verbose")
        .replace("time limit", "rate limit = 30.000 Gbps (aggregate)\nnuttcp-t: time limit")
        .replace(re.findall(r"nuttcp-r: .* = (\S+) Mbps", text("verbose"))[0], "29990.1")
    )
    assert outcomes("nuttcp", paced) == [(1, f"{PACED} (-b or -R)")]
    assert len(samples("nuttcp", paced, force=True)) == 1


@pytest.mark.parametrize("name", ["udp", "udp_parse"])
def test_udp_gives_its_rate_with_the_loss_at_that_rate(name: str) -> None:
    dropping = text(name).replace("0 / 611", "61 / 610").replace("drop=0", "drop=30")
    (sample,) = samples("nuttcp", dropping)
    assert sample.metric == "udp_mbps"
    assert sample.value == pytest.approx(20, rel=0.01)
    assert json.loads(sample.detail)["loss_at_this_rate_pct"] == pytest.approx(10, rel=0.03)


def test_failures_are_told_in_the_tools_words() -> None:
    found = outcomes("nuttcp", text("refused") + text("plain"), connections=1)
    assert found[0] == (3, "nuttcp failed: connect: Connection refused")
    assert isinstance(found[1], Sample)


@patient
@given(st.sampled_from(["plain", "parse", "udp", "udp_parse", "intervals", "verbose"]), st.data())
def test_a_truncated_run_gives_the_printed_rate_or_none(name: str, data: st.DataObject) -> None:
    whole = text(name)
    (expected,) = samples("nuttcp", whole, connections=1)
    length = data.draw(st.integers(1, len(whole) - 1))
    try:
        found = outcomes("nuttcp", whole[:length], connections=1)
    except FormatError:
        return
    assert {o.value for o in found if isinstance(o, Sample)} <= {expected.value}
