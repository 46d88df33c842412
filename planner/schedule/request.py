"""Transfers to admit and schedule, and what they may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Annotated, Any, Literal, TypeAlias

from planner.fields.kinds import AnswerDocument, ByPlace, Count, Duration, Money, OneOf, Volume
from planner.fields.shared import (
    DEFAULT_CONNECTIONS_OF_MANY,
    Connections,
    Margin,
    RelayingRequest,
    RelaysOfMany,
    connections_field,
    margin_field,
    relays_of_many_field,
)
from planner.fields.specified import FiguresByPlace, Items, Limit, Reads, Whole, field, specified
from planner.model.errors import InputError
from planner.model.pricing import provider_of
from planner.schedule.document import schedule_from
from planner.schedule.plan import SchedulePlan
from planner.schedule.tariff import Tariff
from planner.schedule.timed_transfer import MOST_S, TimedTransfer

RatesBound: TypeAlias = Literal["expected", "low"]

MOST_TRANSFERS = 10_000
MOST_TARIFFS = 1000
MOST_EXPLAINED = 10_000
EVERYWHERE = "*"
DISK_USD_PER_GB_MONTH = 0.10
"""Of a balanced persistent disk of Google Cloud in us-central1; a gp3 volume of AWS in us-east-1 is
0.08. Both by lists of 2026 that others than the providers publish, without higher rates."""


class ScheduleInProgress(AnswerDocument):
    """A schedule in progress: the object, its document, or its JSON."""

    def read(self, value: Any) -> SchedulePlan:
        """Return the schedule."""
        found = super().read(value)
        return found if isinstance(found, SchedulePlan) else schedule_from(found)


@specified
class ScheduleRequest(RelayingRequest):
    """Transfers to admit and schedule, and what they may use."""

    transfers: Annotated[
        Reads[Any, tuple[TimedTransfer, ...]], Items(TimedTransfer, least=0, most=MOST_TRANSFERS)
    ] = field(
        "Transfers with their windows of time; none are needed where a schedule is in progress.",
        default=(),
        example="transfers.csv",
        group="schedule",
        option="transfers",
    )
    _: KW_ONLY
    existing: Annotated[
        Reads[SchedulePlan | Mapping[str, Any] | str | None, SchedulePlan | None],
        ScheduleInProgress("a schedule"),
    ] = field(
        "A schedule in progress, whose promises are kept.",
        default=None,
        example="schedule.json",
        group="schedule",
        option="--after",
        label="Schedule in progress",
    )
    now_s: Annotated[Limit, Duration(0.0, MOST_S)] = field(
        "Time on the schedule's clock: what was to be sent before is taken as sent. By default "
        "that of the schedule in progress, else 0.",
        default=None,
        example="90min",
        group="schedule",
    )
    tariffs: Annotated[
        Reads[Any, tuple[Tariff, ...]], Items(Tariff, least=0, most=MOST_TARIFFS, prefix="tariff")
    ] = field(
        "Prices that hold for a part of a link's rate, at times or always: percentile contracts "
        "paid already, times of day, leased interconnects.",
        default=(),
        example="tariffs.csv",
        group="schedule",
    )
    disk_gb: Annotated[FiguresByPlace, ByPlace(Volume(), "region")] = field(
        "Disk at relays, which may then keep what they receive and send it later.",
        default={},
        example="aws:us-west-2=5TB",
        group="schedule",
        option="--disk",
        label="Disk at relays",
    )
    disk_usd_per_gb_month: Annotated[
        FiguresByPlace, ByPlace(Money(), "provider or region", everywhere=EVERYWHERE)
    ] = field(
        "What a GB on such a disk costs a month, by provider or region or for all (`*`); "
        f"{DISK_USD_PER_GB_MONTH:g} USD where none is given.",
        default={},
        example="aws=0.08",
        group="schedule",
        option="--disk-price",
        label="Price of disk",
    )
    rates: Annotated[
        RatesBound, OneOf({"expected": "expected figures", "low": "their low bounds"})
    ] = field("What promises rest on.", default="expected", group="schedule")
    explain: Annotated[Whole, Count(0, MOST_EXPLAINED)] = field(
        "For how many of the refused to work out what would do.",
        default=10,
        example="10",
        group="schedule",
    )
    connections: Connections = connections_field(DEFAULT_CONNECTIONS_OF_MANY)
    relays: RelaysOfMany = relays_of_many_field()
    margin: Margin = margin_field(deprecated=True)

    def _check(self) -> None:
        if self.existing is None and not self.transfers:
            raise InputError("transfers", "have nothing to move")
        if self.disk_gb and self.relays == "none":
            raise InputError(
                "disk_gb", "is for relays, of which there are none", remedy="Leave out `relays`."
            )
        if self.disk_usd_per_gb_month and not self.disk_gb:
            raise InputError(
                "disk_usd_per_gb_month",
                "is the price of disk, of which there is none",
                remedy="Say how much there is: disk_gb, `aws:us-west-2=5TB`.",
            )
        if self.now_s is None:
            self.__dict__["now_s"] = self.existing.now_s if self.existing else 0.0

    def disk_price(self, region: str) -> float:
        """Return what a GB on the disk of a region costs a month, in USD."""
        price = self.disk_usd_per_gb_month
        places = (region, provider_of(region), EVERYWHERE)
        return next((price[p] for p in places if p in price), DISK_USD_PER_GB_MONTH)

    def described(self) -> dict[str, Any]:
        """Return what was asked; the transfers are with the plan's."""
        found = super().described()
        del found["existing"]
        return {**found, "transfers": len(self.transfers)}
