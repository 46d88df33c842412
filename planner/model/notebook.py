"""HTML tables for notebooks: what ``_repr_html_`` of links, networks and matrices is made of."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

MOST_SHOWN = 10


def shortened(count: int) -> list[int | None]:
    """Return the rows to show, of so many; None stands for those left out in the middle."""
    if count <= MOST_SHOWN:
        return list(range(count))
    first = (MOST_SHOWN + 1) // 2
    return [*range(first), None, *range(count - (MOST_SHOWN - first), count)]


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
