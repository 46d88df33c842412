"""The schemas of both engines: the same tables, columns, keys and rules, version by version."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relayd.store import open_store, schema
from tests.relayd.store.engines import PostgresqlSpot, SqliteSpot

_SQLITE = Path(schema.MIGRATIONS)
_POSTGRESQL = _SQLITE / "postgresql"
# What each type of SQLite is on PostgreSQL.
_KINDS = {
    "integer": "INTEGER",
    "bigint": "INTEGER",
    "smallint": "INTEGER",
    "double precision": "REAL",
    "text": "TEXT",
    "bytea": "BLOB",
}


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.name[:4]) for path in folder.glob("*.sql"))


@pytest.mark.parametrize("folder", [_SQLITE, _POSTGRESQL], ids=["sqlite", "postgresql"])
def test_each_engine_has_a_script_for_each_version(folder: Path) -> None:
    assert _numbers(folder) == list(range(1, schema.SCHEMA_VERSION + 1)), (
        f"each version needs a script in {_SQLITE.name} and one in {_SQLITE.name}/postgresql"
    )


def test_both_engines_have_the_same_tables_columns_keys_and_rules(
    tmp_path: Path, postgresql_spot: PostgresqlSpot
) -> None:
    file = SqliteSpot(tmp_path)
    for spot in (file, postgresql_spot):
        open_store(spot.where, mode="create").close()
    ours = _of_sqlite(file)
    theirs = _of_postgresql(postgresql_spot)
    assert theirs.pop("relayd_schema") == [("version", "INTEGER", True, 0)]
    assert len(ours) > 10
    assert theirs == ours

    indices = "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    theirs_indices = {name for (name,) in postgresql_spot.outsider(_INDICES)}
    assert {name for (name,) in file.outsider(indices)} <= theirs_indices
    rules = {name for (name,) in file.outsider(_TRIGGERS_OF_SQLITE)}
    their_rules = {name for (name,) in postgresql_spot.outsider(_TRIGGERS)}
    assert len(rules) > 10
    assert rules <= their_rules


def test_uniqueness_is_the_same(tmp_path: Path, postgresql_spot: PostgresqlSpot) -> None:
    file = SqliteSpot(tmp_path)
    for spot in (file, postgresql_spot):
        open_store(spot.where, mode="create").close()
    unique = set()
    for (table,) in file.outsider(_TABLES):
        for _, name, is_unique, *_ in file.outsider(f"PRAGMA index_list('{table}')"):
            if is_unique:
                columns = file.outsider(f"PRAGMA index_info('{name}')")
                unique.add((table, tuple(column[2] for column in columns)))
        key = sorted((row[5], row[1]) for row in file.outsider(f"PRAGMA table_info('{table}')"))
        if columns := [name for place, name in key if place]:
            unique.add((table, tuple(columns)))
    theirs = {(table, tuple(columns)) for table, columns in postgresql_spot.outsider(_UNIQUE)}
    assert theirs == unique


_TABLES = (
    "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'"
)
_TRIGGERS_OF_SQLITE = "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
_TRIGGERS = "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
_INDICES = "SELECT indexname FROM pg_indexes WHERE schemaname = 'public'"
_UNIQUE = """
SELECT relname, array_agg(CAST(attname AS text) ORDER BY place) FROM pg_index
JOIN pg_class ON pg_class.oid = indrelid,
LATERAL unnest(indkey) WITH ORDINALITY AS keys (number, place)
JOIN pg_attribute ON attnum = number
WHERE indisunique AND relnamespace = 'public'::regnamespace AND attrelid = indrelid
GROUP BY relname, indexrelid
"""
_COLUMNS = """
SELECT relname, attname, format_type(atttypid, atttypmod), attnotnull, relkind,
    coalesce(array_position(CAST(indkey AS smallint[]), attnum), -1) + 1
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
LEFT JOIN pg_index ON indrelid = pg_class.oid AND indisprimary
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')
AND attnum > 0 AND NOT attisdropped
ORDER BY relname, attnum
"""


def _of_sqlite(spot: SqliteSpot) -> dict[str, list[tuple[str, str, bool, int]]]:
    """Return name, kind, whether it must be there, and place in the key of each column."""
    return {
        table: [
            # An INTEGER PRIMARY KEY is never NULL; of a view nothing is known.
            (name, kind if view == "table" else "", bool(filled or key), key)
            for _, name, kind, filled, _, key in spot.outsider(f"PRAGMA table_info('{table}')")
        ]
        for table, view in spot.outsider(_TABLES.replace("name FROM", "name, type FROM"))
    }


def _of_postgresql(spot: PostgresqlSpot) -> dict[str, list[tuple[str, str, bool, int]]]:
    found: dict[str, list[tuple[str, str, bool, int]]] = {}
    for table, name, kind, filled, relation, key in spot.outsider(_COLUMNS):
        found.setdefault(table, []).append(
            (name, "" if relation == "v" else _KINDS[kind], filled, key)
        )
    return found


def test_the_scripts_refuse_with_the_same_words() -> None:
    for number in range(1, schema.SCHEMA_VERSION + 1):
        ours = set(re.findall(r"RAISE\(ABORT, '([^']+)'\)", schema.script(number)))
        theirs = schema.script(number, "postgresql")
        for words in ours:
            assert f"'{words}'" in theirs, words
