"""Reading a request by its route's models, within limits: query string, body, JSON.

JSON is read more strictly than the standard library does: what two readers may understand
differently is refused, such as the same key twice, NaN and Infinity.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection
from typing import Any
from urllib.parse import parse_qsl

from aiohttp import hdrs, web
from pydantic import BaseModel, ValidationError

from planner.fields.kinds import ByPlace
from planner.fields.specified import Items, Specified, fields_of
from planner.model.errors import InputError
from relayd.http.problems import ProblemError, invalid
from relayd.questions.registry import Question

JSON, NDJSON = "application/json", "application/x-ndjson"
MOST_QUERY = 100
"""Parameters of a query string."""
MOST_DEPTH = 32
"""Of a JSON document."""
_TOO_DEEP = f"nests deeper than {MOST_DEPTH} levels"


def read_query(request: web.Request, model: type[BaseModel] | None) -> Any:
    """Return the query string as a model; without one, nothing may be asked.

    Raises
    ------
    InputError
        If a parameter is unknown, wrong, or given twice where one is meant.
    """
    if model is None:
        if text := request.rel_url.raw_query_string:
            first = text.partition("=")[0][:50]
            raise InputError("query", "takes no parameters", value=first)
        return None
    fields = model.model_fields
    content = _content(request, [name for name in fields if isinstance(fields[name].default, list)])
    for name in content:
        if name not in fields:
            raise InputError(
                name[:100],
                "is not a parameter of this path",
                remedy=f"Parameters are {', '.join(fields)}.",
            )
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise invalid(error) from None


def read_question(request: web.Request, question: Question) -> Specified:
    """Return the request of a question that a query string holds.

    Raises
    ------
    InputError
        If a parameter is unknown, wrong, or given twice where one is meant.
    """
    known = {field.key: field.kind for field in fields_of(question.request).values()}
    content = _content(request, [name for name, kind in known.items() if kind.repeated])
    for name in content:
        if isinstance(known.get(name), ByPlace | Items):
            raise InputError(name, "is not a parameter of this path", remedy="Send a JSON body.")
    return question.request.from_json(content)


def _content(request: web.Request, repeated: Collection[str]) -> dict[str, Any]:
    """Return the parameters of a query string; those that may be repeated as lists."""
    text = request.rel_url.raw_query_string
    try:
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            strict_parsing=bool(text),
            errors="strict",
            max_num_fields=MOST_QUERY,
        )
    except (ValueError, UnicodeDecodeError):
        raise InputError("query", "is not a query string such as a=1&b=2") from None
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in repeated:
            content.setdefault(name, []).append(value)
        elif name in content:
            raise InputError(name, "is given twice", value=value)
        else:
            content[name] = value
    return content


async def read_body(request: web.Request, most_bytes: int, timeout_s: float) -> Any:
    """Return the JSON value in the body."""
    check_media_type(request, (JSON,))
    return read_json(await read_bytes(request, most_bytes, timeout_s))


def as_model(value: Any, model: type[BaseModel]) -> Any:
    """Return a JSON value as a model."""
    try:
        return model.model_validate(value, strict=True)
    except ValidationError as error:
        raise invalid(error) from None


def check_media_type(request: web.Request, allowed: tuple[str, ...]) -> str:
    """Return the body's media type.

    Raises
    ------
    ProblemError
        415 if it is none of those allowed, or compressed.
    """
    found = request.content_type.lower()
    if hdrs.CONTENT_TYPE not in request.headers or found not in allowed:
        raise ProblemError(
            415,
            "media-type",
            f"Send the body as {' or '.join(allowed)}.",
            headers={"Accept-Post": ", ".join(allowed)},
        )
    charset = request.charset
    if charset is not None and charset.lower() not in ("utf-8", "utf8"):
        raise ProblemError(415, "media-type", "Send the body in UTF-8.")
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise ProblemError(415, "media-type", "Send the body as it is, not compressed.")
    return found


async def read_bytes(request: web.Request, most_bytes: int, timeout_s: float) -> bytes:
    """Return a body that is small enough and comes in time."""
    parts = [part async for part in read_parts(request, most_bytes, timeout_s)]
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def read_parts(
    request: web.Request, most_bytes: int, timeout_s: float
) -> AsyncIterator[bytes]:
    """Yield a body as it comes.

    Raises
    ------
    ProblemError
        413 once it is larger than it may be, 408 if it takes too long in all.
    """
    declared = request.content_length
    if declared is not None and declared > most_bytes:
        raise _too_large(most_bytes)
    seen = 0
    deadline_s = asyncio.get_running_loop().time() + timeout_s
    try:
        while True:
            async with asyncio.timeout_at(deadline_s):
                part = await request.content.readany()
            if not part:
                return
            seen += len(part)
            if seen > most_bytes:
                raise _too_large(most_bytes)
            yield part
    except TimeoutError:
        raise ProblemError(
            408, "timeout", f"The body did not come within {timeout_s:g} s."
        ) from None
    except (web.RequestPayloadError, ConnectionError):  # the sender may have gone
        raise ProblemError(400, "malformed", "The body ended early or is garbled.") from None


def _too_large(most_bytes: int) -> ProblemError:
    return ProblemError(
        413, "too-large", f"The body is larger than the {most_bytes / 1e6:g} MB it may have."
    )


def read_json(content: bytes, what: str = "The body") -> Any:
    """Return the value of a JSON document.

    Raises
    ------
    ProblemError
        400 where it is not JSON (RFC 8259), not UTF-8, names a key twice, or nests too deep.
    """
    try:
        text = content.decode()
        found = json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)
        # Few brackets can't nest deep.
        if content.count(b"{") + content.count(b"[") > MOST_DEPTH:
            _refuse_deep(found, MOST_DEPTH)
    except UnicodeDecodeError as error:
        raise _malformed(what, f"is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        where = f"{error.msg}, line {error.lineno} column {error.colno}"
        raise _malformed(what, f"is not JSON: {where}") from None
    except RecursionError:
        raise _malformed(what, _TOO_DEEP) from None
    except ValueError as error:
        raise _malformed(what, str(error)) from None
    return found


def _refuse_deep(value: Any, levels: int) -> None:
    if isinstance(value, dict | list):
        if not levels:
            raise ValueError(_TOO_DEEP)
        for inner in value.values() if isinstance(value, dict) else value:
            _refuse_deep(inner, levels - 1)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"names the key {key[:80]!r} twice")
            seen.add(key)
    return found


def _refused(constant: str) -> None:
    raise ValueError(f"is not JSON: {constant} is not a number there")


def _malformed(what: str, problem: str) -> ProblemError:
    return ProblemError(400, "malformed", f"{what} {problem}.")
