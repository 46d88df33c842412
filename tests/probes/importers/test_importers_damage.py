"""Damaged files: every reader, fed with anything, ends in a clear error or sound samples."""

from __future__ import annotations

import io
import math
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.errors import FormatError, InputError, RelaydError
from probes.importers import ImportedRow, importers, read
from probes.importers.text import MAX_LINE_BYTES
from probes.samples import Sample
from tests.probes.importers.documented import FILES
from tests.probes.importers.reading import FIXTURES, OPTIONS, outcomes, patient
from tests.probes.importers.test_importers_parquet import GOOD, written
from tests.probes.importers.test_importers_skyplane import HEADER, LATENCY_HEADER, row, rtt_row

WHOLE: dict[str, list[bytes]] = {
    name: [path.read_bytes() for path in sorted((FIXTURES / name).glob(pattern))]
    for name, pattern in (
        *(("iperf3", "*.json"), ("iperf", "*.txt")),
        *(("ping", "*.txt"),),
        *(("smokeping", "*.txt"), ("blackbox", "*.json")),
        *(("mtr", "*.json"), ("perfkit", "*.json")),
        *(("pscheduler", "*.json"), ("graph", "*.g*ml")),
    )
}
WHOLE["iperf"].append(
    b"20261101100000,192.0.2.10,5001,198.51.100.20,5001,3,0.0-10.0,1187940000,949925000\n"
    b"20261101101000,192.0.2.10,5002,198.51.100.20,5001,3,0.0-10.0,1187940000,949925000\n"
)
WHOLE["ping"] += [path.read_bytes() for path in sorted((FIXTURES / "pings").glob("*.txt"))]
WHOLE["skyplane-throughput"] = [(HEADER + row() * 3).encode()]
WHOLE["skyplane-latency"] = [(LATENCY_HEADER + rtt_row("aws:us-west-2", "1", "2", "3")).encode()]
WHOLE["csv"] = [
    b'src,dst,rtt_ms,measured_at\r\naws:a,gcp:b,12.5,2022-01-15\r\n"aws:a","gcp:c",9,\n'
]

WHOLE["parquet"] = [written(GOOD), written(*[{**GOOD, "detail": "{}", "connections": 64}] * 9)]

for file in FILES:
    if file.format and isinstance(file.right, dict) and not file.options:
        WHOLE.setdefault(file.format, []).append(file.content.encode())

_formats = st.sampled_from(list(importers()))
_TEXTS = st.text(st.sampled_from('{}[]",:\n0123456789.eE-+ %/=()srcdtMBmpi'), max_size=500)
TEXT = tuple(name for name in importers() if name != "parquet")
WHOLE_DOCUMENTS = (
    "iperf3",
    "blackbox",
    "atlas",
    "globalping",
    "mtr",
    "perfkit",
    "pscheduler",
    "graph",
)


_GRAPHML = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="directed">'
    '<node id="aws:{0}"/><node id="aws:b"/></graph></graphml>'
)
_LAUGHS = "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "lol"}">' for n in range(10)
)  # fmt: skip
_SWOLLEN = f'<!ENTITY l9 "{"x" * 200_000}">'


@pytest.mark.parametrize(
    ("entities", "content"),
    [
        (_LAUGHS, _GRAPHML.format("&l9;")),
        (_SWOLLEN, _GRAPHML.format("&l9;" * 400)),
        ('<!ENTITY l9 SYSTEM "file:///etc/passwd">', _GRAPHML.format("&l9;")),
    ],
    ids=["billion laughs", "quadratic", "a file of the machine"],
)
def test_entities_of_xml_neither_swell_nor_read_files(entities: str, content: str) -> None:
    document = f'<?xml version="1.0"?><!DOCTYPE g [{entities}]>{content}'.encode()
    pytest.importorskip("networkx")  # which is large
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"amplification|external entity|no graph") as raised:
        outcomes("graph", document)
    assert tracemalloc.get_traced_memory()[1] < 200e6  # of which 67 MB are to read a document
    tracemalloc.stop()
    assert "root:" not in str(raised.value)


