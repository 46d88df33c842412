"""``relayd measure fleet check``: is every host there, trusted, equipped and reachable."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from planner.model.errors import DataError, InputError
from probes.analysis.evidence import Record
from probes.fleet.failures import ProbeError
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from probes.fleet.login import offered_keys, store_key
from probes.fleet.sessions import Sessions
from probes.tools.host_check import (
    HostFinding,
    HostReport,
    check_fleet,
    install,
    install_commands,
    unknown_hosts,
)
from relayd.campaigns.inputs import measured_caps
from relayd.cli.options import agreed, catalogue_of, store_location
from relayd.cli.output import pick, respond
from relayd.cli.text import page
from relayd.settings import load_settings
from relayd.store import open_if_there

PARTLY = 5


def say(words: str) -> None:
    """Print a line on standard error."""
    print(words, file=sys.stderr, flush=True)


def check(options: argparse.Namespace) -> int:
    """Check the fleet; 0 if every host is fit to measure, else 5."""
    fleet = load_fleet(fleet_path(options))
    reports = asyncio.run(_check(fleet, options))
    for cap in _caps(options):
        for report in reports:
            host = report.host
            if cap["recreate"] and (host.name, host.region) == (cap["host"], cap["region"]):
                problem = f"{cap['mbps']:.4g} Mbit/s, its {cap['cap']} cap, is little"
                report.findings.append(HostFinding("warning", problem, cap["text"]))
    fit = sum(report.fit for report in reports)
    hosts = [
        {
            **pick(report.host, "name region"),
            **pick(report, "fit facts"),
            "findings": [asdict(finding) for finding in report.findings],
        }
        for report in reports
    ]
    said = "\n".join(
        [
            _table(reports),
            *(
                f"{report.host.name}: {one.severity}: {one.problem}. {one.remedy}"
                for report in reports
                for one in report.findings
            ),
            f"{fit} of {len(reports)} hosts are fit to measure",
        ]
    )
    respond(options, {"hosts": hosts, "fit": fit, "total": len(reports)}, said)
    return 0 if fit == len(reports) else PARTLY


def fleet_path(options: argparse.Namespace) -> Path:
    """Return the fleet file named here or in the settings; raises an InputError if none is."""
    path = Path(options.fleet) if options.fleet else load_settings().fleet
    if path is None:
        remedy = (
            "Name a fleet file, here or as RELAYD_FLEET; configs/fleet.example.toml shows "
            "one, and `relayd measure lab up` makes one."
        )
        raise InputError("--fleet", "is missing", remedy=remedy)
    return path


async def _check(fleet: Fleet, options: argparse.Namespace) -> list[HostReport]:
    if options.trust_new:
        await _trust(fleet, options)
    # A name of its own: what another check has just begun on a host is not ours to end.
    async with Sessions(fleet, secrets.token_hex(16)) as sessions:
        reports = await check_fleet(fleet, sessions)
        if options.install_tools and await _install(sessions, reports, options):
            reports = await check_fleet(fleet, sessions)
    if (unknown := unknown_hosts(reports)) and not options.trust_new:
        count = f"{len(unknown)} host{'s' if len(unknown) > 1 else ''}"
        say(f"{count} without a key on record: add --trust-new.")
    return reports


def _caps(options: argparse.Namespace) -> list[Record]:
    """Read the caps that campaigns have measured; none where there is no store."""
    store = open_if_there(store_location(options))
    if store is None:
        return []
    with store:
        return measured_caps(store, catalogue_of(options))


async def _trust(fleet: Fleet, options: argparse.Namespace) -> None:
    """Ask for each new key whether to store it; hosts are reached once their jumps are trusted."""
    for hosts in (list(fleet.jumps.values()), list(fleet)):
        for name, key in (await offered_keys(fleet, hosts)).items():
            host = fleet.login(name)
            place = f"{name} ({host.host} port {host.port})"
            question = f"{place} has the key {key.get_fingerprint()}. Trust it?"
            if agreed(question, options, "--trust-new"):
                store_key(host, key)
                say(f"{name}: stored in {host.known_hosts}")


async def _install(
    sessions: Sessions, reports: list[HostReport], options: argparse.Namespace
) -> bool:
    changed = False
    for report in reports:
        commands = install_commands(report)
        if not commands:
            continue
        shown = "; ".join(shlex.join(command) for command in commands)
        if not agreed(f"Run on {report.host.name}: {shown}?", options, "--install-tools"):
            continue
        try:
            await install(await sessions.session(report.host.name), commands)
        except ProbeError as error:
            say(f"relayd: {error}")
        else:
            changed = True
    return changed


def _table(reports: list[HostReport]) -> str:
    def window(report: HostReport) -> str:
        size_bytes = report.facts.get("receive_window_bytes")
        return "-" if size_bytes is None else f"{size_bytes * 1e-6:.1f} MB"

    def port(report: HostReport) -> str:
        is_open = report.facts.get("probe_port_reachable")
        return "-" if is_open is None else "open" if is_open else "closed"

    return page().table_of(
        reports,
        "host=host.name | state | iperf3 | rcv window=window | "
        "congestion=facts.congestion_control | clock=facts.clock_offset_s:{:+.2f} s | "
        "idle=facts.idle_share | port",
        left=True,
        state=lambda one: "ok" if not one.findings else "warning" if one.fit else "unfit",
        iperf3=lambda one: one.facts.get("tools", {}).get("iperf3", "-") or "?",
        window=window,
        port=port,
    )


def caps(options: argparse.Namespace) -> int:
    """Print measured caps, compared with those of their type; raises a DataError without any."""
    found = _caps(options)
    if not found:
        raise DataError(
            "No caps of VMs have been measured. `relayd probe --phases rtt,caps --thorough` "
            "measures those of every VM of a fleet."
        )
    said = [
        page().table_of(
            found,
            "host | type=vm_type | cap | Mbit/s=mbps | slower | recreate",
            left=True,
            slower=lambda cap: "-" if cap["odds"] is None else f"{cap['slower_share']:.0%}",
            recreate=lambda cap: "-" if cap["odds"] is None else "yes" if cap["recreate"] else "no",
        ),
        *recreate_lines(found),
    ]
    if all(cap["odds"] is None for cap in found):
        said.append(found[0]["text"])
    return respond(options, {"caps": found}, "\n".join(said))


def recreate_lines(found: Sequence[Record]) -> list[str]:
    """Return a line for each cap whose VM is worth recreating."""
    return [
        f"recreate {cap['host']}: its {cap['cap']} cap is {cap['mbps']:.4g} Mbit/s. {cap['text']}"
        for cap in found
        if cap["recreate"]
    ]
