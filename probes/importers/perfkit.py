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
from probes.importers.importer import FileKind, Importer
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.tables import Rows
from probes.importers.text import documents, number_field, text_field

NOT_USED = "a metric that relayd does not use"

_UNITS = {"kbits/sec": "kbps", "mbits/sec": "mbps", "gbits/sec": "gbps", "us": "us", "ms": "ms"}
_FIGURES = {
    ("iperf", "throughput"): "aggregate",
    ("iperf", "udp throughput"): "udp",
    ("netperf", "udp_stream_throughput"): "udp",
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
            problem = f"line {line} is no result of PerfKitBenchmarker"
            remedy = "Give its perfkitbenchmarker_results.json."
            raise FormatError(options.name, problem, remedy=remedy)
        yield line, _cells(row)


def _cells(row: dict[str, Any]) -> dict[str, str] | str:
    base = _FIGURES.get((text_field(row, "test"), text_field(row, "metric").lower()))
    if base is None:
        return NOT_USED
    unit = f"{base}_{_UNITS.get(text_field(row, 'unit').lower())}"
    if unit not in FIGURES:
        return "a unit that relayd does not know"
    labels = dict(_LABEL.findall(text_field(row, "labels")))
    metadata = row.get("metadata")
    if isinstance(metadata, dict):
        labels |= {key: str(value) for key, value in metadata.items()}
    metric, factor = FIGURES[unit]
    connections = labels.get("sending_thread_count", "1")
    if labels.get("protocol", "").lower() == "udp" and base == "aggregate":
        metric = "udp_mbps"
    elif base == "aggregate" and connections == "1":
        metric = "per_flow_mbps"
    value, ends = number_field(row, "value"), []
    for zone in (labels.get(f"{end}_zone", "") for end in ("sending", "receiving")):
        # Groups of VMs in several clouds have labels of their own: vm_1_zone, vm_1_cloud.
        groups = [key.removesuffix("zone") for key, its in labels.items() if its == zone]
        clouds = [labels[f"{group}cloud"] for group in groups if f"{group}cloud" in labels]
        ends.append(f"{(clouds or [labels.get('cloud', '')])[0].lower()}:{zone}")
    return {
        "src": ends[0],
        "dst": ends[1],
        metric: "" if value is None else repr(value * factor),
        "measured_at": str(number_field(row, "timestamp")),
        "tool": f"perfkit {text_field(row, 'test')}",
        "connections": connections,
        "duration_s": labels.get("runtime_in_seconds", ""),
        "src_vm": labels.get("sending_machine_type", ""),
        "dst_vm": labels.get("receiving_machine_type", ""),
        "address": "private" if labels.get("ip_type") == "internal" else "",
    }


IMPORTER = Importer(
    name="perfkit",
    order=70,
    version=r"perfkitbenchmarker_version\W+v?(\d[\w.]*)",
    kinds=(
        FileKind(
            "results of PerfKitBenchmarker",
            (
                r'\A[\s\[]*\{(?=(?:[^{}]|\{[^{}]*\})*"test":)(?=(?:[^{}]'
                r'|\{[^{}]*\})*"unit":)(?:[^{}]|\{[^{}]*\})*"metric":'
            ),
            read,
        ),
    ),
)
