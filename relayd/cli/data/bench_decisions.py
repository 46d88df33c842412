"""``relayd bench-decisions``: planners compared on open data, for people or as JSON."""

from __future__ import annotations

import argparse
from pathlib import Path

from planner.model.errors import InputError
from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from relayd.backtesting.decisions.request import DecisionsRequest
from relayd.backtesting.decisions.result import DecisionsBenchmark, PlannerResult, SplitResult
from relayd.backtesting.decisions.running import compared
from relayd.cli import text
from relayd.cli.questions.asking import one_thread, request_from
from relayd.cli.text import filled, notes_block, percent

NAMES = {
    "direct": "always direct",
    "relay": "always the best relay",
    "expected": "best by expectation",
    "skyplane": "Skyplane (RON)",
    "relayd": "relayd",
    "hindsight": "hindsight",
}
KNOWN = {
    "tenth": "a tenth of the links is known",
    "quarter": "a quarter of the links is known",
    "half": "half of the links is known",
    "later": "all links are known, and judged by the later survey",
}


def run(options: argparse.Namespace) -> int:
    """Compare planners and print the table."""
    one_thread()
    request = request_from(options, DecisionsRequest)
    for name in (*options.files, *([options.later] if options.later else [])):
        if not Path(name).is_file():
            raise InputError("FILE", "is not a file that can be read", value=name)
    # Only now: NumPy reads how many threads it may use when it is first imported.
    found = compared(request, options.files, options.later, options.catalogue)
    print(found.model_dump_json(indent=2) if options.json else human(found))
    return 0


def human(found: DecisionsBenchmark) -> str:
    """Return the comparison as text."""
    head = (
        f"{found.regions} regions. Each decision: {volume_text(found.volume_gb)}, one VM a region, "
        f"{found.connections} connections, direct or one relay, objective {found.objective}."
    )
    by_time = found.objective == "time"
    tail = (
        "Right: relays or not, as hindsight does. Achieved: hindsight's "
        f"{'time' if by_time else 'cost plus time' if found.objective == 'value' else 'cost'} over "
        "the planner's; p10: its 10th percentile. Regret: what was lost against hindsight, "
        f"{'in seconds ' if by_time else ''}per dollar paid. In bounds: rates of chosen paths "
        "within the planner's bounds of 90 %."
    )
    return "\n\n".join(
        [
            filled(head),
            *(_split(split, by_time=by_time) for split in found.splits),
            filled(tail),
            *notes_block(found.warnings),
        ]
    )


def _split(split: SplitResult, *, by_time: bool) -> str:
    def row(one: PlannerResult) -> tuple[str, ...]:
        regret = duration_text(one.regret) if by_time else usd_text(one.regret)
        per_usd = f"{one.regret_per_usd:.2f} s" if by_time else f"{one.regret_per_usd:.4f}"
        return (
            NAMES.get(one.planner, one.planner),
            percent(one.relayed),
            percent(one.right),
            percent(one.achieved),
            percent(one.achieved_p10),
            gbps_text(one.throughput_gbps),
            usd_text(one.cost_usd),
            regret,
            per_usd,
            percent(one.coverage.share if one.coverage else None),
        )

    header = (
        f"split: {split.split}",
        "relayed",
        "right",
        "achieved",
        "p10",
        "Gbit/s",
        "$",
        "regret" if by_time else "$ regret",
        "per $",
        "in bounds",
    )
    told = (
        f"{KNOWN[split.split]}: {split.known:,} of {split.links:,}; {split.decisions:,} decisions"
    )
    return text.table(header, [row(one) for one in split.planners]) + "\n" + filled(told)
