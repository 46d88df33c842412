"""A connection to a database whose failures are :class:`~planner.model.errors.StoreError`.

Every statement of the store goes through a :class:`Database`, so that translation of errors, and
the rule of one writer at a time, are in one place. There is one for each engine:
:class:`~relayd.store.sqlite.database.SqliteDatabase` and
:class:`~relayd.store.postgresql.database.PostgresqlDatabase`. Both are given the same SQL, which
keeps to what both understand:

- values are ``?`` in order or ``:name``; texts with a question mark, colon or percent sign in
  them are values too;
- an ``INSERT`` whose id is of use ends in ``RETURNING id``;
- ``ON CONFLICT DO NOTHING``, ``coalesce``, ``sum``; no ``rowid``, ``ifnull``, ``total``, ``date``,
  ``INSERT OR``, ``LIMIT -1``; truths are 0 and 1;
- many rows go in by :meth:`Database.insert`, which is quick on both.

So is the schema: :mod:`relayd.store.schema`. Hints about the order of joins are SQLite's alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from relayd.store.failures import superseded
from relayd.store.location import Location

Values: TypeAlias = Sequence[object] | Mapping[str, object]


class Fence(NamedTuple):
    """Which holder of a lease writes.

    Attributes
    ----------
    role : str
    number : int
        Of the holder.
    """

    role: str
    number: int


class Database(ABC):
    """One connection to one database.

    It belongs to one thread at a time.

    Attributes
    ----------
    engine : {"sqlite", "postgresql"}
    refusals : tuple of exception types
        What a value raises that no column takes, and a change that the database forbids.
        They pass untranslated: they are not the database's fault.
    clock_sql : str
        The database's clock, as seconds since 1970.
    fence : Fence or None
        If set, changes are refused once the role has a later holder.
    """

    engine: ClassVar[Literal["sqlite", "postgresql"]]
    refusals: tuple[type[Exception], ...]
    clock_sql: ClassVar[str]
    fence: Fence | None = None
    _fence_lock: ClassVar[str] = ""

    @property
    @abstractmethod
    def location(self) -> Location:
        """Where it is as the user spelled it, for errors."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; what was committed is safe without it."""

    @abstractmethod
    def rows(self, sql: str, values: Values = ()) -> list[Any]:
        """Run a query and return all its rows."""

    def row(self, sql: str, values: Values = ()) -> Any:
        """Run a query and return its first row, or None."""
        rows = self.rows(sql, values)
        return rows[0] if rows else None

    @abstractmethod
    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        """Run a query and yield its rows as they are read, in bounded memory."""

    @abstractmethod
    def change(self, sql: str, values: Values = ()) -> int:
        """Run a statement that changes something.

        Returns the id of the row it inserted where the statement ends in ``RETURNING id``, else
        0. Outside of a transaction it is one by itself.
        """

    @abstractmethod
    def change_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Run a statement once for each row; return how many rows it changed."""

    @abstractmethod
    def insert(
        self, table: str, rows: Sequence[Sequence[object]], *, skip_known: bool = False
    ) -> int:
        """Insert whole rows quickly, inside a transaction; return how many are new.

        Parameters
        ----------
        rows : sequence
            Values of all columns of the table, in their order.
        skip_known : bool
            Leave out rows whose key is there already, in place of refusing them all.
        """

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Become the one writer; commit at the end, or leave everything as it was.

        When it returns, the change is on disk. Transactions do not nest.

        Raises
        ------
        StoreError
            If another process is the writer for longer than the busy timeout, or the change
            can't be written.
        """

    @abstractmethod
    def savepoint(self) -> AbstractContextManager[None]:
        """Undo what is done inside, and no more, if that fails; inside a transaction."""

    @abstractmethod
    def roll_back(self) -> None:
        """Undo the transaction so far and end it, if there is one."""

    @abstractmethod
    def schema_version(self) -> int:
        """Read the version of the schema; 0 where none is laid out."""

    @abstractmethod
    def set_schema_version(self, version: int) -> None:
        """Write the version of the schema, in the transaction that brings it there."""

    @abstractmethod
    def define(self, sql: str) -> None:
        """Run a statement of a script of the schema, which is written for SQLite."""

    @abstractmethod
    def rebuilding(self) -> AbstractContextManager[None]:
        """Begin a transaction that may take long and rebuild tables that others refer to."""

    def end_fenced_writers(self) -> None:
        """End transactions that rely on a lease, so that it can pass to another holder.

        A process that is stopped in the middle of one would hold it for as long as it is. In a
        file this can't be done.
        """
        return

    def _check_fence(self) -> None:
        """Raise unless the role has no later holder, and keep it so until the transaction ends."""
        if self.fence is None:
            return
        held = f"SELECT 1 FROM leases WHERE role = ? AND number = ?{self._fence_lock}"  # noqa: S608
        if not self.rows(held, self.fence):
            raise superseded(self.location)

    @abstractmethod
    def expecting_many(self) -> AbstractContextManager[None]:
        """Prepare for a large number of rows to come."""