def check(format_name: str, content: bytes) -> None:
    """Read to the end; anything but sound outcomes or an error of ours fails the test."""
    message = ""
    found: list[ImportedRow] = []
    try:
        found = outcomes(format_name, content, connections=1, provider="zoo")
    except RelaydError as error:
        message = str(error)
    if message:
        assert OPTIONS.name in message
        assert len(message) < 600
    lines = content.count(b"\n") + 1
    for outcome in found:
        if isinstance(outcome, Sample):
            assert math.isfinite(outcome.value)
            assert outcome.value >= 0
            assert (outcome.src != outcome.dst) is not outcome.metric.endswith("cap_mbps")
        else:
            assert 1 <= outcome.row <= (lines if format_name != "parquet" else 10)
            assert outcome.reason


@patient
@given(_formats, st.binary(max_size=2000) | _TEXTS.map(str.encode))
def test_arbitrary_bytes_and_text_of_the_characters_that_matter(
    format_name: str, content: bytes
) -> None:
    check(format_name, content)


@patient
@given(_formats, st.data())
def test_whole_files_with_pieces_cut_swapped_and_overwritten(
    format_name: str, data: st.DataObject
) -> None:
    content = bytearray(data.draw(st.sampled_from(WHOLE[format_name])))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = data.draw(st.integers(start, min(len(content), start + 200)))
        other = data.draw(st.sampled_from(WHOLE[data.draw(_formats)]))
        piece = other[:100] if data.draw(st.booleans()) else data.draw(st.binary(max_size=9))
        content[start:end] = piece
    check(format_name, bytes(content))


@patient
@given(st.sampled_from([n for n in TEXT if n != "iperf3"]), st.integers(1, 4000))
def test_how_the_bytes_arrive_does_not_matter(format_name: str, size: int) -> None:
    class Trickle(io.BytesIO):
        def readinto(self, buffer: Any) -> int:
            return super().readinto(memoryview(buffer)[:size])

    for content in WHOLE[format_name]:
        expected = outcomes(format_name, content, connections=1, provider="zoo")
        assert expected
        found = list(
            read(format_name, Trickle(content), replace(OPTIONS, connections=1, provider="zoo"))
        )
        assert found == expected


@pytest.mark.parametrize("format_name", TEXT)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"a,b\nx\0y\n", "line 2 holds a NUL byte"),
        (
            b"a,b\nx,\xe9\n",
            r"is not UTF-8 \(byte 0xe9\)|not the beginning|not begin|lacks the column|"
            r"names no figure|no graph|holds no output",
        ),
        (b"src_region,dst_region,throughput_received,avg_rtt,x" + b"x" * (1 << 21), "longer than|"),
    ],
)
def test_what_is_no_text_is_refused(format_name: str, content: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        outcomes(format_name, content)


@pytest.mark.parametrize("format_name", [n for n in TEXT if n not in WHOLE_DOCUMENTS])
def test_a_line_without_end_is_refused_long_before_it_fills_the_memory(format_name: str) -> None:
    class Endless(io.BytesIO):
        given = 0

        def readinto(self, buffer: Any) -> int:
            size = len(memoryview(buffer))
            self.given += size
            buffer[:size] = b"x" * size
            return size

    stream = Endless()
    with pytest.raises(FormatError, match="longer than"):
        list(read(format_name, stream, OPTIONS))
    assert stream.given < 2 * MAX_LINE_BYTES


@pytest.mark.parametrize("wanted", importers())
def test_the_wrong_format_named_gets_the_command_that_fits(wanted: str) -> None:
    for actual in {*importers()} - {wanted}:
        for content in WHOLE[actual]:
            with pytest.raises(FormatError, match=f"Use `relayd import {actual}`"):
                outcomes(wanted, content)


def test_an_unknown_format_and_an_unreadable_stream_are_input_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Choose one of .*iperf3.*ping"):
        read("nuttcp", io.BytesIO(b""), OPTIONS)

    class Broken(io.BytesIO):
        def readinto(self, _buffer: Any) -> int:
            raise OSError(5, "Input/output error")

    with pytest.raises(InputError, match="can't be read: Input/output error"):
        list(read("csv", Broken(), OPTIONS))


def test_a_log_taken_for_parquet_is_refused() -> None:
    log = b'2026-11-27T10:00:00Z stdout F {"start": {"version": "iperf 3.12"}}\n'
    with pytest.raises(FormatError):
        list(read("parquet", io.BytesIO(log), OPTIONS))
    with pytest.raises(FormatError):
        list(read("parquet", io.BytesIO(b"2026-11-27T10:00:00Z stdout F PAR1\n"), OPTIONS))
