"""Prints the table of docs/estimates.md on bounds: ``python -m scripts.calibration_study``.

Needs the shared measurements (tests/shared_data.py), and some minutes.
"""

from __future__ import annotations

from statistics import median

from tests.probes.estimation.cross_validation import Judged, cross_validated

COUNTS = (9, 40, 200)
NAMES = ("inferred, January", "inferred, November", "measured, November")
FEWEST = 50


def rows() -> list[str]:
    """Return the rows of the page's tables: of all links, and of each pair of providers."""
    found = {count: cross_validated(count) for count in COUNTS}
    pairs = sorted(found[COUNTS[0]].inferred.held)
    table = []
    for number, name in enumerate(NAMES):
        for count in COUNTS:
            judged = found[count][number]
            cells = [name, str(count), f"{len(judged.errors):,}", _covered(judged)]
            cells += [_covered(judged, pair) for pair in pairs]
            table.append([*cells, f"{median(judged.errors):.1%}"])
    header = ["links", "measured", "tests", "all", *pairs, "median error"]
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *table)]


def _covered(judged: Judged, pair: str | None = None) -> str:
    coverage = judged.coverage(pair)
    if coverage.share is None or coverage.predictions < FEWEST:
        return ""
    return f"{coverage.share:.0%}"


if __name__ == "__main__":
    print(*rows(), sep="\n")
