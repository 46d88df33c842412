"""A route and its answers: what a path takes and gives, JSON with its snapshot, ETags, pages."""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from inspect import cleandoc
from typing import Any, TypeAlias, TypeVar

from aiohttp import ETag, hdrs, web
from pydantic import BaseModel

from planner.fields.specified import Specified
from planner.model.document import Buffer
from planner.model.errors import InputError
from planner.model.network import Snapshot
from relayd.http.access import SAFE_METHODS
from relayd.http.answers import encoded
from relayd.http.current_state import Current
from relayd.http.reading import JSON
from relayd.http.service import Service
from relayd.questions.registry import Question
from relayd.store.tokens import Scope

LOG = logging.getLogger(__name__)
T = TypeVar("T")
ID_KEY = "request_id"
EVENT_STREAM = "text/event-stream"
WRITE_TIMEOUT_S = 30.0
"""Longest time that a reader may leave an answer unread."""
PART_BYTES = 1 << 18
"""Parts of a stream that are smaller are sent together."""
LEAST_COMPRESSED_BYTES = 1400
"""A body that fits into one packet arrives no sooner for being shorter."""
LEAST_BYTES_FOR_A_THREAD = 100_000
"""From here on a thread compresses: 100 kB take some 2 ms."""


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request that was read and checked, and the service that answers it.

    Attributes
    ----------
    current : Current
        The state of knowledge that the answer rests on.
    query, body
        Instances of the route's models; of a question, its request.
    """

    service: Service
    current: Current
    request: web.Request
    query: Any = None
    body: Any = None

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that the answer names."""
        return self.current.snapshot


Content: TypeAlias = Mapping[str, Any] | bytes | web.StreamResponse
Handler: TypeAlias = Callable[[RequestContext], Awaitable[Content]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path.

    Attributes
    ----------
    handler : callable
        Returns a document without its snapshot, the bytes of a whole one, or a response.
    summary, description : str
    scope : Scope | None
        That a token needs; None for a route that is open to everyone.
    query, body : type of BaseModel, optional
        A body may be specified by fields, as a question's is.
    question : Question, optional
        Whose request is in the query string of GET, in the body of POST.
    example : mapping, optional
        A body that can be sent; a question has its own.
    answer : type, optional
        Of a JSON answer.
    media_type : str
        Of the answer.
    body_types : tuple of str
        Media types of the body; where there are several, the handler reads it.
    etag : bool
        Whether If-None-Match is honoured.
    unlimited : bool
        Whether rate limits leave it out.
    also_schemas : tuple
        Models that the body's model refers to by name.
    operation_id : str
        The name of the handler unless stated.
    documented : bool
        Whether it is in the description of the API; pages for people are not.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    scope: Scope | None = None
    description: str = ""
    query: type[BaseModel] | None = None
    body: type[BaseModel] | type[Specified] | None = None
    question: Question | None = None
    example: Mapping[str, Any] | None = None
    answer: Any = None
    media_type: str = JSON
    body_types: tuple[str, ...] = (JSON,)
    success: int = 200
    etag: bool = False
    unlimited: bool = False
    also_schemas: tuple[type[BaseModel], ...] = ()
    operation_id: str = ""
    documented: bool = True

    @property
    def name(self) -> str:
        """The operation's id."""
        return self.operation_id or self.handler.__name__

    @property
    def changes(self) -> bool:
        """Whether it changes what the service knows or does; a question sent by POST does not."""
        return self.method not in SAFE_METHODS and self.scope not in (None, "read", "plan")

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of what varies in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    async def answered(self, context: RequestContext) -> web.StreamResponse:
        """Return the response to a request."""
        found = await self.handler(context)
        if isinstance(found, web.StreamResponse):
            return found
        body, snapshot = found, context.snapshot
        if not isinstance(body, bytes):
            body = encoded({"snapshot": snapshot, **body})
        if self.etag:
            return tagged_response(context.request, body, snapshot)
        return json_response(body, snapshot, status=self.success)


def route(
    method: str, path: str, scope: Scope | None = None, answer: Any = None, /, **options: Any
) -> Callable[[Handler], Route]:
    """Make a handler a route; its docstring has the summary, unless a question has, and more.

    Parameters
    ----------
    method, path, scope, answer
    **options
        Further attributes of :class:`Route`.
    """

    def declared(handler: Handler) -> Route:
        summary, _, text = cleandoc(handler.__doc__ or "").partition("\n\n")
        if question := options.get("question"):
            summary = question.summary
        about = {"description": " ".join(text.split()), "answer": answer} | options
        return Route(method, path, handler, summary.removesuffix("."), scope, **about)

    return declared


# ---- documents ---------------------------------------------------------------------------------


def json_response(body: bytes, snapshot: Snapshot, *, status: int = 200) -> web.Response:
    """Return a JSON document with its snapshot in the headers."""
    return web.Response(
        body=body, status=status, content_type=JSON, headers=snapshot_headers(snapshot)
    )


def snapshot_headers(snapshot: Snapshot) -> dict[str, str]:
    """Return the headers that name a snapshot."""
    return {"Relayd-Snapshot": snapshot.id, "Relayd-As-Of": snapshot.as_of}


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
    """Compress a response for clients that accept it, unless it is small.

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


# ---- streams -----------------------------------------------------------------------------------


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
    except Exception as error:
        if not isinstance(error, TimeoutError | ConnectionError):  # the reader has not gone
            LOG.exception("fault")
        if request.transport is not None:  # so that a part of a document is not taken for all
            request.transport.abort()
    return response


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


# ---- pages of lists ----------------------------------------------------------------------------


def cursor(*parts: str | int) -> str:
    """Return a cursor for the last entry of a page: the position where it ended, opaque."""
    return base64.urlsafe_b64encode("\n".join(str(part) for part in parts).encode()).decode()


def page_of(
    name: str,
    found: list[T],
    limit: int,
    end_of: Callable[[T], tuple[str | int, ...]],
    seen: Callable[[T], Any] = lambda entry: entry,
) -> dict[str, Any]:
    """Return a page under its name, and its cursor if more was found than the page holds.

    Parameters
    ----------
    found : list
        One entry more than the page, if there are as many.
    limit : int
        Entries of the page.
    end_of : callable
        The parts of the cursor of an entry.
    seen : callable
        An entry as the page has it.
    """
    page = found[:limit]
    more = cursor(*end_of(page[-1])) if len(found) > limit else None
    return {name: [seen(entry) for entry in page], "next_cursor": more}


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
