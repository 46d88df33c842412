"""Tables in files: CSV with a header, JSON objects as rows, and matrices of one figure."""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Iterable, Iterator
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from planner.model.errors import FormatError, InputError
from probes.importers.options import BAD_REGION, ImportOptions
from probes.importers.text import CUT_OFF, Lines, documents

_UNIT = re.compile(
    r"(?:^|[ _(\[])((?:[mu]?s|[kmgt]?b)(?:ec|ps|its?/s|/s)?|%|pct)[)\]]?$", re.IGNORECASE
)
"""Of the figures of a matrix, in the words of its corner."""
BLANK = "blank line"
REPEATED_HEADER = "the header again"
TOO_FEW = "fewer columns than the header (cut off?)"
TOO_MANY = "more columns than the header"


Rows: TypeAlias = Iterable[tuple[int, dict[str, str] | str]]
"""Line number and cells by column, or the fault of a row."""


class FileTable(NamedTuple):
    """A table in a file.

    Attributes
    ----------
    header : list of str
        Column names, stripped, as the file spells them.
    header_line : int
        The line that it stands on: 1 unless blank lines precede it, or there is none.
    rows : iterator
        Line number and cells of each row below it, or the fault of the row.
    """

    header: list[str]
    header_line: int
    rows: Iterator[tuple[int, list[str] | str]]


def csv_table(stream: BinaryIO, options: ImportOptions) -> FileTable:
    """Read a CSV file: its header, and the rows below it when they are asked for.

    Raises
    ------
    FormatError
        If there is no header, a column is named twice, or (from its rows) there is no row.
    """
    lines = Lines(stream, options.name)
    numbered = enumerate(lines, start=1)
    found = next(((at, line) for at, line in numbered if line.strip()), None)
    if found is None:
        raise FormatError(options.name, "holds nothing but blank lines")
    header_line, text = found
    if "," not in text and (";" in text or "\t" in text):
        separator = "semicolons" if ";" in text else "tabs"
        problem = f"separates its columns by {separator}"
        remedy = "Write commas between columns and points in figures."
        raise FormatError(options.name, problem, remedy=remedy)
    header = [cell.strip() for cell in _cells(options.name, header_line, text)]
    twice = [column for column in header if header.count(column) > 1 and column]
    if twice:
        problem = f"line {header_line} names the column {twice[0]!r} twice"
        raise FormatError(options.name, problem, remedy="Remove or rename one.")

    def rows() -> Iterator[tuple[int, list[str] | str]]:
        """Yield each row's line number and cells, or fault; raises a FormatError without rows."""
        number = 0
        for number, line in numbered:
            cells = line.split(",") if '"' not in line else _cells(options.name, number, line)
            if len(cells) != len(header):
                problem = TOO_FEW if len(cells) < len(header) else TOO_MANY
                yield number, problem if line.strip() else BLANK
            elif line == text:
                yield number, REPEATED_HEADER
            elif lines.cut_off and not options.force:
                yield number, CUT_OFF
            else:
                yield number, cells
        if not number:
            raise FormatError(options.name, "holds a header and no rows")

    return FileTable(header, header_line, rows())


def _cells(name: str, number: int, line: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True))
    except (csv.Error, StopIteration) as error:
        problem = f"line {number} has a quotation mark that does not fit: {error}"
        remedy = "A quoted cell ends on its own line; quotes inside one are doubled."
        raise FormatError(name, problem, remedy=remedy) from error


def row_table(rows: Rows, name: str) -> FileTable:
    """Make a table of objects: their keys are the columns, in the order of their first use.

    Raises a FormatError if there is none, or all are empty.
    """
    listed = list(rows)
    if not any(row for _, row in listed):
        raise FormatError(name, "holds no list of objects, which would be its rows")
    header = list(dict.fromkeys(key for _, row in listed if isinstance(row, dict) for key in row))
    return FileTable(
        header,
        1,
        (
            (at, row if isinstance(row, str) else [row.get(name, "") for name in header])
            for at, row in listed
        ),
    )


def json_rows(stream: BinaryIO, options: ImportOptions) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield rows of JSON: a list of objects, one a line, or an object that holds one such list.

    Keys of an object within one are joined with its own by a point. Other fields of an object that
    holds the list are the same in all rows. Objects within one are the rows of a matrix.
    """
    for line, content in documents(stream, options.name):
        for number, row in enumerate(_rows_of(content or {}, is_matrix=bool(options.metric)), 1):
            yield line if content == row else number, flat(row)


def _rows_of(content: dict[str, Any], *, is_matrix: bool) -> list[dict[str, Any]]:
    for table in (content, *content.values()) if is_matrix else ():
        found = [*table.values()] if isinstance(table, dict) else [None]
        cells = [cell for row in found if isinstance(row, dict) for cell in row.values()]
        if {*map(type, found)} == {dict} and dict not in map(type, cells):
            return [{"": key} | row for key, row in table.items()]
    for value in content.values():
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            shared = {key: one for key, one in content.items() if not isinstance(one, list | dict)}
            return [shared | one for one in value]
    return [content]


def flat(row: dict[str, Any], before: str = "") -> dict[str, str]:
    """Return a JSON object as cells; keys of those within it follow its own and a point."""
    found: dict[str, str] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            found |= flat(value, f"{before}{key}.")
        elif not isinstance(value, list):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found[before + key] = "" if value is None else text
    return found


def matrix_table(table: FileTable, options: ImportOptions) -> FileTable:
    """Make rows of source, destination and figure of a matrix of one figure.

    Its header has the destinations, its first column the sources, unless its corner begins with
    "to". Empty cells and those of a region to itself hold nothing. Headings name regions if they
    have a provider, are known or stand on the other axis too; a table without any is returned as
    it is.

    Raises
    ------
    InputError
        If the corner names another unit than :attr:`~.ImportOptions.metric`.
    """
    # As many rows as a square matrix has; all rows might not fit into memory.
    first = list(islice(table.rows, len(table.header)))
    table = table._replace(rows=chain(first, table.rows))
    heads = [head.strip() for head in table.header[1:]]
    on_left = {cells[0].strip() for _, cells in first if not isinstance(cells, str)}

    def is_region(name: str, others: Container[str]) -> bool:
        return ":" in name or name in others or options.named(name) != name

    regions = {head for head in heads if is_region(head, on_left)}
    if not regions:
        return table
    corner = table.header[0].strip().replace("µ", "u").replace("μ", "u") if table.header else ""
    unit, stated = _UNIT.search(corner), options.metric.rpartition("_")[2]
    told = re.sub("bits?/s", "bps", unit[1]).replace("%", "pct") if unit else stated
    if told.removesuffix("ec").lower() != stated:
        problem = f"is in {stated}, and the corner of {options.name} says {told}"
        remedy = "Name the same unit, or convert the figures."
        raise InputError("--metric", problem, value=options.metric, remedy=remedy)
    ends = ["dst", "src"] if re.match(r"(?i)(?:to|dst|dest\w*)\b", corner) else ["src", "dst"]

    def rows() -> Iterator[tuple[int, list[str] | str]]:
        for number, cells in table.rows:
            if isinstance(cells, str):
                yield number, cells
                continue
            src = cells[0].strip()
            for dst, cell in zip(heads, cells[1:], strict=True):
                if cell.strip() and dst != src:
                    both = dst in regions and is_region(src, regions)
                    yield number, [src, dst, cell] if both else BAD_REGION

    return FileTable([*ends, options.metric], table.header_line, rows())
