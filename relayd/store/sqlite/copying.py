"""Copies of a SQLite store, by SQLite's own online backup (https://www.sqlite.org/backup.html)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from planner.model.errors import InputError, StoreError
from relayd.store.failures import translated
from relayd.store.schema import SCHEMA_VERSION
from relayd.store.sqlite.database import APPLICATION_ID, SqliteDatabase


def copy_to(database: SqliteDatabase, target: Path) -> None:
    """Copy a database into an empty file, in one reading transaction, and check the copy."""
    with _connected(target) as copy:
        database.copy_to(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, with nothing beside it
        _refuse_damaged(copy, target)


def copy_into(source: Path, database: SqliteDatabase) -> None:
    """Replace what a database holds by a copy of a file, in one writing transaction."""
    with _connected(source) as copy:
        _refuse_foreign(copy, source)
        _refuse_damaged(copy, source)
        database.copy_from(copy)


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    except sqlite3.Error as error:
        raise translated(path, error) from error
    finally:
        connection.close()


def _refuse_foreign(copy: sqlite3.Connection, path: Path) -> None:
    (application,) = copy.execute("PRAGMA application_id").fetchone()
    (version,) = copy.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID or not 0 < version <= SCHEMA_VERSION:
        raise InputError(
            "FILE",
            "is no backup of a store, or of a newer relayd",
            value=str(path),
            remedy="Name a file that `relayd store backup` wrote.",
        )


def _refuse_damaged(copy: sqlite3.Connection, path: Path) -> None:
    found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise StoreError(
            "FILE",
            f"is damaged: {found}",
            value=str(path),
            remedy="Use another backup, and `relayd store check` on the store.",
        )
