"""A route: how its requests are read, within limits, and how its answers are sent.

JSON is read more strictly than the standard library does: what two readers may understand
differently is refused, such as the same key twice, NaN and Infinity.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from inspect import cleandoc
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from aiohttp import ETag, hdrs, web
from pydantic import BaseModel, ValidationError

from planner.fields import json_text
from planner.fields.kinds import ByPlace
from planner.fields.specified import Items, Specified, fields_of
from planner.model.document import Buffer
from planner.model.errors import InputError
from planner.model.network import Snapshot
from relayd.http.access import SAFE_METHODS
from relayd.http.answers import encoded
from relayd.http.problems import ProblemError, invalid
from relayd.http.service import Current, Service
from relayd.http.settings import ServiceSettings
from relayd.questions.question import Question
from relayd.store import Store
from relayd.store.tokens import Scope

LOG = logging.getLogger(__name__)
T = TypeVar("T")
ID_KEY = "request_id"
JSON, NDJSON = "application/json", "application/x-ndjson"
EVENT_STREAM = "text/event-stream"
MOST_QUERY = 100
"""Parameters of a query string."""
MOST_DEPTH = 32
"""Levels of a JSON document."""
_TOO_DEEP = f"nests deeper than {MOST_DEPTH} levels"
WRITE_TIMEOUT_S = 30.0
"""Longest time that a reader may leave an answer unread."""
PART_BYTES = 1 << 18
"""Parts of a stream that are smaller are sent together."""
VARY = f"{hdrs.AUTHORIZATION}, {hdrs.COOKIE}, {hdrs.ACCEPT_ENCODING}"
"""Request headers that answers with an ETag depend on."""
LEAST_COMPRESSED_BYTES = 1400
"""A body that fits into one packet arrives no sooner for being shorter."""
LEAST_BYTES_FOR_A_THREAD = 100_000
"""From here on a thread compresses: 100 kB take some 2 ms."""
Model: TypeAlias = type[BaseModel] | type[Specified]


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request that was read and checked, and the service that answers it."""

    service: Service
    current: Current  # the state of knowledge that the answer rests on
    request: web.Request
    query: Any = None
    body: Any = None  # instances of the route's models; of a question, its request

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that the answer names."""
        return self.current.snapshot

    async def read(self, function: Callable[[Store], T]) -> T:
        """Read from the store; see :meth:`.StoreAccess.read`."""
        return await self.service.store.read(function)

    async def ask(self, question: Callable[..., T], *arguments: Any) -> T:
        """Let a worker answer; see :meth:`.Workers.ask`."""
        return await self.service.workers.ask(self.current.version, question, *arguments)

    async def ask_once(self, key: str, question: Callable[..., bytes], *arguments: Any) -> bytes:
        """Let a worker answer, once for each state of knowledge."""
        if (body := self.current.answers.get(key)) is None:
            body = await self.ask(question, *arguments)
            self.current.answers.keep(key, body)
        return body


Content: TypeAlias = Mapping[str, Any] | bytes | tuple[Snapshot, bytes] | web.StreamResponse
Handler: TypeAlias = Callable[[RequestContext], Awaitable[Content]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path."""

    method: str
    path: str
    handler: Handler
    """Returns a document without its snapshot, the bytes of a whole one, these with another
    snapshot than the current one, or a response."""
    summary: str
    scope: Scope | None = None  # that a token needs; None for a route that is open to everyone
    description: str = ""
    query: Model | None = None
    body: Model | None = None  # a body may be specified by fields, as a question's is
    question: Question | None = None
    """Whose request is in the query string of GET, in the body of POST."""
    example: Mapping[str, Any] | None = None  # a body that can be sent; a question has its own
    answer: Any = None  # of a JSON answer
    media_type: str = JSON  # of the answer
    body_types: tuple[str, ...] = (JSON,)
    """Media types of the body; where there are several, the handler reads it."""
    is_file: bool = False  # whether the body holds a file, and may be as large as one of samples
    success: int = 200
    etag: bool = False  # whether If-None-Match is honoured
    unlimited: bool = False  # whether rate limits leave it out
    also_schemas: tuple[type[BaseModel], ...] = ()  # models that the body's model refers to by name
    operation_id: str = ""  # the name of the handler unless stated
    documented: bool = True  # whether it is in the description of the API; pages for people are not
    internal: bool = False  # whether it serves the dashboard alone, and may change with it

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

    async def answered(self, service: Service, request: web.Request) -> web.StreamResponse:
        """Read a request, and return the response to it."""
        query = read_query(request, self.query) if self.documented else None
        body = None
        if self.body is not None and len(self.body_types) == 1:
            check_media_type(request, self.body_types)
            settings = service.settings
            body = await read_document(request, settings, self.body, is_file=self.is_file)
        context = RequestContext(service, service.current, request, query, body)
        content = await self.handler(context)
        if isinstance(content, web.StreamResponse):
            return content
        snapshot, content = content if isinstance(content, tuple) else (context.snapshot, content)
        response = document_response(snapshot, content, status=self.success)
        if self.etag:
            # Going back shows what is cached: not to who has signed out since.
            response.headers[hdrs.CACHE_CONTROL] = "private, no-cache"
            response.headers[hdrs.VARY] = VARY
            assert isinstance(response.body, bytes)
            tag = blake2b(response.body, digest_size=12).hexdigest()
            if self.question is None:  # compressing a plan takes as long as planning
                response = compressed(response)
            return tagged_response(request, response, tag)
        return response


