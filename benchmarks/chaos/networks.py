"""Network namespaces whose packets to a database can be dropped while those to a host pass."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from probes.fleet.hosts import Fleet
from tests.relayd.store.proxy import Proxy

HOST = "aws:us-east-1"
NOBODY = "02:00:00:00:00:01"


@dataclass
class Network:
    """A namespace with one link to the database and one to the host of a fleet.

    Attributes
    ----------
    inside : tuple of str
        The command that runs another in it.
    database : tuple of str and int
        Where the database is reached from inside.
    """

    number: int
    inside: tuple[str, ...]
    database: tuple[str, int]
    _stack: ExitStack = field(default_factory=ExitStack)

    def seen_from_inside(self, fleet: Fleet, folder: Path) -> Fleet:
        """Return the fleet with the address at which its host is reached from inside."""
        host = fleet[HOST]
        address = f"10.97.{self.number}.1"
        proxy = self._stack.enter_context(Proxy(host.port, address))
        known = folder / f"known_hosts-{self.number}"
        key = host.known_hosts.read_text().split(None, 1)[1]
        known.write_text(f"[{address}]:{proxy.port} {key}")
        return Fleet({HOST: replace(host, host=address, port=proxy.port, known_hosts=known)})

    @contextmanager
    def dropping(self) -> Iterator[None]:
        """Drop all packets between the inside and the database, in both directions.

        They are sent to a hardware address that nobody has: kernels need no module for that.
        """
        ends = (((), f"chaosdb{self.number}", 2), (self.inside, "database", 1))
        for command, device, last in ends:
            peer = (f"10.98.{self.number}.{last}", "dev", device)
            _run(*command, "ip", "neigh", "replace", *peer, "lladdr", NOBODY, "nud", "permanent")
        try:
            yield
        finally:
            for command, device, last in ends:
                _run(*command, "ip", "neigh", "del", f"10.98.{self.number}.{last}", "dev", device)


@contextmanager
def private_network(number: int, database_port: int) -> Iterator[Network]:
    """Make a namespace, from within one that is not the machine's (``unshare --net``)."""
    devices = {line.split(": ")[1] for line in _run("ip", "-o", "link").splitlines()}
    if any(not device.startswith(("lo", "chaos")) for device in devices):
        raise RuntimeError("run this in a network namespace of its own: `unshare --net`")
    _run("ip", "link", "set", "lo", "up")
    # It lasts as long as a process in it.
    with (
        subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as keeper,
        ExitStack() as stack,
    ):
        stack.callback(keeper.kill)
        inside = ("nsenter", f"--net=/proc/{keeper.pid}/ns/net")
        own = Path("/proc/self/ns/net").stat().st_ino
        while Path(f"/proc/{keeper.pid}/ns/net").stat().st_ino == own:
            pass  # it has not left ours yet
        for kind, net in (("db", 98), ("ssh", 97)):
            outer, inner = f"chaos{kind}{number}", {"db": "database", "ssh": "host"}[kind]
            _run(
                *("ip", "link", "add", outer, "type", "veth"),
                *("peer", "name", inner, "netns", str(keeper.pid)),
            )
            for command, device, last in (((), outer, 1), (inside, inner, 2)):
                address = f"10.{net}.{number}.{last}/24"
                _run(*command, "ip", "addr", "add", address, "dev", device)
                _run(*command, "ip", "link", "set", device, "up")
        proxy = stack.enter_context(Proxy(database_port, f"10.98.{number}.1"))
        yield Network(number, inside, (f"10.98.{number}.1", proxy.port), stack)


def _run(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
