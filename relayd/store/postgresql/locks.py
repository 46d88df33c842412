"""Advisory locks: numbers that processes agree on.

A lock has two numbers of 32 bits: what it is for, and the schema of the store, so that two
stores in one database do not wait for each other.
"""

from __future__ import annotations

from zlib import crc32


def writer_lock(schema: int) -> tuple[int, int]:
    """Return the lock that a transaction which changes something holds."""
    return _lock("writer", schema)


def leader_lock_key(role: str, schema: int) -> tuple[int, int]:
    """Return the lock that the leader in a role holds."""
    return _lock(f"leader {role}", schema)


def _lock(purpose: str, schema: int) -> tuple[int, int]:
    return _signed(crc32(f"relayd {purpose}".encode())), _signed(schema)


def _signed(number: int) -> int:
    """Return a number below 2^32 as PostgreSQL's ``integer`` with the same bits."""
    return number - 2**32 if number >= 2**31 else number
