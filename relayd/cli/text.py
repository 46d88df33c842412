"""How tables, paragraphs and emphasis look in a terminal, and what never reaches one.

Names come from catalogues, samples, files and services, and a terminal obeys the control characters
in them: it moves the cursor, changes its title or reverses the reading order. Everything that a
command prints passes :func:`safe_output`, which shows such characters as JSON escapes (RFC 8259,
7); in JSON they stay what they were.
"""

from __future__ import annotations

import os
import re
import shutil  # nothing is asked of a terminal where there is none
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap  # where a terminal is narrow
from typing import Any, TextIO, cast

BOLD, DIM, GREEN, YELLOW = "1", "2", "32", "33"
WIDTH = 96
_MOST_LINES = 4
_SPACES = dict.fromkeys(map(ord, "\n\v\f\r"), " ")

# C0 but tab and line feed, DEL, C1, what changes the reading order (UAX 9), what else ends lines,
# and halves of surrogate pairs, which no encoding has.
_UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
# Tells our own escape sequences from those in names: nobody can know it beforehand.
_ESCAPE = f"\033{os.urandom(8).hex()}"


def neutralised(text: str) -> str:
    r"""Return text with control characters as escapes such as ``\u001b``."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # as nearly always
        return text
    return re.sub(_UNSAFE, _escaped, text)


@contextmanager
def safe_output() -> Iterator[None]:
    """Let no control character of others out of this process, by either standard stream."""
    with (
        redirect_stdout(cast("TextIO", _SafeStream(sys.stdout))),
        redirect_stderr(cast("TextIO", _SafeStream(sys.stderr))),
    ):
        yield


def shown_safely(text: str) -> str:
    """Return text as a terminal may get it: with our own escape sequences alone."""
    return "\033".join(neutralised(part) for part in text.split(_ESCAPE))


class _SafeStream:
    """A text stream that neutralises what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text, made safe."""
        return self._stream.write(shown_safely(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines, one after the other."""
        for line in lines:
            self.write(line)


def redrawn(line: str = "") -> str:
    """Return what writes a line over the terminal's present one."""
    return f"{_ESCAPE}[G{_ESCAPE}[K{line}"


def formula_safe(cell: str) -> str:
    """Return a text cell of CSV that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def _cell(text: str) -> str:
    return neutralised(text.replace("\t", "\\u0009").replace("\n", "\\u000a"))


def styled(
    text: str, style: str, stream: TextIO | None = None, otherwise: str | None = None
) -> str:
    """Return text in a style if the stream shows it and the user wants it (no-color.org).

    `otherwise` is what to return in place of the bare text.
    """
    shown_on = stream or sys.stdout
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not shown_on.isatty():
        return text if otherwise is None else otherwise
    return f"{_ESCAPE}[{style}m{text}{_ESCAPE}[0m"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under a header: the first column to the left, figures to the right."""
    return _fitted(header, rows, [False] + [True] * (len(header) - 1))


