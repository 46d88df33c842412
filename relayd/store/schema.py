"""The schema's versions: which one a database has, and how it gets to ours.

Version ``n`` is what the scripts ``migrations/0001_*.sql`` to ``n`` make of an empty SQLite
database, and those of the same numbers in ``migrations/postgresql`` of an empty PostgreSQL one:
the same tables and columns. A new version is a script in both. ``PRAGMA user_version`` keeps the
number in the file's header; :mod:`relayd.store.postgresql.schema` has its own way.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path  # reading runs no scripts

from relayd.store.database import Database
from relayd.store.failures import damaged, failure, too_new
from relayd.store.link_rows import convert  # reading converts nothing
from relayd.store.location import Location
from relayd.store.sqlite.database import SqliteDatabase

APPLICATION_ID = 0x72656C79
"""Marks a database as ours in the header of the file: ``rely`` in ASCII."""

SCHEMA_VERSION = 22
"""The newest schema that this program knows."""

MIGRATIONS = os.path.join(os.path.dirname(__file__), "migrations")
BACK = "back"
"""Folder of the scripts that lead back to the version before."""

CONVERTING = "-- Links are converted here: relayd/store/link_rows.py."
"""Line of a script where figures change their form, which SQL can't do on all engines."""


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


def upgrade(database: SqliteDatabase, before: Callable[[], None] | None = None) -> None:
    """Bring a database to :data:`SCHEMA_VERSION` in one transaction.

    Parameters
    ----------
    before : callable, optional
        Called in it before a store of an older version is changed.
    """
    if version(database) == SCHEMA_VERSION:
        return
    with _rebuilding(database):
        # Read again: another process may have been first.
        found = version(database)
        if before and 0 < found < SCHEMA_VERSION:
            before()
        migrate(database, found, SCHEMA_VERSION)


def downgrade(database: SqliteDatabase) -> int:
    """Bring a database back by one version in one transaction; return which it has then.

    Raises
    ------
    StoreError
        If there is no way back from its version.
    """
    with _rebuilding(database):
        found = version(database)
        run_script(
            database, script_back(database.location, found, BACK), _runner(database), back=True
        )
        database.change(f"PRAGMA user_version = {found - 1}")
    return found - 1


def migrate(database: SqliteDatabase, found: int, wanted: int) -> None:
    """Run the scripts that lead from one version to a later one."""
    for number in range(found + 1, wanted + 1):
        run_script(database, script(number), _runner(database))
        database.change(f"PRAGMA user_version = {number}")


def run_script(
    database: Database, sql: str, run: Callable[[str], None], *, back: bool = False
) -> None:
    """Run a script, and what it leaves to us in its middle.

    Parameters
    ----------
    run : callable
        Runs some SQL.
    back : bool
        Whether it leads to the version before.
    """
    before, mark, after = sql.partition(CONVERTING)
    run(before)
    if mark:
        convert(database, back=back)
        run(after)


def _runner(database: SqliteDatabase) -> Callable[[str], None]:
    def run(sql: str) -> None:
        for statement in statements(sql):
            database.change(statement)

    return run


@contextmanager
def _rebuilding(database: SqliteDatabase) -> Iterator[None]:
    """Let a transaction rebuild tables that others refer to.

    The switch has no effect inside a transaction, so all references are checked before the commit.
    """
    database.change("PRAGMA foreign_keys = OFF")
    try:
        with database.transaction():
            yield
            broken = database.rows("PRAGMA foreign_key_check")
            if broken:
                raise damaged(database.path, f"{len(broken)} rows refer to rows that are missing")
    finally:
        database.change("PRAGMA foreign_keys = ON")


def script_back(location: Location, number: int, folder: str) -> str:
    """Return the SQL that leads from a version to the one before.

    Raises
    ------
    StoreError
        If there is none.
    """
    if not any(_scripts(number, folder)):
        raise failure(
            location,
            f"has schema {number}, from which there is no way back",
            "Restore a backup from before its upgrade.",
        )
    return script(number, folder)


def script(number: int, folder: str = ".") -> str:
    """Return the SQL that leads from the version before to this one."""
    (path,) = _scripts(number, folder)
    return path.read_text(encoding="utf-8")


def _scripts(number: int, folder: str) -> Iterator[Path]:
    return Path(MIGRATIONS, folder).glob(f"{number:04}_*.sql")


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
