"""Tools with a row each in ``formats.toml``, which says where the facts of their output stand.

A text is read line by line: groups of patterns are facts of a test. It begins where the first
pattern matches; without that, where one matches again that tells no ``latest`` fact. Facts become
cells of :mod:`.csv_samples`, or a :class:`.ping.PingRun` where single replies are told.

Traps: sockperf and qperf print half a round trip, unless ``--full-rtt`` is said, and sockperf's
MBps are of 1,048,576 bytes, as netperf's MBytes are. What a sender of UDP counts has not arrived.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import fmean, median, pstdev
from types import SimpleNamespace
from typing import Any, BinaryIO, TypeAlias

from planner.model.errors import FormatError
from planner.model.units import MS_PER_S
from probes.importers import limits
from probes.importers.csv_samples import read_rows
from probes.importers.importer import Reader, format_table, importer_of
from probes.importers.iperf3 import rows_of
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.ping import PingRun, outcomes
from probes.importers.tables import factor_of
from probes.importers.text import (
    CUT_OFF,
    TOOL_LINE_BYTES,
    Lines,
    documents,
    field,
    list_field,
    number_field,
    text_field,
    time_s,
)
from probes.metrics import RATE, TIME
from probes.samples import SkippedRow

NO_PROTOCOL = "it does not say whether it used TCP or UDP (netperf: add PROTOCOL to -o or -k)"
NO_FIGURE = "neither a rate nor a round trip of this test is told: it was cut off, or failed"
SENT_ONLY = "of UDP only the sender's rate is told, which is not what arrived"
CONNECTS = "a round trip with a handshake (TCP_CRR, TCP_CC): run TCP_RR"
BURST = "several requests were under way at once (-b): their rate tells no round trip"
UNKNOWN_UNIT = "a unit that relayd does not know"
NOT_USED = "a metric that relayd does not use"
NOT_REACHED = "the last hop is not the host that was asked for: it was never reached"
NO_HOPS = "the report has no hops"
NO_PING = "a test other than a ping, or one that did not end"
ODD_LOSS = "more pings were lost than were sent"

Cells: TypeAlias = dict[str, str] | str
"""Of a test, by columns of :mod:`.csv_samples`; or the reason to leave it out."""
Facts: TypeAlias = Mapping[str, str]
_US_PER_S = 1e6


def _row(tool: str) -> dict[str, Any]:
    return next(row for row in format_table()["read"] if row["importer"] == tool)


def _text(tool: str, cells: Callable[[Facts], Cells]) -> Reader:
    """Make the reader of a text whose tests become cells."""
    compiled = [*map(re.compile, _row(tool)["lines"])]

    def tests(stream: BinaryIO, options: ImportOptions) -> Iterator[tuple[int, Facts]]:
        begun, facts, seen = 0, dict[str, str](), set[int]()
        for number, line in _keyed(Lines(stream, options.name, TOOL_LINE_BYTES)):
            matches = ((at, pattern.search(line)) for at, pattern in enumerate(compiled))
            if (one := next(((at, found) for at, found in matches if found), None)) is None:
                continue
            told = {name: cell for name, cell in one[1].groupdict().items() if cell is not None}
            is_again = one[0] in seen and "latest" not in told
            if (seen and one[0] == 0) or (0 not in seen and is_again):
                yield begun, facts
                facts, seen = {}, set()
            begun = begun if seen else number
            seen.add(one[0])
            facts |= told
        if not begun:
            raise _without_tests(options, tool)
        yield begun, facts

    def rows(stream: BinaryIO, options: ImportOptions) -> Iterator[tuple[int, Cells]]:
        host, ends = "", ((options.src, options.src_vm), (options.dst, options.dst_vm))
        for line, facts in tests(stream, options):
            host = options.one_host(host, facts.get("host", ""), line)
            if isinstance(row := cells(facts), dict):
                (src, src_vm), (dst, dst_vm) = ends[::-1] if "reverse" in facts else ends
                row |= {"tool": tool, "src": src, "dst": dst, "src_vm": src_vm, "dst_vm": dst_vm}
            yield line, row

    return lambda stream, options: read_rows(rows(stream, options), options)


def _without_tests(options: ImportOptions, tool: str) -> FormatError:
    return FormatError(options.name, f"holds no test of {tool}", remedy="Give its whole output.")


def _keyed(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers; those of netperf's CSV as its ``-k`` would have them."""
    header: list[str] = []
    for number, line in enumerate(lines, start=1):
        cells = [cell.strip() for cell in line.split(",")]
        if {"Throughput", "Round Trip Latency usec/tran"} & {*cells} and len(cells) > 1:
            header = ["_".join(cell.upper().split()) for cell in cells]
        elif header and len(cells) == len(header):
            yield from ((number, "=".join(pair)) for pair in zip(header, cells, strict=True))
        else:
            yield number, line


