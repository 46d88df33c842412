"""Hosts in network namespaces of this machine, joined by veth pairs at the kernel's full speed.

Each has a real sshd, an interface for its data whose counters count every packet as on Ethernet,
and another one for SSH. Needs root.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from probes.lab.sites import CONFIGURATION, SSHD, make_keys


@dataclass(frozen=True)
class Place:
    """Hosts that can be measured."""

    name: str
    within: tuple[str, ...]  # command that runs another where the hosts can be logged in to
    hosts: dict[str, dict[str, str | int]]  # region to the true keys of its entry in a fleet file
    # Returns what each region's host has sent to others so far, headers included
    sent_bytes: Callable[[], dict[str, int]]


@contextmanager
def veth_place(folder: Path, regions: Sequence[str]) -> Iterator[Place]:
    """Bring hosts up, and take them and all that runs in them down at the end."""
    mark = f"rb{os.getpid()}"
    hub = f"{mark}-hub"
    names = {region: f"{mark}-{number}" for number, region in enumerate(regions)}
    make_keys(folder, ["user", *names.values()])
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name in (hub, *names.values()):
            _run("ip", "netns", "add", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        _run("ip", "netns", "exec", hub, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
        hosts: dict[str, dict[str, str | int]] = {}
        known = folder / "known_hosts"
        lines = []
        for number, (region, name) in enumerate(names.items()):
            for kind, net in (("data", 77), ("ssh", 78)):
                ends = f"{kind}{number}", kind
                _run("ip", "-n", hub, "link", "add", ends[0], "type", "veth", "peer", "name", kind)
                _run("ip", "-n", hub, "link", "set", kind, "netns", name)
                for where, link, last in ((hub, ends[0], 1), (name, kind, 2)):
                    address = f"10.{net}.{number}.{last}/30"
                    _run("ip", "-n", where, "addr", "add", address, "dev", link)
                    _run("ip", "-n", where, "link", "set", link, "gso_max_segs", "1", "up")
            _run("ip", "-n", name, "route", "add", "default", "via", f"10.77.{number}.1")
            address = f"10.78.{number}.2"
            text = CONFIGURATION.replace("0.0.0.0", address)
            text = text.replace("/run/relayd/host_key", str(folder / name))
            text = text.replace("/run/relayd/authorized_keys", str(folder / "user.pub"))
            configuration = (folder / name).with_suffix(".sshd")
            configuration.write_text(text + f"SetEnv HOME={folder}\n")
            Path("/run/sshd").mkdir(exist_ok=True)
            command = ["ip", "netns", "exec", name, SSHD, "-D", "-f", str(configuration)]
            started.append(subprocess.Popen(command, start_new_session=True))
            public = (folder / name).with_suffix(".pub").read_text().split()
            lines.append(f"{address} {public[0]} {public[1]}\n")
            hosts[region] = {
                "host": address,
                "user": "root",
                "key": str(folder / "user"),
                "known_hosts": str(known),
                "private_address": f"10.77.{number}.2",
                "public_address": f"10.77.{number}.2",
            }
        known.write_text("".join(lines))
        time.sleep(0.5)  # until they listen
        pids = {region: one.pid for region, one in zip(names, started, strict=True)}

        def sent_bytes() -> dict[str, int]:
            return {region: _sent_on_data(pid) for region, pid in pids.items()}

        yield Place("veth", ("ip", "netns", "exec", hub), hosts, sent_bytes)
    finally:
        for name in (*names.values(), hub):
            listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
            for pid in listed.stdout.split():
                subprocess.run(["kill", "-9", pid], capture_output=True)
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        for one in started:
            one.wait()


def _sent_on_data(pid: int) -> int:
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
    (counters,) = (line.split(":")[1] for line in lines if line.split(":")[0].strip() == "data")
    return int(counters.split()[8])


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
