"""A folder for files that the processes of one service share, which goes with the service."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "relayd-serve-"


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Make a folder that only this user may enter, and remove it at the end.

    A service holds a lock on its folder (``flock``), and so do processes that are forked off: a
    folder without one is of a service that was killed, and goes with the next start.
    """
    _remove_left_over()
    folder, lock = _locked_folder()
    made_by = os.getpid()
    try:
        yield folder
    finally:
        os.close(lock)
        if os.getpid() == made_by:  # not in a process that was forked off
            shutil.rmtree(folder, ignore_errors=True)


def _locked_folder() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # A service that starts just now may take it for one that was left over.
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove_left_over() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # of another user, or in use
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(lock).st_uid == os.getuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
