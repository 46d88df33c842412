"""Reads what a made-up tool, linkmeter, prints: ``2026-11-01T10:00:00Z 812.5 Mbit/s x8``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from probes.importers.importer import FileKind, Importer
from probes.importers.limits import fault
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.text import Lines, time_s
from probes.metrics import throughput_of
from probes.samples import SkippedRow

_LINE = re.compile(r"(\S+) ([\d.]+) Mbit/s x(\d{1,5})\s*")


def read(stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield a sample for each test, and the lines that are none.

    Raises
    ------
    FormatError
        If the file can't be read.
    """
    for number, line in enumerate(Lines(stream, options.name), start=1):
        found = _LINE.fullmatch(line)
        at_s = time_s(found[1]) if found else None
        if found is None or at_s is None:
            if not line.startswith("# linkmeter"):
                yield SkippedRow(number, "no test in this line")
            continue
        metric, mbps, connections = throughput_of(int(found[3])), float(found[2]), int(found[3])
        if problem := fault(metric, mbps, "the rate"):
            yield SkippedRow(number, problem)
            continue
        yield options.sample(metric, mbps, at_s, "linkmeter", {}, connections=connections)


IMPORTER = Importer(
    name="linkmeter",
    needs_ends=True,  # its files name no regions: --src and --dst do
    kinds=(FileKind("linkmeter's log", r"\A# linkmeter \d", read),),
)
