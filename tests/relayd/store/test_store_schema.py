"""The schema: one for both engines, laid out whole or not at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from planner.model.errors import StoreError
from probes.samples import Sample
from relayd.store import open_store
from relayd.store.postgresql.database import MARK, PostgresqlDatabase
from relayd.store.samples.ingest import append
from relayd.store.sqlite import SqliteDatabase
from tests.relayd.store.engines import ON_BOTH, PostgresqlSpot, Spot, SqliteSpot

_ROWS = [Sample("aws:a", f"gcp:{n}", "rtt_ms", float(n), 1.6e9 + n, "ping") for n in range(200)]
# What each type of SQLite is on PostgreSQL.
_TYPES = {"bigint": "INTEGER", "double precision": "REAL", "text": "TEXT", "bytea": "BLOB"}


@pytest.fixture
def filled(spot: Spot) -> Spot:
    """A store of this program's schema version, closed."""
    with open_store(spot.where, mode="create") as store:
        append(store, _ROWS)
    return spot


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
def test_a_schema_is_laid_out_whole_or_not_at_all(
    spot: Spot, monkeypatch: pytest.MonkeyPatch
) -> None:
    if spot.engine == "postgresql":
        before = spot.dump()
    with monkeypatch.context() as failing:
        failing.setattr(SqliteDatabase, "_mark", _fail)
        failing.setattr(PostgresqlDatabase, "_mark", _fail)
        with pytest.raises(OSError, match="on the way"):
            open_store(spot.where, mode="create")
    if spot.engine == "postgresql":
        assert spot.dump() == before
    with pytest.raises(StoreError, match="holds no relayd store yet"):
        open_store(spot.where, mode="read")
    with open_store(spot.where, mode="create") as store:
        assert append(store, _ROWS).accepted == len(_ROWS)
    spot.check()


def _fail(*_: object) -> None:
    raise OSError("on the way")


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
