"""Leader locks on SQLite: a lock of the kernel on a file beside the database.

It is on a file of its own, because closing any descriptor of the database itself drops SQLite's
locks.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from relayd.store.leader_lock import LeaderLock, Role

_ATTEMPTS = 5
_RETRY_S = 0.005


class FileLeaderLock(LeaderLock):
    """The kernel releases it however the process ends."""

    def __init__(self, database: Path, role: Role) -> None:
        self._path = _lock_path(database, role)
        self._lock: int | None = None

    def acquire(self) -> bool:
        for attempt in range(_ATTEMPTS):
            if self._lock is not None:
                break
            if attempt:  # who only checks the lock holds it for a moment, too
                time.sleep(_RETRY_S)
            self._take()
        return self._lock is not None

    def _take(self) -> None:
        lock = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        except BaseException:
            os.close(lock)
            raise
        else:
            self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def is_locked(database: Path, role: Role) -> bool:
    """Return whether some process holds the lock of a role."""
    try:
        lock = os.open(_lock_path(database, role), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False  # nobody ever held it, or nobody whose file we may see
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _lock_path(database: Path, role: Role) -> str:
    return f"{database.resolve()}-{role}"
