"""A route and the context of a request: handler, models and scope, declared in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any, TypeAlias

from aiohttp import web
from pydantic import BaseModel

from planner.fields.specified import Specified
from relayd.http.browsers import SAFE_METHODS
from relayd.http.responses import JSON
from relayd.http.service import Service
from relayd.questions.registry import Question
from relayd.store.tokens import Scope

ID_KEY = "request_id"
NDJSON = "application/x-ndjson"
EVENT_STREAM = "text/event-stream"


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request that was read and checked, and the service that answers it.

    Attributes
    ----------
    query, body
        Instances of the route's models; of a question, its request.
    """

    service: Service
    request: web.Request
    query: Any = None
    body: Any = None

    @property
    def request_id(self) -> str:
        """The id of the request in logs and problems."""
        return str(self.request[ID_KEY])


Handler: TypeAlias = Callable[[RequestContext], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path.

    Attributes
    ----------
    handler : callable
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
    raw_body : bool
        Whether the handler reads the body itself.
    body_types : tuple of str
        Media types of the body.
    statuses : tuple of int
        Of problems, in addition to those that every route may have.
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
    raw_body: bool = False
    body_types: tuple[str, ...] = (JSON,)
    statuses: tuple[int, ...] = ()
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


def route(
    method: str, path: str, scope: Scope | None = None, **options: Any
) -> Callable[[Handler], Route]:
    """Make a handler a route; its docstring has the summary, unless a question has, and more.

    Parameters
    ----------
    method, path, scope
    **options
        Further attributes of :class:`Route`.
    """

    def declared(handler: Handler) -> Route:
        summary, _, text = cleandoc(handler.__doc__ or "").partition("\n\n")
        if question := options.get("question"):
            summary = question.summary
        about = {"description": " ".join(text.split())} | options
        return Route(method, path, handler, summary.removesuffix("."), scope, **about)

    return declared
