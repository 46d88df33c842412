"""What is said of a route in one place: its handler, its models, its scope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

from relayd.store.tokens import Scope

if TYPE_CHECKING:
    from pydantic import BaseModel

    from relayd.http.server.service import Service

ID_KEY = "request_id"
JSON = "application/json"
NDJSON = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Ask:
    """A request after it was read and checked.

    Attributes
    ----------
    query, body
        Instances of the route's models.
    """

    service: Service
    request: web.Request
    query: Any = None
    body: Any = None

    @property
    def request_id(self) -> str:
        """Names the request in logs and problems."""
        return str(self.request[ID_KEY])


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path.

    Attributes
    ----------
    handler : callable
    summary, description : str
    scope : Scope | None
        What a token needs; None for what anyone may ask.
    query, body : type of BaseModel, optional
    answer : type, optional
        Of a JSON answer.
    media_type : str
        Of the answer.
    raw_body : bool
        The handler reads the body itself.
    body_types : tuple of str
        Media types of the body.
    statuses : tuple of int
        Of problems, beside those that every route may have.
    quick : callable, optional
        Tried before anything is read; answers what was answered before.
    etag : bool
        Whether If-None-Match is honoured.
    unlimited : bool
        Not subject to rate limits.
    also : tuple
        Models that the body's model refers to by name.
    called : str
        The operation's id, where one handler has several; else the handler's name.
    listed : bool
        Whether the description of the API tells of it; pages for people are not part of it.
    """

    method: str
    path: str
    handler: Callable[[Ask], Awaitable[web.StreamResponse]]
    summary: str
    scope: Scope | None = None
    description: str = ""
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    answer: Any = None
    media_type: str = JSON
    raw_body: bool = False
    body_types: tuple[str, ...] = (JSON,)
    statuses: tuple[int, ...] = ()
    success: int = 200
    quick: Callable[[Service, web.Request], web.Response | None] | None = None
    etag: bool = False
    unlimited: bool = False
    also: tuple[type[BaseModel], ...] = ()
    called: str = ""
    listed: bool = True

    @property
    def name(self) -> str:
        """The operation's id."""
        return self.called or self.handler.__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of what varies in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))
