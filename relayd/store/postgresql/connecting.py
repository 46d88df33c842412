"""Connections to a PostgreSQL server: safe settings, unless the address says otherwise."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import psycopg
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import FloatDumper, IntDumper

from relayd.store.failures import failure
from relayd.store.location import Address
from relayd.store.postgresql.failures import unreachable

OLDEST_SERVER = 13
"""The first that can tell what became of a transaction by ``pg_xact_status(xid8)``'s type."""

# A host that vanished is noticed by keepalives when idle, by the last one when it owes an answer:
# https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-PARAMKEYWORDS.
_USUAL: dict[str, Any] = {
    "application_name": "relayd",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# The same at the server's end, so that what a vanished writer or prober holds is set free; an
# answer to every statement; an acknowledgement that means what it says. A limit that the address
# or the server's administrator sets holds.
_SET_UP = """
SELECT set_config(name, value, false) FROM (VALUES
    ('client_min_messages', 'warning'),
    ('tcp_keepalives_idle', '10'),
    ('tcp_keepalives_interval', '3'),
    ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', '15s')
) AS always (name, value)
UNION ALL
SELECT set_config(name, value, false) FROM (VALUES
    ('statement_timeout', '300s', '0'),
    ('idle_in_transaction_session_timeout', '60s', '0'),
    ('synchronous_commit', 'on', 'off')
) AS instead (name, value, of) WHERE current_setting(name) = of
"""
_SCHEMA = "SELECT quote_ident(current_schema())::regnamespace::oid::bigint"
# A server that recovers from a crash begins its statistics anew; one that was shut down in order
# keeps them (https://www.postgresql.org/docs/15/monitoring-stats.html). Everybody may read this.
SINCE_CRASH = "SELECT coalesce(extract(epoch FROM stats_reset)::text, '') FROM pg_stat_bgwriter"
_LONG_AGO_S = 1e9


class Session(NamedTuple):
    """A connection to a server.

    Attributes
    ----------
    schema : int
        The number of the schema that holds the tables.
    since_crash : str
        Another after the server has crashed; empty where it could not be told.
    """

    connection: psycopg.Connection[Any]
    schema: int
    since_crash: str


def connect(address: Address, *, read_only: bool = False, **parameters: int) -> Session:
    """Connect to a server.

    Parameters
    ----------
    read_only : bool
        Let the server refuse changes.
    **parameters
        Of libpq, over those of the address.

    Raises
    ------
    StoreError
        If it can't be reached, or is no server that a store can be on.
    """
    written = _parameters(address)
    try:
        settings: dict[str, Any] = {**_USUAL, **written, "client_encoding": "utf8", **parameters}
        connection = psycopg.connect(autocommit=True, **settings)
    except (psycopg.Error, OSError, UnicodeError, ValueError) as error:
        raise unreachable(address, error) from None
    try:
        _check(address, connection)
        _adapt(connection)
        connection.execute(_SET_UP)
        if read_only:
            connection.execute("SET default_transaction_read_only = on")
        row = connection.execute(_SCHEMA).fetchone()
        (since_crash,) = connection.execute(SINCE_CRASH).fetchone() or ("",)
    except psycopg.Error as error:
        connection.close()
        raise unreachable(address, error) from error
    except BaseException:
        connection.close()
        raise
    if row is None or row[0] is None:
        connection.close()
        raise failure(
            address,
            "has no schema to work in: none of its search_path exists",
            "Create the schema, or name another: ?options=-c%20search_path%3Drelayd.",
        )
    # Before the statistics are there, the server says that it is the year 2000.
    known = since_crash if float(since_crash or 0) > _LONG_AGO_S else ""
    return Session(connection, row[0], known)


def _parameters(address: Address) -> dict[str, Any]:
    """Return what an address says, unless a password in it was taken for something else.

    Errors of the driver would then show it: they name the host, port or database they failed at.
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
    raise failure(
        address,
        "is not an address of PostgreSQL",
        "Write postgresql://USER@HOST:PORT/DATABASE; encode special characters of a password "
        "(%40 for @), or leave it to ~/.pgpass or PGPASSWORD.",
    )


def _check(address: Address, connection: psycopg.Connection[Any]) -> None:
    version = connection.info.server_version // 10_000
    if version < OLDEST_SERVER:
        raise failure(
            address,
            f"runs PostgreSQL {version}, and relayd needs {OLDEST_SERVER} or newer",
            "Name a newer server.",
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise failure(
            address,
            f"keeps text as {encoding}, which has no room for every name",
            "Create a database with ENCODING 'UTF8' and name that.",
        )


# ---- values go in and come out as with SQLite ---------------------------------------------------


class _Truth(Dumper):
    """A truth is 0 or 1."""

    oid = IntDumper.oid

    def dump(self, obj: bool) -> Buffer:
        return b"1" if obj else b"0"


class _Number(FloatDumper):
    """What is not a number is NULL."""

    def dump(self, obj: float) -> Buffer | None:
        return None if math.isnan(obj) else super().dump(obj)


class _Sum(Loader):
    """A sum of whole numbers is one."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


def _adapt(connection: psycopg.Connection[Any]) -> None:
    connection.adapters.register_dumper(bool, _Truth)
    connection.adapters.register_dumper(float, _Number)
    connection.adapters.register_loader("numeric", _Sum)