def route(
    method: str, path: str, scope: Scope | None = None, answer: Any = None, /, **options: Any
) -> Callable[[Handler], Route]:
    """Make a handler a route; its docstring has the summary, unless a question has, and more.

    Options are further attributes of :class:`Route`.
    """

    def declared(handler: Handler) -> Route:
        summary, _, text = cleandoc(handler.__doc__ or "").partition("\n\n")
        about = {"description": " ".join(text.split()), "answer": answer} | options
        if question := options.get("question"):
            summary = question.summary
            about["query" if method == "GET" else "body"] = question.request
        return Route(method, path, handler, summary.removesuffix("."), scope, **about)

    return declared


# ---- requests ----------------------------------------------------------------------------------


def read_query(request: web.Request, model: Model | None) -> Any:
    """Return the query string as a model; without one, nothing may be asked.

    Raises InputError if a parameter is unknown, wrong, or given twice where one is meant.
    """
    text = request.rel_url.raw_query_string
    if model is None:
        if text:
            first = text.partition("=")[0][:50]
            raise InputError("query", "takes no parameters", value=first)
        return None
    try:
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            strict_parsing=bool(text),
            errors="strict",
            max_num_fields=MOST_QUERY,
        )
    except ValueError:
        raise InputError("query", "is not a query string such as a=1&b=2") from None
    known: Mapping[str, Any]
    if issubclass(model, Specified):
        known = {field.key: field.kind for field in fields_of(model).values()}
        remedy, passes = "Send a JSON body.", True  # what is unknown, the question refuses
    else:
        known, passes = model.model_fields, False
        remedy = f"Parameters are {', '.join(known)}."
    content: dict[str, Any] = {}
    for name, value in pairs:
        kind = known.get(name)
        if isinstance(kind, ByPlace | Items) or not (kind or passes):
            raise InputError(name[:100], "is not a parameter of this path", remedy=remedy)
        if getattr(kind, "repeated", False):
            content.setdefault(name, []).append(value)
        elif name in content:
            raise InputError(name, "is given twice", value=value)
        else:
            content[name] = value
    return as_model(content, model, strict=False)


