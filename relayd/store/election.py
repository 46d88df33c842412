"""Elections: of several processes on one store, one holds an office.

The office ends with its holder, however the process ends, and another that stands is elected. On
SQLite a lock of the kernel on a file beside the database does that, among the processes of one
machine; on PostgreSQL a lock of the holder's session, among all replicas.
"""

from __future__ import annotations

import fcntl
import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Literal, Self, TypeAlias

from relayd.store.opening import Store

Office: TypeAlias = Literal["prober", "campaign"]


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
    from relayd.store.postgresql.election import SessionElection

    return SessionElection(store.place, office)


class _FileElection(Election):
    """The kernel lifts the lock however the process ends.

    It is on a file beside the database, because closing any descriptor of the database itself
    drops SQLite's locks.
    """

    def __init__(self, database: Path, office: str) -> None:
        self._path = f"{database.resolve()}-{office}"
        self._lock: int | None = None

    def stand(self) -> bool:
        if self._lock is None:
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
        return self._lock is not None

    def resign(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
