"""Elections: of several processes on one store, one holds an office.

The office ends with its holder, however the process ends, and another that stands is elected. On
SQLite a lock of the kernel on a file beside the database does that, among the processes of one
machine; on PostgreSQL a lock of the holder's session, among all replicas.
"""

from __future__ import annotations

import fcntl
import os
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Literal, Self, TypeAlias

from relayd.store.opening import Store

Office: TypeAlias = Literal["prober", "campaign"]
"""``prober``: may use the fleet, as a watcher or for a campaign. ``campaign``: one is under way."""

_LOOKS = 5
_LOOK_AGAIN_S = 0.005


class Election(ABC):
    """One process's standing for an office; a context manager that resigns at its end."""

    @abstractmethod
    def stand(self) -> bool:
        """Take the office if it is free; return whether this process holds it now.

        Ask again before every piece of work of the office: a holder that has lost the server
        learns it here.

        Raises
        ------
        StoreError
            If that can't be found out; the office is then not held.
        """

    @abstractmethod
    def resign(self) -> None:
        """Give the office up, if it is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.resign()


def election(store: Store, office: Office) -> Election:
    """Return the standing of this process for an office of a store."""
    if isinstance(store.place, Path):
        return _FileElection(store.place, office)
    from relayd.store.postgresql.leader_lock import SessionElection

    return SessionElection(store.place, office)


def is_held(store: Store, office: Office) -> bool:
    """Return whether some process holds an office, without standing for it.

    Raises
    ------
    StoreError
        If that can't be found out.
    """
    if isinstance(store.place, Path):
        return _is_locked(_lock_path(store.place, office))
    from relayd.store.postgresql.leader_lock import is_held_by_a_session

    return is_held_by_a_session(store.database, office)


def _lock_path(database: Path, office: str) -> str:
    return f"{database.resolve()}-{office}"


def _is_locked(path: str) -> bool:
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False  # nobody ever held it, or nobody whose file we may see
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


class _FileElection(Election):
    """The kernel lifts the lock however the process ends.

    It is on a file beside the database, because closing any descriptor of the database itself
    drops SQLite's locks.
    """

    def __init__(self, database: Path, office: str) -> None:
        self._path = _lock_path(database, office)
        self._lock: int | None = None

    def stand(self) -> bool:
        for again in range(_LOOKS):
            if self._lock is not None:
                break
            if again:  # who only looks holds it for a moment, too
                time.sleep(_LOOK_AGAIN_S)
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

    def resign(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