def _json(tool: str, cells: Callable[[dict[str, Any]], Cells], what: str) -> Reader:
    """Make the reader of JSON whose documents become cells."""

    def rows(stream: BinaryIO, options: ImportOptions) -> Iterator[tuple[int, Cells]]:
        for line, content in documents(stream, options.name):
            try:
                row = cells(content or {})
            except KeyError:
                problem = f"line {line} begins a document that is no {what}"
                raise FormatError(options.name, problem, remedy="Give the tool's output.") from None
            yield line, {"tool": tool, **row} if isinstance(row, dict) else row

    return lambda stream, options: read_rows(rows(stream, options), options)


def _cells(facts: Facts) -> Cells:
    """Return the rate or the round trip that is told of a test over TCP or UDP."""
    if (protocol := facts.get("protocol", "").upper()) not in ("TCP", "UDP"):
        return NO_PROTOCOL
    trip, rate = facts.get("half") or facts.get("round"), facts.get("rate")
    figure = facts.get("arrived") if protocol == "UDP" else rate
    if not (trip or figure):
        return SENT_ONLY if rate else NO_FIGURE
    unit = facts.get("unit", "")
    factor = factor_of(unit, TIME if trip else RATE)
    value = limits.number(trip or figure or "")
    if factor is None or value is None:
        return UNKNOWN_UNIT
    if trip:
        return {"rtt_ms": repr(value * factor * (2 if "half" in facts else 1))}
    metric = "udp_mbps" if protocol == "UDP" else "per_flow_mbps"
    return {metric: repr(value * factor), "duration_s": facts.get("duration_s", "")}


def _netperf(facts: Facts) -> Cells:
    test, rate = facts.get("test", "").upper(), limits.number(facts.get("rate", "")) or 0.0
    if "CONNECT" in test:
        return CONNECTS
    if not ("REQUEST" in test or facts.get("unit", "").startswith(("Trans", "per"))):
        return _cells(facts)
    if facts.get("burst", "0") != "0":
        return BURST
    trip_us = facts.get("rt_us") or facts.get("mean_us") or (repr(_US_PER_S / rate) if rate else "")
    return _cells({"protocol": "TCP", "round": trip_us, "unit": "us"})


def _sockperf(facts: Facts) -> Cells:
    if "rate" not in facts:
        return _cells({**facts, "unit": "us"})
    # -g divides by 1,000 and says GBps; with nine digits it says GBps and does not divide.
    is_divided = facts["multiple"] == "G" and len(facts["rate"].partition(".")[2]) < 9
    mib = (limits.number(facts["rate"]) or 0.0) * (1000 if is_divided else 1)
    return _cells({**facts, "rate": repr(mib), "unit": "MiB/s"})


