"""Many transfers that start together, and their limits."""

from __future__ import annotations

from dataclasses import KW_ONLY
from math import inf
from typing import Annotated, Any, Literal, TypeAlias

from planner.fields.demands import Pair, Pairs, demands_gb
from planner.fields.kinds import Names, OneOf
from planner.fields.shared import (
    AIM_AT_VALUE,
    DEFAULT_CONNECTIONS_OF_MANY,
    Connections,
    Deadline,
    Frontier,
    HourValue,
    Margin,
    RelayingRequest,
    RelaysOfMany,
    RiskAttitude,
    VmLimits,
    connections_field,
    deadline_field,
    frontier_field,
    hour_value_usd,
    margin_field,
    objective_field,
    relays_of_many_field,
    risk_field,
    time_value_field,
)
from planner.fields.specified import Reads, Several, field, specified

ShuffleObjective: TypeAlias = Literal["value", "time", "cost"]


@specified
class ShuffleRequest(RelayingRequest):
    """Many transfers that start together, and their limits."""

    demands_gb: Annotated[
        Reads[Any, dict[Pair, float]], Pairs("Demand"), "Volumes by source and destination, in GB."
    ] = field(
        example='[{"src": "us-east", "dst": "sa", "volume_gb": 100}]',
        group="shuffle",
        key="demands",
        option="demands",
    )
    _: KW_ONLY
    regions: Annotated[
        Several,
        Names("regions", "REGION"),
        "Names of the rows and columns, where the demands are a matrix.",
    ] = field(default=(), group="shuffle", option=None)
    objective: Annotated[
        ShuffleObjective,
        OneOf(
            {
                "value": "the last pair ends as soon as it can with the VMs that are worth it",
                "time": "the last pair ends as soon as possible",
                "cost": "least cost",
            }
        ),
        AIM_AT_VALUE,
    ] = objective_field(default="value")
    margin: Margin = margin_field()
    risk: RiskAttitude = risk_field()
    time_value_usd_per_h: Annotated[
        HourValue, "What an hour is worth where the number of VMs is decided, under value."
    ] = time_value_field()
    deadline_s: Annotated[Deadline, "Latest end of the last pair."] = deadline_field()
    connections: Connections = connections_field(DEFAULT_CONNECTIONS_OF_MANY)
    relays: RelaysOfMany = relays_of_many_field()
    frontier: Frontier = frontier_field()

    def _check(self) -> None:
        # Only a matrix needs the names; the question itself does not include them.
        self.__dict__["demands_gb"] = demands_gb(self.demands_gb, self.regions, "demands")
        self.__dict__["regions"] = ()

    @property
    def hour_usd(self) -> float:
        """Value of an hour on VMs that are decided: infinity, 0 where cost alone counts."""
        return hour_value_usd(self.objective, inf)

    @property
    def vm_hour_usd(self) -> float:
        """Value of an hour where the number of VMs is decided."""
        return hour_value_usd(self.objective, self.time_value_usd_per_h)

    @property
    def vm_limits(self) -> VmLimits:
        """The numbers of VMs that it states."""
        return VmLimits(self.vms, self.vms_in, self.volume_gb)

    @property
    def ends(self) -> tuple[str, ...]:
        """Regions that send or receive, in the order of the demands."""
        return tuple(dict.fromkeys(region for pair in self.demands_gb for region in pair))

    @property
    def volume_gb(self) -> float:
        """All volumes together."""
        return sum(self.demands_gb.values())

    def described(self) -> dict[str, Any]:
        """Return the request; the plan lists the volumes by pair."""
        found = super().described()
        del found["demands"], found["regions"]
        return {"pairs": len(self.demands_gb), "volume_gb": self.volume_gb, **found}
