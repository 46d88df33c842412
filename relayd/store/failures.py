"""Failures of databases and their files, turned into errors that say what to do."""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING

from planner.model.errors import StoreError
from relayd.store.location import Address, Location, shown

if TYPE_CHECKING:
    import psycopg

FIELD = "--db"
_KNOWN = {
    "foreign": (
        "is not a relayd database",
        "It was left as it is. Name another path; `relayd import` creates a database there.",
    ),
    "older": (
        "was written by a build of relayd from before version 1 of the schema",
        "It was left as it is. Run `relayd export samples -o FOLDER` with that build, then "
        "`relayd import parquet FOLDER` into a new store with this one.",
    ),
    "damaged": (
        "is damaged: {error}",
        "It was left as it is. Restore a backup, or save what can be read with "
        "`sqlite3 FILE .recover`, or name another database and import the files again.",
    ),
    "busy": (
        "is being written by another process",
        "Wait until that import or campaign has finished, and run this again.",
    ),
    "read-only": (
        "can't be written: the file, its folder or the file system is read-only for this user",
        "Make both writable, or name a database elsewhere.",
    ),
    "unreadable": (
        "can't be opened: this user lacks the permission",
        "Run as the owner, change the permissions of the file and its folders, or name another.",
    ),
    "unopened": (
        "can't be opened",
        "Check that this user may read and write the file and create files in its folder.",
    ),
    "full": (
        "can't grow: the disk{where} is full",
        "Free some space and run this again. What it was storing was not; all from before is.",
    ),
    "unwritten": (
        "can't be read or written: {error}",
        "Check the disk (full, failing or unmounted?); a network file system won't do.",
    ),
    "memory": ("needs more memory than there is", "Free some and run this again."),
    "lost": (
        "has closed the connection, or can't be reached any more",
        "Nothing was stored in part. Run this again: the next attempt makes a new connection.",
    ),
    "slow": (
        "took too long to answer",
        "Try again when it is less busy, or allow more: "
        "?options=-c%20statement_timeout%3D600s in the address.",
    ),
    "short": ("is short of resources: {error}", "Try again in a while."),
    "secondary": (
        "can't be written: this connection or server is read-only",
        "Name the primary server; ?target_session_attrs=read-write finds it among several.",
    ),
    "refused": (
        "refuses: {error}",
        "Let its owner grant what is missing, such as CREATE on the schema and the tables.",
    ),
    "trouble": (
        "is damaged or in trouble: {error}",
        "Look into the log of the server; restore a backup if need be.",
    ),
    "other": (
        "does not hold what a relayd database should: {error}",
        "Restore it from a backup, or name another database; it was left as it is.",
    ),
}


class NoStoreError(StoreError):
    """No store exists yet at a location where one could be created."""


class ConnectionLostError(StoreError):
    """The connection to a server broke, and the transaction under way was not committed."""


def reason(error: BaseException) -> str:
    """Return the first line of what a database or its driver said, without a full stop."""
    return (str(error).strip() or type(error).__name__).partition("\n")[0].rstrip(".")


def failure(location: Location | str, problem: str, remedy: str) -> StoreError:
    """Return the error for a database: the option at fault, the location and the remedy."""
    return StoreError(FIELD, problem, value=shown(location), remedy=remedy)


def known(location: Location | str, fault: str, error: object = "") -> StoreError:
    """Return the error for one of the known faults; `error` is the original one."""
    problem, remedy = _KNOWN[fault]
    where = " of the server" if isinstance(location, Address) else ""
    kind = ConnectionLostError if fault == "lost" else StoreError
    problem = problem.format(error=error, where=where)
    return kind(FIELD, problem, value=shown(location), remedy=remedy)


def missing(location: Location | str, *, interrupted: bool = False) -> NoStoreError:
    """Return the error for a store that is to be used but is not there, or not yet."""
    problem = "holds no relayd store yet" if isinstance(location, Address) else "does not exist"
    if interrupted:
        problem = "holds no relayd store yet: its creation was interrupted"
    remedy = "`relayd import` creates it; or name an existing database."
    return NoStoreError(FIELD, problem, value=shown(location), remedy=remedy)


def lapsed(role: str) -> StoreError:
    """Return the error for a step of a process whose lease ran out."""
    return StoreError(
        FIELD,
        f"could not be asked in time whether this process is still the only {role}",
        remedy="What it had begun was ended. It goes on when the database answers again; "
        "`relayd probe --resume` goes on with a campaign.",
    )


# ---- what the operating system, SQLite and PostgreSQL say ---------------------------------------


def of_file(path: Path | str, error: OSError | ValueError) -> StoreError:
    """Turn an error of the operating system about a path into one that says what to do."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EACCES, errno.EPERM):
        return known(path, "unreadable")
    if number == errno.EROFS:
        return known(path, "read-only")
    if number in (errno.ENOSPC, errno.EDQUOT):
        return failure(path, "can't be created: the disk is full", "Free some space.")
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return failure(path, f"can't be used: {said}", "Name the path of a file.")


# A file next to the database could not be made, or made larger.
_FOR_WANT_OF_SPACE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
_LEAST_FREE_BYTES = 65_536  # more than any one of these files is made larger by
_OF_SQLITE: dict[int, str] = {
    sqlite3.SQLITE_NOTADB: "foreign",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_CANTOPEN: "unopened",
    sqlite3.SQLITE_PERM: "unopened",
    sqlite3.SQLITE_IOERR: "unwritten",
    sqlite3.SQLITE_NOMEM: "memory",
}


def of_sqlite(path: Path | str, error: sqlite3.Error) -> StoreError:
    """Turn an error of SQLite (https://www.sqlite.org/rescode.html) into one that says what to do.

    The low byte of a code is the kind.
    """
    kind = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if kind in _FOR_WANT_OF_SPACE:
        with suppress(OSError):
            if disk_usage(os.path.dirname(os.path.realpath(path))).free < _LEAST_FREE_BYTES:
                kind = sqlite3.SQLITE_FULL
    return known(path, _OF_SQLITE.get(kind, "other"), error)


# By the beginning of https://www.postgresql.org/docs/15/errcodes-appendix.html; the first counts.
ENDED_SESSION = ("57P01", "57P02", "57P03", "57P05", "25P03", "08")
_OF_POSTGRESQL: dict[tuple[str, ...], str] = {
    ENDED_SESSION: "lost",
    ("55P03", "40P01", "40001", "55006"): "busy",
    ("57014",): "slow",
    ("53100",): "full",
    ("53",): "short",
    ("25006",): "secondary",
    ("42501",): "refused",
    ("XX", "58"): "trouble",
    ("42P01", "42703", "3F000"): "other",
}


def of_postgresql(address: Address, error: psycopg.Error, *, broken: bool) -> Exception:
    """Turn an error of the driver into one that says what to do.

    Broken constraints, wrong values and mistakes of our own are not the database's fault: they
    are returned as they are. `broken`: the connection is of no more use.
    """
    code = error.sqlstate or ""
    if broken:
        return known(address, "lost")
    for codes, fault in _OF_POSTGRESQL.items():
        if code.startswith(codes):
            return known(address, fault, reason(error))
    return error
