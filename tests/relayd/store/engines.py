"""A place for a store on either engine, and what other programs and people do to a store there."""

from __future__ import annotations

import os
import sqlite3
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgresql import PostgresqlServer
from tests.relayd.store.proxy import Proxy

ON_BOTH = pytest.mark.parametrize("spot", ["sqlite", "postgresql"], indirect=True)
"""Of tests, and of modules as ``pytestmark``, that hold on a server as in a file."""

ROOT = Path(__file__).parents[3]
QUICK_LEASES = {"LEASE_S": 5.0, "RENEW_EVERY_S": 0.7, "HELD_S": 4.0, "RETRY_S": 0.1}
"""Limits of leases, half of what they usually are: on a busy machine a renewal takes seconds."""


_FORKING = get_context("forkserver")
_FORKING.set_forkserver_preload([__name__, "relayd.store.samples.ingest", "relayd.store.leases"])


class Program:
    """A program in a process of its own, forked from one that has imported what it needs."""

    def __init__(self, code: str, *words: object) -> None:
        reading, writing = _FORKING.Pipe(duplex=False)
        asked = (code, list(map(str, words)), dict(os.environ), writing)
        self._process = _FORKING.Process(target=_run, args=asked, daemon=True)
        self._process.start()
        writing.close()
        self.stdout = os.fdopen(os.dup(reading.fileno()))
        reading.close()
        self.pid = self._process.pid or 0
        self.kill = self._process.kill

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Return its exit code once it has ended, below 0 after a signal; None if it runs on."""
        self._process.join(timeout_s)
        return self._process.exitcode

    def close(self) -> None:
        """Kill it, if it still runs."""
        self.kill()
        self.wait()
        self.stdout.close()
        self._process.close()


def _run(code: str, words: list[str], environment: dict[str, str], output: Connection) -> None:
    os.dup2(output.fileno(), 1)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["-c", *words]
    exec(code, {"__name__": "__main__"})


@contextmanager
def program(code: str, *words: object) -> Iterator[Program]:
    """Run a program in a process of its own, and kill it in the end."""
    with closing(Program(code, *words)) as running:
        yield running


def said(running: Program, word: str) -> str:
    """Return the next line that begins with a word."""
    for line in running.stdout:
        if line.startswith(word):
            return line
    raise AssertionError(f"it ended without saying {word!r}")


class Spot(ABC):
    """Where a test's store is, or is to be.

    Attributes
    ----------
    engine : str
    where : str
        As a user would write it.
    integrity_error : type
        What the engine raises for a change that is forbidden.
    """

    engine: str
    where: str
    integrity_error: type[Exception]

    @abstractmethod
    def another(self) -> Spot:
        """Return a further place on the same engine, without a store."""

    @abstractmethod
    def dump(self) -> list[str]:
        """Return everything that the database holds."""

    @abstractmethod
    def outsider(self, statement: str) -> list[Any]:
        """Run a statement in a connection that is none of ours."""

    @abstractmethod
    def check(self) -> None:
        """Look for damage."""


class SqliteSpot(Spot):
    engine = "sqlite"
    integrity_error = sqlite3.IntegrityError

    def __init__(self, folder: Path, name: str = "relayd.db") -> None:
        self._folder = folder
        self.where = str(folder / name)
        self._others = 0

    def another(self) -> Spot:
        self._others += 1
        return SqliteSpot(self._folder, f"other-{self._others}.db")

    def dump(self) -> list[str]:
        with self._connected() as connection:
            return list(connection.iterdump())

    def outsider(self, statement: str) -> list[Any]:
        with self._connected() as connection:
            return connection.execute(statement).fetchall()

    def check(self) -> None:
        assert self.outsider("PRAGMA integrity_check") == [("ok",)]
        assert self.outsider("PRAGMA foreign_key_check") == []

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.where, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()


class PostgresqlSpot(Spot):
    engine = "postgresql"
    integrity_error = psycopg.IntegrityError

    def __init__(self, server: PostgresqlServer, database: str | None = None) -> None:
        self.server = server
        self.database = database or server.new_database()
        self.where = server.url(self.database)

    def another(self) -> Spot:
        return PostgresqlSpot(self.server)

    def through(self, proxy: Proxy) -> str:
        """Return the address of the database behind a proxy."""
        return self.behind(proxy.port)

    def behind(self, port: int) -> str:
        """Return the address of the database where another port leads to its server."""
        url = self.server.url(self.database, over="tcp", sslmode="disable")
        return url.replace(f":{self.server.port}/", f":{port}/")

    @contextmanager
    def away(self) -> Iterator[None]:
        """Let nothing connect to the database, after breaking all connections to it."""
        allow = f"ALTER DATABASE {self.database} ALLOW_CONNECTIONS"
        self.server.sql(f"{allow} false")
        self.server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{self.database}'"
        )
        try:
            yield
        finally:
            self.server.sql(f"{allow} true")

    def dump(self) -> list[str]:
        with psycopg.connect(self.where, autocommit=True) as connection:
            tables = connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace "
                "AND relkind = 'r' ORDER BY 1"
            ).fetchall()
            return [
                f"{table} {row}"
                for (table,) in tables
                for row in connection.execute(f"SELECT * FROM {table} ORDER BY {table}".encode())
            ]

    def outsider(self, statement: str) -> list[Any]:
        with psycopg.connect(self.where, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def check(self) -> None:
        ((broken,),) = self.outsider(
            "SELECT count(*) FROM samples LEFT JOIN measurements USING (id) "
            "WHERE measurements.id IS NULL"
        )
        assert broken == 0
