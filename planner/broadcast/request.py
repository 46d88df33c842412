"""One volume to several regions, and its limits."""

from __future__ import annotations

from dataclasses import KW_ONLY
from math import inf
from typing import Literal, TypeAlias

from planner.fields.kinds import Flag, Names, OneOf, Region
from planner.fields.quantities import LEAST_FIGURE, Duration, MoneyPerHour, Volume
from planner.fields.shared import (
    DEFAULT_TIME_VALUE_USD_PER_H,
    DEFAULT_VOLUME_GB,
    RelayingRequest,
    margin_field,
)
from planner.fields.specified import Field, Figure, Limit, Several, Switch, Text, field, specified
from planner.model.errors import InputError

BroadcastObjective: TypeAlias = Literal["value", "time", "cost"]
Forwarding: TypeAlias = Literal["any", "ends", "none"]


@specified
class BroadcastRequest(RelayingRequest):
    """One volume from one region to several, and its limits."""

    src: Text = field(
        Region(),
        "Region to send from: its id, its bare name, an alias or a city.",
        example="us-east",
        group="broadcast",
        label="From",
    )
    destinations: Several = field(
        Names("regions", "REGION", least=1, lone=False),
        "Regions that shall have the volume.",
        example="sa",
        group="broadcast",
        option="--dst",
        aliases=("dst",),
        label="To",
    )
    _: KW_ONLY
    volume_gb: Figure = field(
        Volume(),
        "Volume of one copy, in GB (10^9 bytes).",
        default=DEFAULT_VOLUME_GB,
        example="50GB",
        group="broadcast",
    )
    objective: Field[BroadcastObjective, BroadcastObjective] = field(
        OneOf(
            {
                "value": "least cost plus time",
                "time": "the last destination has everything as soon as possible",
                "cost": "least cost",
            }
        ),
        "What to aim at; value weighs cost against time at what an hour is worth.",
        default="value",
        group="goal",
        label="Aim",
    )
    time_value_usd_per_h: Figure = field(
        MoneyPerHour(infinite=True),
        "What an hour is worth: 0 asks for least cost, inf for least time.",
        default=DEFAULT_TIME_VALUE_USD_PER_H,
        example="20usd/h",
        group="goal",
        label="An hour is worth",
    )
    margin: Figure = margin_field()
    deadline_s: Limit = field(
        Duration(LEAST_FIGURE),
        "When the last destination must have everything.",
        default=None,
        example="2h",
        group="goal",
    )
    relays: Field[Forwarding, Forwarding] = field(
        OneOf(
            {"any": "any region forwards copies", "ends": "destinations alone", "none": "nobody"}
        ),
        "Who forwards copies; `avoid` and `allow` say which regions may.",
        default="any",
        group="VMs and relays",
    )
    frontier: Switch = field(
        Flag(),
        "Add the cost-time frontier.",
        default=False,
        group="answer",
        label="Cost-time frontier",
    )

    def _check(self) -> None:
        for region in self.destinations:
            if region == self.src:
                raise InputError(
                    "destinations",
                    "name the source itself",
                    value=region,
                    remedy="Name other regions.",
                )
            if self.destinations.count(region) > 1:
                raise InputError(
                    "destinations",
                    "name a region twice",
                    value=region,
                    remedy="Name each destination once.",
                )

    @property
    def ends(self) -> tuple[str, ...]:
        """The source and the destinations."""
        return (self.src, *self.destinations)

    @property
    def hour_usd(self) -> float:
        """What an hour is worth under the objective: infinity for time, 0 for cost."""
        return {"time": inf, "cost": 0.0}.get(self.objective, self.time_value_usd_per_h)
