"""One volume to several regions, and its limits."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated, Literal, TypeAlias

from planner.fields.kinds import Names, OneOf, Region, Volume
from planner.fields.shared import (
    AIM_AT_VALUE,
    DEFAULT_CONNECTIONS_OF_MANY,
    Connections,
    Deadline,
    Frontier,
    HourValue,
    Margin,
    RelayingRequest,
    RiskAttitude,
    VmLimits,
    connections_field,
    deadline_field,
    frontier_field,
    hour_value_usd,
    margin_field,
    objective_field,
    risk_field,
    time_value_field,
    volume_field,
)
from planner.fields.specified import Figure, Several, field, specified
from planner.model.errors import InputError

BroadcastObjective: TypeAlias = Literal["value", "time", "cost"]
Forwarding: TypeAlias = Literal["any", "ends", "none"]


@specified
class BroadcastRequest(RelayingRequest):
    """One volume from one region to several, and its limits."""

    src: Annotated[
        str, Region(), "Region to send from: its id, its bare name, an alias or a city."
    ] = field(example="us-east", group="broadcast", label="From")
    destinations: Annotated[
        Several,
        Names("regions", "REGION", least=1, lone=False),
        "Regions that shall have the volume.",
    ] = field(example="sa", group="broadcast", option="--dst", aliases=("dst",), label="To")
    _: KW_ONLY
    volume_gb: Annotated[Figure, Volume(), "Volume of one copy, in decimal GB."] = volume_field(
        example="50GB", group="broadcast"
    )
    objective: Annotated[
        BroadcastObjective,
        OneOf(
            {
                "value": "least cost plus time",
                "time": "the last destination has everything as soon as possible",
                "cost": "least cost",
            }
        ),
        AIM_AT_VALUE,
    ] = objective_field(default="value")
    time_value_usd_per_h: HourValue = time_value_field()
    margin: Margin = margin_field()
    risk: RiskAttitude = risk_field()
    deadline_s: Annotated[Deadline, "When the last destination must have everything."] = (
        deadline_field()
    )
    connections: Connections = connections_field(DEFAULT_CONNECTIONS_OF_MANY)
    relays: Annotated[
        Forwarding,
        OneOf(
            {"any": "any region forwards copies", "ends": "destinations alone", "none": "no region"}
        ),
        "Who forwards copies; `avoid` and `allow` say which regions may.",
    ] = field(default="any", group="VMs and relays")
    frontier: Frontier = frontier_field()

    def _check(self) -> None:
        for region in self.destinations:
            problem, remedy = "", ""
            if region == self.src:
                problem, remedy = "name the source itself", "Name other regions."
            elif self.destinations.count(region) > 1:
                problem, remedy = "name a region twice", "Name each destination once."
            if problem:
                raise InputError("destinations", problem, value=region, remedy=remedy)

    @property
    def hour_usd(self) -> float:
        """Value of an hour: infinity where time alone counts, 0 where cost does."""
        return hour_value_usd(self.objective, self.time_value_usd_per_h)

    @property
    def vm_limits(self) -> VmLimits:
        """The numbers of VMs that it states."""
        return VmLimits(self.vms, self.vms_in, self.volume_gb)

    @property
    def ends(self) -> tuple[str, ...]:
        """The source and the destinations."""
        return (self.src, *self.destinations)
