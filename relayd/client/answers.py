"""From JSON to the objects that a local store would return."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from planner.errors import FormatError
from planner.network import Snapshot

if TYPE_CHECKING:
    from relayd.wan import Matrix

T = TypeVar("T")


_readers: dict[type, TypeAdapter[Any]] = {}


def answer_of(kind: type[T], content: bytes | Mapping[str, Any]) -> T:
    """Return an answer as its dataclass; keys that this version does not know are left out.

    Raises
    ------
    FormatError
        If it lacks something that this version relies on.
    """
    # Made when first needed: for a plan, it takes some 10 ms.
    if kind not in _readers:
        _readers[kind] = TypeAdapter(kind)
    reader: TypeAdapter[T] = _readers[kind]
    try:
        if isinstance(content, bytes):
            return reader.validate_json(content)
        return reader.validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise FormatError(
            f"answer ({kind.__name__})", f"can't be read: {place}: {first['msg']}",
            remedy="Use versions of client and service that go together.",
        ) from None  # fmt: skip


def matrix_of(document: Mapping[str, Any]) -> Matrix:
    """Return a matrix with NaN where the document has null."""
    import numpy as np

    from relayd.wan import Matrix

    values = np.array(
        [[np.nan if value is None else value for value in row] for row in document["values"]],
        dtype=float,
    )
    regions = tuple(document["regions"])
    return Matrix(
        document["metric"], document["unit"], regions, values.reshape(len(regions), len(regions)),
        Snapshot(**document["snapshot"]),
    )  # fmt: skip
