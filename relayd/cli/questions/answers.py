"""The commands that ask, and the text of answers for people; that of schedules is elsewhere."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from planner.broadcast.plan import BroadcastPlan
from planner.comparison.plan import Ranked, Ranking
from planner.fields.kinds import assignments
from planner.model.answer import Answer
from planner.model.errors import InputError
from planner.model.units import chance_text, duration_text, gbps_text, usd_text, volume_text
from planner.placement.plan import ReducePlacement, TaskPlacement
from planner.replanning.plan import Replan
from planner.schedule.plan import SchedulePlan
from planner.shuffle.plan import PairPlan, ShufflePlan
from planner.transfer.plan import Exploration, Plan, RelayOption
from planner.transfer.request import TransferRequest
from relayd.cli.options import wan_of, whole_number
from relayd.cli.questions import printing
from relayd.cli.questions.options import request_from
from relayd.cli.questions.schedule import schedule_text
from relayd.cli.text import figure, filled, shown_safely, table, table_of
from relayd.emitting.formats import DEFAULT_PORT, emit
from relayd.sources.wan import Wan

STORED = "store"
"""In place of a file of outcomes: those of transfers that were reported."""
SHOWN_TREES = 3
SHOWN_PAIRS = 8
VERDICTS = {
    "direct": "Send each copy direct.",
    "tree": "Forward copies over one tree.",
    "trees": "Forward copies over {} trees at once.",
}


def run(options: argparse.Namespace) -> int:
    """Ask what the options say, and print the answer: as JSON, or as text for people."""
    tool = getattr(options, "emit", None)
    if tool and options.json:
        raise InputError("--emit", "and --json ask for different output", remedy="Leave one out.")
    wan = wan_of(options)
    explores = getattr(options, "outcomes", None) == STORED
    request = _exploring(options, wan) if explores else request_from(options, options.request)
    answer = wan.ask(request)
    if tool:
        print(_emitted(answer, wan, options), end="")
    elif options.json:
        print(answer.model_dump_json(indent=2))
    else:
        print(_TEXTS[type(answer)](answer, options))
    return 0


def _exploring(options: argparse.Namespace, wan: Wan) -> TransferRequest:
    """Return the request, with what finished transfers had by the store."""
    options.outcomes = None
    request = request_from(options, TransferRequest)
    if not request.explore:
        raise InputError(
            "--outcomes", "are for exploring", remedy="Say how much it may cost: --explore 1%."
        )
    return replace(request, outcomes=wan.outcomes(request.src, request.dst))


def _emitted(plan: Plan, wan: Wan, options: argparse.Namespace) -> str:
    """Return the plan as a script or a configuration of a tool."""
    port = whole_number(options.port, "--port") if options.port else DEFAULT_PORT
    endpoints: dict[str, list[str]] = {}
    for name, addresses in assignments(options.endpoint, field="--endpoint").items():
        region = wan.resolve(name, "--endpoint").region_id
        endpoints.setdefault(region, []).extend(a.strip() for a in addresses.split(","))
    return emit(plan, options.emit, endpoints=endpoints, port=port)


# ---- the text of answers ------------------------------------------------------------------------


def plan_text(plan: Plan, options: argparse.Namespace) -> str:
    """Return a plan for people: verdict and reason, the comparison, advice, certainty."""
    request, relay = plan.request, plan.best_relay
    assumed = " (assumed; say --volume)" if options.volume is None else ""
    until = f", within {duration_text(s)}" if (s := request.get("deadline_s")) else ""
    split = len(plan.paths) > 1 or plan.verdict != "direct"
    listed = [relay, *plan.alternatives] if options.candidates and relay else []
    return printing.answer_text(
        plan,
        _verdict(plan),
        f"{request['src']} -> {request['dst']}, {volume_text(request['volume_gb'])}{assumed}"
        f"{until}\n{printing.figures_text(plan, _connections(plan))}",
        _comparison(plan),
        _services(plan),
        table_of(
            plan.paths if split else (),
            "path | Gbit/s=throughput_gbps | share | connections | RTT=rtt_ms | "
            "$/GB=egress_usd_per_gb",
            path=lambda path: " -> ".join(path.regions) + printing.private_text(path),
        ),
        _limit(plan),
        table_of(
            listed,
            "relay | Gbit/s=throughput_gbps | time=duration_s | RTT=rtt_ms | "
            "$ total=cost_usd.total | speed=gain | at least=gain_low | cost=cost_ratio",
        ),
        table_of(
            plan.frontier,
            "frontier | Gbit/s=throughput_gbps | time=duration_s | $ total=cost_usd.total | "
            "VMs=vms",
            frontier=lambda one: one.verdict + f" ({', '.join(one.relays)})" * bool(one.relays),
        ),
        _exploration(plan.exploration) if plan.exploration else "",
        filled(_chances(relay)) if relay and relay.probability is not None else "",
        printing.advice_block(plan.advice),
        filled(_carried_out(plan)),
        sure=plan.confidence,
    )


def _exploration(found: Exploration) -> str:
    """Return the rates of all paths by estimates and outcomes."""
    marks = {found.best: "best", found.via: "taken"}
    return table_of(
        found.rates,
        "by outcomes, Gbit/s=via | low=gbps_low | rate=gbps | high=gbps_high | transfers=outcomes |"
        " =mark",
        mark=lambda rate: marks.get(rate.via, ""),
    )


def _services(plan: Plan) -> str:
    said = [
        f"{one.name} for {usd_text(one.cost_usd)} (its own fee: ${one.usd_per_gb:g} a GB"
        f"{', unconfirmed' * one.unconfirmed}; --emit {one.emit})"
        for one in plan.services
    ]
    return filled(f"Without VMs, in a time not known: {', or '.join(said)}.") if said else ""


def _chances(relay: RelayOption) -> str:
    return (
        f"The best relay carries {relay.gain_low:.2f}x to {relay.gain_high:.2f}x what direct does "
        f"(90 %). Chance that a relay pays: {chance_text(relay.probability or 0.0)}."
    )


def _carried_out(plan: Plan) -> str:
    relays = ", or --emit haproxy for relays of any TCP tool" if plan.verdict != "direct" else ""
    return f"To carry it out, add --emit rclone for a script that copies files or buckets{relays}."


def _verdict(plan: Plan) -> str:
    if plan.verdict == "direct":
        return "Send it direct."
    relays = [path.regions[1] for path in plan.paths if len(path.regions) == 3]
    if plan.verdict == "relay":
        return f"Relay it through {relays[0]}."
    direct = "the direct path and " if any(len(p.regions) == 2 for p in plan.paths) else ""
    return f"Split it over {direct}{', '.join(relays)}."


def _comparison(plan: Plan) -> str:
    direct, best, one = plan.direct, plan.best_relay, plan.one_vm
    misses = "" if direct.feasible or direct.throughput_gbps is None else " (misses the limits)"
    ways: list[tuple[str, Any]] = [
        (f"direct{misses}", direct),
        (f"best relay, {best.relay}" if best else "best relay (none)", best),
        (f"chosen: {plan.verdict}", plan),
    ]
    if one and max(plan.vms.values()) > 1:
        name = "direct" if one.verdict == "direct" else f"{one.verdict}, {', '.join(one.relays)}"
        ways.append((f"one VM a region: {name}", one))
    return printing.ways_table(ways)


def _connections(plan: Plan) -> str:
    most, each = max(path.connections for path in plan.paths), ""
    if len(plan.paths) > 1:
        each = " a path at most"
    elif most > plan.request["connections"]:
        each = f" ({plan.request['connections']} a VM)"
    return f"; {most} TCP connections{each}"


def _limit(plan: Plan) -> str:
    """Name the limit, unless the reason has said so."""
    binding = next(iter(plan.bottlenecks), None)
    gbps = gbps_text(binding.gain_per_unit) if binding else ""
    if binding is None or f"{gbps} Gbit/s" in plan.reason:
        return ""
    return filled(f"Limit: {binding.constraint} at {binding.region} ({gbps} {binding.unit}).")


def broadcast_text(plan: BroadcastPlan, options: argparse.Namespace) -> str:
    """Return a plan for people: verdict and reason, the comparison, the trees, what would help."""
    count = len(plan.destinations)
    relay = plan.best_relay
    ways = [
        ("each copy direct", plan.direct),
        (f"all through {relay.relays[0]}" if relay else "all through one region", relay),
        *([("best forwarding", plan.optimum)] if plan.optimum else []),
        (f"chosen: {plan.verdict}", plan),
    ]
    proof = (
        f"No plan ends before {duration_text(plan.bound_s)} or costs less than "
        f"{usd_text(plan.bound_usd)}; the best plan known is within {plan.gap:.1%} of the optimum."
    )
    if plan.request["relays"] == "none":
        proof = "Without forwarding, there is no other plan."
    bounds = printing.bounds_text(plan.duration_s_low, plan.duration_s_high)
    return printing.answer_text(
        plan,
        VERDICTS[plan.verdict].format(len(plan.trees)),
        f"{plan.request['src']} to {count} destination{'s' if count > 1 else ''}, "
        f"{volume_text(plan.volume_gb)} each\n{printing.figures_text(plan)}",
        printing.ways_table(ways),
        _trees(plan, len(plan.trees) if options.trees else SHOWN_TREES),
        table_of(
            plan.frontier, "frontier=duration_s | $ total=cost_usd.total | trees | VMs=vms | relays"
        ),
        printing.advice_block(plan.advice),
        sure=f"{plan.confidence} {bounds} {proof}",
    )


def _trees(plan: BroadcastPlan, most: int) -> str:
    tables = []
    for number_, tree in enumerate(plan.trees[:most], 1):
        title = f"tree {number_}, {tree.share:.0%} of the volume" if len(plan.trees) > 1 else "link"
        columns = "=link | Gbit/s=throughput_gbps | connections | $/GB=egress_usd_per_gb"
        tables.append(table_of(tree.legs, title + columns))
    if hidden := len(plan.trees[most:]):
        tables.append(f"{hidden} more; --trees lists all.")
    return "\n\n".join(tables)


def shuffle_text(plan: ShufflePlan, options: argparse.Namespace) -> str:
    """Return a plan for people: verdict and reason, the comparison, the pairs, what would help."""
    direct = plan.verdict == "direct"
    senders = {pair.src for pair in plan.pairs} | {pair.dst for pair in plan.pairs}
    ways = [
        ("all at once, direct", plan.equal_share),
        ("best direct rates", plan.direct),
        (f"chosen: {plan.verdict}", plan),
    ]
    return printing.answer_text(
        plan,
        "Send every pair direct, at these rates." if direct else "Relay a part of it.",
        f"{len(plan.pairs)} pairs among {len(senders)} regions, {volume_text(plan.volume_gb)}\n"
        f"{printing.figures_text(plan)}",
        printing.ways_table(ways),
        _pairs(plan, all_pairs=options.pairs),
        table_of(
            plan.frontier,
            "frontier=duration_s | $ total=cost_usd.total | relayed=relayed_share | VMs=vms",
        ),
        printing.more_vms_block(plan.one_more_vm, "at least {} sooner"),
        sure=printing.bounds_text(plan.duration_s_low, plan.duration_s_high),
    )


def _pairs(plan: ShufflePlan, *, all_pairs: bool) -> str:
    slowest = sorted(plan.pairs, key=lambda pair: -pair.duration_s)
    shown = plan.pairs if all_pairs else slowest[:SHOWN_PAIRS]
    hidden = len(plan.pairs) - len(shown)

    def paths(pair: PairPlan) -> str:
        several = len(pair.paths) > 1
        shares = (f" {path.share:.0%}" * several for path in pair.paths)
        ways = map(printing.path_text, pair.paths)
        return ", ".join(f"{way}{share}" for way, share in zip(ways, shares, strict=True))

    return table_of(
        shown,
        f"{'last pairs' if hidden else 'pair'}=link | volume=volume_gb | Gbit/s=throughput_gbps | "
        "time=duration_s | connections | paths",
        connections=lambda pair: str(sum(path.connections for path in pair.paths)),
        paths=paths,
    ) + (f"\n{hidden:,} more end sooner; --pairs lists all." if hidden else "")


def reduce_text(placement: ReducePlacement, _: argparse.Namespace) -> str:
    """Say where to reduce."""
    regions, choices = len(placement.fractions), placement.options
    names = dict.fromkeys(region for option in choices for region in option.fractions)
    rows = [(name, *(f"{one.fractions.get(name, 0.0):.1%}" for one in choices)) for name in names]
    rows += [
        (name, *(figure(option, field) for option in choices))
        for name, field in (
            ("promised", "promised_s"),
            ("really takes", "duration_s"),
            ("moved", "moved_gb"),
            ("egress, USD", "cost_usd.egress"),
            ("total, USD", "cost_usd.total"),
        )
    ]
    return printing.answer_text(
        placement,
        f"Reduce in {regions} region{'' if regions == 1 else 's'}.",
        f"{volume_text(placement.shuffle_gb)} to shuffle, planned with {placement.links} links\n"
        f"{printing.figures_text(placement)}",
        table(("", *(option.name for option in choices)), rows),
        printing.more_vms_block(placement.one_more_vm, "{} sooner"),
        sure=printing.bounds_text(placement.duration_s_low, placement.duration_s_high),
    )


def tasks_text(placement: TaskPlacement, _: argparse.Namespace) -> str:
    """Say where to run tasks."""

    def volume(gb: float, none: str = "-") -> str:
        return volume_text(gb) if gb else none

    cost = placement.cost_usd
    return printing.answer_text(
        placement,
        f"All exchanged in {duration_text(placement.duration_s)}.",
        "",
        table_of(
            placement.vms,
            "VM=id | region | CPUs | sends | receives | busy=busy_s | limit | tasks",
            left=True,
            CPUs=lambda vm: f"{vm.cpus_used:g}/{vm.cpus:g}",
            sends=lambda vm: volume(vm.sent_gb),
            receives=lambda vm: volume(vm.received_gb),
        ),
        filled(
            f"{volume(placement.moved_gb, 'Nothing')} crosses between VMs, "
            f"{volume(placement.local_gb, 'nothing')} stays inside one. "
            f"{usd_text(cost.egress)} egress and {usd_text(cost.vm)} VMs."
        ),
    )


def comparison_text(comparison: Ranking, _: argparse.Namespace) -> str:
    """Return a comparison for people: the best and why, then the others in order."""
    request, best = comparison.request, comparison.candidates[0]
    regions, volume = request["regions"], volume_text(request["volume_gb"])
    columns = (
        "=rank | region | VM type=type | takes=duration_s | Gbit/s=throughput_gbps | "
        "$=cost_usd.total | RTT, ms=rtt_ms:.0f | known by=source"
    )
    if best.probability is not None:
        columns += " | rank=ranks | best=probability:.0%"

    def ranks(one: Ranked) -> str:
        low, high = one.rank_low, one.rank_high
        return f"{low}-{high}" if low != high else str(low)

    candidates = table_of(
        comparison.candidates,
        columns,
        left=True,
        ranks=ranks,
        type=lambda one: one.vm_type.partition(":")[2] or "-",
    )
    providers = ""
    if len(comparison.providers) > 1:
        named = (f"{one.provider} {one.region} ({one.rank})" for one in comparison.providers)
        providers = filled(f"The best of each provider, with its rank: {', '.join(named)}.")
    bounds = printing.bounds_text(best.duration_s_low, best.duration_s_high)
    return printing.answer_text(
        comparison,
        f"{best.region} ranks first of {comparison.compared}.",
        f"{volume} {request['direction']} {'each of ' * (len(regions) > 1)}{', '.join(regions)}",
        candidates,
        providers,
        sure=f"{best.region}: limited by {best.limit}. {bounds}",
    )


def replan_text(answer: Replan, _: argparse.Namespace) -> str:
    """Return an answer for people: verdict and reason, both ways, what changing takes."""
    keeps = answer.verdict == "keep"
    rate = ""
    if answer.observed_gbps is not None and answer.planned_gbps is not None:
        observed, planned = (figure(answer, f"{name}_gbps") for name in ("observed", "planned"))
        rate = f", at {observed} Gbit/s (planned: {planned})"
    ways = {"keep": answer.keep, "change": answer.change}
    fields = ("duration_s", "bounds", "cost_usd.egress", "cost_usd.vm")

    def cell(name: str, field: str) -> str:
        way = ways[name]
        if way is None:
            return "-"
        if field == "bounds":
            return f"{duration_text(way.duration_s_low)} to {duration_text(way.duration_s_high)}"
        return figure(way, field)

    return printing.answer_text(
        answer,
        "Keep to the plan." if keeps else "Change the plan.",
        f"{answer.kind} {answer.plan_id}, {volume_text(answer.remaining_gb)} left after "
        f"{duration_text(answer.elapsed_s)}{rate}",
        table(
            ("from now on", "time", "bounds", "$ egress", "$ VM"),
            [(name, *(cell(name, field) for field in fields)) for name in ways],
        ),
        filled(_cost_of_change(answer)),
        "" if keeps else filled("--json has the new plan, under `plan`."),
        sure=f"Planned on snapshot {answer.planned_on}. Now:",
    )


def _cost_of_change(answer: Replan) -> str:
    change, gain = answer.cost_of_change, answer.gain
    if change is None or gain is None:
        return ""
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
        f"Changing takes: {what}; {usd_text(change.usd)} in all. Gain {gain.expected:.2f}x "
        f"({gain.low:.2f}x to {gain.high:.2f}x); {answer.needed_gain:.2f}x at the low bound are "
        "needed."
    )


_TEXTS: Mapping[type, Callable[[Any, argparse.Namespace], str]] = {
    Plan: plan_text,
    ShufflePlan: shuffle_text,
    BroadcastPlan: broadcast_text,
    SchedulePlan: schedule_text,
    ReducePlacement: reduce_text,
    TaskPlacement: tasks_text,
    Ranking: comparison_text,
    Replan: replan_text,
}
"""By class of answer."""
_USUAL = argparse.Namespace(trees=False, pairs=False, periods=False, candidates=None, volume="")


def printed(answer: Answer) -> str:
    """Print an answer to text as its command does without further options."""
    return shown_safely(_TEXTS[type(answer)](answer, _USUAL))
