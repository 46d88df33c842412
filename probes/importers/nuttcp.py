"""Output of nuttcp: its usual line, ``-fparse``, with or without ``-i`` intervals or ``-v``.

Megabytes are 2^20 bytes there, so the printed rate (10^6 bit/s) is taken and never recomputed. The
usual line is the receiver's count; of a verbose run only the ``nuttcp-r`` side is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from planner.model.errors import FormatError, InputError
from planner.model.units import MBPS_PER_GBPS
from probes.analysis.steady_state import Interval
from probes.importers import limits
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.rates import RateTest
from probes.importers.text import CUT_OFF as CUT_OFF_LINE
from probes.importers.text import TOOL_LINE_BYTES, Lines
from probes.samples import SkippedRow

CUT_OFF = "intervals without a final line: the run was cut off"
SENDER_ONLY = "only the sender's count (nuttcp's classic mode)"

_LINE = re.compile(r"\s*([\d.]+) MB / +([\d.]+) sec = +([\d.]+) Mbps\b(.*)")
_VERBOSE = re.compile(
    r"nuttcp-([rt]): ([\d.]+) MB in ([\d.]+) real seconds = .*? = ([\d.]+) Mbps\b(.*)"
)
_SIDE = re.compile(r"nuttcp-([rt]): (.*)")
_STREAMS = re.compile(r"\bbuflen=.*?\bnstream=(\d{1,5})\b.*?\bport=\d+ (?:mode=)?(tcp|udp)\b")
_RATE_LIMIT = re.compile(r"rate[ _]limit ?= ?([\d.]+) (?:rate_unit=)?([KMG])bps\b")
_VERSION = re.compile(r"v([\d.]{1,12})\b")
_ERROR = re.compile(r"(?:nuttcp-[rt]: v[\d.]+: Error: |nuttcp: |bad hostname or address: )(.*)")
_PAIR = re.compile(r"(\w+)=(\S+)")
_DROPS = re.compile(r"(\d{1,15}) / +(\d{1,15}) drop/pkt")
_RETRANSMITS = re.compile(r"(\d{1,15}) retrans\b")
_RTT = re.compile(r"([\d.]+) msRTT\b")


@dataclass(slots=True)
class _Test:
    """One test, as far as it was read."""

    line: int = 0
    verbose: bool = False
    version: str = ""
    streams: int | None = None
    udp: bool = False
    intervals: list[Interval] = field(default_factory=list)
    mbps: float | None = None
    seconds: float | None = None
    detail: dict[str, float] = field(default_factory=dict)
    paced_at_mbps: float = 0.0
    other_side: bool = False
    sides: set[str] = field(default_factory=set)


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield one sample a test: ``per_flow_mbps``, ``aggregate_mbps`` or ``udp_mbps``."""
    test, recognised = _Test(), False
    lines = Lines(stream, options.name, TOOL_LINE_BYTES)
    for number, line in enumerate(lines, start=1):
        if lines.cut_off and "megabytes=" in line and not options.force:
            yield SkippedRow(number, CUT_OFF_LINE)
        elif error := _ERROR.match(line):
            yield from _outcome(test, options)
            yield SkippedRow(number, f"nuttcp failed: {error[1].strip()[:80]}")
            test = _Test()
        elif side := _SIDE.match(line):
            if _VERSION.match(side[2]) and (not test.verbose or side[1] in test.sides):
                yield from _outcome(test, options)
                test = _Test(number, verbose=True)
            test.line = test.line or number
            test.sides.add(side[1])
            _take_verbose(test, side[1], side[2], line)
        elif found := figures_in(line):
            is_final, seconds, mbps, detail = found
            if test.verbose and test.mbps is not None:
                yield from _outcome(test, options)
                test = _Test()
            test.line = test.line or number
            test.udp |= "packets" in detail
            if is_final:
                test.seconds, test.mbps = seconds, mbps
                test.detail |= detail
                if not test.verbose:
                    yield from _outcome(test, options, is_whole=True)
                    test = _Test()
            elif seconds is not None and mbps is not None:
                test.intervals.append(Interval(seconds, mbps))
        else:
            continue
        recognised = True
    yield from _outcome(test, options)
    if not recognised:
        problem = "holds no output of nuttcp that relayd can read"
        remedy = "Give what `nuttcp HOST` or `nuttcp -fparse HOST` prints."
        raise FormatError(options.name, problem, remedy=remedy)


