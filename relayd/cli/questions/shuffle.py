"""``relayd shuffle``: many transfers at once, the answer for people or as JSON."""

from __future__ import annotations

import argparse

from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from planner.shuffle.plan import ShufflePlan
from planner.shuffle.request import ShuffleRequest
from relayd.cli import text
from relayd.cli.questions import printing
from relayd.cli.text import filled

SHOWN_PAIRS = 8


def run(options: argparse.Namespace) -> int:
    """Answer one request."""
    return printing.ask_and_print(
        options, ShuffleRequest, lambda plan: human(plan, all_pairs=options.pairs)
    )


def human(plan: ShufflePlan, *, all_pairs: bool = False) -> str:
    """Return a plan for people: verdict and reason, the comparison, the pairs, what would help."""
    verdict = (
        "Send every pair direct, at these rates."
        if plan.verdict == "direct"
        else "Relay a part of it."
    )
    senders = {pair.src for pair in plan.pairs} | {pair.dst for pair in plan.pairs}
    head = f"{len(plan.pairs)} pairs among {len(senders)} regions, {volume_text(plan.volume_gb)}"
    blocks = [
        printing.headed(verdict, head),
        filled(plan.reason),
        printing.ways_table(
            [
                ("all at once, direct", plan.equal_share),
                ("best direct rates", plan.direct),
                (f"chosen: {plan.verdict}", plan),
            ]
        ),
        _pairs(plan, all_pairs=all_pairs),
        filled(f"VMs: {printing.vms_text(plan.vms)}."),
    ]
    if plan.frontier:
        rows = [
            (
                duration_text(point.duration_s),
                usd_text(point.cost_usd.total),
                f"{point.relayed_share:.0%}",
                str(sum(point.vms.values())),
            )
            for point in plan.frontier
        ]
        blocks.append(text.table(("frontier", "$ total", "relayed", "VMs"), rows))
    blocks += printing.more_vms_block(plan.one_more_vm, "at least {} sooner")
    bounds = printing.bounds_text(plan.duration_s_low, plan.duration_s_high)
    blocks.append(filled(f"{bounds} Snapshot {printing.snapshot_text(plan.snapshot)}"))
    return printing.with_notes(blocks, plan)


def _pairs(plan: ShufflePlan, *, all_pairs: bool) -> str:
    slowest = sorted(plan.pairs, key=lambda pair: -pair.duration_s)
    shown = plan.pairs if all_pairs else slowest[:SHOWN_PAIRS]
    rows = []
    for pair in shown:
        paths = ", ".join(
            printing.path_text(path.regions, path.addresses)
            + (f" {path.share:.0%}" if len(pair.paths) > 1 else "")
            for path in pair.paths
        )
        rows.append(
            (
                f"{pair.src} -> {pair.dst}",
                volume_text(pair.volume_gb),
                gbps_text(pair.throughput_gbps),
                duration_text(pair.duration_s),
                str(sum(path.connections for path in pair.paths)),
                paths,
            )
        )
    title = "pair" if all_pairs or len(shown) == len(plan.pairs) else "last pairs"
    table = text.table((title, "volume", "Gbit/s", "time", "connections", "paths"), rows)
    hidden = len(plan.pairs) - len(shown)
    return table + (f"\n{hidden:,} more end sooner; --pairs lists all." if hidden else "")
