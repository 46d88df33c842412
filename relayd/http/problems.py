"""Errors as problem documents (RFC 9457): one mapping for every endpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from planner.model.errors import (
    AmbiguousRegionError,
    DataError,
    InfeasibleError,
    InputError,
    RelaydError,
    StoreError,
    UnknownRegionError,
)

MEDIA_TYPE = "application/problem+json"
MOST_SHOWN = 200

_TITLES = {
    "input": "The request is not valid",
    "unknown-region": "No such region or alias",
    "ambiguous-region": "The name fits several regions",
    "infeasible": "No plan meets the limits",
    "data": "Measurements are missing or too old",
    "store": "The store can't be used",
    "not-found": "Nothing is here",
    "method-not-allowed": "This method is not for this path",
    "unauthorized": "A valid token is needed",
    "forbidden": "The token may not do this",
    "cross-origin": "Pages of this origin may not do this",
    "misdirected": "The service does not go by this name",
    "too-large": "The request is too large",
    "media-type": "The body is of the wrong type",
    "timeout": "It took too long",
    "rate-limited": "Too many requests",
    "conflict": "It can't be done now",
    "no-room": "Transfers under way leave too little",
    "unavailable": "The service can't do this now",
    "malformed": "The request can't be read",
    "internal": "The service failed",
}
if TYPE_CHECKING:
    Kind: TypeAlias = str
else:
    Kind = Literal[tuple(_TITLES)]


class Problem(BaseModel):
    """A problem, for people and programs."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    type: str = Field(description="`urn:relayd:problem:` and the kind.")
    title: str = Field(description="The kind in words.")
    status: int
    detail: str = Field(description="One paragraph: what, with which value, and what to do.")
    kind: Kind = Field(description="Tells kinds of problems apart.")
    request_id: str | None = Field(None, description="Names the request in the logs.")
    field: str | None = Field(None, description="The field at fault.")
    problem: str | None = Field(None, description="What is wrong with the field.")
    value: Any = Field(None, description="The value at fault, shortened.")
    remedy: str | None = Field(None, description="What to do about it.")
    near: list[str] | None = Field(None, description="Names that are close to an unknown one.")
    matches: list[str] | None = Field(None, description="What an ambiguous name may mean.")
    limit: str | None = Field(None, description="The limit that no plan meets.")
    change: dict[str, float] | None = Field(None, description="Fields that allow a plan, if so.")
    starts_at_s: float | None = Field(
        None, description="When transfers under way leave enough by their forecasts; Unix time."
    )


class ProblemError(Exception):
    """An answer that is a problem, with one paragraph for a person, and further members.

    After `retry_s` seconds it may be asked again.
    """

    def __init__(
        self,
        status: int,
        kind: Kind,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        retry_s: int | None = None,
        **members: Any,
    ) -> None:
        super().__init__(status, kind, detail)  # what pickling makes it of, in workers
        self.status = status
        self.headers = dict(headers or {})
        if retry_s is not None:
            self.headers["Retry-After"] = str(retry_s)
        self.content: dict[str, Any] = {
            "type": f"urn:relayd:problem:{kind}",
            "title": _TITLES[kind],
            "status": status,
            "detail": detail,
            "kind": kind,
            **{name: value for name, value in members.items() if value is not None},
        }

    def __str__(self) -> str:
        return str(self.content["detail"])


def problem_of(error: Exception) -> ProblemError:
    """Return the problem that any exception is; what was not raised on purpose is a 500."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, StoreError):  # of the server, not of the request: its path stays private
        text = f"The store can't be used: it {error.problem.split(':')[0]}."
        return ProblemError(503, "store", text, retry_s=5)
    for kind, (of, status) in _KINDS.items():
        if isinstance(error, of):
            return ProblemError(status, kind, str(error), **members_of(error))
    from aiohttp import web  # here, as workers have problems, too, and nothing else of it

    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        problem = f"Use {allowed}."
        return ProblemError(405, "method-not-allowed", problem, headers={"Allow": allowed})
    if isinstance(error, web.HTTPNotFound):
        return ProblemError(404, "not-found", "There is no such path; /docs lists all.")
    if isinstance(error, web.HTTPException):
        return ProblemError(error.status, "malformed", error.reason)
    problem = "This is a fault of the service; its log names it by the request id."
    return ProblemError(500, "internal", problem)


def members_of(error: RelaydError) -> dict[str, Any]:
    """Return what an error tells besides its text, as members of a problem."""
    told = {name: value for name, value in vars(error).items() if name in Problem.model_fields}
    return told | {"value": _shown(told.get("value"))}


_KINDS: Mapping[Kind, tuple[type[RelaydError], int]] = {
    "unknown-region": (UnknownRegionError, 422),
    "ambiguous-region": (AmbiguousRegionError, 422),
    "input": (InputError, 422),
    "infeasible": (InfeasibleError, 422),
    "data": (DataError, 409),
    "internal": (RelaydError, 500),
}


def invalid(error: ValidationError) -> InputError:
    """Return the first error of pydantic as an error of the library."""
    first = error.errors(include_url=False, include_context=False)[0]
    # Alternatives of a union are named in the place: `time_value_usd_per_h.float`. Where they have
    # validators, their name is code: `function-after[...]`.
    name, *inside = [str(part) for part in first["loc"]] or [""]
    place = [name, *(part for part in inside if "[" not in part)]
    field = ".".join(place[:6])[:MOST_SHOWN] or "body"
    others = error.error_count() - 1
    remedy = f"{others} more of its fields are wrong too." if others > 0 else None
    missing = first["type"] == "missing"
    message = "is missing" if missing else _clause(first["msg"])
    return InputError(
        field, message, value=None if missing else _shown(first["input"]), remedy=remedy
    )


def _clause(message: str) -> str:
    """Return a sentence of pydantic's as a clause that follows a field's name."""
    if message.startswith("Input should be a valid dictionary"):
        return "must be an object"
    for start, ours in (("Input should be", "must be"), ("Extra inputs are not", "is not")):
        if message.startswith(start):
            return ours + message.removeprefix(start)
    return message[:1].lower() + message[1:]


def _shown(value: object) -> object:
    """Return a value that is short and surely JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and -(2**53) <= value <= 2**53:
        return value
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 3] + "..."


def encoded(problem: ProblemError, request_id: str | None) -> bytes:
    """Return the document; ASCII, so that any text of a client can be sent back."""
    return json.dumps({**problem.content, "request_id": request_id}).encode()