def _ethr(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Read seconds of ethr's client as the intervals of iperf3, and its latencies (medians)."""
    begun, streams, protocol, host = 1, set[str](), "", ""
    seconds, times_ms = dict[int, dict[str, float]](), list[float]()
    pattern = re.compile("|".join(_row("ethr")["lines"]))

    def test() -> Iterator[ImportedRow]:
        rates = [one.get("SUM", sum(one.values())) for one in seconds.values()]
        total = {"seconds": len(rates), "bytes": 1, "bits_per_second": fmean(rates or [0.0])}
        settings = {"protocol": protocol, "num_streams": len(streams) or options.connections}
        intervals = [{"sum": {"seconds": 1, "bits_per_second": rate}} for rate in rates]
        started = {"connecting_to": {"host": host}, "test_start": settings}
        ended = {"sum_sent": total, "sum_received": total}
        told = {"tool": "ethr", "start": started, "intervals": intervals, "end": ended}
        if rates:
            yield from rows_of([(begun, told if protocol == "TCP" else SENT_ONLY)], options)
        if times_ms:
            row = {"tool": "ethr", "rtt_ms": repr(median(times_ms))}
            yield from read_rows([(begun, row)], options)

    for number, line in enumerate(Lines(stream, options.name, TOOL_LINE_BYTES), start=1):
        if (found := pattern.match(line.strip())) is None:
            continue
        at = int(found["at"] or 0)
        if found["host"] or (found["id"] in seconds.get(at, ())):
            yield from test()
            begun, streams, seconds, times_ms = number, set(), {}, []
            host = options.one_host(host, found["host"] or "", number)
        if found["id"]:
            protocol = found["protocol"]
            streams |= {found["id"]} - {"SUM"}
            bps = float(found["rate"]) * 1000.0 ** "_KMGT".index(found["of"] or "_")
            seconds.setdefault(at, {})[found["id"]] = bps
        elif found["ms"] and (factor := factor_of(found["unit"], TIME)):
            times_ms.append(float(found["ms"]) * factor)
    if not (seconds or times_ms or host):
        raise _without_tests(options, "ethr")
    yield from test() if seconds or times_ms else [SkippedRow(begun, NO_FIGURE)]


def _mtr(report: Mapping[str, Any]) -> Cells:
    about, hubs = report["report"]["mtr"], list_field(report["report"], "hubs")
    hops = [hop for hop in hubs if isinstance(hop, dict)]
    return _hop({**hops[-1], "asked": text_field(about, "dst")}) if hops else NO_HOPS


_ADDRESS = re.compile(r"[\d.]+|[\da-fA-F]*:[\da-fA-F:.%]*")


def _hop(hop: Mapping[str, Any]) -> Cells:
    """Return the figures of mtr's last hop, if that may be the host that was asked for."""
    asked, found = str(hop.get("asked", "")), str(hop.get("host", "???"))
    both = asked and all(_ADDRESS.fullmatch(one) for one in (asked, found.partition(" ")[0]))
    # A name and an address may be one, and the text report does not name what was asked for.
    if found == "???" or not found or (both and asked != found):
        return NOT_REACHED
    lost_pct = str(hop.get("Loss%", "")).rstrip("%")
    figures = {"rtt_ms": "Avg", "jitter_ms": "StDev"} if limits.number(lost_pct) != 100 else {}
    told = {name: str(hop.get(column, "")) for name, column in figures.items()}
    return {"measured_at": str(time_s(str(hop.get("at", ""))) or ""), "loss_pct": lost_pct, **told}


def _mtr_text(facts: Facts) -> Cells:
    names = facts.get("columns", "").split()
    host, *figures = facts.get("latest", "???").rsplit(maxsplit=len(names))
    return _hop({**facts, "host": host, **dict(zip(names, figures, strict=False))})


_LABEL = re.compile(r"\|([^:|]+):([^|]*)\|")


def _perfkit(row: dict[str, Any]) -> Cells:
    """Read a result, which names zones, VM types and the kind of address as labels.

    They are an object (``metadata``) or a text (``labels``: ``|key:value|,|key:value|``).
    """
    bases = _row("perfkit")["bases"].get(row["test"], {})
    if (base := bases.get(str(row["metric"]).lower())) is None:
        return NOT_USED
    factor = factor_of(text_field(row, "unit"), TIME if base == "rtt" else RATE)
    if factor is None:
        return UNKNOWN_UNIT
    labels = dict(_LABEL.findall(text_field(row, "labels")))
    if isinstance(metadata := row.get("metadata"), dict):
        labels |= {key: str(value) for key, value in metadata.items()}
    connections = labels.get("sending_thread_count", "1")
    if base == "aggregate":
        base = {"1": "per_flow"}.get(connections, base)
        base = "udp" if labels.get("protocol", "").lower() == "udp" else base
    value, ends = number_field(row, "value"), []
    for zone in (labels.get(f"{end}_zone", "") for end in ("sending", "receiving")):
        # Groups of VMs in several clouds have labels of their own: vm_1_zone, vm_1_cloud.
        groups = [key.removesuffix("zone") for key, its in labels.items() if its == zone]
        clouds = [labels[f"{group}cloud"] for group in groups if f"{group}cloud" in labels]
        ends.append(f"{(clouds or [labels.get('cloud', '')])[0].lower()}:{zone}")
    return {
        "src": ends[0],
        "dst": ends[1],
        "rtt_ms" if base == "rtt" else f"{base}_mbps": ""
        if value is None
        else repr(value * factor),
        "measured_at": str(number_field(row, "timestamp")),
        "tool": f"perfkit {row['test']}",
        "connections": connections,
        "duration_s": labels.get("runtime_in_seconds", ""),
        "src_vm": labels.get("sending_machine_type", ""),
        "dst_vm": labels.get("receiving_machine_type", ""),
        "address": "private" if labels.get("ip_type") == "internal" else "",
    }


def _pings(tool: str) -> Reader:
    runs, *paths = _row(tool)["paths"]

    def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
        pair = ""
        for line, document in documents(stream, options.name):
            for one in (list_field(document, runs) or [{}]) if runs else [document]:
                record = {**(document or {}), **one} if isinstance(one, dict) else {}
                at, src, dst, replies = (field(record, *path.split(".")) for path in paths[:4])
                sent, received, mean_ms = (
                    number_field(record, *path.split(".")) for path in paths[4:]
                )
                if text_field(record, "type") != "ping" or sent is None:
                    yield SkippedRow(line, NO_PING)
                    continue
                pair = options.one_host(pair, f"{_place(src)} to {dst}", line)
                run = PingRun(line, tool=tool, start_s=time_s(str(at)), sent=sent)
                ms = [number_field(one, "rtt") for one in list_field({"": replies}, "")]
                run.replies_ms.extend(x for x in ms if x and not limits.fault("rtt_ms", x, ""))
                run.received = len(run.replies_ms) if received is None else received
                run.duplicates = int(number_field(record, "dup") or 0)
                run.summary_ms = (None, mean_ms)
                yield from outcomes(run, options)

    return read


def _place(probe: object) -> str:
    told = probe if isinstance(probe, dict) else {"": probe}
    return ", ".join(str(told[key]) for key in ("", "city", "network") if told.get(key))


_SMOKEPING_LINE_BYTES = 16_384
"""About 20 bytes for each ping; Smokeping's own limit of pings is below a thousand."""


def _smokeping(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield RTT, loss and jitter of each round of pings that ``rrdtool fetch`` prints.

    A line has the time by which the round ended, the number of pings lost, the median of the
    others, and each of them, sorted, in seconds. Older lines are averages over several rounds.
    ``-nan`` stands for a missing measurement.
    """
    columns: list[str] = []
    lines = Lines(stream, options.name, _SMOKEPING_LINE_BYTES)
    for number, line in enumerate(lines, start=1):
        at, *words = line.split() or [""]
        if not columns and at:
            columns = [at, *words]
            if not {"loss", "median", "ping1"} <= set(columns):
                problem = "does not begin with Smokeping's columns (loss, median, ping1, ...)"
                remedy = "Give all that `rrdtool fetch TARGET.rrd AVERAGE` prints."
                raise FormatError(options.name, problem, remedy=remedy)
        elif number == lines.cut_off and not options.force:
            yield SkippedRow(number, CUT_OFF)
        elif at:
            end_s, cells = limits.number(at.removesuffix(":")), [*map(limits.number, words)]
            told = {
                name: cell for name, cell in zip(columns, cells, strict=False) if cell is not None
            }
            if not (len(told) == len(columns) == len(words) and end_s):
                yield SkippedRow(number, "not a time and a figure for each column")
                continue
            pings = [value * MS_PER_S for name, value in told.items() if name[:4] == "ping"]
            times_ms = [ms for ms in pings if not limits.fault("rtt_ms", ms, "")]
            if not 0 <= told["loss"] <= len(pings):
                is_nan = told["loss"] != told["loss"]
                yield SkippedRow(number, "nothing was measured then (-nan)" if is_nan else ODD_LOSS)
                continue
            run = PingRun(number, tool="smokeping", start_s=end_s, sent=len(pings))
            run.received = round(len(pings) - told["loss"], 3)
            median_ms = None if told["median"] != told["median"] else told["median"] * MS_PER_S
            run.summary_ms = (None, median_ms, None, pstdev(times_ms or [0.0]))
            yield from outcomes(run, options)


_READERS: Mapping[str, Mapping[str, Reader]] = {
    "mtr": {"text": _text("mtr", _mtr_text), "json": _json("mtr", _mtr, "report of mtr")},
    "perfkit": {"": _json("perfkit", _perfkit, "result of PerfKitBenchmarker")},
    "atlas": {"": _pings("atlas")},
    "globalping": {"": _pings("globalping")},
    "netperf": {"": _text("netperf", _netperf)},
    "sockperf": {"": _text("sockperf", _sockperf)},
    "qperf": {"": _text("qperf", _cells)},
    "ethr": {"": _ethr},
    "smokeping": {"": _smokeping},
}
TOOLS = SimpleNamespace(**{name: importer_of(name, told) for name, told in _READERS.items()})
"""An importer for each tool, which entry points name."""
