"""A price that holds for part of what is sent over a link, at times or always."""

from __future__ import annotations

from typing import Annotated

from planner.fields.kinds import LEAST_FIGURE, Duration, Money, Name, Rate, Region
from planner.fields.specified import Figure, Limit, Specified, field, specified
from planner.model.errors import InputError
from planner.schedule.timed_transfer import MOST_S

# Times in hours are not whole seconds to the last digit: 32.2 h - 8.2 h is a little above 24 h.
SAME_S = 1e-6


@specified
class Tariff(Specified):
    """A price that holds for part of what is sent over a link, at times or always."""

    id: Annotated[str, Name()] = field("Unique among all tariffs.", aliases=("name",))
    src: Annotated[str, Region()] = field("Region that sends.", label="From")
    dst: Annotated[str, Region()] = field("Region that receives.", label="To")
    rate_gbps: Annotated[Limit, Rate(LEAST_FIGURE)] = field(
        "Rate up to which it holds, beside what else is sent: what a percentile contract has paid "
        "already, or the capacity of a lease. Without one, it holds for all.",
        default=None,
        aliases=("rate",),
    )
    per_gb_usd: Annotated[Figure, Money()] = field(
        "What a GB costs within it, in place of the link's fee.",
        default=0.0,
        aliases=("usd_per_gb",),
        label="Price of a GB",
    )
    monthly_usd: Annotated[Figure, Money()] = field(
        "What it costs a month; only break-even depends on it.",
        default=0.0,
        label="Price of a month",
    )
    start_s: Annotated[Figure, Duration(0.0, MOST_S)] = field(
        "When it begins to hold, from the schedule's time 0: for a lease, when it is provided.",
        default=0.0,
        aliases=("start",),
    )
    end_s: Annotated[Limit, Duration(LEAST_FIGURE, MOST_S)] = field(
        "When it ends.", default=None, aliases=("end",)
    )
    every_s: Annotated[Limit, Duration(LEAST_FIGURE, MOST_S)] = field(
        "After what time it holds again, as long as before: `24h` for times of day.",
        default=None,
        aliases=("every",),
    )

    def _check(self) -> None:
        if self.src == self.dst:
            raise InputError(
                "dst",
                "is the source itself",
                value=self.dst,
                remedy="A tariff is of a link between two regions: give the one that receives.",
            )
        if self.end_s is not None and not self.start_s < self.end_s:
            raise InputError(
                "end_s",
                f"must be after the start ({self.start_s:g} s)",
                value=self.end_s,
                remedy="Both count from the schedule's time 0. What goes on past midnight ends "
                "after 24h.",
            )
        if self.every_s is not None:
            if self.end_s is None:
                raise InputError("end_s", "is missing", remedy="What recurs has an end.")
            if self.every_s < self.end_s - self.start_s - SAME_S:
                raise InputError(
                    "every_s",
                    f"is shorter than the tariff holds ({self.end_s - self.start_s:g} s)",
                    value=self.every_s,
                    remedy="Give at least how long it holds.",
                )

    def holds_at(self, time_s: float) -> bool:
        """Whether it holds at a time, its start included."""
        since_s = time_s - self.start_s
        if since_s < 0:
            return False
        if self.end_s is None:
            return True
        if self.every_s is not None:
            since_s %= self.every_s
        return since_s < self.end_s - self.start_s
