"""Results of pScheduler, alone, in batches, and as perfSONAR's archives keep them.

Throughput is read as iperf3's, round trips as ping's. A one-way delay is no round-trip time; of
such tests the loss counts. Archives are documents of OpenSearch, and time series of esmond.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from planner.model.units import MS_PER_S
from probes.importers import csv_samples, limits
from probes.importers.importer import importer_of
from probes.importers.iperf3 import samples_of_test
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.ping import PingRun, outcomes
from probes.importers.text import documents, field, list_field, number_field, text_field, time_s
from probes.samples import SkippedRow

ONE_WAY = "a one-way delay is no round-trip time: run the test rtt"
FAILED = "the test did not succeed"
OTHER_TEST = "neither throughput nor round trips nor loss"

_LEFT_OUT = ("result-full", "participant-data-full")
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_ABOUT = {
    "spec": ("test spec", "task test spec"),
    "at": ("start-time", "run start-time", "pscheduler start_time", "schedule start", "@timestamp"),
    "tool": ("tool name", "pscheduler tool"),
}
"""Facts of a result's test in objects around it, with the paths of keys that lead to them."""


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield the samples of each result in the file."""
    pair = ""
    for line, document in documents(stream, options.name):
        for result, about in _results(document, {}):
            ends = [text_field(about, "spec", end) for end in ("source", "dest")]
            pair = options.one_host(pair, " to ".join(filter(None, ends)), line)
            yield from _samples(line, result, about, options)


def read_series(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each value of a time series of esmond."""
    metric, found = csv_samples.stated_metric(options), documents(stream, options.name)
    values = [(str(field(one, "ts")), str(field(one, "val"))) for _, one in found]
    rows = ({"tool": "esmond", "measured_at": at, metric: value} for at, value in values)
    return csv_samples.read_rows(enumerate(rows, start=1), options)


def _results(
    content: object, known: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], Mapping[str, Any]]]:
    """Yield each result within a document, and what is said about its test around it."""
    if isinstance(content, list):
        for one in content:
            yield from _results(one, known)
    if not isinstance(content, dict):
        return
    told = {
        name: next((found for path in paths if (found := field(content, *path.split()))), None)
        for name, paths in _ABOUT.items()
    }
    about = {**known, **{name: one for name, one in told.items() if one}}
    result = content.get("result-merged", content.get("result"))
    inner = field(result, "result")
    result = inner if isinstance(inner, dict) else result
    if isinstance(result, dict):
        yield result, about
    elif "succeeded" in content:
        yield content, about
    else:
        for key, value in content.items():
            if key not in _LEFT_OUT:
                yield from _results(value, about)


def _samples(
    line: int, result: Mapping[str, Any], about: Mapping[str, Any], options: ImportOptions
) -> Iterator[ImportedRow]:
    tool = f"pscheduler {text_field(about, 'tool')[:32]}".strip()
    at_s = time_s(text_field(about, "at"))
    lost = number_field(result, "packets-lost")
    if result.get("succeeded") is False:
        yield SkippedRow(line, FAILED)
    elif isinstance(field(result, "summary", "summary"), dict) or "throughput" in result:
        test = _as_iperf3(result, about.get("spec"), at_s)
        yield from samples_of_test(line, {"tool": tool, **test}, options)
    elif "roundtrips" in result or "mean" in result:
        yield from outcomes(_round_trips(line, result, at_s, tool), options)
    elif lost is not None and (sent := number_field(result, "packets-sent")) and 0 <= lost <= sent:
        at_s, detail = options.start_s(at_s), {"packets": sent}
        yield options.sample("loss_pct", 100.0 * lost / sent, at_s, tool, detail)
        yield SkippedRow(line, ONE_WAY)
    else:
        yield SkippedRow(line, OTHER_TEST)


def _as_iperf3(result: Mapping[str, Any], spec: object, at_s: float | None) -> dict[str, Any]:
    """Return the document that ``iperf3 -J`` would have written at the sender."""
    summary = field(result, "summary", "summary")
    bps = number_field(summary, "throughput-bits") or number_field(result, "throughput")
    length_s = number_field(summary, "end") or _seconds(field(spec, "duration"))
    total = {"seconds": length_s, "bits_per_second": bps, "bytes": (bps or 0) * (length_s or 0)}
    received_bps = number_field(summary, "receiver-throughput-bits")
    received = {**total, "bits_per_second": received_bps} if received_bps else total
    intervals = []
    for one in (field(each, "summary") for each in list_field(result, "intervals")):
        start, end = (number_field(one, key) or 0.0 for key in ("start", "end"))
        told = {"seconds": end - start, "bits_per_second": field(one, "throughput-bits")}
        intervals.append({"sum": {**told, "omitted": field(one, "omitted")}})
    streams = len(list_field(result, "summary", "streams"))
    settings = {
        "protocol": "UDP" if field(spec, "udp") is True else "TCP",
        "num_streams": number_field(spec, "parallel") or streams or 1,
        "omit": _seconds(field(spec, "omit")),
        "target_bitrate": number_field(spec, "bandwidth"),
        "reverse": float(field(spec, "reverse") is True),
    }
    began = {"connecting_to": {}, "test_start": settings, "timestamp": {"timesecs": at_s}}
    sums = {"sum_sent": total, "sum_received": received}
    return {"start": began, "intervals": intervals, "end": sums}


def _round_trips(line: int, result: Mapping[str, Any], at_s: float | None, tool: str) -> PingRun:
    def ms(duration: object) -> float | None:
        seconds = _seconds(duration)
        return None if seconds is None else MS_PER_S * seconds

    run = PingRun(line, tool=tool, start_s=at_s)
    found_ms = [ms(field(one, "rtt")) or 0.0 for one in list_field(result, "roundtrips")]
    run.replies_ms.extend(one for one in found_ms if not limits.fault("rtt_ms", one, ""))
    run.summary_ms = tuple(ms(result.get(name)) for name in ("min", "mean", "max", "stddev"))
    run.sent, run.received, run.duplicates = (
        int(number_field(result, name) or 0) for name in ("sent", "received", "duplicates")
    )
    return run


def _seconds(value: object) -> float | None:
    """Read a duration of ISO 8601, or a number of seconds as archives keep it."""
    if isinstance(value, str) and (found := _DURATION.fullmatch(value)):
        parts = zip(found.groups(), (86_400.0, 3600.0, 60.0, 1.0), strict=True)
        return sum(float(part) * seconds for part, seconds in parts if part)
    return number_field({"s": value}, "s")


IMPORTER = importer_of("pscheduler", {"": read, "series": read_series})
