"""A person's own CSV: every column, unit and fault, and round trips of generated files."""

from __future__ import annotations

import csv
import io
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import FormatError, InputError
from probes.importers import csv_samples, options
from probes.importers.tables import BLANK, REPEATED_HEADER, TOO_FEW, TOO_MANY
from probes.metrics import MAX_RATE_MBPS, MAX_RTT_MS
from probes.samples import Sample
from tests.probes.importers.reading import outcomes, patient, reasons, samples


def test_one_row_gives_a_sample_for_each_figure() -> None:
    content = (
        "dst,aggregate_gbps,src,rtt_s,per_flow_mbps,loss_fraction,connections,duration_min,"
        "measured_at,src_vm\n"
        "gcp:us-east1-b,4.5,aws:us-east-1,0.02,120,0.01,32,0.5,2022-01-15T12:00:00Z,m5.8xlarge\n"
    )
    found = {sample.metric: sample for sample in samples("csv", content)}
    assert {metric: round(sample.value, 9) for metric, sample in found.items()} == {
        "aggregate_mbps": 4500.0,
        "rtt_ms": 20.0,
        "per_flow_mbps": 120.0,
        "loss_pct": 1.0,
    }
    noon = datetime(2022, 1, 15, 12, tzinfo=UTC).timestamp()
    for sample in found.values():
        assert (sample.src, sample.dst, sample.dst_zone) == ("aws:us-east-1", "gcp:us-east1", "b")
        assert (sample.measured_at_s, sample.src_vm) == (noon, "m5.8xlarge")
    assert (found["aggregate_mbps"].connections, found["aggregate_mbps"].duration_s) == (32, 30.0)
    assert (found["per_flow_mbps"].connections, found["per_flow_mbps"].duration_s) == (1, 30.0)
    assert (found["rtt_ms"].connections, found["rtt_ms"].duration_s) == (None, None)


