"""Tables, paragraphs and emphasis for terminals, without the control characters of others.

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
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import chain, zip_longest
from math import inf
from textwrap import wrap
from typing import Any, TextIO, cast

from planner.model.units import duration_text, gbps_text, usd_text, volume_text

BOLD, DIM, GREEN, YELLOW = "1", "2", "32", "33"
WIDTH = 96
_MOST_LINES = 4
_GAP = "  "

# C0 but tab and line feed, DEL, C1, what changes the reading order (UAX 9), what else ends lines,
# and halves of surrogate pairs, which no encoding has.
_UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
# Tells our own escape sequences from those in names: no one can know it beforehand.
_ESCAPE = f"\033{os.urandom(8).hex()}"


def neutralised(text: str) -> str:
    r"""Return text with control characters as escapes such as ``\u001b``."""
    if text.replace("\n", "").replace("\t", "").isprintable():  # as nearly always
        return text
    return re.sub(_UNSAFE, lambda found: f"\\u{ord(found[0]):04x}", text)


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


class Progress:
    """Progress on standard error: one line that changes; elsewhere than on a terminal, lines.

    Parameters
    ----------
    line_every_s : float
        After which there is a line where there is no terminal; by default there is none.
    """

    def __init__(self, line_every_s: float = inf) -> None:
        self._terminal = sys.stderr.isatty()
        self._every_s = 0.2 if self._terminal else line_every_s
        self._last_s, self._last_stage = -inf, ""
        self._drawn = False

    def show(self, line: str, stage: str = "") -> None:
        """Show a line: at once for a new stage, and otherwise not too often."""
        now_s = time.monotonic()
        is_new = stage != self._last_stage
        if self._every_s == inf or (now_s - self._last_s < self._every_s and not is_new):
            return
        self._last_s, self._last_stage = now_s, stage
        sys.stderr.write(redrawn(line[:118]) if self._terminal else f"{line}\n")
        sys.stderr.flush()
        self._drawn = self._terminal

    def end(self) -> None:
        """Clear the line that changes."""
        if self._drawn:
            sys.stderr.write(redrawn())
            sys.stderr.flush()
            self._drawn = False


def redrawn(line: str = "") -> str:
    """Return the text that overwrites the terminal's present line."""
    return f"{_ESCAPE}[G{_ESCAPE}[K{line}"


def formula_safe(cell: str) -> str:
    """Return a text cell of CSV that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _cell(text: str) -> str:
    return neutralised(text.replace("\t", "\\u0009").replace("\n", "\\u000a"))


def styled(text: str, style: str) -> str:
    """Return text in a style, or as it is.

    That depends on standard output and on what the user wants (no-color.org).
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty():
        return text
    return f"{_ESCAPE}[{style}m{text}{_ESCAPE}[0m"


_BY_UNIT: dict[str, Callable[[Any], str]] = {
    "gbps": gbps_text,
    "s": duration_text,
    "gb": volume_text,
    "usd": lambda usd: usd_text(usd).replace("$", ""),  # its header has the sign
    "ms": "{:.0f} ms".format,
    "share": "{:.0%}".format,
    "gain": "{:.2f}x".format,
    "ratio": "{:.2f}x".format,
}


def figure(of: Any, field: str) -> str:
    """Return a field of an object or a mapping as text, by the unit that its name ends with.

    Fields may be dotted; ``-`` stands for None and for nothing, and counts are summed up. After a
    colon there may be a format, as in ``rtt_ms:.1f`` or ``clock_s:{:+.2f} s``; ``link`` is both
    ends of one.
    """
    field, _, style = field.partition(":")
    if field == "link":
        return link(of.src, of.dst, getattr(of, "address", None))
    for name in field.split("."):
        of = of.get(name) if isinstance(of, Mapping) else getattr(of, name)
    if of is None or of in ("", (), []):
        return "-"
    if style:
        return style.format(of) if "{" in style else format(of, style)
    if isinstance(of, Mapping):
        return str(sum(of.values()))
    if isinstance(of, (list, tuple)):
        return ", ".join(map(str, of))
    unit = re.search(rf"(?:^|[_.])({'|'.join(_BY_UNIT)})(_low|_high)?(\.\w+)?$", field)
    if unit and "_per_" not in field and not isinstance(of, str):
        return _BY_UNIT[unit[1]](of)
    return f"{of:.4g}" if isinstance(of, float) else str(of)


