"""Results of PerfKitBenchmarker, one JSON object a line: iperf, netperf and ping.

They name both zones, the VM types and the kind of address; their labels are an object
(``metadata``) or a text (``labels``: ``|key:value|,|key:value|``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from planner.model.errors import FormatError
from probes.importers import limits
from probes.importers.options import BAD_REGION, SAME_REGION, ImportedRow, ImportOptions, split
from probes.importers.text import documents, number_field, text_field
from probes.samples import MAX_TIME_S, MIN_TIME_S, Metric, Sample, Skipped

NOT_USED = "a metric that relayd does not use"
NO_UNIT = "a unit that relayd does not know"
NO_TIME = "timestamp is no time"

_RATES_MBPS = {"kbits/sec": 1e-3, "mbits/sec": 1.0, "gbits/sec": 1e3}
_TIMES_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
_METRICS: dict[tuple[str, str], Metric] = {
    ("iperf", "throughput"): "aggregate_mbps",
    ("netperf", "tcp_stream_throughput"): "aggregate_mbps",
    ("ping", "average latency"): "rtt_ms",
}
"""By test and metric; a rate of one connection is of ``per_flow_mbps``."""
_LABEL = re.compile(r"\|([^:|]+):([^|]*)\|")


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each throughput and round-trip time."""
    for line, row in documents(stream, options.name):
        if row is None or "metric" not in row or "test" not in row:
            raise FormatError(
                options.name,
                f"line {line} is no result of PerfKitBenchmarker",
                remedy="Give its perfkitbenchmarker_results.json.",
            )
        yield _sample(line, row, options)


def _sample(line: int, row: dict[str, Any], options: ImportOptions) -> ImportedRow:
    metric = _METRICS.get((text_field(row, "test"), text_field(row, "metric").lower()))
    if metric is None:
        return Skipped(line, NOT_USED)
    labels = dict(_LABEL.findall(text_field(row, "labels")))
    metadata = row.get("metadata")
    if isinstance(metadata, dict):
        labels |= {key: str(value) for key, value in metadata.items()}
    units = _TIMES_MS if metric == "rtt_ms" else _RATES_MBPS
    factor = units.get(text_field(row, "unit").lower())
    if factor is None:
        return Skipped(line, NO_UNIT)
    provider = labels.get("cloud", "").lower()
    ends = [
        split(f"{provider}:{labels.get(f'{end}_zone', '')}") for end in ("sending", "receiving")
    ]
    if ends[0] is None or ends[1] is None:
        return Skipped(line, BAD_REGION)
    if ends[0][0] == ends[1][0]:
        return Skipped(line, SAME_REGION)
    at_s = number_field(row, "timestamp") or 0.0
    if not MIN_TIME_S <= at_s <= MAX_TIME_S:
        return Skipped(line, NO_TIME)
    value = number_field(row, "value")
    value = None if value is None else value * factor
    connections = limits.connections(labels.get("sending_thread_count", "1")) or 1
    if metric == "aggregate_mbps" and connections == 1:
        metric = "per_flow_mbps"
    if value is None or (problem := limits.fault(metric, value, "value")):
        return Skipped(line, problem if value is not None else "value is not a number")
    is_rate = metric != "rtt_ms"
    return Sample(
        ends[0][0],
        ends[1][0],
        metric,
        value,
        at_s,
        f"perfkit {text_field(row, 'test')}",
        connections if is_rate else None,
        limits.duration_s(labels.get("runtime_in_seconds", "")) if is_rate else None,
        src_zone=ends[0][1],
        dst_zone=ends[1][1],
        src_vm=labels.get("sending_machine_type", options.src_vm),
        dst_vm=labels.get("receiving_machine_type", options.dst_vm),
        address="private" if labels.get("ip_type") == "internal" else None,
    )
