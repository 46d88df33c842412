"""What happened, in order: new snapshots, campaigns' progress, links that fail and recover."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relayd.store.database import Database


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes
    ----------
    id : int
        Ascending; a reader goes on after the last that it has seen.
    at_s : float
        Unix time.
    kind : str
        Such as ``snapshot``, ``campaign``, ``link``.
    subject : str
        What it is about, such as a snapshot's id or ``src>dst``.
    detail : dict
        Plain values, as JSON has them.
    """

    id: int
    at_s: float
    kind: str
    subject: str
    detail: dict[str, Any]


class Events:
    """The events of a store.

    Parameters
    ----------
    database : Database
        Open for writing if events are to be added.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, kind: str, subject: str, detail: Mapping[str, Any]) -> int:
        """Store an event, in a transaction of its own or in the caller's; return its id."""
        return self._database.change(
            "INSERT INTO events (at_s, kind, subject, detail) VALUES (?, ?, ?, ?) RETURNING id",
            (time.time(), kind, subject, json.dumps(dict(detail), sort_keys=True)),
        )

    def after(self, last_id: int, *, limit: int = 1000) -> list[Event]:
        """Return the events after one, oldest first."""
        rows = self._database.rows(
            "SELECT id, at_s, kind, subject, detail FROM events WHERE id > ? ORDER BY id LIMIT ?",
            (last_id, limit),
        )
        return [_event(row) for row in rows]

    def newest(self, kinds: Sequence[str], since_s: float, *, limit: int) -> list[Event]:
        """Return the events of some kinds since a time, newest first."""
        rows = self._database.rows(
            "SELECT id, at_s, kind, subject, detail FROM events WHERE at_s >= ? AND kind IN "  # noqa: S608
            f"({', '.join('?' * len(kinds))}) ORDER BY id DESC LIMIT ?",
            (since_s, *kinds, limit),
        )
        return [_event(row) for row in rows]

    def last(self, kind: str, subject: str) -> Event | None:
        """Return the newest event of a kind about a subject; None if there is none."""
        row = self._database.row(
            "SELECT id, at_s, kind, subject, detail FROM events WHERE kind = ? AND subject = ? "
            "ORDER BY id DESC LIMIT 1",
            (kind, subject),
        )
        return None if row is None else _event(row)

    def last_id(self) -> int:
        """Return the id of the newest event; 0 where there is none."""
        return int(self._database.row("SELECT coalesce(max(id), 0) FROM events")[0])


def _event(row: Sequence[Any]) -> Event:
    number, at_s, kind, subject, detail = row
    return Event(number, at_s, kind, subject, json.loads(detail))
