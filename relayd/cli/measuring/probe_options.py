"""Options of ``relayd probe``: what to measure, how, and within which limits."""

from __future__ import annotations

import argparse
import re
import sys
import time

from planner.model.errors import InputError
from planner.model.units import parse_duration_s, parse_money_usd, parse_volume_gb
from probes.campaign.limits import CampaignLimits
from probes.campaign.method import Method
from probes.campaign.specification import CampaignSpec, parse_pairs
from probes.campaign.tasks import PHASES
from probes.fleet.hosts import Fleet
from relayd.cli.options import agreed, whole_number

_AS_IPERF3 = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)", re.IGNORECASE)
_FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def spec_of(options: argparse.Namespace, fleet: Fleet) -> CampaignSpec:
    """Read what to measure."""
    phases = tuple(dict.fromkeys(options.phases.split(","))) if options.phases else PHASES
    for phase in phases:
        if phase not in PHASES:
            raise InputError(
                "--phases",
                "names an unknown phase",
                value=phase,
                remedy=f"Phases are {', '.join(PHASES)}, joined by commas.",
            )
    connections = whole_number(options.connections, "--connections") if options.connections else 64
    if not 1 <= connections <= 128:
        raise InputError("--connections", "must be between 1 and 128", value=connections)
    lengths = {}
    for name, option in (("flow_s", "flow_time"), ("aggregate_s", "aggregate_time")):
        if text := getattr(options, option):
            seconds = parse_duration_s(text, f"--{option.replace('_', '-')}")
            if not 4 <= seconds <= 3600:
                raise InputError(
                    f"--{option.replace('_', '-')}", "must be between 4s and 1h", value=text
                )
            lengths[name] = seconds
    return CampaignSpec(
        phases=tuple(phase for phase in PHASES if phase in phases),
        pairs=parse_pairs(options.pairs, fleet),
        thorough=options.thorough,
        connections=connections,
        **lengths,
    )


def method_of(options: argparse.Namespace) -> Method:
    """Read how to measure.

    Raises
    ------
    InputError
        If something asked for can't be done, or not together.
    """
    ramp = "every" if options.ramp else "never" if options.connections else "first"
    method = Method(
        tool=options.tool,
        ramp=ramp,  # type: ignore[arg-type]
        full_time=options.full_time,
        udp=options.udp or options.udp_rates != 1 or options.udp_packet != 0,
        udp_rates=options.udp_rates,
        udp_bytes=options.udp_packet,
        trace=options.trace,
        window_bytes=window_bytes(options.tcp_window) if options.tcp_window else 0,
        congestion_control=options.congestion_control or "",
        change_sysctls=options.change_sysctls,
        addresses=options.addresses or "",
    )
    if options.change_sysctls and not method.sysctls:
        raise InputError(
            "--change-sysctls",
            "has nothing to change",
            remedy="It goes with --tcp-window, and with --congestion-control where the tool is "
            "nuttcp; iperf3 asks for an algorithm by itself.",
        )
    phases = options.phases.split(",") if options.phases else ["aggregate", "rtt"]
    needs = {"--udp": (method.udp, "aggregate"), "--trace": (method.trace, "rtt")}
    for name, (asked, phase) in needs.items():
        if asked and phase not in phases:
            raise InputError(name, f"is part of the phase {phase}, which was not asked for")
    return method


def may_change(method: Method, options: argparse.Namespace) -> bool:
    """Ask before settings of hosts are changed; True where there is nothing to ask."""
    if not method.sysctls:
        return True
    changes = ", ".join(f"{name} = {value}" for name, value in method.sysctls.items())
    print(f"On every host, as root, until the campaign ends: {changes}", file=sys.stderr)
    return agreed("Change these settings?", options, "--change-sysctls")


def window_bytes(text: str) -> int:
    """Read a window: ``8M`` as iperf3 does (2^20), or a volume such as ``8MB``."""
    if match := _AS_IPERF3.fullmatch(text.strip()):
        return round(float(match[1]) * _FACTORS[match[2].upper()])
    return round(parse_volume_gb(text, "--tcp-window") * 1e9)


def budget_of(options: argparse.Namespace) -> float:
    """Read the budget in USD; infinite without one."""
    if not options.budget:
        return float("inf")
    found = parse_money_usd(options.budget, "--budget")
    if found < 0:
        raise InputError("--budget", "is negative", value=options.budget)
    return found


def limits_of(options: argparse.Namespace, kept_budget_usd: float | None) -> CampaignLimits:
    """Return the limits of this run: its own, else the budget that the campaign began with."""
    if options.budget or kept_budget_usd is None:
        kept_budget_usd = budget_of(options)
    at_once = whole_number(options.parallel, "--parallel") if options.parallel else 1_000
    if at_once < 1:
        raise InputError("--parallel", "must be at least 1", value=at_once)
    return CampaignLimits(
        budget_usd=kept_budget_usd,
        deadline_s=time.monotonic() + 60 * parse_minutes(options.max_minutes),
        at_once=at_once,
        pings_at_once=min(CampaignLimits().pings_at_once, 2 * at_once),
    )


def parse_minutes(text: str | None) -> float:
    """Read a number of minutes."""
    if not text:
        return float("inf")
    try:
        minutes = float(text)
    except ValueError:
        minutes = -1.0
    if not minutes > 0:
        raise InputError("--max-minutes", "is not a number of minutes", value=text)
    return minutes
