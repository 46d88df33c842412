"""The store's statements on PostgreSQL.

Writers take turns, as on SQLite, by an advisory lock that every transaction holds to its end. So
the ids of samples and events become visible in ascending order: who has seen id ``n`` has seen
all before it. Without that, a reader that goes on "after ``n``" would miss what was numbered
earlier and committed later, and ``samples_through`` would not say what a snapshot rests on. The
server releases the lock after the commit is visible, and each statement sees what was committed
before it (READ COMMITTED), so the next writer sees it too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from itertools import count
from typing import Any
from zlib import crc32

import psycopg
from psycopg.pq import TransactionStatus

from planner.model.errors import StoreError
from relayd.store.database import Database, Values
from relayd.store.failures import ENDED_SESSION, failure, known, of_postgresql
from relayd.store.location import Address
from relayd.store.postgresql.connecting import (
    SINCE_CRASH,
    ServerConnection,
    SilentServerError,
    connect,
)

MARK = "relayd_store"
"""The table that keeps the version of the schema, and marks the tables next to it as ours."""
# Our mark, and what else is there. In one statement: between two, another process might have laid
# out a store, whose tables would then pass for another application's. What extensions put into a
# schema is no sign of one.
_WHAT_IS_THERE = f"""
WITH relations AS (
    SELECT relname FROM pg_class
    WHERE relnamespace = CAST(:schema AS oid) AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND NOT EXISTS (
        SELECT FROM pg_depend
        WHERE classid = CAST('pg_class' AS regclass) AND objid = pg_class.oid AND deptype = 'e'
    )
)
SELECT EXISTS (SELECT FROM relations WHERE relname = '{MARK}'),
    EXISTS (SELECT FROM relations WHERE relname = 'relayd_schema'),
    (SELECT min(CAST(relname AS text)) FROM relations)
"""  # noqa: S608
_WRITER = crc32(b"relayd writer")
"""First number of the lock of writers. The second is the schema, so that two stores in one database
do not wait for each other."""
STUCK_AFTER_S = 20
"""Silence of a writer's client inside a transaction after which others may end its session."""
# A client that is stopped in the middle of COPY is subject to no timeout of the server's.
_END_STUCK_WRITERS = """
SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND granted AND objsubid = 2
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND classid = CAST(%s AS bigint)::oid AND objid = CAST(%s AS bigint)::oid
AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - make_interval(secs => %s)
"""
# Nothing else locks rows of this table for sharing.
_END_FENCED_WRITERS = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE relation = CAST('leases' AS regclass) AND mode = 'RowShareLock' AND granted
AND pid <> pg_backend_pid()
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_ROWS_AT_ONCE = 5_000
_OUTCOME_TIMEOUT_S = 15.0
_OUTCOME_EVERY_S = 0.05


