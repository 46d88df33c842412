"""``relayd fleet check``: is every host there, trusted, equipped and reachable."""

from __future__ import annotations

import argparse
import asyncio
import json
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
from relayd.cli.text import left_table
from relayd.settings import load_settings
from relayd.store import open_if_there

PARTLY = 5


def check(options: argparse.Namespace) -> int:
    """Check the fleet; 0 if every host is fit to measure, else 5."""
    fleet = load_fleet(fleet_path(options))
    reports = asyncio.run(_check(fleet, options))
    _add_caps(reports, options)
    if options.json:
        print(json.dumps(_as_json(reports), indent=2))
    else:
        _print(reports)
    return 0 if all(report.fit for report in reports) else PARTLY


def fleet_path(options: argparse.Namespace) -> Path:
    """Return the fleet file that was named, here or in the settings."""
    path = Path(options.fleet) if options.fleet else load_settings().fleet
    if path is None:
        raise InputError(
            "--fleet",
            "is needed",
            remedy="Name a fleet file, here or as RELAYD_FLEET; configs/fleet.example.toml shows "
            "one, and `relayd lab up` makes one.",
        )
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
        print(f"{count} without a key on record: add --trust-new.", file=sys.stderr)
    return reports


def _caps(options: argparse.Namespace) -> list[Record]:
    """Read the caps that campaigns have measured; none where there is no store."""
    settings = load_settings()
    store = open_if_there(store_location(options, settings))
    if store is None:
        return []
    with store:
        return measured_caps(store, catalogue_of(options, settings))


def _add_caps(reports: list[HostReport], options: argparse.Namespace) -> None:
    for cap in _caps(options):
        for report in reports:
            host = report.host
            if cap["recreate"] and (host.name, host.region) == (cap["host"], cap["region"]):
                problem = f"{cap['mbps']:.4g} Mbit/s, its {cap['cap']} cap, is little"
                report.findings.append(HostFinding("warning", problem, cap["text"]))


async def _trust(fleet: Fleet, options: argparse.Namespace) -> None:
    """Ask for each new key whether to store it; hosts are reached once their jumps are trusted."""
    for hosts in (list(fleet.jumps.values()), list(fleet)):
        for name, key in (await offered_keys(fleet, hosts)).items():
            host = fleet.login(name)
            place = f"{name} ({host.host} port {host.port})"
            question = f"{place} has the key {key.get_fingerprint()}. Trust it?"
            if agreed(question, options, "--trust-new"):
                store_key(host, key)
                print(f"{name}: stored in {host.known_hosts}", file=sys.stderr)


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
            print(f"relayd: {error}", file=sys.stderr)
        else:
            changed = True
    return changed


def _print(reports: list[HostReport]) -> None:
    rows = []
    for report in reports:
        facts = report.facts
        state = "ok" if not report.findings else "warning" if report.fit else "unfit"
        window = facts.get("receive_window_bytes")
        idle = facts.get("idle_share")
        offset_s = facts.get("clock_offset_s")
        rows.append(
            [
                report.host.name,
                state,
                facts.get("tools", {}).get("iperf3", "-") or "?",
                f"{window / 1e6:.1f} MB" if window else "-",
                facts.get("congestion_control") or "-",
                f"{offset_s:+.2f} s" if offset_s is not None else "-",
                f"{idle:.0%}" if idle is not None else "-",
                {True: "open", False: "closed"}.get(facts.get("probe_port_reachable", ""), "-"),
            ]
        )
    header = ["host", "state", "iperf3", "rcv window", "congestion", "clock", "idle", "port"]
    print(left_table(header, rows))
    for report in reports:
        for finding in report.findings:
            print(f"{report.host.name}: {finding.severity}: {finding.problem}. {finding.remedy}")
    fit = sum(report.fit for report in reports)
    print(f"{fit} of {len(reports)} hosts are fit to measure")


def _as_json(reports: list[HostReport]) -> dict[str, object]:
    return {
        "hosts": [
            {
                "name": report.host.name,
                "region": report.host.region,
                "fit": report.fit,
                "facts": report.facts,
                "findings": [asdict(finding) for finding in report.findings],
            }
            for report in reports
        ],
        "fit": sum(report.fit for report in reports),
        "total": len(reports),
    }


def caps(options: argparse.Namespace) -> int:
    """Print the measured caps and how they compare with those of their type."""
    found = _caps(options)
    if not found:
        raise DataError(
            "No caps of VMs have been measured. `relayd probe --phases rtt,caps --thorough` "
            "measures those of every VM of a fleet."
        )
    if options.json:
        print(json.dumps({"caps": found}, indent=2))
        return 0
    rows = [
        [
            cap["host"],
            cap["vm_type"],
            cap["cap"],
            f"{cap['mbps']:.4g}",
            "-" if cap["odds"] is None else f"{cap['slower_share']:.0%}",
            "-" if cap["odds"] is None else "yes" if cap["recreate"] else "no",
        ]
        for cap in found
    ]
    print(left_table(["host", "type", "cap", "Mbit/s", "slower", "recreate"], rows))
    for line in recreate_lines(found):
        print(line)
    if all(cap["odds"] is None for cap in found):
        print(found[0]["text"])
    return 0


def recreate_lines(found: Sequence[Record]) -> list[str]:
    """Return a line for each cap whose VM is worth recreating."""
    return [
        f"recreate {cap['host']}: its {cap['cap']} cap is {cap['mbps']:.4g} Mbit/s. {cap['text']}"
        for cap in found
        if cap["recreate"]
    ]
