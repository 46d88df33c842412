"""The commands that ask, and how answers look to people; of transfers and schedules elsewhere."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from planner.broadcast.plan import BroadcastPlan
from planner.comparison.plan import Ranked, Ranking
from planner.model.answer import Bounded
from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.replanning.plan import Continuation, Replan
from planner.schedule.plan import SchedulePlan
from planner.shuffle.plan import ShufflePlan
from relayd.cli import text
from relayd.cli.options import wan_of
from relayd.cli.questions import printing
from relayd.cli.questions.options import one_thread, request_from
from relayd.cli.questions.schedule import schedule_text
from relayd.cli.text import filled


def run(options: argparse.Namespace) -> int:
    """Ask what the options say, and print the answer: as JSON, or as text for people."""
    one_thread()
    answer = wan_of(options).ask(request_from(options, options.request))
    if options.json:
        print(answer.model_dump_json(indent=2))
    else:
        print(_TEXTS[type(answer)](answer, options))
    return 0


# --- broadcasts -----------------------------------------------------------------------------------

SHOWN_TREES = 3
VERDICTS = {
    "direct": "Send each copy direct.",
    "tree": "Forward copies over one tree.",
    "trees": "Forward copies over {} trees at once.",
}


def broadcast_text(plan: BroadcastPlan, *, all_trees: bool = False) -> str:
    """Return a plan for people: verdict and reason, the comparison, the trees, what would help."""
    count = len(plan.destinations)
    head = (
        f"{plan.request['src']} to {count} destination{'s' if count > 1 else ''}, "
        f"{volume_text(plan.volume_gb)} each"
    )
    blocks = [
        printing.headed(VERDICTS[plan.verdict].format(len(plan.trees)), head),
        filled(plan.reason),
        printing.ways_table(_broadcast_ways(plan)),
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


def _broadcast_ways(plan: BroadcastPlan) -> list[tuple[str, Any]]:
    relay = plan.best_relay
    return [
        ("each copy direct", plan.direct),
        (f"all through {relay.relays[0]}" if relay else "all through one region", relay),
        *([("best forwarding", plan.optimum)] if plan.optimum else []),
        (f"chosen: {plan.verdict}", plan),
    ]


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


# --- shuffles -------------------------------------------------------------------------------------

SHOWN_PAIRS = 8


def shuffle_text(plan: ShufflePlan, *, all_pairs: bool = False) -> str:
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


# --- placements -----------------------------------------------------------------------------------


def reduce_text(placement: ReducePlacement) -> str:
    """Return where to reduce, for people."""
    regions = len(placement.fractions)
    head = f"Reduce in {regions} region{'' if regions == 1 else 's'}."
    names = list(dict.fromkeys(r for option in placement.options for r in option.fractions))
    columns = [option.name for option in placement.options]
    rows = [
        (name, *(f"{option.fractions.get(name, 0.0):.1%}" for option in placement.options))
        for name in names
    ]
    rows += [
        ("promised", *(duration_text(option.promised_s) for option in placement.options)),
        ("really takes", *(duration_text(option.duration_s) for option in placement.options)),
        ("moved", *(volume_text(option.moved_gb) for option in placement.options)),
        ("egress, USD", *(usd_text(option.cost_usd.egress) for option in placement.options)),
        ("total, USD", *(usd_text(option.cost_usd.total) for option in placement.options)),
    ]
    planned = f"planned with {placement.links} links"
    bounds = printing.bounds_text(placement.duration_s_low, placement.duration_s_high)
    blocks = [
        printing.headed(head, f"{volume_text(placement.shuffle_gb)} to shuffle, {planned}"),
        filled(placement.reason),
        text.table(("", *columns), rows),
        filled(f"VMs: {printing.vms_text(placement.vms)}."),
        *printing.more_vms_block(placement.one_more_vm, "{} sooner"),
        filled(f"{bounds} Snapshot {printing.snapshot_text(placement.snapshot)}"),
    ]
    return printing.with_notes(blocks, placement)


def tasks_text(placement: TaskPlacement) -> str:
    """Return where to run tasks, for people."""
    rows = [
        (
            vm.id,
            vm.region,
            f"{vm.cpus_used:g}/{vm.cpus:g}",
            volume_text(vm.sent_gb) if vm.sent_gb else "-",
            volume_text(vm.received_gb) if vm.received_gb else "-",
            duration_text(vm.busy_s),
            vm.limit or "-",
            ", ".join(vm.tasks) or "-",
        )
        for vm in placement.vms
    ]
    header = ("VM", "region", "CPUs", "sends", "receives", "busy", "limit", "tasks")
    cost = placement.cost_usd
    blocks = [
        text.styled(f"All exchanged in {duration_text(placement.duration_s)}.", text.BOLD),
        filled(placement.reason),
        text.left_table(header, rows),
        filled(
            f"{volume_text(placement.moved_gb) if placement.moved_gb else 'Nothing'} crosses "
            f"between VMs, {volume_text(placement.local_gb) if placement.local_gb else 'nothing'} "
            f"stays inside one. {usd_text(cost.egress)} USD egress and {usd_text(cost.vm)} USD VMs."
        ),
        filled(f"Snapshot {printing.snapshot_text(placement.snapshot)}"),
    ]
    return printing.with_notes(blocks, placement)


# --- comparisons ----------------------------------------------------------------------------------


def comparison_text(comparison: Ranking) -> str:
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
        text.left_table(header, [_ranked(one) for one in comparison.candidates]),
    ]
    if len(comparison.providers) > 1:
        named = (f"{one.provider} {one.region} ({one.rank})" for one in comparison.providers)
        blocks.append(filled(f"The best of each provider, with its rank: {', '.join(named)}."))
    bounds = printing.bounds_text(best.duration_s_low, best.duration_s_high)
    snapshot = printing.snapshot_text(comparison.snapshot)
    blocks.append(filled(f"{best.region}: limited by {best.limit}. {bounds} Snapshot {snapshot}"))
    return printing.with_notes(blocks, comparison)


def _ranked(one: Ranked) -> tuple[str, ...]:
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


# --- re-planning ----------------------------------------------------------------------------------


def replan_text(answer: Replan) -> str:
    """Return an answer for people: verdict and reason, both ways, what changing takes."""
    verdict = "Keep to the plan." if answer.verdict == "keep" else "Change the plan."
    rate = ""
    if answer.observed_gbps is not None and answer.planned_gbps is not None:
        rate = (
            f", at {gbps_text(answer.observed_gbps)} Gbit/s "
            f"(planned: {gbps_text(answer.planned_gbps)})"
        )
    head = (
        f"{answer.kind} {answer.plan_id}, {volume_text(answer.remaining_gb)} left after "
        f"{duration_text(answer.elapsed_s)}{rate}"
    )
    blocks = [printing.headed(verdict, head), filled(answer.reason), _ways(answer)]
    if answer.cost_of_change:
        blocks.append(filled(_cost_of_change(answer)))
    if answer.verdict == "change":
        blocks.append(filled("--json has the new plan, under `plan`."))
    now = printing.snapshot_text(answer.snapshot)
    blocks.append(filled(f"Planned on snapshot {answer.planned_on}; now snapshot {now}"))
    return printing.with_notes(blocks, answer)


def _ways(answer: Replan) -> str:
    def row(name: str, way: Continuation | None) -> tuple[str, ...]:
        if way is None:
            return (name, *["-"] * 4)
        bounds = f"{duration_text(way.duration_s_low)} to {duration_text(way.duration_s_high)}"
        cost = way.cost_usd
        return (
            name,
            duration_text(way.duration_s),
            bounds,
            usd_text(cost.egress),
            usd_text(cost.vm),
        )

    rows = [row("keep", answer.keep), row("change", answer.change)]
    return text.table(("from now on", "time", "bounds", "$ egress", "$ VM"), rows)


def _cost_of_change(answer: Replan) -> str:
    change, gain = answer.cost_of_change, answer.gain
    assert change is not None
    assert gain is not None
    parts = []
    if change.vms_to_start:
        vms = printing.vms_text(change.vms_to_start)
        parts.append(f"start {vms} ({duration_text(change.wait_s)}, the old plan goes on)")
    if change.vms_to_stop:
        parts.append(f"stop {printing.vms_text(change.vms_to_stop)}")
    if change.ramp_up_s:
        parts.append(f"{duration_text(change.ramp_up_s)} to get new paths up to speed")
    what = "; ".join(parts) if parts else "nothing to start or to wait for"
    return (
        f"Changing takes: {what}; ${usd_text(change.usd)} in all. Gain {_range(gain)}; "
        f"{answer.needed_gain:.2f}x at the low bound are needed."
    )


def _range(of: Bounded) -> str:
    return f"{of.expected:.2f}x ({of.low:.2f}x to {of.high:.2f}x)"


_TEXTS: Mapping[type, Callable[[Any, argparse.Namespace], str]] = {
    ShufflePlan: lambda plan, options: shuffle_text(plan, all_pairs=options.pairs),
    BroadcastPlan: lambda plan, options: broadcast_text(plan, all_trees=options.trees),
    SchedulePlan: lambda plan, options: schedule_text(plan, periods=options.periods),
    ReducePlacement: lambda placement, _: reduce_text(placement),
    TaskPlacement: lambda placement, _: tasks_text(placement),
    Ranking: lambda comparison, _: comparison_text(comparison),
    Replan: lambda answer, _: replan_text(answer),
}
"""By class of answer."""
