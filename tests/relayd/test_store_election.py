"""Elections: one process holds the office, and another takes over when it is gone."""

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
from relayd.store.leader_lock import election, is_held
from tests.postgresql import running_server
from tests.relayd.engines import PostgresqlSpot, Spot

_ROOT = Path(__file__).parents[2]
_LONG_S = 60.0
_CANDIDATE = """\
import sys, time
from relayd.store import open_store
from relayd.store.leader_lock import election

with open_store(sys.argv[1], mode="write") as store, election(store, "prober") as standing:
    elected = False
    while True:
        if standing.stand() and not elected:
            elected = True
            print("elected", flush=True)
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


def test_one_of_several_is_elected_and_another_follows_when_it_resigns(store: Store) -> None:
    first, second = election(store, "prober"), election(store, "prober")
    assert first.stand()
    assert first.stand()
    assert not second.stand()
    assert is_held(store, "prober")
    assert not is_held(store, "campaign")
    with election(store, "campaign") as other_office:
        assert other_office.stand()
        assert is_held(store, "campaign")
    assert not is_held(store, "campaign")
    first.resign()
    assert second.stand()
    assert not first.stand()
    second.resign()
    with first:
        assert first.stand()
    assert second.stand()
    second.resign()


def test_a_killed_holder_is_followed(store: Store, spot: Spot) -> None:
    standing = election(store, "prober")
    for _ in range(3):
        with _candidate(spot) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "elected\n"
            assert is_held(store, "prober")
            assert not standing.stand()
            os.kill(holder.pid, signal.SIGKILL)
            holder.wait()
            deadline_s = time.monotonic() + _LONG_S
            while not standing.stand():
                assert time.monotonic() < deadline_s
                time.sleep(0.01)
            standing.resign()


def test_a_holder_whose_session_was_ended_learns_it(postgresql_spot: PostgresqlSpot) -> None:
    with open_store(postgresql_spot.where, mode="create") as store:
        first, second = election(store, "prober"), election(store, "prober")
        assert first.stand()
        ended = postgresql_spot.outsider(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks "
            "WHERE locktype = 'advisory' AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        assert ended == [(True,)]
        assert second.stand()
        assert not first.stand()
        second.resign()
        assert first.stand()
        first.resign()


def test_nobody_is_elected_without_the_server_and_one_is_when_it_is_back() -> None:
    with running_server() as server:
        spot = PostgresqlSpot(server)
        with open_store(spot.where, mode="create") as store:
            standing = [election(store, "prober") for _ in range(3)]
            assert [one.stand() for one in standing] == [True, False, False]
            server.crash()
            for one in standing:
                with pytest.raises(StoreError, match="can't be connected to"):
                    one.stand()
            server.start()
            assert sum(one.stand() for one in standing) == 1
            assert sum(one.stand() for one in reversed(standing)) == 1
            for one in standing:
                with suppress(StoreError):
                    one.resign()
