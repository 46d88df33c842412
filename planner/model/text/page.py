"""Lays out texts for people: paragraphs, lists and tables of a given width, and emphasis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from textwrap import wrap
from typing import Any

from planner.model.text.figures import figure, neutralised

BOLD, DIM, GREEN, YELLOW = "1", "2", "32", "33"
WIDTH = 96
_MOST_LINES = 4
_GAP = "  "


def cells_of(
    items: Iterable[Any], columns: str, **cells: Callable[[Any], str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the header and the rows of :meth:`TextPage.table_of`."""
    split = [column.strip().partition("=") for column in columns.split("|")]
    fields = [field or header for header, _, field in split]
    rows = tuple(
        tuple(cells[field](one) if field in cells else figure(one, field) for field in fields)
        for one in items
    )
    return tuple(header for header, *_ in split), rows


@dataclass(frozen=True, slots=True)
class TextPage:
    """Where a text is to be shown.

    Attributes
    ----------
    columns : int | None
        Width of a terminal in characters, which tables fit in; None without such a limit.
    escape : str
        Begins escape sequences of styles; empty for plain text.
    """

    columns: int | None = None
    escape: str = ""

    def styled(self, text: str, style: str) -> str:
        """Return text in a style (SGR parameters), or as it is where the page has no styles."""
        if not self.escape:
            return text
        return f"{self.escape}[{style}m{text}{self.escape}[0m"

    def filled(self, words: str, indent: str = "") -> str:
        """Return words in lines of the page's width, and of at most :data:`WIDTH`."""
        lines = wrap(
            words,
            WIDTH if self.columns is None else min(WIDTH, self.columns),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n".join(lines)

    def listed(self, title: str, lines: Iterable[str]) -> str:
        """Return a list under a title; nothing where the list is empty."""
        items = [self.filled(f"- {line}", indent="  ") for line in lines]
        return "\n".join([self.styled(title, BOLD), *items]) if items else ""

    def notes(self, warnings: Sequence[str]) -> list[str]:
        """Return the block of an answer's notes; none where there are no notes."""
        if not warnings:
            return []
        notes = [self.filled(f"Note: {note}", indent="  ") for note in warnings]
        return [self.styled("\n".join(notes), YELLOW)]

    def table_of(
        self,
        items: Iterable[Any],
        columns: str,
        *,
        left: bool = False,
        **cells: Callable[[Any], str],
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
        header, rows = cells_of(items, columns, **cells)
        return self.table(header, rows, left=left) if rows else ""

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], *, left: bool = False
    ) -> str:
        """Return rows under a header: the first column to the left, figures to the right.

        Where a terminal is too narrow, words are below each other; where that does not suffice,
        each row is a paragraph, as ``psql`` prints it. Lines that a terminal breaks can't be read,
        and what is cut off is missed.
        """
        right = [False] + [not left] * (len(header) - 1)
        names, *cells = [[_cell(cell) for cell in row] for row in (header, *rows)]
        widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
        if cells and self.columns is not None:
            # Figures are not broken; words are, where they end.
            least = [
                max(_longest_word(name), *map(len if to_right else _longest_word, column))
                for to_right, name, *column in zip(right, names, *cells, strict=True)
            ]
            while sum(widths) + len(_GAP) * (len(widths) - 1) > self.columns:
                spare = [width - most for width, most in zip(widths, least, strict=True)]
                if not max(spare):
                    return self._paragraphs(names, cells)
                widths[spare.index(max(spare))] -= 1
        head, *body = [
            [
                [c] if len(c) <= w else wrap(c, w, break_on_hyphens=False)
                for c, w in zip(row, widths, strict=True)
            ]
            for row in (names, *cells)
        ]
        if max((len(lines) for row in body for lines in row), default=0) > _MOST_LINES:
            return self._paragraphs(names, cells)
        alignments = [str.rjust if to_right else str.ljust for to_right in right]
        most = max(map(len, head), default=0)
        head = [[""] * (most - len(lines)) + lines for lines in head]

        def shown(row: Sequence[Sequence[str]]) -> list[str]:
            lines = [
                [align(c, w) for align, c, w in zip(alignments, line, widths, strict=True)]
                for line in zip_longest(*row, fillvalue="")
            ]
            return [_GAP.join(line).rstrip() for line in lines]

        return "\n".join(
            [*(self.styled(line, DIM) for line in shown(head)), *chain(*map(shown, body))]
        )

    def _paragraphs(self, names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        width = max(map(len, names))
        indent = " " * (width + 2)
        blocks = [
            [
                self.styled(name.ljust(width), DIM) + self.filled(indent + cell, indent)[width:]
                for name, cell in zip(names, row, strict=True)
                if cell
            ]
            for row in rows
        ]
        return "\n\n".join(map("\n".join, blocks))


PLAIN = TextPage()
"""Of plain text, however wide tables are."""


def _cell(text: str) -> str:
    return neutralised(text.replace("\t", "\\u0009").replace("\n", "\\u000a"))


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)
