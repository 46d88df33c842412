"""Access: tokens with scopes, rate limits, allowed hosts and origins.

A page on the internet runs in an operator's browser, which does reach a service on loopback or
behind a firewall. Two checks keep such pages out:

- **Host** (RFC 9110, 7.2). A page whose name was rebound to the service's address counts as of one
  origin with it, but the browser still sends the page's name. So only the service's own names are
  answered to. Addresses are let through: no name leads to them that could be rebound.
- **Origin and Sec-Fetch-Site** (Fetch; Fetch Metadata). What changes something, the stream of
  events, and all that comes with the cookie of a signed-in browser is for pages of the service
  itself and of origins that the operator named. Programs send neither header, and no cookie.
"""

from __future__ import annotations

import ipaddress
import time
from base64 import b64decode
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from heapq import nlargest
from math import ceil
from operator import itemgetter
from typing import Any

from aiohttp import hdrs, web

from relayd.http.problems import MOST_SHOWN, Kind, ProblemError
from relayd.store.tokens import Scope, Token, digest_of

SAFE_METHODS = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS})
"""Methods that change nothing (RFC 9110, 9.2.1)."""
SECURITY_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "relayd",
}
"""Of every answer, for browsers: nothing is to be guessed, surrounded, kept or loaded."""
_SEC_FETCH_SITE = "Sec-Fetch-Site"
_OWN_SITES = frozenset({"same-origin", "none"})  # "none": a person asked, not a page
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_BEARER, _BASIC = "bearer ", "basic "
SESSION = "relayd-session"
"""The cookie that has the token of a signed-in browser. It is of the folder ``v1/``, whatever
prefix a proxy adds, so that pages and other services of the host's name don't see it."""
_MOST_TOKEN = 512
MOST_CALLERS = 65_536
"""Callers whose rates are kept."""
_ROUNDING_S = 1e-8
"""Of a time since the machine started, and more than that."""


class Access:
    """The tokens, as last read from the store, and whether each request needs one."""

    def __init__(self, *, needs_tokens: bool) -> None:
        self.needs_tokens = needs_tokens
        self._by_digest: dict[str, Token] = {}
        self.used_at_s: dict[int, float] = {}
        """Last uses of tokens that are not stored yet, by their numbers."""

    def renew(self, tokens: Sequence[Token]) -> None:
        """Take the tokens that the store has now."""
        self._by_digest = {token.digest: token for token in tokens}

    def holder(self, request: web.Request) -> str | None:
        """Return the name of the token that a request came with, valid or not; None if unknown."""
        token = self.token(request)
        return token.name if token else None

    def token(self, request: web.Request) -> Token | None:
        """Return the token that a request came with, valid or not; None if unknown."""
        # Looked up by digest: timing reveals nothing about similar tokens.
        header = _authorization(request)
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

        Raises ProblemError: 401 or 403, with ``WWW-Authenticate``.
        """
        if not self.needs_tokens or scope is None:
            return request.remote
        header, now_s = _authorization(request), time.time()
        kind: Kind = "unauthorized"
        if not header:
            error, detail = "", "Send `Authorization: Bearer` and a token."
        elif header[: len(_BEARER)].lower() != _BEARER or len(header) > _MOST_TOKEN:
            error, detail = "invalid_request", "The Authorization header has no bearer token."
        elif (token := self.token(request)) is None or not token.is_valid(now_s):
            error, detail = "invalid_token", "The token is unknown, expired or revoked."
        elif not token.may(scope):
            kind, error = "forbidden", "insufficient_scope"
            detail = f"This needs a token with the scope {scope!r}."
        else:
            self.used_at_s[token.id] = now_s
            return token.id
        challenge = f'Bearer realm="relayd", scope="{scope}"'
        if error:
            challenge += f', error="{error}"'
        status = 403 if kind == "forbidden" else 401
        raise ProblemError(status, kind, detail, headers={hdrs.WWW_AUTHENTICATE: challenge})


def _authorization(request: web.Request) -> str:
    """Read the Authorization header, or what a signed-in browser's cookie stands for."""
    header = request.headers.get(hdrs.AUTHORIZATION, "")
    if header[: len(_BASIC)].lower() == _BASIC:
        with suppress(ValueError):  # of a program that takes a token only in an address
            return _BEARER + b64decode(header[len(_BASIC) :]).decode().partition(":")[2]
    if not header and (token := request.cookies.get(SESSION)):
        return _BEARER + token
    return header


def session_cookie(request: web.Request, token: str) -> str:
    """Write the value of Set-Cookie that signs a browser in; an empty token signs it out.

    No script reads it (HttpOnly), no page of another site sends it (SameSite=Strict), and where
    the browser says that it came by HTTPS, no plain connection does (Secure; RFC 6265, 4.1.2).
    """
    is_secure = request.secure or request.headers.get(hdrs.ORIGIN, "").startswith("https://")
    end = "" if token else "; Max-Age=0"
    return f"{SESSION}={token}; HttpOnly; SameSite=Strict{'; Secure' * is_secure}{end}"


