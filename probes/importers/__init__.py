"""Importers: turn files that other tools wrote into samples.

One module a format, each with ``read(source, options)``: bytes in, samples and skipped rows out,
lazily and in bounded memory. Two kinds of trouble are kept apart:

- a row that can't be used is a :class:`~probes.samples.Skipped` with its line number and a reason
  out of a small set, so that a report can count them;
- a file that can't be trusted as a whole raises :class:`~planner.model.errors.FormatError`. It may
  do so after samples were yielded (a file may be damaged anywhere), so the caller stores them in
  one transaction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from io import BufferedReader
from typing import Any, BinaryIO

from planner.model.errors import FormatError, InputError
from planner.model.throughput import TUNED_WINDOW_MB
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.text import Unprefixed, log_prefix, refuse_binary, unreadable
from probes.samples import Sample

__all__ = ["FORMATS", "ImportOptions", "ImportedRow", "addressed", "looks_like", "read"]


_FORMATS = {
    "iperf3": ("iperf3.read", "iperf3 JSON output"),
    "iperf": ("iperf_text.read", "iperf's text output"),
    "ping": ("ping.read", "ping output"),
    "nuttcp": ("nuttcp.read", "nuttcp output"),
    "mtr": ("mtr.read", "mtr's report as JSON"),
    "perfkit": ("perfkit.read", "results of PerfKitBenchmarker"),
    "smokeping": ("smokeping.read", "Smokeping's data as rrdtool prints them"),
    "blackbox": ("blackbox.read", "an answer of Prometheus"),
    "skyplane-throughput": ("skyplane.read_throughput", "Skyplane's raw throughput file"),
    "skyplane-latency": ("skyplane.read_latency", "Skyplane's raw latency file"),
    "csv": ("csv_samples.read", "a CSV file of measurements"),
    "parquet": ("parquet.read", "a Parquet file"),
}
"""The function that reads a format, in a module of its own, and the format's name in messages."""
_OF_WINDOWS = ("per_flow_mbps", "aggregate_mbps")
"""Metrics that the windows of hosts may limit."""
_OF_TWO_REGIONS = ("iperf3", "iperf", "ping", "mtr", "nuttcp", "smokeping")
"""Formats whose files name no regions."""
FORMATS: tuple[str, ...] = tuple(_FORMATS)
"""The formats that :func:`read` knows, as the command line spells them."""
HEAD_BYTES = 65_536
"""First bytes of a file, by which its format is recognised."""

_PING = re.compile(r"^(?:PING6?[ (]|--- .* ping6? statistics ---|ping6?: )", re.MULTILINE)
_NUTTCP = re.compile(r"^(?:nuttcp-[tr]: | *[\d.]+ MB / +[\d.]+ sec = |megabytes=)", re.MULTILINE)
_IPERF3_JSON = re.compile(r"\[?\s*\{.*?\"(?:start|intervals|error|event)\"", re.DOTALL)
_MTR = re.compile(r"\{\s*\"report\":\s*\{\s*\"mtr\"")
_PERFKIT = re.compile(r"(?=.*\"test\":)(?=.*\"unit\":)\{.*\"metric\":")
_IPERF2_CSV = re.compile(r"\d{14}(?:[+-]\d{4})?,[^,\s]*,\d+,[^,\s]*,\d+,-?\d+,[\d.]+-[\d.]+,")
_PROMETHEUS = re.compile(r'\{\s*"status"\s*:\s*"(?:success|error)"')
_SMOKEPING = re.compile(r"(?:\w+ +){0,3}loss +median +ping1 ")
_IPERF_TEXT = re.compile(
    r"^(?:Connecting to host|\[ ID\] Interval|Client connecting to|Server listening on|"
    r"\[ *\d+\] local \S+ port|iperf3: error - )",
    re.MULTILINE,
)
_WINDOWS_PING = re.compile(r"^Pinging .* with \d+ bytes of data", re.MULTILINE)

_PARQUET = b"PAR1"


