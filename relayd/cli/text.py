"""How tables, paragraphs and emphasis look in a terminal."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from typing import TextIO

BOLD, DIM, GREEN, YELLOW = "1", "2", "32", "33"
WIDTH = 96


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return text in a style if the stream shows it and the user wants it (no-color.org)."""
    shown_on = stream or sys.stdout
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not shown_on.isatty():
        return text
    return f"\033[{style}m{text}\033[0m"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under a header: the first column to the left, figures to the right."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join([first, *rest]).rstrip())
    lines[0] = styled(lines[0], DIM)
    return "\n".join(lines)


def left_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of words under a header, all columns to the left."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells
    ]
    lines[0] = styled(lines[0], DIM)
    return "\n".join(lines)


def filled(words: str, indent: str = "") -> str:
    """Return words in lines of the terminal's width."""
    return textwrap.fill(
        words, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def notes_block(warnings: Sequence[str]) -> list[str]:
    """Return the block of an answer's notes; none where there are no notes."""
    if not warnings:
        return []
    notes = [filled(f"Note: {note}", indent="  ") for note in warnings]
    return [styled("\n".join(notes), YELLOW)]
