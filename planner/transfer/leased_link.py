"""A leased interconnect that a transfer may take in place of a link."""

from __future__ import annotations

from planner.fields.kinds import Name, Region
from planner.fields.quantities import LEAST_FIGURE, Duration, Money, Rate
from planner.fields.specified import Figure, Specified, Text, field, specified
from planner.model.errors import InputError
from planner.model.units import S_PER_H

MOST_READY_S = 366 * 24 * S_PER_H


@specified
class LeasedLink(Specified):
    """A leased interconnect: a capacity of its own between two regions, one way."""

    id: Text = field(Name(), "Unique among all leases.", aliases=("name",))
    src: Text = field(Region(), "Region that sends.")
    dst: Text = field(Region(), "Region that receives.")
    rate_gbps: Figure = field(Rate(LEAST_FIGURE), "Its capacity.", aliases=("rate",))
    per_gb_usd: Figure = field(
        Money(), "What a GB over it costs.", default=0.0, aliases=("usd_per_gb",)
    )
    monthly_usd: Figure = field(
        Money(), "Its fee for a month, which break-even is about.", default=0.0
    )
    ready_s: Figure = field(
        Duration(0.0, MOST_READY_S),
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