def as_model(value: Any, model: Model, *, strict: bool = True) -> Any:
    """Return a JSON value as an instance of a model, or raise an InputError."""
    if issubclass(model, Specified):
        return model.from_json(value)
    try:
        return model.model_validate(value, strict=strict)
    except ValidationError as error:
        raise invalid(error) from None


def check_media_type(request: web.Request, allowed: tuple[str, ...]) -> str:
    """Return the body's media type.

    Raises a ProblemError (415) if it is none of those allowed, not in UTF-8, or compressed.
    """
    found = request.content_type.lower()
    problem = ""
    if hdrs.CONTENT_TYPE not in request.headers or found not in allowed:
        problem = f"Send the body as {' or '.join(allowed)}."
    elif (request.charset or "utf-8").lower() not in ("utf-8", "utf8"):
        problem = "Send the body in UTF-8."
    elif request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        problem = "Send the body as it is, not compressed."
    if problem:
        raise ProblemError(415, "media-type", problem, headers={"Accept-Post": ", ".join(allowed)})
    return found


async def read_document(
    request: web.Request, settings: ServiceSettings, model: Model, *, is_file: bool = False
) -> Any:
    """Return a JSON body, small enough and in time, as an instance of a model."""
    most_mb = settings.samples_mb if is_file else settings.body_mb
    parts = read_parts(request, most_mb, settings.read_timeout_s)
    content = b"".join([part async for part in parts])
    if len(content) < PART_BYTES:  # read sooner than a thread begins
        return as_model(read_json(content), model)
    return await asyncio.to_thread(lambda: as_model(read_json(content), model))


async def read_parts(
    request: web.Request, most_mb: float, timeout_s: float
) -> AsyncIterator[bytes]:
    """Yield a body as it comes.

    Raises ProblemError: 413 once it is larger than it may be, 408 if it takes too long in all.
    """
    declared, read = request.content_length or 0, 0
    deadline_s = asyncio.get_running_loop().time() + timeout_s
    try:
        while True:
            if max(declared, read) > most_mb * 1e6:
                detail = f"The body is larger than the {most_mb:g} MB it may have."
                raise ProblemError(413, "too-large", detail)
            async with asyncio.timeout_at(deadline_s):
                part = await request.content.readany()
            if not part:
                return
            read += len(part)
            if read <= most_mb * 1e6:
                yield part
    except TimeoutError:
        detail = f"The body did not come within {timeout_s:g} s."
        raise ProblemError(408, "timeout", detail) from None
    except (web.RequestPayloadError, ConnectionError):  # the sender may have gone
        raise ProblemError(400, "malformed", "The body ended early or is garbled.") from None


def read_json(content: bytes, what: str = "The body") -> Any:
    """Return the value of a JSON document.

    Raises ProblemError: 400 where it is not JSON (RFC 8259), not UTF-8, names a key twice, or nests
    too deep.
    """
    try:
        value = json_text.read_json(content)
        # Few brackets can't nest deep.
        if content.count(b"{") + content.count(b"[") > MOST_DEPTH:
            _refuse_deep(value, MOST_DEPTH)
    except ValueError as error:
        deep = isinstance(error.__cause__, RecursionError)
        raise ProblemError(400, "malformed", f"{what} {_TOO_DEEP if deep else error}.") from None
    return value


def _refuse_deep(value: Any, levels: int) -> None:
    if isinstance(value, dict | list):
        if not levels:
            raise ValueError(_TOO_DEEP)
        for inner in value.values() if isinstance(value, dict) else value:
            _refuse_deep(inner, levels - 1)


# ---- documents ---------------------------------------------------------------------------------


def snapshot_headers(snapshot: Snapshot) -> dict[str, str]:
    """Return the headers that name a snapshot."""
    return {"Relayd-Snapshot": snapshot.id, "Relayd-As-Of": snapshot.as_of}


