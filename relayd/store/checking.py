"""Is the database whole? Asks the engine, and reads everything that it holds."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from planner.model.errors import StoreError
from relayd.store.database import Database
from relayd.store.sqlite import SqliteDatabase

MOST = 100  # findings that are kept: a disk that fails may damage every row
_SCHEMA = "SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL"
_AMCHECK = "SELECT count(*) FROM pg_extension WHERE extname = 'amcheck'"
_RELATIONS = (
    "SELECT CAST(relname AS text), CAST(oid AS bigint) FROM pg_class WHERE relkind = ? "
    "AND relnamespace = CAST(quote_ident(current_schema()) AS regnamespace) "
    "AND relam IN (SELECT oid FROM pg_am WHERE amname IN ('btree', 'heap')) ORDER BY relname"
)
_NO_AMCHECK = (
    "indexes were not checked, and tables only read: a superuser allows more with `CREATE "
    "EXTENSION amcheck`, and `GRANT EXECUTE` on its functions"
)
_REFERENCES = {
    "regions": ("src_id", "dst_id"),
    "metrics": ("metric_id",),
    "setups": ("setup_id",),
    "batches": ("batch_id",),
}


class Damage(NamedTuple):
    """Something that is not as it was stored, or as it should be."""

    table: str  # empty where it is not in one table
    row: str  # where in it, such as ``rowid 17``; empty where it is not in one row
    problem: str  # such as ``refers to a row of regions that is missing``


class CheckResult(NamedTuple):
    """The result of a check."""

    schema: int  # version of the schema
    damage: list[Damage]  # at most :data:`MOST`
    notes: list[str]  # parts that could not be checked, and why


def check(database: Database) -> CheckResult:
    """Check a database that is open."""
    checked = CheckResult(database.version, [], [])
    damage = chain(
        _of_sqlite(database)
        if isinstance(database, SqliteDatabase)
        else _of_postgresql(database, checked.notes),
        _lost_references(database),
    )
    try:
        checked.damage.extend(islice(damage, MOST))
    except StoreError as error:
        checked.damage.append(Damage("", "", f"can't be read: {error.problem}"))
    return checked


def _lost_references(database: Database) -> Iterator[Damage]:
    """Yield the missing rows that samples refer to: they have no foreign keys."""
    for parent, columns in _REFERENCES.items():
        for column in columns:
            sql = f"SELECT count(*) FROM samples WHERE {column} NOT IN (SELECT id FROM {parent})"  # noqa: S608
            if count := database.row(sql)[0]:
                yield Damage("samples", "", f"{count:,} refer to rows of {parent} that are missing")


def _of_sqlite(database: SqliteDatabase) -> Iterator[Damage]:
    for (line,) in database.rows(f"PRAGMA integrity_check({MOST})"):
        if line != "ok":
            yield Damage("", "", str(line))
    for table, row, parent, _ in database.rows("PRAGMA foreign_key_check"):
        where = "" if row is None else f"rowid {row}"
        yield Damage(table, where, f"refers to a row of {parent} that is missing")
    # Differences from the schema that relayd makes.
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        fresh = SqliteDatabase(connection, Path(":memory:"))
        fresh.lay_out()
        due = fresh.rows(_SCHEMA)
    held = {(name, kind): _plain(sql) for name, kind, sql in database.rows(_SCHEMA)}
    for name, kind, sql in due:
        if (found := held.get((name, kind))) != _plain(sql):
            problem = "is not what relayd makes it" if found else "is missing"
            yield Damage("sqlite_schema", f"{kind} {name}", problem)


def _plain(sql: str) -> str:
    """Return SQL without comments, and without spaces that mean nothing."""
    without_comments = re.sub(r"--[^\n]*", "", sql)
    return re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", without_comments)).replace('"', "")


def _of_postgresql(database: Database, notes: list[str]) -> Iterator[Damage]:
    """Yield damage in tables and B-trees that amcheck finds, or that reading them reveals."""
    has_amcheck = bool(database.row(_AMCHECK)[0])
    if has_amcheck:
        for name, number in database.rows(_RELATIONS, ("i",)):
            try:
                database.rows("SELECT bt_index_check(CAST(? AS regclass), true)", (number,))
            except StoreError as error:
                yield Damage(name, "", error.problem)
    else:
        notes.append(_NO_AMCHECK)
    (version,) = database.row("SELECT current_setting('server_version_num')")
    for name, number in database.rows(_RELATIONS, ("r",)):
        if has_amcheck and int(version) >= 140_000:  # older ones have no verify_heapam
            for block, place, problem in database.rows(
                "SELECT blkno, offnum, msg FROM verify_heapam(CAST(? AS regclass))", (number,)
            ):
                yield Damage(name, f"ctid ({block},{place})", problem)
            continue
        try:  # each value is put together, from wherever its parts are
            database.rows(f"SELECT count(CAST(held AS text)) FROM {name} AS held")  # noqa: S608
        except StoreError as error:
            yield Damage(name, "", f"can't be read: {error.problem}")
