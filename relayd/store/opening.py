"""Opening a store, in a file or on a server."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

from relayd.store.database import Database
from relayd.store.failures import NoStoreError, failure, missing
from relayd.store.leases import DATABASE_TIMEOUT_S, Lease, Role
from relayd.store.location import SERVICE_SCHEMES, Address, Location, address_in
from relayd.store.samples.reading import StoredSamples
from relayd.store.snapshots import Snapshots
from relayd.store.sqlite import open_file

Mode: TypeAlias = 'Literal["read", "write", "create"]'

BUSY_TIMEOUT_S = 5.0
STATEMENT_TIMEOUT_S = 300.0


class Store:
    """A store: samples, and snapshots of estimates. Use it as a context manager, or close it.

    `database` is for the modules of this package.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.samples = StoredSamples(database)
        self.snapshots = Snapshots(database)
        self._lease: Lease | None = None

    @property
    def location(self) -> Location:
        """The database file or server, as the caller named it; shown without a password."""
        return self.database.location

    @property
    def lease(self) -> Lease | None:
        """The lease under which this store is written; changes are refused when it is another's."""
        return self._lease

    @lease.setter
    def lease(self, lease: Lease | None) -> None:
        self._lease = lease
        self.database.fence = None if lease is None else lease.fence

    def new_lease(self, role: Role) -> Lease:
        """Return a lease of a role, not acquired yet."""
        soon = {"busy_timeout_s": DATABASE_TIMEOUT_S, "statement_timeout_s": DATABASE_TIMEOUT_S}
        return Lease(lambda: open_store(self.location, mode="write", **soon).database, role)

    def check_lease(self) -> None:
        """Raise StoreError if this store is written under a lease that may have run out."""
        if self._lease is not None:
            self._lease.check()

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {self.location}>"


def open_store(
    where: Path | str | Address,
    *,
    mode: Mode,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    statement_timeout_s: float = STATEMENT_TIMEOUT_S,
) -> Store:
    """Open a store.

    Parameters
    ----------
    where : Path, str or Address
        A file of SQLite (a symbolic link is followed), or a database of PostgreSQL:
        ``postgresql://user@host/database``.
    mode : {"read", "write", "create"}
        ``read`` changes nothing and works on read-only files and folders. ``write`` needs an
        existing store. ``create`` makes a new one where there is no file, or an empty one; the
        database on a server must exist.
    busy_timeout_s : float
        How long to wait for another writer.
    statement_timeout_s : float
        How long a server may take for a statement; a longer limit of the address goes before the
        default. One that has not answered 5 s later is given up.

    Raises StoreError if the store is missing, foreign, damaged, from a newer relayd, locked, can't
    be reached, or can't be read or written. It is then as it was.
    """
    if (address := address_in(where)) is None:
        return Store(open_file(Path(str(where)), mode, busy_timeout_s))
    return Store(_open_server(address, mode, busy_timeout_s, statement_timeout_s))


def open_if_there(where: Path | str | Address) -> Store | None:
    """Open a store for reading; None where there is none yet."""
    with suppress(NoStoreError):
        return open_store(where, mode="read")
    return None


def _open_server(
    address: Address, mode: Mode, busy_timeout_s: float, statement_timeout_s: float
) -> Database:
    remedy = "Give the path of a file, or postgresql://USER@HOST/DATABASE."
    if address.scheme in SERVICE_SCHEMES:
        problem = "is the address of a service, and this needs the store itself"
        remedy = (
            f"{remedy} Commands that only answer take a service too, and programs relayd.open(URL)."
        )
        raise failure(address, problem, remedy)
    if address.scheme not in ("postgresql", "postgres"):
        raise failure(address, f"is an address of {address.scheme}, which no store is on", remedy)
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        # Without the libraries of PostgreSQL the driver is there but does not load.
        problem = f"needs the driver psycopg: {str(error).partition(chr(10))[0]}"
        raise failure(address, problem, "Install it: pip install 'relayd[postgresql]'.") from None
    from relayd.store.postgresql.database import PostgresqlDatabase

    database = PostgresqlDatabase(
        address,
        busy_timeout_s=busy_timeout_s,
        read_only=mode == "read",
        statement_timeout_s=statement_timeout_s,
    )
    try:
        if mode == "create":
            database.lay_out()
        elif database.schema_version() == 0:
            raise missing(address)
        elif mode == "write":
            database.lay_out()
    except BaseException:
        database.close()
        raise
    return database
