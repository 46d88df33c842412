"""The regions and VM types to compare, and their use."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Annotated, Literal, TypeAlias

from planner.fields.kinds import Count, Names, OneOf, Volume
from planner.fields.shared import (
    AIM_AT_VALUE,
    HourValue,
    MostVms,
    VmLimits,
    VmRequest,
    hour_value_usd,
    objective_field,
    time_value_field,
    vms_limit_field,
    volume_field,
)
from planner.fields.specified import Figure, Several, Whole, field, specified
from planner.model.errors import InputError

ComparisonObjective: TypeAlias = Literal["value", "time", "cost", "latency", "stability"]
Direction: TypeAlias = Literal["to", "from"]

DEFAULT_SHOWN = 10
MOST_SHOWN = 1000
MOST_ENDS = 100
MOST_TYPES = 50


@specified
class ComparisonRequest(VmRequest):
    """A use, by the regions that data goes to or comes from, and who may serve it."""

    regions: Annotated[
        Several,
        Names("regions", "REGION", least=1, most=MOST_ENDS),
        "Regions that data goes to, or comes from.",
    ] = field(example="sa", group="use", option="--with", label="With")
    _: KW_ONLY
    direction: Annotated[
        Direction,
        OneOf(
            {
                "to": "each candidate sends the volume to every region",
                "from": "each candidate fetches the volume from every region",
            }
        ),
        "Which way the data goes.",
    ] = field(default="to", group="use")
    volume_gb: Annotated[Figure, Volume(), "Volume for each region, in decimal GB."] = volume_field(
        example="100GB", group="use"
    )
    candidates: Annotated[
        Several,
        Names("rules", "RULE"),
        "Places to compare: provider:NAME, country:CC, continent:CC or regions; all regions of the "
        "graph if none are named.",
    ] = field(default=(), example="provider:aws", group="candidates")
    types: Annotated[
        Several,
        Names("types", "TYPE", most=MOST_TYPES),
        "VM types to compare in the candidates, each where its provider has it; the usual ones if "
        "none are named.",
    ] = field(default=(), example="aws:m5.8xlarge", group="candidates", label="VM types to compare")
    objective: Annotated[
        ComparisonObjective,
        OneOf(
            {
                "value": "least cost plus time",
                "time": "the last region is done as soon as possible",
                "cost": "least cost",
                "latency": "least mean round-trip time",
                "stability": "least time lost if rates are as low as their bounds",
            }
        ),
        AIM_AT_VALUE,
    ] = objective_field(default="value")
    time_value_usd_per_h: HourValue = time_value_field()
    vms: MostVms = vms_limit_field()
    most: Annotated[Whole, Count(1, MOST_SHOWN), "How many candidates to list, the best first."] = (
        field(
            default=DEFAULT_SHOWN,
            example=str(DEFAULT_SHOWN),
            group="answer",
            label="Candidates listed",
        )
    )

    def _check(self) -> None:
        for region in self.regions:
            if self.regions.count(region) > 1:
                remedy = "Name each once."
                raise InputError("regions", "name a region twice", value=region, remedy=remedy)

    @property
    def hour_usd(self) -> float:
        """Value of an hour: infinity where time alone counts, 0 where cost does."""
        return hour_value_usd(self.objective, self.time_value_usd_per_h)

    @property
    def vm_limits(self) -> VmLimits:
        """The numbers of VMs that it states."""
        return VmLimits(self.vms, volume_gb=self.volume_gb)
