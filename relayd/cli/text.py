"""How tables, paragraphs and emphasis look in a terminal, and what never reaches one.

Names come from catalogues, samples, files and services, and a terminal obeys the control characters
in them: it moves the cursor, changes its title or reverses the reading order. Everything that a
command prints passes :func:`safe_output`, which shows such characters as JSON escapes (RFC 8259,
7); in JSON they stay what they were.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

BOLD, DIM, GREEN, YELLOW = "1", "2", "32", "33"
WIDTH = 96

# C0 but tab and line feed, DEL, C1, what changes the reading order (UAX 9), what else ends lines,
# and halves of surrogate pairs, which no encoding has.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_ENDS_CELL = re.compile(r"[\t\n]")
# Tells our own escape sequences from those in names: nobody can know it beforehand.
_ESCAPE = f"\033{os.urandom(8).hex()}"


def neutralised(text: str) -> str:
    r"""Return text with control characters as escapes such as ``\u001b``."""
    return _UNSAFE.sub(_escaped, text)


@contextmanager
def safe_output() -> Iterator[None]:
    """Let no control character of others out of this process, by either standard stream."""
    with (
        redirect_stdout(cast(TextIO, _SafeStream(sys.stdout))),
        redirect_stderr(cast(TextIO, _SafeStream(sys.stderr))),
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
    return neutralised(_ENDS_CELL.sub(_escaped, text))


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
    """Return a table; where the terminal is narrower, a paragraph for each row, as ``psql`` does.

    Lines that a terminal breaks can't be read, and what is cut off is missed.
    """
    cells = [[_cell(cell) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    across = sys.stdout.isatty() and sum(widths) + 2 * (len(widths) - 1) > columns()
    if across and rows:
        name_width = max(map(len, cells[0]))
        paragraphs = [
            "\n".join(
                f"{styled(name.ljust(name_width), DIM)}  {cell}"
                for name, cell in zip(cells[0], row, strict=True)
                if cell
            )
            for row in cells[1:]
        ]
        return "\n\n".join(paragraphs)
    lines = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
    lines[0] = styled(lines[0], DIM)
    return "\n".join(lines)


def filled(words: str, indent: str = "") -> str:
    """Return words in lines of the terminal's width, and of at most :data:`WIDTH`."""
    width = min(WIDTH, columns()) if sys.stdout.isatty() else WIDTH
    return textwrap.fill(
        words, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


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
