"""A place for a store on either engine, and what somebody else does to a store there."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.postgresql import PostgresqlServer

ON_BOTH = pytest.mark.parametrize("spot", ["sqlite", "postgresql"], indirect=True)
"""Of tests, and of modules as ``pytestmark``, that hold on a server as in a file."""


class Spot(ABC):
    """Where a test's store is, or is to be.

    Attributes
    ----------
    engine : str
    where : str
        As a user would write it.
    """

    engine: str
    where: str

    @abstractmethod
    def another(self) -> Spot:
        """Return a further place on the same engine, without a store."""

    @abstractmethod
    def dump(self) -> list[str]:
        """Return everything that the database holds."""

    @abstractmethod
    def columns(self) -> list[tuple[str, ...]]:
        """Return table, name and type of all columns, sorted."""

    @abstractmethod
    def outsider(self, statement: str) -> list[Any]:
        """Run a statement in a connection that is none of ours."""

    @property
    @abstractmethod
    def integrity_error(self) -> type[Exception]:
        """What the engine raises for a change that is forbidden."""

    @abstractmethod
    def check(self) -> None:
        """Look for damage."""


class SqliteSpot(Spot):
    engine = "sqlite"

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

    def columns(self) -> list[tuple[str, ...]]:
        return self.outsider(
            "SELECT tables.name, columns.name, columns.type FROM sqlite_schema AS tables "
            "JOIN pragma_table_info(tables.name) AS columns WHERE tables.type = 'table' "
            "ORDER BY 1, 2"
        )

    def outsider(self, statement: str) -> list[Any]:
        with self._connected() as connection:
            return connection.execute(statement).fetchall()

    @property
    def integrity_error(self) -> type[Exception]:
        return sqlite3.IntegrityError

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

    def __init__(self, server: PostgresqlServer, database: str | None = None) -> None:
        self.server = server
        self.database = database or server.new_database()
        self.where = server.url(self.database)

    def another(self) -> Spot:
        return PostgresqlSpot(self.server)

    def dump(self) -> list[str]:
        with self._connected() as connection:
            tables = connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace "
                "AND relkind = 'r' ORDER BY 1"
            ).fetchall()
            return [
                f"{table} {row}"
                for (table,) in tables
                for row in connection.execute(f"SELECT * FROM {table} ORDER BY {table}").fetchall()
            ]

    def columns(self) -> list[tuple[str, ...]]:
        return self.outsider(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'public' ORDER BY 1, 2"
        )

    def outsider(self, statement: str) -> list[Any]:
        with self._connected() as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @property
    def integrity_error(self) -> type[Exception]:
        import psycopg

        return psycopg.IntegrityError

    def check(self) -> None:
        ((broken,),) = self.outsider(
            "SELECT count(*) FROM samples LEFT JOIN measurements USING (id) "
            "WHERE measurements.id IS NULL"
        )
        assert broken == 0

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        import psycopg

        with psycopg.connect(self.where, autocommit=True) as connection:
            yield connection
