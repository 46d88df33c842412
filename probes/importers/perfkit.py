"""Results of PerfKitBenchmarker, one JSON object a line: iperf, netperf and ping.

They name both zones, the VM types and the kind of address; their labels are an object
(``metadata``) or a text (``labels``: ``|key:value|,|key:value|``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from planner.model.errors import FormatError
from probes.importers.csv_samples import FIGURES, read_rows
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.tables import Rows
from probes.importers.text import documents, number_field, text_field

NOT_USED = "a metric that relayd does not use"
NO_UNIT = "a unit that relayd does not know"

_UNITS = {"kbits/sec": "kbps", "mbits/sec": "mbps", "gbits/sec": "gbps", "us": "us", "ms": "ms"}
_FIGURES = {
    ("iperf", "throughput"): "aggregate",
    ("netperf", "tcp_stream_throughput"): "aggregate",
    ("ping", "average latency"): "rtt",
}
"""By test and metric; a rate of one connection is of ``per_flow``."""
_LABEL = re.compile(r"\|([^:|]+):([^|]*)\|")


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each throughput and round-trip time."""
    return read_rows(_rows(stream, options), options)


def _rows(stream: BinaryIO, options: ImportOptions) -> Rows:
    for line, row in documents(stream, options.name):
        if row is None or "metric" not in row or "test" not in row:
            raise FormatError(
                options.name,
                f"line {line} is no result of PerfKitBenchmarker",
                remedy="Give its perfkitbenchmarker_results.json.",
            )
        yield line, _cells(row)


def _cells(row: dict[str, Any]) -> dict[str, str] | str:
    base = _FIGURES.get((text_field(row, "test"), text_field(row, "metric").lower()))
    if base is None:
        return NOT_USED
    unit = f"{base}_{_UNITS.get(text_field(row, 'unit').lower())}"
    if unit not in FIGURES:
        return NO_UNIT
    labels = dict(_LABEL.findall(text_field(row, "labels")))
    metadata = row.get("metadata")
    if isinstance(metadata, dict):
        labels |= {key: str(value) for key, value in metadata.items()}
    metric, factor = FIGURES[unit]
    connections = labels.get("sending_thread_count", "1")
    if base == "aggregate" and connections == "1":
        metric = "per_flow_mbps"
    value, provider = number_field(row, "value"), labels.get("cloud", "").lower()
    return {
        "src": f"{provider}:{labels.get('sending_zone', '')}",
        "dst": f"{provider}:{labels.get('receiving_zone', '')}",
        metric: "" if value is None else repr(value * factor),
        "measured_at": str(number_field(row, "timestamp")),
        "tool": f"perfkit {text_field(row, 'test')}",
        "connections": connections,
        "duration_s": labels.get("runtime_in_seconds", ""),
        "src_vm": labels.get("sending_machine_type", ""),
        "dst_vm": labels.get("receiving_machine_type", ""),
        "address": "private" if labels.get("ip_type") == "internal" else "",
    }
