"""``relayd broadcast``: one volume to several regions, the answer for people or as JSON."""

from __future__ import annotations

import argparse
from typing import Any

from planner.broadcast.plan import BroadcastPlan
from planner.broadcast.request import BroadcastRequest
from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from relayd.cli import text
from relayd.cli.questions import printing
from relayd.cli.text import filled

SHOWN_TREES = 3
VERDICTS = {
    "direct": "Send each copy direct.",
    "tree": "Forward copies over one tree.",
    "trees": "Forward copies over {} trees at once.",
}


def run(options: argparse.Namespace) -> int:
    """Answer one request."""
    return printing.ask_and_print(
        options, BroadcastRequest, lambda plan: human(plan, all_trees=options.trees)
    )


def human(plan: BroadcastPlan, *, all_trees: bool = False) -> str:
    """Return a plan for people: verdict and reason, the comparison, the trees, what would help."""
    count = len(plan.destinations)
    head = (
        f"{plan.request['src']} to {count} destination{'s' if count > 1 else ''}, "
        f"{volume_text(plan.volume_gb)} each"
    )
    blocks = [
        printing.headed(VERDICTS[plan.verdict].format(len(plan.trees)), head),
        filled(plan.reason),
        _comparison(plan),
        _trees(plan, all_trees=all_trees),
        filled(f"VMs: {printing.vms_text(plan.vms)}."),
    ]
    if plan.frontier:
        rows = [
            (
                duration_text(point.duration_s),
                usd_text(point.cost_usd.total),
                str(point.trees),
                str(sum(point.vms.values())),
                ", ".join(point.relays) or "-",
            )
            for point in plan.frontier
        ]
        blocks.append(text.table(("frontier", "$ total", "trees", "VMs", "relays"), rows))
    blocks += printing.advice_block(plan.advice)
    bounds = printing.bounds_text(plan.duration_s_low, plan.duration_s_high)
    sure = f"{plan.confidence} {bounds} {_proof(plan)}"
    blocks.append(filled(f"{sure} Snapshot {printing.snapshot_text(plan.snapshot)}"))
    return printing.with_notes(blocks, plan)


def _proof(plan: BroadcastPlan) -> str:
    if plan.request["relays"] == "none":
        return "Without forwarding, there is no other plan."
    return (
        f"No plan ends before {duration_text(plan.bound_s)} or costs less than "
        f"${usd_text(plan.bound_usd)}; the best plan known is within {plan.gap:.1%} of the optimum."
    )


def _comparison(plan: BroadcastPlan) -> str:
    relay = plan.best_relay
    ways: list[tuple[str, Any]] = [
        ("each copy direct", plan.direct),
        (f"all through {relay.relays[0]}" if relay else "all through one region", relay),
        *([("best forwarding", plan.optimum)] if plan.optimum else []),
        (f"chosen: {plan.verdict}", plan),
    ]
    return printing.ways_table(ways)


def _trees(plan: BroadcastPlan, *, all_trees: bool) -> str:
    shown = plan.trees if all_trees else plan.trees[:SHOWN_TREES]
    tables = []
    for number_, tree in enumerate(shown, 1):
        rows = [
            (
                f"{link.src} -> {link.dst}"
                + printing.private_text((link.src, link.dst), (link.address,)),
                gbps_text(link.throughput_gbps),
                str(link.connections),
                f"{link.egress_usd_per_gb:.4g}",
            )
            for link in tree.legs
        ]
        title = f"tree {number_}, {tree.share:.0%} of the volume" if len(plan.trees) > 1 else "link"
        tables.append(text.table((title, "Gbit/s", "connections", "$/GB"), rows))
    hidden = len(plan.trees) - len(shown)
    if hidden:
        tables.append(f"{hidden} more; --trees lists all.")
    return "\n\n".join(tables)
