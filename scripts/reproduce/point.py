"""One point of the paper, and the result here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.table import write_table
from probes.analysis.comparisons import distribution, latency_gains
from probes.analysis.evidence import Record
from scripts.console_blocks import ROOT

Floats: TypeAlias = NDArray[np.float64]

PAGE = ROOT / "scripts" / "reproduce" / "results.md"
PROVIDERS = {"aws": "AWS", "azure": "Azure", "gcp": "GCP"}


@dataclass(frozen=True, slots=True)
class Point:
    """The result here for a row of the page, which has the paper's claim and figure."""

    here: str
    agrees: bool  # by the criterion
    criterion: str  # what counts as agreeing, stated so that it could have failed
    rests_on: str  # how much was measured


def table(text: str, name: str) -> list[list[str]]:
    """Return the cells of each row of a table of the page."""
    body = text.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()[2:]]


def filled(text: str, name: str, found: Sequence[Point | str]) -> str:
    """Return the page with results, or what was measured of causes, in the rows of a table."""
    rows = []
    for one, cells in zip(found, table(text, name), strict=True):
        if isinstance(one, Point):
            verdict = "yes" if one.agrees else "**no**"
            row = [*cells[:2], one.here, one.criterion, verdict, one.rests_on]
        else:
            row = [cells[0], one, cells[2]]
        rows.append(f"| {' | '.join(row)} |")
    return write_table(text, name, rows)


def gains(
    rates: Floats, pairs: NDArray[np.bool_], relays: NDArray[np.bool_] | None = None
) -> Record:
    """Return the gains of some pairs from the best of some relays, of all by default."""
    known = np.nan_to_num(rates)
    np.fill_diagonal(known, 0.0)
    found = np.full(known.shape, np.nan)
    for src, dst in np.argwhere(pairs & (known > 0)):
        through = np.minimum(known[src], known[:, dst])
        best = through.max() if relays is None else through[relays].max()
        found[src, dst] = max(1.0, best / known[src, dst])
    return distribution(found)


# ---- points that lab and grid share -------------------------------------------------------------


def unlike_flows(found: Record, where: str, basis: str) -> Point:
    """Return the point about the rates of single flows, by their distribution."""
    ratio = found["maximum"] / found["minimum"]
    return Point(f"{ratio:.0f}x{where}", ratio >= 10, "10x or more", basis)


def relayed_flows(found: Record, basis: str) -> Point:
    """Return the point about the gains of relays inside EC2 for one flow."""
    share = found["share_1_5"]
    return Point(f"{share:.0%}", 0.3 <= share <= 0.5, "30 to 50 %", basis)


def other_relays(found: Record, basis: str) -> Point:
    """Return the point about the gains of relays of other clouds for one flow."""
    here = f"{found['share_1_5']:.0%} gain 1.5x, up to {found['maximum']:.1f}x"
    return Point(here, found["maximum"] >= 5, "5x or more for some pair", basis)


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
    basis = f"{found['pairs']} {measured}"
    room = (
        f"{found['share_1_1']:.0%} of pairs gain 10 % or more; median {found['median']:.2f}x, "
        f"most {found['maximum']:.1f}x"
    )
    little = found["share_1_1"] <= 0.1
    return [
        Point(
            f"{longest_ms:.0f} ms ({far})", bool(300 <= longest_ms <= 450), "300 to 450 ms", basis
        ),
        Point(room, little, "10 % or more for at most 10 % of pairs", basis),
    ]
