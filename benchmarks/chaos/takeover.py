"""The prober hangs, or can't reach the database: how soon another follows, and whether both probe.

Two real processes stand for the replicas. Whoever holds the lease runs a tool on a real sshd, which
writes down when it runs, and stores an event every so often under its lease's number.
"""

from __future__ import annotations

import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.chaos.networks import HOST, Network, private_network
from probes.fleet.hosts import Fleet
from relayd.store import open_store
from relayd.store.events import Events
from tests.http.running import ROOT, Served
from tests.http.test_watch import FLEET
from tests.postgresql import PostgresqlServer, running_server
from tests.probes.fleet.machines import machines
from tests.relayd.store.proxy import Proxy
from tests.stopping import stopped

NAMES = ("first", "second")
LONGEST_S = 60.0
SETTLED_S = 2.0
"""How long the woken one is watched after its successor has begun."""
_REPLICA = """\
import asyncio, faulthandler, pickle, signal, sys
from pathlib import Path
from planner.model.errors import RelaydError
from probes.fleet.sessions import Sessions
from benchmarks.chaos.networks import HOST, Network, private_network
from probes.fleet.hosts import Fleet
from relayd.store import open_store
from relayd.store.events import Events
from relayd.campaigns.running import while_held

faulthandler.register(signal.SIGUSR1)  # says where it is, if nobody takes over
where, fleet, name, ticks = sys.argv[1:]
# The date is the machine's; the first tick of a holder names it.
TOOL = 'while :; do echo "$(date +%s.%N) ' + name + '" >> ' + ticks + '; sleep 0.05; done'

async def probe(store, lease):
    async def events():
        while True:
            await asyncio.to_thread(lease.check)
            Events(store.database).add("leg", str(lease.fence.number), {})
            await asyncio.sleep(0.2)
    # Other runs on this machine have other owners, who must not end each other's tools.
    owner, hosts = f"{name} {ticks}", pickle.loads(Path(fleet).read_bytes())
    async with Sessions(hosts, owner, permit=lease.check) as found:
        session = await found.session("aws:us-east-1")
        await asyncio.gather(session.measure(["sh", "-c", TOOL], 600), events())

while True:
    try:
        with open_store(where, mode="write", statement_timeout_s=2) as store:
            with store.new_lease("prober") as lease:
                while True:
                    while not lease.acquire():
                        asyncio.run(asyncio.sleep(1.0))
                    store.lease = lease
                    asyncio.run(while_held(lease, probe(store, lease)))
    except (RelaydError, BaseExceptionGroup) as error:
        print(name, error, flush=True)
        asyncio.run(asyncio.sleep(0.5))
"""


@dataclass
class TakenOver:
    """What was seen.

    Attributes
    ----------
    took_s : list of float
        From the hang to the successor's first probe.
    gaps_s : list of float
        From the last sign of the old one's probe to the first of the new one's.
    wrong : list of str
    """

    took_s: list[float] = field(default_factory=list)
    gaps_s: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


@dataclass
class _Replica:
    """A process that is to probe, and how it reaches the database and the host.

    Attributes
    ----------
    where : str
        Address of the store.
    proxy : Proxy or None
        On the way to the database.
    network : Network or None
        Its own.
    """

    name: str
    where: str
    proxy: Proxy | None = None
    network: Network | None = None
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self, fleet: Fleet, folder: Path, ticks: Path) -> None:
        path = folder / f"{self.name}.fleet"
        if self.network:
            fleet = self.network.seen_from_inside(fleet, folder)
        path.write_bytes(pickle.dumps(fleet))
        words = [sys.executable, "-c", _REPLICA, self.where, str(path), self.name, str(ticks)]
        with (folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*(self.network.inside if self.network else ()), *words],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=log,
            )


@contextmanager
def _running(replicas: Sequence[_Replica], folder: Path) -> Iterator[Path]:
    """Run replicas; gives the file with the times at which their tools ran."""
    ticks = folder / "ticks"
    ticks.touch()
    with machines(folder, [HOST]) as (fleet, _), ExitStack() as stack:
        for replica in replicas:
            replica.start(fleet, folder, ticks)
            stack.callback(replica.process.wait)
            stack.callback(replica.process.kill)
        try:
            yield ticks
        except BaseException as error:
            for replica in replicas:
                replica.process.send_signal(signal.SIGUSR1)
                time.sleep(1.0)
                error.add_note(f"{replica.name}: {(folder / f'{replica.name}.log').read_text()}")
            raise


def _last(ticks: Path) -> tuple[float, str]:
    lines = ticks.read_text().splitlines()
    return _tick(lines[-1]) if lines else (0.0, "")


def _tick(line: str) -> tuple[float, str]:
    at_s, _, name = line.partition(" ")
    return float(at_s), name


@contextmanager
def _stopped(replica: _Replica) -> Iterator[None]:
    replica.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        replica.process.send_signal(signal.SIGCONT)


@contextmanager
def _cut_off(replica: _Replica) -> Iterator[None]:
    """Let nothing through to the database; what is sent is acknowledged all the same."""
    assert replica.proxy
    replica.proxy.hang()
    try:
        yield
    finally:
        replica.proxy.go_on()


@contextmanager
def _packets_dropped(replica: _Replica) -> Iterator[None]:
    """Drop all packets to and from the database."""
    assert replica.network
    with replica.network.dropping():
        yield


