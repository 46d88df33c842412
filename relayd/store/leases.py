"""Leases: of several processes on one store, one leads in a role, and for a short time only.

A lease is a row: who holds it, until when by the database's clock, and a number that grows with
each holder. The holder renews it at a third of its time, in a thread and on a connection of its
own. A holder that can't renew it, because the process, the database or the network hangs, stops by
its own clock before the lease runs out, and another process then acquires it.

A holder that hangs does not notice that. So every transaction of the role checks the number
(:attr:`relayd.store.database.Database.fence`), and nothing is begun on a host without a look at
the clock (:meth:`Lease.check`); what runs on hosts ends within the rest of the lease after its
controller's last heartbeat (:mod:`probes.fleet.session`).

Numbers that grow are the fencing tokens of M. Kleppmann, How to do distributed locking (2016).
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from math import inf
from typing import Literal, Self, TypeAlias

from planner.model.errors import StoreError
from relayd.store.database import Database, Fence
from relayd.store.failures import lapsed

Role: TypeAlias = Literal["prober", "campaign"]
"""``prober``: may use the fleet, as a watcher or for a campaign. ``campaign``: one is running."""

LEASE_S = 10.0
RENEW_EVERY_S = LEASE_S / 3
HELD_S = 7.0
"""Time after asking for a renewal for which the holder relies on it: running work can still end."""
RETRY_S = 0.5
CHECK_EVERY_S = 0.25
DATABASE_TIMEOUT_S = 1.0
"""For a statement, and for another writer; no answer is awaited for more than twice this."""

# A lease that was released has no holder. Of candidates that come together one finds it free.
_ACQUIRE = """
INSERT INTO leases (role, number, holder, expires_at_s) VALUES (?, 1, ?, {now} + ?)
ON CONFLICT (role) DO UPDATE SET number = leases.number + 1, holder = excluded.holder,
    expires_at_s = excluded.expires_at_s
WHERE leases.expires_at_s <= {now} OR ? = 1
RETURNING number
"""
_RENEW = "UPDATE leases SET expires_at_s = {now} + ? WHERE role = ? AND number = ? RETURNING number"
_RELEASE = "UPDATE leases SET expires_at_s = 0, holder = '' WHERE role = ? AND number = ?"
_HELD = "SELECT holder, expires_at_s FROM leases WHERE role = ? AND expires_at_s > {now}"


def clock_s() -> float:
    """Seconds of a clock that no one sets and that goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def is_held(database: Database, role: Role) -> bool:
    """Return whether some process holds a lease."""
    return _holder(database, role) is not None


class Lease:
    """One process's lease of a role; a context manager that releases it at its end.

    `open_database` makes a connection that gives up soon: the lease has its own.
    """

    def __init__(self, open_database: Callable[[], Database], role: Role) -> None:
        self._open_database = open_database
        self._role: Role = role
        self._holding: _Holding | None = None

    @property
    def is_held(self) -> bool:
        """Whether this process surely holds the lease; the database is not asked."""
        return self._holding is not None and self._holding.is_held

    @property
    def fence(self) -> Fence:
        """The fence that transactions of the role check, once the lease is acquired."""
        assert self._holding is not None
        return self._holding.fence

    def check(self) -> None:
        """Raise StoreError unless this process holds the lease.

        Call it before each step that others must not take.
        """
        if not self.is_held:
            raise lapsed(self._role)

    def acquire(self, *, even_if_held: bool = False) -> bool:
        """Acquire the lease if it is free, or `even_if_held` from its holder.

        Returns whether this process holds it now; raises StoreError if that can't be found out.
        """
        if self.is_held:
            return True
        self._stop_renewing()
        with closing(self._open_database()) as database:
            # Read first: a candidate that waits must not keep a file's writers waiting.
            if not even_if_held:
                if _holder(database, self._role):
                    return False
                database.end_fenced_writers()
            asked_s = clock_s()
            row = database.row(  # alone: no turn among the writers is waited for
                _ACQUIRE.format(now=database.clock_sql),
                (self._role, f"{platform.node()} {os.getpid()}", LEASE_S, int(even_if_held)),
            )
        if row is not None:
            self._holding = _Holding(self._open_database, (self._role, int(row[0])), asked_s)
        return row is not None

    def acquire_unless_renewed(self) -> bool:
        """Acquire the lease, waiting for that of a process that was killed to run out."""
        until_s = clock_s() + LEASE_S + 1
        seen = set()
        while not self.acquire():
            with closing(self._open_database()) as database:
                seen.add(_holder(database, self._role))
            if len(seen - {None}) > 1 or clock_s() > until_s:
                return False
            time.sleep(CHECK_EVERY_S)
        return True

    def release(self) -> None:
        """Release the lease, if it is held."""
        if (holding := self._stop_renewing()) is not None:
            holding.join(LEASE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _stop_renewing(self) -> _Holding | None:
        holding, self._holding = self._holding, None
        if holding is not None:
            holding.end()
        return holding


def _holder(database: Database, role: Role) -> tuple[str, float] | None:
    """Return the holder of a lease and its end by the database's clock; None if it is free."""
    row = database.row(_HELD.format(now=database.clock_sql), (role,))
    return None if row is None else (row[0], row[1])


class _Holding(threading.Thread):
    """The thread that renews a lease that was acquired."""

    def __init__(self, open_database: Callable[[], Database], fence: Fence, asked_s: float) -> None:
        super().__init__(name=f"lease {fence[0]}", daemon=True)
        self.fence = fence
        self._open_database = open_database
        self._until_s = asked_s + HELD_S
        self._is_released = False
        self._ending = threading.Event()
        self.start()

    @property
    def is_held(self) -> bool:
        return clock_s() < self._until_s

    def end(self) -> None:
        self._is_released = self.is_held
        self._until_s = -inf
        self._ending.set()

    def run(self) -> None:
        database: Database | None = None
        wait_s = RENEW_EVERY_S
        while not self._ending.wait(wait_s):
            asked_s, wait_s = clock_s(), RETRY_S
            try:
                database = database or self._open_database()
                row = database.row(_RENEW.format(now=database.clock_sql), (LEASE_S, *self.fence))
            except StoreError:
                if database is not None:
                    database.close()
                database = None
                if self.is_held:
                    continue
                break
            if row is None or not self.is_held:  # another process has it, or may soon
                self._until_s = -inf
                break
            if not self._ending.is_set():
                self._until_s, wait_s = asked_s + HELD_S, RENEW_EVERY_S
        # Once it has run out it stays so: its holder is cleaning up, which can take long, and is
        # no reason to keep others waiting. Not released then: what is on hosts has time to end.
        with suppress(StoreError):  # else it runs out by itself
            if self._is_released:
                database = database or self._open_database()
                database.rows(_RELEASE, self.fence)
        if database is not None:
            database.close()
