"""The schema's versions: which one a database has, and how it gets to ours.

Version ``n`` is what the scripts ``migrations/0001_*.sql`` to ``n`` make of an empty SQLite
database, and those of the same numbers in ``migrations/postgresql`` of an empty PostgreSQL one:
the same tables and columns. A new version is a script in both. ``PRAGMA user_version`` keeps the
number in the file's header; :mod:`relayd.store.postgresql.schema` has its own way.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from relayd.store.failures import damaged, too_new
from relayd.store.sqlite.database import SqliteDatabase

APPLICATION_ID = 0x72656C79
"""Marks a database as ours in the header of the file: ``rely`` in ASCII."""

SCHEMA_VERSION = 10
"""The newest schema that this program knows."""

MIGRATIONS = Path(__file__).parent / "migrations"


def version(database: SqliteDatabase) -> int:
    """Return the schema version of a database; 0 for one that is not laid out yet.

    Raises
    ------
    StoreError
        If it is newer than this program.
    """
    found = int(database.row("PRAGMA user_version")[0])
    if found > SCHEMA_VERSION:
        raise too_new(database.location, found, SCHEMA_VERSION)
    return found


def upgrade(database: SqliteDatabase) -> None:
    """Bring a database to :data:`SCHEMA_VERSION` in one transaction."""
    if version(database) == SCHEMA_VERSION:
        return
    # A migration may rebuild a table that others refer to. The switch has no effect inside a
    # transaction, so all references are checked before the commit.
    database.change("PRAGMA foreign_keys = OFF")
    try:
        with database.transaction():
            # Read again: another process may have been first.
            for number in range(version(database) + 1, SCHEMA_VERSION + 1):
                for statement in statements(script(number)):
                    database.change(statement)
                database.change(f"PRAGMA user_version = {number}")
            broken = database.rows("PRAGMA foreign_key_check")
            if broken:
                raise damaged(database.path, f"{len(broken)} rows refer to rows that are missing")
    finally:
        database.change("PRAGMA foreign_keys = ON")


def script(number: int, folder: str = ".") -> str:
    """Return the SQL that leads from the version before to this one."""
    (path,) = (MIGRATIONS / folder).glob(f"{number:04}_*.sql")
    return path.read_text(encoding="utf-8")


def statements(sql: str) -> Iterator[str]:
    """Split a script into statements.

    ``Connection.executescript`` can't be used: it commits first, which would take the script
    out of the transaction.
    """
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    if pending.strip():
        yield pending