def left_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of words under a header, all columns to the left."""
    return _fitted(header, rows, [False] * len(header))


def _fitted(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> str:
    """Return a table; where the terminal is narrower, with words below each other.

    Where that does not suffice, it is a paragraph for each row, as ``psql`` prints it. Lines that a
    terminal breaks can't be read, and what is cut off is missed.
    """
    cells = [[_cell(cell) for cell in row] for row in (header, *rows)]
    layout = _Layout([max(map(len, column)) for column in zip(*cells, strict=True)], "  ", right)
    if rows and sys.stdout.isatty():
        fitting = next((one for one in _layouts(cells, layout) if one.fits(cells)), None)
        if fitting is None:
            return "\n\n".join(_paragraph(cells[0], row) for row in cells[1:])
        layout = fitting
    body = [line for row in cells[1:] for line in layout.lines(row)]
    return "\n".join([*(styled(line, DIM) for line in layout.lines(cells[0], at_end=True)), *body])


def _folded(cell: str, width: int) -> list[str]:
    return wrap(cell, width, break_on_hyphens=False)


@dataclass(frozen=True, slots=True)
class _Layout:
    """How wide the columns of a table are, what is between them, and which are to the right."""

    widths: Sequence[int]
    gap: str
    right: Sequence[bool]

    def fits(self, cells: Sequence[Sequence[str]]) -> bool:
        """Say whether rows fit a terminal's lines, in few lines each."""
        width = sum(self.widths) + len(self.gap) * (len(self.widths) - 1)
        return width <= columns() and all(len(self.lines(row)) <= _MOST_LINES for row in cells)

    def lines(self, row: Sequence[str], *, at_end: bool = False) -> list[str]:
        """Return the lines of a row; shorter cells are in the first ones, or the last."""
        folded = [
            [cell] if len(cell) <= width else _folded(cell, width)
            for cell, width in zip(row, self.widths, strict=True)
        ]
        if at_end:
            most = max(map(len, folded))
            folded = [[""] * (most - len(cell)) + cell for cell in folded]
        return [
            self.gap.join(
                cell.rjust(width) if to_right else cell.ljust(width)
                for cell, width, to_right in zip(line, self.widths, self.right, strict=True)
            ).rstrip()
            for line in zip_longest(*folded, fillvalue="")
        ]

    def narrowed(self, least: Sequence[int], gap: str) -> _Layout:
        """Return a layout for a terminal's lines, no column narrower than its least width."""
        widths = list(self.widths)
        room = columns() - len(gap) * (len(widths) - 1)
        while sum(widths) > room:
            wide = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
            if widths[wide] <= least[wide]:
                break
            widths[wide] -= 1
        return _Layout(widths, gap, self.right)


def _layouts(cells: Sequence[Sequence[str]], whole: _Layout) -> Iterator[_Layout]:
    """Yield layouts, the best first: broken are words of headers before those of cells."""
    yield whole
    words = [max(map(_longest_word, column)) for column in zip(*cells, strict=True)]
    figures = [
        max(_longest_word(name), *map(len, column)) for name, *column in zip(*cells, strict=True)
    ]
    texts = [
        f if to_right else w for f, w, to_right in zip(figures, words, whole.right, strict=True)
    ]
    for least in (figures, texts):
        for gap in ("  ", " "):
            yield whole.narrowed(least, gap)


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _paragraph(names: Sequence[str], row: Sequence[str]) -> str:
    name_width = max(map(len, names))
    indent = " " * (name_width + 2)
    return "\n".join(
        styled(name.ljust(name_width), DIM) + filled(indent + cell, indent)[name_width:]
        for name, cell in zip(names, row, strict=True)
        if cell
    )


def filled(words: str, indent: str = "", stream: TextIO | None = None) -> str:
    """Return words in lines of the terminal's width, and of at most :data:`WIDTH`."""
    width = min(WIDTH, columns()) if (stream or sys.stdout).isatty() else WIDTH
    return "\n".join(_wrapped(words, width, indent))


def _wrapped(words: str, width: int, indent: str) -> list[str]:
    """Return words in lines, all but the first indented; none is broken, not even at hyphens.

    As `textwrap` does it, which takes longer to load than a plan to be printed.
    """
    lines: list[str] = []
    line, gap = "", -1
    for word in words.expandtabs().translate(_SPACES).split(" "):
        gap += 1
        if not word:
            continue
        room = width - (len(indent) if lines else 0)
        if len(line) + gap + len(word) <= room:
            line += " " * gap + word
        else:
            if line:
                lines.append(indent + line if lines else line)
            line = word
        gap = 0
    if line:
        lines.append(indent + line if lines else line)
    return lines


def columns() -> int:
    """Return how many characters a line of the terminal has; 80 where there is none."""
    return shutil.get_terminal_size().columns


def notes_block(warnings: Sequence[str]) -> list[str]:
    """Return the block of an answer's notes; none where there are no notes."""
    if not warnings:
        return []
    notes = [filled(f"Note: {note}", indent="  ") for note in warnings]
    return [styled("\n".join(notes), YELLOW)]


def percent(share: float | None) -> str:
    """Return a share in percent, never rounded up to all of it."""
    if share is None:
        return "-"
    percent = int(share * 1000) / 10 if 0.999 < share < 1 else share * 100
    return f"{percent:.1f} %"
