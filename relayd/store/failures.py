"""Failures of the database and its file, turned into errors that say what to do."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from planner.model.errors import StoreError
from relayd.store.location import Address, Location, shown

FIELD = "--db"
FREE_SPACE = "Free some space and run this again. What it was storing was not; all from before is."


class NoStoreError(StoreError):
    """No store exists yet at a location where one could be created."""


def reason(error: BaseException) -> str:
    """Return the first line of what a database or its driver said."""
    return (str(error).strip() or type(error).__name__).partition("\n")[0].rstrip(".")


def failure(location: Location | str, problem: str, remedy: str) -> StoreError:
    """Return the error for a database: the option at fault, the location and the remedy."""
    return StoreError(FIELD, problem, value=shown(location), remedy=remedy)


def foreign(path: Path | str) -> StoreError:
    """Return the error for a file that holds something else than our data."""
    return failure(
        path,
        "is not a relayd database",
        "It was left as it is. Name another path; `relayd import` creates a database there.",
    )


def missing(location: Location | str) -> NoStoreError:
    """Return the error for a store that is to be used but is not there."""
    problem = "holds no relayd store yet" if isinstance(location, Address) else "does not exist"
    return NoStoreError(
        FIELD,
        problem,
        value=shown(location),
        remedy="`relayd import` creates it; or name an existing database.",
    )


def busy(location: Location | str) -> StoreError:
    """Return the error for a change that another writer has kept waiting."""
    return failure(
        location,
        "is being written by another process",
        "Wait until that import or campaign has finished, and run this again.",
    )


def lapsed(role: str) -> StoreError:
    """Return the error for a step of a process whose lease ran out."""
    return StoreError(
        "--db",
        f"could not be asked in time whether this process is still the only {role}",
        remedy="What it had begun was ended. It goes on when the database answers again; "
        "`relayd probe --resume` goes on with a campaign.",
    )


def superseded(location: Location | str) -> StoreError:
    """Return the error for a change by a process whose role another has taken over."""
    return failure(
        location,
        "is being measured for by another process, which took over while this one hung",
        "Nothing was stored. `relayd probe --resume` goes on when it has finished.",
    )


def opened_for_reading(location: Location | str) -> StoreError:
    """Return the error for a change through a store that was opened for reading."""
    return failure(location, "is open for reading, which is read-only", "Open it for writing.")


def outdated(location: Location | str, found: int, known: int) -> StoreError:
    """Return the error for reading an older schema, which only a writer brings up to date."""
    if found == 0:
        return NoStoreError(
            FIELD,
            "holds no relayd store yet: its creation was interrupted",
            value=shown(location),
            remedy="`relayd import` goes on with it; or name an existing database.",
        )
    return failure(
        location,
        f"has schema {found} of an older relayd (this one reads {known})",
        "Any command that stores something brings it up to date and keeps all that it holds.",
    )


def older_build(location: Location | str) -> StoreError:
    """Return the error for a store from before the first schema that was released."""
    return failure(
        location,
        "was written by a build of relayd from before version 1 of the schema",
        "It was left as it is. Run `relayd export samples -o FOLDER` with that build, then "
        "`relayd import parquet FOLDER` into a new store with this one.",
    )


def read_only(path: Path | str) -> StoreError:
    """Return the error for a write to a file or folder that may only be read."""
    return failure(
        path,
        "can't be written: the file, its folder or the file system is read-only for this user",
        "Make both writable, or name a database elsewhere.",
    )


def unreadable(path: Path | str) -> StoreError:
    """Return the error for a file that this user may not read."""
    return failure(
        path,
        "can't be opened: this user lacks the permission",
        "Run as the owner, change the permissions of the file and its folders, or name another.",
    )


# A file beside the database could not be made, or made larger.
_FOR_WANT_OF_SPACE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
_LEAST_FREE_BYTES = 65_536  # more than any one of these files is made larger by


def _is_full(path: Path | str) -> bool:
    try:
        found = os.statvfs(os.path.dirname(os.path.realpath(path)))
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < _LEAST_FREE_BYTES


def translated(path: Path | str, error: sqlite3.Error) -> StoreError:
    """Turn an error of SQLite about a database file into one that says what to do.

    The codes are those of https://www.sqlite.org/rescode.html; the low byte is the kind.
    """
    code = getattr(error, "sqlite_errorcode", None)
    kind = sqlite3.SQLITE_ERROR if code is None else code & 0xFF
    if kind == sqlite3.SQLITE_NOTADB:
        return foreign(path)
    if kind == sqlite3.SQLITE_READONLY:
        return read_only(path)
    if kind in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return busy(path)
    if kind == sqlite3.SQLITE_FULL or (kind in _FOR_WANT_OF_SPACE and _is_full(path)):
        return failure(path, "can't grow: the disk is full", FREE_SPACE)
    if kind in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return failure(
            path,
            "can't be opened",
            "Check that this user may read and write the file and create files in its folder.",
        )
    if kind == sqlite3.SQLITE_IOERR:
        return failure(
            path,
            f"can't be read or written: {error}",
            "Check the disk (full, failing or unmounted?); a network file system won't do.",
        )
    if kind == sqlite3.SQLITE_NOMEM:
        return failure(path, "needs more memory than there is", "Free some and run this again.")
    if kind == sqlite3.SQLITE_CORRUPT:
        return damaged(path, str(error))
    return failure(
        path,
        f"does not hold what a relayd database should: {error}",
        "Restore it from a backup, or name another database; it was left as it is.",
    )


def damaged(path: Path | str, how: str) -> StoreError:
    """Return the error for a database of ours whose content is broken."""
    return failure(
        path,
        f"is damaged: {how}",
        "It was left as it is. Restore a backup, or save what can be read with "
        "`sqlite3 FILE .recover`, or name another database and import the files again.",
    )


def of_file(path: Path | str, error: OSError | ValueError) -> StoreError:
    """Turn an error of the operating system about a path into one that says what to do."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EACCES, errno.EPERM):
        return unreadable(path)
    if number == errno.EROFS:
        return read_only(path)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return failure(path, "can't be created: the disk is full", "Free some space.")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return failure(path, f"can't be used: {reason}", "Name the path of a file.")
