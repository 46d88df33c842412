"""Small facts that must survive a restart: when things were done last, or are due next."""

from __future__ import annotations

from relayd.store.database import Database


class Metadata:
    """Named numbers of a store.

    Parameters
    ----------
    database : Database
        Open for writing if values are to be set.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, name: str) -> float | None:
        """Return a value, or None if it was never set."""
        row = self._database.row("SELECT value FROM metadata WHERE name = ?", (name,))
        return None if row is None else float(row[0])

    def set(self, name: str, value: float) -> None:
        """Set a value."""
        self._database.change(
            "INSERT INTO metadata (name, value) VALUES (?, ?) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, value),
        )
