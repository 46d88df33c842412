"""``relayd plan``: the question asked in words, the answer for people or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from planner.fields.kinds import assignments
from planner.model.errors import InputError
from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from planner.transfer.plan import Exploration, LeasedPath, Plan, RelayOption
from planner.transfer.request import TransferRequest
from relayd.cli import text
from relayd.cli.options import wan_of, whole_number
from relayd.cli.questions import printing
from relayd.cli.questions.options import request_from
from relayd.cli.text import filled
from relayd.emitting.formats import DEFAULT_PORT, emit
from relayd.sources.wan import Wan

STORED = "store"
"""In place of a file of outcomes: those of transfers that were reported."""


def run(options: argparse.Namespace) -> int:
    """Answer one request."""
    wan = wan_of(options)
    if options.emit and options.json:
        raise InputError("--emit", "and --json ask for different output", remedy="Leave one out.")
    plan = wan.ask(_request(options, wan))
    if options.emit:
        print(_emitted(plan, wan, options), end="")
    elif options.json:
        print(plan.model_dump_json(indent=2))
    else:
        print(human(plan, volume_assumed=options.volume is None, listed=bool(options.candidates)))
    return 0


def _request(options: argparse.Namespace, wan: Wan) -> TransferRequest:
    """Return the request, with what finished transfers had where the store's are wanted."""
    if stored := options.outcomes == STORED:
        options.outcomes = None
    request = request_from(options, TransferRequest)
    if not stored:
        return request
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


def human(plan: Plan, *, volume_assumed: bool = False, listed: bool = False) -> str:
    """Return a plan for people: verdict and reason, the comparison, advice, certainty.

    Parameters
    ----------
    plan : Plan
    volume_assumed : bool
        Whether no volume was given.
    listed : bool
        Whether to list single relays.
    """
    request = plan.request
    assumed = " (assumed; say --volume)" if volume_assumed else ""
    blocks = [
        printing.headed(
            _verdict(plan),
            f"{request['src']} -> {request['dst']}, {volume_text(request['volume_gb'])}{assumed}",
        ),
        filled(plan.reason),
        _comparison(plan),
    ]
    if len(plan.paths) > 1 or plan.verdict != "direct":
        blocks.append(_paths(plan))
    blocks.append(_machines(plan))
    if listed and plan.best_relay:
        blocks.append(_candidates([plan.best_relay, *plan.alternatives]))
    if plan.frontier:
        blocks.append(_frontier(plan))
    if plan.exploration:
        blocks.append(_exploration(plan.exploration))
    if plan.best_relay and plan.best_relay.probability is not None:
        blocks.append(filled(_chances(plan, plan.best_relay)))
    blocks += printing.listed_block("Leases", [_lease(path) for path in plan.leases])
    blocks += printing.advice_block(plan.advice)
    blocks.append(filled(f"{plan.confidence} Snapshot {printing.snapshot_text(plan.snapshot)}"))
    return printing.with_notes(blocks, plan)


def _exploration(found: Exploration) -> str:
    """Return the rates of all paths by estimates and outcomes."""
    rows = [
        (
            rate.via,
            *(gbps_text(gbps) for gbps in (rate.gbps_low, rate.gbps, rate.gbps_high)),
            str(rate.outcomes),
            "taken" if rate.via == found.via else "best" if rate.via == found.best else "",
        )
        for rate in found.rates
    ]
    return text.table(("by outcomes, Gbit/s", "low", "rate", "high", "transfers", ""), rows)


def _lease(path: LeasedPath) -> str:
    """Return the transfer's figures with a lease, and when its month pays."""
    found = (
        f"{path.id} ({' -> '.join(path.regions)}): {gbps_text(path.throughput_gbps)} Gbit/s, "
        f"{duration_text(path.duration_s)}"
    )
    if path.ready_s:
        found += f" of which {duration_text(path.ready_s)} until it is provided"
    found += f", {usd_text(path.cost_usd.total)} USD"
    saved = f"{usd_text(abs(path.saved_usd))} USD {'less' if path.saved_usd > 0 else 'more'}"
    found += f", {saved} than the plan"
    if path.better:
        found += ", and better by the margin"
    if path.reason:
        found += f"; it {path.reason}"
    if path.break_even_gb is not None:
        found += f"; {usd_text(path.monthly_usd)} USD a month are earned by "
        found += volume_text(path.break_even_gb)
        if path.break_even_gb > path.full_gb:
            found += f", more than the {volume_text(path.full_gb)} that it can carry in a month"
    elif path.monthly_usd:
        found += f"; its {usd_text(path.monthly_usd)} USD a month are never earned"
    return found


def _chances(plan: Plan, relay: RelayOption) -> str:
    margin = plan.request["margin"]
    return (
        f"The best relay carries {relay.gain_low:.2f}x to {relay.gain_high:.2f}x what direct does "
        f"(90 %), and beats the margin of {margin:.0%} in {plan.request['objective']} with a "
        f"probability of {relay.probability:.0%}."
    )


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


def _paths(plan: Plan) -> str:
    rows = [
        (
            " -> ".join(path.regions) + printing.private_text(path.regions, path.addresses),
            gbps_text(path.throughput_gbps),
            f"{path.share:.0%}",
            str(path.connections),
            f"{path.rtt_ms:.0f} ms",
            f"{path.egress_usd_per_gb:.4g}",
        )
        for path in plan.paths
    ]
    return text.table(("path", "Gbit/s", "share", "connections", "RTT", "$/GB"), rows)


def _machines(plan: Plan) -> str:
    connections = max(path.connections for path in plan.paths)
    lines = f"VMs: {printing.vms_text(plan.vms)}. Connections: {connections}"
    lines += " a path at most." if len(plan.paths) > 1 else "."
    if plan.bottlenecks:
        binding = plan.bottlenecks[0]
        lines += (
            f" Limit: {binding.constraint} at {binding.region} "
            f"({gbps_text(binding.gain_per_unit)} {binding.unit})."
        )
    return filled(lines)


def _candidates(options: Sequence[RelayOption]) -> str:
    rows = [
        (
            option.relay,
            gbps_text(option.throughput_gbps),
            duration_text(option.duration_s),
            f"{option.rtt_ms:.0f} ms",
            usd_text(option.cost_usd.total),
            f"{option.gain:.2f}x" if option.gain else "-",
            f"{option.gain_low:.2f}x" if option.gain_low is not None else "-",
            f"{option.cost_ratio:.2f}x" if option.cost_ratio else "-",
        )
        for option in options
    ]
    header = ("relay", "Gbit/s", "time", "RTT", "$ total", "speed", "at least", "cost")
    return text.table(header, rows)


def _frontier(plan: Plan) -> str:
    rows = [
        (
            point.verdict + (f" ({', '.join(point.relays)})" if point.relays else ""),
            gbps_text(point.throughput_gbps),
            duration_text(point.duration_s),
            usd_text(point.cost_usd.total),
            str(sum(point.vms.values())),
        )
        for point in plan.frontier
    ]
    return text.table(("frontier", "Gbit/s", "time", "$ total", "VMs"), rows)
