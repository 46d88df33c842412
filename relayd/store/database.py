"""A connection to a database whose failures are :class:`~planner.model.errors.StoreError`.

Every statement of the store goes through a :class:`Database`, so that translation of errors, and
the rule of one writer at a time, are in one place. There is one for each engine:
:class:`~relayd.store.sqlite.SqliteDatabase` and
:class:`~relayd.store.postgresql.database.PostgresqlDatabase`. Both are given the same SQL, which
keeps to what both understand:

- values are ``?`` in order or ``:name``; texts with a question mark, colon or percent sign in
  them are values too;
- ``ON CONFLICT DO NOTHING``, ``coalesce``, ``sum``; no ``rowid``, ``ifnull``, ``total``, ``date``,
  ``INSERT OR``, ``LIMIT -1``; truths are 0 and 1.

So is the schema: ``schema.sql``, ``schema-2.sql``. Hints about the order of joins are SQLite's
alone.

Why it is so: docs/decisions/04-one-text-for-two-engines.md.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar, get_origin, get_type_hints

from relayd.store.failures import failure
from relayd.store.location import Location

Values: TypeAlias = Sequence[object] | Mapping[str, object]
Fence: TypeAlias = tuple[str, int]
"""A role and the number of its holder, who writes."""
_R = TypeVar("_R")
NAMED_ENDS = "JOIN regions AS src ON src.id = src_id JOIN regions AS dst ON dst.id = dst_id"
"""Of queries that name both ends of what they find: ``src.name`` and ``dst.name``."""
COLUMNS_OF_ENDS = {"src": "src.name", "dst": "dst.name"}  # the same, for :meth:`Database.records`
_KEPT_AS: dict[Any, Callable[[Any], Any]] = {
    bool: bool,
    dict: json.loads,
    frozenset: lambda text: frozenset(json.loads(text)),
}

SCHEMA_VERSION = 2
"""The schema that this program knows: ``schema.sql``, then what each later version adds."""


class Database(ABC):
    """One connection to one database, which belongs to one thread at a time."""

    location: Location  # where it is as the user spelled it, for errors
    refusals: tuple[type[Exception], ...]
    """Errors of values that no column takes, and of changes that the database forbids. They pass
    untranslated: they are not the database's fault."""
    clock_sql: ClassVar[str]  # the database's clock, as seconds since 1970
    fence: Fence | None = None  # if set, changes are refused once the role has a later holder
    version: int = 0
    """Of its schema when it was opened: one that is read may be older than this program's."""
    commits: int = 0
    """Number of committed transactions: work that lost the connection may begin again unless this
    has risen."""
    _fence_lock: ClassVar[str] = ""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; what was committed is safe without it."""

    # ---- statements ----------------------------------------------------------------------------

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

    def records(
        self,
        kind: Callable[..., _R],
        rest: str,
        values: Values = (),
        columns: Mapping[str, str] = {},
    ) -> list[_R]:
        """Read rows as records of a type, whose fields are columns; `rest` follows after ``FROM``.

        `columns` has the SQL of fields that are not called like their column. Fields that are
        truths, objects or sets by their annotation are kept as 0 and 1, and as JSON.
        """
        fields = _types_of_fields(kind)
        sql = f"SELECT {', '.join(columns.get(name, name) for name in fields)} FROM {rest}"  # noqa: S608
        reads = [_KEPT_AS.get(get_origin(of) or of) for of in fields.values()]
        found = self.rows(sql, values)
        if not any(reads):
            return [kind(*row) for row in found]
        return [
            kind(*(read(one) if read else one for read, one in zip(reads, row, strict=True)))
            for row in found
        ]

    def last_id(self, table: str) -> int:
        """Return the id of the newest row of a table; 0 if there is none."""
        return int(self.row(f"SELECT coalesce(max(id), 0) FROM {table}")[0])  # noqa: S608

    def change(self, sql: str, values: Values = ()) -> int:
        """Run a statement that changes something, outside of a transaction as one by itself.

        Returns what the statement says after ``RETURNING``, else 0.
        """
        with self._one_transaction():
            rows = self.rows(sql, values)
        return rows[0][0] if rows else 0

    def add(self, table: str, row: Mapping[str, object], returning: str = "") -> int:
        """Insert a row by the names of its columns; return the column `returning` of it, or 0."""
        sql = self._insertion(table, row)
        return self.change(sql + (f" RETURNING {returning}" if returning else ""), row)

    def put(self, table: str, row: Mapping[str, object], key: Sequence[str]) -> None:
        """Insert a row, or replace the values of the one that has its key."""
        new = ", ".join(f"{name} = excluded.{name}" for name in row if name not in key)
        sql = f"{self._insertion(table, row)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {new}"
        self.change(sql, row)

    @staticmethod
    def _insertion(table: str, row: Mapping[str, object]) -> str:
        names, places = ", ".join(row), ", ".join(f":{name}" for name in row)
        return f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608

    def region_id(self, name: str) -> int:
        """Return the number that stands for a region, a new one if need be."""
        row = self.row("SELECT id FROM regions WHERE name = ?", (name,))
        return int(row[0]) if row else self.add("regions", {"name": name}, "id")

    def ends(self, src: str, dst: str) -> dict[str, int]:
        """Return the columns of tables that stand for both ends of a link."""
        return {"src_id": self.region_id(src), "dst_id": self.region_id(dst)}

    def metadata(self, name: str) -> float | None:
        """Return a number that survives a restart, such as when a task ran last; None if unset."""
        row = self.row("SELECT value FROM metadata WHERE name = ?", (name,))
        return None if row is None else float(row[0])

    def set_metadata(self, name: str, value: float) -> None:
        """Set a number that survives a restart."""
        self.put("metadata", {"name": name, "value": value}, ["name"])

    @abstractmethod
    def change_many(self, sql: str, rows: Iterable[Sequence[object]]) -> int:
        """Run a statement once for each row; return how many rows it changed."""

    @abstractmethod
    def insert(self, table: str, rows: Sequence[Sequence[object]]) -> int:
        """Insert whole rows quickly, inside a transaction; return how many are new.

        They have all columns of the table, in their order; those whose key is there already are
        left out.
        """

    # ---- transactions --------------------------------------------------------------------------

    @property
    @abstractmethod
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Become the one writer; commit at the end, or leave everything as it was.

        When it returns, the change is on disk. Transactions do not nest. Raises StoreError if
        another process is the writer for longer than the busy timeout.
        """
        self._begin()
        try:
            self._check_fence()
            yield
            if self.in_transaction:  # else it was rolled back on purpose
                self._commit()
                self.commits += 1
        except BaseException:
            self.roll_back()
            raise

    def _one_transaction(self) -> AbstractContextManager[None]:
        return nullcontext() if self.in_transaction else self.transaction()

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _commit(self) -> None: ...

    @abstractmethod
    def roll_back(self) -> None:
        """Undo the transaction so far and end it, if there is one."""

    def _check_fence(self) -> None:
        """Raise unless the role has no later holder, and keep it so until the transaction ends."""
        if self.fence is None:
            return
        held = f"SELECT 1 FROM leases WHERE role = ? AND number = ?{self._fence_lock}"  # noqa: S608
        if not self.rows(held, self.fence):
            raise failure(
                self.location,
                "is being measured for by another process, which took over while this one hung",
                "Nothing was stored. `relayd probe --resume` goes on when it has finished.",
            )

    def end_fenced_writers(self) -> None:
        """End transactions that rely on a lease, so that it can pass on; impossible in a file."""
        return

    # ---- the schema ----------------------------------------------------------------------------

    def schema_version(self) -> int:
        """Read the version of the schema; 0 where none is laid out.

        Raises StoreError if it is newer than this program, or something else is in the database.
        """
        self.version = found = self._version()
        if found > SCHEMA_VERSION:
            raise failure(
                self.location,
                f"was written by a newer relayd (schema {found}; this one knows {SCHEMA_VERSION})",
                "Upgrade relayd, or name another database; it was left as it is.",
            )
        return found

    def lay_out(self) -> None:
        """Lay out what the schema lacks, all of it in a new store: whole, or not at all."""
        if self.schema_version() == SCHEMA_VERSION:
            return
        with self.transaction():
            for version in range(self.schema_version() + 1, SCHEMA_VERSION + 1):
                name = "schema.sql" if version == 1 else f"schema-{version}.sql"
                text = Path(__file__).with_name(name).read_text(encoding="utf-8")
                # Connection.executescript commits first, which would end the transaction.
                for statement in text.strip().removesuffix(";").split(";\n"):
                    self._define(f"{statement};")
            self._mark(SCHEMA_VERSION)
        self.version = SCHEMA_VERSION

    @abstractmethod
    def _version(self) -> int: ...

    @abstractmethod
    def _mark(self, version: int) -> None: ...

    def _define(self, sql: str) -> None:
        self.rows(sql)


_types_of_fields = cache(get_type_hints)


def matching(conditions: Mapping[str, object]) -> tuple[str, list[object]]:
    """Return conditions of a query, each with its value, as one; those of None are left out."""
    stated = {sql: value for sql, value in conditions.items() if value is not None}
    return " AND ".join(stated) or "1 = 1", list(stated.values())


class Part:
    """Part of a store, on its database, which is open for writing if anything is to be changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
