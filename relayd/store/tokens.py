"""Tokens that let programs use the service: made once, shown once, kept as digests."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import urlsplit

from planner.model.errors import InputError
from relayd.store.database import Part
from relayd.store.events import record_change
from relayd.store.location import default_path, is_loopback

Scope: TypeAlias = Literal["read", "plan", "ingest", "probe", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = "relayd_"
"""By which scanners recognise a leaked token."""

_SECRET_BYTES = 32
_MOST_NAME = 200


class Token(NamedTuple):
    """A stored token: its digest, scopes and times in seconds since 1970 (UTC).

    A token is 256 random bits, so a slow hash would add nothing: there is no list of likely ones
    to try. Limits are 0 for none, and None for what the service's settings say.
    """

    id: int
    name: str
    digest: str  # SHA-256 of the token, hexadecimal
    scopes: frozenset[Scope]
    created_at_s: float
    expires_at_s: float | None
    revoked_at_s: float | None
    requests_per_s: float | None = None  # that it may send
    max_series: int | None = None  # metrics of links that it may report
    last_used_at_s: float | None = None  # to the minute; None for never

    def is_valid(self, now_s: float) -> bool:
        """Return whether the token may be used at a time."""
        expired = self.expires_at_s is not None and self.expires_at_s <= now_s
        return self.revoked_at_s is None and not expired

    def may(self, scope: Scope) -> bool:
        """Return whether the token has a scope; ``admin`` has all."""
        return scope in self.scopes or "admin" in self.scopes

    def metadata(self) -> dict[str, object]:
        """Return all but the digest, as JSON types: this may be shown."""
        shown = self._asdict()
        del shown["digest"]
        ended = "revoked" if self.revoked_at_s is not None else "expired"
        state = "valid" if self.is_valid(time.time()) else ended
        return {"number": shown.pop("id"), **shown, "scopes": sorted(self.scopes), "state": state}


def digest_of(token: str) -> str:
    """Return the digest under which a token is kept."""
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def new_secret() -> str:
    """Return a new token."""
    return PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


class Tokens(Part):
    """The tokens of a store."""

    def create(
        self,
        name: str,
        scopes: Collection[str],
        *,
        expires_at_s: float | None = None,
        requests_per_s: float | None = None,
        max_series: int | None = None,
        secret: str | None = None,
    ) -> str:
        """Make a token and return it; it is not kept and can't be shown again.

        `secret` is a token that was made before, for another store of the same owner. Raises
        InputError if a name, scope, limit or time can't be that of a token.
        """
        if not name.strip() or len(name) > _MOST_NAME or not name.isprintable():
            problem = f"must be 1 to {_MOST_NAME} printable characters"
            raise InputError("name", problem, value=name, remedy="Say who or what will use it.")
        if unknown := [scope for scope in scopes if scope not in SCOPES]:
            remedy = f"Scopes are {', '.join(SCOPES)}."
            raise InputError("scope", "is not known", value=unknown[0], remedy=remedy)
        now_s = time.time()
        if expires_at_s is not None and expires_at_s <= now_s:
            raise InputError("expires", "must be in the future", value=expires_at_s)
        limits = {"requests_per_s": requests_per_s, "max_series": max_series}
        for field, value in limits.items():
            if value is not None and not 0 <= value < 2**53:
                remedy = "0 is no limit; leave it out for that of the service."
                raise InputError(field, "must be 0 or more", value=value, remedy=remedy)
        token = secret or new_secret()
        ordered = [scope for scope in SCOPES if scope in scopes]
        with self._database.transaction():
            row = {"name": name, "digest": digest_of(token), "scopes": json.dumps(ordered)}
            times = {"created_at_s": now_s, "expires_at_s": expires_at_s}
            number = self._database.add("tokens", {**row, **times, **limits}, "id")
            record_change(self._database, "token create", f"{number} {name} ({' '.join(ordered)})")
        return token

    def list(self) -> list[Token]:
        """Return all tokens, revoked and expired ones too, the oldest first."""
        return self._database.records(Token, "tokens ORDER BY id")

    def note_used(self, at_s: Mapping[int, float]) -> None:
        """Store when tokens were used last, by their numbers; seconds since 1970 (UTC)."""
        self._database.change_many(
            "UPDATE tokens SET last_used_at_s = ? WHERE id = ? AND coalesce(last_used_at_s, 0) < ?",
            [(used_s, number, used_s) for number, used_s in at_s.items()],
        )

    def revoke(self, token_id: int) -> Token:
        """Revoke a token, which stays in the list; raises InputError if there is no such number."""
        found = next((token for token in self.list() if token.id == token_id), None)
        if found is None:
            remedy = "`relayd serve token list` shows the numbers."
            raise InputError("token", "is not in this store", value=token_id, remedy=remedy)
        if found.revoked_at_s is not None:
            return found
        now_s = time.time()
        with self._database.transaction():
            sql = "UPDATE tokens SET revoked_at_s = ? WHERE id = ?"
            self._database.change(sql, (now_s, token_id))
            record_change(self._database, "token revoke", f"{token_id} {found.name}")
        return found._replace(revoked_at_s=now_s)


# ---- the admin token of a user's own services, kept for the same user's commands and clients -----
#
# It is in the user's data directory, readable by the user alone, and goes to services on this
# machine alone.

VARIABLE = "RELAYD_TOKEN"
_NAME = "first start"


class FirstToken(NamedTuple):
    """The token that a store got when a service first started on it."""

    secret: str
    path: Path | None  # where it is kept; None if it could not be
    is_new: bool
    """Whether it was made for this store; else another service of the same user has it, too."""


def first_token(tokens: Tokens) -> FirstToken | None:
    """Give a store that never had a token one with the scope ``admin``; None if it had one."""
    if tokens.list():
        return None
    path = default_path().with_name("token")
    kept = _read(path)
    secret = kept or new_secret()
    # Kept before it is valid: after a crash in between, the next start makes the kept one valid.
    is_kept = kept is not None or _keep(secret, path)
    tokens.create(_NAME, ["admin"], secret=secret)
    return FirstToken(secret, path if is_kept else None, kept is None)


def token_for(url: str) -> str | None:
    """Return ``RELAYD_TOKEN``, else for a service on this machine the kept token."""
    if given := os.environ.get(VARIABLE):
        return given
    path = default_path().with_name("token")
    return _read(path) if is_loopback(urlsplit(url).hostname or "") else None


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
