"""Leader locks: of several processes on one store, one leads in a role.

The lock ends with its holder, however the process ends, and another process can then acquire it. On
SQLite it is a lock of the kernel on a file beside the database, among the processes of one machine;
on PostgreSQL a lock of the holder's session, among all replicas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, Self, TypeAlias

Role: TypeAlias = Literal["prober", "campaign"]
"""``prober``: may use the fleet, as a watcher or for a campaign. ``campaign``: one is running."""


class LeaderLock(ABC):
    """One process's hold on a role; a context manager that releases it at its end."""

    @abstractmethod
    def acquire(self) -> bool:
        """Acquire the lock if it is free; return whether this process holds it now.

        Ask again before every piece of work of the role: a holder that has lost the server
        learns it here.

        Raises
        ------
        StoreError
            If that can't be found out; the lock is then not held.
        """

    @abstractmethod
    def release(self) -> None:
        """Release the lock, if it is held."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