class RateLimits:
    """A token bucket for each caller: it fills at a rate up to a burst; a request takes one drop.

    A bucket is kept as the time at which it will be full again. Where there are many, the fullest
    are forgotten first: that gives their callers least. A rate of 0 is no limit. Callers with a
    rate of their own, `own_per_s`, may send at once what is theirs in ten seconds, if that is less
    than `burst`.
    """

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self.own_per_s: Mapping[object, float] = {}
        self._full_at_s: dict[object, float] = {}

    def wait_s(self, caller: object, now_s: float) -> float:
        """Take a drop from a caller's bucket: 0; or take none: the time until there is one."""
        per_s, burst = self._bucket(caller)
        if not per_s:
            return 0.0
        full_at_s = max(now_s, self._full_at_s.get(caller, now_s))
        level = burst - (full_at_s - now_s) * per_s
        if level < 1.0 - per_s * _ROUNDING_S:
            return (1.0 - level) / per_s
        if len(self._full_at_s) >= MOST_CALLERS and caller not in self._full_at_s:
            emptiest = nlargest(MOST_CALLERS // 2, self._full_at_s.items(), key=itemgetter(1))
            self._full_at_s = dict(emptiest)
        self._full_at_s[caller] = full_at_s + 1.0 / per_s
        return 0.0

    def _bucket(self, caller: object) -> tuple[float, float]:
        """Look up a caller's rate and burst."""
        own_per_s = self.own_per_s.get(caller)
        if own_per_s is None:
            return self._per_s, self._burst
        return own_per_s, min(self._burst, max(1.0, 10 * own_per_s))

    def headers(self, caller: object, now_s: float) -> dict[str, str]:
        """Say as headers what a caller may still send; none where nothing limits it.

        ``RateLimit-Policy`` has the quota ``q`` of a window of ``w`` seconds, ``RateLimit`` what
        remains (``r``), and the seconds until all of it is back (``t``):
        draft-ietf-httpapi-ratelimit-headers-09.
        """
        per_s, burst = self._bucket(caller)
        if not per_s:
            return {}
        rest_s = max(0.0, self._full_at_s.get(caller, now_s) - now_s)
        left = max(0, int(burst - rest_s * per_s + _ROUNDING_S * per_s))
        return {
            "RateLimit-Policy": f'"requests";q={int(burst)};w={ceil(burst / per_s)}',
            "RateLimit": f'"requests";r={left};t={ceil(rest_s - _ROUNDING_S)}',
        }


class BrowserChecks:
    """Checks of one service, by its names, in addition to localhost and addresses.

    Pages of `origins` other than its own, such as ``https://dashboard.example``, may ask, too.
    """

    def __init__(self, hosts: Collection[str], origins: Collection[str]) -> None:
        names = frozenset(_canonical(host) for host in hosts)
        # A proxy may ask under another name than that at which browsers reach it.
        self._origins = frozenset(
            {*origins, *(f"{scheme}://{name}" for scheme in _DEFAULT_PORTS for name in names)}
        )
        self._names = names

    def check_host(self, request: web.Request) -> None:
        """Refuse a request for another host; one that names none is not a browser's.

        Raises ProblemError: 421 (RFC 9110, 15.5.20).
        """
        for host in request.headers.getall(hdrs.HOST, ()):
            if not _is_own(host, self._names):
                remedy = "If it is, name it by `relayd serve --allowed-host` or `allowed_hosts`."
                raise _foreign(421, hdrs.HOST, "is not a name of this service", host, remedy)

    def check_cookie(self, request: web.Request) -> None:
        """Refuse (403) a cookie that no page of an allowed origin sent.

        ``SameSite`` keeps it from other sites, but not from another port or name of the same site.
        A browser names the origin of whatever changes something (Fetch, 3.2), so that a cookie
        alone changes nothing.
        """
        if SESSION not in request.cookies or hdrs.AUTHORIZATION in request.headers:
            return
        self.check_origin(request)
        is_named = hdrs.ORIGIN in request.headers or _SEC_FETCH_SITE in request.headers
        if request.method not in SAFE_METHODS and not is_named:
            problem = "is missing from a request with a cookie"
            remedy = "Programs send their token as `Authorization: Bearer`."
            raise _foreign(403, hdrs.ORIGIN, problem, "", remedy)

    def check_origin(self, request: web.Request) -> None:
        """Refuse (403) what a page of another origin sent."""
        headers = request.headers
        origin, site = headers.get(hdrs.ORIGIN), headers.get(_SEC_FETCH_SITE)
        if origin in self._origins or site in _OWN_SITES or (site is None and origin is None):
            return
        if site is None and _is_same_origin(origin or "", headers.get(hdrs.HOST, "")):
            return  # of a browser too old to say so, or over HTTP, where none says so
        name, value = (hdrs.ORIGIN, origin) if origin else (_SEC_FETCH_SITE, site or "")
        remedy = "If it is to be, name the page's origin in `cors_origins`."
        raise _foreign(403, name, "is not an origin whose pages may do this", value, remedy)


@lru_cache(256)  # clients repeat themselves
def _is_own(host: str, names: frozenset[str]) -> bool:
    """Return whether a Host header names the service: a name, an address or localhost."""
    name = _canonical(_without_port(host))
    if name in names or name == "localhost" or name.endswith(".localhost"):  # RFC 6761, 6.3
        return True
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _is_same_origin(origin: str, host: str) -> bool:
    scheme, _, place = origin.partition("://")
    port = _DEFAULT_PORTS.get(scheme)
    if port is None:  # such as `null`
        return False
    return _with_port(place, port) == _with_port(host, port)


def _with_port(host: str, port: str) -> str:
    return _canonical(host if _without_port(host) != host else host + port)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


def _canonical(host: str) -> str:
    return host.lower().removesuffix(".")


def _foreign(status: int, field: str, problem: str, value: str, remedy: str) -> ProblemError:
    value, kind = value[:MOST_SHOWN], "misdirected" if status == 421 else "cross-origin"
    told: dict[str, Any] = {"field": field, "problem": problem, "value": value, "remedy": remedy}
    return ProblemError(status, kind, f"{field}: {value!r} {problem}. {remedy}", **told)
