"""Checks whether the hosts of a fleet are fit to measure, with remedies where they are not."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, Literal, TypeAlias

from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet, Host
from probes.fleet.session import HostSession
from probes.fleet.sessions import Sessions
from probes.importers.iperf3 import explained
from probes.tools.interface import Ports, failure, make_test, prepared
from probes.tools.iperf3 import Iperf3, read_document

Severity: TypeAlias = Literal["error", "warning"]

AT_ONCE = 64
OLDEST_IPERF3 = (3, 7)
"""``--connect-timeout`` came with 3.2, results of ``-J`` as they are read here with 3.7."""
MOST_CLOCK_OFFSET_S = 2.0
LEAST_IDLE_SHARE = 0.8
LEAST_WINDOW_BYTES = 2**20
"""A window below 1 MiB holds one flow over 100 ms under 84 Mbit/s."""
LEAST_FREE_KIB = 10 * 1024
_INSTALLS = "`relayd measure fleet check --install-tools` installs"

# Prints one fact a line: a key, a blank, the value.
_FACTS = """\
LC_ALL=C PATH=$PATH:/usr/sbin:/sbin
export LC_ALL PATH
for tool in iperf3 ping traceroute python3 timeout; do
    command -v "$tool" >/dev/null 2>&1 && echo "has $tool"
done
echo "iperf3 $(iperf3 --version 2>/dev/null | head -n 1)"
for name in tcp_rmem tcp_wmem tcp_congestion_control tcp_window_scaling; do
    echo "$name $(cat /proc/sys/net/ipv4/$name 2>/dev/null)"
done
echo "kernel $(uname -sr)"
echo "processors $(grep -c ^processor /proc/cpuinfo)"
echo "free_kib $(df -Pk /tmp 2>/dev/null | awk 'NR == 2 { print $4 }')"
for manager in apt-get dnf yum zypper apk pacman; do
    command -v "$manager" >/dev/null 2>&1 && { echo "manager $manager"; break; }
