"""One point of the paper, and the result here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from probes.analysis.comparisons import latency_gains
from probes.analysis.evidence import Record
from scripts.console_blocks import ROOT

Floats: TypeAlias = NDArray[np.float64]

PAGE = ROOT / "scripts" / "reproduce" / "results.md"
PROVIDERS = {"aws": "AWS", "azure": "Azure", "gcp": "GCP"}


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


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of a point's difference from the paper, with its evidence.

    Attributes
    ----------
    points : str
        Which points of the tables.
    found : str
        What was measured, or at what other setting.
    because : str
        What follows from it.
    """

    points: str
    found: str
    because: str

    @property
    def row(self) -> str:
        """The row of a Markdown table."""
        return f"| {self.points} | {self.found} | {self.because} |"


def rows(found: Iterable[Point | Cause]) -> list[str]:
    """Return the rows of a table."""
    return [one.row for one in found]


def unlike_flows(found: Record, where: str, basis: str) -> Point:
    """Return the point about the rates of single flows, by their distribution."""
    ratio = found["maximum"] / found["minimum"]
    return Point(
        "One flow is heterogeneous: near pairs of EC2 regions up to so many times as fast as far "
        "ones (3.2.1, Figure 1a)",
        "21x",
        f"{ratio:.0f}x{where}",
        ratio >= 10,
        "10x or more",
        basis,
    )


def relayed_flows(gains: Record, which: str, basis: str) -> Point:
    """Return the point about the gains of relays inside EC2 for one flow."""
    return Point(
        "Of EC2 pairs, so many gain 1.5x or more for one flow through an EC2 relay (3.2.1, Figure "
        f"1c){which}",
        "about 40 %",
        f"{gains['share_1_5']:.0%}",
        0.3 <= gains["share_1_5"] <= 0.5,
        "30 to 50 %",
        basis,
    )


def other_relays(gains: Record, which: str, basis: str) -> Point:
    """Return the point about the gains of relays of other clouds for one flow."""
    return Point(
        f"Relays of other clouds help one flow more, at most (3.2.1{which}",
        "up to 10x",
        f"{gains['share_1_5']:.0%} gain 1.5x, up to {gains['maximum']:.1f}x",
        gains["maximum"] >= 5,
        "5x or more for some pair",
        basis,
    )


def latency_points(rtt_ms: Floats, regions: Sequence[str], measured: str) -> list[Point]:
    """Return the points about round-trip times.

    Parameters
    ----------
    rtt_ms : array, shape (n, n)
    regions : sequence of str, length n
    measured : str
        What follows the number of pairs that they rest on.
    """
    ends = np.unravel_index(np.nanargmax(rtt_ms), rtt_ms.shape)
    longest_ms, far = rtt_ms[ends], " to ".join(regions[int(end)] for end in ends)
    found = latency_gains(rtt_ms)
    return [
        Point(
            "Round trips between remote regions take up to so long (3.3: Sao Paulo and Mumbai)",
            "390 ms",
            f"{longest_ms:.0f} ms ({far})",
            bool(300 <= longest_ms <= 450),
            "300 to 450 ms",
            f"{found['pairs']} {measured}",
        ),
        Point(
            "There is little room to improve latency by relaying (4)",
            "little",
            f"{found['share_1_1']:.0%} of pairs gain 10 % or more; median {found['median']:.2f}x, "
            f"most {found['maximum']:.1f}x",
            found["share_1_1"] <= 0.1,
            "10 % or more for at most 10 % of pairs",
            f"{found['pairs']} {measured}",
        ),
    ]
