"""The request for one transfer: volume, ends and limits."""

from __future__ import annotations

from dataclasses import KW_ONLY
from math import inf
from typing import Annotated, Literal, TypeAlias

from planner.fields.kinds import LEAST_FIGURE, Count, Money, Name, OneOf, Rate, Region, Volume
from planner.fields.shared import (
    AIM_AT_VALUE,
    VMS,
    Deadline,
    Frontier,
    HourValue,
    Margin,
    MostVms,
    RiskAttitude,
    RuledRequest,
    VmLimits,
    deadline_field,
    frontier_field,
    hour_value_usd,
    margin_field,
    objective_field,
    risk_field,
    time_value_field,
    vms_limit_field,
    volume_field,
)
from planner.fields.specified import Figure, Limit, Switch, Whole, WholeLimit, field, specified
from planner.model.units import duration_s

Objective: TypeAlias = Literal["value", "time", "cost", "latency"]


# Below this, a share of a VM's connections is too coarse to split a transfer over paths.
CONNECTIONS_TO_SPLIT = 8
# Single relays that an answer compares, the best of them included.
DEFAULT_CANDIDATES = 6
MOST_CANDIDATES = 1000
MOST_OBJECTS = 10**12


@specified
class TransferRequest(RuledRequest):
    """One transfer, and its limits."""

    src: Annotated[
        str, Region(), "Region to send from: its id, its bare name, an alias or a city."
    ] = field(example="us-east", group="transfer", label="From")
    dst: Annotated[str, Region(), "Region to send to, named the same way."] = field(
        example="sa", group="transfer", label="To"
    )
    _: KW_ONLY
    volume_gb: Annotated[Figure, Volume(), "Volume to move, in decimal GB."] = volume_field(
        example="500GB", group="transfer"
    )
    objects: Annotated[
        WholeLimit,
        Count(1, MOST_OBJECTS),
        "How many objects of a store the volume is: a request reads and one writes each.",
    ] = field(default=None, example="100000", group="transfer", label="Objects")
    objective: Annotated[
        Objective,
        OneOf(
            {
                "value": "least cost plus time",
                "time": "least time",
                "cost": "least cost",
                "latency": "least round-trip time",
            }
        ),
        AIM_AT_VALUE,
    ] = objective_field(default="value")
    time_value_usd_per_h: HourValue = time_value_field()
    margin: Margin = margin_field()
    risk: RiskAttitude = risk_field()
    budget_usd: Annotated[Limit, Money(LEAST_FIGURE), "Most to spend, egress and VMs."] = field(
        default=None, example="20usd", group="limits", often=True
    )
    deadline_s: Annotated[
        Deadline, "Latest end, from now; where people type it, also a time of day, such as 17:30."
    ] = deadline_field(group="limits")
    min_throughput_gbps: Annotated[Limit, Rate(LEAST_FIGURE), "Least rate."] = field(
        default=None, example="8gbps", group="limits", label="Least rate"
    )
    relays: Annotated[
        str,
        Region({"any": "as many as pay", "one": "at most one", "none": "none"}),
        "How many relays, or the only one to consider.",
    ] = field(default="any", example="none", group="limits", often=True)
    single_path: Annotated[
        Switch, "Send it over one path, the direct one or through one relay: no split."
    ] = field(default=False, group=VMS)
    vms: MostVms = vms_limit_field()
    frontier: Frontier = frontier_field()
    candidates: Annotated[
        Whole,
        Count(1, MOST_CANDIDATES),
        "Most single relays to compare: the best and its alternatives.",
    ] = field(default=DEFAULT_CANDIDATES, example="10", group="answer", label="Relays compared")
    details: Annotated[
        Literal["all", "decision"],
        OneOf(
            {
                "all": "all there is to say",
                "decision": "the verdict with its figures and the reason, in half of the time",
            }
        ),
        "How much an answer says.",
    ] = field(default="all", group="answer")
    label: Annotated[
        str | None,
        Name(),
        "Label of transfers like it: what they reached of their plans' rates is what the answer "
        "says as achieved; without it, those between the same ends.",
    ] = field(default=None, example="nightly copy", group="answer")

    @property
    def hour_usd(self) -> float:
        """Value of an hour: infinity where time alone counts, 0 where cost does."""
        return hour_value_usd(self.objective, self.time_value_usd_per_h)

    @property
    def vm_limits(self) -> VmLimits:
        """The numbers of VMs that it states."""
        return VmLimits(self.vms, self.vms_in, self.volume_gb)

    @property
    def may_split(self) -> bool:
        """Return whether it may be divided over paths, and a VM has enough connections to."""
        return self.connections >= CONNECTIONS_TO_SPLIT and not self.single_path

    def least_rate_gbps(self, lead_s: float = 0.0) -> float:
        """Return the rate that the limits demand; infinity if the deadline cannot be met."""
        least = self.min_throughput_gbps or 0.0
        if self.deadline_s is not None:
            left_s = self.deadline_s - lead_s
            least = max(least, duration_s(self.volume_gb, 1.0) / left_s if left_s > 0 else inf)
        return least
