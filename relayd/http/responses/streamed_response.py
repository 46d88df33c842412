"""Answers that are made while they are sent: of a large one, no more than a part is in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from aiohttp import hdrs, web
from aiohttp.abc import AbstractStreamWriter

from planner.model.columns.block import Buffer

WRITE_TIMEOUT_S = 30.0
"""How long a reader may leave a part unread."""
PART_BYTES = 1 << 18
"""What is smaller is sent together."""


class StreamedResponse(web.StreamResponse):
    """An answer in parts.

    Parameters
    ----------
    parts : iterator of bytes-like
        Asked for in threads, one after the other.
    headers : mapping
    compressed : bool
        Whether by gzip.
    """

    def __init__(
        self, parts: Iterator[Buffer], headers: Mapping[str, str], *, compressed: bool = False
    ) -> None:
        super().__init__(headers=headers)
        self._parts = parts
        self._is_asked_for = True
        if compressed:
            self.enable_compression(web.ContentCoding.gzip)

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send the headers."""
        self._is_asked_for = request.method != hdrs.METH_HEAD
        return await super().prepare(request)

    async def write_eof(self, data: bytes = b"") -> None:
        """Send all parts."""
        parts = _together(self._parts) if self._is_asked_for else iter(())
        try:
            while part := await asyncio.to_thread(next, parts, b""):
                async with asyncio.timeout(WRITE_TIMEOUT_S):
                    await self.write(part)
        except TimeoutError:
            raise ConnectionResetError("the reader has stopped reading") from None
        await super().write_eof(data)


def _together(parts: Iterator[Buffer]) -> Iterator[bytes]:
    """Yield parts joined, so that none is small, and none empty."""
    found: list[Buffer] = []
    size = 0
    for part in parts:
        found.append(part)
        size += len(part)
        if size >= PART_BYTES:
            yield b"".join(found)
            found, size = [], 0
    if size:
        yield b"".join(found)
