"""The store's statements on PostgreSQL.

Writers take turns, as on SQLite, by an advisory lock that every transaction holds to its end. So
the ids of samples and events become visible in ascending order: who has seen id ``n`` has seen
all before it. Without that, a reader that goes on "after ``n``" would miss what was numbered
earlier and committed later, and ``samples_through`` would not say what a snapshot rests on. The
server releases the lock after the commit is visible, and each statement sees what was committed
before it (READ COMMITTED), so the next writer sees it too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import count
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from planner.model.errors import StoreError
from relayd.store.database import Database, Values
from relayd.store.failures import failure, older_build, opened_for_reading
from relayd.store.location import Address
from relayd.store.postgresql.connecting import SINCE_CRASH, Session, connect
from relayd.store.postgresql.dialect import definition, with_placeholders
from relayd.store.postgresql.failures import abandoned, lost, translated, unknown
from relayd.store.postgresql.locks import (
    END_FENCED_WRITERS,
    END_STUCK_WRITERS,
    STUCK_AFTER_S,
    as_shown,
    writer_lock,
)

MARK = "relayd_store"
"""The table that keeps the version of the schema, and marks the tables beside it as ours."""
_MARK_OF_OLDER_BUILDS = "relayd_schema"
# Our mark, and what else is there. In one statement: between two, another process might have laid
# out a store, whose tables would then pass for another application's. What extensions put into a
# schema is no sign of one.
_WHAT_IS_THERE = """
WITH relations AS (
    SELECT relname FROM pg_class
    WHERE relnamespace = CAST(:schema AS oid) AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND NOT EXISTS (
        SELECT FROM pg_depend
        WHERE classid = CAST('pg_class' AS regclass) AND objid = pg_class.oid AND deptype = 'e'
    )
)
SELECT EXISTS (SELECT FROM relations WHERE relname = :mark),
    EXISTS (SELECT FROM relations WHERE relname = :older),
    (SELECT min(CAST(relname AS text)) FROM relations)
