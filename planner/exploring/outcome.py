"""What a past transfer had: its path, its rate, and when."""

from __future__ import annotations

from planner.fields.kinds import Name, Region
from planner.fields.quantities import LEAST_FIGURE, MOST_FIGURE, Quantity, Rate
from planner.fields.specified import Figure, Specified, Text, field, specified

DIRECT = "direct"


@specified
class Outcome(Specified):
    """What a past transfer had: its path, its rate, and when."""

    id: Text = field(Name(), "Unique among all outcomes.", aliases=("name",))
    src: Text = field(Region(), "Region that sent.")
    dst: Text = field(Region(), "Region that received.")
    rate_gbps: Figure = field(
        Rate(LEAST_FIGURE), "Its mean rate.", aliases=("rate", "throughput_gbps")
    )
    ended_s: Figure = field(Quantity(-MOST_FIGURE), "When it ended, in seconds since 1970 (UTC).")
    via: Text = field(
        Region({DIRECT: "no relay"}), "The relay that it went through, or `direct`.", default=DIRECT
    )
