"""How figures, tables and emphasis look in a terminal."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from math import isfinite
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


def duration(seconds: float) -> str:
    """Return a duration as a person says it: ``48 s``, ``13 min 24 s``, ``2 h 05 min``."""
    if not isfinite(seconds):
        return "forever"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{seconds / 86400:.1f} days"


def volume(volume_gb: float) -> str:
    """Return a volume in a fitting unit."""
    for unit, size in (("PB", 1e6), ("TB", 1e3), ("GB", 1.0), ("MB", 1e-3)):
        if volume_gb >= size:
            return f"{volume_gb / size:.4g} {unit}"
    return f"{volume_gb * 1e6:.4g} kB"


def usd(amount: float) -> str:
    """Return an amount of dollars with cents; small ones with more digits."""
    if amount and abs(amount) < 0.1:
        return f"{amount:.4f}"
    return f"{amount:,.2f}"


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