def table_of(
    items: Iterable[Any], columns: str, *, left: bool = False, **cells: Callable[[Any], str]
) -> str:
    """Return a table of items.

    Parameters
    ----------
    items : iterable
        Where there are none, neither is there a table.
    columns : str
        Such as ``"path | time=duration_s"``: a header and its field for :func:`figure`, or what
        is both.
    left : bool
        Whether all columns are words, and not the first alone.
    **cells
        Functions of an item to a cell, in place of :func:`figure`.
    """
    split = [column.strip().partition("=") for column in columns.split("|")]
    fields = [field or header for header, _, field in split]
    rows = [
        [cells[field](one) if field in cells else figure(one, field) for field in fields]
        for one in items
    ]
    return table([header for header, *_ in split], rows, left=left) if rows else ""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: bool = False) -> str:
    """Return rows under a header: the first column to the left, figures to the right.

    Where a terminal is too narrow, words are below each other; where that does not suffice, each
    row is a paragraph, as ``psql`` prints it. Lines that a terminal breaks can't be read, and what
    is cut off is missed.
    """
    right = [False] + [not left] * (len(header) - 1)
    names, *cells = [[_cell(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    if cells and sys.stdout.isatty():
        # Figures are not broken; words are, where they end.
        least = [
            max(_longest_word(name), *map(len if to_right else _longest_word, column))
            for to_right, name, *column in zip(right, names, *cells, strict=True)
        ]
        while sum(widths) + len(_GAP) * (len(widths) - 1) > columns():
            spare = [width - most for width, most in zip(widths, least, strict=True)]
            if not max(spare):
                return _paragraphs(names, cells)
            widths[spare.index(max(spare))] -= 1
    head, *body = [
        [
            [c] if len(c) <= w else wrap(c, w, break_on_hyphens=False)
            for c, w in zip(row, widths, strict=True)
        ]
        for row in (names, *cells)
    ]
    if max((len(lines) for row in body for lines in row), default=0) > _MOST_LINES:
        return _paragraphs(names, cells)
    alignments = [str.rjust if to_right else str.ljust for to_right in right]
    most = max(map(len, head), default=0)
    head = [[""] * (most - len(lines)) + lines for lines in head]

    def shown(row: Sequence[Sequence[str]]) -> list[str]:
        lines = [
            [align(c, w) for align, c, w in zip(alignments, line, widths, strict=True)]
            for line in zip_longest(*row, fillvalue="")
        ]
        return [_GAP.join(line).rstrip() for line in lines]

    return "\n".join([*(styled(line, DIM) for line in shown(head)), *chain(*map(shown, body))])


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _paragraphs(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    width = max(map(len, names))
    indent = " " * (width + 2)
    blocks = [
        [
            styled(name.ljust(width), DIM) + filled(indent + cell, indent)[width:]
            for name, cell in zip(names, row, strict=True)
            if cell
        ]
        for row in rows
    ]
    return "\n\n".join(map("\n".join, blocks))


def filled(words: str, indent: str = "", stream: TextIO | None = None) -> str:
    """Return words in lines of the terminal's width, and of at most :data:`WIDTH`."""
    width = min(WIDTH, columns()) if (stream or sys.stdout).isatty() else WIDTH
    lines = wrap(
        words, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


def columns() -> int:
    """Return the width of the terminal in characters; 80 where there is none."""
    return shutil.get_terminal_size().columns


def notes_block(warnings: Sequence[str]) -> list[str]:
    """Return the block of an answer's notes; none where there are no notes."""
    if not warnings:
        return []
    notes = [filled(f"Note: {note}", indent="  ") for note in warnings]
    return [styled("\n".join(notes), YELLOW)]


def link(src: str, dst: str, address: str | None, to: str = " -> ") -> str:
    """Return a link, or the VM at its source, and whether it is over private addresses."""
    ends = f"{src}{to}{dst}" if dst else src
    return f"{ends} (private)" if address == "private" else ends


def percent(share: float | None) -> str:
    """Return a share in percent, never rounded up to all of it."""
    if share is None:
        return "-"
    percent = int(share * 1000) / 10 if 0.999 < share < 1 else share * 100
    return f"{percent:.1f} %"
