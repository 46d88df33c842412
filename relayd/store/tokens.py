"""Tokens that let programs use the service: made once, shown once, kept as digests."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias, get_args

from planner.model.errors import InputError
from relayd.store.changes import record_change
from relayd.store.database import Database

Scope: TypeAlias = Literal["read", "plan", "ingest", "probe", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
PREFIX = "relayd_"
"""By which scanners recognise a leaked token."""

_SECRET_BYTES = 32
_MOST_NAME = 200


class Token(NamedTuple):
    """What is kept of a token.

    Attributes
    ----------
    digest : str
        SHA-256 of the token, hexadecimal. A token is 256 random bits, so a slow hash would add
        nothing: there is no list of likely ones to try.
    expires_at_s, revoked_at_s : float | None
        Seconds since 1970 (UTC).
    requests_per_s : float | None
        That it may send; 0 for no limit, None for what the service's settings say.
    max_series : int | None
        Metrics of links that it may report; 0 and None as above.
    last_used_at_s : float | None
        To the minute; None for never.
    """

    id: int
    name: str
    digest: str
    scopes: frozenset[Scope]
    created_at_s: float
    expires_at_s: float | None
    revoked_at_s: float | None
    requests_per_s: float | None = None
    max_series: int | None = None
    last_used_at_s: float | None = None

    def is_valid(self, now_s: float) -> bool:
        """Whether it may be used at a time."""
        expired = self.expires_at_s is not None and self.expires_at_s <= now_s
        return self.revoked_at_s is None and not expired

    def may(self, scope: Scope) -> bool:
        """Whether it has a scope; ``admin`` has all."""
        return scope in self.scopes or "admin" in self.scopes

    def metadata(self) -> dict[str, object]:
        """Return what may be shown of it, as JSON types: all but the digest."""
        shown = self._asdict()
        del shown["digest"]
        state = "revoked" if self.revoked_at_s is not None else "expired"
        return {
            "number": shown.pop("id"),
            **shown,
            "scopes": sorted(self.scopes),
            "state": "valid" if self.is_valid(time.time()) else state,
        }


def digest_of(token: str) -> str:
    """Return the digest under which a token is kept."""
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def new_secret() -> str:
    """Return a new token."""
    return PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


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
        requests_per_s: float | None = None,
        max_series: int | None = None,
        secret: str | None = None,
    ) -> str:
        """Make a token and return it; it is not kept and can't be shown again.

        `secret` is a token that was made before, for another store of the same owner.

        Raises
        ------
        InputError
            If the name is empty, a scope is unknown, a limit is none, or it would have
            expired already.
        """
        if not name.strip() or len(name) > _MOST_NAME or not name.isprintable():
            raise InputError(
                "name",
                f"must be 1 to {_MOST_NAME} printable characters",
                value=name,
                remedy="Say who or what will use it.",
            )
        unknown = [scope for scope in scopes if scope not in SCOPES]
        if unknown or not scopes:
            raise InputError(
                "scope",
                "is not known" if unknown else "is missing",
                value=unknown[0] if unknown else None,
                remedy=f"Scopes are {', '.join(SCOPES)}.",
            )
        now_s = time.time()
        if expires_at_s is not None and expires_at_s <= now_s:
            raise InputError("expires", "must be in the future", value=expires_at_s)
        limits = {"requests_per_s": requests_per_s, "max_series": max_series}
        for field, value in limits.items():
            if value is not None and not 0 <= value < 2**53:
                raise InputError(
                    field,
                    "must be 0 or more",
                    value=value,
                    remedy="0 is no limit; leave it out for that of the service.",
                )
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
        columns = ", ".join(Token._fields)
        rows = self._database.rows(f"SELECT {columns} FROM tokens ORDER BY id")  # noqa: S608
        return [
            Token(number, name, digest, frozenset(json.loads(scopes)), *rest)
            for number, name, digest, scopes, *rest in rows
        ]

    def note_used(self, at_s: Mapping[int, float]) -> None:
        """Keep when tokens were used last, by their numbers; seconds since 1970 (UTC)."""
        self._database.change_many(
            "UPDATE tokens SET last_used_at_s = ? WHERE id = ? AND coalesce(last_used_at_s, 0) < ?",
            [(used_s, number, used_s) for number, used_s in at_s.items()],
        )

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
            record_change(self._database, "token revoke", f"{token_id} {found.name}")
        return found._replace(revoked_at_s=now_s)
