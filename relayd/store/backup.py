"""Copies of a store in one file, made while it is in use, and stores made of them."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from planner.model.errors import InputError, StoreError
from relayd.files import sync
from relayd.store.database import SCHEMA_VERSION
from relayd.store.failures import failure, known, of_file, of_sqlite
from relayd.store.location import Address, Location
from relayd.store.opening import Store, open_store
from relayd.store.sqlite import APPLICATION_ID, ID_OF_OLDER_BUILDS, SqliteDatabase

_SCHEMA = "SELECT CAST(current_schema() AS text), current_setting('server_version_num')"
_PART = ".relayd-part"
"""Ending of the hidden file that becomes a backup."""
_MARK = b"\nrelayd backup, sha256 "
_DIGEST_BYTES = len(_MARK) + 64 + 1
"""At the end of a backup, after what SQLite and pg_restore read of it. No multiple of a page's."""
_IN_USE = ("batches", "quarantined_samples", "snapshots", "campaigns", "tokens", "verifications")


def backup(store: Store, target: Path) -> None:
    """Write what a store holds now to a new file: whole, or not at all.

    On SQLite the file is a store itself; on PostgreSQL it is what ``pg_dump -Fc`` writes. Either
    ends with a digest of all before it. Only its owner may read it. Others may write to the store
    meanwhile. Raises InputError if the file exists or can't be written, StoreError if the store or
    ``pg_dump`` can't be used.
    """
    with _new_file(target) as part:
        if isinstance(database := store.database, SqliteDatabase):
            with _connected(part) as copy:
                with database.translating():  # in one reading transaction
                    database.connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")  # one file, without a log
                _refuse_damaged(copy, part)
        else:
            address = store.location
            assert isinstance(address, Address)
            name, server = database.row(_SCHEMA)
            _refuse_older(address, "pg_dump", int(server) // 10_000)
            pattern = '"' + name.replace('"', '""') + '"'  # that fits this name alone
            options = ["--format=custom", "--no-owner", "--no-privileges", f"--schema={pattern}"]
            _run(address, "pg_dump", [*options, f"--file={part}"])
        with part.open("rb+") as file:
            digest = file_digest(file, "sha256").hexdigest()
            file.write(_MARK + digest.encode() + b"\n")


def refuse_changed(backup: Path) -> None:
    """Raise StoreError unless a file is what :func:`backup` wrote, to the last bit."""
    digest, left = sha256(), max(0, backup.stat().st_size - _DIGEST_BYTES)
    with backup.open("rb") as file:
        while part := file.read(min(left, 1 << 20)):
            digest.update(part)
            left -= len(part)
        end = file.read()
    if end != _MARK + digest.hexdigest().encode() + b"\n":
        problem = "is no backup, or is damaged: it is not what its digest says"
        remedy = "Use another backup, and `relayd data store check` on the store."
        raise StoreError("FILE", problem, value=str(backup), remedy=remedy)


def is_backup(file: Path) -> bool:
    """Return whether a file of SQLite ends with a digest, if a damaged one."""
    return file.stat().st_size % 512 != 0


def restore(source: Path, where: Location) -> None:
    """Make a store of what :func:`backup` wrote on the same engine; all of it, or nothing.

    The backup is checked first. `where` is a file that is not there yet, an empty database, or a
    store that nothing was stored in.

    Raises InputError or StoreError if the backup is damaged; if the store holds something already,
    or can't be written.
    """
    if not source.is_file():
        raise InputError("FILE", "is not there", value=str(source), remedy="Name a backup.")
    try:
        refuse_changed(source)
    except OSError as error:
        raise of_file(source, error) from error
    if isinstance(where, Path):
        _restore_file(source, where)
    else:
        _restore_dump(source, where)


def _restore_file(source: Path, where: Path) -> None:
    is_new = not where.exists() or where.stat().st_size == 0
    try:
        with open_store(where, mode="create") as store:
            _refuse_used(store)
            database = store.database
            assert isinstance(database, SqliteDatabase)
            with _connected(source) as copy:
                application = _pragma(copy, "application_id")
                if application == ID_OF_OLDER_BUILDS:
                    raise known(source, "older")
                version = _pragma(copy, "user_version")
                if application != APPLICATION_ID or not 0 < version <= SCHEMA_VERSION:
                    raise _no_backup(source, "is no backup of a store, or of a newer relayd")
                _refuse_damaged(copy, source)
                with database.translating():  # in one writing transaction
                    copy.backup(database.connection)
                database.lay_out()  # what a backup of an older relayd lacks
    except BaseException:
        if is_new:  # else the next attempt would find an empty store, which is no harm, or a part
            for name in (where, Path(f"{where}-wal"), Path(f"{where}-shm")):
                name.unlink(missing_ok=True)
        raise


def _refuse_used(store: Store) -> None:
    """Raise StoreError if anything was stored in a store."""
    for table in _IN_USE:
        if store.database.row(f"SELECT 1 FROM {table} LIMIT 1"):  # noqa: S608
            remedy = "It was left as it is. Restore into a store that is not there yet, or empty."
            raise failure(store.location, f"holds {table.replace('_', ' ')} already", remedy)


# ---- files of SQLite, by its online backup (https://www.sqlite.org/backup.html) ------------------


def _no_backup(source: Path, problem: str) -> InputError:
    remedy = "Name a file that `relayd data store backup` wrote."
    return InputError("FILE", problem, value=str(source), remedy=remedy)


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    except sqlite3.Error as error:
        raise of_sqlite(path, error) from error
    finally:
        connection.close()


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _refuse_damaged(copy: sqlite3.Connection, path: Path) -> None:
    found = _pragma(copy, "integrity_check(1)")
    if path.stat().st_size < _pragma(copy, "page_count") * _pragma(copy, "page_size"):
        found = "the file is cut off"  # SQLite reads zeros in place of what is missing
    if found != "ok":
        remedy = "Use another backup, and `relayd data store check` on the store."
        raise StoreError("FILE", f"is damaged: {found}", value=str(path), remedy=remedy)


@contextmanager
def _new_file(target: Path) -> Iterator[Path]:
    """Yield the name of a file that becomes the target at the end, or nothing if that fails.

    It is on disk then, and only its owner may read it at any time. What backups that were killed
    left in the folder is removed: the lock of a file ends with its process.
    """
    for left in target.parent.glob(f".*{_PART}"):
        with suppress(OSError), left.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()
    part = target.with_name(f".{secrets.token_hex(4)}{_PART}")
    held: int | None = None
    try:
        if target.exists():
            remedy = "Name a new one."
            raise InputError("FILE", "is there already", value=str(target), remedy=remedy)
        held = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)
        yield part
        sync(part)
        os.link(part, target)  # unlike a renaming, this replaces nothing
        part.unlink()
        sync(target.parent)
    except OSError as error:
        raise of_file(target, error) from error
    finally:
        if held is not None:
            os.close(held)
        for suffix in ("", "-journal", "-wal", "-shm"):  # SQLite leaves them on a full disk
            with suppress(OSError):
                part.with_name(part.name + suffix).unlink()


