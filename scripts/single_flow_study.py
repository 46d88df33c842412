"""Prints the rows of the survey in docs/single-flow.md: ``python -m scripts.single_flow_study``.

Needs the shared measurements (tests/shared_data.py). With a number, only every so many relays are
tried (6,000 take about an hour).
"""

from __future__ import annotations

import sys

from planner.fields.shared import DEFAULT_MARGIN
from tests.probes.estimation.survey import judged_flows, judged_relays, triples

EVERY = 15
"""Relays of the survey that the page's table is of: one in so many."""


def rows(every: int) -> list[str]:
    """Return the rows of the page's table."""
    chosen = triples()[::every]
    found = {
        "flows": judged_flows(),
        "relays": judged_relays(chosen),
        f"relays, margin {DEFAULT_MARGIN:.0%}": judged_relays(chosen, margin=DEFAULT_MARGIN),
    }
    return [
        f"| {' | '.join([name, f'{len(judged.held):,}', *judged.row()])} |"
        for name, judged in found.items()
    ]


if __name__ == "__main__":
    print(*rows(int(sys.argv[1]) if len(sys.argv) > 1 else EVERY), sep="\n")
