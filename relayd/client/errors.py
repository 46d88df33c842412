"""From problem documents back to the exceptions that a local store would raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.errors import (
    AmbiguousRegionError,
    DataError,
    InfeasibleError,
    InputError,
    RelaydError,
    StoreError,
    UnknownRegionError,
)


class ServiceError(StoreError):
    """The service can't be reached, or does not answer this caller.

    Attributes
    ----------
    status : int | None
        HTTP status; None where there was no answer.
    kind : str
        As problem documents have it, or ``unreachable``.
    """

    def __init__(
        self,
        url: str,
        problem: str,
        *,
        status: int | None = None,
        kind: str = "unreachable",
        remedy: str | None = None,
    ) -> None:
        self.status = status
        self.kind = kind
        super().__init__(url, problem, remedy=remedy)


_REMEDIES = {
    "unauthorized": "Give a token (`relayd serve token create` on the service's host makes one).",
    "forbidden": "Ask for a token with the scope that this takes.",
    "rate-limited": "Ask less often, or in batches.",
}


def error_of(document: Mapping[str, Any], url: str = "service") -> RelaydError:
    """Return the exception that a problem document stands for.

    Parameters
    ----------
    document : mapping
        RFC 9457, with the members that relayd adds.
    url : str
        Of the service, for errors of its own.
    """
    kind, detail = str(document.get("kind", "")), str(document.get("detail", ""))
    field, remedy = str(document.get("field") or ""), document.get("remedy")
    value = document.get("value")
    if kind == "input":
        problem = str(document.get("problem") or detail)
        return InputError(field, problem, value=value, remedy=remedy)
    if kind == "unknown-region":
        return UnknownRegionError(field, str(value), document.get("near") or ())
    if kind == "ambiguous-region":
        return AmbiguousRegionError(field, str(value), document.get("matches") or ())
    if kind in ("infeasible", "no-room"):
        limit, starts_at_s = str(document.get("limit") or detail), document.get("starts_at_s")
        return InfeasibleError(limit, str(remedy or ""), starts_at_s, **document.get("change", {}))
    if kind == "data":
        return DataError(detail)
    status = document.get("status")
    return ServiceError(
        url,
        f"answers: {detail.rstrip('.') or 'something that is not of relayd'}",
        status=status if isinstance(status, int) else None,
        kind=kind or "foreign",
        remedy=remedy or _REMEDIES.get(kind),
    )
