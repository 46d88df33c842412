"""Importers: turn files that other tools wrote into samples.

Each format is an :class:`~probes.importers.importer.Importer`, found by its entry point: bytes in,
samples and skipped rows out, lazily and in bounded memory. Two kinds of trouble are kept apart:

- a row that can't be used is a :class:`~probes.samples.SkippedRow` with its line number and a
  reason out of a small set, so that a report can count them;
- a file that can't be trusted as a whole raises :class:`~planner.model.errors.FormatError`. It may
  do so after samples were yielded (a file may be damaged anywhere), so the caller stores them in
  one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BufferedReader, BytesIO
from typing import Any, BinaryIO

from planner.model.errors import InputError
from planner.model.throughput import TUNED_WINDOW_MB
from probes.importers.kinds import identified, importers
from probes.importers.options import SAME_REGION, ImportedRow, ImportOptions
from probes.importers.text import UnprefixedLines, logged_text, unreadable, whole
from probes.metrics import CAPS, THROUGHPUT
from probes.samples import Sample, SkippedRow

__all__ = ["ImportOptions", "ImportedRow", "addressed", "identified", "importers", "read"]

HEAD_BYTES = 65_536
"""First bytes of a file, by which its format is recognised."""


def read(format_name: str, stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Read samples from a file.

    Parameters
    ----------
    format_name : str
        A name of :func:`importers`; ``""`` for what the file is, by its first bytes.
    stream : BinaryIO
        Opened for reading bytes; read once from its current position, without seeking, except for
        ``parquet``, which is read from its end.
    options : ImportOptions
        Facts that the file itself does not contain.

    Returns
    -------
    Iterator[Sample | SkippedRow]
        In the order of the file, as far as the format can be judged row by row.

    Raises
    ------
    InputError
        At once, if the format is unknown; while iterating, if an option that it needs is missing
        or wrong.
    FormatError
        While iterating, if the file is damaged or not of the format that was named.
    """
    if format_name and format_name not in importers():
        remedy = f"Choose one of {', '.join(importers())}."
        raise InputError("format", "is not known", value=format_name, remedy=remedy)
    return _read(stream, options, format_name)


def _read(stream: BinaryIO, options: ImportOptions, wanted: str) -> Iterator[ImportedRow]:
    buffered = BufferedReader(stream, HEAD_BYTES)  # type: ignore[type-var]
    try:
        try:
            head = b""
            if stream.seekable():  # else what has arrived is all that can be looked at
                start, head = stream.tell(), stream.read(HEAD_BYTES)
                stream.seek(start)
            head = head or buffered.peek(HEAD_BYTES)
        except OSError as error:
            raise unreadable(error, options.name) from error
        importer, kind, what, prefix = identified(head, options.name, wanted)
        if importer.needs_ends:
            (src, _), (dst, _) = options.ends(what)
            if src == dst:
                problem, remedy = "is the same region as --src", "Paths are between regions."
                raise InputError("--dst", problem, value=options.dst, remedy=remedy)
        lines: Any = buffered
        if prefix:
            lines = UnprefixedLines(buffered, prefix)
            if prefix.is_json:
                lines = BytesIO(logged_text(whole(buffered, options.name))[0])
            options = replace(options, measured_at_s=prefix.at_s or options.measured_at_s)
        yield from addressed(kind.read(lines, options), options)
    finally:
        buffered.detach()  # the caller opened the stream, and closes it


def addressed(rows: Iterable[ImportedRow], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield rows, samples with the kind of address and the hosts that were stated.

    A sample from a region to itself is a skipped row, unless it is a VM's cap.
    """
    for row in rows:
        if isinstance(row, Sample):
            if row.src == row.dst and row.metric not in CAPS:
                yield SkippedRow(0, SAME_REGION)
                continue
            if options.address is not None:
                row = row._replace(address=options.address)
            if options.hosts == "tuned" and row.metric in THROUGHPUT:
                row = row.with_detail(**{"window_mb": TUNED_WINDOW_MB[1], **row.read_detail()})
        yield row
