"""Servers and processes that are stopped: nobody waits for them for ever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from planner.model.errors import StoreError
from relayd.store import open_store
from relayd.store.events import Events
from relayd.store.postgresql import connecting, database
from tests.relayd.store.engines import PostgresqlSpot, SqliteSpot, program, said
from tests.stopping import everyone, stopped
from tests.waiting import eventually

pytestmark = pytest.mark.service

_WRITER = """\
import sys, time
from relayd.store import open_store

with open_store(sys.argv[1], mode="write") as store, store.database.transaction():
    store.database.change("INSERT INTO regions (name) VALUES ('half done')")
    print("writing", flush=True)
    time.sleep(600)
"""


@contextmanager
def stopped_writer(where: str) -> Iterator[None]:
    """Stop another process in the middle of a transaction."""
    with program(_WRITER, where) as writer:
        said(writer, "writing")
        with stopped(writer.pid):
            yield


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "_BEYOND_TIMEOUT_S", 1.0)
    monkeypatch.setattr(connecting, "_OPENING_TIMEOUT_S", 4)
    monkeypatch.setitem(connecting._USUAL, "connect_timeout", 4)
    monkeypatch.setattr(connecting.ServerConnection, "answer_timeout_s", 4.0)
    monkeypatch.setattr(database, "_OUTCOME_TIMEOUT_S", 2.0)


@pytest.mark.usefixtures("impatient")
def test_a_session_that_the_server_has_stopped_is_given_up(postgresql_spot: PostgresqlSpot) -> None:
    open_store(postgresql_spot.where, mode="create").close()
    with open_store(
        postgresql_spot.where, mode="write", busy_timeout_s=0.1, statement_timeout_s=1.0
    ) as store:
        events = Events(store.database)
        (backend,) = store.database.row("SELECT pg_backend_pid()")
        with stopped(backend):
            with pytest.raises(StoreError, match="stopped answering"):
                events.after(0)
            assert events.add("leg", "on a new connection", {}) == 1
        (backend,) = store.database.row("SELECT pg_backend_pid()")
        transaction = store.database.transaction()
        transaction.__enter__()
        events.add("leg", "in doubt", {})
        with stopped(backend):
            # What became of it the server can't tell.
            with pytest.raises(StoreError, match="was stored whole or not at all"):
                transaction.__exit__(None, None, None)
            with pytest.raises(StoreError, match="written by another process"):
                events.add("leg", "while it holds the writers' lock", {})
        eventually(lambda: _added(events))
        assert [event.subject for event in events.after(1)] in (["later"], ["in doubt", "later"])


def _added(events: Events) -> bool:
    try:
        return events.add("leg", "later", {}) > 0
    except StoreError:
        return False


@pytest.mark.usefixtures("impatient")
def test_a_server_that_is_stopped_as_a_whole_lets_nobody_wait(
    postgresql_spot: PostgresqlSpot,
) -> None:
    where = postgresql_spot.where
    open_store(where, mode="create").close()
    with open_store(where, mode="read", statement_timeout_s=1.0) as store:
        with stopped(*everyone(postgresql_spot.server)):
            with pytest.raises(StoreError, match="stopped answering"):
                store.snapshots.latest()
            with pytest.raises(StoreError, match="can't be connected to"):
                store.snapshots.latest()
            with pytest.raises(StoreError, match="can't be connected to"):
                open_store(where, mode="read")
        assert store.snapshots.latest() is None


def test_a_stopped_writer_is_told_of_in_a_file_and_ended_on_a_server(
    tmp_path: Path, postgresql_spot: PostgresqlSpot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "STUCK_AFTER_S", 0.1)
    for where in (SqliteSpot(tmp_path).where, postgresql_spot.where):
        open_store(where, mode="create").close()
    with stopped_writer(str(tmp_path / "relayd.db")):  # noqa: SIM117
        with open_store(tmp_path / "relayd.db", mode="write", busy_timeout_s=0.1) as store:
            with pytest.raises(StoreError, match="written by another process"):
                Events(store.database).add("leg", "kept waiting", {})
            assert Events(store.database).after(0) == []
    with stopped_writer(postgresql_spot.where):
        time.sleep(0.2)
        with open_store(postgresql_spot.where, mode="write", busy_timeout_s=0.1) as store:
            with pytest.raises(StoreError, match="written by another process"):
                Events(store.database).add("leg", "kept waiting", {})
            assert eventually(lambda: _added(Events(store.database)))
            assert store.database.rows("SELECT name FROM regions WHERE name = 'half done'") == []
