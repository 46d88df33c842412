"""Leader locks: one process holds the lock, and another acquires it when it is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from planner.model.errors import StoreError
from relayd.store import Store, open_store
from tests.http.running import eventually
from tests.postgresql import running_server
from tests.relayd.store.engines import PostgresqlSpot, Spot

_ROOT = Path(__file__).parents[3]
_LONG_S = 60.0
_CANDIDATE = """\
import sys, time
from relayd.store import open_store

with open_store(sys.argv[1], mode="write") as store, store.database.leader_lock("prober") as lock:
    leading = False
    while True:
        if lock.acquire() and not leading:
            leading = True
            print("leading", flush=True)
        time.sleep(0.05)
"""


@pytest.fixture
def store(spot: Spot) -> Iterator[Store]:
    with open_store(spot.where, mode="create") as found:
        yield found


@contextmanager
def _candidate(spot: Spot) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _CANDIDATE, spot.where]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_one_of_several_holds_the_lock_and_another_acquires_it_when_released(store: Store) -> None:
    first, second = store.database.leader_lock("prober"), store.database.leader_lock("prober")
    assert first.acquire()
    assert first.acquire()
    assert not second.acquire()
    assert store.database.has_leader("prober")
    assert not store.database.has_leader("campaign")
    with store.database.leader_lock("campaign") as other_role:
        assert other_role.acquire()
        assert store.database.has_leader("campaign")
    # A server takes a moment to end the session that held the lock.
    eventually(lambda: not store.database.has_leader("campaign"))
    first.release()
    assert eventually(second.acquire)
    assert not first.acquire()
    second.release()
    with first:
        assert first.acquire()
    assert eventually(second.acquire)
    second.release()


def test_a_killed_holder_is_followed(store: Store, spot: Spot) -> None:
    lock = store.database.leader_lock("prober")
    for _ in range(3):
        with _candidate(spot) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "leading\n"
            assert store.database.has_leader("prober")
            assert not lock.acquire()
            os.kill(holder.pid, signal.SIGKILL)
            holder.wait()
            deadline_s = time.monotonic() + _LONG_S
            while not lock.acquire():
                assert time.monotonic() < deadline_s
                time.sleep(0.01)
            lock.release()


def test_a_holder_whose_session_was_ended_learns_it(postgresql_spot: PostgresqlSpot) -> None:
    with open_store(postgresql_spot.where, mode="create") as store:
        first, second = store.database.leader_lock("prober"), store.database.leader_lock("prober")
        assert first.acquire()
        ended = postgresql_spot.outsider(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks "
            "WHERE locktype = 'advisory' AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        assert ended == [(True,)]
        assert second.acquire()
        assert not first.acquire()
        second.release()
        assert first.acquire()
        first.release()


def test_nobody_leads_without_the_server_and_one_does_when_it_is_back() -> None:
    with running_server() as server:
        spot = PostgresqlSpot(server)
        with open_store(spot.where, mode="create") as store:
            locks = [store.database.leader_lock("prober") for _ in range(3)]
            assert [one.acquire() for one in locks] == [True, False, False]
            server.crash()
            for one in locks:
                with pytest.raises(StoreError, match="can't be connected to"):
                    one.acquire()
            server.start()
            assert sum(one.acquire() for one in locks) == 1
            assert sum(one.acquire() for one in reversed(locks)) == 1
            for one in locks:
                with suppress(StoreError):
                    one.release()
