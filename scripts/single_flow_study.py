"""Prints the table of docs/single-flow.md: ``python -m scripts.single_flow_study``.

Needs the shared measurements (tests/shared_data.py). With a number, only every so many relays are
tried (6,000 take about an hour).
"""

from __future__ import annotations

import sys

from planner.fields.shared import DEFAULT_MARGIN
from tests.planner.single_flow.survey import (
    library_of_flows,
    library_of_relays,
    plan_of_flows,
    plan_of_relays,
    triples,
)

EVERY = 15
"""Relays of the survey that the page's table is of: one in so many."""


def rows(every: int) -> list[str]:
    """Return the rows of the page's table."""
    chosen = triples()[::every]
    found = {
        "flows, library": library_of_flows(),
        "flows, `relayd plan`": plan_of_flows(),
        "relays, library": library_of_relays(chosen),
        "relays, library, the relay tested by one other host": library_of_relays(
            chosen, one_into_relay=True
        ),
        "relays, `relayd plan`": plan_of_relays(chosen),
    }
    margin = DEFAULT_MARGIN
    found |= {
        f"relays, library, margin {margin:.0%}": library_of_relays(chosen, margin=margin),
        f"relays, `relayd plan`, margin {margin:.0%}": plan_of_relays(chosen, margin=margin),
    }
    return [
        f"| {' | '.join([name, f'{len(judged.held):,}', *judged.row()])} |"
        for name, judged in found.items()
    ]


if __name__ == "__main__":
    print(*rows(int(sys.argv[1]) if len(sys.argv) > 1 else EVERY), sep="\n")
