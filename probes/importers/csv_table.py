"""Rows of a comma-separated file, with the fault of each damaged one."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from planner.model.errors import FormatError
from probes.importers.text import Lines

BLANK = "blank line"
REPEATED_HEADER = "the header again"
TOO_FEW = "fewer columns than the header (cut off?)"
TOO_MANY = "more columns than the header"
CUT_OFF = "last line has no line end, so its last figure may be cut off"


class CsvTable:
    """A header and the rows below it.

    Parameters
    ----------
    source : Iterator[bytes]
        The file.
    name : str
        What messages call it.
    force : bool
        Take a last line without a line end for whole.

    Attributes
    ----------
    header : list[str]
        Column names, stripped, as the file spells them.
    header_line : int
        Line of the header: 1 unless blank lines precede it.

    Raises
    ------
    FormatError
        If there is no header, a column is named twice, or there is no row.
    """

    def __init__(self, source: Iterator[bytes], name: str, *, force: bool) -> None:
        self._name = name
        self._force = force
        self._lines = Lines(source, name)
        self._numbered = enumerate(self._lines, start=1)
        for number, line in self._numbered:
            if line.strip():
                self.header_line = number
                self._header_text = line
                self.header = [cell.strip() for cell in self._cells(number, line)]
                break
        else:
            raise FormatError(name, "holds nothing but blank lines")
        if len(self.header) == 1 and (";" in line or "\t" in line):
            found = "semicolons" if ";" in line else "tabs"
            raise FormatError(
                name,
                f"separates its columns by {found}",
                remedy="Write commas between columns and points in figures.",
            )
        twice = [column for column in self.header if self.header.count(column) > 1 and column]
        if twice:
            raise FormatError(
                name,
                f"line {number} names the column {twice[0]!r} twice",
                remedy="Remove or rename one.",
            )

    def rows(self) -> Iterator[tuple[int, list[str], str]]:
        """Yield line number, cells and what is wrong with the row (``""`` if nothing)."""
        width = len(self.header)
        lines = self._lines
        number = self.header_line
        for number, line in self._numbered:
            cells = line.split(",") if '"' not in line else self._cells(number, line)
            problem = ""
            if len(cells) != width:
                problem = TOO_FEW if len(cells) < width else TOO_MANY
                problem = problem if line.strip() else BLANK
            elif line == self._header_text:
                problem = REPEATED_HEADER
            elif lines.cut_off and not self._force:
                problem = CUT_OFF
            yield number, cells, problem
        if number == self.header_line:
            raise FormatError(self._name, "holds a header and no rows")

    def _cells(self, number: int, line: str) -> list[str]:
        try:
            return next(csv.reader([line], strict=True))
        except (csv.Error, StopIteration) as error:
            raise FormatError(
                self._name,
                f"line {number} has a quotation mark that does not fit: {error}",
                remedy="A quoted cell ends on its own line; quotes inside one are doubled.",
            ) from error
