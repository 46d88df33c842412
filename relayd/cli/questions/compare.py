"""``relayd compare``: candidates for a use in order, for people or as JSON."""

from __future__ import annotations

import argparse

from planner.comparison.plan import Ranked, Ranking
from planner.comparison.request import ComparisonRequest
from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from relayd.cli import text
from relayd.cli.questions import printing
from relayd.cli.text import filled


def run(options: argparse.Namespace) -> int:
    """Answer one request."""
    return printing.ask_and_print(options, ComparisonRequest, human)


def human(comparison: Ranking) -> str:
    """Return a comparison for people: the best and why, then the others in order."""
    request, best = comparison.request, comparison.candidates[0]
    regions, volume = request["regions"], volume_text(request["volume_gb"])
    use = f"{volume} {request['direction']} {'each of ' * (len(regions) > 1)}{', '.join(regions)}"
    header = (
        *("", "region", "VM type", "takes", "Gbit/s", "$", "RTT, ms", "known by"),
        *(() if best.probability is None else ("rank", "best")),
    )
    blocks = [
        printing.headed(f"{best.region} ranks first of {comparison.compared}.", use),
        filled(comparison.reason),
        text.left_table(header, [_row(one) for one in comparison.candidates]),
    ]
    if len(comparison.providers) > 1:
        named = (f"{one.provider} {one.region} ({one.rank})" for one in comparison.providers)
        blocks.append(filled(f"The best of each provider, with its rank: {', '.join(named)}."))
    bounds = printing.bounds_text(best.duration_s_low, best.duration_s_high)
    snapshot = printing.snapshot_text(comparison.snapshot)
    blocks.append(filled(f"{best.region}: limited by {best.limit}. {bounds} Snapshot {snapshot}"))
    return printing.with_notes(blocks, comparison)


def _row(one: Ranked) -> tuple[str, ...]:
    cells = (
        str(one.rank),
        one.region,
        one.vm_type.partition(":")[2] or "-",
        duration_text(one.duration_s),
        gbps_text(one.throughput_gbps),
        usd_text(one.cost_usd.total),
        f"{one.rtt_ms:.0f}",
        one.source,
    )
    if one.probability is None:
        return cells
    ranks = f"{one.rank_low}-{one.rank_high}" if one.rank_low != one.rank_high else one.rank_low
    return (*cells, str(ranks), f"{one.probability:.0%}")
