"""Importers: turn files that other tools wrote into samples.

One module a format, each with ``read(source, options)``: bytes in, samples and skipped rows out,
lazily and in bounded memory. Two kinds of trouble are kept apart:

- a row that can't be used is a :class:`~probes.samples.Skipped` with its line number and a reason
  out of a small set, so that a report can count them;
- a file that can't be trusted as a whole raises :class:`~planner.model.errors.FormatError`. It may
  do so after samples were yielded (a file is damaged where it is damaged), so whoever stores
  them does it in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from io import BufferedReader
from typing import BinaryIO

from planner.model.errors import InputError
from probes.importers.detection import refuse_another
from probes.importers.options import ImportedRow, ImportOptions
from probes.importers.text import refuse_binary, unreadable
from probes.samples import Sample

__all__ = ["FORMATS", "ImportOptions", "ImportedRow", "addressed", "read"]

_MODULES = {
    "iperf3": "iperf3",
    "iperf": "iperf_text",
    "ping": "ping",
    "nuttcp": "nuttcp",
    "smokeping": "smokeping",
    "blackbox": "blackbox",
    "skyplane-throughput": "skyplane",
    "skyplane-latency": "skyplane",
    "csv": "csv_samples",
    "parquet": "parquet",
}
_READERS = {"skyplane-throughput": "read_throughput", "skyplane-latency": "read_latency"}
FORMATS: tuple[str, ...] = tuple(_MODULES)
"""The formats that :func:`read` knows, as the command line spells them."""

HEAD_BYTES = 65_536
"""Of a file, by which its format is recognised."""
_NAMES_NO_REGIONS = ("iperf3", "iperf", "ping", "nuttcp", "smokeping")


def read(format_name: str, stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    """Read samples from a file.

    Parameters
    ----------
    format_name : str
        One of :data:`FORMATS`.
    stream : BinaryIO
        Opened for reading bytes; read once from its current position, without seeking, except for
        ``parquet``, which is read from its end.
    options : ImportOptions
        What the file itself does not contain.

    Returns
    -------
    Iterator[Sample | Skipped]
        In the order of the file, as far as the format can be judged row by row.

    Raises
    ------
    InputError
        At once, if the format is unknown or an option that it needs is missing or wrong.
    FormatError
        While iterating, if the file is damaged or not of the format that was named.
    """
    if format_name not in _MODULES:
        remedy = f"Choose one of {', '.join(FORMATS)}."
        raise InputError("format", "is not known", value=format_name, remedy=remedy)
    if format_name in _NAMES_NO_REGIONS:
        (src, _), (dst, _) = options.ends(format_name)
        if src == dst:
            raise InputError(
                "--dst",
                "is the same region as --src",
                value=options.dst,
                remedy="relayd compares paths between different regions.",
            )
    return _read(format_name, stream, options)


def _read(format_name: str, stream: BinaryIO, options: ImportOptions) -> Iterator[ImportedRow]:
    buffered = BufferedReader(stream, HEAD_BYTES)  # type: ignore[type-var]
    try:
        head = buffered.peek(HEAD_BYTES)
    except OSError as error:
        raise unreadable(error, options.name) from error
    try:
        refuse_another(head, format_name, options.name)
        refuse_binary(head, options.name, is_text=format_name != "parquet")
        module = import_module(f"probes.importers.{_MODULES[format_name]}")
        reader = getattr(module, _READERS.get(format_name, "read"))
        yield from addressed(reader(buffered, options), options)
    finally:
        buffered.detach()  # whoever opened the stream closes it


def addressed(rows: Iterable[ImportedRow], options: ImportOptions) -> Iterator[ImportedRow]:
    """Yield rows, samples with the kind of address that was stated."""
    for row in rows:
        if options.address is not None and isinstance(row, Sample):
            yield row._replace(address=options.address)
        else:
            yield row
