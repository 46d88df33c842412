"""The schema: one for both engines, forward only, all of the way or not at all."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from planner.model.errors import StoreError
from probes.samples import Sample
from relayd.store import open_store, schema
from relayd.store.postgresql.database import MARK
from relayd.store.samples.ingest import append
from tests.relayd.store.engines import ON_BOTH, PostgresqlSpot, Spot, SqliteSpot

_ROOT = Path(__file__).parents[3]
_NOW = schema.SCHEMA_VERSION
_MIGRATIONS = schema.MIGRATIONS
_ROWS = [Sample("aws:a", f"gcp:{n}", "rtt_ms", float(n), 1.6e9 + n, "ping") for n in range(200)]
_SECOND = """\
-- A change such as a later version may bring.
CREATE TABLE later_rows (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
CREATE TRIGGER later_rows_stay BEFORE DELETE ON later_rows
BEGIN SELECT RAISE(ABORT, 'rows stay'); END;
ALTER TABLE snapshots ADD COLUMN note TEXT NOT NULL DEFAULT ''
"""
_THIRD = "INSERT INTO later_rows (name) VALUES ('first');"
_ESTIMATE = "1, 1, 1, 0, 1, 1, NULL, NULL"
_SITE = ", ".join([_ESTIMATE] * 3 + ["NULL"] * 16)
_ORPHAN = f"INSERT INTO sites VALUES (9, 0, 7, '', {_SITE});"
# What each type of SQLite is on PostgreSQL.
_TYPES = {"bigint": "INTEGER", "double precision": "REAL", "text": "TEXT", "bytea": "BLOB"}


@pytest.fixture
def filled(spot: Spot) -> Spot:
    """A store of this program's schema version, closed."""
    with open_store(spot.where, mode="create") as store:
        append(store, _ROWS)
    return spot


@pytest.fixture
def later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of migrations of a program that knows some more."""
    folder = tmp_path / "migrations"
    shutil.copytree(_MIGRATIONS, folder)
    monkeypatch.setattr(schema, "MIGRATIONS", folder)
    return folder


def _add(folder: Path, monkeypatch: pytest.MonkeyPatch, *scripts: str) -> None:
    for number, script in enumerate(scripts, start=_NOW + 1):
        (folder / f"{number:04}_later.sql").write_text(script)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", _NOW + len(scripts))


def _version(spot: Spot) -> int:
    with open_store(spot.where, mode="read") as store:
        return store.database.schema_version()


def test_both_engines_get_the_same_tables_columns_and_types(
    tmp_path: Path, postgresql_spot: PostgresqlSpot
) -> None:
    file = SqliteSpot(tmp_path)
    for spot in (file, postgresql_spot):
        open_store(spot.where, mode="create").close()
    on_server = {
        (table, column, _TYPES[kind])
        for table, column, kind in postgresql_spot.columns()
        if table != MARK
    }
    views = {("measurements",), ("used_samples",)}
    assert set(file.columns()) == {row for row in on_server if row[:1] not in views}


@ON_BOTH
def test_an_upgrade_keeps_everything_and_a_new_store_gets_all(
    filled: Spot, later: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(later, monkeypatch, _SECOND, _THIRD)
    with pytest.raises(StoreError, match=f"has schema {_NOW} of an older relayd"):
        open_store(filled.where, mode="read")
    with open_store(filled.where, mode="write") as store:
        assert set(store.samples.read()) == set(_ROWS)
        assert store.database.rows("SELECT name FROM later_rows") == [("first",)]
        with pytest.raises(filled.integrity_error, match="rows stay"):
            store.database.change("DELETE FROM later_rows")
        assert append(store, _ROWS).duplicates == len(_ROWS)
    assert _version(filled) == _NOW + 2
    filled.check()

    fresh = filled.another()
    open_store(fresh.where, mode="create").close()
    assert fresh.columns() == filled.columns()


@pytest.mark.parametrize(
    "last", ["INSERT INTO nowhere VALUES (1);", "CREATE TABLE half (", _ORPHAN]
)
@ON_BOTH
def test_a_migration_that_fails_leaves_the_old_version(
    filled: Spot, later: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    before = filled.dump()
    with monkeypatch.context() as newer:
        _add(later, newer, _SECOND, last)
        with pytest.raises((StoreError, psycopg.Error)):
            open_store(filled.where, mode="write")
    assert filled.dump() == before
    with open_store(filled.where, mode="write") as store:
        assert append(store, [_ROWS[0]._replace(value=9.5)]).accepted == 1


_UPGRADE = """\
import sys
from pathlib import Path
from relayd.store import open_store, schema
schema.MIGRATIONS = Path(sys.argv[2])
schema.SCHEMA_VERSION = int(sys.argv[3])
open_store(sys.argv[1], mode="write", busy_timeout_s=60)
"""


@contextmanager
def _held_up(spot: Spot, folder: Path) -> Iterator[None]:
    """Kill an upgrade in the middle of its last script."""
    command = [sys.executable, "-c", _UPGRADE, spot.where, str(folder), str(_NOW + 2)]
    with subprocess.Popen(command, cwd=_ROOT) as child:
        yield
        assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)


def test_a_kill_inside_a_migration_of_a_file_leaves_the_old_version(
    tmp_path: Path, later: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spot = SqliteSpot(tmp_path)
    with open_store(spot.where, mode="create") as store:
        append(store, _ROWS)
    before = spot.dump()
    endless = (
        "CREATE TABLE filled AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
        "WHERE i < 1000000000) SELECT i, hex(randomblob(100)) AS noise FROM n;"
    )
    with monkeypatch.context() as newer:
        _add(later, newer, _SECOND, endless)
        log = Path(f"{spot.where}-wal")
        with _held_up(spot, later):
            while not log.exists() or log.stat().st_size < 5_000_000:  # well into the last script
                time.sleep(0.01)
    assert spot.dump() == before
    _add(later, monkeypatch, _SECOND, _THIRD)
    open_store(spot.where, mode="write").close()
    assert _version(spot) == _NOW + 2


def test_a_kill_inside_a_migration_of_a_server_leaves_the_old_version(
    postgresql_spot: PostgresqlSpot, later: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spot = postgresql_spot
    open_store(spot.where, mode="create").close()
    with psycopg.connect(spot.where) as holder, monkeypatch.context() as newer:
        _add(later, newer, _SECOND, "SELECT pg_advisory_lock(7);")
        holder.execute("SELECT pg_advisory_lock(7)")
        with _held_up(spot, later):
            while not spot.outsider("SELECT 1 FROM pg_locks WHERE objid = 7 AND NOT granted"):
                time.sleep(0.01)
    open_store(spot.where, mode="write").close()
    assert _version(spot) == _NOW
    assert "later_rows" not in {table for table, *_ in spot.columns()}


@ON_BOTH
@pytest.mark.parametrize("mode", ["read", "write", "create"])
def test_a_store_of_an_older_build_is_left_untouched(spot: Spot, mode: str) -> None:
    if spot.engine == "sqlite":
        with closing(sqlite3.connect(spot.where)) as connection:
            connection.execute("CREATE TABLE samples (value REAL)")
            connection.execute("PRAGMA application_id = 0x72656C79")
            connection.execute("PRAGMA user_version = 22")
    else:
        spot.outsider("CREATE TABLE relayd_schema AS SELECT 22 AS version")
    before = spot.dump()
    with pytest.raises(StoreError, match=r"before version 1.*relayd export samples"):
        open_store(spot.where, mode=mode)  # type: ignore[arg-type]
    assert spot.dump() == before


@ON_BOTH
@pytest.mark.parametrize("mode", ["read", "write", "create"])
def test_a_store_of_a_newer_relayd_is_left_untouched(filled: Spot, mode: str) -> None:
    filled.outsider(
        "PRAGMA user_version = 99"
        if filled.engine == "sqlite"
        else f"UPDATE {MARK} SET version = 99"
    )
    before = filled.dump()
    with pytest.raises(StoreError, match="newer relayd"):
        open_store(filled.where, mode=mode)  # type: ignore[arg-type]
    assert filled.dump() == before
