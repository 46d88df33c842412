"""Rows of a comma-separated file, with the fault of each damaged one."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain, repeat, takewhile

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
        blocks = self._lines.blocks()
        number = 1
        for block in blocks:
            blank = len(list(takewhile(lambda line: not line.strip(), block)))
            number += blank
            if blank < len(block):
                break
        else:
            raise FormatError(name, "holds nothing but blank lines")
        line = block[blank]
        self.header_line = number
        self._header_text = line
        self.header = [cell.strip() for cell in self._cells(number, line)]
        self._blocks = chain((block[blank + 1 :],), blocks)
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

    def blocks(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the lines below the header, many at once, after the number of the first."""
        number = self.header_line + 1
        for lines in self._blocks:
            yield number, lines
            number += len(lines)
        if number == self.header_line + 1:
            raise FormatError(self._name, "holds a header and no rows")

    def rows(self) -> Iterator[tuple[int, list[str], str]]:
        """Yield line number, cells and what is wrong with the row (``""`` if nothing)."""
        for number, lines in self.blocks():
            yield from self.rows_of(number, lines)

    def rows_of(self, number: int, lines: list[str]) -> Iterator[tuple[int, list[str], str]]:
        """Yield what :meth:`rows` does, of lines that begin at a number."""
        width = len(self.header)
        cut_off = self._lines.cut_off and not self._force
        for at, line in enumerate(lines, number):
            cells = line.split(",") if '"' not in line else self._cells(at, line)
            problem = ""
            if len(cells) != width:
                problem = TOO_FEW if len(cells) < width else TOO_MANY
                problem = problem if line.strip() else BLANK
            elif line == self._header_text:
                problem = REPEATED_HEADER
            elif cut_off:
                problem = CUT_OFF
            yield at, cells, problem

    def columns(self, lines: list[str]) -> list[list[str]] | None:
        """Return the cells of lines by column; None unless nothing is wrong with any of them."""
        width, text = len(self.header), ",".join(lines)
        if self._lines.cut_off or '"' in text or self._header_text in lines:
            return None
        if set(map(str.count, lines, repeat(","))) != {width - 1}:
            return None
        cells = text.split(",")
        return [cells[at::width] for at in range(width)]

    def _cells(self, number: int, line: str) -> list[str]:
        try:
            return next(csv.reader([line], strict=True))
        except (csv.Error, StopIteration) as error:
            raise FormatError(
                self._name,
                f"line {number} has a quotation mark that does not fit: {error}",
                remedy="A quoted cell ends on its own line; quotes inside one are doubled.",
            ) from error
