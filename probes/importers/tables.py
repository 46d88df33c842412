"""Tables in files: CSV with a header, JSON objects as rows, and matrices of one figure."""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from html.parser import HTMLParser
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from planner.model.errors import FormatError, InputError
from planner.model.units import BITS_PER_MBIT
from probes.importers.options import BAD_REGION, ImportOptions
from probes.importers.text import CUT_OFF, Lines, documents, whole
from probes.metrics import METRICS, RATE, Dimension

UNIT = re.compile(r"(?:^|[ _(\[])([A-Za-z]{1,6}(?:/s(?:ec)?)?|%)[)\]]?$")
"""Of the figures of a matrix or a column, in the words of its heading."""
_RATE = re.compile(
    r"(?:10\^(?P<power>\d)|(?P<multiple>[KMGTkmgt]?)(?P<is_binary>i?))"
    r"(?P<what>bits?|Bytes|[bB])(?:/s(?:ec)?|ps)?"
)
_END_NAMES = (
    ("src", "src_region", "source", "from"),
    ("dst", "dst_region", "dest", "destination", "target", "to"),
)
BLANK = "blank line"
REPEATED_HEADER = "the header again"
TOO_FEW = "fewer columns than the header (cut off?)"
TOO_MANY = "more columns than the header"


Rows: TypeAlias = Iterable[tuple[int, dict[str, str] | str]]
"""Line number and cells by column, or the fault of a row."""


def factor_of(unit: str, dimension: Dimension) -> float | None:
    """Return the factor from a unit, as tools write it, to the dimension's; None if it is none.

    B is a byte and b is a bit. Bytes that are written out are counted in powers of 1,024 (netperf,
    iperf), as those of IEC prefixes (MiB/s).
    """
    unit = unit.strip().replace("µ", "u").replace("μ", "u")
    if dimension is RATE and (found := _RATE.fullmatch(unit)):
        power = int(found["power"] or 3 * "_kmgt".index((found["multiple"] or "_").lower()))
        bits = 1.0 if found["what"].startswith("b") else 8.0
        of_1024 = found["is_binary"] or found["what"] == "Bytes"
        return bits * (1024.0 ** (power / 3) if of_1024 else 10.0**power) / BITS_PER_MBIT
    plain = "pct" if unit == "%" else unit.lower().removesuffix("ec")
    return dimension.units.get(plain)


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


def csv_table(stream: BinaryIO, options: ImportOptions, *, is_markdown: bool = False) -> FileTable:
    """Read a CSV file: its header, and the rows below it when they are asked for.

    Commas, semicolons or tabs separate columns, whichever the header has most of. Of Markdown,
    lines that begin with a bar are read.

    Raises
    ------
    FormatError
        If there is no header, a column is named twice, or (from its rows) there is no row.
    """
    lines = Lines(stream, options.name)
    numbered: Iterator[tuple[int, str]] = enumerate(lines, start=1)
    if is_markdown:
        barred = ((at, line.strip()) for at, line in numbered if line.lstrip().startswith("|"))
        numbered = ((at, line.strip("|")) for at, line in barred if line.strip("|:- "))
    found = next(((at, line) for at, line in numbered if line.strip()), None)
    if found is None:
        raise FormatError(options.name, "holds nothing but blank lines")
    header_line, text = found
    separator = "|" if is_markdown else max(",;\t", key=re.sub('"[^"]*"', "", text).count)
    header = [cell.strip() for cell in _cells(options.name, header_line, text, separator)]
    twice = [column for column in header if header.count(column) > 1 and column]
    if twice:
        problem = f"line {header_line} names the column {twice[0]!r} twice"
        raise FormatError(options.name, problem, remedy="Remove or rename one.")

    def rows() -> Iterator[tuple[int, list[str] | str]]:
        """Yield each row's line number and cells, or fault; raises a FormatError without rows."""
        number = 0
        for number, line in numbered:
            cells = _cells(options.name, number, line, separator)
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


def _cells(name: str, number: int, line: str, separator: str) -> list[str]:
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], strict=True, delimiter=separator))
    except (csv.Error, StopIteration) as error:
        problem = f"line {number} has a quotation mark that does not fit: {error}"
        remedy = "A quoted cell ends on its own line; quotes inside one are doubled."
        raise FormatError(name, problem, remedy=remedy) from error


class _HtmlRows(HTMLParser):
    """The rows of all tables of a page, with their lines."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[int, list[str]]] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        if tag == "tr":
            self.rows.append((self.getpos()[0], []))
        if tag in ("tr", "td", "th") and self.rows:
            self._in_cell = tag != "tr"
            self.rows[-1][1].extend([""] * self._in_cell)

    def handle_endtag(self, tag: str) -> None:
        self._in_cell &= tag not in ("td", "th", "tr", "table")

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][1][-1] += data


def html_table(stream: BinaryIO, options: ImportOptions) -> FileTable:
    """Read the tables of a page; the first row of all names the columns.

    Raises a FormatError if they have no rows.
    """
    page, content = _HtmlRows(), whole(stream, options.name).decode(errors="replace")
    with suppress(AssertionError):  # which the parser raises at odd declarations, in Python 3.11
        page.feed(content)
    listed = [(at, [" ".join(cell.split()) for cell in cells]) for at, cells in page.rows if cells]
    if len(listed) < 2:
        raise FormatError(options.name, "holds no table with a header and rows")
    (line, header), *rows = listed
    faults = {-1: TOO_FEW, 1: TOO_MANY}
    sizes = ((at, cells, len(cells) - len(header)) for at, cells in rows)
    return FileTable(
        header, line, ((at, faults[size // abs(size)] if size else one) for at, one, size in sizes)
    )


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
    corner = table.header[0].strip() if table.header else ""
    metric, stated = options.metric, options.metric.rpartition("_")[2]
    known = {one.base: one.dimension for one in METRICS.values()}
    unit, dimension = UNIT.search(corner), known[metric.rpartition("_")[0]]
    is_told = unit and any(factor_of(unit[1], one) for one in known.values())
    told = unit[1] if unit and is_told else stated
    if factor_of(told, dimension) != dimension.units[stated]:
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


def series_table(table: FileTable, metric: str) -> FileTable:
    """Make rows of series in columns, as Grafana exports them: a time, and a column a link.

    Headings are ``SRC -> DST``, or have labels that name both. A table without such a heading is
    returned as it is.
    """
    ends = [_ends(heading) for heading in table.header]
    if not any(ends) or not re.match("(?i)time|date", table.header[0]):
        return table

    def rows() -> Iterator[tuple[int, list[str] | str]]:
        for number, cells in table.rows:
            if isinstance(cells, str):
                yield number, cells
                continue
            for pair, heading, cell in zip(ends, table.header, cells, strict=True):
                if pair and cell.strip().lower() not in ("", "null", "undefined", "nan"):
                    yield number, [cells[0], *pair, cell]
                elif not pair and heading != table.header[0]:
                    yield number, f"column {heading[:40]!r} is not used"

    return FileTable(["measured_at", "src", "dst", metric], table.header_line, rows())


def _ends(heading: str) -> tuple[str, ...]:
    labels = dict(re.findall(r'(\w+)="([^"]*)"', heading))
    both = [next((labels[one] for one in names if one in labels), "") for names in _END_NAMES]
    found = re.search(r"(\S+) *(?:->|=>|→|\bto\b) *(\S+)$", heading)
    return tuple(both) if all(both) else found.groups() if found and not labels else ()
