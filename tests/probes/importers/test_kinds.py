"""Kinds of files, told by their first bytes alone."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest

from planner.model.errors import FormatError, InputError
from probes.importers import HEAD_BYTES, identified, importers, read
from tests.probes.importers.reading import FIXTURES, OPTIONS, outcomes, samples
from tests.probes.importers.test_importers_damage import WHOLE


@pytest.mark.parametrize("format_name", importers())
def test_a_file_is_read_the_same_whether_its_format_is_named_or_not(format_name: str) -> None:
    for content in WHOLE[format_name]:
        assert identified(content[:HEAD_BYTES], "a.txt").importer.name == format_name
        options = replace(OPTIONS, connections=1, provider="zoo", metric="per_flow_bps")
        if format_name == "csv":
            options = replace(options, metric="")
        named = list(read(format_name, io.BytesIO(content), options))
        assert list(read("", io.BytesIO(content), options)) == named


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("iperf3/one_stream.json", "iperf3's JSON, version 3."),
        ("iperf/iperf3-reverse-verbose.txt", "iperf's text output, version 3."),
        ("pings/win.txt", "output of ping of Windows"),
        ("pings/de.txt", "output of ping of Windows"),
        ("pings/fpingC.txt", "output of fping"),
        ("pings/hping.txt", "output of hping3"),
        ("pings/psping.txt", "output of psping"),
        ("pings/paping.txt", "output of paping"),
        ("pings/cloverstd.txt", "output of tcping"),
        ("pscheduler/batch.json", "results of pScheduler (perfSONAR)"),
        ("graph/triangle.graphml", "a GraphML file"),
    ],
)
def test_tool_and_version_are_named(path: str, what: str) -> None:
    assert identified((FIXTURES / path).read_bytes()[:HEAD_BYTES], "a").what.startswith(what)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"* Stream ID 5\nInterval       Throughput     Retransmits\n", "is pScheduler's text"),
        (b"{\0 \0}\0\n\0", "is UTF-16"),
        ("src,dst,rtt_ms\n".encode("utf-16"), "is UTF-16"),
        (b"Mtr_Version,Start_Time,Status\n", "is mtr's CSV (-C)"),
        (b"traceroute to 10.0.0.1 (10.0.0.1), 30 hops max\n", "is traceroute's output"),
        (b"<!DOCTYPE html><html>", "is a web page"),
        (b"\xd4\xc3\xb2\xa1\0\0", "is a capture of packets"),
        (b'[{"source": "a", "event-types": []}]', "is esmond's list of measurements"),
        (b"\x1f\x8b\x08\x00garbage", "is compressed with gzip"),
        (b"PK\x03\x04xlsx", "spreadsheet"),
        (b"SQLite format 3\0", "SQLite database"),
        (b"nuttcp-t: v6.1.2: socket\n", "is nuttcp's output"),
        (b"src,dest,src_tier,dest_tier,cost\naws:a,aws:b,P,P,0.02\n", "price file"),
    ],
)
def test_what_nothing_reads_is_told_by_name_whatever_was_asked_for(
    content: bytes, said: str
) -> None:
    for wanted in ("", *importers()):
        with pytest.raises(FormatError) as caught:
            outcomes(wanted, content)
        assert said in str(caught.value)


def test_a_wrong_format_is_refused_with_what_the_file_is() -> None:
    content = b"20261101100000,192.0.2.10,5001,198.51.100.20,5001,3,0.0-10.0,1187940000,949925000\n"
    with pytest.raises(FormatError) as caught:
        outcomes("ping", content, src="", dst="")
    assert "is iperf 2's CSV (-y C), which the format ping does not read" in str(caught.value)
    with pytest.raises(InputError, match=r"is iperf 2's CSV .*, which names no regions"):
        outcomes("", content, src="", dst="")
    with pytest.raises(FormatError, match="is of no kind that relayd recognises"):
        outcomes("", b"hello\n")


def test_only_tables_and_documents_of_nobody_s_are_guessed() -> None:
    rows = b'[{"from": "us-east-1", "to": "eu-west-1", "error": "", "rtt": 80}]'
    columns = {"src": "from", "dst": "to", "rtt_ms": "rtt"}
    (sample,) = samples("", rows, columns=columns, provider="aws")
    assert (sample.src, sample.dst, sample.value) == ("aws:us-east-1", "aws:eu-west-1", 80.0)
    (sample,) = samples(
        "", b"when,ms\n1650000000,81\n", columns={"measured_at": "when", "rtt_ms": "ms"}
    )
    assert (sample.src, sample.dst, sample.value) == ("aws:us-east-1", "gcp:us-east1", 81.0)
