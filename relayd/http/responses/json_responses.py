"""JSON responses: their snapshot, their ETag, and compression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from aiohttp import hdrs, web

from planner.model.network import Snapshot
from relayd.http.responses.compression import (
    LEAST_BYTES,
    accepts_gzip,
    compressed_response,
    is_known,
    tag_of,
)
from relayd.http.responses.encoding import encoded

JSON = "application/json"
SNAPSHOT_ID = "Relayd-Snapshot"
SNAPSHOT_AS_OF = "Relayd-As-Of"


def json_response(
    body: bytes, snapshot: Snapshot, *, status: int = 200, cache: str | None = None
) -> web.Response:
    """Return a JSON document with its snapshot in the headers."""
    headers = {SNAPSHOT_ID: snapshot.id, SNAPSHOT_AS_OF: snapshot.as_of, hdrs.CONTENT_TYPE: JSON}
    if cache:
        headers[hdrs.CACHE_CONTROL] = cache
    return web.Response(body=body, status=status, headers=headers)


def document_response(
    snapshot: Snapshot, content: Mapping[str, Any], *, status: int = 200
) -> web.Response:
    """Return a JSON document that names its snapshot, in the document and in the headers."""
    return json_response(encoded({"snapshot": snapshot, **content}), snapshot, status=status)


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


def tagged_response(request: web.Request, body: bytes, snapshot: Snapshot) -> web.Response:
    """Return a document with its ETag, or 304 if the client has it already (RFC 9110, 13.1.2).

    A document that takes more than a packet is compressed if the client accepts that.
    """
    plain_tag = f'"{blake2b(body, digest_size=12).hexdigest()}"'
    is_large = len(body) >= LEAST_BYTES
    compressed = is_large and accepts_gzip(request.headers.get(hdrs.ACCEPT_ENCODING))
    headers = {
        SNAPSHOT_ID: snapshot.id,
        SNAPSHOT_AS_OF: snapshot.as_of,
        hdrs.ETAG: tag_of(plain_tag, compressed=compressed),
        hdrs.CACHE_CONTROL: "private, no-cache",
    }
    if is_large:
        headers[hdrs.VARY] = hdrs.ACCEPT_ENCODING
    if is_known(request.headers.get(hdrs.IF_NONE_MATCH), plain_tag):
        return web.Response(status=304, headers=headers)
    headers[hdrs.CONTENT_TYPE] = JSON
    if compressed:
        return compressed_response(body, headers=headers)
    return web.Response(body=body, headers=headers)