def read(format_name: str, stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Read samples from a file.

    Parameters
    ----------
    format_name : str
        One of :data:`FORMATS`.
    stream : BinaryIO
        Opened for reading bytes; read once from its current position, without seeking, except for
        ``parquet``, which is read from its end.
    options : ImportOptions
        Facts that the file itself does not contain.

    Returns
    -------
    Iterator[Sample | Skipped]
        In the order of the file, as far as the format can be judged row by row.

    Raises
    ------
    InputError
        At once, if the format is unknown or an option that it needs is missing or wrong.
    FormatError
        While iterating, if the file is damaged or not of the format that was named.
    """
    if format_name not in _FORMATS:
        remedy = f"Choose one of {', '.join(FORMATS)}."
        raise InputError("format", "is not known", value=format_name, remedy=remedy)
    if format_name in _OF_TWO_REGIONS:
        (src, _), (dst, _) = options.ends(format_name)
        if src == dst:
            raise InputError(
                "--dst",
                "is the same region as --src",
                value=options.dst,
                remedy="relayd compares paths between different regions.",
            )
    return _read(format_name, stream, options)


def _read(format_name: str, stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    buffered = BufferedReader(stream, HEAD_BYTES)  # type: ignore[type-var]
    try:
        head = buffered.peek(HEAD_BYTES)
    except OSError as error:
        raise unreadable(error, options.name) from error
    try:
        lines: Any = buffered
        prefix = log_prefix(head) if format_name in _OF_TWO_REGIONS else None
        if prefix:
            lines, head = Unprefixed(buffered, prefix[0]), _without(prefix[0], head)
            options = replace(options, measured_at_s=prefix[1] or options.measured_at_s)
        _refuse_another(head, format_name, options.name)
        refuse_binary(head, options.name, is_text=format_name != "parquet")
        module, reader = _FORMATS[format_name][0].split(".")
        rows = getattr(import_module(f"probes.importers.{module}"), reader)(lines, options)
        yield from addressed(rows, options)
    finally:
        buffered.detach()  # the caller opened the stream, and closes it


def _without(prefix: re.Pattern[bytes], head: bytes) -> bytes:
    lines = head.split(b"\n")
    return b"\n".join(
        line[found.end() :] if (found := prefix.match(line)) else line for line in lines
    )


def addressed(rows: Iterable[ImportedRow], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield rows, samples with the kind of address and the hosts that were stated."""
    for row in rows:
        if isinstance(row, Sample):
            if options.address is not None:
                row = row._replace(address=options.address)
            if options.hosts == "tuned" and row.metric in _OF_WINDOWS:
                row = row.with_detail(**{"window_mb": TUNED_WINDOW_MB[1], **row.read_detail()})
        yield row


def looks_like(head: bytes) -> str:
    """Return the format that the first bytes of a file suggest; ``""`` if none is known."""
    if head.startswith(_PARQUET):
        return "parquet"
    text = head.decode("utf-8-sig", errors="replace").lstrip()
    first_line = text.partition("\n")[0]
    columns = {cell.strip(' "\r').lower() for cell in first_line.split(",")}
    received = {"throughput_received", "throughput_recieved"}  # from November 2022 on
    if {"src_region", "dst_region"} <= columns and received & columns:
        return "skyplane-throughput"
    if {"src_region", "dst_region", "avg_rtt"} <= columns:
        return "skyplane-latency"
    if {"src", "dst"} <= columns:
        return "csv"
    if _PROMETHEUS.match(text):
        return "blackbox"
    if _SMOKEPING.match(text):
        return "smokeping"
    if _MTR.match(text):
        return "mtr"
    if _PERFKIT.match(text):
        return "perfkit"
    if _IPERF3_JSON.match(text) or (text.startswith("warning:") and '"start":' in text):
        return "iperf3"
    if _PING.search(text):
        return "ping"
    if _IPERF_TEXT.search(text) or _IPERF2_CSV.match(text):
        return "iperf"
    return "nuttcp" if _NUTTCP.search(text) else ""


def _refuse_another(head: bytes, wanted: str, name: str) -> None:
    """Refuse a file that is plainly of another format than the one named.

    Raises
    ------
    FormatError
        Naming the format that the file seems to have, and the command that reads it.
    """
    likely = looks_like(head)
    if likely == wanted:
        return
    if likely:
        raise FormatError(
            name,
            f"looks like {_FORMATS[likely][1]}, not {_FORMATS[wanted][1]}",
            remedy=f"Use `relayd import {likely}`.",
        )
    text = head.decode("utf-8", errors="replace")
    if _WINDOWS_PING.search(text):
        raise FormatError(
            name,
            "looks like the output of ping on Windows, which is rounded to whole ms",
            remedy="Measure from Linux or macOS.",
        )
    if text.lstrip().startswith("src,dest,src_tier,dest_tier,cost"):
        raise FormatError(
            name,
            "looks like Skyplane's price file, which holds no measurement",
            remedy="Prices belong into a catalogue (TOML).",
        )
