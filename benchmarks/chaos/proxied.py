"""Two replicas on PostgreSQL, each through a proxy and a pgbouncer, in both of its modes.

They take samples, make snapshots of them, and answer all the while. The way to the database is cut,
half closed, delayed and stopped by turns, sessions are ended, and the server is restarted and
crashes. Whatever happens, an answer is the one that was asked for or a 503 that says why, and
plans, shuffles and broadcasts, which rest on memory, have no excuse; what was acknowledged is
stored, once; and memory does not grow.
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
from typing import NamedTuple

from benchmarks.chaos.kills import BATCH, SENDERS, Outcome, Senders, is_clear
from benchmarks.chaos.takeovers import replicas, through
from benchmarks.processes import Seen, growth, watched_memory
from tests.http.running import REGIONS, Served
from tests.pgbouncer import PoolMode, pgbouncer
from tests.postgresql import PostgresqlServer, running_server
from tests.relayd.store.proxy import Proxy

MODES: tuple[PoolMode, ...] = ("session", "transaction")
SEND_EVERY_S = 0.5
"""Of each of the senders to each replica."""
ASK_EVERY_S = 0.4
FAULT_EVERY_S = 25.0
AWAY_S = 3.0
WARM_UP_SHARE = 0.25
_ENVIRONMENT = {"RELAYD_SERVE_ACCESS_LOG": "false", "RELAYD_SERVE_SNAPSHOT_EVERY_S": "15"}
_LONGEST_S = 90.0
_Question = Callable[[str, str, str], dict[str, object]]
_QUESTIONS: tuple[tuple[str, _Question | None], ...] = (
    *[("/v1/plans", lambda a, b, _: {"src": a, "dst": b, "volume_gb": 500.0})] * 3,
    ("/v1/shuffles", lambda a, b, c: {"demands": [[a, b, 100], [b, c, 200], [c, a, 50]]}),
    ("/v1/broadcasts", lambda a, b, c: {"src": a, "destinations": [b, c], "volume_gb": 100.0}),
    ("/v1/links?limit=20", None),
    ("/v1/snapshots?limit=5", None),
)


@dataclass
class Soaked(Outcome):
    """Results of a soak."""

    plans: int = 0  # plans of any kind, and other answers to questions
    further: int = 0
    # From the end of each kind of fault until both replicas had taken samples of all senders
    heals_s: dict[str, list[float]] = field(default_factory=dict)
    memory_mb: list[Seen] = field(default_factory=list)  # of each replica
    grown: list[float] = field(default_factory=list)  # of each replica after warming up


def soak(minutes: float) -> Soaked:
    """Run two replicas for a time, and break the way to their database again and again."""
    chance, seen, until_s = random.Random(5), Soaked(), time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory(prefix="relayd-chaos-") as name, ExitStack() as stack:
        server = stack.enter_context(running_server())
        where = server.new_store()
        pools = [stack.enter_context(pgbouncer(server, mode)) for mode in MODES]
        proxies = [stack.enter_context(Proxy(port)) for port in pools]
        addresses = [through(server, where, proxy.port) for proxy in proxies]
        services = stack.enter_context(replicas(addresses, Path(name), _ENVIRONMENT))
        sending = []
        for number, service in enumerate(services):
            seen.memory_mb.append(stack.enter_context(watched_memory(service.process.pid)))
            stack.enter_context(_asked(service, seen, number))
            first = 50_000_000 * number
            senders = Senders(first, SEND_EVERY_S, service=service, is_killed=False)
            sending.append(stack.enter_context(senders))
        while time.monotonic() < until_s:
            time.sleep(chance.uniform(0.6, 1.4) * FAULT_EVERY_S)
            kind = chance.choice([*FAULTS])
            FAULTS[kind].happen(server, chance.choice(proxies))
            seen.heals_s.setdefault(kind, []).append(_healed_s(kind, sending, seen))
            seen.again_s.append(seen.heals_s[kind][-1])
        for one in sending:
            one.settle(seen, where)
        for service in services:
            faults = [line for line in service.lines() if line["level"] == "error"]
            seen.wrong += [f"fault in the log: {str(fault)[-900:]}" for fault in faults]
    seen.grown = [growth(memory, WARM_UP_SHARE * 60 * minutes) for memory in seen.memory_mb]
    return seen


def _healed_s(kind: str, sending: list[Senders], seen: Soaked) -> float:
    """Return the time until all are ready and have taken a batch of each sender again."""
    began_s = time.monotonic()
    known = [len(one.acknowledged) + SENDERS * BATCH for one in sending]
    while (took_s := time.monotonic() - began_s) < _LONGEST_S:
        if all(
            len(one.acknowledged) >= enough
            and one.service
            and one.service.get("/readyz").status == 200
            for one, enough in zip(sending, known, strict=True)
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
            path, question = chance.choice(_QUESTIONS)
            body = question(*chance.sample(REGIONS, 3)) if question else None
            try:
                answer = service.ask("POST" if body else "GET", path, body)
            except (OSError, HTTPException) as error:
                seen.wrong.append(f"no answer to {path}: {error!r}")
                continue
            if answer.status == 200:
                seen.plans += bool(body)
                seen.further += not body
            elif body or not is_clear(answer):
                seen.wrong.append(f"{path}: {answer.status} {answer.content[:200]!r}")
            else:
                seen.unavailable += 1

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


# ---- faults -------------------------------------------------------------------------------------

_END_SESSIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


class Fault(NamedTuple):
    """A fault on the way to a database: its beginning, for how long it lasts, and its end."""

    begin: Callable[[PostgresqlServer, Proxy], object]
    seconds: float = 0.0
    end: Callable[[PostgresqlServer, Proxy], object] = lambda _server, _proxy: None

    def happen(self, server: PostgresqlServer, proxy: Proxy) -> None:
        """Let it begin, last and end."""
        self.begin(server, proxy)
        time.sleep(self.seconds)
        self.end(server, proxy)


def _delay(_: PostgresqlServer, proxy: Proxy) -> None:
    proxy.delay_s = 0.05


def _delay_no_more(_: PostgresqlServer, proxy: Proxy) -> None:
    proxy.delay_s = 0.0


def _end_sessions_unseen(server: PostgresqlServer, proxy: Proxy) -> None:
    proxy.keeps_open = True
    server.sql(_END_SESSIONS)


def _show_ends(_: PostgresqlServer, proxy: Proxy) -> None:
    proxy.keeps_open = False


FAULTS = {
    "a cut": Fault(lambda _, proxy: proxy.cut()),
    "a half-closed way back": Fault(lambda _, proxy: proxy.cut(socket.SHUT_WR)),
    "a lost confirmation": Fault(
        lambda _, proxy: proxy.cut_at(b"COMMIT\0", forward=True), seconds=AWAY_S
    ),
    "a hang": Fault(lambda _, proxy: proxy.hang(), 8.0, lambda _, proxy: proxy.go_on()),
    "delays": Fault(_delay, 10.0, _delay_no_more),
    "ended sessions": Fault(lambda server, _: server.sql(_END_SESSIONS)),
    "ended sessions kept open": Fault(_end_sessions_unseen, AWAY_S, _show_ends),
    "a restart": Fault(lambda server, _: server.restart("fast")),
    "a crash": Fault(lambda server, _: server.crash(), AWAY_S, lambda server, _: server.start()),
}