done
echo "user_id $(id -u)"
sudo -n true 2>/dev/null && echo "sudo yes"
echo "cpu $(head -n 1 /proc/stat)"
sleep 0.5
echo "cpu_later $(head -n 1 /proc/stat)"
"""


@dataclass(frozen=True, slots=True)
class HostFinding:
    """A problem of a host."""

    severity: Severity
    problem: str
    remedy: str = ""


@dataclass
class HostReport:
    """The result of checking a host."""

    host: Host
    # Tools, versions, TCP settings, clock offset and idle share, as far as they are known
    facts: dict[str, Any] = field(default_factory=dict)
    findings: list[HostFinding] = field(default_factory=list)  # empty if all is well

    @property
    def fit(self) -> bool:
        """True if the host can take part in a campaign."""
        return all(finding.severity != "error" for finding in self.findings)


async def check_fleet(fleet: Fleet, sessions: Sessions) -> list[HostReport]:
    """Check all hosts at once; failures of one are findings about that one."""
    reports = {host.name: HostReport(host) for host in fleet}
    limit = asyncio.Semaphore(AT_ONCE)

    async def check(report: HostReport) -> None:
        async with limit:
            try:
                session = await sessions.session(report.host.name)
                await _check(session, report)
            except ProbeError as error:
                report.findings.append(HostFinding("error", error.problem, error.remedy))

    await asyncio.gather(*(check(report) for report in reports.values()))
    await _try_ports(fleet, sessions, reports)
    return list(reports.values())


async def _check(session: HostSession, report: HostReport) -> None:
    before_s = time.time()
    clock = await session.ask(["date", "+%s.%N"])
    after_s = time.time()
    offset_s: float | None = None
    with suppress(ValueError):
        offset_s = round(float(clock.stdout) - (before_s + after_s) / 2, 3)
    report.facts |= {
        "clock_offset_s": offset_s,
        "ssh_round_trip_ms": round((after_s - before_s) * 1e3, 1),
    }
    output = await session.ask(["sh", "-c", _FACTS, "relayd"])
    values: defaultdict[str, str] = defaultdict(str)
    tools: list[str] = []
    for line in output.stdout.decode(errors="replace").splitlines():
        key, _, value = line.partition(" ")
        if key == "has":
            tools.append(value)
        else:
            values[key] = "".join(c for c in value.strip() if c.isprintable() or c == "\t")[:200]
    is_root = values["user_id"] == "0"
    report.facts |= {
        "tools": {name: _version(values[name]) for name in tools},
        "kernel": values["kernel"],
        "processors": _int(values["processors"]),
        "congestion_control": values["tcp_congestion_control"],
        "receive_window_bytes": _int(values["tcp_rmem"], 2),
        "send_window_bytes": _int(values["tcp_wmem"], 2),
        "window_scaling": values["tcp_window_scaling"] != "0",
        "free_kib": _int(values["free_kib"]),
        "package_manager": values["manager"],
        "may_install": is_root or values["sudo"] == "yes",
        "is_root": is_root,
        "idle_share": _idle_share(values["cpu"], values["cpu_later"]),
        "leftovers_ended": session.leftovers,
    }
    report.findings += _judged(report.facts)


def _judged(facts: dict[str, Any]) -> list[HostFinding]:
    tools, iperf3 = facts["tools"], facts["tools"].get("iperf3")
    version = re.match(r"(\d+)\.(\d+)", iperf3 or "")
    is_old = version is not None and tuple(map(int, version.groups())) < OLDEST_IPERF3
    has_ping, has_python = "ping" in tools, "python3" in tools
    # What is not known is no reason for a finding.
    window, free_kib, idle = (
        inf if facts[name] is None else facts[name]
        for name in ("receive_window_bytes", "free_kib", "idle_share")
    )
    offset_s = facts["clock_offset_s"] or 0.0
    rules: tuple[tuple[bool, Severity, str, str], ...] = (
        (iperf3 is None, "error", "iperf3 is missing", f"{_INSTALLS} it."),
        (is_old, "warning", f"iperf3 is of version {iperf3}", "Install 3.7 or newer."),
        ("timeout" not in tools, "error", "`timeout` is missing", "Install coreutils."),
        (
            not has_ping and not has_python,
            "error",
            "neither ping nor python3 is there to measure round-trip times",
            f"{_INSTALLS} ping.",
        ),
        (
            not has_ping and has_python,
            "warning",
            "ping is missing; TCP handshakes stand in, without loss",
            f"{_INSTALLS} it.",
        ),
        (
            not facts["window_scaling"],
            "warning",
            "TCP window scaling is off: a flow has at most 64 kB in flight",
            "Set net.ipv4.tcp_window_scaling = 1.",
        ),
        (
            window < LEAST_WINDOW_BYTES,
            "warning",
            f"net.ipv4.tcp_rmem allows {window / 1e6:.2g} MB: one flow over 100 ms "
            f"gets at most {window * 8 / 0.1 / 1e6:.0f} Mbit/s",
            "Raise the third figure of net.ipv4.tcp_rmem if transfers get more.",
        ),
        (
            abs(offset_s) > MOST_CLOCK_OFFSET_S,
            "warning",
            f"its clock is off by {offset_s:+.1f} s",
            "Turn on NTP; samples carry this machine's time.",
        ),
        (
            idle < LEAST_IDLE_SHARE,
            "warning",
            f"its processors are only {idle:.0%} idle",
            "Other work on it will lower what is measured.",
        ),
        (
            free_kib < LEAST_FREE_KIB,
            "warning",
            f"only {free_kib} KiB are free in /tmp",
            "Free some space.",
        ),
    )
    return [HostFinding(severity, *words) for applies, severity, *words in rules if applies]


async def _try_ports(fleet: Fleet, sessions: Sessions, reports: dict[str, HostReport]) -> None:
    """Run a tiny test around the ring of hosts that are fit, each once at either end."""
    able = [name for name, report in reports.items() if report.fit]
    ports, limit = Ports(), asyncio.Semaphore(AT_ONCE)

    async def attempt(src: str, dst: str) -> None:
        report = reports[src]
        async with limit:
            try:
                await _tiny_test(fleet, sessions, ports, src, dst)
            except ProbeError as error:
                problem = f"from {dst}: {error.problem}"
                report.findings.append(HostFinding("error", problem, error.remedy))
        report.facts["probe_port_reachable"] = report.fit

    if len(able) > 1:
        ring = zip(able, [*able[1:], able[0]], strict=True)
        await asyncio.gather(*(attempt(src, dst) for src, dst in ring))


async def _tiny_test(fleet: Fleet, sessions: Sessions, ports: Ports, src: str, dst: str) -> None:
    tool = Iperf3()
    test = replace(make_test(fleet, tool, src, dst), duration_s=1.0)
    async with prepared(sessions, ports, tool, test) as ready:
        session = await sessions.session(dst)
        command = ["iperf3", "-c", ready.address, "-p", str(ready.port), "-J", "-R"]
        command += ["-n", "64K", "--connect-timeout", "5000"]
        document = read_document(await session.measure(command, 20.0), ready)
        if "error" in document:
            raise failure(fleet[dst], tool.name, explained(document["error"]))


def _version(text: str) -> str:
    return next((word for word in text.replace("-", " ").split() if word[:1].isdigit()), "")


def _int(text: str, place: int = 0) -> int | None:
    """Return one of the words of a text, if it is a number."""
    words = text.split()
    return int(words[place]) if len(words) > place and words[place].isdigit() else None


def _idle_share(before: str, after: str) -> float | None:
    """Return the idle share between two `cpu` lines of /proc/stat (idle and iowait)."""
    first, second = (
        [int(word) for word in line.split()[1:9] if word.isdigit()] for line in (before, after)
    )
    spent = [after - before for before, after in zip(first, second, strict=False)]
    if len(first) != len(second) or len(first) < 5 or sum(spent) <= 0:
        return None
    return round((spent[3] + spent[4]) / sum(spent), 3)


def unknown_hosts(reports: Sequence[HostReport]) -> list[Host]:
    """Return the hosts that have no key on record."""
    unknown = "host key is not in"
    return [one.host for one in reports if any(unknown in f.problem for f in one.findings)]


# ---- installing, only on request ---------------------------------------------------------------

INSTALL_S = 300.0

# Manager: the commands, and the name of the package with ping.
_MANAGERS: dict[str, tuple[list[str], str]] = {
    "apt-get": (
        ["apt-get -q update", "apt-get -qy --no-install-recommends install"],
        "iputils-ping",
    ),
    "dnf": (["dnf -q -y install"], "iputils"),
    "yum": (["yum -q -y install"], "iputils"),
    "zypper": (["zypper --non-interactive install"], "iputils"),
    "apk": (["apk add --no-cache"], "iputils"),
    "pacman": (["pacman -S --noconfirm"], "iputils"),
}


def install_commands(report: HostReport) -> list[list[str]]:
    """Return the commands that would install missing tools; empty if nothing can be done.

    Root is needed here, by login or ``sudo -n``, and nowhere else.
    """
    tools = report.facts.get("tools")
    manager = report.facts.get("package_manager", "")
    if tools is None or manager not in _MANAGERS or not report.facts.get("may_install"):
        return []
    commands, ping = _MANAGERS[manager]
    packages = [name for tool, name in (("iperf3", "iperf3"), ("ping", ping)) if tool not in tools]
    if not packages:
        return []
    whole = [command.split() for command in commands]
    if manager == "apt-get":
        whole = [["env", "DEBIAN_FRONTEND=noninteractive", *command] for command in whole]
    whole[-1] += packages
    return whole if report.facts.get("is_root") else [["sudo", "-n", *line] for line in whole]


async def install(session: HostSession, commands: list[list[str]]) -> None:
    """Run the commands on a host; raises ProbeError if one fails, with its last error line."""
    for command in commands:
        output = await session.measure(command, INSTALL_S)
        if output.status != 0:
            problem = f"installing failed ({output.last_error_line})"
            raise ProbeError(session.host.name, "tool", problem, "Install iperf3 there by hand.")
