"""The store on SQLite. A file is checked before any change, and a foreign one never overwritten."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from planner.model.errors import StoreError
from relayd.store.database import Database, Values
from relayd.store.failures import failure, known, missing, of_file, of_sqlite

APPLICATION_ID = 0x726C7964  # marks a database as ours in the header of the file: ``rlyd`` in ASCII
ID_OF_OLDER_BUILDS = 0x72656C79  # the mark of stores from before version 1 of the schema: ``rely``
# Mistakes of our own and broken constraints are not the file's fault: they pass untranslated.
_NOT_THE_FILE = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.NotSupportedError)
CACHE_KIB = 65_536
"""Of a writer: the pages that a million samples touch, so that none is written twice."""


class SqliteDatabase(Database):
    """One connection, in autocommit mode, to a file; errors show its path as it was spelled."""

    clock_sql = "((julianday('now') - 2440587.5) * 86400.0)"
    refusals = (
        sqlite3.IntegrityError,
        sqlite3.ProgrammingError,
        OverflowError,
        TypeError,
        UnicodeError,
    )

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.location: Path = path

    def close(self) -> None:
        self.connection.close()

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Turn SQLite's errors about the file into errors of the store.

        Raises StoreError in place of an error of SQLite that is about the file.
        """
        try:
            yield
        except _NOT_THE_FILE:
            raise
        except sqlite3.Error as error:
            raise of_sqlite(self.location, error) from error
        except UnicodeDecodeError as error:
            # SQLite's message has a name of the schema in it, which is damaged.
            raise known(self.location, "damaged", "database disk image is malformed") from error

    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        with self.translating():
            return self.connection.execute(sql, values).fetchall()

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        with self.translating():
            yield from self.connection.execute(sql, values)

    def change_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        with self._one_transaction(), self.translating():
            return self.connection.executemany(sql, rows).rowcount

    def insert(self, table: str, rows: Sequence[Sequence[object]]) -> int:
        if not rows:
            return 0
        places = ", ".join("?" * len(rows[0]))
        sql = f"INSERT INTO {table} VALUES ({places}) ON CONFLICT DO NOTHING"  # noqa: S608
        return self.change_many(sql, rows)

    @property
    def in_transaction(self) -> bool:
        return self.connection.in_transaction

    def _begin(self) -> None:
        self.rows("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        # On disk when it returns: synchronous=FULL waits for the device.
        self.rows("COMMIT")

    def roll_back(self) -> None:
        if self.connection.in_transaction:
            with suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")

    def _version(self) -> int:
        return int(self.row("PRAGMA user_version")[0])

    def _mark(self, version: int) -> None:
        self.rows(f"PRAGMA user_version = {version}")


def open_file(
    named: Path, mode: Literal["read", "write", "create"], busy_timeout_s: float
) -> SqliteDatabase:
    """Open a database file; the arguments and errors are those of :func:`open_store`."""
    if tuple(map(int, sqlite3.sqlite_version.split("."))) < (3, 37):
        raise failure(  # STRICT tables, https://www.sqlite.org/stricttables.html
            named,
            f"needs SQLite 3.37 or newer, and this Python has {sqlite3.sqlite_version}",
            "Use a Python that is built with a newer SQLite.",
        )
    try:
        target = Path(os.path.realpath(named))
        size = _size_bytes(target, named, create=mode == "create")
    except StoreError:
        raise
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            error = OSError(None, f"Symlink loop from {error.filename!r}")
        raise of_file(named, error) from error
    if size is None:
        raise missing(named)
    if size == 0 and mode != "create":
        remedy = "`relayd import` makes a database of it; or name another."
        raise failure(named, "is an empty file", remedy)
    try:
        if size > 0:
            _refuse_foreign(target, named)
        if mode == "read":
            return _open_for_reading(target, named, busy_timeout_s)
        return _open_for_writing(target, named, busy_timeout_s)
    except sqlite3.DatabaseError as error:
        raise of_sqlite(named, error) from error


def _size_bytes(target: Path, named: Path, *, create: bool) -> int | None:
    """Return the size of a regular file that may be read; None where there is none.

    One that is to be created is empty, and only this user may read it and new folders of it.
    """
    try:
        status = target.stat()
    except FileNotFoundError:
        if not create:
            return None
        for folder in reversed(target.parents):
            folder.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError):  # another process is creating the same store
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        return 0
    if stat.S_ISDIR(status.st_mode):
        inside = str(named / "relayd.db")
        raise failure(named, "is a folder", f"Name a file, such as {inside!r}.")
    if not stat.S_ISREG(status.st_mode):
        raise failure(named, "is not a regular file", "Name a file on a local disk.")
    if not os.access(target, os.R_OK):
        raise known(named, "unreadable")
    return status.st_size


