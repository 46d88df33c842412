"""HTML tables for notebooks: what ``_repr_html_`` of plans, networks and matrices is made of."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TypeAlias

MOST_SHOWN = 10

Table: TypeAlias = tuple[Sequence[str], Sequence[Sequence[str]]]
"""A header and rows."""


def shortened(count: int, most: int = MOST_SHOWN) -> list[int | None]:
    """Return which of so many rows to show; None stands for those left out in the middle."""
    if count <= most:
        return list(range(count))
    first = (most + 1) // 2
    return [*range(first), None, *range(count - (most - first), count)]


def html_table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with a caption; of many rows, the first and the last few.

    All texts are escaped.
    """
    shown = [
        ["…"] * len(header) if number is None else rows[number] for number in shortened(len(rows))
    ]
    head = f"<caption>{escape(caption, quote=False)}</caption><thead>{_row('th', header)}</thead>"
    return f"<table>{head}<tbody>{''.join(_row('td', row) for row in shown)}</tbody></table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell, quote=False)}</{tag}>' for cell in cells)}</tr>"
