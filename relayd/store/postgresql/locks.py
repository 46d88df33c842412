"""Advisory locks: numbers that processes agree on.

A lock has two numbers of 32 bits: what it is for, and the schema of the store, so that two
stores in one database do not wait for each other.
"""

from __future__ import annotations

from zlib import crc32


def writer_lock(schema: int) -> tuple[int, int]:
    """Return the lock that a transaction which changes something holds."""
    return _lock("writer", schema)


STUCK_AFTER_S = 20
"""Silence of a writer's client inside a transaction after which others may end its session."""
END_STUCK_WRITERS = """
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 2
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid = CAST(%s AS bigint)::oid AND objid = CAST(%s AS bigint)::oid
AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - make_interval(secs => %s)
"""
"""A client that is stopped in the middle of COPY is subject to no timeout of the server's."""
# Nothing else locks rows of this table for sharing.
END_FENCED_WRITERS = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE relation = CAST('leases' AS regclass) AND mode = 'RowShareLock' AND granted
AND pid <> pg_backend_pid()
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def as_shown(lock: tuple[int, int]) -> tuple[int, ...]:
    """Return the numbers of a lock as ``pg_locks`` shows them."""
    return tuple(number % 2**32 for number in lock)


def _lock(purpose: str, schema: int) -> tuple[int, int]:
    return _signed(crc32(f"relayd {purpose}".encode())), _signed(schema)


def _signed(number: int) -> int:
    """Return a number below 2^32 as PostgreSQL's ``integer`` with the same bits."""
    return number - 2**32 if number >= 2**31 else number
