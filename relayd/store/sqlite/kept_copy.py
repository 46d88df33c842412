"""A copy of a SQLite store from before its schema is upgraded, kept beside the file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from planner.model.errors import StoreError
from relayd.store.failures import failure, of_file, translated

SUFFIX = "-before-upgrade"
LARGEST_BYTES = 10**9
"""Of a store that is copied by itself: a larger one takes minutes, and its room twice."""


def copy_before_upgrade(
    target: Path, named: Path, connect: Callable[[], sqlite3.Connection]
) -> None:
    """Copy the store, in place of the copy from the upgrade before; larger ones are not copied.

    For a writer who has changed nothing yet, so that no other does meanwhile.

    Parameters
    ----------
    target : Path
        The file itself.
    named : Path
        As the user spelled it.
    connect : callable
        Opens a connection for reading: a writing one can't be copied from.

    Raises
    ------
    StoreError
        If there is no room for it, or it can't be read; the last copy is as it was then.
    """
    kept = Path(f"{target}{SUFFIX}")
    part = Path(f"{kept}.part")
    try:
        if target.stat().st_size > LARGEST_BYTES:
            return
        part.unlink(missing_ok=True)  # of an upgrade that was killed
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with closing(connect()) as store, closing(sqlite3.connect(part)) as copy:
            store.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, with nothing beside it
        sync(part)
        part.replace(kept)
        sync(kept.parent)
    except (OSError, sqlite3.Error) as error:
        raise _not_copied(named, error) from error
    finally:
        discard(part)


def discard(part: Path) -> None:
    """Remove what is left of an unfinished copy."""
    for suffix in ("", "-journal", "-wal", "-shm"):  # SQLite leaves them on a full disk
        with suppress(OSError):
            part.with_name(part.name + suffix).unlink()


def sync(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _not_copied(named: Path, error: OSError | sqlite3.Error) -> StoreError:
    why = of_file(named, error) if isinstance(error, OSError) else translated(named, error)
    return failure(
        named,
        f"is of an older relayd, and can't be copied before its upgrade: it {why.problem}",
        "It was left as it is. Make room beside it, or do without a copy: `relayd store upgrade "
        "--no-copy`.",
    )
