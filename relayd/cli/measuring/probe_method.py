"""From the options of ``relayd probe`` to how it measures."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from planner.model.errors import InputError
from planner.model.units import parse_volume_gb
from probes.campaign.method import Method
from relayd.cli.measuring.fleet import agreed

_AS_IPERF3 = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)", re.IGNORECASE)
_FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


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
        udp=options.udp,
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


def kept_method(kept: dict[str, Any]) -> Method:
    """Return the method of a campaign that is kept, by this release or an older one."""
    if "method" in kept:
        return Method.from_json(kept["method"])
    ramp = "every" if kept.get("ramp") else "never"
    return Method.from_json({"tool": kept.get("tool", "iperf3"), "ramp": ramp})


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
