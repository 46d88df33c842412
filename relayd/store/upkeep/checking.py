"""Is the database whole? Asks the engine, and compares the schema with the migrations'."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from planner.model.errors import StoreError
from relayd.store.database import Database
from relayd.store.schema import SCHEMA_VERSION, migrate
from relayd.store.sqlite.database import SqliteDatabase
from relayd.store.upkeep.damage import MOST, Damage

_SCHEMA = "SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL"
_AMCHECK = "SELECT count(*) FROM pg_extension WHERE extname = 'amcheck'"
_RELATIONS = (
    "SELECT CAST(relname AS text), CAST(oid AS bigint) FROM pg_class WHERE relkind = ? "
    "AND relnamespace = CAST(quote_ident(current_schema()) AS regnamespace) "
    "AND relam IN (SELECT oid FROM pg_am WHERE amname IN ('btree', 'heap')) ORDER BY relname"
)
_NO_AMCHECK = (
    "pages and indexes were not checked: a superuser allows it with `CREATE EXTENSION amcheck`, "
    "and `GRANT EXECUTE` on its functions"
)


class Checked(NamedTuple):
    """What a check has found.

    Attributes
    ----------
    schema : int
        Version of the schema.
    damage : list of Damage
        At most :data:`~relayd.store.upkeep.damage.MOST`.
    notes : list of str
        What could not be checked.
    """

    schema: int
    damage: list[Damage]
    notes: list[str]


def check(database: Database) -> Checked:
    """Check a database that is open."""
    checked = Checked(SCHEMA_VERSION, [], [])
    if isinstance(database, SqliteDatabase):
        found = _of_sqlite(database)
    else:
        found = _of_postgresql(database, checked.notes)
    try:
        checked.damage.extend(islice(found, MOST))
    except StoreError as error:
        checked.damage.append(Damage("", "", f"can't be read: {error.problem}"))
    return checked


def _of_sqlite(database: SqliteDatabase) -> Iterator[Damage]:
    for (line,) in database.rows(f"PRAGMA integrity_check({MOST})"):
        if line != "ok":
            yield Damage("", "", str(line))
    for table, row, parent, _ in database.rows("PRAGMA foreign_key_check"):
        where = "" if row is None else f"rowid {row}"
        yield Damage(table, where, f"refers to a row of {parent} that is missing")
    yield from _schema_damage(database)


def _schema_damage(database: SqliteDatabase) -> Iterator[Damage]:
    """Yield what differs from the schema that the migrations make."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        fresh = SqliteDatabase(connection, Path(":memory:"))
        migrate(fresh, 0, SCHEMA_VERSION)
        due = {(name, kind): _plain(sql) for name, kind, sql in fresh.rows(_SCHEMA)}
    held = {(name, kind): _plain(sql) for name, kind, sql in database.rows(_SCHEMA)}
    for (name, kind), sql in due.items():
        if (name, kind) not in held:
            yield Damage("sqlite_schema", f"{kind} {name}", "is missing")
        elif held[name, kind] != sql:
            yield Damage("sqlite_schema", f"{kind} {name}", "is not what relayd makes it")


def _plain(sql: str) -> str:
    """Return SQL without comments, and without spaces that mean nothing."""
    without_comments = re.sub(r"--[^\n]*", "", sql)
    return re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", without_comments)).replace('"', "")


def _of_postgresql(database: Database, notes: list[str]) -> Iterator[Damage]:
    """Yield what the extension amcheck finds in tables and B-trees, where it may be used."""
    if not database.row(_AMCHECK)[0]:
        notes.append(_NO_AMCHECK)
        return
    for name, number in database.rows(_RELATIONS, ("i",)):
        try:
            database.rows("SELECT bt_index_check(CAST(? AS regclass), true)", (number,))
        except StoreError as error:
            yield Damage(name, "", error.problem)
    (version,) = database.row("SELECT current_setting('server_version_num')")
    if int(version) < 140_000:
        return  # it has no verify_heapam
    for name, number in database.rows(_RELATIONS, ("r",)):
        for block, place, problem in database.rows(
            "SELECT blkno, offnum, msg FROM verify_heapam(CAST(? AS regclass))", (number,)
        ):
            yield Damage(name, f"ctid ({block},{place})", problem)