@pytest.mark.parametrize(
    "written",
    ["1642248000", "2022-01-15T12:00:00Z", "2022-01-15 13:00:00+01:00", "2022-01-15T12:00"],
)
def test_times_are_seconds_or_iso_8601_and_utc_unless_stated(written: str) -> None:
    content = f"src,dst,rtt_ms,measured_at\naws:a,gcp:b,1,{written}\n"
    assert samples("csv", content)[0].measured_at_s == 1642248000.0


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("aws:a,gcp:b,nan,,,", "rtt_ms is NaN"),
        ("aws:a,gcp:b,60001,,,", "rtt_ms is over 60 s"),
        ('aws:a,gcp:b,"12,5",,,', "rtt_ms is not a number"),
        ("aws:a,gcp:b,12,5,,,", TOO_MANY),
        ("aws:a,gcp:b,,inf,,", "aggregate_gbps is infinite"),
        ("aws:a,gcp:b,,100001,,", "aggregate_gbps is over 100 Tbit/s"),
        ("aws:a,gcp:b,,,,", "no figure in this row"),
        ("aws:a,gcp:b,1", TOO_FEW),
        ("", BLANK),
        ("src,dst,rtt_ms,aggregate_gbps,connections,measured_at", REPEATED_HEADER),
        ("us-east,gcp:b,1,,,", options.BAD_REGION),
        ("aws:a,aws:a,1,,,", options.SAME_REGION),
        ("aws:a,gcp:b,1,,none,", "connections is not a count"),
        ("aws:a,gcp:b,1,,,yesterday", "measured_at is neither ISO 8601 nor seconds since 1970"),
        ("aws:a,gcp:b,1,,,99999999999", "measured_at is neither ISO 8601 nor seconds since 1970"),
    ],
)
def test_a_fault_skips_its_row_or_figure_and_names_the_column(row: str, reason: str) -> None:
    header = "src,dst,rtt_ms,aggregate_gbps,connections,measured_at\n"
    good = "aws:a,gcp:b,1,,,\n"
    found = outcomes("csv", header + good + row + "\n" + good)
    assert [type(outcome).__name__ for outcome in found] == ["Sample", "SkippedRow", "Sample"]
    assert found[1] == (3, reason)
    # A bad figure does not take the others of its row along.
    found = outcomes("csv", "src,dst,rtt_ms,loss_pct\naws:a,gcp:b,nan,0\n")
    assert found[0] == (2, "rtt_ms is NaN")
    assert isinstance(found[1], Sample)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("src,dst,speed\na,b,1\n", "names no figure"),
        ("src,rtt_ms\na,1\n", "lacks the column dst"),
        ("src,dst,rtt_ms,rtt_s\n", "twice, in 'rtt_ms' and 'rtt_s'"),
        ("src,dst,rtt_ms,rtt_ms\n", "names the column 'rtt_ms' twice"),
        ("src;dst;speed (ms, mean)\na;b;1\n", "names no figure"),
        ('"Time";"source";"target"\nx;y;z\n', "lacks the column dst"),
        ("src,dst,rtt_ms\n", "a header and no rows"),
        ('src,dst,rtt_ms\naws:a,"gcp:b,1\n', "line 2 has a quotation mark"),
        ("\n \n", "nothing but blank lines"),
    ],
)
def test_a_file_that_can_not_be_understood_is_refused(content: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        outcomes("csv", content)


def test_two_columns_that_are_named_for_one_figure_are_refused() -> None:
    content = "src,dst,a,b\naws:a,gcp:b,1,7\n"
    with pytest.raises(FormatError, match="states rtt_ms twice, in 'a' and 'b'"):
        outcomes("csv", content, columns={"rtt_ms": "a", "rtt_us": "b"})


def test_settings_that_the_file_leaves_out_are_taken_from_the_options() -> None:
    assert outcomes("csv", "src,dst,rtt_ms,colour\naws:a,gcp:b,1,red\n")[0] == (
        1,
        "column 'colour' is not used",
    )
    content = "src,dst,aggregate_mbps\naws:a,gcp:b,100\n"
    (sample,) = samples("csv", content, connections=8, duration_s=10.0, src_vm="m5.large")
    assert (sample.connections, sample.duration_s, sample.src_vm) == (8, 10.0, "m5.large")
    with pytest.raises(InputError, match="--measured-at"):
        outcomes("csv", content, measured_at_s=None)


_names = st.from_regex(r"(aws|gcp|azure|onprem):[a-z]{2,8}", fullmatch=True)
_figures = st.fixed_dictionaries(
    {},
    optional={
        "rtt_ms": st.floats(1e-3, MAX_RTT_MS),
        "per_flow_mbps": st.floats(1e-3, MAX_RATE_MBPS),
        "aggregate_mbps": st.floats(1e-3, MAX_RATE_MBPS),
        "loss_pct": st.floats(0, 100),
    },
).filter(bool)


@patient
@given(
    rows=st.lists(st.tuples(_names, _names, _figures).filter(lambda r: r[0] != r[1]), min_size=1),
    order=st.permutations(["src", "dst", "rtt_ms", "per_flow_mbps", "aggregate_mbps", "loss_pct"]),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_every_figure_of_a_valid_file_comes_back_exactly(
    rows: list[tuple[str, str, dict[str, float]]], order: list[str], end: str, quoting: int
) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, order, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    writer.writeheader()
    for src, dst, figures in rows:
        writer.writerow({"src": src, "dst": dst, **figures})
    found = outcomes("csv", text.getvalue())
    assert not reasons(found)
    written = [(s, d, *figure) for s, d, figures in rows for figure in figures.items()]
    assert sorted((s.src, s.dst, s.metric, s.value) for s in found) == sorted(written)  # type: ignore[union-attr]


@patient
@given(st.sampled_from(sorted(csv_samples.FIGURES)), st.floats(allow_nan=True))
def test_no_figure_outside_its_limits_becomes_a_sample(column: str, value: float) -> None:
    found = outcomes("csv", f"src,dst,{column}\naws:a,gcp:b,{value!r}\n")
    assert len(found) == 1
    if isinstance(found[0], Sample):
        metric, factor = csv_samples.FIGURES[column]
        assert found[0] == found[0]._replace(metric=metric, value=value * factor)
        assert math.isfinite(found[0].value)
        assert found[0].value >= 0
    else:
        assert column in found[0].reason
