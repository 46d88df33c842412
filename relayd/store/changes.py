"""Records of changes to tokens, campaigns and summaries; batches of samples have their own."""

from __future__ import annotations

import getpass  # these two are for writers alone
import os
import socket
import time
from typing import NamedTuple

from relayd.store.database import Database

_MOST_SUBJECT = 500


class RecordedChange(NamedTuple):
    """Something that was changed.

    Attributes
    ----------
    at_s : float
        Unix time.
    who : str
        A token's name, or ``user@machine`` of a command.
    address : str
        That a request came from; ``""`` for a command.
    action, subject : str
        Such as ``token create`` and the token's number and name.
    """

    id: int
    at_s: float
    who: str
    address: str
    action: str
    subject: str


def record_change(
    database: Database, action: str, subject: str, *, who: str | None = None, address: str = ""
) -> None:
    """Record a change and its author, in a transaction of its own or in the caller's.

    Parameters
    ----------
    who : str, optional
        The user who runs this program, unless given.
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
