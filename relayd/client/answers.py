"""Reads JSON into the objects that a local store would return."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import inf
from operator import getitem
from typing import Any, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from planner.model.errors import FormatError
from planner.model.network import Snapshot
from relayd.tables.matrices import Matrix

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rejection:
    """A sample that was left out.

    Attributes
    ----------
    row : int
        From 1: its place among those sent in one call.
    reason : str
    """

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The result of sending samples.

    Attributes
    ----------
    accepted, duplicates, rejected : int
        New ones, those that were there already, those that can't be used.
    rejections : tuple of Rejection
        The first hundred of each call.
    quarantined : int
        Those that can't be measurements: kept apart, and nothing rests on them.
    quarantine : tuple of Rejection
        The first hundred of these of each call.
    """

    accepted: int
    duplicates: int
    rejected: int
    rejections: tuple[Rejection, ...]
    quarantined: int = 0
    quarantine: tuple[Rejection, ...] = ()

    def __add__(self, other: IngestResult) -> IngestResult:
        """Return both together."""
        return IngestResult(
            self.accepted + other.accepted,
            self.duplicates + other.duplicates,
            self.rejected + other.rejected,
            self.rejections + other.rejections,
            self.quarantined + other.quarantined,
            self.quarantine + other.quarantine,
        )


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
        return _read(reader, content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise FormatError(
            f"answer ({kind.__name__})",
            f"can't be read: {place}: {first['msg']}",
            remedy="Use versions of client and service that go together.",
        ) from None


def _read(reader: TypeAdapter[T], content: bytes | Mapping[str, Any]) -> T:
    """Read an answer; JSON knows no infinity, and has null in the place of one."""
    try:
        if isinstance(content, bytes):
            return reader.validate_json(content)
        return reader.validate_python(content)
    except ValidationError as error:
        faults = error.errors(include_url=False)
        if any(each["type"] != "float_type" or each["input"] is not None for each in faults):
            raise
    document = json.loads(content if isinstance(content, bytes) else json.dumps(content))
    for *place, last in (each["loc"] for each in faults):
        reduce(getitem, place, document)[last] = inf
    return reader.validate_python(document)


def matrix_of(document: Mapping[str, Any]) -> Matrix:
    """Return a matrix with NaN where the document has null."""
    values = np.array(
        [[np.nan if value is None else value for value in row] for row in document["values"]],
        dtype=float,
    )
    regions = tuple(document["regions"])
    return Matrix(
        document["metric"],
        document["unit"],
        regions,
        values.reshape(len(regions), len(regions)),
        Snapshot(**document["snapshot"]),
        # A service of before has none.
        None if (sources := document.get("sources")) is None else tuple(map(tuple, sources)),
    )
