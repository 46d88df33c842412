"""mtr's report as JSON (``mtr --json -c 20 HOST``): round trips to the last hop, and its loss.

The last hop counts only if it is the host that was asked for: where a path ends before it, mtr
reports the last router that answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from planner.model.errors import FormatError
from probes.importers import limits
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.ping import NO_REPLY, round_trips
from probes.importers.text import documents, field, list_field, text_field
from probes.samples import Skipped

NOT_REACHED = "the last hop is not the host that was asked for: it was never reached"
NO_HOPS = "the report has no hops"
_ADDRESS = re.compile(r"[\d.]+|[\da-fA-F]*:[\da-fA-F:.%]*")


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield RTT, loss and jitter of each report in the file."""
    for line, content in documents(stream, options.name):
        report = field(content, "report")
        if not isinstance(field(report, "mtr"), dict):
            raise FormatError(
                options.name,
                f"line {line} begins a document that is no report of mtr",
                remedy="Give what `mtr --json -c 20 HOST` prints.",
            )
        hops = [hop for hop in list_field(report, "hubs") if isinstance(hop, dict)]
        if not hops:
            yield Skipped(line, NO_HOPS)
        elif not _is_same(text_field(report, "mtr", "dst"), str(hops[-1].get("host", ""))):
            yield Skipped(line, NOT_REACHED)
        else:
            yield from _of_hop(line, hops[-1], options)


def _of_hop(line: int, hop: dict[str, object], options: ImportOptions) -> Iterator[ImportedRow]:
    lost_pct, sent, mean_ms, deviation_ms = (
        limits.number(str(hop.get(name, "")).rstrip("%"))
        for name in ("Loss%", "Snt", "Avg", "StDev")
    )
    start_s, detail = options.start_s(), {"packets": sent, "first_included": True}
    if problem := limits.fault("loss_pct", lost_pct, "Loss%"):
        yield Skipped(line, problem)
    elif lost_pct is not None:
        yield options.sample("loss_pct", lost_pct, start_s, "mtr", detail)
    if lost_pct == 100.0:
        yield Skipped(line, NO_REPLY)
        return
    yield from round_trips(line, mean_ms, deviation_ms, start_s, "mtr", detail, options, "Avg")


def _is_same(asked: str, found: str) -> bool:
    """Tell whether a hop may be the host that was asked for; names and addresses may be one."""
    if not found or found == "???":
        return False
    are_addresses = all(_ADDRESS.fullmatch(one) for one in (asked, found.split()[0]))
    return asked == found or not are_addresses
