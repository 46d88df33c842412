"""Two replicas on PostgreSQL, each through a proxy and a pgbouncer, in both of its modes.

They take samples and answer plans at a modest rate all the while. The way to the database is cut,
half closed, delayed and stopped by turns, sessions are ended, and the server is restarted and
crashes. Whatever happens, an answer is the one that was asked for or a 503 that says why, and
plans, which rest on memory, have no excuse; what was acknowledged is stored, once.
"""

from __future__ import annotations

import random
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from benchmarks.chaos.kills import BATCH, SENDERS, Killed, Senders, is_clear, senders, settle
from benchmarks.chaos.takeovers import through
from benchmarks.processes import Seen, growth, watched_memory
from tests.http.running import REGIONS, Served
from tests.pgbouncer import pgbouncer
from tests.postgresql import PostgresqlServer, running_server
from tests.relayd.store.proxy import Proxy

MODES = ("session", "transaction")
SEND_EVERY_S = 2.0
"""Of each of the senders to each replica."""
ASK_EVERY_S = 0.4
FAULT_EVERY_S = 25.0
HANG_S, SLOW_S, AWAY_S = 8.0, 10.0, 3.0
DELAY_S = 0.05
WARM_UP_SHARE = 0.25
_ENVIRONMENT = {"RELAYD_SERVE_ACCESS_LOG": "false", "RELAYD_SERVE_SNAPSHOT_EVERY_S": "15"}
_LONGEST_S = 90.0
_QUESTIONS = (
    ("POST", "/v1/plans"),
    ("POST", "/v1/plans"),
    ("POST", "/v1/plans"),
    ("GET", "/v1/links?limit=20"),
    ("GET", "/v1/snapshots?limit=5"),
)


@dataclass
class Soaked:
    """Results of a soak.

    Attributes
    ----------
    samples : Killed
        Fate of those that were sent.
    plans, further : int
        Plans, and other answers to questions.
    heals_s : dict of str to list of float
        From the end of each kind of fault until both replicas had taken samples of all senders.
    memory_mb : list of Seen
        Of each replica.
    grown : list of float
        Of each replica after warming up.
    wrong : list of str
    """

    samples: Killed = field(default_factory=Killed)
    plans: int = 0
    further: int = 0
    heals_s: dict[str, list[float]] = field(default_factory=dict)
    memory_mb: list[Seen] = field(default_factory=list)
    grown: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def soak(minutes: float, seed: int = 5) -> Soaked:
    """Run two replicas for a time, and break the way to their database again and again."""
    chance, seen, until_s = random.Random(seed), Soaked(), time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="relayd-chaos-") as name, ExitStack() as stack:
        server = stack.enter_context(running_server())
        where, proxies, services, sending = server.new_store(), [], [], []
        for number, mode in enumerate(MODES):
            proxies.append(stack.enter_context(Proxy(stack.enter_context(pgbouncer(server, mode)))))  # type: ignore[arg-type]
            address = through(server, where, proxies[-1].port)
            log = Path(name) / f"service-{number}.log"
            services.append(Served(address, environment=_ENVIRONMENT, log=log))
            stack.callback(services[-1].stop)
        for number, service in enumerate(services):
            seen.memory_mb.append(stack.enter_context(watched_memory(service.process.pid)))
            stack.enter_context(_asked(service, seen, number))
            first = 50_000_000 * number
            sending.append(stack.enter_context(senders(first, SEND_EVERY_S, is_killed=False)))
            sending[-1].service = service
        while time.monotonic() < until_s:
            time.sleep(chance.uniform(0.6, 1.4) * FAULT_EVERY_S)
            kind, fault = chance.choice(_FAULTS)
            fault(server, chance.choice([*proxies]))
            seen.heals_s.setdefault(kind, []).append(_healed_s(kind, services, sending, seen))
        for one in sending:
            one.stop()
            settle(seen.samples, one, where)
        for service in services:
            faults = [line for line in service.lines() if line["level"] == "error"]
            seen.wrong += [f"fault in the log: {str(fault)[-900:]}" for fault in faults]
    seen.wrong += seen.samples.wrong
    seen.grown = [growth(memory, WARM_UP_SHARE * 60 * minutes) for memory in seen.memory_mb]
    return seen


def _healed_s(kind: str, services: list[Served], sending: list[Senders], seen: Soaked) -> float:
    """Return the time until both are ready and have taken a batch of each sender again."""
    began_s, known = time.monotonic(), [len(one.acknowledged) for one in sending]
    while (took_s := time.monotonic() - began_s) < _LONGEST_S:
        if all(
            len(one.acknowledged) >= before + SENDERS * BATCH
            and service.get("/readyz").status == 200
            for one, before, service in zip(sending, known, services, strict=True)
        ):
            return took_s
        time.sleep(0.1)
    seen.wrong.append(f"not healed {_LONGEST_S:.0f} s after {kind}")
    return took_s


@contextmanager
def _asked(service: Served, seen: Soaked, number: int) -> Iterator[None]:
    """Ask a service questions for a while."""
    chance, ended = random.Random(number), threading.Event()

    def ask() -> None:
        while not ended.wait(ASK_EVERY_S):
            method, path = chance.choice(_QUESTIONS)
            src, dst = chance.sample(REGIONS, 2)
            body = {"src": src, "dst": dst, "volume_gb": 500.0} if method == "POST" else None
            try:
                answer = service.ask(method, path, body)
            except (OSError, HTTPException) as error:
                seen.wrong.append(f"no answer to {path}: {error!r}")
                continue
            if answer.status == 200:
                seen.plans += method == "POST"
                seen.further += method == "GET"
            elif method == "POST" or not is_clear(answer):
                seen.wrong.append(f"{path}: {answer.status} {answer.content[:200]!r}")
            else:
                seen.samples.unavailable += 1

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# ---- faults -------------------------------------------------------------------------------------


def _cut(_: PostgresqlServer, proxy: Proxy) -> None:
    proxy.cut()


def _half_close(_: PostgresqlServer, proxy: Proxy) -> None:
    proxy.cut(socket.SHUT_WR)


def _lose_commit(_: PostgresqlServer, proxy: Proxy) -> None:
    proxy.cut_at(b"COMMIT\0", forward=True)
    time.sleep(AWAY_S)


def _hang(_: PostgresqlServer, proxy: Proxy) -> None:
    proxy.hang()
    time.sleep(HANG_S)
    proxy.go_on()


def _delay(_: PostgresqlServer, proxy: Proxy) -> None:
    proxy.delay_s = DELAY_S
    time.sleep(SLOW_S)
    proxy.delay_s = 0.0


def _end_sessions(server: PostgresqlServer, _: Proxy) -> None:
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )


def _end_sessions_unseen(server: PostgresqlServer, proxy: Proxy) -> None:
    proxy.keeps_open = True
    _end_sessions(server, proxy)
    time.sleep(AWAY_S)
    proxy.keeps_open = False


def _restart(server: PostgresqlServer, _: Proxy) -> None:
    server.restart("fast")


def _crash(server: PostgresqlServer, _: Proxy) -> None:
    server.crash()
    time.sleep(AWAY_S)
    server.start()


_FAULTS: tuple[tuple[str, Callable[[PostgresqlServer, Proxy], None]], ...] = (
    ("a cut", _cut),
    ("a half-closed way back", _half_close),
    ("a lost confirmation", _lose_commit),
    ("a hang", _hang),
    ("delays", _delay),
    ("ended sessions", _end_sessions),
    ("ended sessions kept open", _end_sessions_unseen),
    ("a restart", _restart),
    ("a crash", _crash),
)
