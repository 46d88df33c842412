"""Opens a store on a PostgreSQL server. Checks it before any change, as with files."""

from __future__ import annotations

from typing import Literal

from relayd.store.failures import missing, outdated
from relayd.store.location import Address
from relayd.store.postgresql.database import PostgresqlDatabase
from relayd.store.postgresql.schema import upgrade, version
from relayd.store.schema import SCHEMA_VERSION


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
        found = version(database)
        if found == 0 and mode != "create":
            raise missing(address)
        if found < SCHEMA_VERSION:
            if mode == "read":
                raise outdated(address, found, SCHEMA_VERSION)
            upgrade(database)
    except BaseException:
        database.close()
        raise
    return database
