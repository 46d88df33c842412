"""The text of a plan of one transfer."""

from __future__ import annotations

import argparse
from typing import Any

from planner.model.units import chance_text, duration_text, gbps_text, usd_text, volume_text
from planner.transfer.plan import Exploration, Plan, RelayOption
from relayd.cli.questions import printing
from relayd.cli.text import filled, table_of


def human(plan: Plan, options: argparse.Namespace) -> str:
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
