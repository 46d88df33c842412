"""JSON answers with their snapshot, ETags, streams, and cursors of pages."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, TypeVar

from aiohttp import ETag, hdrs, web

from planner.model.errors import InputError
from planner.model.network import Snapshot
from planner.model.network_bytes import Buffer
from relayd.http.answers import encoded

LOG = logging.getLogger(__name__)
T = TypeVar("T")
JSON = "application/json"
SNAPSHOT_ID = "Relayd-Snapshot"
SNAPSHOT_AS_OF = "Relayd-As-Of"
WRITE_TIMEOUT_S = 30.0
"""How long a reader may leave what was sent unread."""
PART_BYTES = 1 << 18
"""Parts of a stream that are smaller are sent together."""
LEAST_COMPRESSED_BYTES = 1400
"""A body that fits into one packet arrives no sooner for being shorter."""
LEAST_BYTES_FOR_A_THREAD = 100_000
"""From here on a thread compresses: 100 kB take some 2 ms."""


def json_response(body: bytes, snapshot: Snapshot, *, status: int = 200) -> web.Response:
    """Return a JSON document with its snapshot in the headers."""
    return web.Response(
        body=body, status=status, content_type=JSON, headers=snapshot_headers(snapshot)
    )


def snapshot_headers(snapshot: Snapshot) -> dict[str, str]:
    """Return the headers that name a snapshot."""
    return {SNAPSHOT_ID: snapshot.id, SNAPSHOT_AS_OF: snapshot.as_of}


def document_response(
    snapshot: Snapshot, content: Mapping[str, Any], *, status: int = 200
) -> web.Response:
    """Return a JSON document that names its snapshot, in the document and in the headers."""
    return json_response(encoded({"snapshot": snapshot, **content}), snapshot, status=status)


def tagged_response(request: web.Request, body: bytes, snapshot: Snapshot) -> web.Response:
    """Return a document with its ETag, or 304 if the client has it already."""
    headers = snapshot_headers(snapshot) | {
        hdrs.CACHE_CONTROL: "private, no-cache",
        # Going back shows what is cached: not to who has signed out since.
        hdrs.VARY: f"{hdrs.AUTHORIZATION}, {hdrs.ACCEPT_ENCODING}",
    }
    tag = blake2b(body, digest_size=12).hexdigest()
    return known_response(request, tag, headers) or compressed(
        web.Response(body=body, content_type=JSON, headers=headers), tag
    )


def known_response(
    request: web.Request, tag: str, headers: Mapping[str, str]
) -> web.Response | None:
    """Return 304 if the client has what a tag stands for (RFC 9110, 13.1.2), else None."""
    if not any(known.value in (tag, "*") for known in request.if_none_match or ()):
        return None
    response = web.Response(status=304, headers=headers)
    response.etag = ETag(tag, is_weak=True)
    return response


def compressed(response: web.Response, tag: str | None = None) -> web.Response:
    """Let a response be compressed for clients that take that, unless it is small.

    Parameters
    ----------
    response : web.Response
    tag : str, optional
        Its ETag: a weak one, as it is the same with each compression.
    """
    if tag is not None:
        response.etag = ETag(tag, is_weak=True)
    if isinstance(response.body, bytes) and len(response.body) >= LEAST_COMPRESSED_BYTES:
        response.headers.setdefault(hdrs.VARY, hdrs.ACCEPT_ENCODING)
        response._zlib_executor_size = LEAST_BYTES_FOR_A_THREAD
        response.enable_compression()
    return response


async def streamed_response(
    request: web.Request, parts: Iterator[Buffer], response: web.StreamResponse
) -> web.StreamResponse:
    """Send an answer that is made meanwhile: no more than a part of it is in memory.

    Parameters
    ----------
    parts : iterator of bytes-like
        Asked for in threads, one after the other.
    response : web.StreamResponse
        Status and headers.
    """
    await response.prepare(request)
    if request.method == hdrs.METH_HEAD:
        return response
    together = _together(parts)
    try:
        while part := await asyncio.to_thread(next, together, b""):
            async with asyncio.timeout(WRITE_TIMEOUT_S):
                await response.write(part)
    except (TimeoutError, ConnectionError):  # the reader has stopped reading, or has gone
        _break_off(request)
    except Exception:
        LOG.exception("fault")
        _break_off(request)
    return response


def _break_off(request: web.Request) -> None:
    """Close the connection, so that nobody takes a part of a document for the whole."""
    if request.transport is not None:
        request.transport.abort()


def _together(parts: Iterable[Buffer]) -> Iterator[bytes]:
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


def json_parts(members: Iterable[tuple[str, Any]]) -> Iterator[bytes]:
    """Yield a JSON object piece by piece.

    Parameters
    ----------
    members : iterable of (name, value)
        An iterator as a value stands for a list, of which it yields parts, lists themselves.
    """
    before = b"{"
    for name, value in members:
        yield before + encoded(name) + b":"
        before = b","
        if not isinstance(value, Iterator):
            yield encoded(value)
            continue
        yield b"["
        comma = b""
        for part in value:
            if part:
                yield comma + encoded(part)[1:-1]
                comma = b","
        yield b"]"
    yield b"}"


def cursor(*parts: str | int) -> str:
    """Return a cursor for the last entry of a page: the position where it ended, opaque."""
    return base64.urlsafe_b64encode("\n".join(str(part) for part in parts).encode()).decode()


def page_of(
    found: list[T], limit: int, end_of: Callable[[T], tuple[str | int, ...]]
) -> tuple[list[T], str | None]:
    """Return a page, and its cursor if more was found than the page holds.

    Parameters
    ----------
    found : list
        One entry more than the page, if there are as many.
    limit : int
        Entries of the page.
    end_of : callable
        The parts of the cursor of an entry.
    """
    page = found[:limit]
    return page, cursor(*end_of(page[-1])) if len(found) > limit else None


def position(text: str | None, parts: int) -> list[str] | None:
    """Return the parts that :func:`cursor` was given; None for the first page.

    Raises
    ------
    InputError
        If it is not a cursor of this path.
    """
    if text is None:
        return None
    try:
        found = base64.b64decode(text.encode(), altchars=b"-_", validate=True).decode().split("\n")
    except (binascii.Error, UnicodeError, ValueError):
        found = []
    if len(found) != parts:
        raise InputError(
            "cursor",
            "is not one that this path gave",
            value=text,
            remedy="Give `next_cursor` of the page before, or none for the first page.",
        )
    return found


def whole_position(text: str | None) -> int:
    """Return a cursor's number; 0 for the first page."""
    found = position(text, 1)
    if found is None:
        return 0
    if not (found[0].isascii() and found[0].isdigit() and len(found[0]) <= 18):
        raise InputError("cursor", "is not one that this path gave", value=text)
    return int(found[0])
