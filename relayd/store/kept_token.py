"""The admin token of a user's own services, kept for the commands and clients of the same user.

It is in the user's data directory, readable by the user alone, and goes to services on this machine
alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple
from urllib.parse import urlsplit

from relayd.store.location import default_path, is_loopback
from relayd.store.tokens import PREFIX, Tokens, new_secret

VARIABLE = "RELAYD_TOKEN"
_NAME = "first start"


class FirstToken(NamedTuple):
    """The token that a store got when a service first started on it.

    Attributes
    ----------
    path : Path | None
        Where it is kept; None if it could not be.
    is_new : bool
        Whether it was made for this store; else another service of the same user has it, too.
    """

    secret: str
    path: Path | None
    is_new: bool


def first_token(tokens: Tokens) -> FirstToken | None:
    """Give a store that never had a token one with the scope ``admin``; None if it had one."""
    if tokens.list():
        return None
    path = _path()
    kept = _read(path)
    secret = kept or new_secret()
    # Kept before it is valid: after a crash in between, the next start makes the kept one valid.
    is_kept = kept is not None or _keep(secret, path)
    tokens.create(_NAME, ["admin"], secret=secret)
    return FirstToken(secret, path if is_kept else None, kept is None)


def token_for(url: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return ``RELAYD_TOKEN``, else for a service on this machine the kept token."""
    if given := environment.get(VARIABLE):
        return given
    return _read(_path()) if is_loopback(urlsplit(url).hostname or "") else None


def _path() -> Path:
    return default_path().with_name("token")


def _read(path: Path) -> str | None:
    try:
        found = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return found if found.startswith(PREFIX) else None


def _keep(secret: str, path: Path) -> bool:
    """Write a token to a file that only its owner reads; return whether that was possible."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", encoding="ascii", dir=path.parent) as file:  # mode 0600
            file.write(secret + "\n")
            file.flush()
            os.fsync(file.fileno())
            # All of it or nothing; and it is new, or this fails: it is no link to elsewhere.
            path.hardlink_to(file.name)
        return True
    return False
