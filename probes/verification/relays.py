"""A relay that splits TCP, on a host of the fleet: a port for each peer, while it is needed.

HAProxy where it is there, else socat, which forks for each connection. It runs as the user that is
logged in, needs no firewall, listens on an address of the host where that is known, and accepts on
each port connections from one peer alone.
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet
from probes.fleet.session import HostSession
from probes.fleet.sessions import Sessions
from probes.tools.interface import Ports, Test
from probes.tools.together import all_ready, servers

READY = b"relaying"
HAPROXY = ("haproxy", "-db", "-q", "-f", "/dev/stdin")
"""In the foreground, with the configuration as its input."""
SPARE_CONNECTIONS = 8
"""For iperf3's control connection, and further attempts of a peer."""

_FIND = """\
PATH=$PATH:/usr/sbin:/sbin
command -v haproxy || command -v socat || exit 127
"""

# $1 ports in hexadecimal, $2 the program's standard input, the rest: the program. Prints a line
# once it listens on all of them; ends if another program does.
_RELAY = """\
listening() { cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q ":$1 0*:0000 0A "; }
ports=$1 config=$2
shift 2
for port in $ports; do
    listening "$port" && { echo "address already in use" >&2; exit 1; }
done
printf '%s' "$config" | "$@" &
tries=0
for port in $ports; do
    until listening "$port"; do
        sleep 0.05; tries=$((tries + 1))
        [ "$tries" -lt 100 ] || exit 1
    done
done
echo relaying
wait
"""


@dataclass(frozen=True, slots=True)
class RelayTask:
    """Task of a relay on one port."""

    listen: str  # address to listen at; "" for all that the host has
    port: int
    peers: tuple[str, ...]  # addresses of the one host that may connect, the likeliest first
    target: str  # address to pass connections on to
    target_port: int
    connections: int


def haproxy_config(listeners: Sequence[RelayTask], limit_s: int) -> str:
    """Return HAProxy's configuration."""
    most = sum(what.connections + SPARE_CONNECTIONS for what in listeners)
    # A side that is silent for all of the run is dead anyway.
    head = f"""\
global
  maxconn {most}
defaults
  mode tcp
  timeout connect 10s
  timeout client {limit_s}s
  timeout server {limit_s}s
"""
    return head + "".join(
        f"""\
listen relay{what.port}
  maxconn {what.connections + SPARE_CONNECTIONS}
  bind {_bracketed(what.listen or ("::" if ":" in what.peers[0] else ""))}:{what.port}
  tcp-request connection reject unless {{ src {" ".join(what.peers)} }}
  server target {_bracketed(what.target)}:{what.target_port}
"""
        for what in listeners
    )


def socat_command(what: RelayTask) -> list[str]:
    """Return socat's command; it can restrict peers to one address, not to several."""
    version = ipaddress.ip_address(what.peers[0]).version
    listen = f"TCP{version}-LISTEN:{what.port},fork,reuseaddr,backlog=128"
    listen += f",range={_bracketed(what.peers[0])}/{32 if version == 4 else 128}"
    listen += f",max-children={what.connections + SPARE_CONNECTIONS}"
    if what.listen:
        listen += f",bind={_bracketed(what.listen)}"
    return ["socat", listen, f"TCP:{_bracketed(what.target)}:{what.target_port}"]


def relay_commands(
    program: str, listeners: Sequence[RelayTask], limit_s: int
) -> list[tuple[str, ...]]:
    """Return the commands to run side by side: one HAProxy for all, or a socat for each."""

    def command(own: Sequence[RelayTask], config: str, words: Sequence[str]) -> tuple[str, ...]:
        ports = " ".join(f"{what.port:04X}" for what in own)
        return ("sh", "-c", _RELAY, "relayd", ports, config, *words)

    if program == "haproxy":
        return [command(listeners, haproxy_config(listeners, limit_s), HAPROXY)]
    return [command([what], "", socat_command(what)) for what in listeners]


@asynccontextmanager
async def relaying(
    sessions: Sessions,
    ports: Ports,
    relay: str,
    tests: Sequence[Test],
    avoid: set[int],
    limit_s: float,
) -> AsyncIterator[tuple[str, list[tuple[str, int]]]]:
    """Relay the connections of tests on a host.

    Yields the program that relays, and the address and port that each ``dst`` is to connect to.

    Raises ProbeError if the host has neither program, or no port is free.

    Parameters
    ----------
    relay : str
        Host of the fleet.
    tests : sequence of Test
        Each with the port on which its source listens.
    avoid : set of int
        Ports on which something listens there.
    limit_s : float
        Time after which the relay's host ends it in any case.
    """
    fleet, session = sessions.fleet, await sessions.session(relay)
    program = await _program(session)
    rows = (await _printed(session, "ip", "-o", "addr", "show")).splitlines()
    has = {word.partition("/")[0] for row in rows for word in row.split()[3:4]}
    listeners, reached = [], []
    async with AsyncExitStack() as stack:
        for test in tests:
            src, dst = test.src.name, test.dst.name
            address = fleet.target(dst, relay)
            # A cloud's public address is often known to the network alone.
            own = next((a for a in (address, session.host.private_address) if a and a in has), "")
            peers = await _peers(session, fleet, relay, dst)
            port = await stack.enter_async_context(ports.several(fleet[relay], 1, avoid))
            target = fleet.target(relay, src)
            listeners.append(RelayTask(own, port, peers, target, test.port, test.connections))
            reached.append((address, port))
        commands = relay_commands(program, listeners, round(limit_s))
        command = servers(commands)
        running = await stack.enter_async_context(session.server(command, limit_s))
        await all_ready(running, fleet[relay], program, READY, len(commands))
        try:
            yield program, reached
        finally:
            await running.stop(grace_s=0.0)  # it never ends by itself


async def _program(session: HostSession) -> str:
    name = (await _printed(session, "sh", "-c", _FIND)).strip().rpartition("/")[2]
    if name not in ("haproxy", "socat"):
        problem = "it can't relay: neither haproxy nor socat is there"
        remedy = "Install one of them there by the host's package manager."
        raise ProbeError(session.host.name, "missing-tool", problem, remedy)
    return name


async def _peers(session: HostSession, fleet: Fleet, relay: str, dst: str) -> tuple[str, ...]:
    """Return the addresses of the host that is to connect, as the relay may see them."""
    peer = fleet[dst]
    names = (fleet.target(relay, dst), peer.private_address, peer.public_address)
    addresses: list[str] = []
    for name in dict.fromkeys(filter(None, names)):
        words = name if _is_address(name) else await _printed(session, "getent", "ahosts", name)
        addresses += filter(_is_address, words.split())
    if not addresses:
        remedy = "Give it as `public_address` or `private_address` in the fleet file."
        raise ProbeError(relay, "tool", f"the address of {dst} can't be found there", remedy)
    return tuple(dict.fromkeys(addresses))


async def _printed(session: HostSession, *command: str) -> str:
    return (await session.ask(command)).stdout.decode(errors="replace")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
