"""Which planners to compare, and what every transfer is like."""

from __future__ import annotations

from dataclasses import KW_ONLY

from planner.fields.kinds import Names
from planner.fields.specified import Figure, Several, field, specified
from relayd.backtesting.request import EveryTransfer, Moment

JANUARY_2022_S = 1_642_204_800.0
"""15 January 2022: when about Skyplane's first survey was; its file has no times."""
NOVEMBER_2022_S = 1_669_593_600.0
"""28 November 2022: when its second one was, by the names of its logs."""
MOST_PLANNERS = 20


@specified
class DecisionsRequest(EveryTransfer):
    """A comparison of planners on measured networks."""

    _: KW_ONLY
    planners: Several = field(
        Names("planners", "MODULE:FUNCTION", most=MOST_PLANNERS),
        "Planners of one's own, beside those that are always compared.",
        default=(),
        example="my_planner:decide",
        group="comparison",
        option="--planner",
    )
    measured_at_s: Figure = field(
        Moment(),
        "When the file was measured, if it does not say (default: 15 January 2022).",
        default=JANUARY_2022_S,
        example="2022-01-15",
        group="comparison",
    )
    later_at_s: Figure = field(
        Moment(),
        "When the later file was measured, if it does not say (default: 28 November 2022).",
        default=NOVEMBER_2022_S,
        example="2022-11-28",
        group="comparison",
    )
