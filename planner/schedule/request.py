"""Transfers to admit and schedule, and what they may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, Literal, TypeAlias

from planner.fields.items import Items
from planner.fields.kinds import AnswerDocument, Count, OneOf
from planner.fields.quantities import Duration
from planner.fields.shared import (
    DEFAULT_CONNECTIONS_OF_MANY,
    RelayingRequest,
    RelaysOfMany,
    connections_field,
    margin_field,
    relays_of_many_field,
)
from planner.fields.specified import Field, Figure, Limit, Whole, field, specified
from planner.model.errors import InputError
from planner.schedule.document import schedule_from
from planner.schedule.plan import SchedulePlan
from planner.schedule.tariff import Tariff
from planner.schedule.timed_transfer import MOST_S, TimedTransfer

RatesBound: TypeAlias = Literal["expected", "low"]

MOST_TRANSFERS = 10_000
MOST_TARIFFS = 1000
MOST_EXPLAINED = 10_000


class Existing(AnswerDocument):
    """A schedule in progress: the object, its document, or its JSON."""

    def read(self, value: Any, field: str) -> SchedulePlan:
        """Return the schedule."""
        found = super().read(value, field)
        return found if isinstance(found, SchedulePlan) else schedule_from(found, field)


@specified
class ScheduleRequest(RelayingRequest):
    """Transfers to admit and schedule, and what they may use."""

    transfers: Field[Any, tuple[TimedTransfer, ...]] = field(
        Items(TimedTransfer, least=0, most=MOST_TRANSFERS),
        "Transfers with their windows of time; none are needed where a schedule is in progress.",
        default=(),
        example="transfers.csv",
        group="schedule",
        option="transfers",
    )
    _: KW_ONLY
    existing: Field[SchedulePlan | Mapping[str, Any] | str | None, SchedulePlan | None] = field(
        Existing("a schedule"),
        "A schedule in progress, whose promises are kept.",
        default=None,
        example="schedule.json",
        group="schedule",
        option="--after",
    )
    now_s: Limit = field(
        Duration(0.0, MOST_S),
        "Time on the schedule's clock: what was to be sent before is taken as sent. By default "
        "that of the schedule in progress, else 0.",
        default=None,
        example="90min",
        group="schedule",
    )
    tariffs: Field[Any, tuple[Tariff, ...]] = field(
        Items(Tariff, least=0, most=MOST_TARIFFS, prefix="tariff"),
        "Prices that hold for a part of a link's rate, at times or always: percentile contracts "
        "paid already, times of day, leased interconnects.",
        default=(),
        example="tariffs.csv",
        group="schedule",
    )
    rates: Field[RatesBound, RatesBound] = field(
        OneOf({"expected": "expected figures", "low": "their low bounds"}),
        "What promises rest on.",
        default="expected",
        group="schedule",
    )
    explain: Whole = field(
        Count(0, MOST_EXPLAINED),
        "For how many of the refused to work out what would do.",
        default=10,
        example="10",
        group="schedule",
    )
    connections: Whole = connections_field(DEFAULT_CONNECTIONS_OF_MANY)
    relays: Field[RelaysOfMany, RelaysOfMany] = relays_of_many_field()
    margin: Figure = margin_field(deprecated=True)

    def _check(self) -> None:
        if self.existing is None and not self.transfers:
            raise InputError("transfers", "have nothing to move")
        if self.now_s is None:
            self.__dict__["now_s"] = self.existing.now_s if self.existing else 0.0

    def described(self) -> dict[str, Any]:
        """Return what was asked; the transfers are with the plan's."""
        found = super().described()
        del found["existing"]
        return {**found, "transfers": len(self.transfers)}
