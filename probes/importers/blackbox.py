"""Probes of Prometheus' blackbox exporter, as Prometheus' HTTP API returns them.

A scrape is one probe. The round-trip time is that of an echo (``probe_icmp_duration_seconds``,
phase ``rtt``) or of the TCP handshake of a request (``probe_http_duration_seconds``, phase
``connect``); other durations hold more than one round trip. The probes of each hour become one
sample, as a run of ping does: the median of their times, their standard deviation, and of echoes
the share that failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import median, pstdev
from typing import Any, BinaryIO, TypeAlias

from planner.model.errors import FormatError, InputError
from planner.model.units import MS_PER_S, S_PER_H
from probes.importers import limits, text
from probes.importers.csv_samples import read_rows, stated_metric
from probes.importers.importer import importer_of
from probes.importers.options import SAME_REGION, ImportedRow, ImportOptions, split
from probes.importers.ping import NO_REPLY, round_trips
from probes.importers.tables import Rows
from probes.samples import MAX_TIME_S, MIN_TIME_S, SkippedRow

NO_ROUND_TRIPS = "probes of one target without a round-trip time (neither ICMP nor HTTP)"

_ROUND_TRIPS = {"probe_icmp_duration_seconds": "rtt", "probe_http_duration_seconds": "connect"}
MOST_PROBES = 2_000_000
"""Figures that are held in memory: five months of one target every 15 s."""
_EXPOSED = re.compile(r"(?m)^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? +(\S+)(?: +(\d{1,15}))?\r?$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


_Series: TypeAlias = tuple[int, dict[str, str], list[tuple[float, float]]]
"""Line of its answer, labels, and values with their times in seconds since 1970."""


@dataclass(slots=True)
class _Target:
    """One series of probes: by time, whether they succeeded (1 or 0), and round trips."""

    line: int
    labels: dict[str, str]
    success: dict[float, float] = field(default_factory=dict)
    rtt_ms: dict[float, float] = field(default_factory=dict)
    is_icmp: bool = False


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield RTT, jitter and loss of each target and hour; or values of any series with labels."""
    return _read(_answered(stream, options.name), options)


