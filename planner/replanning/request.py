"""A plan in progress: what it was, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Annotated, Any, TypeAlias

from planner.fields.demands import Pair, Pairs, demands_gb, pair_row_schema
from planner.fields.kinds import (
    AnswerDocument,
    Count,
    Duration,
    Rate,
    Volume,
    assignments,
    kind_schema,
)
from planner.fields.shared import PricedRequest
from planner.fields.specified import Figure, Limit, Reads, Whole, field, specified
from planner.model.errors import InputError
from planner.model.units import parse_volume_gb

Moved: TypeAlias = float | Mapping[Pair, float]


_VOLUME = Volume(0.0)


class MovedVolume(Pairs):
    """A volume, or one for each of a shuffle's pairs."""

    name, metavar = "moved", "SIZE"
    repeated = True

    def __init__(self) -> None:
        super().__init__("Moved", least=0)

    def read(self, value: Any) -> Any:
        """Return GB, or pair to GB."""
        if isinstance(value, Mapping | Sequence) and not isinstance(value, str | bytes):
            return demands_gb(value, field="", least=0)
        return _VOLUME.validate(value, "")

    def read_words(self, words: Sequence[str]) -> Moved:
        """Read one volume such as ``120GB``, or one for each pair such as ``SRC>DST=50GB``.

        Raises an InputError if a word is neither, or a pair is given twice.
        """
        if len(words) == 1 and "=" not in words[0]:
            return parse_volume_gb(words[0], "")
        found: dict[Pair, float] = {}
        for name, size in assignments(words).items():
            src, arrow, dst = name.partition(">")
            if not arrow:
                raise InputError("", "names no pair", value=name, remedy="Write 'SRC>DST=50GB'.")
            found[src.strip(), dst.strip()] = parse_volume_gb(size, "")
        return found

    def to_json(self, value: Moved) -> Any:
        """Return GB, or one object for each pair."""
        return super().to_json(value) if isinstance(value, Mapping) else value

    def schema(self) -> dict[str, Any]:
        """Return the schema of a volume, or of a list of pairs."""
        pairs = {"type": "array", "items": pair_row_schema("Moved")}
        return {"anyOf": [*kind_schema(_VOLUME)["anyOf"], pairs]}


@specified
class ReplanRequest(PricedRequest):
    """A plan in progress, and how far it has come."""

    plan: Annotated[
        Any,
        AnswerDocument("a plan"),
        "A plan of a transfer, a shuffle or a broadcast, as it was answered.",
    ] = field(example="plan.json", group="plan", option="plan")
    _: KW_ONLY
    moved_gb: Annotated[
        Reads[Any, Moved],
        MovedVolume(),
        "What every destination has, in GB; of a shuffle, all pairs together or each pair's.",
    ] = field(example="120GB", group="plan")
    elapsed_s: Annotated[Figure, Duration(), "Time since sending began."] = field(
        example="10min", often=True, group="plan"
    )
    rate_gbps: Annotated[
        Limit,
        Rate(0.0),
        "Rate of the moment, over all; the mean since sending began unless it is given.",
    ] = field(default=None, example="5.3gbps", option="--rate", group="plan")
    silent_s: Annotated[Limit, Duration(), "Time without a report, where one is overdue."] = field(
        default=None, example="5min", option="--silent", group="plan"
    )
    slow_s: Annotated[
        Limit, Duration(), "For how long it has been slower than planned; all along unless given."
    ] = field(default=None, example="4min", option="--slow", group="plan")
    changes: Annotated[
        Whole, Count(0, 10_000), "How often it was changed before: each asks for another margin."
    ] = field(default=0, example="1", group="plan")

    @property
    def document(self) -> Mapping[str, Any]:
        """The plan as JSON has it."""
        document: Mapping[str, Any] = (
            self.plan if isinstance(self.plan, Mapping) else self.plan.model_dump("json")
        )
        return document
