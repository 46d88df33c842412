"""``relayd measure lab``: a wide-area network of emulated datacenters on this machine."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.model.baseline import backbone
from planner.model.errors import InputError
from probes.lab import profiles
from probes.lab.controller import Lab, labs
from probes.lab.counters import lateness_quantile_ms
from probes.lab.topology import Topology
from relayd.catalogue.files import built_in_folder
from relayd.cli import text
from relayd.cli.options import number, wan_of
from relayd.cli.output import respond
from relayd.sources.wan import Wan

_DEFAULT_PROFILE = "paper"


def up(options: argparse.Namespace) -> int:
    """Bring a lab up and write its fleet file."""
    lab = _lab(options)
    topology = _topology(options)
    began = time.monotonic()
    is_new = lab.up(topology)
    said = f"up after {time.monotonic() - began:.1f} s" if is_new else "up already"
    return respond(
        options,
        {"name": lab.name, "new": is_new, "fleet_file": str(lab.fleet_file)},
        f"The lab {lab.name!r} is {said}: {len(topology.sites)} regions, profile "
        f"{topology.profile}, scale {topology.scale:g}.\nFleet file: {lab.fleet_file}",
    )


def status(options: argparse.Namespace) -> int:
    """Show the labs that run, or one of them."""
    chosen = [Lab(options.name)] if options.name else labs()
    running = [lab.status() for lab in chosen if options.name or lab.is_up()]
    left = [lab.name for lab in chosen if not lab.is_up()]
    lines = [
        f"Left over, not running: {name} (`relayd measure lab down --name {name}` removes it)"
        for name in left
    ]
    if not chosen:
        lines.append("No lab runs. `relayd measure lab up` starts one.")
    lines += map(_described, running)
    return respond(options, {"labs": running, "left_over": left}, "\n".join(lines))


def _described(status: dict[str, Any]) -> str:
    """Return a lab's state, its sites, and the settings of its links."""
    counts, links = status["lateness"]["counts"], status["links"]
    late = lateness_quantile_ms([0] * len(counts), counts, 0.95)
    health = "" if all(status["workers_alive"]) else " BROKEN: a worker has ended."
    lateness = "no packet yet" if late is None else f"lateness p95 {late:.2f} ms"
    sites = text.page().table_of(
        status["sites"],
        "region | address=private_address | ssh port=port | egress Mbit/s=egress_mbps | "
        "ingress Mbit/s=ingress_mbps | window kB=window | set",
        left=True,
        window=lambda site: f"{site['window_bytes'] / 1000:.4g}",
        set=lambda site: _settings(site["behaviour"]) if site["alive"] else "ended",
    )
    lines = [
        f"{status['name']}: {len(status['sites'])} regions, profile {status['profile']}, scale "
        f"{status['scale']:g}, {status['counters']['packets']} packets, {lateness}.{health}",
        f"Fleet file: {status['fleet_file']}",
        sites,
    ]
    if len(links) > 20:
        lines.append(f"{len(links)} directions of links have settings (--json lists them).")
    else:
        for link in links:
            settings = _settings(link, without=("source", "destination"))
            lines.append(f"{link['source']} -> {link['destination']}: {settings}")
    return "\n".join(lines)


def _settings(values: dict[str, Any], without: tuple[str, ...] = ()) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items() if name not in without)


def execute(options: argparse.Namespace) -> int:
    """Run a command in a region; raises an InputError without a command."""
    if not options.words:
        remedy = "Write `relayd measure lab exec REGION -- COMMAND`."
        raise InputError("exec", "has no command", remedy=remedy)
    command = _lab(options).command(options.region, options.words)
    return subprocess.run(command).returncode  # noqa: S603 - what the user asked for


def set_host(options: argparse.Namespace) -> int:
    """Change how a host behaves."""
    _lab(options).set_host(options.region, _assigned(options))
    return 0


def set_link(options: argparse.Namespace) -> int:
    """Change how a link behaves."""
    settings = _assigned(options)
    _lab(options).set_link(options.src, options.dst, settings, one_way=options.one_way)
    return 0


def clear(options: argparse.Namespace) -> int:
    """Undo all settings."""
    _lab(options).clear()
    return 0


def _assigned(options: argparse.Namespace) -> dict[str, str | float]:
    settings: dict[str, str | float] = {}
    for word in options.settings:
        name, separator, settings[name] = word.partition("=")
        if not separator:
            remedy = "For example: loss_pct=1."
            raise InputError("set", "needs NAME=VALUE", value=word, remedy=remedy)
    return settings


def down(options: argparse.Namespace) -> int:
    """Take labs down and remove what is left of them."""
    removed = [lab.name for lab in (labs() if options.all else [_lab(options)]) if lab.down()]
    if removed or options.json:
        return respond(options, {"removed": removed}, f"Down: {', '.join(removed)}.")
    print("Nothing to take down.", file=sys.stderr)
    return 0


def _lab(options: argparse.Namespace) -> Lab:
    return Lab(options.name) if options.name else Lab()


def _topology(options: argparse.Namespace) -> Topology:

    scale = None if options.scale is None else number(options.scale, "--scale")
    if scale is not None and not 0 < scale <= 10:
        raise InputError("--scale", "must be above 0 and at most 10", value=options.scale)
    wan = wan_of(options)
    if options.from_store:
        if options.profile:
            raise InputError("--from-store", "can't be together with --profile")
        if wan.snapshot.source == "baseline":
            problem = "needs measurements, and the store has none"
            remedy = "Import some with `relayd import`, or leave --from-store out."
            raise InputError("--from-store", problem, remedy=remedy)
        return profiles.topology_of_network(
            wan.network,
            regions=_regions(options.regions, wan, ()),
            scale=scale or profiles.DEFAULT_SCALE,
        )
    name = options.profile or _DEFAULT_PROFILE
    path = Path(name)
    if path.suffix != ".toml":
        path = built_in_folder() / f"lab-{name}.toml"
        if not path.exists():
            known = ", ".join(profiles.profile_names(built_in_folder()))
            remedy = f"Give {known}, or a TOML file."
            raise InputError("--profile", "is not a profile", value=name, remedy=remedy)
    profile = profiles.load_profile(path)
    regions = _regions(options.regions, wan, [entry.region for entry in profile.site])
    return profiles.topology_of(
        profile, wan.catalogue, backbone.rtt_ms, regions=regions, scale=scale
    )


def _regions(text: str | None, wan: Wan, own: Sequence[str]) -> int | list[str] | None:
    """Read a number of regions, or a list of names; `own` are a profile's own sites."""
    if text is None or text.isdigit():
        return None if text is None else int(text)
    names = [name.strip() for name in text.split(",")]
    return [name if name in own else wan.resolve(name, "--regions").region_id for name in names]