# ---- servers, by pg_dump and pg_restore, which come with PostgreSQL ------------------------------


def _restore_dump(source: Path, address: Address) -> None:
    """Fill the schema that an address leads to with that of a dump, in one transaction."""
    from relayd.store.postgresql.database import MARK

    listed = _run(address, "pg_restore", ["--list", str(source)], connected=False)
    if MARK not in listed:
        raise _no_backup(source, "is no backup of a store")
    # To its end, so that a file that is cut off or damaged is noticed before anything is changed.
    _run(address, "pg_restore", ["--file=/dev/null", str(source)], connected=False)
    with open_store(address, mode="create") as store:
        _refuse_used(store)
        name, server = store.database.row(_SCHEMA)
    if f" {name} " not in listed:
        problem = f"leads to the schema {name!r}, and the backup is of another"
        raise failure(address, problem, "Name that one: ?options=-c%20search_path%3DNAME.")
    _refuse_older(address, "pg_restore", int(server) // 10_000)
    with open_store(address, mode="write") as store, store.database.transaction():
        # What a backup of version 1 lacks would keep it from replacing the tables it has.
        store.database.rows("DROP TABLE holds")
        store.database.rows(f"UPDATE {MARK} SET version = 1")  # noqa: S608
    options = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"]
    options += ["--clean", "--if-exists", f"--schema={name}"]
    _run(address, "pg_restore", [*options, str(source)])
    open_store(address, mode="write").close()  # adds what it lacks


def _refuse_older(address: Address, program: str, server: int) -> None:
    found = re.search(r"(\d+)", _run(address, program, ["--version"], connected=False))
    if found and int(found[1]) < server:
        problem = f"runs PostgreSQL {server}, and {program} here is of {found[1]}"
        remedy = f"Install the programs of PostgreSQL {server} or newer, first in PATH."
        raise failure(address, problem, remedy)


def _run(
    address: Address, program: str, arguments: Sequence[str], *, connected: bool = True
) -> str:
    """Run a program and return its output; every user may read a command line, so no password."""
    environment = dict(os.environ)
    if connected:
        from psycopg.conninfo import make_conninfo

        from relayd.store.postgresql.connecting import parameters_of

        parameters = parameters_of(address)
        if password := parameters.pop("password", None):
            environment["PGPASSWORD"] = str(password)
        arguments = [f"--dbname={make_conninfo(**parameters)}", *arguments]
    try:
        done = subprocess.run(  # noqa: S603
            [program, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        remedy = "Install PostgreSQL's client programs (Debian: postgresql-client)."
        raise failure(address, f"needs the program {program}: {error.strerror}", remedy) from None
    if done.returncode:
        said = " ".join(done.stderr.split())[:300]
        raise failure(address, f"was not read or written by {program}: {said}", "Nothing was kept.")
    return done.stdout
