"""Transfers to admit and schedule, and what they may use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import TypeAdapter, ValidationError

from planner.fields.kinds import (
    LEAST_FIGURE,
    AnswerDocument,
    ByPlace,
    Count,
    Duration,
    Money,
    Name,
    OneOf,
    Rate,
    Region,
    Volume,
)
from planner.fields.shared import (
    DEFAULT_CONNECTIONS_OF_MANY,
    Connections,
    Margin,
    RelayingRequest,
    RelaysOfMany,
    check_ends_differ,
    connections_field,
    margin_field,
    relays_of_many_field,
)
from planner.fields.specified import (
    Figure,
    FiguresByPlace,
    Items,
    Limit,
    Reads,
    Specified,
    Whole,
    field,
    fields_of,
    specified,
)
from planner.model.errors import FormatError, InputError
from planner.model.pricing import provider_of
from planner.schedule.plan import SchedulePlan, TransferSchedule

# A century: more is a slip of the unit.
MOST_S = 3.2e9
MOST_PRIORITY = 1_000_000


@specified
class TimedTransfer(Specified):
    """One transfer that has a window of time."""

    id: Annotated[str, Name(), "Unique among all of a schedule."] = field(aliases=("name",))
    src: Annotated[str, Region(), "Region to send from."] = field(label="From")
    dst: Annotated[str, Region(), "Region to send to."] = field(label="To")
    volume_gb: Annotated[Figure, Volume(), "Volume, in GB."] = field(aliases=("volume", "gb"))
    start_s: Annotated[
        Figure, Duration(0.0, MOST_S), "Earliest start, from the schedule's time 0."
    ] = field(default=0.0, aliases=("start",))
    deadline_s: Annotated[
        Limit,
        Duration(0.0, MOST_S),
        "Latest end, from time 0; without one, it takes what others leave.",
    ] = field(default=None, aliases=("deadline",))
    priority: Annotated[int, Count(-MOST_PRIORITY, MOST_PRIORITY), "Higher goes first."] = field(
        default=0
    )
    value_usd: Annotated[
        Limit, Money(), "What it is worth in time; decides among equal priorities, by GB."
    ] = field(default=None, aliases=("value",))

    def _check(self) -> None:
        check_ends_differ(self.src, self.dst, "What stays in a region shares no link.")
        _check_begins_first(self.start_s, "deadline_s", self.deadline_s)

    @classmethod
    def figures_of(cls, transfer: object) -> dict[str, Any]:
        """Return the fields of a request from any object that has the same attributes."""
        return {name: getattr(transfer, name) for name in fields_of(cls)}

    @property
    def usd_per_gb(self) -> float:
        """The value of each GB; 0 if no value is given."""
        return (self.value_usd or 0.0) / self.volume_gb


def _check_begins_first(start_s: float, field: str, end_s: float | None, more: str = "") -> None:
    if end_s is not None and not start_s < end_s:
        problem = f"must be after the start ({start_s:g} s)"
        remedy = f"Both count from the schedule's time 0.{more}"
        raise InputError(field, problem, value=end_s, remedy=remedy)


# Times in hours are not whole seconds to the last digit: 32.2 h - 8.2 h is a little above 24 h.
SAME_S = 1e-6


@specified
class Tariff(Specified):
    """A price that holds for part of what is sent over a link, at times or always."""

    id: Annotated[str, Name(), "Unique among all tariffs."] = field(aliases=("name",))
    src: Annotated[str, Region(), "Region that sends."] = field(label="From")
    dst: Annotated[str, Region(), "Region that receives."] = field(label="To")
    rate_gbps: Annotated[
        Limit,
        Rate(LEAST_FIGURE),
        "Rate up to which it holds, beside what else is sent: what a percentile contract has paid "
        "already, or the capacity of a lease. Without one, it holds for all.",
    ] = field(default=None, aliases=("rate",))
    per_gb_usd: Annotated[
        Figure, Money(), "What a GB costs within it, in place of the link's fee."
    ] = field(default=0.0, aliases=("usd_per_gb",), label="Price of a GB")
    monthly_usd: Annotated[
        Figure, Money(), "What it costs a month; only break-even depends on it."
    ] = field(default=0.0, label="Price of a month")
    start_s: Annotated[
        Figure,
        Duration(0.0, MOST_S),
        "When it begins to hold, from the schedule's time 0: for a lease, when it is provided.",
    ] = field(default=0.0, aliases=("start",))
    end_s: Annotated[Limit, Duration(LEAST_FIGURE, MOST_S), "When it ends."] = field(
        default=None, aliases=("end",)
    )
    every_s: Annotated[
        Limit,
        Duration(LEAST_FIGURE, MOST_S),
        "After what time it holds again, as long as before: `24h` for times of day.",
    ] = field(default=None, aliases=("every",))

    def _check(self) -> None:
        remedy = "A tariff is of a link between two regions: give the one that receives."
        check_ends_differ(self.src, self.dst, remedy)
        past_midnight = " What goes on past midnight ends after 24h."
        _check_begins_first(self.start_s, "end_s", self.end_s, past_midnight)
        if self.every_s is not None:
            if self.end_s is None:
                raise InputError("end_s", "is missing", remedy="What recurs has an end.")
            held_s, remedy = self.end_s - self.start_s, "Give at least how long it holds."
            if self.every_s < held_s - SAME_S:
                problem = f"is shorter than the tariff holds ({held_s:g} s)"
                raise InputError("every_s", problem, value=self.every_s, remedy=remedy)

    def holds_at(self, time_s: float) -> bool:
        """Return whether it holds at a time, its start included."""
        since_s = time_s - self.start_s
        if since_s < 0 or self.end_s is None:
            return since_s >= 0
        since_s = since_s if self.every_s is None else since_s % self.every_s
        return since_s < self.end_s - self.start_s


@dataclass(frozen=True)
class ScheduleInProgress:
    """A schedule to continue: its transfers with their periods, and its time."""

    now_s: float
    transfers: tuple[TransferSchedule, ...]


_IN_PROGRESS = TypeAdapter(ScheduleInProgress)


def schedule_from(document: Any, field: str = "existing") -> ScheduleInProgress:
    """Return the schedule of a JSON document.

    Raises FormatError if the document is not that of a schedule, naming the entry.
    """
    remedy = "Give the JSON that `relayd plan schedule` printed."
    try:
        text = json.dumps(document, allow_nan=False)
    except (TypeError, ValueError):
        raise FormatError(field, "has a figure that is not finite", remedy=remedy) from None
    try:
        found = _IN_PROGRESS.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        of = [f"transfer {part + 1}" if isinstance(part, int) else part for part in first["loc"]]
        at = ", ".join([field, *of[1:3]] if len(of) > 1 else [field, *of])
        raise FormatError(at, f"is wrong: {first['msg']}", remedy=remedy) from None
    for n, transfer in enumerate(found.transfers, 1):
        TimedTransfer(**TimedTransfer.figures_of(transfer))  # checks it like a new transfer
        for period in transfer.periods:
            paths_are = {len(path.regions) for path in period.paths}
            if period.end_s < period.start_s or not paths_are <= {2, 3}:
                where = f"{field}, transfer {n}"
                raise FormatError(where, "has a period that can't be kept to", remedy=remedy)
    return found


RatesBound: TypeAlias = Literal["expected", "low"]

MOST_TRANSFERS = 10_000
MOST_TARIFFS = 1000
MOST_EXPLAINED = 10_000
EVERYWHERE = "*"
DISK_USD_PER_GB_MONTH = 0.10
"""Of a balanced persistent disk of Google Cloud in us-central1; a gp3 volume of AWS in us-east-1 is
0.08. Both from third-party price lists of 2026, without surcharges."""


class _Existing(AnswerDocument):
    """A schedule in progress: the object, its document, or its JSON."""

    def read(self, value: Any) -> ScheduleInProgress:
        if isinstance(value, SchedulePlan):
            return ScheduleInProgress(value.now_s, value.transfers)
        is_read = isinstance(value, ScheduleInProgress)
        return value if is_read else schedule_from(super().read(value))

    def to_json(self, value: ScheduleInProgress) -> Any:
        return asdict(value)


@specified
class ScheduleRequest(RelayingRequest):
    """Transfers to admit and schedule, and what they may use."""

    transfers: Annotated[
        Reads[Any, tuple[TimedTransfer, ...]],
        Items(TimedTransfer, least=0, most=MOST_TRANSFERS),
        "Transfers with their windows of time; none are needed where a schedule is in progress.",
    ] = field(default=(), example="transfers.csv", group="schedule", option="transfers")
    _: KW_ONLY
    existing: Annotated[
        Reads[
            SchedulePlan | ScheduleInProgress | Mapping[str, Any] | str | None,
            ScheduleInProgress | None,
        ],
        _Existing("a schedule"),
        "A schedule in progress, whose promises are kept.",
    ] = field(
        default=None,
        example="schedule.json",
        group="schedule",
        option="--after",
        label="Schedule in progress",
    )
    now_s: Annotated[
        Limit,
        Duration(0.0, MOST_S),
        "Time on the schedule's clock: what was to be sent before is taken as sent. By default "
        "that of the schedule in progress, else 0.",
    ] = field(default=None, example="90min", group="schedule")
    tariffs: Annotated[
        Reads[Any, tuple[Tariff, ...]],
        Items(Tariff, least=0, most=MOST_TARIFFS, prefix="tariff"),
        "Prices that hold for a part of a link's rate, at times or always: percentile contracts "
        "paid already, times of day, leased interconnects.",
    ] = field(default=(), example="tariffs.csv", group="schedule")
    disk_gb: Annotated[
        FiguresByPlace,
        ByPlace(Volume(), "region"),
        "Disk at relays, which may then keep what they receive and send it later.",
    ] = field(
        default={},
        example="aws:us-west-2=5TB",
        group="schedule",
        option="--disk",
        label="Disk at relays",
    )
    disk_usd_per_gb_month: Annotated[
        FiguresByPlace,
        ByPlace(Money(), "provider or region", everywhere=EVERYWHERE),
        "What a GB on such a disk costs a month, by provider or region or for all (`*`); "
        f"${DISK_USD_PER_GB_MONTH:g} where none is given.",
    ] = field(
        default={},
        example="aws=0.08",
        group="schedule",
        option="--disk-price",
        label="Price of disk",
    )
    rates: Annotated[
        RatesBound,
        OneOf({"expected": "expected figures", "low": "their low bounds"}),
        "What promises rest on.",
    ] = field(default="expected", group="schedule")
    explain: Annotated[
        Whole, Count(0, MOST_EXPLAINED), "For how many of the refused to work out what would do."
    ] = field(default=10, example="10", group="schedule")
    connections: Connections = connections_field(DEFAULT_CONNECTIONS_OF_MANY)
    relays: RelaysOfMany = relays_of_many_field()
    margin: Margin = margin_field(deprecated=True)

    def _check(self) -> None:
        if self.existing is None and not self.transfers:
            raise InputError("transfers", "is missing")
        if self.disk_gb and self.relays == "none":
            problem, remedy = "is for relays, of which there are none", "Leave out `relays`."
            raise InputError("disk_gb", problem, remedy=remedy)
        if self.disk_usd_per_gb_month and not self.disk_gb:
            problem = "is the price of disk, of which there is none"
            remedy = "Say how much there is: disk_gb, `aws:us-west-2=5TB`."
            raise InputError("disk_usd_per_gb_month", problem, remedy=remedy)
        if self.now_s is None:
            self.__dict__["now_s"] = self.existing.now_s if self.existing else 0.0

    def disk_price(self, region: str) -> float:
        """Return the monthly price of a GB on the disk of a region, in USD."""
        price = self.disk_usd_per_gb_month
        places = (region, provider_of(region), EVERYWHERE)
        return next((price[p] for p in places if p in price), DISK_USD_PER_GB_MONTH)

    def described(self) -> dict[str, Any]:
        """Return the request; the plan lists the transfers itself."""
        found = super().described()
        del found["existing"]
        return {**found, "transfers": len(self.transfers)}
