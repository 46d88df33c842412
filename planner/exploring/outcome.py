"""The result of a past transfer: its path, its rate, and its end."""

from __future__ import annotations

from typing import Annotated

from planner.fields.kinds import LEAST_FIGURE, MOST_FIGURE, Count, Name, Quantity, Rate, Region
from planner.fields.specified import Figure, Specified, WholeLimit, field, specified

DIRECT = "direct"


@specified
class Outcome(Specified):
    """What a past transfer had: its path, its rate, and when."""

    id: Annotated[str, Name(), "Unique among all outcomes."] = field(aliases=("name",))
    src: Annotated[str, Region(), "Region that sent."] = field()
    dst: Annotated[str, Region(), "Region that received."] = field()
    rate_gbps: Annotated[Figure, Rate(LEAST_FIGURE), "Its mean rate."] = field(
        aliases=("rate", "throughput_gbps")
    )
    ended_s: Annotated[
        Figure, Quantity(-MOST_FIGURE), "When it ended, in seconds since 1970 (UTC)."
    ] = field()
    via: Annotated[
        str, Region({DIRECT: "no relay"}), "The relay that it went through, or `direct`."
    ] = field(default=DIRECT)
    vms: Annotated[
        WholeLimit,
        Count(1, 1000),
        "VMs at each end; as many as the plan takes unless they are given.",
    ] = field(default=None)
