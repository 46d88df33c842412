"""Answers whose headers are written already, but for the few that each request has of its own.

aiohttp collects the headers of an answer in a dictionary and checks and writes each of them, which
takes longer than all else that an answer from the cache needs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import formatdate
from functools import lru_cache

from aiohttp import HttpVersion10, HttpVersion11, hdrs, web
from aiohttp.abc import AbstractStreamWriter


def shared_head(headers: Mapping[str, str]) -> bytes:
    """Return headers as they are sent.

    Raises
    ------
    ValueError
        If a value has characters that would end its line.
    """
    if not all(value.isprintable() for value in headers.values()):
        raise ValueError(f"these headers can't be sent: {dict(headers)!r}")
    return _lines(headers)


class PreparedResponse(web.StreamResponse):
    """An answer of status 200, sent with its headers in one piece.

    Its ``headers`` are those of one request alone, which middleware adds.

    Parameters
    ----------
    head : bytes
        All other headers, made by :func:`shared_head`.
    body : bytes
    """

    def __init__(self, head: bytes, body: bytes) -> None:
        super().__init__()
        self._head, self._content = head, body
        self._writer: AbstractStreamWriter | None = None

    @property
    def prepared(self) -> bool:
        """Whether it is being sent."""
        return self._writer is not None

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Write the headers that are still missing; they leave together with the body."""
        if self._writer is not None:
            return self._writer
        own = self.headers
        if self.keep_alive is None:
            self._keep_alive = request.keep_alive
        version = request.version
        if self.keep_alive:
            if version == HttpVersion10:
                own[hdrs.CONNECTION] = "keep-alive"
        elif version == HttpVersion11:
            own[hdrs.CONNECTION] = "close"
        self._head = b"HTTP/%d.%d 200 OK\r\n%bContent-Length: %d\r\nDate: %b\r\n%b\r\n" % (
            *version,
            self._head,
            len(self._content),
            _date(int(time.time())),
            _lines(own),
        )
        if request.method == hdrs.METH_HEAD:
            self._content = b""
        self._writer = request.writer
        return self._writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Send it."""
        assert self._writer is not None
        assert not data
        await self._writer.write_eof(self._head + self._content)


def _lines(headers: Mapping[str, str]) -> bytes:
    return "".join([f"{name}: {value}\r\n" for name, value in headers.items()]).encode()


@lru_cache(maxsize=2)
def _date(time_s: int) -> bytes:
    return formatdate(time_s, usegmt=True).encode()
