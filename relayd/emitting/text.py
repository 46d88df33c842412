"""Comments and shell code that all formats share."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterable, Sequence

from planner.model.units import duration_text, gbps_text, rate_text, usd_text, volume_text
from relayd.emitting.lanes import Emission, Lane, Vm

WIDTH = 96


def plain(words: str) -> str:
    """Return words that are safe in a comment, a message and ``${VAR:?...}``."""
    words = re.sub(r"[`\[\]]", "", words.replace("$", "USD "))
    return re.sub(r"[^\w .,:;()%=>+/-]", " ", words).strip()


def comments(paragraphs: Iterable[str]) -> str:
    """Return paragraphs as comment lines of shells and haproxy."""
    lines = []
    for words in paragraphs:
        lines += [f"# {line}" for line in textwrap.wrap(plain(words), WIDTH - 2)] or ["#"]
    return "\n".join(lines) + "\n"


def header(emission: Emission, title: str, notes: Sequence[str] = ()) -> str:
    """Return the comments that a file begins with: purpose, prediction, price and snapshot."""
    plan = emission.plan
    snapshot, cost = plan.snapshot, plan.cost_usd
    low, high = plan.throughput_gbps_low, plan.throughput_gbps_high
    predicted = (
        f"Predicted: {rate_text(plan.throughput_gbps)} "
        f"({gbps_text(low)} to {gbps_text(high)}), {volume_text(emission.volume_gb)} in "
        f"{duration_text(plan.duration_s)}."
    )
    total, egress, vms = (usd_text(part) for part in (cost.total, cost.egress, cost.vm))
    price = f"Price: {total} ({egress} egress, {vms} VMs)."
    named = f"{title}, from plan {plan.plan_id} of relayd"
    rests = f"Snapshot {snapshot.id} ({snapshot.source}), as of {snapshot.as_of}."
    paths = [
        f"Path: {' -> '.join(path.regions)}, {path.share:.0%} of the volume at "
        f"{rate_text(path.throughput_gbps)}, {path.connections} connections."
        for path in plan.paths
    ]
    machines = ", ".join(f"{count} in {region}" for region, count in plan.vms.items())
    lines = [f"{named}: {plan.verdict}.", *paths, f"VMs: {machines}.", predicted, price, rests]
    extra = [f"Note: {warning}" for warning in plan.warnings]
    return comments([*lines, *extra, *(["", *notes] if notes else [])])


def script(head: str, body: str) -> str:
    """Return a POSIX shell script that stops at the first error and at unset variables."""
    return f"#!/bin/sh\n{head}set -eu\n\n{body}"


def addresses(vms: Iterable[Vm]) -> str:
    """Return lines that set addresses, or that stop with a message where one is not known."""
    lines = []
    for vm in dict.fromkeys(vms):
        if vm.address:
            lines.append(f"{vm.variable}={shlex.quote(vm.address)}  # {plain(vm.words)}")
        else:
            lines.append(f': "${{{vm.variable}:?address of {plain(vm.words)}}}"')
    return "\n".join(lines) + "\n" if lines else ""


def by_number(name: str, what: str, choices: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Return lines that select one of several numbered choices; a single choice always runs.

    Parameters
    ----------
    name : str
        Variable that holds the number, from 1.
    what : str
        What it says, such as "which relay VM this is".
    choices : sequence of (words, lines)
    """
    if len(choices) == 1:
        return "".join(f"{line}\n" for line in choices[0][1])
    alike: dict[tuple[str, ...], list[int]] = {}
    for number, (_, lines) in enumerate(choices, 1):
        alike.setdefault(tuple(lines), []).append(number)
    text = f': "${{{name}:?{what}: 1 to {len(choices)}, as listed here}}"\ncase ${name} in\n'
    for arm, numbers in alike.items():
        words = "alike" if numbers[1:] else plain(choices[numbers[0] - 1][0])
        text += f"{' | '.join(map(str, numbers))})  # {words}\n"
        text += "".join(f"  {line}\n" for line in arm) + "  ;;\n"
    return text + f'*)\n  echo "{name} must be 1 to {len(choices)}" >&2\n  exit 2\n  ;;\nesac\n'


def lane_words(lane: Lane, *, to_vms: bool = True) -> str:
    """Describe a lane in one line, with the VMs that take part."""
    vms = lane.vms if to_vms else lane.vms[:-1]
    via = ", ".join(f"{vm.variable} is {vm.words}" for vm in vms)
    return (
        f"Lane {lane.number}: {lane.regions} ({via}), {lane.share:.1%} of the volume, "
        f"{lane.connections} connections, {rate_text(lane.throughput_gbps)}."
    )


def summary(emission: Emission) -> str:
    """Return the last line of a script: how long it took, and how long the plan expects."""
    lanes = len(emission.lanes)
    what = f"lane $LANE of {lanes}" if lanes > 1 else "everything"
    took, expected = "$(($(date +%s) - started)) s", duration_text(emission.plan.duration_s)
    return f'echo "{what} is copied and checked in {took}; the plan expects {expected}"\n'