def _take_verbose(test: _Test, side: str, text: str, line: str) -> None:
    if streams := _STREAMS.search(text):
        test.streams = int(streams[1])
        test.udp = streams[2] == "udp"
    if (limit := _RATE_LIMIT.match(text)) and (rate := limits.number(limit[1])) is not None:
        test.paced_at_mbps = rate * {"K": 1 / MBPS_PER_GBPS, "M": 1.0, "G": MBPS_PER_GBPS}[limit[2]]
    if version := _VERSION.match(text):
        test.version = version[1]
    if (drops := _DROPS.match(text)) and side == "r":
        test.udp = True
        test.detail |= _loss(int(drops[1]), int(drops[2]))
    pairs = dict(_PAIR.findall(text)) if "rate_Mbps=" in text else {}
    if plain := _VERBOSE.match(line):
        pairs = {"real_seconds": plain[3], "rate_Mbps": plain[4]}
    if pairs and side == "r":
        test.seconds = limits.number(pairs.get("real_seconds", ""))
        test.mbps = limits.number(pairs.get("rate_Mbps", ""))
    test.other_side |= bool(pairs) and side != "r"


def figures_in(line: str) -> tuple[bool, float | None, float | None, dict[str, float]] | None:
    """Return whether a line is of a whole test (or an interval), its seconds, Mbit/s and detail."""
    detail: dict[str, float] = {}
    if plain := _LINE.match(line):
        is_final = "%TX" in plain[4]
        if drops := _DROPS.search(plain[4]):
            detail |= _loss(int(drops[1]), int(drops[2]))
        if is_final and (retransmits := _RETRANSMITS.search(plain[4])):
            detail["retransmits"] = int(retransmits[1])
        if (rtt := _RTT.search(plain[4])) and (rtt_ms := limits.number(rtt[1])) is not None:
            detail["connect_rtt_ms"] = rtt_ms
        return is_final, limits.number(plain[2]), limits.number(plain[3]), detail
    pairs = dict(_PAIR.findall(line)) if line.startswith("megabytes=") else {}
    if "rate_Mbps" not in pairs:
        return None
    for key, name in (("retrans", "retransmits"), ("rtt_ms", "connect_rtt_ms")):
        if (value := limits.number(pairs.get(key, ""))) is not None and value >= 0:
            detail[name] = value
    packets, dropped = (limits.number(pairs.get(key, "")) for key in ("pkt", "drop"))
    if packets and packets > 0 and dropped is not None and 0 <= dropped <= packets:
        detail |= _loss(dropped, packets)
    seconds = limits.number(pairs.get("real_seconds") or pairs.get("real_sec", ""))
    return "real_seconds" in pairs, seconds, limits.number(pairs["rate_Mbps"]), detail


def _loss(dropped: float, packets: float) -> dict[str, float]:
    if not 0 < packets >= dropped:
        return {"packets": packets}
    return {"packets": packets, "loss_at_this_rate_pct": 100 * dropped / packets}


def _outcome(
    test: _Test, options: ImportOptions, *, is_whole: bool = False
) -> Iterator[ImportedRow]:
    """Yield the sample of a test that has begun, or is there as a whole."""
    if not (is_whole or test.mbps is not None or test.intervals or test.other_side):
        return
    if test.mbps is None:
        yield SkippedRow(test.line, SENDER_ONLY if test.other_side else CUT_OFF)
        return
    streams = test.streams or options.connections
    if streams is None and not test.udp:
        problem = f"is needed, because {options.name} does not say how many streams nuttcp used"
        remedy = "Add --connections 1 (nuttcp's default), or the value of -N."
        raise InputError("--connections", problem, remedy=remedy)
    rates = RateTest(
        options.start_s(),
        f"nuttcp {test.version}".strip(),
        streams,
        test.mbps,
        test.seconds,
        test.intervals,
        is_udp=test.udp,
        paced_at_mbps=test.paced_at_mbps,
        detail=test.detail,
    )
    yield rates.row(test.line, options)
