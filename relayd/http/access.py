"""Who may do what, and how often: bearer tokens (RFC 6750) with scopes, and rate limits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from heapq import nlargest
from operator import itemgetter

from aiohttp import hdrs, web

from relayd.http.problems import Kind, ProblemError
from relayd.store.tokens import Scope, Token, digest_of

_BEARER = "bearer "
_MOST_TOKEN = 512
MOST_CALLERS = 65_536
"""Whose rates are kept."""
_ROUNDING_S = 1e-8
"""Of a time since the machine started, and more than that."""


class Access:
    """The tokens, as last read from the store.

    Parameters
    ----------
    needs_tokens : bool
        Whether each request needs one.
    """

    def __init__(self, *, needs_tokens: bool) -> None:
        self.needs_tokens = needs_tokens
        self._by_digest: dict[str, Token] = {}
        self._used_at_s: dict[int, float] = {}

    def renew(self, tokens: Sequence[Token]) -> None:
        """Take the tokens that the store has now."""
        self._by_digest = {token.digest: token for token in tokens}

    def used(self) -> dict[int, float]:
        """Return when tokens were used last, by their numbers, where that is not kept yet."""
        return dict(self._used_at_s)

    def forget_used(self, kept: Mapping[int, float]) -> None:
        """Drop times that the store has now, but for tokens that were used again since."""
        for number, used_s in kept.items():
            if self._used_at_s.get(number) == used_s:
                del self._used_at_s[number]

    def holder(self, request: web.Request) -> str | None:
        """Return the name of the token that a request came with, valid or not; None if unknown."""
        token = self.token(request)
        return token.name if token else None

    def token(self, request: web.Request) -> Token | None:
        """Return the token that a request came with, valid or not; None if unknown."""
        return self._token(_header(request))

    def _token(self, header: str) -> Token | None:
        # Looked up by digest: timing reveals nothing about similar tokens.
        return self._by_digest.get(digest_of(header[len(_BEARER) :].strip()))

    def may(self, request: web.Request, scope: Scope) -> bool:
        """Return whether the caller of a request has another scope, too."""
        try:
            self.caller(request, scope)
        except ProblemError:
            return False
        return True

    def caller(self, request: web.Request, scope: Scope | None) -> object:
        """Return the caller that a request counts for: its token's number, else its address.

        Raises
        ------
        ProblemError
            401 or 403, with ``WWW-Authenticate``.
        """
        if not self.needs_tokens or scope is None:
            return request.remote
        header = _header(request)
        if not header:
            raise _refusal(401, "unauthorized", "Send `Authorization: Bearer` and a token.", scope)
        if header[: len(_BEARER)].lower() != _BEARER or len(header) > _MOST_TOKEN:
            raise _refusal(
                401,
                "unauthorized",
                "The Authorization header has no bearer token.",
                scope,
                "invalid_request",
            )
        token, now_s = self._token(header), time.time()
        if token is None or not token.is_valid(now_s):
            raise _refusal(
                401,
                "unauthorized",
                "The token is unknown, expired or revoked.",
                scope,
                "invalid_token",
            )
        if not token.may(scope):
            raise _refusal(
                403,
                "forbidden",
                f"This needs a token with the scope {scope!r}.",
                scope,
                "insufficient_scope",
            )
        self._used_at_s[token.id] = now_s
        return token.id


def _header(request: web.Request) -> str:
    return request.headers.get(hdrs.AUTHORIZATION, "")


def _refusal(
    status: int, kind: Kind, detail: str, scope: Scope, error: str | None = None
) -> ProblemError:
    challenge = f'Bearer realm="relayd", scope="{scope}"'
    if error:
        challenge += f', error="{error}"'
    return ProblemError(status, kind, detail, headers={hdrs.WWW_AUTHENTICATE: challenge})


class RateLimits:
    """A token bucket for each caller: it fills at a rate up to a burst; a request takes one drop.

    A bucket is kept as the time at which it will be full again. Where there are many, the fullest
    are forgotten first: that gives their callers least.

    Parameters
    ----------
    per_s : float
        Of callers without a rate of their own; 0 for no limit.
    burst : float
        Of these callers. Others may send at once what is theirs in ten seconds, if that is less.

    Attributes
    ----------
    own_per_s : mapping
        Callers to rates of their own; 0 for no limit.
    """

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self.own_per_s: Mapping[object, float] = {}
        self._full_at_s: dict[object, float] = {}

    def wait_s(self, caller: object, now_s: float) -> float:
        """Take a drop from a caller's bucket.

        Returns
        -------
        float
            0 if the request may go on; else the time until it may, and nothing was taken.
        """
        own_per_s = self.own_per_s.get(caller)
        per_s = self._per_s if own_per_s is None else own_per_s
        if not per_s:
            return 0.0
        burst = self._burst if own_per_s is None else min(self._burst, max(1.0, 10 * per_s))
        full_at_s = max(now_s, self._full_at_s.get(caller, now_s))
        level = burst - (full_at_s - now_s) * per_s
        if level < 1.0 - per_s * _ROUNDING_S:
            return (1.0 - level) / per_s
        if len(self._full_at_s) >= MOST_CALLERS and caller not in self._full_at_s:
            emptiest = nlargest(MOST_CALLERS // 2, self._full_at_s.items(), key=itemgetter(1))
            self._full_at_s = dict(emptiest)
        self._full_at_s[caller] = full_at_s + 1.0 / per_s
        return 0.0
