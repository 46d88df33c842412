"""Opens a store on a PostgreSQL server. Checks it before any change, as with files."""

from __future__ import annotations

from typing import Literal

from relayd.store.failures import missing
from relayd.store.location import Address
from relayd.store.postgresql.database import PostgresqlDatabase
from relayd.store.schema import check_readable, migrate, version


def open_database(
    address: Address,
    mode: Literal["read", "write", "create"],
    busy_timeout_s: float,
    statement_timeout_s: float,
) -> PostgresqlDatabase:
    """Connect to the database of a store; ``create`` lays out an empty one."""
    database = PostgresqlDatabase(
        address,
        busy_timeout_s=busy_timeout_s,
        read_only=mode == "read",
        statement_timeout_s=statement_timeout_s,
    )
    try:
        if version(database) == 0 and mode != "create":
            raise missing(address)
        if mode == "read":
            check_readable(database)
        else:
            migrate(database)
    except BaseException:
        database.close()
        raise
    return database
