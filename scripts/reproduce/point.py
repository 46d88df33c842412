"""One point of the paper, and what was found of it here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from scripts.console_blocks import ROOT

PAGE = ROOT / "docs" / "reproduction.md"


@dataclass(frozen=True, slots=True)
class Point:
    """A row of the page.

    Attributes
    ----------
    claim : str
        What the paper found, with where it says so.
    paper : str
        Its figure.
    here : str
        Ours.
    agrees : bool
        By the criterion.
    criterion : str
        What counts as agreeing, stated so that it could have failed.
    rests_on : str
        How much was measured.
    """

    claim: str
    paper: str
    here: str
    agrees: bool
    criterion: str
    rests_on: str

    @property
    def row(self) -> str:
        """The row of a Markdown table."""
        verdict = "yes" if self.agrees else "**no**"
        cells = (self.claim, self.paper, self.here, self.criterion, verdict, self.rests_on)
        return f"| {' | '.join(cells)} |"


def rows(points: Iterable[Point]) -> list[str]:
    """Return the rows of a table."""
    return [point.row for point in points]
