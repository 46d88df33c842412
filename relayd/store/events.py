"""Events in order: new snapshots, campaigns' progress, links that fail and recover."""

from __future__ import annotations

import getpass  # these two are for writers alone
import json
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from relayd.store.database import Database, Part


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    id: int  # ascending; a reader goes on after the last that it has seen
    at_s: float  # Unix time
    kind: str  # such as ``snapshot``, ``campaign``, ``link``
    subject: str  # object of the event, such as a snapshot's id or ``src>dst``
    detail: dict[str, Any]  # plain values, as JSON has them


class Events(Part):
    """The events of a store."""

    def add(self, kind: str, subject: str, detail: Mapping[str, Any]) -> int:
        """Store an event, in a transaction of its own or in the caller's; return its id."""
        text = json.dumps(dict(detail), sort_keys=True)
        row = {"at_s": time.time(), "kind": kind, "subject": subject, "detail": text}
        return self._database.add("events", row, "id")

    def after(self, last_id: int, *, limit: int = 1000) -> list[Event]:
        """Return the events after one, oldest first."""
        return self._read("id > ? ORDER BY id LIMIT ?", (last_id, limit))

    def newest(self, kinds: Sequence[str], since_s: float, *, limit: int) -> list[Event]:
        """Return the events of some kinds since a time, newest first."""
        among = ", ".join("?" * len(kinds))
        where = f"at_s >= ? AND kind IN ({among}) ORDER BY id DESC LIMIT ?"
        return self._read(where, (since_s, *kinds, limit))

    def last(self, kind: str, subject: str) -> Event | None:
        """Return the newest event of a kind about a subject; None if there is none."""
        where = "kind = ? AND subject = ? ORDER BY id DESC LIMIT 1"
        return next(iter(self._read(where, (kind, subject))), None)

    def last_id(self) -> int:
        """Return the id of the newest event; 0 where there is none."""
        return self._database.last_id("events")

    def _read(self, where: str, values: Sequence[object]) -> list[Event]:
        return self._database.records(Event, f"events WHERE {where}", values)


_MOST_SUBJECT = 500


class RecordedChange(NamedTuple):
    """Something that was changed."""

    id: int
    at_s: float  # Unix time
    who: str  # a token's name, or ``user@machine`` of a command
    address: str  # that a request came from; ``""`` for a command
    action: str
    subject: str  # such as ``token create`` and the token's number and name


def record_change(
    database: Database, action: str, subject: str, *, who: str | None = None, address: str = ""
) -> None:
    """Record a change and its author, by default the user who runs this program.

    It is in a transaction of its own or in the caller's.
    """
    by = {"at_s": time.time(), "who": who or this_user(), "address": address}
    database.add("changes", {**by, "action": action, "subject": subject[:_MOST_SUBJECT]})


def changes(database: Database, *, limit: int) -> list[RecordedChange]:
    """Return the last changes, the newest first."""
    return database.records(RecordedChange, "changes ORDER BY id DESC LIMIT ?", (limit,))


def this_user() -> str:
    """Return ``user@machine`` of this program."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        name = str(os.getuid())
    return f"{name}@{socket.gethostname()}"
