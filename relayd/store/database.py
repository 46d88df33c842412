"""A connection to SQLite whose failures are :class:`~planner.errors.StoreError`.

Every statement of the store goes through this class, so that translation of errors, and the
rule of one writer at a time, are in one place.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from relayd.store.failures import translated

Values: TypeAlias = Sequence[object] | Mapping[str, object]

# Mistakes of our own and broken constraints are not the file's fault: they pass untranslated.
_NOT_THE_FILE = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)


class Database:
    """One connection to one database file.

    Parameters
    ----------
    connection : sqlite3.Connection
        In autocommit mode (``isolation_level=None``).
    path : Path
        As the user spelled it, for errors.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    def close(self) -> None:
        """Close the connection; what was committed is safe without it."""
        self._connection.close()

    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        """Run a query and return all its rows."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except _NOT_THE_FILE:
            raise
        except sqlite3.Error as error:
            raise translated(self.path, error) from error

    def row(self, sql: str, values: Values = ()) -> Any:
        """Run a query and return its first row, or None."""
        rows = self.rows(sql, values)
        return rows[0] if rows else None

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        """Run a query and yield its rows as they are read, in bounded memory."""
        try:
            yield from self._connection.execute(sql, values)
        except _NOT_THE_FILE:
            raise
        except sqlite3.Error as error:
            raise translated(self.path, error) from error

    def change(self, sql: str, values: Values = ()) -> int:
        """Run a statement that changes something; returns the id of the row it inserted."""
        try:
            return self._connection.execute(sql, values).lastrowid or 0
        except _NOT_THE_FILE:
            raise
        except sqlite3.Error as error:
            raise translated(self.path, error) from error

    def change_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Run a statement once for each row; returns how many rows it changed."""
        try:
            return self._connection.executemany(sql, rows).rowcount
        except _NOT_THE_FILE:
            raise
        except sqlite3.Error as error:
            raise translated(self.path, error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Become the one writer; commit at the end, or leave everything as it was.

        When it returns, the change is on disk (``synchronous=FULL`` waits for the device).

        Raises
        ------
        StoreError
            If another process is the writer for longer than the busy timeout, or the change
            can't be written.
        """
        self.change("BEGIN IMMEDIATE")
        try:
            yield
            if self._connection.in_transaction:
                self.change("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """Undo the transaction so far and end it, if there is one."""
        # SQLite has already rolled back by itself after some errors, such as a full disk.
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
