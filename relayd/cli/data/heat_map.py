"""A matrix as coloured cells on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan

from relayd.cli import text
from relayd.tables.matrices import Matrix

# Of the 256 colours of a terminal (https://en.wikipedia.org/wiki/ANSI_escape_code#8-bit): from dark
# to light, so that the order shows without colour vision; and the same without colours.
_COLOURS = ("17", "19", "25", "31", "37", "78", "149", "227")
_SHADES = (" .", "..", ":.", "::", "+:", "++", "#+", "##")
_NARROW_SHADES = ".:-=+*#@"


def heat_map(found: Matrix) -> str:
    """Return a legend, and a row for each source with two characters a destination.

    Classes hold equally many pairs. Where a terminal is too narrow, a destination has one
    character; where that does not suffice, blocks of destinations follow each other.
    """
    values = found.values.tolist()
    known = sorted(v for row in values for v in row if not isnan(v))
    names = list(found.regions)
    if not known:
        return "No pair has a value."
    bounds = [known[len(known) * k // len(_COLOURS)] for k in range(len(_COLOURS))]
    name_width = max(map(len, names))
    room = max(1, text.columns() - name_width - 1)
    width = 2 if 2 * len(names) <= room else 1
    lines = [*_legend(f"{found.metric} ({found.unit}):", bounds, known[-1], width), ""]
    for first in range(0, len(names), room // width):
        block = slice(first, first + room // width)
        if len(names[block]) < len(names):
            lines.append(f"To {names[block][0]} ... {names[block][-1]}:")
        for name, row in zip(names, values, strict=True):
            cells = "".join(
                " " * width if isnan(v) else _cell(_class_of(v, bounds), width) for v in row[block]
            )
            lines.append(f"{name.rjust(name_width)} {cells}".rstrip())
        lines.append("")
    told = "Rows send; columns receive, in the same order. `--format csv` has the figures."
    return "\n".join([*lines, text.filled(told)])


def _class_of(value: float, bounds: Sequence[float]) -> int:
    return max(k for k, least in enumerate(bounds) if value >= least)


def _cell(k: int, width: int) -> str:
    shade = _SHADES[k] if width == 2 else _NARROW_SHADES[k]
    return text.styled(" " * width, f"48;5;{_COLOURS[k]}", otherwise=shade)


def _legend(title: str, bounds: Sequence[float], most: float, width: int) -> list[str]:
    """Return lines with the title and each class, its colour before its values."""
    lines, used = [title], len(title)
    for k, (least, end) in enumerate(zip(bounds, [*bounds[1:], most], strict=True)):
        if end <= least and k < len(bounds) - 1:
            continue
        values = f"{least:.3g}-{end:.3g}"
        needed = 2 + width + 1 + len(values)
        if used + needed > text.columns():
            lines, used = [*lines, ""], 0
        lines[-1] += f"  {_cell(k, width)} {values}"
        used += needed
    return lines
