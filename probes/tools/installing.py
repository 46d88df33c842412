"""Installs missing tools on a host by its own package manager, only on request."""

from __future__ import annotations

from probes.fleet.failures import ProbeError
from probes.fleet.session import HostSession
from probes.tools.host_check import HostReport

INSTALL_S = 300.0

# Manager: the command, and what the package with ping is called.
_MANAGERS: dict[str, tuple[list[list[str]], str]] = {
    "apt-get": (
        [
            ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "update"],
            [
                "env",
                "DEBIAN_FRONTEND=noninteractive",
                "apt-get",
                "-q",
                "-y",
                "--no-install-recommends",
                "install",
            ],
        ],
        "iputils-ping",
    ),
    "dnf": ([["dnf", "-q", "-y", "install"]], "iputils"),
    "yum": ([["yum", "-q", "-y", "install"]], "iputils"),
    "zypper": ([["zypper", "--non-interactive", "install"]], "iputils"),
    "apk": ([["apk", "add", "--no-cache"]], "iputils"),
    "pacman": ([["pacman", "-S", "--noconfirm"]], "iputils"),
}


def install_commands(report: HostReport) -> list[list[str]]:
    """Return the commands that would install what is missing; empty if nothing can be done.

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
    whole = [*commands[:-1], [*commands[-1], *packages]]
    return whole if report.facts.get("is_root") else [["sudo", "-n", *line] for line in whole]


async def install(session: HostSession, commands: list[list[str]]) -> None:
    """Run the commands on a host.

    Raises
    ------
    ProbeError
        If one fails, with its last error line.
    """
    for command in commands:
        output = await session.measure(command, INSTALL_S)
        if output.status != 0:
            raise ProbeError(
                session.host.name,
                "tool",
                f"installing failed ({output.last_error_line})",
                "Install iperf3 there by hand.",
            )
