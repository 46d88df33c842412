"""A matrix as coloured cells on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

from relayd.cli import text

if TYPE_CHECKING:
    from relayd.tables.matrices import Matrix

# Of the 256 colours of a terminal (https://en.wikipedia.org/wiki/ANSI_escape_code#8-bit): from dark
# to light, so that the order shows without colour vision; and the same without colours.
_COLOURS = ("17", "19", "25", "31", "37", "78", "149", "227")
_SHADES = (" .", "..", ":.", "::", "+:", "++", "#+", "##")
_NONE = "  "


def heat_map(found: Matrix) -> str:
    """Return a legend, and a row of two characters a destination for each source.

    Classes hold equally many pairs. Where a terminal is too narrow, it says what to do.
    """
    values = found.values.tolist()
    known = sorted(v for row in values for v in row if not isnan(v))
    names = list(found.regions)
    name_width = max(map(len, names), default=0)
    needed = name_width + 1 + 2 * len(names)
    if needed > text.columns():
        return text.filled(
            f"{len(names)} regions need a terminal of {needed} columns, and this one has "
            f"{text.columns()}: widen it, or ask for --summary or --format csv."
        )
    if not known:
        return "No pair has a value."
    bounds = [known[len(known) * k // len(_COLOURS)] for k in range(len(_COLOURS))]
    lines = [f"{found.metric} ({found.unit}): {_legend(bounds, known[-1])}", ""]
    for name, row in zip(names, values, strict=True):
        cells = "".join(_NONE if isnan(v) else _cell(_class_of(v, bounds)) for v in row)
        lines.append(f"{name.rjust(name_width)} {cells}".rstrip())
    lines += ["", "Rows send; columns receive, in the same order. `--format csv` has the figures."]
    return "\n".join(lines)


def _class_of(value: float, bounds: Sequence[float]) -> int:
    return max(k for k, least in enumerate(bounds) if value >= least)


def _cell(k: int) -> str:
    return text.styled(_NONE, f"48;5;{_COLOURS[k]}", otherwise=_SHADES[k])


def _legend(bounds: Sequence[float], most: float) -> str:
    ends = [*bounds[1:], most]
    return "  ".join(
        f"{_cell(k)} {least:.3g}-{end:.3g}"
        for k, (least, end) in enumerate(zip(bounds, ends, strict=True))
        if end > least or k == len(bounds) - 1
    )
