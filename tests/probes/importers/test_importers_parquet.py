"""Samples as Parquet: what is written is read again, and wrong rows and columns are named."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections import Counter
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import FormatError
from probes.importers import options, parquet
from probes.samples import Sample, read_detail
from tests.probes.importers.reading import outcomes, patient, reasons, samples

GOOD: dict[str, Any] = {
    "src": "aws:us-east-1",
    "dst": "gcp:us-east1",
    "metric": "aggregate_mbps",
    "value": 4810.5,
    "measured_at_s": 1.7e9,
}


def written(*rows: dict[str, Any], schema: pyarrow.Schema | None = None) -> bytes:
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows), schema), stream)
    return stream.getvalue()


_texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
_samples = st.builds(
    Sample,
    st.sampled_from(["aws:us-east-1", "azure:eastus"]),
    st.sampled_from(["gcp:us-east1", "mine:office"]),
    st.sampled_from(["aggregate_mbps", "per_flow_mbps", "udp_mbps"]),
    st.floats(1e-3, 1e8),
    st.floats(1e8, 1e10),
    _texts.filter(bool),
    st.none() | st.integers(1, 65_535),
    st.none() | st.floats(1e-3, 1e6),
    st.booleans(),
    _texts,
    _texts,
    _texts,
    _texts,
    st.just("") | st.dictionaries(_texts, _texts, max_size=2).map(json.dumps),
    st.sampled_from([None, "public", "private"]),
    st.booleans(),
    st.none() | st.integers(1, 10**6),
)


@patient
@given(st.lists(_samples, min_size=1, max_size=40))
def test_samples_come_back_as_they_were_written(found: list[Sample]) -> None:
    schema = pyarrow.schema(
        [(name, pyarrow.type_for_alias(alias)) for name, alias in parquet.TYPES.items()]
    )
    assert tuple(parquet.TYPES) == Sample._fields
    content = written(*(sample._asdict() for sample in found), schema=schema)
    assert outcomes("parquet", content) == found


def test_few_columns_are_enough_and_others_do_not_matter() -> None:
    content = written({**GOOD, "src": "gcp:us-east1-b", "dst": "aws:us-east-1", "comment": "x"})
    (sample,) = samples("parquet", content, dst_vm="m5.large", address="private")
    assert sample[:3] == ("gcp:us-east1", "aws:us-east-1", "aggregate_mbps")
    assert sample[3:6] == (4810.5, 1.7e9, "parquet")
    assert (sample.src_zone, sample.dst_vm, sample.address) == ("b", "m5.large", "private")


def test_wrong_rows_are_left_out_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "BATCH_ROWS", 3)  # rows are counted over groups
    wrong: dict[str, dict[str, Any]] = {
        options.BAD_REGION: {"src": "us-east-1"},
        options.SAME_REGION: {"dst": "aws:us-east-1"},
        "src and dst of a VM's cap are not one region": {"metric": "egress_cap_mbps"},
        "metric is none that relayd knows": {"metric": "mbps"},
        "measured_at_s is not a time in seconds since 1970": {"measured_at_s": 1.7e12},
        "connections is not a count": {"connections": 0},
        "duration_s is not a duration": {"duration_s": -1.0},
        "intervals is not a count": {"intervals": 0},
        "address is neither public nor private": {"address": "secret"},
        "a zone, VM type or tool has over 100 characters": {"src_vm": "x" * 101},
        "detail has over 100,000 characters": {"detail": "x" * 100_001},
        "a text holds the character U+0000": {"tool": "a\0b"},
        "detail is no JSON object": {"detail": "[" * 99_000},
        "value is negative": {"value": -1.0},
        "value is NaN": {"value": float("nan")},
        "value is not a number": {"value": None},
    }
    empty = dict.fromkeys(parquet.TYPES)
    rows = [{**empty, **GOOD}, *({**empty, **GOOD, **of} for of in wrong.values())]
    found = outcomes("parquet", written(*rows))
    assert read_detail("[" * 99_000) == {}
    assert isinstance(found[0], Sample)
    assert reasons(found) == Counter(list(wrong))
    assert [one.row for one in found[1:] if not isinstance(one, Sample)] == list(
        range(2, len(rows) + 1)
    )


def test_what_many_rows_say_is_held_once() -> None:
    detail = json.dumps({"x": "y" * 90_000})
    content = written(*[{**GOOD, "detail": detail}] * parquet.BATCH_ROWS)
    tracemalloc.start()
    try:
        assert len(samples("parquet", content)) == parquet.BATCH_ROWS
        assert tracemalloc.get_traced_memory()[1] < 20 * len(detail)
    finally:
        tracemalloc.stop()


def test_a_column_twice_is_refused() -> None:
    table = pyarrow.table([pyarrow.array(["aws:a"])] * 2, names=["src", "src"])
    names = [name for name in GOOD if name != "src"]
    for name in names:
        table = table.append_column(name, pyarrow.array([GOOD[name]]))
    stream = io.BytesIO()
    pyarrow.parquet.write_table(table, stream)
    with pytest.raises(FormatError, match="has a column twice"):
        outcomes("parquet", stream.getvalue())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (written({"src": "aws:a", "dst": "gcp:b"}), "lacks the column metric, value, measured_at"),
        (written({**GOOD, "value": "fast"}), "has a column value that is not of float64"),
        (written({**GOOD, "src": [1]}), "has a column src that is not of string"),
        (written(GOOD)[:-9], "can't be read as Parquet"),
        (b"PAR1", "can't be read as Parquet"),
    ],
)
def test_wrong_files_are_refused(content: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        outcomes("parquet", content)
