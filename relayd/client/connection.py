"""HTTP calls: connections are kept alive, safe calls repeated, problems raised as exceptions."""

from __future__ import annotations

import asyncio
import json
import os
import random
import ssl
from collections.abc import AsyncIterator, Mapping
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import aiohttp

from planner.model.errors import InputError, RelaydError
from relayd.client.errors import ServiceError, error_of
from relayd.store.tokens import token_for
from relayd.version import __version__

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
CA_VARIABLE = "RELAYD_CA"
TIMEOUT_S = 60.0
"""For one attempt: twice what a service takes for an answer at most."""
RETRIED = frozenset({429, 502, 503, 504})
"""Statuses after which a call is repeated (RFC 9110, 15.5 and 15.6; RFC 6585)."""
_MOST_PER_HOST = 32
_of_parents: list[aiohttp.ClientSession] = []
"""Sessions of other loops, such as of the parent of a fork: collecting one would close it."""


class TaggedContent(NamedTuple):
    """An answer: with status 304, what has the tag that was sent is as it was (RFC 9110, 13)."""

    status: int
    content: bytes
    media_type: str
    tag: str | None


class Connection:
    """Calls of one service; see :class:`~relayd.client.asynchronous.AsyncWan`."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        ca: str | Path | None = None,
        timeout_s: float = TIMEOUT_S,
        attempts: int = 4,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            remedy = "Write it such as http://127.0.0.1:8080."
            raise InputError("url", "is not an address of HTTP", value=url, remedy=remedy)
        if parts.username or parts.password:
            raise InputError(
                "url", "has a user name in it", remedy="Give a token by `token=` or RELAYD_TOKEN."
            )
        if not 0 < timeout_s < inf:
            raise InputError("timeout_s", "must be a finite time above 0", value=timeout_s)
        if ca and parts.scheme == "http":
            problem = "is for a service with TLS"
            raise InputError("ca", problem, value=url, remedy="Write https:// in its address.")
        self.url = url.rstrip("/")
        ca = (ca or os.environ.get(CA_VARIABLE)) if parts.scheme == "https" else None
        self._tls = _trusting(ca) if ca else True
        self._headers = {"User-Agent": f"relayd/{__version__}", "Accept": "application/json"}
        if token := token or token_for(url):
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._attempts = max(1, attempts)
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        """Open nothing yet: connections are made when first used."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self.close()

    @property
    def is_open(self) -> bool:
        """Whether there may be connections to close."""
        return self._session is not None

    async def close(self) -> None:
        """Close all connections; a later call opens new ones."""
        session, self._session = self._session, None
        if session is None:
            return
        if self._loop is asyncio.get_running_loop():
            await session.close()
        else:  # of the parent of a fork, whose sockets and selector these are
            _of_parents.append(session)

    async def _get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """Return a document; parameters that are None are left out."""
        stated = {name: value for name, value in (query or {}).items() if value is not None}
        return json.loads((await self._call("GET", path, query=stated)).content)

    async def _post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """Ask a question that changes nothing, so that it may be asked again."""
        return (await self._call("POST", path, body=json.dumps(body, allow_nan=False))).content

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> TaggedContent:
        """Make a call, again where the service can't be reached or is overloaded.

        Raises
        ------
        RelaydError
            What the service answers in place of what was asked for, as the exception that a
            local store would raise.
        ServiceError
            If there is no answer.
        """
        sent = {**({"Content-Type": "application/json"} if body else {}), **(headers or {})}
        for attempt in range(self._attempts):
            is_last = attempt == self._attempts - 1
            asked_s = ""
            try:
                async with self._opened().request(
                    method,
                    self.url + path,
                    params=query,
                    data=body,
                    headers=sent,
                    allow_redirects=False,
                ) as answer:
                    content = await answer.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                if is_last or isinstance(error, aiohttp.ClientConnectorCertificateError):
                    raise self._unreachable(error) from error
            else:
                if answer.status < 300 or answer.status == 304:
                    tag = answer.headers.get("ETag")
                    return TaggedContent(answer.status, content, answer.content_type, tag)
                if answer.status not in RETRIED or is_last:
                    raise self._problem(answer.status, content)
                asked_s = answer.headers.get("Retry-After", "")
            await asyncio.sleep(_pause_s(attempt, asked_s))
        raise AssertionError("unreachable")

    async def _stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Yield the lines of an answer that has no end."""
        endless = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout.total)
        try:
            async with self._opened().get(
                self.url + path, headers=headers, timeout=endless
            ) as answer:
                if answer.status >= 400:
                    raise self._problem(answer.status, await answer.read())
                async for line in answer.content:
                    yield line
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._unreachable(error) from error

    def _opened(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            if self._session is not None:
                _of_parents.append(self._session)
            connector = aiohttp.TCPConnector(limit_per_host=_MOST_PER_HOST, ssl=self._tls)
            self._loop = loop
            self._session = aiohttp.ClientSession(
                headers=self._headers, timeout=self._timeout, connector=connector
            )
        return self._session

    def _problem(self, status: int, content: bytes) -> RelaydError:
        try:
            document = json.loads(content)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            document = {"detail": f"status {status}"}
        return error_of({"status": status, **document}, self.url)

    def _unreachable(self, error: Exception) -> ServiceError:
        problem = f"can't be reached ({error})"
        remedy = "Check the address, and that `relayd serve` runs there."
        if isinstance(error, TimeoutError):
            problem = f"does not answer within {self._timeout.total:g} s"
        elif isinstance(error, aiohttp.ClientConnectorCertificateError):
            remedy = (
                "If its certificate is of an authority of your own, name the authority's "
                f"certificate by {CA_VARIABLE}, --ca or ca=."
            )
        return ServiceError(self.url, problem, remedy=remedy)


def _trusting(ca: str | Path) -> ssl.SSLContext:
    """Return a context that trusts the authorities of a file."""
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (OSError, ssl.SSLError) as error:
        problem = f"can't be used ({error.strerror or error})"
        remedy = "Name a PEM file with the authority's certificate."
        raise InputError("ca", problem, value=str(ca), remedy=remedy) from None


def _pause_s(attempt: int, asked_s: str = "") -> float:
    """Return the time to wait: as requested, else at random up to a bound that doubles."""
    bound_s: float = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**attempt)
    pause_s = bound_s * random.uniform(0.5, 1.0)  # noqa: S311 - keeps callers apart, no secret
    return max(pause_s, min(float(asked_s), LONGEST_PAUSE_S)) if asked_s.isdigit() else pause_s
