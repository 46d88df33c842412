"""Capacity that 200 clients want at once of two replicas that are killed in turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPException
from pathlib import Path
from random import Random

import pytest

from relayd.questions.holds import Holds, holds_of
from relayd.store import open_store
from tests.http.running import Answer, Served, served
from tests.postgresql import running_server
from tests.relayd.test_holds import DST, POOL_GBPS, POOLS, SRC, plan_of
from tests.waiting import eventually

CLIENTS, GBPS, ROOM = 200, 0.5, 40  # 20 Gbit/s of the pool
KILLS, ENDED_EACH = 20, 4
PAUSE_S = 2.0
"""Between two questions of a client, so that 200 leave the processors something."""
SILENT_S = 3600.0
ROUNDING = 1e-6


class Clients:
    """Begin a transfer each, again and again under the same id, at whichever replica is up.

    Attributes
    ----------
    holding : set of int
        Those that were told so, and have not yet asked for the end.
    most_holding : int
        The most of these at any time.
    """

    def __init__(self, replicas: list[Served]) -> None:
        self.replicas = replicas
        self.holding: set[int] = set()
        self.begun: set[int] = set()
        self.most_holding = self.broken_off = 0
        self.lock = threading.Lock()
        self.stop = threading.Event()

    def begin(self, number: int, attempt: int) -> Answer | None:
        """Ask once; None where the replica is killed meanwhile, or says that too many wait."""
        said = {"id": f"client {number}", "src": SRC, "dst": DST, "volume_gb": 500}
        plan = plan_of(GBPS, 0, duration_s=8000.0, name=f"plan {number}")
        said |= {"silent_after_s": SILENT_S, "plan": plan}
        try:
            answer = self.replicas[(number + attempt) % 2].ask("POST", "/v1/transfers", said)
        except (OSError, HTTPException):
            with self.lock:
                self.broken_off += 1
            return None
        if answer.status == 429:
            assert int(answer.headers["Retry-After"]) > 0
            return None
        if answer.status == 409:
            assert number not in self.begun, answer
            assert answer.json["kind"] == "no-room"
            assert time.time() < answer.json["starts_at_s"] <= time.time() + 8000
            return answer
        assert answer.status in (200, 201), answer
        with self.lock:
            if number not in self.begun:
                self.begun.add(number)
                self.holding.add(number)
                self.most_holding = max(self.most_holding, len(self.holding))
        return answer

    def keep_asking(self, number: int) -> None:
        """Begin until told to stop."""
        attempt = 0
        while not self.stop.is_set():
            self.begin(number, attempt)
            attempt += 1
            self.stop.wait(PAUSE_S)

    def end(self, number: int, replica: Served) -> None:
        """End one that holds."""
        with self.lock:
            self.holding.remove(number)
        assert replica.ask("POST", f"/v1/transfers/client%20{number}/end", {}).status == 200


@contextmanager
def watched(where: str) -> Iterator[list[float]]:
    """Ask the database all the time how much is held; yields what it said."""
    found: list[float] = []
    done = threading.Event()

    def watch() -> None:
        with open_store(where, mode="read") as store:
            while not done.wait(0.01):
                found.append(holds_of(store.database, time.time()).gbps("pool", SRC)[0])

    with ThreadPoolExecutor(1) as one:
        watching = one.submit(watch)
        try:
            yield found
        finally:
            done.set()
            watching.result()


@pytest.mark.thorough
@pytest.mark.timeout(1800)  # 20 starts of a service, on a busy machine
@pytest.mark.parametrize("seed", range(3))
def test_no_more_is_held_than_there_is_while_replicas_are_killed(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    catalogue = tmp_path / "pools.toml"
    catalogue.write_text(POOLS)
    with ExitStack() as stack:
        where = stack.enter_context(running_server()).new_store()

        def start(name: str) -> Served:
            options = "--catalogue", str(catalogue)
            return stack.enter_context(served(where, *options, log=tmp_path / f"{name}.log"))

        clients = Clients([start("first"), start("second")])
        held = stack.enter_context(watched(where))
        threads = stack.enter_context(ThreadPoolExecutor(CLIENTS))
        stack.callback(clients.stop.set)
        asking = [threads.submit(clients.keep_asking, number) for number in range(CLIENTS)]
        for turn in range(KILLS):
            # Room for others, so that begins are under way when a replica dies.
            eventually(lambda: len(clients.holding) >= ROOM - ENDED_EACH)
            dying, staying = clients.replicas[turn % 2], clients.replicas[1 - turn % 2]
            for number in random.sample(sorted(clients.holding), ENDED_EACH):
                clients.end(number, staying)
            clients.stop.wait(random.uniform(0, 0.1))
            dying.kill()
            assert max(held) <= POOL_GBPS * (1 + ROUNDING)
            assert clients.most_holding <= ROOM
            clients.replicas[turn % 2] = start(str(turn))
        clients.stop.set()
        for one in asking:
            one.result()
        last = {number: clients.begin(number, 0) for number in range(CLIENTS)}
        refused = {number for number, answer in last.items() if answer and answer.status == 409}
        assert clients.broken_off >= KILLS
        assert len(clients.holding) == clients.most_holding == ROOM
        assert clients.begun | refused == set(range(CLIENTS))
        assert len(clients.begun) == ROOM + KILLS * ENDED_EACH
        assert max(held) == pytest.approx(POOL_GBPS, rel=ROUNDING)

        def held_at(now_s: float) -> Holds:
            with open_store(where, mode="read") as store:
                return holds_of(store.database, now_s)

        # Whoever holds was told so.
        told = {f"client {number}" for number in clients.holding}
        assert {one.transfer for one in held_at(time.time()).all} == told
        assert not held_at(time.time() + SILENT_S).all
        for number in sorted(clients.holding):
            clients.end(number, clients.replicas[number % 2])
        assert not held_at(time.time()).all
