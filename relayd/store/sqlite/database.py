"""The store's statements on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from relayd.store.database import Database, Values
from relayd.store.failures import damaged, of_sqlite

APPLICATION_ID = 0x726C7964
"""Marks a database as ours in the header of the file: ``rlyd`` in ASCII."""
ID_OF_OLDER_BUILDS = 0x72656C79
"""The mark of stores from before version 1 of the schema: ``rely``."""
# Mistakes of our own and broken constraints are not the file's fault: they pass untranslated.
_NOT_THE_FILE = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)


class SqliteDatabase(Database):
    """One connection to one database file.

    Parameters
    ----------
    connection : sqlite3.Connection
        In autocommit mode (``isolation_level=None``).
    path : Path
        Of the file as the user spelled it, for errors.
    """

    engine = "sqlite"
    clock_sql = "((julianday('now') - 2440587.5) * 86400.0)"
    refusals = (
        sqlite3.IntegrityError,
        sqlite3.ProgrammingError,
        OverflowError,
        TypeError,
        UnicodeError,
    )

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @property
    def location(self) -> Path:
        return self.path

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Raise what SQLite says of the file as errors of the store."""
        try:
            yield
        except _NOT_THE_FILE:
            raise
        except sqlite3.Error as error:
            raise of_sqlite(self.path, error) from error
        except UnicodeDecodeError as error:
            # SQLite's message has a name of the schema in it, which is damaged.
            raise damaged(self.path, "database disk image is malformed") from error

    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        with self._translating():
            return self._connection.execute(sql, values).fetchall()

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        with self._translating():
            yield from self._connection.execute(sql, values)

    def _run_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        with self._translating():
            return self._connection.executemany(sql, rows).rowcount

    def insert(
        self, table: str, rows: Sequence[Sequence[object]], *, skip_known: bool = False
    ) -> int:
        if not rows:
            return 0
        placeholders = ", ".join("?" * len(rows[0]))
        known = " ON CONFLICT DO NOTHING" if skip_known else ""
        return self.change_many(f"INSERT INTO {table} VALUES ({placeholders}){known}", rows)  # noqa: S608

    # ---- transactions --------------------------------------------------------------------------

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def _begin(self) -> None:
        self.rows("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        # On disk when it returns: synchronous=FULL waits for the device.
        self.rows("COMMIT")

    def roll_back(self) -> None:
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    # ---- the schema, and copies ----------------------------------------------------------------

    def schema_version(self) -> int:
        return int(self.row("PRAGMA user_version")[0])

    def set_schema_version(self, version: int) -> None:
        self.rows(f"PRAGMA user_version = {version}")

    def define(self, sql: str) -> None:
        self.rows(sql)

    @contextmanager
    def rebuilding(self) -> Iterator[None]:
        # The switch has no effect inside a transaction, so all references are checked at its end.
        self.rows("PRAGMA foreign_keys = OFF")
        try:
            with self.transaction():
                yield
                if broken := self.rows("PRAGMA foreign_key_check"):
                    raise damaged(self.path, f"{len(broken)} rows refer to rows that are missing")
        finally:
            self.rows("PRAGMA foreign_keys = ON")

    def copy_to(self, other: sqlite3.Connection) -> None:
        """Copy all pages into another database, as they are at one time."""
        with self._translating():
            self._connection.backup(other)

    def copy_from(self, other: sqlite3.Connection) -> None:
        """Replace all pages by those of another database: all or nothing."""
        with self._translating():
            other.backup(self._connection)
