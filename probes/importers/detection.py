"""Detects the format of a file, for the error message when another was named."""

from __future__ import annotations

import re

from planner.model.errors import FormatError

_PING = re.compile(r"^(?:PING6?[ (]|--- .* ping6? statistics ---|ping6?: )", re.MULTILINE)
_NUTTCP = re.compile(r"^(?:nuttcp-[tr]: | *[\d.]+ MB / +[\d.]+ sec = |megabytes=)", re.MULTILINE)
_IPERF3_JSON = re.compile(r"\{.*?\"(?:start|intervals|error|event)\"", re.DOTALL)
_PROMETHEUS = re.compile(r'\{\s*"status"\s*:\s*"(?:success|error)"')
_SMOKEPING = re.compile(r"(?:\w+ +){0,3}loss +median +ping1 ")
_IPERF_TEXT = re.compile(
    r"^(?:Connecting to host|\[ ID\] Interval|Client connecting to|Server listening on|"
    r"\[ *\d+\] local \S+ port|iperf3: error - )",
    re.MULTILINE,
)
_WINDOWS_PING = re.compile(r"^Pinging .* with \d+ bytes of data", re.MULTILINE)

_DESCRIBED = {
    "iperf3": "iperf3 JSON output",
    "iperf": "iperf's text output",
    "ping": "ping output",
    "nuttcp": "nuttcp output",
    "smokeping": "Smokeping's data as rrdtool prints them",
    "blackbox": "an answer of Prometheus",
    "skyplane-throughput": "Skyplane's raw throughput file",
    "skyplane-latency": "Skyplane's raw latency file",
    "csv": "a CSV file of measurements",
    "parquet": "a Parquet file",
}
_PARQUET = b"PAR1"


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
    if _IPERF3_JSON.match(text) or (text.startswith("warning:") and '"start":' in text):
        return "iperf3"
    if _PING.search(text):
        return "ping"
    if _IPERF_TEXT.search(text):
        return "iperf"
    return "nuttcp" if _NUTTCP.search(text) else ""


def refuse_another(head: bytes, wanted: str, name: str) -> None:
    """Refuse a file that is plainly of another format than the one named.

    Raises
    ------
    FormatError
        Naming what the file looks like and the command that reads it.
    """
    found = looks_like(head)
    if found == wanted:
        return
    if found:
        raise FormatError(
            name,
            f"looks like {_DESCRIBED[found]}, not {_DESCRIBED[wanted]}",
            remedy=f"Use `relayd import {found}`.",
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
