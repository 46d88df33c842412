"""Region ids in the database: each name once, and a small number elsewhere."""

from __future__ import annotations

from relayd.store.database import Database


def region_id(database: Database, name: str) -> int:
    """Return the number that stands for a region in the database, a new one if need be."""
    row = database.row("SELECT id FROM regions WHERE name = ?", (name,))
    if row is not None:
        return int(row[0])
    return new_region_id(database, name)


def new_region_id(database: Database, name: str) -> int:
    """Return the number of a region that has none yet."""
    return database.change("INSERT INTO regions (name) VALUES (?) RETURNING id", (name,))
