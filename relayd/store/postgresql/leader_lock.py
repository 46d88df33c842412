"""Leader locks on PostgreSQL: an advisory lock of a session that serves nothing else."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg

from relayd.store.database import Database
from relayd.store.leader_lock import LeaderLock, Role
from relayd.store.location import Address
from relayd.store.postgresql.connecting import Session, connect
from relayd.store.postgresql.failures import lost
from relayd.store.postgresql.locks import leader_lock_key

# Both ends give up a silent peer quickly: the server sets the lock of a vanished holder free
# after about 6 s, and by then a holder that asks has learnt that it is none any more. A process
# that is killed is noticed at once, because its system closes the connection.
_QUICK = {
    "connect_timeout": 3,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 5_000,
}
_QUICK_SERVER = """
SELECT set_config('tcp_keepalives_idle', '3', false),
    set_config('tcp_keepalives_interval', '1', false),
    set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '6s', false),
    set_config('statement_timeout', '3s', false)
"""
_HELD = """
SELECT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid()
    AND classid = CAST(%s AS bigint)::oid AND objid = CAST(%s AS bigint)::oid AND objsubid = 2
)
"""
_HELD_BY_ANY = """
SELECT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND classid = CAST(? AS bigint)::oid AND objid = CAST(? AS bigint)::oid
)
"""


def is_locked(database: Database, schema: int, role: Role) -> bool:
    """Return whether any session of the server holds the lock of a role."""
    return bool(database.row(_HELD_BY_ANY, _numbers(role, schema))[0])


def _numbers(role: Role, schema: int) -> tuple[int, ...]:
    """Return the lock as ``pg_locks`` shows it."""
    return tuple(number % 2**32 for number in leader_lock_key(role, schema))


class SessionLeaderLock(LeaderLock):
    """The server lifts the lock when the session ends, however it does."""

    def __init__(self, address: Address, role: Role) -> None:
        self._address = address
        self._role = role
        self._session: Session | None = None

    def acquire(self) -> bool:
        if self._session is not None:
            if self._answers(self._session):
                return True
            self.release()
        session = connect(self._address, read_only=False, **_QUICK)
        try:
            session.connection.execute(_QUICK_SERVER)
            lock = leader_lock_key(self._role, session.schema)
            row = session.connection.execute("SELECT pg_try_advisory_lock(%s, %s)", lock).fetchone()
        except psycopg.Error as error:
            session.connection.close()
            raise lost(self._address) from error
        if row is not None and row[0]:
            self._session = session
        else:
            session.connection.close()
        return self._session is not None

    def release(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(psycopg.Error):
                session.connection.close()

    def __del__(self) -> None:
        with suppress(Exception):
            self.release()

    def _answers(self, session: Session) -> bool:
        """Ask the server itself: a pooler in between may have given the session to others."""
        try:
            row: Any = session.connection.execute(
                _HELD, _numbers(self._role, session.schema)
            ).fetchone()
        except psycopg.Error:
            return False
        return bool(row[0])
