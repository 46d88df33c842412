"""The schema: which version of it a database has, and the way from that to ours.

Version ``n`` is what the scripts ``migrations/0001_*.sql`` to ``n`` make of an empty database. They
are one text for both engines and lead forward only; all that are missing run in one transaction. To
change the schema of a release, add a script and raise :data:`SCHEMA_VERSION`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

from relayd.store.database import Database
from relayd.store.failures import failure, missing

SCHEMA_VERSION = 1
"""The newest schema that this program knows."""

MIGRATIONS = Path(__file__).with_name("migrations")


def version(database: Database) -> int:
    """Return the schema version of a database; 0 for one that is not laid out yet.

    Raises
    ------
    StoreError
        If it is newer than this program, or there is something else in it.
    """
    found = database.schema_version()
    if found > SCHEMA_VERSION:
        raise failure(
            database.location,
            f"was written by a newer relayd (schema {found}; this one knows {SCHEMA_VERSION})",
            "Upgrade relayd, or name another database; it was left as it is.",
        )
    return found


def check_readable(database: Database) -> None:
    """Raise StoreError unless a database has our schema, for those who change nothing."""
    found = version(database)
    if found == 0:
        raise missing(database.location, interrupted=True)
    if found < SCHEMA_VERSION:
        raise failure(
            database.location,
            f"has schema {found} of an older relayd (this one reads {SCHEMA_VERSION})",
            "Any command that stores something brings it up to date and keeps all that it holds.",
        )


def migrate(database: Database) -> None:
    """Bring a database to :data:`SCHEMA_VERSION`: whole, or not at all."""
    if version(database) == SCHEMA_VERSION:
        return
    with database.rebuilding():
        # Read again: another process may have been first.
        for number in range(version(database) + 1, SCHEMA_VERSION + 1):
            (script,) = MIGRATIONS.glob(f"{number:04}_*.sql")
            for statement in statements(script.read_text(encoding="utf-8")):
                database.define(statement)
            database.set_schema_version(number)


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
