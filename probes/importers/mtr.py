"""mtr's report as JSON or text (``mtr --json -c 20 HOST``, ``mtr -r``): of the last hop.

The last hop counts only if it is the host that was asked for: where a path ends before it, mtr
reports the last router that answered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from planner.model.errors import FormatError
from probes.importers import limits
from probes.importers.csv_samples import read_rows
from probes.importers.importer import FileKind, Importer
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.tables import Rows
from probes.importers.text import Lines, documents, field, list_field, text_field, time_s

NOT_REACHED = "the last hop is not the host that was asked for: it was never reached"
NO_HOPS = "the report has no hops"
_COLUMNS = re.compile(r"HOST: .*?(Loss% +Snt\b.*)")
_HOP = re.compile(r" *\d{1,3}\.(?:\|--)? ")
_ADDRESS = re.compile(r"[\d.]+|[\da-fA-F]*:[\da-fA-F:.%]*")


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield RTT, loss and jitter of each report in the file."""
    return read_rows(_reports(stream, options), options)


def read_text(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield RTT, loss and jitter of each text report; it does not name its destination."""
    return read_rows(_text_reports(Lines(stream, options.name)), options)


def _reports(stream: BinaryIO, options: ImportOptions) -> Rows:
    for line, content in documents(stream, options.name):
        report = field(content, "report")
        if not isinstance(field(report, "mtr"), dict):
            problem = f"line {line} begins a document that is no report of mtr"
            remedy = "Give what `mtr --json -c 20 HOST` prints."
            raise FormatError(options.name, problem, remedy=remedy)
        hops = [hop for hop in list_field(report, "hubs") if isinstance(hop, dict)]
        yield line, _row(text_field(report, "mtr", "dst"), hops[-1]) if hops else NO_HOPS


def _text_reports(lines: Lines) -> Rows:
    hop, at_s, begun, names = dict[str, str](), "", 0, [""]
    for number, line in enumerate(lines, start=1):
        if found := _COLUMNS.match(line):
            if hop:
                yield begun, _row("", hop)
            names, hop, begun = found[1].split(), {}, number
        elif line.startswith("Start: ") and not hop:
            at_s = str(time_s(line[7:].strip()) or "")
        elif begun and _HOP.match(line):
            host, *figures = line.rsplit(maxsplit=len(names))
            hop = {"at": at_s, "host": host.split()[-1], **dict(zip(names, figures, strict=False))}
    if hop:
        yield begun, _row("", hop)


def _row(asked: str, hop: Mapping[str, Any]) -> dict[str, str] | str:
    """Return the figures of the last hop."""
    if not _is_same(asked, str(hop.get("host", ""))):
        return NOT_REACHED
    lost_pct = str(hop.get("Loss%", "")).rstrip("%")
    figures = {"rtt_ms": "Avg", "jitter_ms": "StDev"} if limits.number(lost_pct) != 100 else {}
    told = {name: str(hop.get(column, "")) for name, column in figures.items()}
    return {"tool": "mtr", "measured_at": hop.get("at", ""), "loss_pct": lost_pct, **told}


def _is_same(asked: str, found: str) -> bool:
    """Tell whether a hop may be the host that was asked for; names and addresses may be one."""
    if not found or found == "???":
        return False
    are_addresses = asked and all(_ADDRESS.fullmatch(one) for one in (asked, found.split()[0]))
    return asked == found or not are_addresses


IMPORTER = Importer(
    name="mtr",
    order=60,
    needs_ends=True,
    kinds=(
        FileKind("mtr's text report", r"(?m)^HOST: .*Loss% +Snt", read_text),
        FileKind("mtr's JSON (-j)", r'\A[\s\[]*\{\s*"report"\s*:\s*\{\s*"mtr"', read),
    ),
)
