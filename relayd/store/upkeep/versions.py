"""To the newest schema, and back by one version."""

from __future__ import annotations

from relayd.store.location import Location
from relayd.store.opening import open_store
from relayd.store.schema import SCHEMA_VERSION
from relayd.store.schema import downgrade as downgrade_file
from relayd.store.sqlite.database import SqliteDatabase


def upgrade(where: Location, *, keep_copy: bool = True) -> int:
    """Bring a store to the newest schema; return its version.

    Parameters
    ----------
    keep_copy : bool
        As of :func:`~relayd.store.opening.open_store`.
    """
    open_store(where, mode="write", keep_copy=keep_copy).close()
    return SCHEMA_VERSION


def downgrade(where: Location) -> int:
    """Bring a store back to the schema before the newest; return its version.

    What only the newest schema holds is lost, nothing else.

    Raises
    ------
    StoreError
        If there is no way back.
    """
    with open_store(where, mode="write") as store:
        if isinstance(store.database, SqliteDatabase):
            return downgrade_file(store.database)
        from relayd.store.postgresql.schema import downgrade as downgrade_server

        return downgrade_server(store.database)  # type: ignore[arg-type]