def document_response(
    snapshot: Snapshot,
    content: Mapping[str, Any] | bytes,
    *,
    status: int = 200,
    location: str | None = None,
) -> web.Response:
    """Return a JSON document that names its snapshot, in the document and in the headers."""
    headers = snapshot_headers(snapshot)
    if location is not None:
        headers[hdrs.LOCATION] = location
    if not isinstance(content, bytes):
        content = encoded({"snapshot": snapshot, **content})
    return web.Response(body=content, status=status, content_type=JSON, headers=headers)


def tagged_response(
    request: web.Request, response: web.StreamResponse, tag: str
) -> web.StreamResponse:
    """Give a response a weak ETag; 304 in its place if the client has it (RFC 9110, 13.1.2)."""
    if any(known.value in (tag, "*") for known in request.if_none_match or ()):
        headers = {k: v for k, v in response.headers.items() if k != hdrs.CONTENT_TYPE}
        response = web.Response(status=304, headers=headers)
    response.etag = ETag(tag, is_weak=True)
    return response


def compressed(response: web.Response) -> web.Response:
    """Compress a response for clients that accept it, unless it is small."""
    if isinstance(response.body, bytes) and len(response.body) >= LEAST_COMPRESSED_BYTES:
        response.headers.setdefault(hdrs.VARY, hdrs.ACCEPT_ENCODING)
        response._zlib_executor_size = LEAST_BYTES_FOR_A_THREAD
        response.enable_compression()
    return response


# ---- streams -----------------------------------------------------------------------------------


async def streamed_response(
    request: web.Request, parts: Iterable[Buffer], response: web.StreamResponse
) -> web.StreamResponse:
    """Send an answer that is made meanwhile, in threads: only a part of it is in memory."""
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
    waiting = bytearray()
    for part in parts:
        waiting += part
        if len(waiting) >= PART_BYTES:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


def json_parts(members: Iterable[tuple[str, Any]]) -> Iterator[bytes]:
    """Yield a JSON object piece by piece.

    An iterator as a value stands for a list, of which it yields parts, lists themselves.
    """
    before = b"{"
    for name, value in members:
        yield before + encoded(name) + b":"
        before = b","
        if not isinstance(value, Iterator):
            yield encoded(value)
            continue
        comma = b"["
        for part in filter(None, value):
            yield comma + encoded(part)[1:-1]
            comma = b","
        yield b"[]" if comma == b"[" else b"]"
    yield b"}"


# ---- pages of lists ----------------------------------------------------------------------------


def cursor(*parts: str | float) -> str:
    """Return a cursor for the last entry of a page: the position where it ended, opaque."""
    return base64.urlsafe_b64encode(encoded(parts)).decode()


def page_of(
    name: str,
    rows: list[T],
    limit: int,
    end_of: Callable[[T], tuple[str | float, ...]],
    shown: Callable[[T], Any] = lambda row: row,
) -> dict[str, Any]:
    """Return a page under its name, and its cursor if there is one row more than it holds.

    ``end_of`` gives the parts of the cursor of a row, and ``shown`` a row as the page has it.
    """
    page = rows[:limit]
    more = cursor(*end_of(page[-1])) if len(rows) > limit else None
    return {name: [shown(row) for row in page], "next_cursor": more}


def position(text: str | None, *kinds: type) -> Any:
    """Return the parts, of these types, or the only one that :func:`cursor` was given.

    None stands for the first page.

    Raises InputError if it is not a cursor of this path.
    """
    if text is None:
        return None
    try:
        parts = json.loads(base64.b64decode(text.encode(), altchars=b"-_", validate=True))
    except ValueError:
        parts = None
    is_ours = isinstance(parts, list) and [*map(type, parts)] == [*kinds]
    if is_ours and all(abs(part) < 2**63 for part in parts if isinstance(part, int)):
        return parts if len(parts) > 1 else parts[0]
    remedy = "Give `next_cursor` of the page before, or none for the first page."
    raise InputError("cursor", "is not one that this path gave", value=text, remedy=remedy)
