"""Probes of Prometheus' blackbox exporter, as Prometheus' HTTP API returns them.

A scrape is one probe. The round-trip time is that of an echo (``probe_icmp_duration_seconds``,
phase ``rtt``) or of the TCP handshake of a request (``probe_http_duration_seconds``, phase
``connect``); other durations hold more than one round trip. The probes of each hour become one
sample, as a run of ping does: the median of their times, their standard deviation, and of echoes
the share that failed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from statistics import median, pstdev
from typing import Any

from planner.model.errors import FormatError
from planner.model.units import MS_PER_S, S_PER_H
from probes.importers import limits
from probes.importers.csv_samples import SAME_REGION
from probes.importers.endpoints import split, stated
from probes.importers.json_documents import (
    Document,
    documents,
    list_field,
    number_field,
    text_field,
)
from probes.importers.json_documents import field as json_field
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.ping import NO_REPLY
from probes.samples import Metric, Sample, Skipped

NO_ROUND_TRIPS = "probes of one target without a round-trip time (neither ICMP nor HTTP)"

_ROUND_TRIPS = {"probe_icmp_duration_seconds": "rtt", "probe_http_duration_seconds": "connect"}
MOST_PROBES = 2_000_000
"""Figures that are held in memory: five months of one target every 15 s."""
_SUCCESS = "probe_success"
_NOT_THE_TARGETS = ("__name__", "phase")


@dataclass(slots=True)
class _Target:
    """What is known of one series of probes: by time, whether they succeeded, and round trips."""

    line: int
    labels: dict[str, str]
    success: dict[float, bool] = field(default_factory=dict)
    rtt_ms: dict[float, float] = field(default_factory=dict)
    is_icmp: bool = False

    @property
    def instance(self) -> str:
        """What was probed."""
        return self.labels.get("instance", "")[:200]


def read(source: Iterator[bytes], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield RTT, jitter and loss of each target and hour."""
    targets: dict[tuple[tuple[str, str], ...], _Target] = {}
    for document in documents(source, options.name, ()):
        if isinstance(document, Document):
            _take(document, targets, options.name)
        if sum(len(one.rtt_ms) + len(one.success) for one in targets.values()) > MOST_PROBES:
            raise FormatError(
                options.name,
                f"holds over {MOST_PROBES:,} probes",
                remedy="Import it in parts, a target or a month at a time.",
            )
    if not targets:
        raise FormatError(
            options.name,
            "holds no series of the blackbox exporter",
            remedy="Ask Prometheus for probe_success and probe_icmp_duration_seconds of a target.",
        )
    unnamed = [one.instance for one in targets.values() if not split(one.labels.get("dst", ""))]
    if len(set(unnamed)) > 1 and not options.force:
        raise FormatError(
            options.name,
            f"holds probes of several targets ({', '.join(unnamed[:3])}), but one --dst was stated",
            remedy='Ask for one target: {instance="..."}; or give series labels src and dst.',
        )
    for target in targets.values():
        yield from _outcomes(target, _of_target(target, options))


def _take(
    document: Document, targets: dict[tuple[tuple[str, str], ...], _Target], name: str
) -> None:
    """Take up the series of one answer of Prometheus."""
    content = document.content
    if text_field(content, "status") != "success":
        problem = text_field(content, "error") or "no status"
        raise FormatError(
            name,
            f"is not an answer of Prometheus with data: {problem[:200]}",
            remedy="Ask /api/v1/query for a range, such as probe_success[7d].",
        )
    for series in list_field(content, "data", "result"):
        found = json_field(series, "metric")
        labels = found if isinstance(found, dict) else {}
        labels = {key: text for key, text in labels.items() if isinstance(text, str)}
        metric, phase = labels.get("__name__", ""), labels.get("phase", "")
        is_rtt = _ROUND_TRIPS.get(metric) == phase
        if not is_rtt and metric != _SUCCESS:
            continue
        own = {key: text for key, text in labels.items() if key not in _NOT_THE_TARGETS}
        target = targets.setdefault(tuple(sorted(own.items())), _Target(document.line, own))
        for time_s, value in _points(series):
            if is_rtt:
                target.rtt_ms[time_s] = value * MS_PER_S
                target.is_icmp |= metric == "probe_icmp_duration_seconds"
            else:
                target.success[time_s] = value == 1


def _points(series: Any) -> Iterator[tuple[float, float]]:
    for point in list_field(series, "values") or [json_field(series, "value")]:
        if not isinstance(point, list) or len(point) != 2 or not isinstance(point[1], str):
            continue
        time_s, value = number_field({"at": point[0]}, "at"), limits.number(point[1])
        if time_s is None or value is None:
            continue
        if limits.MIN_TIME_S <= time_s <= limits.MAX_TIME_S:
            yield time_s, value


def _of_target(target: _Target, options: ImportOptions) -> ImportOptions:
    """Return options with the ends that the labels of a series name, else those stated."""
    named = {end: name for end in ("src", "dst") if split(name := target.labels.get(end, ""))}
    return replace(options, **named)  # type: ignore[arg-type]


def _outcomes(target: _Target, options: ImportOptions) -> Iterator[ImportedRow]:
    ends = (
        stated(f"--{end}", name, options.name, "blackbox")[0]
        for end, name in (("src", options.src), ("dst", options.dst))
    )
    if len(set(ends)) == 1:
        yield Skipped(target.line, SAME_REGION)
        return
    if not target.rtt_ms:
        yield Skipped(target.line, NO_ROUND_TRIPS)
        return
    hours: defaultdict[float, list[float]] = defaultdict(list)
    for time_s in sorted({*target.success, *target.rtt_ms}):
        hours[time_s // S_PER_H].append(time_s)

    def sample(metric: Metric, value: float, times_s: Iterable[float], **detail: object) -> Sample:
        tool = f"blackbox {'icmp' if target.is_icmp else 'http'}"
        return options.sample(metric, value, min(times_s), tool, detail)

    for times_s in hours.values():
        failed = [time_s for time_s in times_s if target.success.get(time_s) is False]
        if target.is_icmp and target.success:
            told = [time_s for time_s in times_s if time_s in target.success]
            if told:
                lost_pct = 100.0 * len(failed) / len(told)
                replies = len(told) - len(failed)
                yield sample("loss_pct", lost_pct, told, packets=len(told), replies=replies)
        # A probe that failed says 0, or how long it waited.
        times_ms = [
            target.rtt_ms[time_s]
            for time_s in times_s
            if time_s in target.rtt_ms and target.success.get(time_s, True)
        ]
        times_ms = [value for value in times_ms if not limits.fault("rtt_ms", value, "")]
        if not times_ms:
            yield Skipped(target.line, NO_REPLY)
            continue
        yield sample("rtt_ms", median(times_ms), times_s, median_of=len(times_ms))
        if len(times_ms) >= 2:
            yield sample("jitter_ms", pstdev(times_ms), times_s, median_of=len(times_ms))
