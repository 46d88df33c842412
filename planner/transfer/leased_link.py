"""A leased interconnect that a transfer may take in place of a link."""

from __future__ import annotations

from typing import Annotated

from planner.fields.kinds import LEAST_FIGURE, Duration, Money, Name, Rate, Region
from planner.fields.specified import Figure, Specified, field, specified
from planner.model.errors import InputError
from planner.model.units import S_PER_H

MOST_READY_S = 366 * 24 * S_PER_H


@specified
class LeasedLink(Specified):
    """A leased interconnect: a capacity of its own between two regions, one way."""

    id: Annotated[str, Name()] = field("Unique among all leases.", aliases=("name",))
    src: Annotated[str, Region()] = field("Region that sends.")
    dst: Annotated[str, Region()] = field("Region that receives.")
    rate_gbps: Annotated[Figure, Rate(LEAST_FIGURE)] = field("Its capacity.", aliases=("rate",))
    per_gb_usd: Annotated[Figure, Money()] = field(
        "What a GB over it costs.", default=0.0, aliases=("usd_per_gb",)
    )
    monthly_usd: Annotated[Figure, Money()] = field(
        "Its fee for a month, which break-even is about.", default=0.0
    )
    ready_s: Annotated[Figure, Duration(0.0, MOST_READY_S)] = field(
        "After what time it is provided; 0 if it is there already.",
        default=0.0,
        aliases=("ready", "start"),
    )

    def _check(self) -> None:
        if self.src == self.dst:
            raise InputError(
                "dst",
                "is the source itself",
                value=self.dst,
                remedy="A lease is of a link between two regions: give the one that receives.",
            )
