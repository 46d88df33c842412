"""What pages of other origins may not do: reach the service by their own name, or change anything.

A page on the internet runs in an operator's browser, which does reach a service on loopback or
behind a firewall. Two checks keep such pages out:

- **Host** (RFC 9110, 7.2). A page whose name was rebound to the service's address counts as of one
  origin with it, but the browser still sends the page's name. So only the service's own names are
  answered to. Addresses are let through: no name leads to them, so nobody can rebind one.
- **Origin and Sec-Fetch-Site** (Fetch; Fetch Metadata). What changes something, and the stream of
  events, is for pages of the service itself and of origins that the operator named. Programs send
  neither header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from functools import lru_cache

from aiohttp import hdrs, web

from relayd.http.problems import MOST_SHOWN, ProblemError

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


class BrowserChecks:
    """Checks of one service.

    Parameters
    ----------
    hosts : collection of str
        Names of the service; localhost and addresses are in any case.
    origins : collection of str
        Origins other than its own whose pages may ask, such as ``https://dashboard.example``.
    """

    def __init__(self, hosts: Collection[str], origins: Collection[str]) -> None:
        names = frozenset(_canonical(host) for host in hosts)
        # A proxy may ask under another name than that at which browsers reach it.
        self._origins = frozenset(
            {*origins, *(f"{scheme}://{name}" for scheme in _DEFAULT_PORTS for name in names)}
        )
        # Clients repeat themselves: a look-up in place of parsing.
        self._is_own = lru_cache(256)(lambda host: _is_own(host, names))

    def check_host(self, request: web.Request) -> None:
        """Refuse a request for another host; one that names none is not a browser's.

        Raises
        ------
        ProblemError
            421 (RFC 9110, 15.5.20).
        """
        for host in request.headers.getall(hdrs.HOST, ()):
            if not self._is_own(host):
                raise _refusal(
                    421,
                    hdrs.HOST,
                    "is not a name of this service",
                    host,
                    "If it is, name it by `relayd serve --allowed-host` or `allowed_hosts`.",
                )

    def check_origin(self, request: web.Request) -> None:
        """Refuse what a page of another origin sent.

        Raises
        ------
        ProblemError
            403.
        """
        headers = request.headers
        origin, site = headers.get(hdrs.ORIGIN), headers.get(_SEC_FETCH_SITE)
        if origin in self._origins or site in _OWN_SITES or (site is None and origin is None):
            return
        if site is None and _is_same_origin(origin or "", headers.get(hdrs.HOST, "")):
            return  # of a browser too old to say so, or over HTTP, where none says so
        name, value = (hdrs.ORIGIN, origin) if origin else (_SEC_FETCH_SITE, site or "")
        raise _refusal(
            403,
            name,
            "is not an origin whose pages may do this",
            value,
            "If it is to be, name the page's origin in `cors_origins`.",
        )


def _is_own(host: str, names: Collection[str]) -> bool:
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


def _refusal(status: int, field: str, problem: str, value: str, remedy: str) -> ProblemError:
    value = value[:MOST_SHOWN]
    return ProblemError(
        status,
        "misdirected" if status == 421 else "cross-origin",
        f"{field}: {value!r} {problem}. {remedy}",
        field=field,
        problem=problem,
        value=value,
        remedy=remedy,
    )
