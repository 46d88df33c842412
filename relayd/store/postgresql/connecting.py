"""Connections to a PostgreSQL server: safe settings, unless the address says otherwise."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import FloatDumper, IntDumper

from planner.model.errors import StoreError
from relayd.store.failures import failure, reason
from relayd.store.location import Address

OLDEST_SERVER = 13
"""The first that can tell what became of a transaction by ``pg_xact_status(xid8)``'s type."""
USUAL_STATEMENT_TIMEOUT_S = 300.0
_OPENING_TIMEOUT_S = 10.0
"""Longest wait for each answer while a connection is set up, and for the connection itself."""
_BEYOND_TIMEOUT_S = 5.0
"""Time to wait for an answer beyond the time that the server allows a statement."""

# A host that vanished is noticed by keepalives when idle, by the last one when it owes an answer:
# https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-PARAMKEYWORDS.
_USUAL: dict[str, Any] = {
    "application_name": "relayd",
    "connect_timeout": round(_OPENING_TIMEOUT_S),
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# The same at the server's end, so that what a vanished writer or prober holds is set free; an
# answer to every statement; an acknowledgement that means what it says. All rows of a cursor are
# read, so its plan is that of all of them. A limit that the address or the server's administrator
# sets holds.
_SET_UP = """
SELECT set_config(name, value, false) FROM (VALUES
    ('client_min_messages', 'warning'),
    ('tcp_keepalives_idle', '10'),
    ('tcp_keepalives_interval', '3'),
    ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', '15s'),
    ('cursor_tuple_fraction', '1')
) AS always (name, value)
UNION ALL
SELECT set_config(name, value, false) FROM (VALUES
    ('idle_in_transaction_session_timeout', '60s', '0'),
    ('synchronous_commit', 'on', 'off')
) AS instead (name, value, of) WHERE current_setting(name) = of
"""
# A server that recovers from a crash begins its statistics again; one that was shut down in order
# keeps them (https://www.postgresql.org/docs/15/monitoring-stats.html). Every user may read this.
SINCE_CRASH = "SELECT coalesce(extract(epoch FROM stats_reset)::text, '') FROM pg_stat_bgwriter"
_LONG_AGO_S = 1e9
# The limit in milliseconds, whatever units it was set in.
_FOUND = (
    "SELECT quote_ident(current_schema())::regnamespace::oid::bigint, "  # noqa: S608
    f"({SINCE_CRASH}), (SELECT setting::bigint FROM pg_settings WHERE name = 'statement_timeout')"
)


class SilentServerError(psycopg.OperationalError):
    """A server that owed an answer and sent nothing for too long; the connection is closed."""


class ServerConnection(psycopg.Connection[Any]):
    """A connection that gives up a server which does not answer for so many seconds.

    A server that is stopped, or whose disk hangs, still acknowledges packets: neither keepalives
    nor ``tcp_user_timeout`` notice, and ``statement_timeout`` is its own. ``schema`` is the number
    of the one that holds the tables; ``since_crash`` is another after the server has crashed,
    empty where it could not be told.
    """

    answer_timeout_s: float = _OPENING_TIMEOUT_S
    schema: int
    since_crash: str

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **options: Any) -> Any:
        """Wait for the driver's steps, as all statements do.

        Raises psycopg.OperationalError if the session ended, or the server was silent for too long.
        """
        try:
            return super().wait(self._unless_silent(gen), *arguments, **options)
        except ValueError as error:  # a session that ends answers more than the driver unpacks
            if isinstance(error, UnicodeError):  # of a value, which never reached the server
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the answer was not understood ({error})") from error

    def _unless_silent(self, steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Pass on what the driver waits for; it resumes ten times a second with no news."""
        heard_s = time.monotonic()
        try:
            awaited = next(steps)
            while True:
                news = yield awaited
                now_s = time.monotonic()
                if news:
                    heard_s = now_s
                elif now_s - heard_s > self.answer_timeout_s:
                    steps.close()
                    self.pgconn.finish()
                    raise SilentServerError(f"no answer for {self.answer_timeout_s:g} s")
                awaited = steps.send(news)
        except StopIteration as end:
            return end.value


def connect(
    address: Address, *, read_only: bool = False, statement_timeout_s: float
) -> ServerConnection:
    """Connect to a server, which refuses changes if `read_only`.

    After `statement_timeout_s` the server ends a statement; an answer is waited for somewhat
    longer. A limit of the address or of the server's administrator goes before the usual one, and
    before a shorter one if it is shorter still. Raises StoreError if the server can't be reached,
    or is none that a store can be on.
    """
    settings = {**_USUAL, **parameters_of(address), "client_encoding": "utf8"}
    if statement_timeout_s < _OPENING_TIMEOUT_S:  # the caller must know soon; libpq takes 2 s
        settings["connect_timeout"] = max(2, round(statement_timeout_s))
    try:
        # A pool that gives each transaction another session can't keep prepared statements.
        connection = ServerConnection.connect(autocommit=True, prepare_threshold=None, **settings)
    except (psycopg.Error, OSError, UnicodeError, ValueError) as error:
        raise _unreachable(address, error) from None
    try:
        _set_up(address, connection, read_only, statement_timeout_s)
    except psycopg.Error as error:
        connection.close()
        raise _unreachable(address, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(
    address: Address, connection: ServerConnection, read_only: bool, statement_timeout_s: float
) -> None:
    version = connection.info.server_version // 10_000
    if version < OLDEST_SERVER:
        problem = f"runs PostgreSQL {version}, and relayd needs {OLDEST_SERVER} or newer"
        raise failure(address, problem, "Name a newer server.")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        problem = f"keeps text as {encoding}, which has no room for every name"
        remedy = "Create a database with ENCODING 'UTF8' and name that."
        raise failure(address, problem, remedy)
    adapters = connection.adapters
    adapters.register_dumper(bool, _Truth)
    adapters.register_dumper(float, _Number)
    adapters.register_loader("numeric", _Sum)
    connection.execute(_SET_UP)
    if read_only:
        connection.execute("SET default_transaction_read_only = on")
    schema, since_crash, found_ms = connection.execute(_FOUND).fetchall()[0]
    if schema is None:
        remedy = "Create the schema, or name another: ?options=-c%20search_path%3Drelayd."
        raise failure(address, "has no schema to work in: none of its search_path exists", remedy)
    connection.schema = schema
    # Before the statistics are there, the server says that it is the year 2000.
    connection.since_crash = since_crash if float(since_crash or 0) > _LONG_AGO_S else ""
    limit_s = found_ms / 1000
    if limit_s == 0 or statement_timeout_s < min(limit_s, USUAL_STATEMENT_TIMEOUT_S):
        limit_s = statement_timeout_s
        connection.execute(f"SET statement_timeout = '{1000 * limit_s:.0f}ms'")
    connection.answer_timeout_s = limit_s + min(limit_s, _BEYOND_TIMEOUT_S)


def _unreachable(address: Address, error: BaseException) -> StoreError:
    remedy = (
        "Check that the server runs and takes connections from here, and the user, password and "
        "database in the address."
    )
    return failure(address, f"can't be connected to: {reason(error)}", remedy)


def parameters_of(address: Address) -> dict[str, Any]:
    """Return the parameters in an address, unless its password was taken for something else.

    Errors of the driver would then show it: they name the host, port or database they failed at.

    Raises StoreError if it is not an address of PostgreSQL, or its password contains characters
    that are part of addresses.
    """
    try:
        written = conninfo_to_dict(address.reveal())
    except psycopg.Error:
        written = None
    if written is not None:
        names = f"{written.get('host', '')}{written.get('hostaddr', '')}{written.get('dbname', '')}"
        ports = str(written.get("port", "")).replace(",", "")
        if "@" not in names and (not ports or ports.isdecimal()):
            return dict(written)
    remedy = (
        "Write postgresql://USER@HOST:PORT/DATABASE; encode special characters of a password "
        "(%40 for @), or leave it to ~/.pgpass or PGPASSWORD."
    )
    raise failure(address, "is not an address of PostgreSQL", remedy)


# ---- values go in and come out as with SQLite ---------------------------------------------------


class _Truth(Dumper):
    """A truth is 0 or 1."""

    oid = IntDumper.oid

    def dump(self, obj: bool) -> Buffer:
        return b"1" if obj else b"0"


class _Number(FloatDumper):
    """NaN is NULL."""

    def dump(self, obj: float) -> Buffer | None:
        return None if math.isnan(obj) else super().dump(obj)


class _Sum(Loader):
    """A sum of whole numbers is one."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)
