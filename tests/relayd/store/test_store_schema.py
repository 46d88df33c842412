"""The schema: one for both engines, laid out whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.model.errors import StoreError
from relayd.store import open_store
from relayd.store.opening import Mode
from relayd.store.postgresql.database import MARK, PostgresqlDatabase
from relayd.store.samples.ingest import append
from relayd.store.sqlite import SqliteDatabase
from tests.relayd.building import pings
from tests.relayd.store.engines import ON_BOTH, PostgresqlSpot, Spot, SqliteSpot

# What each type of SQLite is on PostgreSQL.
_TYPES = {"bigint": "INTEGER", "double precision": "REAL", "text": "TEXT", "bytea": "BLOB"}


def test_both_engines_get_the_same_tables_columns_and_types(
    tmp_path: Path, postgresql_spot: PostgresqlSpot
) -> None:
    file = SqliteSpot(tmp_path)
    for spot in (file, postgresql_spot):
        open_store(spot.where, mode="create").close()
    in_file = file.outsider(
        "SELECT tables.name, columns.name, columns.type FROM sqlite_schema AS tables "
        "JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'"
    )
    on_server = postgresql_spot.outsider(
        "SELECT table_name, column_name, data_type FROM information_schema.columns "
        "WHERE table_schema = 'public'"
    )
    others = {MARK, "measurements", "used_samples"}
    assert set(in_file) == {
        (table, column, _TYPES[kind]) for table, column, kind in on_server if table not in others
    }


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
        assert append(store, pings(9)).accepted == 9
    spot.check()


def _fail(*_: object) -> None:
    raise OSError("on the way")


@ON_BOTH
@pytest.mark.parametrize("mode", ["read", "write", "create"])
def test_what_others_and_other_builds_have_made_is_left_untouched(spot: Spot, mode: Mode) -> None:
    newer, others = spot.another(), spot.another()
    open_store(newer.where, mode="create").close()
    others.outsider("CREATE TABLE samples (id INTEGER)")
    if spot.engine == "sqlite":
        spot.outsider("CREATE TABLE samples (value REAL)")
        spot.outsider("PRAGMA application_id = 0x72656C79")
        spot.outsider("PRAGMA user_version = 22")
        newer.outsider("PRAGMA user_version = 99")
    else:
        spot.outsider("CREATE TABLE relayd_schema AS SELECT 22 AS version")
        newer.outsider(f"UPDATE {MARK} SET version = 99")
    for found, said in (
        (spot, "before version 1.*relayd export"),
        (newer, "newer relayd"),
        (others, "is not a relayd database|something else than relayd's data"),
    ):
        before = found.dump()
        with pytest.raises(StoreError, match=said):
            open_store(found.where, mode=mode)
        assert found.dump() == before


@ON_BOTH
@pytest.mark.parametrize("mode", ["read", "write"])
def test_what_is_empty_becomes_a_store_only_on_request(spot: Spot, mode: Mode) -> None:
    file = Path(spot.where)
    if spot.engine == "sqlite":
        file.touch()
    with pytest.raises(StoreError, match=r"is an empty file|holds no relayd store yet"):
        open_store(spot.where, mode=mode)
    assert not (file.stat().st_size if spot.engine == "sqlite" else spot.dump())
    with open_store(spot.where, mode="create") as store:
        append(store, pings(3))
    with open_store(spot.where, mode="read") as store:
        assert store.samples.counts().samples == 3