def _measure(
    replicas: Sequence[_Replica],
    folder: Path,
    hang: Callable[[_Replica], AbstractContextManager[None]],
    tries: int,
) -> TakenOver:
    seen, chance = TakenOver(), random.Random(4)
    with _running(replicas, folder) as ticks:
        for _ in range(tries):
            until(lambda: _last(ticks)[0] > time.time() - 0.5)
            time.sleep(chance.uniform(0.5, 4.0))
            name = _last(ticks)[1]
            leader = next(replica for replica in replicas if replica.name == name)
            with hang(leader):
                hung_s, known = time.time(), len(ticks.read_text().splitlines())
                until(lambda leader=leader: _last(ticks)[1] != leader.name)  # type: ignore[misc]
            time.sleep(SETTLED_S)
            new = [_tick(line) for line in ticks.read_text().splitlines()[known - 1 :]]
            first_s = next(at_s for at_s, name in new if name != leader.name)
            old = [at_s for at_s, name in new if name == leader.name]
            seen.took_s.append(first_s - hung_s)
            seen.gaps_s.append(first_s - max(old, default=hung_s))
            if seen.gaps_s[-1] <= 0:
                seen.wrong.append(f"both probed: {old[-1]:.3f} after {first_s:.3f}")
    with open_store(replicas[0].where, mode="read") as store:
        numbers = [int(event.subject) for event in Events(store.database).after(0, limit=10**6)]
    if numbers != sorted(numbers):
        seen.wrong.append("a former holder wrote after its successor")
    return seen


def until(happened: Callable[[], bool]) -> None:
    """Wait until something has happened."""
    deadline_s = time.monotonic() + LONGEST_S
    while not happened():
        if time.monotonic() > deadline_s:
            raise RuntimeError("Nobody took over.")
        time.sleep(0.01)


def stopped_on_sqlite(tries: int) -> TakenOver:
    """Stop the holder on a store in a file."""
    with temporary_folder() as folder:
        where = str(folder / "relayd.db")
        open_store(where, mode="create").close()
        return _measure([_Replica(name, where) for name in NAMES], folder, _stopped, tries)


def stopped_on_postgresql(tries: int) -> TakenOver:
    """Stop the holder on a server."""
    with temporary_folder() as folder, running_server() as server:
        where = server.new_store()
        return _measure([_Replica(name, where) for name in NAMES], folder, _stopped, tries)


def cut_off_from_postgresql(tries: int) -> TakenOver:
    """Cut the holder, but not its connection to the host, off from the server."""
    with temporary_folder() as folder, running_server() as server, ExitStack() as stack:
        where, replicas = server.new_store(), []
        for name in NAMES:
            proxy = stack.enter_context(Proxy(server.port))
            address = over(server, where, "127.0.0.1", proxy.port)
            replicas.append(_Replica(name, address, proxy))
        return _measure(replicas, folder, _cut_off, tries)


def packets_dropped_to_postgresql(tries: int) -> TakenOver:
    """Drop the packets between the holder and the server; needs root and a network of its own."""
    with temporary_folder() as folder, running_server() as server, ExitStack() as stack:
        where, replicas = server.new_store(), []
        for number, name in enumerate(NAMES, 1):
            network = stack.enter_context(private_network(number, server.port))
            address = over(server, where, *network.database)
            replicas.append(_Replica(name, address, network=network))
        return _measure(replicas, folder, _packets_dropped, tries)


def over(server: PostgresqlServer, where: str, host: str, port: int) -> str:
    """Return the address of a store by which it is reached through a proxy."""
    database = where.partition("@/")[2].partition("?")[0]
    return server.url(database, over="tcp").replace(f"127.0.0.1:{server.port}", f"{host}:{port}")


def services_stopped(where: str, folder: Path, tries: int) -> TakenOver:
    """Stop the one of two whole services that watches the fleet."""
    seen = TakenOver()
    (folder / "fleet.toml").write_text(FLEET)
    words = ("--fleet", str(folder / "fleet.toml"))
    environment = {"RELAYD_SERVE_WATCH_DAILY_BUDGET_USD": "1"}
    services = [
        Served(where, *words, environment=environment, log=folder / f"{name}.log") for name in NAMES
    ]
    try:
        for _ in range(tries):
            until(lambda: "prober" in map(role_of, services))
            leader, other = sorted(services, key=role_of)
            with stopped(leader.process.pid):
                hung_s = time.time()
                until(lambda other=other: role_of(other) == "prober")  # type: ignore[misc]
                seen.took_s.append(time.time() - hung_s)
            until(lambda leader=leader: role_of(leader) == "standby")  # type: ignore[misc]
            if role_of(other) != "prober":
                seen.wrong.append("the woken one probes again")
    finally:
        for service in services:
            service.stop()
    return seen


def role_of(service: Served) -> str:
    """Return the role of a service among those that watch."""
    watch = service.get("/readyz").json["watch"]
    return str(watch["role"]) if watch else "stopped"


def services_stopped_on_sqlite(tries: int) -> TakenOver:
    """Stop a service on a store in a file."""
    with temporary_folder() as folder:
        return services_stopped(str(folder / "relayd.db"), folder, tries)


def services_stopped_on_postgresql(tries: int) -> TakenOver:
    """Stop a service on a server."""
    with temporary_folder() as folder, running_server() as server:
        return services_stopped(server.new_store(), folder, tries)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="relayd-chaos-") as folder:
        yield Path(folder)
