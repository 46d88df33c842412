"""The schema: one for both engines, laid out whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.model.errors import StoreError
from probes.samples import Sample
from relayd.store import open_store
from relayd.store.opening import Mode
from relayd.store.postgresql.database import MARK, PostgresqlDatabase
from relayd.store.samples.ingest import append
from relayd.store.sqlite import SqliteDatabase
from tests.relayd.store.engines import ON_BOTH, PostgresqlSpot, Spot, SqliteSpot

_ROWS = [Sample("aws:a", f"gcp:{n}", "rtt_ms", float(n), 1.6e9 + n, "ping") for n in range(200)]
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
        assert append(store, _ROWS).accepted == len(_ROWS)
    spot.check()


def _fail(*_: object) -> None:
    raise OSError("on the way")


@ON_BOTH
@pytest.mark.parametrize("mode", ["read", "write", "create"])
def test_stores_of_older_and_newer_builds_are_left_untouched(spot: Spot, mode: Mode) -> None:
    newer = spot.another()
    open_store(newer.where, mode="create").close()
    if spot.engine == "sqlite":
        spot.outsider("CREATE TABLE samples (value REAL)")
        spot.outsider("PRAGMA application_id = 0x72656C79")
        spot.outsider("PRAGMA user_version = 22")
        newer.outsider("PRAGMA user_version = 99")
    else:
        spot.outsider("CREATE TABLE relayd_schema AS SELECT 22 AS version")
        newer.outsider(f"UPDATE {MARK} SET version = 99")
    for found, said in ((spot, "before version 1.*relayd export"), (newer, "newer relayd")):
        before = found.dump()
        with pytest.raises(StoreError, match=said):
            open_store(found.where, mode=mode)
        assert found.dump() == before
