"""The store's statements on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from pathlib import Path  # a plan shows none
from typing import Any

from relayd.store.database import Column, Database, Same, Values
from relayd.store.failures import translated

# Mistakes of our own and broken constraints are not the file's fault: they pass untranslated.
_NOT_THE_FILE = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)
# Holds the pages that a big file touches, so that none is written to disk twice; one million
# samples take about 40 MB.
BULK_CACHE_KIB = 65_536
_USUAL_CACHE_KIB = 2_000
_ROWS_AT_ONCE = 32


class SqliteDatabase(Database):
    """One connection to one database file.

    Parameters
    ----------
    connection : sqlite3.Connection
        In autocommit mode (``isolation_level=None``).
    named : Path or str
        The path of the file as the user spelled it, for errors.
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

    def __init__(self, connection: sqlite3.Connection, named: Path | str) -> None:
        self._connection = connection
        self._named = named

    @cached_property
    def path(self) -> Path:
        """The path of the file as the user spelled it."""
        return Path(self._named)

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
            raise translated(self._named, error) from error
        except UnicodeDecodeError as error:
            # SQLite's message has a name of the schema in it, which is damaged.
            damaged = sqlite3.DatabaseError("database disk image is malformed")
            raise translated(self._named, damaged) from error

    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        with self._translating():
            return self._connection.execute(sql, values).fetchall()

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        with self._translating():
            yield from self._connection.execute(sql, values)

    def change(self, sql: str, values: Values = ()) -> int:
        alone = self.fence is None or self._connection.in_transaction
        with nullcontext() if alone else self.transaction():
            rows = self.rows(sql, values)
        return rows[0][0] if rows else 0

    def change_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
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

    def insert_columns(self, table: str, columns: Sequence[Column], count: int) -> int:
        if count < _ROWS_AT_ONCE:
            return super().insert_columns(table, columns, count)
        # A statement for many rows, in which what they share is written once, takes a third.
        written = [_literal(one.value) if isinstance(one, Same) else None for one in columns]
        each: list[Sequence[object]] = [
            [one.value] * count if isinstance(one, Same) else one
            for one, literal in zip(columns, written, strict=True)
            if literal is None
        ]
        row = f"({', '.join(literal or '?' for literal in written)})"
        new, width, whole = 0, len(each), count - count % _ROWS_AT_ONCE
        values: list[object] = [None] * (width * count)
        for at, column in enumerate(each):
            values[at::width] = column
        for rows, begin, end in ((_ROWS_AT_ONCE, 0, whole), (1, whole, count)):
            step = width * rows
            statements = (values[at : at + step] for at in range(width * begin, width * end, step))
            sql = f"INSERT INTO {table} VALUES {', '.join([row] * rows)} ON CONFLICT DO NOTHING"  # noqa: S608
            new += max(0, self.change_many(sql, statements))
        return new

    @contextmanager
    def any_text(self) -> Iterator[None]:
        self._connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
        try:
            yield
        finally:
            self._connection.text_factory = str

    @contextmanager
    def transaction(self) -> Iterator[None]:
        # On disk when it returns: synchronous=FULL waits for the device.
        self.rows("BEGIN IMMEDIATE")
        try:
            self._check_fence()
            yield
            if self._connection.in_transaction:
                self.rows("COMMIT")
        except BaseException:
            self.roll_back()
            raise

    @contextmanager
    def trusting_references(self) -> Iterator[None]:
        # A third of the time of inserting samples, each of which refers to five rows.
        self.rows("PRAGMA foreign_keys = OFF")
        try:
            yield
        finally:
            self.rows("PRAGMA foreign_keys = ON")

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self.change("SAVEPOINT attempt")
        try:
            yield
        except BaseException:
            # SQLite has already rolled back by itself after some errors, such as a full disk.
            if self._connection.in_transaction:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK TO attempt")
                    self._connection.execute("RELEASE attempt")
            raise
        self.change("RELEASE attempt")

    def roll_back(self) -> None:
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def copy_to(self, other: sqlite3.Connection) -> None:
        """Copy all pages into another database, as they are at one time."""
        with self._translating():
            self._connection.backup(other)

    def copy_from(self, other: sqlite3.Connection) -> None:
        """Replace all pages by those of another database: all or nothing."""
        with self._translating():
            other.backup(self._connection)

    @contextmanager
    def expecting_many(self) -> Iterator[None]:
        self.change(f"PRAGMA cache_size = -{BULK_CACHE_KIB}")
        try:
            yield
        finally:
            self.change(f"PRAGMA cache_size = -{_USUAL_CACHE_KIB}")


def _literal(value: object) -> str | None:
    """Return how SQL writes a value; None where it may not be exactly the same."""
    if value is None:
        return "NULL"
    if isinstance(value, int) and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return f"{int(value)}.0"
    return "''" if value == "" else None
