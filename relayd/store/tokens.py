"""Tokens that let programs use the service: made once, shown once, kept as digests."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias, get_args

from planner.model.errors import InputError
from relayd.store.database import Database

Scope: TypeAlias = Literal["read", "plan", "ingest", "probe", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = "relayd_"
"""By which scanners recognise a leaked token."""

_SECRET_BYTES = 32
_MOST_NAME = 200
_COLUMNS = "id, name, digest, scopes, created_at_s, expires_at_s, revoked_at_s"


class Token(NamedTuple):
    """What is kept of a token.

    Attributes
    ----------
    digest : str
        SHA-256 of the token, hexadecimal. A token is 256 random bits, so a slow hash would add
        nothing: there is no list of likely ones to try.
    expires_at_s, revoked_at_s : float | None
        Seconds since 1970 (UTC).
    """

    id: int
    name: str
    digest: str
    scopes: frozenset[Scope]
    created_at_s: float
    expires_at_s: float | None
    revoked_at_s: float | None

    def is_valid(self, now_s: float) -> bool:
        """Whether it may be used at a time."""
        expired = self.expires_at_s is not None and self.expires_at_s <= now_s
        return self.revoked_at_s is None and not expired

    def may(self, scope: Scope) -> bool:
        """Whether it has a scope; ``admin`` has all."""
        return scope in self.scopes or "admin" in self.scopes


def digest_of(token: str) -> str:
    """Return the digest under which a token is kept."""
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


class Tokens:
    """The tokens of a store.

    Parameters
    ----------
    database : Database
        Open for writing if tokens are to be made or revoked.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        name: str,
        scopes: Collection[str],
        *,
        expires_at_s: float | None = None,
        secret: str | None = None,
    ) -> str:
        """Make a token and return it; it is not kept and can't be shown again.

        `secret` is a token that was made before, for another store of the same owner.

        Raises
        ------
        InputError
            If the name is empty, a scope is unknown, or it would have expired already.
        """
        if not name.strip() or len(name) > _MOST_NAME or not name.isprintable():
            raise InputError(
                "name",
                f"must be 1 to {_MOST_NAME} printable characters",
                value=name,
                remedy="Say who or what will use it.",
            )
        if not scopes:
            raise InputError("scope", "is missing", remedy=f"Scopes are {', '.join(SCOPES)}.")
        for scope in scopes:
            if scope not in SCOPES:
                raise InputError(
                    "scope", "is not known", value=scope, remedy=f"Scopes are {', '.join(SCOPES)}."
                )
        now_s = time.time()
        if expires_at_s is not None and expires_at_s <= now_s:
            raise InputError("expires", "must be in the future", value=expires_at_s)
        token = secret or PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        ordered = [scope for scope in SCOPES if scope in scopes]
        with self._database.transaction():
            self._database.change(
                "INSERT INTO tokens (name, digest, scopes, created_at_s, expires_at_s) "
                "VALUES (?, ?, ?, ?, ?) RETURNING id",
                (name, digest_of(token), json.dumps(ordered), now_s, expires_at_s),
            )
        return token

    def list(self) -> list[Token]:
        """Return all tokens, revoked and expired ones too, the oldest first."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM tokens ORDER BY id")  # noqa: S608
        return [
            Token(number, name, digest, frozenset(json.loads(scopes)), created, expires, revoked)
            for number, name, digest, scopes, created, expires, revoked in rows
        ]

    def revoke(self, token_id: int) -> Token:
        """Revoke a token; it stays in the list.

        Raises
        ------
        InputError
            If there is none with this number.
        """
        found = next((token for token in self.list() if token.id == token_id), None)
        if found is None:
            raise InputError(
                "token",
                "is not in this store",
                value=token_id,
                remedy="`relayd token list` shows the numbers.",
            )
        if found.revoked_at_s is not None:
            return found
        now_s = time.time()
        with self._database.transaction():
            self._database.change(
                "UPDATE tokens SET revoked_at_s = ? WHERE id = ?", (now_s, token_id)
            )
        return found._replace(revoked_at_s=now_s)
