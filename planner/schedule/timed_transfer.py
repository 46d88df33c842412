"""One transfer that has a window of time."""

from __future__ import annotations

from typing import Annotated, Any

from planner.fields.kinds import Count, Duration, Money, Name, Region, Volume
from planner.fields.specified import Figure, Limit, Specified, field, fields_of, specified
from planner.model.errors import InputError

# A century: more is a slip of the unit.
MOST_S = 3.2e9
MOST_PRIORITY = 1_000_000


@specified
class TimedTransfer(Specified):
    """One transfer that has a window of time."""

    id: Annotated[str, Name()] = field("Unique among all of a schedule.", aliases=("name",))
    src: Annotated[str, Region()] = field("Region to send from.", label="From")
    dst: Annotated[str, Region()] = field("Region to send to.", label="To")
    volume_gb: Annotated[Figure, Volume()] = field("Volume, in GB.", aliases=("volume", "gb"))
    start_s: Annotated[Figure, Duration(0.0, MOST_S)] = field(
        "Earliest start, from the schedule's time 0.", default=0.0, aliases=("start",)
    )
    deadline_s: Annotated[Limit, Duration(0.0, MOST_S)] = field(
        "Latest end, from time 0; without one, it takes what others leave.",
        default=None,
        aliases=("deadline",),
    )
    priority: Annotated[int, Count(-MOST_PRIORITY, MOST_PRIORITY)] = field(
        "Higher goes first.", default=0
    )
    value_usd: Annotated[Limit, Money()] = field(
        "What it is worth in time; decides among equal priorities, by GB.",
        default=None,
        aliases=("value",),
    )

    def _check(self) -> None:
        if self.src == self.dst:
            raise InputError(
                "dst",
                "is the source itself",
                value=self.dst,
                remedy="What stays in a region needs no schedule.",
            )
        if self.deadline_s is not None and not self.start_s < self.deadline_s:
            raise InputError(
                "deadline_s",
                f"must be after the start ({self.start_s:g} s)",
                value=self.deadline_s,
                remedy="Both count from the schedule's time 0.",
            )

    @classmethod
    def figures_of(cls, transfer: object) -> dict[str, Any]:
        """Return what was asked of a transfer, from what has the same attributes."""
        return {name: getattr(transfer, name) for name in fields_of(cls)}

    @property
    def usd_per_gb(self) -> float:
        """What a GB of it is worth; 0 where that was not said."""
        return (self.value_usd or 0.0) / self.volume_gb