def _connect(target: Path, parameters: str, timeout_s: float = 0) -> sqlite3.Connection:
    # In a URI, unlike in a plain path, the mode can be set so that no file is ever created.
    uri = f"{target.as_uri()}?{parameters}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=timeout_s)


def _refuse_foreign(target: Path, named: Path) -> None:
    """Raise unless the header says that the file is ours, leaving it and its folder untouched.

    ``immutable`` makes SQLite look at the file alone: it takes no lock, rolls nothing back and
    creates no file next to it. (Reading the header with ``open`` is not possible: closing a file
    drops all POSIX locks of the process on it, those of its other connections too. See
    https://www.sqlite.org/howtocorrupt.html, section 2.2.)
    """
    try:
        with closing(_connect(target, "mode=ro&immutable=1")) as connection:
            _check_mark(connection, named)
    except sqlite3.DatabaseError as error:
        # A writer that is just growing the file looks like damage to this look without locks;
        # if there is real damage, the real connection finds it.
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise


def _check_mark(connection: sqlite3.Connection, named: Path) -> None:
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    if found != APPLICATION_ID:
        raise known(named, "older" if found == ID_OF_OLDER_BUILDS else "foreign")


def _refuse_cut_off(database: SqliteDatabase, target: Path) -> None:
    """Raise if the end of the last page is missing, which SQLite would read as zeros.

    Missing pages it notices by itself.
    """
    page_bytes = database.row("PRAGMA page_size")[0]
    for _ in range(3):  # another process may change the size between two looks
        bytes_due = database.row("PRAGMA page_count")[0] * page_bytes
        # While there is a log, the file may lag behind it.
        if target.stat().st_size >= bytes_due or _has_log(target):
            return
    raise known(database.location, "damaged", "the file is cut off")


def _has_log(target: Path) -> bool:
    """Return whether the write-ahead log holds changes that are not in the file yet."""
    log = Path(f"{target}-wal")
    return log.exists() and log.stat().st_size > 0


def _open_for_reading(target: Path, named: Path, timeout_s: float) -> SqliteDatabase:
    try:
        return _reader(target, named, "mode=ro", timeout_s)
    except sqlite3.OperationalError as error:
        # A database in WAL mode needs two files next to it, which can't be made in a read-only
        # folder. Without a log there is no writer, and the file is complete.
        kind = error.sqlite_errorcode & 0xFF
        if kind not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        if _has_log(target):
            raise failure(
                named,
                "has its newest changes in the file beside it that ends in -wal, which can't "
                "be used in a folder that is read-only for this user",
                "Copy both files to a folder of yours, or open it once as their owner.",
            ) from error
        return _reader(target, named, "mode=ro&immutable=1", timeout_s)


def _reader(target: Path, named: Path, parameters: str, timeout_s: float) -> SqliteDatabase:
    database = SqliteDatabase(_connect(target, parameters, timeout_s), named)
    try:
        _check_mark(database.connection, named)
        database.rows("PRAGMA query_only = ON")
        database.rows("PRAGMA trusted_schema = OFF")
        if database.schema_version() == 0:
            raise missing(named, interrupted=True)
        _refuse_cut_off(database, target)
    except BaseException:
        database.close()
        raise
    return database


def _open_for_writing(target: Path, named: Path, timeout_s: float) -> SqliteDatabase:
    if not (os.access(target, os.W_OK) and os.access(target.parent, os.W_OK)):
        raise known(named, "read-only")
    database = SqliteDatabase(_connect(target, "mode=rw", timeout_s), named)
    try:
        # A new file, or one whose creation was killed while it wrote our mark: that is rolled
        # back as we look.
        if database.row("PRAGMA page_count")[0] == 0:
            with database.transaction():
                used = database.row("SELECT count(*) FROM sqlite_schema")[0]
                if not used and not database.row("PRAGMA application_id")[0]:
                    try:
                        target.chmod(0o600)
                    except OSError as error:
                        raise of_file(named, error) from error
                    database.rows(f"PRAGMA application_id = {APPLICATION_ID}")
        _check_mark(database.connection, named)
        database.schema_version()  # refuses a newer one before anything is changed
        _refuse_cut_off(database, target)
        for setting in (
            "trusted_schema = OFF",
            "foreign_keys = ON",
            "synchronous = FULL",
            f"cache_size = -{CACHE_KIB}",
            f"journal_size_limit = {16 * 2**20}",
        ):
            database.rows(f"PRAGMA {setting}")
        _use_wal(database.connection, timeout_s)
        database.lay_out()
    except BaseException:
        database.close()
        raise
    return database


def _use_wal(connection: sqlite3.Connection, timeout_s: float) -> None:
    """Use a write-ahead log: readers continue while one process writes."""
    # SQLite does not wait by itself here when two processes create the same store.
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.DatabaseError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
