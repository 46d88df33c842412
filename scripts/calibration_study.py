"""Prints the table of docs/estimates.md on bounds: ``python -m scripts.calibration_study``.

The spreads of laws were fitted without the regions that are left out. The width is that of bounds
over the range of 90 % of tests, in the median of providers. Needs the shared measurements
(tests/shared_data.py), and half a minute.
"""

from __future__ import annotations

from statistics import median

from tests.probes.estimation.cross_validation import Judged, cross_validated

COUNTS = (9, 40, 200, 2000)
NAMES = ("inferred, January", "inferred, November", "measured, November")
FEWEST = 50
FAR = "beyond 200 ms"


def rows() -> list[str]:
    """Return the rows of the page's tables: of all links, and of each pair of providers."""
    found = {count: cross_validated(count) for count in COUNTS}
    pairs = found[COUNTS[0]].inferred.names()
    table = []
    for number, name in enumerate(NAMES):
        for count in COUNTS:
            judged = found[count][number]
            cells = [name, f"{count:,}", f"{len(judged.errors):,}", _covered(judged)]
            cells += [_covered(judged, far=True), *(_covered(judged, pair) for pair in pairs)]
            table.append([*cells, f"{judged.width():.1f}", f"{median(judged.errors):.1%}"])
    header = ["links", "measured", "tests", "all", FAR, *pairs, "width", "median error"]
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *table)]


def _covered(judged: Judged, pair: str | None = None, *, far: bool = False) -> str:
    coverage = judged.coverage(pair, far=far)
    if coverage.share is None or coverage.predictions < FEWEST:
        return ""
    return f"{coverage.share:.0%}"


if __name__ == "__main__":
    print(*rows(), sep="\n")