"""
_ROWS_AT_ONCE = 5_000
_OUTCOME_TIMEOUT_S = 15.0
_OUTCOME_EVERY_S = 0.05
_UPGRADE_TIMEOUT_S = 600.0
"""How long an upgrade waits for other writers."""
_UPGRADE_STATEMENT_S = 3600.0


class PostgresqlDatabase(Database):
    """One connection to a server, made anew after it broke.

    A statement on a connection that broke raises StoreError; the next one connects again. Inside
    a transaction there is no next one: all of its statements raise until it is left.

    Parameters
    ----------
    address : Address
    busy_timeout_s : float
        How long to wait for another writer.
    read_only : bool
        Refuse changes.
    statement_timeout_s : float
        How long a statement may take, and somewhat later an answer.
    """

    engine = "postgresql"
    clock_sql = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
    _fence_lock = " FOR KEY SHARE"
    refusals = (psycopg.IntegrityError, psycopg.DataError, OverflowError, TypeError, UnicodeError)

    def __init__(
        self,
        address: Address,
        *,
        busy_timeout_s: float,
        read_only: bool,
        statement_timeout_s: float,
    ) -> None:
        self.address = address
        self._busy_timeout_s = busy_timeout_s
        self._read_only = read_only
        self._statement_timeout_s = statement_timeout_s
        self._session: Session | None = self._connect()
        # On which a transaction is open, and the number that the server gave it.
        self._writing: Session | None = None
        self._transaction_id = ""
        self._streams = count(1)

    @property
    def location(self) -> Address:
        return self.address

    @property
    def schema(self) -> int:
        """The server's number of the schema that holds the tables."""
        return self._live().schema

    def close(self) -> None:
        session, self._session, self._writing = self._session, None, None
        if session is not None:
            session.connection.close()

    def __del__(self) -> None:
        # Who lets go of a library object need not close it; the driver would complain.
        with suppress(Exception):
            self.close()

    # ---- statements ----------------------------------------------------------------------------

    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        connection = self._live().connection
        with self._translated(connection):
            cursor = _execute(connection, sql, values)
            return cursor.fetchall() if cursor.description else []

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        # Held by the server, so that other statements and transactions can come between rows.
        connection = self._live().connection
        held = self._writing is None
        name = f"stream_{next(self._streams)}"
        with (
            self._translated(connection),
            psycopg.ServerCursor(connection, name, withhold=held) as cursor,
        ):
            cursor.itersize = _ROWS_AT_ONCE
            cursor.execute(with_placeholders(sql), values or None)
            yield from cursor

    def change(self, sql: str, values: Values = ()) -> int:
        with self._in_transaction():
            rows = self.rows(sql, values)
        return rows[0][0] if rows else 0

    def change_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        with self._in_transaction():
            connection = self._live().connection
            with self._translated(connection), connection.cursor() as cursor:
                cursor.executemany(with_placeholders(sql), rows)
                return cursor.rowcount

    def insert(
        self, table: str, rows: Sequence[Sequence[object]], *, skip_known: bool = False
    ) -> int:
        if not rows:
            return 0
        connection = self._live().connection
        with self._translated(connection), connection.cursor() as cursor:
            if not skip_known:
                _copy(cursor, table, rows)
                return len(rows)
            # COPY knows no ON CONFLICT, and is several times as fast as INSERT.
            incoming = f"pg_temp.incoming_{table}"
            _execute(
                connection,
                f"CREATE TEMPORARY TABLE IF NOT EXISTS incoming_{table} (LIKE {table}) "
                f"ON COMMIT DELETE ROWS; TRUNCATE {incoming}",
            )
            _copy(cursor, incoming, rows)
            _execute_on(
                cursor,
                f"INSERT INTO {table} SELECT * FROM {incoming} ON CONFLICT DO NOTHING",  # noqa: S608
            )
            return cursor.rowcount

    # ---- transactions --------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._transaction_of(self._busy_timeout_s):
            yield

    def schema_version(self) -> int:
        schema = self.schema
        is_marked, is_older, relation = self.row(
            _WHAT_IS_THERE, {"schema": schema, "mark": MARK, "older": _MARK_OF_OLDER_BUILDS}
        )
        if is_marked:
            (found,) = self.row(f"SELECT version FROM {MARK}")  # noqa: S608
            return int(found)
        if is_older:
            raise older_build(self.address)
        if relation is not None:
            raise failure(
                self.address,
                f"holds something else than relayd's data, such as {relation!r}",
                "It was left as it is. Name an empty database, or a schema of its own in this one: "
                "?options=-c%20search_path%3Drelayd.",
            )
        return 0

    def set_schema_version(self, version: int) -> None:
        self.rows(f"CREATE TABLE IF NOT EXISTS {MARK} (version INTEGER NOT NULL)")
        self.rows(f"DELETE FROM {MARK}")  # noqa: S608
        self.rows(f"INSERT INTO {MARK} VALUES (?)", (version,))  # noqa: S608

    def define(self, sql: str) -> None:
        self.rows(definition(sql))

    @contextmanager
    def rebuilding(self) -> Iterator[None]:
        with self._transaction_of(_UPGRADE_TIMEOUT_S):
            self.rows(f"SET LOCAL statement_timeout = '{_UPGRADE_STATEMENT_S:.0f}s'")
            with self._live().connection.waiting(_UPGRADE_STATEMENT_S):
                yield

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self.rows("SAVEPOINT attempt")
        try:
            yield
        except BaseException:
            with suppress(StoreError, psycopg.Error):
                self.rows("ROLLBACK TO SAVEPOINT attempt; RELEASE SAVEPOINT attempt")
            raise
        self.rows("RELEASE SAVEPOINT attempt")

    def roll_back(self) -> None:
        session, self._writing = self._writing, None
        if session is not None and not session.connection.closed:
            with suppress(psycopg.Error):
                session.connection.execute("ROLLBACK")

    def end_fenced_writers(self) -> None:
        self.rows(END_FENCED_WRITERS)

    def expecting_many(self) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def _transaction_of(self, timeout_s: float) -> Iterator[None]:
        if self._writing is not None:
            raise RuntimeError("transactions do not nest")
        self._begin(timeout_s)
        try:
            self._check_fence()
            yield
            self._commit()
        except BaseException:
            self.roll_back()
            raise

    def _in_transaction(self) -> AbstractContextManager[None]:
        """Make a lone statement a transaction, so that it takes its turn among the writers."""
        return nullcontext() if self._writing is not None else self.transaction()

    def _begin(self, timeout_s: float) -> None:
        if self._read_only:
            raise opened_for_reading(self.location)
        session = self._live()
        first, second = writer_lock(session.schema)
        # One round trip. A timeout of 0 would be none at all.
        begin = (
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
            f"SET LOCAL lock_timeout = {max(1, round(1000 * timeout_s))}; "
            f"SELECT pg_advisory_xact_lock({first}, {second}), pg_current_xact_id()::text"
        )
        self._writing = session
        try:
            with self._translated(session.connection):
                cursor = _execute(session.connection, begin)
                while cursor.nextset():
                    pass
                (found,) = cursor.fetchall()
                self._transaction_id = found[1]
        except BaseException as error:
            self.roll_back()
            if isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                self._end_stuck_writers(session)
            raise

    def _end_stuck_writers(self, session: Session) -> None:
        """Set the writers' lock free, for the next attempt, if its holder's client is stopped."""
        lock = as_shown(writer_lock(session.schema))
        with suppress(psycopg.Error):
            session.connection.execute(END_STUCK_WRITERS, (*lock, STUCK_AFTER_S))

    def _commit(self) -> None:
        if self._writing is None:
            return  # rolled back on purpose
        session = self._writing
        connection = session.connection
        if connection.info.transaction_status == TransactionStatus.INERROR:
            raise abandoned(self.address)  # COMMIT would roll back without a word
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if not connection.closed:
                raise translated(self.address, error, broken=False) from error
            self._writing = None
            if not self._was_committed(self._transaction_id, session.since_crash):
                raise lost(self.address) from error
        self._writing = None

    def _was_committed(self, transaction_id: str, since_crash: str) -> bool:
        """Ask what became of a transaction whose confirmation was lost with the connection.

        A server that crashed gives numbers that it had not written down yet to others afterwards.
        One of ours that was committed was written down, so one that is not committed is ours or
        did as little; but one that is committed may be somebody else's.
        """
        deadline_s = time.monotonic() + _OUTCOME_TIMEOUT_S
        while time.monotonic() < deadline_s:
            try:
                outcome, crash = self.row(
                    f"SELECT pg_xact_status(CAST(? AS xid8)), ({SINCE_CRASH})", (transaction_id,)
                )
            except StoreError:
                outcome, crash = "in progress", ""  # or the server is not back yet
            except psycopg.Error:
                break  # another server, which has not heard of it
            if outcome == "aborted":
                return False
            if outcome == "committed":
                if since_crash and crash == since_crash:
                    return True
                break
            time.sleep(_OUTCOME_EVERY_S)
        raise unknown(self.address)

    # ---- the connection ------------------------------------------------------------------------

    def _live(self) -> Session:
        """Return a connection that is not known to be broken."""
        if self._writing is not None:
            if self._writing.connection.closed:
                raise lost(self.address)
            return self._writing
        if self._session is None:
            raise failure(self.address, "is closed", "Open it again.")
        if self._session.connection.closed:
            self._session = self._connect()
        return self._session

    def _connect(self) -> Session:
        return connect(
            self.address, read_only=self._read_only, statement_timeout_s=self._statement_timeout_s
        )

    @contextmanager
    def _translated(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            broken = connection.closed
            found = translated(self.address, error, broken=broken)
            if found is error:
                raise
            raise found from error


def _execute(
    connection: psycopg.Connection[Any], sql: str, values: Values = ()
) -> psycopg.Cursor[Any]:
    return _execute_on(connection.cursor(), sql, values)


def _execute_on(cursor: psycopg.Cursor[Any], sql: str, values: Values = ()) -> psycopg.Cursor[Any]:
    # Without values the driver takes several statements at once, and percent signs as they are.
    if not values:
        return cursor.execute(sql)
    return cursor.execute(with_placeholders(sql), values)


def _copy(cursor: psycopg.Cursor[Any], table: str, rows: Sequence[Sequence[object]]) -> None:
    with cursor.copy(f"COPY {table} FROM STDIN") as copying:
        for row in rows:
            copying.write_row(row)