class PostgresqlDatabase(Database):
    """One connection to a server, replaced by another after it broke.

    A statement on a connection that broke raises StoreError; the next one connects again. Inside
    a transaction there is no next one: all of its statements raise until it is left.

    `busy_timeout_s` is how long to wait for another writer, `statement_timeout_s` how long a
    statement may take; an answer may take somewhat longer.
    """

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
        self.location: Address = address
        self._busy_timeout_s = busy_timeout_s
        self._read_only = read_only
        self._connect = partial(
            connect, address, read_only=read_only, statement_timeout_s=statement_timeout_s
        )
        self._connection: ServerConnection | None = self._connect()
        # On which a transaction is open, and the number that the server gave it.
        self._writing: ServerConnection | None = None
        self._transaction_id = ""
        self._streams = count(1)

    def close(self) -> None:
        connection, self._connection, self._writing = self._connection, None, None
        if connection is not None:
            connection.close()

    def __del__(self) -> None:
        # Who lets go of a library object need not close it; the driver would complain.
        with suppress(Exception):
            self.close()

    # ---- statements ----------------------------------------------------------------------------

    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        with self._cursor() as cursor:
            # Without values the driver takes several statements at once, and percent signs as they
            # are.
            cursor.execute(with_placeholders(sql) if values else sql, values or None)
            return cursor.fetchall() if cursor.description else []

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        # Outside of a transaction on a connection of its own, so that other statements can come
        # between rows, also through a pool that gives each transaction another session.
        with ExitStack() as held:
            connection, own = self._writing, None
            if connection is None:
                connection = own = held.enter_context(self._connect())
            held.enter_context(self._translated(connection))
            if own is not None:
                held.enter_context(own.transaction())
            cursor = held.enter_context(
                psycopg.ServerCursor(connection, f"stream_{next(self._streams)}")
            )
            cursor.itersize = _ROWS_AT_ONCE
            cursor.execute(with_placeholders(sql), values or None)
            yield from cursor

    def change_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        with self._one_transaction(), self._cursor() as cursor:
            cursor.executemany(with_placeholders(sql), rows)
            return cursor.rowcount

    def insert(self, table: str, rows: Sequence[Sequence[object]]) -> int:
        # COPY knows no ON CONFLICT, and is several times as fast as INSERT.
        incoming = f"pg_temp.incoming_{table}"
        with self._cursor() as cursor:
            cursor.execute(
                f"CREATE TEMPORARY TABLE IF NOT EXISTS incoming_{table} (LIKE {table}) "
                f"ON COMMIT DELETE ROWS; TRUNCATE {incoming}"
            )
            with cursor.copy(f"COPY {incoming} FROM STDIN") as copying:
                for row in rows:
                    copying.write_row(row)
            cursor.execute(f"INSERT INTO {table} SELECT * FROM {incoming} ON CONFLICT DO NOTHING")  # noqa: S608
            return cursor.rowcount

    # ---- transactions --------------------------------------------------------------------------

    @property
    def in_transaction(self) -> bool:
        return self._writing is not None

    def _begin(self) -> None:
        if self._writing is not None:
            raise RuntimeError("transactions do not nest")
        if self._read_only:
            remedy = "Open it for writing."
            raise failure(self.location, "is open for reading, which is read-only", remedy)
        connection = self._live()
        # One round trip. A timeout of 0 would be none at all.
        wait_ms = max(1, round(1000 * self._busy_timeout_s))
        role, schema = (  # as `integer` with the same bits
            number - 2**32 if number >= 2**31 else number for number in (_WRITER, connection.schema)
        )
        begin = (
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
            f"SET LOCAL lock_timeout = {wait_ms}; "
            f"SELECT pg_advisory_xact_lock({role}, {schema}), pg_current_xact_id()::text"
        )
        self._writing = connection
        try:
            with self._cursor() as cursor:
                cursor.execute(begin)
                while cursor.nextset():
                    pass
                (found,) = cursor.fetchall()
                self._transaction_id = found[1]
        except BaseException as error:
            self.roll_back()
            if isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                # Set the lock free, for the next attempt, if its holder's client is stopped.
                with suppress(psycopg.Error):
                    connection.execute(
                        _END_STUCK_WRITERS, (_WRITER, connection.schema, STUCK_AFTER_S)
                    )
            raise

    def roll_back(self) -> None:
        connection, self._writing = self._writing, None
        if connection is not None and not connection.closed:
            try:
                connection.execute("ROLLBACK")
            except psycopg.Error:
                connection.close()

    def end_fenced_writers(self) -> None:
        self.rows(_END_FENCED_WRITERS)

    def _commit(self) -> None:
        connection = self._live()
        if connection.info.transaction_status == TransactionStatus.INERROR:
            # COMMIT would roll back without a word.
            problem = "has refused a part of this change, so none of it was stored"
            raise failure(self.location, problem, "Run this again.")
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if _leaves_doubt(error):
                connection.close()
            if not connection.closed:
                raise of_postgresql(self.location, error, broken=False) from error
            self._writing = None
            if not self._was_committed(self._transaction_id, connection.since_crash):
                raise known(self.location, "lost") from error
        self._writing = None

    def _was_committed(self, transaction_id: str, since_crash: str) -> bool:
        """Return whether a transaction was committed whose confirmation was lost.

        After a crash, a server reuses transaction numbers not written to disk yet. It writes
        down those of committed transactions, so if the number is uncommitted, ours was not
        committed either; but a committed one may be another client's.
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
        raise failure(
            self.location,
            "broke off while it confirmed a change, and could not be asked since what became of it",
            "The change was stored whole or not at all. Run this again when the server is back: a "
            "sample that is there already is not stored twice.",
        )

    # ---- the schema ----------------------------------------------------------------------------

    def _version(self) -> int:
        is_marked, is_older, relation = self.row(_WHAT_IS_THERE, {"schema": self._live().schema})
        if is_marked:
            return int(self.row(f"SELECT version FROM {MARK}")[0])  # noqa: S608
        if is_older:
            raise known(self.location, "older")
        if relation is not None:
            raise failure(
                self.location,
                f"holds something else than relayd's data, such as {relation!r}",
                "It was left as it is. Name an empty database, or a schema of its own in this one: "
                "?options=-c%20search_path%3Drelayd.",
            )
        return 0

    def _mark(self, version: int) -> None:
        self.rows(f"CREATE TABLE IF NOT EXISTS {MARK} (version INTEGER NOT NULL)")
        self.rows(f"DELETE FROM {MARK}")  # noqa: S608
        self.rows(f"INSERT INTO {MARK} VALUES (?)", (version,))  # noqa: S608

    def _define(self, sql: str) -> None:
        self.rows(definition(sql))

    # ---- the connection ------------------------------------------------------------------------

    def _live(self) -> ServerConnection:
        """Return a connection that is not known to be broken."""
        if self._writing is not None:
            if self._writing.closed:
                raise known(self.location, "lost")
            return self._writing
        if self._connection is None:
            raise failure(self.location, "is closed", "Open it again.")
        if self._connection.closed:
            self._connection = self._connect()
        return self._connection

    @contextmanager
    def _cursor(self) -> Iterator[psycopg.Cursor[Any]]:
        connection = self._live()
        with self._translated(connection), connection.cursor() as cursor:
            yield cursor

    @contextmanager
    def _translated(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        try:
            yield
        except SilentServerError as error:
            remedy = (
                "Look whether the server hangs or is overloaded. Nothing was stored in part. Run "
                "this again: the next attempt makes a new connection."
            )
            raise failure(self.location, f"has stopped answering ({error})", remedy) from error
        except psycopg.Error as error:
            if _leaves_doubt(error):
                # The server has ended the session, though a proxy may keep it open, or the driver
                # has lost track of what was answered.
                connection.close()
            found = of_postgresql(self.location, error, broken=connection.closed)
            if found is error:
                raise
            raise found from error


def _leaves_doubt(error: psycopg.Error) -> bool:
    """Tell whether a connection may be unusable after an error.

    What SQL itself refuses has an SQLSTATE and leaves the connection in order, unless its class
    says that the session ended; a value that the driver refuses never reached the server.
    """
    if error.sqlstate is None:
        return not isinstance(error, psycopg.DataError)
    return error.sqlstate.startswith(ENDED_SESSION)


# ---- the store's SQL, which is written for SQLite, as PostgreSQL understands it ------------------

# Texts, type casts and comments are left alone; the driver wants percent signs doubled.
_PLACEHOLDER = re.compile(r"'(?:[^']|'')*'|--[^\n]*|::|\?|:([A-Za-z_]\w*)|%")

_DATE = "to_char(to_timestamp(\\1) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"
_SCHEMA = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"--[^\n]*", ""),
        (r"\bINTEGER PRIMARY KEY", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
        (r"\bINTEGER\b", "BIGINT"),
        (r"\bREAL\b", "DOUBLE PRECISION"),
        (r"\bBLOB\b", "BYTEA"),
        (r"\bTEXT\b", 'TEXT COLLATE "C"'),  # texts in the order of their bytes, as on SQLite
        (r"\) STRICT(, WITHOUT ROWID)?;", ");"),
        (r"lower\(hex\(randomblob\(16\)\)\)", "replace(CAST(gen_random_uuid() AS text), '-', '')"),
        # Beyond these years there is no date to write, on SQLite either.
        (
            r"datetime\(([\w.]+), 'unixepoch'\)",
            f"CASE WHEN \\1 BETWEEN -62167219200 AND 253402300799 THEN {_DATE} END",
        ),
    )
]
_TRIGGER = re.compile(
    r"\s*CREATE TRIGGER (?P<name>\w+) BEFORE (?P<event>\w+) ON (?P<table>\w+)"
    r"(?:\s+WHEN (?P<condition>.*?))?\s+"
    r"BEGIN SELECT RAISE\(ABORT, '(?P<message>[^']*)'\); END;\s*",
    re.DOTALL,
)


@lru_cache(maxsize=512)
def with_placeholders(sql: str) -> str:
    """Return a statement with ``?`` as ``%s`` and ``:name`` as ``%(name)s``."""
    return _PLACEHOLDER.sub(_placeholder, sql)


def _placeholder(match: re.Match[str]) -> str:
    found = match[0]
    if found == "?":
        return "%s"
    if match[1]:
        return f"%({match[1]})s"
    return found.replace("%", "%%")


def definition(sql: str) -> str:
    """Return a statement of a script, which defines a table, a view, an index or a trigger."""
    for pattern, replacement in _SCHEMA:
        sql = pattern.sub(replacement, sql)
    found = _TRIGGER.fullmatch(sql)
    return _trigger(**found.groupdict()) if found else sql


def _trigger(name: str, event: str, table: str, condition: str | None, message: str) -> str:
    # TRUNCATE passes the triggers of rows by, so where rows stay it has one of its own.
    row = "OLD" if event == "DELETE" else "NEW"
    allowed = (
        f"IF TG_OP <> 'TRUNCATE' THEN IF ({condition}) IS NOT TRUE THEN RETURN {row}; "
        "END IF; END IF;"
        if condition
        else ""
    )
    refusal = f"RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'"
    sql = (
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        f"BEGIN {allowed} {refusal}; END $$;\n"
        f"CREATE TRIGGER {name} BEFORE {event} ON {table} "
        f"FOR EACH ROW EXECUTE FUNCTION {name}();\n"
    )
    if event == "DELETE":
        sql += f"CREATE TRIGGER {name}_whole BEFORE TRUNCATE ON {table} EXECUTE FUNCTION {name}();"
    return sql