def read_text(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield what :func:`read` does, of what an exporter shows; of one time, unless lines name it.

    https://prometheus.io/docs/instrumenting/exposition_formats/
    """
    shown = text.whole(stream, options.name).decode(errors="replace")
    series: list[_Series] = []
    for line in _EXPOSED.finditer(shown):
        labels = {**dict(_LABEL.findall(line[2] or "")), "__name__": line[1]}
        at_s = float(line[4]) / MS_PER_S if line[4] else options.start_s()
        series.append((1, labels, _figures([[at_s, line[3]]])))
    return _read(series, options)


def _read(found: Iterable[_Series], options: ImportOptions) -> Iterator[ImportedRow]:
    if options.columns:
        yield from read_rows(_labelled(found, options), options)
        return
    targets: dict[tuple[tuple[str, str], ...], _Target] = {}
    probes = 0
    for line, labels, values in found:
        metric, phase = labels.pop("__name__", ""), labels.pop("phase", "")
        is_rtt = _ROUND_TRIPS.get(metric) == phase
        if not is_rtt and metric != "probe_success":
            continue
        target = targets.setdefault(tuple(sorted(labels.items())), _Target(line, labels))
        target.is_icmp |= metric == "probe_icmp_duration_seconds" and bool(values)
        known = target.rtt_ms if is_rtt else target.success
        probes -= len(known)
        known |= {at_s: value * MS_PER_S if is_rtt else value == 1 for at_s, value in values}
        probes += len(known)
        if probes > MOST_PROBES:
            problem = f"holds over {MOST_PROBES:,} probes"
            remedy = "Import it in parts, a target or a month at a time."
            raise FormatError(options.name, problem, remedy=remedy)
    if not targets:
        remedy = (
            "Ask Prometheus for probe_success and probe_icmp_duration_seconds of a target; "
            "of other series, say --labels src=LABEL,dst=LABEL and --metric rtt_s (or another)."
        )
        raise FormatError(options.name, "holds no series of the blackbox exporter", remedy=remedy)
    stated = [target.labels for target in targets.values()]
    unnamed = [one.get("instance", "")[:200] for one in stated if not split(one.get("dst", ""))]
    if len(set(unnamed)) > 1 and not options.force:
        problem = f"holds probes of several targets ({', '.join(unnamed[:3])})"
        remedy = 'Ask for one target: {instance="..."}; or give series labels src and dst.'
        raise FormatError(options.name, f"{problem}, but one --dst was stated", remedy=remedy)
    for target in targets.values():
        named = {end: name for end in ("src", "dst") if split(name := target.labels.get(end, ""))}
        yield from _outcomes(target, replace(options, **named))  # type: ignore[arg-type]


def _labelled(found: Iterable[_Series], options: ImportOptions) -> Rows:
    """Yield a row for each value of a series, with what the stated labels mean."""
    metric, seen, names = stated_metric(options), dict[str, str](), set[str]()
    for line, labels, values in found:
        seen |= labels
        if not labels.keys() >= set(options.columns.values()):
            continue  # of an exporter's other metrics
        names.add(labels.get("__name__", ""))
        if len(names) > 1:
            problem = f"holds several metrics ({', '.join(sorted(names))[:200]})"
            raise FormatError(options.name, problem, remedy="Import a file with one of them.")
        row = {name: labels.get(label, "") for name, label in options.columns.items()}
        for at_s, value in values:
            told = {"tool": "prometheus", "measured_at": repr(at_s), metric: repr(value)}
            yield line, row | told
    if missing := [label for label in options.columns.values() if label not in seen]:
        remedy = f"Its series have {', '.join(seen)[:200] or 'none'}."
        raise InputError("--labels", "is no label in the file", value=missing[0], remedy=remedy)


def _answered(stream: BinaryIO, name: str) -> Iterator[_Series]:
    """Yield the series of Prometheus' answers."""
    for line, content in text.documents(stream, name):
        if content is None or text.text_field(content, "status") != "success":
            problem = text.text_field(content, "error") or "no status"
            problem = f"is not an answer of Prometheus with data: {problem[:200]}"
            remedy = "Ask /api/v1/query for a range, such as probe_success[7d]."
            raise FormatError(name, problem, remedy=remedy)
        for series in text.list_field(content, "data", "result"):
            of_series = text.field(series, "metric")
            labels = of_series.items() if isinstance(of_series, dict) else ()
            points = text.list_field(series, "values") or [text.field(series, "value")]
            told = {key: label for key, label in labels if isinstance(label, str)}
            yield line, told, _figures(points)


def _figures(points: list[Any]) -> list[tuple[float, float]]:
    """Return the points that are a time and a figure, which Prometheus writes as a text."""
    pairs = [point for point in points if isinstance(point, list) and len(point) == 2]
    return [
        (at_s, value)
        for at, figure in pairs
        if isinstance(figure, str)
        and (at_s := text.number_field({"at": at}, "at")) is not None
        and (value := limits.number(figure)) is not None
        and MIN_TIME_S <= at_s <= MAX_TIME_S
    ]


def _outcomes(target: _Target, options: ImportOptions) -> Iterator[ImportedRow]:
    (src, _), (dst, _) = options.ends("blackbox")
    if src == dst or not target.rtt_ms:
        yield SkippedRow(target.line, SAME_REGION if src == dst else NO_ROUND_TRIPS)
        return
    tool = f"blackbox {'icmp' if target.is_icmp else 'http'}"
    success, rtt_ms = target.success, target.rtt_ms
    for _, hour in groupby(sorted({*success, *rtt_ms}), lambda time_s: time_s // S_PER_H):
        times_s = list(hour)
        told = [success[time_s] for time_s in times_s if time_s in success]
        if target.is_icmp and told:
            at_s = next(time_s for time_s in times_s if time_s in success)
            lost_pct = 100.0 * told.count(False) / len(told)
            replies = {"packets": len(told), "replies": told.count(True)}
            yield options.sample("loss_pct", lost_pct, at_s, tool, replies)
        # A probe that failed reports 0, or the time that it waited.
        times_ms = [rtt_ms[at_s] for at_s in times_s if at_s in rtt_ms and success.get(at_s, True)]
        times_ms = [value for value in times_ms if not limits.fault("rtt_ms", value, "")]
        detail = {"median_of": len(times_ms)}
        if not times_ms:
            yield SkippedRow(target.line, NO_REPLY)
            continue
        found_ms = median(times_ms), pstdev(times_ms) if len(times_ms) >= 2 else None
        yield from round_trips(target.line, *found_ms, times_s[0], tool, detail, options)


IMPORTER = importer_of("blackbox", {"": read, "text": read_text})
