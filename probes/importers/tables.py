"""Tables in files: CSV with a header, JSON objects as rows, and matrices of one figure."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Protocol, TypeAlias

from planner.model.errors import FormatError, InputError
from probes.importers.options import ImportOptions
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


class FileTable(Protocol):
    """The header of a table, the line that it stands on, and the rows below it."""

    header: list[str]
    header_line: int

    def rows(self) -> Iterator[tuple[int, list[str] | str]]:
        """Yield line number and cells, or the fault of the row."""
        ...


class CsvTable:
    """A CSV file: a header and the rows below it, with the fault of each damaged one.

    Parameters
    ----------
    stream : BinaryIO
        The file.
    options : ImportOptions
        Name of the file in messages, and whether a last line without a line end is whole.

    Attributes
    ----------
    header : list[str]
        Column names, stripped, as the file spells them.
    header_line : int
        Line of the header: 1 unless blank lines precede it.

    Raises
    ------
    FormatError
        If there is no header, a column is named twice, or (from :meth:`rows`) there is no row.
    """

    def __init__(self, stream: BinaryIO, options: ImportOptions) -> None:
        self._name, self._force = options.name, options.force
        self._lines = Lines(stream, options.name)
        self._numbered = enumerate(self._lines, start=1)
        found = next(((at, line) for at, line in self._numbered if line.strip()), None)
        if found is None:
            raise FormatError(self._name, "holds nothing but blank lines")
        self.header_line, self._header_text = found
        line = self._header_text
        self.header = [cell.strip() for cell in self._cells(self.header_line, line)]
        if len(self.header) == 1 and (";" in line or "\t" in line):
            separator = "semicolons" if ";" in line else "tabs"
            problem = f"separates its columns by {separator}"
            remedy = "Write commas between columns and points in figures."
            raise FormatError(self._name, problem, remedy=remedy)
        twice = [column for column in self.header if self.header.count(column) > 1 and column]
        if twice:
            problem = f"line {self.header_line} names the column {twice[0]!r} twice"
            raise FormatError(self._name, problem, remedy="Remove or rename one.")

    def rows(self) -> Iterator[tuple[int, list[str] | str]]:
        """Yield line number and cells, or the fault of the row."""
        width, number = len(self.header), 0
        for number, line in self._numbered:
            cells = line.split(",") if '"' not in line else self._cells(number, line)
            if len(cells) != width:
                problem = TOO_FEW if len(cells) < width else TOO_MANY
                yield number, problem if line.strip() else BLANK
            elif line == self._header_text:
                yield number, REPEATED_HEADER
            elif self._lines.cut_off and not self._force:
                yield number, CUT_OFF
            else:
                yield number, cells
        if not number:
            raise FormatError(self._name, "holds a header and no rows")

    def _cells(self, number: int, line: str) -> list[str]:
        try:
            return next(csv.reader([line], strict=True))
        except (csv.Error, StopIteration) as error:
            problem = f"line {number} has a quotation mark that does not fit: {error}"
            remedy = "A quoted cell ends on its own line; quotes inside one are doubled."
            raise FormatError(self._name, problem, remedy=remedy) from error


class RowTable:
    """Objects as rows: their keys are the columns, in the order in which they are first seen."""

    header_line = 1  # there is no header

    def __init__(self, rows: Rows, name: str) -> None:
        self._rows = list(rows)
        if not any(row for _, row in self._rows):
            raise FormatError(name, "holds no list of objects, which would be its rows")
        self.header = list(
            dict.fromkeys(key for _, row in self._rows if isinstance(row, dict) for key in row)
        )

    def rows(self) -> Iterator[tuple[int, list[str] | str]]:
        """Yield the number of each row (its line, where each has one) and its cells."""
        for number, row in self._rows:
            cells = row if isinstance(row, str) else [row.get(name, "") for name in self.header]
            yield number, cells


def json_rows(stream: BinaryIO, options: ImportOptions) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield rows of JSON: a list of objects, one a line, or an object that holds one such list.

    Keys of an object within one are joined with its own by a point. Other fields of an object that
    holds the list are the same in all rows. Objects within one are the rows of a matrix.
    """
    for line, content in documents(stream, options.name):
        for number, row in enumerate(_rows_of(content or {}, is_matrix=bool(options.metric)), 1):
            yield line if content == row else number, _flat(row)


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


def _flat(row: dict[str, Any], before: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{before}{key}.")
        elif not isinstance(value, list):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            found[before + key] = "" if value is None else text
    return found


class MatrixTable:
    """A matrix of one figure as rows of source, destination and figure.

    Parameters
    ----------
    table : FileTable
        Its header has the destinations, its first column the sources, unless its corner begins
        with "to".
    options : ImportOptions
        With the figure's column name as :attr:`~.ImportOptions.metric`.

    Raises
    ------
    InputError
        If the corner names another unit.
    """

    def __init__(self, table: FileTable, options: ImportOptions) -> None:
        corner = table.header[0].strip().replace("µ", "u").replace("μ", "u") if table.header else ""
        unit, stated = _UNIT.search(corner), options.metric.rpartition("_")[2]
        told = re.sub("bits?/s", "bps", unit[1]).replace("%", "pct") if unit else stated
        if told.removesuffix("ec").lower() != stated:
            problem = f"is in {stated}, and the corner of {options.name} says {told}"
            remedy = "Name the same unit, or convert the figures."
            raise InputError("--metric", problem, value=options.metric, remedy=remedy)
        ends = ["dst", "src"] if re.match(r"(?i)(?:to|dst|dest\w*)\b", corner) else ["src", "dst"]
        self.header = [*ends, options.metric]
        self.header_line, self._table = table.header_line, table

    def rows(self) -> Iterator[tuple[int, list[str] | str]]:
        """Yield line number and cells; empty cells and those of a region to itself hold nothing."""
        for number, cells in self._table.rows():
            if isinstance(cells, str):
                yield number, cells
                continue
            for dst, cell in zip(self._table.header[1:], cells[1:], strict=True):
                if cell.strip() and dst.strip() != cells[0].strip():
                    yield number, [cells[0], dst, cell]
