"""Fields that several questions have: VMs, connections, who may relay, prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from functools import cached_property, partial
from math import ceil, inf
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from planner.fields.kinds import (
    LEAST_FIGURE,
    ByPlace,
    Count,
    Duration,
    MoneyPerHour,
    Name,
    Names,
    OneOf,
    Proportion,
    Volume,
)
from planner.fields.specified import (
    CountsByPlace,
    Figure,
    FiguresByPlace,
    Limit,
    Several,
    Specified,
    Switch,
    Whole,
    WholeLimit,
    field,
    specified,
)
from planner.model.catalogue import Hosts
from planner.model.errors import InputError
from planner.model.estimate import WantedAddresses
from planner.model.link import Site
from planner.solvers.joint import Risk

DEFAULT_CONNECTIONS = 64
DEFAULT_CONNECTIONS_OF_MANY = 1024
DEFAULT_MARGIN = 0.1
DEFAULT_TIME_VALUE_USD_PER_H = 20.0
DEFAULT_VM_START_S = 60.0
DEFAULT_VOLUME_GB = 100.0
MOST_CONNECTIONS = 65_535
MOST_MARGIN = 99.0
MOST_VMS = 1000
# VMs a region, where neither the request nor a fleet or a quota says how many there may be.
MOST_VMS_UNASKED = 8
# The same where fewer would take more than a day: then it is worth the hours to ask for quotas. EC2
# let an account run as many on demand in a region before it counted vCPUs (AWS, "EC2 On-Demand
# instance limits", until 2019), so that many are not out of the ordinary.
MOST_VMS_FOR_DAYS = 20
# What one VM sends in a day at 5 Gbit/s, which is what EC2 lets all but the largest send elsewhere.
GB_A_DAY = 54_000

VMS = "VMs and relays"
PRICES = "prices and VMs"

RULE_KINDS = ("provider:", "country:", "continent:")

Connections: TypeAlias = Annotated[
    Whole,
    Count(1, MOST_CONNECTIONS),
    "TCP connections that a VM opens in all; 1 for an application that can't open more.",
]
Deadline: TypeAlias = Annotated[Limit, Duration(LEAST_FIGURE)]
Frontier: TypeAlias = Annotated[Switch, "Add the cost-time frontier."]
HourValue: TypeAlias = Annotated[
    Figure,
    MoneyPerHour(infinite=True),
    "What an hour is worth; 0 asks for least cost, and the objective `time` for least time.",
]
Margin: TypeAlias = Annotated[
    Figure,
    Proportion(0.0, MOST_MARGIN),
    "What relays must gain before they are recommended; 0.1 is ten percent.",
]
MostVms: TypeAlias = Annotated[
    WholeLimit,
    Count(1, MOST_VMS),
    "Most VMs a region. Unless stated, the plan takes the fewest that are within 5 % of the "
    "best: of a fleet's VMs there, else of those that vCPU quotas allow; without any, of "
    f"{MOST_VMS_UNASKED}, and one for each {GB_A_DAY // 1000} TB up to {MOST_VMS_FOR_DAYS}.",
]
VmStart: TypeAlias = Annotated[
    Figure,
    Duration(),
    "Time that a VM takes to start: it is paid for, and the first byte waits for it.",
]
RelaysOfMany: TypeAlias = Annotated[
    Literal["any", "none"],
    OneOf({"any": "as many as help", "none": "none"}),
    "Whether to relay; `avoid` and `allow` say which regions may.",
]
RiskAttitude: TypeAlias = Annotated[
    Risk,
    OneOf(
        {
            "averse": "having relayed in vain counts five times as much as having missed a relay",
            "neutral": "both count alike",
            "bold": "having missed a relay counts five times as much",
        }
    ),
    "How to weigh the two ways of being wrong about a relay.",
]
AIM = "What to aim at."
AIM_AT_VALUE = "What to aim at; value weighs cost against time at what an hour is worth."


def check_ends_differ(src: str, dst: str, remedy: str = "Name two different regions.") -> None:
    """Raise an InputError if a transfer, a link or what is charged for one ends where it begins."""
    if src == dst:
        raise InputError("dst", "is the source itself", value=dst, remedy=remedy)


volume_field = partial(field, default=DEFAULT_VOLUME_GB, often=True)
objective_field = partial(field, group="goal", label="Objective", often=True)
time_value_field = partial(
    field,
    default=DEFAULT_TIME_VALUE_USD_PER_H,
    example="20usd/h",
    group="goal",
    label="An hour is worth",
)
deadline_field = partial(field, default=None, example="2h", group="goal", often=True)
relays_of_many_field = partial(field, default="any", group=VMS)
frontier_field = partial(field, default=False, group="answer", label="Cost-time frontier")
margin_field = partial(field, default=DEFAULT_MARGIN, example="10%", group="goal")
risk_field = partial(field, default="neutral", group="goal", label="Risk")
vms_limit_field = partial(
    field, default=None, example="4", group=VMS, label="VMs a region", often=True
)
vm_start_field = partial(
    field, default=DEFAULT_VM_START_S, example="60s", group=PRICES, label="VM start"
)


def connections_field(default: int = DEFAULT_CONNECTIONS) -> Any:
    """Declare how many connections a VM opens."""
    example = str(default)
    return field(default=default, example=example, group=VMS, label="Connections a VM", often=True)


@specified
class PricedRequest(Specified):
    """Everything that costs money: what was billed, and which VMs are used."""

    _: KW_ONLY
    month_to_date_gb: Annotated[
        FiguresByPlace,
        ByPlace(Volume(0.0, 1e12), "provider", everywhere="*"),
        "Volume billed this month, by provider or for all (`*`); fees have tiers.",
    ] = field(default={}, example="aws=40TB", group=PRICES, label="Billed this month")
    vm_types: Annotated[
        Mapping[str, str],
        ByPlace(Name(), "provider or region"),
        "VM types to use in place of those that were measured or assumed.",
    ] = field(
        default={}, example="aws=t2.micro", group=PRICES, label="VM types", option="--vm-type"
    )
    """By provider or region."""
    hosts: Annotated[
        Hosts,
        OneOf(
            {
                "as they come": "as measured, else as the provider's images have them",
                "tuned": "raised on all hosts (tcp_rmem, 64 MiB or more)",
            }
        ),
        "TCP windows of the hosts: on long links, those of hosts as they come limit throughput.",
    ] = field(default="as they come", example="tuned", group=VMS)
    addresses: Annotated[
        WantedAddresses,
        OneOf(
            {
                "auto": "private where both ends are known to reach each other by them, else "
                "public",
                "public": "public everywhere",
                "private": "private also between all regions of one provider",
            }
        ),
        "Over which addresses VMs reach each other: their caps and paths differ.",
    ] = field(default="auto", group=VMS)
    max_age_s: Annotated[
        Limit, Duration(), "Refuse to answer from measurements older than this."
    ] = field(default=None, example="30d", group="limits", label="Oldest measurement")
    max_price_age_s: Annotated[
        Limit, Duration(), "Refuse to answer from egress prices older than this."
    ] = field(default=None, example="365d", group="limits", label="Oldest price")
    queue: Annotated[
        Switch, "Where transfers under way leave little, plan from when it ends soonest."
    ] = field(default=False, group="limits", label="Wait for capacity")
    snapshot: Annotated[
        str | None,
        Name(),
        "Answer as of an earlier snapshot: its id, or the newest made before a date, a time or so "
        "long ago. Links are as believed then, prices those of today.",
    ] = field(default=None, example="7d", group="limits", label="Earlier snapshot")


def hour_value_usd(objective: str, usd_per_h: float = 0.0) -> float:
    """Return the value of an hour under an objective: infinity for time, 0 for cost."""
    return {"time": inf, "cost": 0.0}.get(objective, usd_per_h)


class VmLimits(NamedTuple):
    """The numbers of VMs that a request states: the most a region, and those of single regions.

    Where it states none, the number depends on the volume to be sent.
    """

    vms: int | None = None
    vms_in: Mapping[str, int] = {}
    volume_gb: float = 0.0

    @property
    def unasked(self) -> int:
        """The most VMs a region where neither the request, a fleet nor a quota states any."""
        return min(MOST_VMS_FOR_DAYS, max(MOST_VMS_UNASKED, ceil(self.volume_gb / GB_A_DAY)))

    def most(self, site: Site) -> int:
        """Return the number of VMs that a plan may use at a site: that stated, else all there are.

        Quotas bound all numbers but those that the request states for a region.
        """
        if site.region in self.vms_in:
            return self.vms_in[site.region]
        vms = self.vms
        if vms is None:
            vms = min(site.vms or MOST_VMS, MOST_VMS)
            if not site.vms and not site.quotas:
                vms = self.unasked
        return site.may_run(vms) if site.quotas else vms


@specified
class VmRequest(PricedRequest):
    """Everything that is sent by VMs."""

    _: KW_ONLY
    connections: Connections = connections_field()
    vm_start_s: VmStart = vm_start_field()
    vms_running: Annotated[
        Switch, "All VMs run already, so that none has to start. Those of a fleet always do."
    ] = field(default=False, group=PRICES, label="VMs run already")

    @property
    def start_s(self) -> float:
        """Time that VMs take to start: 0 where they run already."""
        return 0.0 if self.vms_running else self.vm_start_s

    def starts_s(self, *sites: Site) -> float:
        """Return the time until VMs run at all of some sites: 0 if they are all of a fleet."""
        return 0.0 if all(site.vms for site in sites) else self.start_s

    @property
    def hour_usd(self) -> float:
        """Value of an hour: 0 where cost alone counts."""
        return 0.0

    @property
    def vm_limits(self) -> VmLimits:
        """The numbers of VMs that it states."""
        return VmLimits()


@specified
class RuledRequest(VmRequest):
    """Everything that has VMs in regions, under rules."""

    _: KW_ONLY
    vms_in: Annotated[
        CountsByPlace, ByPlace(Count(1, MOST_VMS), "region"), "VMs of single regions."
    ] = field(default={}, example="us-east=2", group=VMS, option="--vms", label="VMs of one region")
    avoid: Annotated[
        Several,
        Names("rules", "RULE"),
        "Places that must not relay, nor be an end: provider:NAME, country:CC, continent:CC or a "
        "region.",
    ] = field(default=(), example="provider:azure", group=VMS, aliases=("forbidden",), often=True)
    allow: Annotated[
        Several,
        Names("rules", "RULE"),
        "The only places that may relay, written like those to avoid.",
    ] = field(default=(), example="continent:EU", group=VMS)

    @cached_property
    def forbidden(self) -> frozenset[str]:
        """The regions that must not relay; an InputError where rules are not resolved to regions.

        :mod:`relayd.questions` resolves them by a catalogue.
        """
        rules = [*self.allow, *(rule for rule in self.avoid if rule.startswith(RULE_KINDS))]
        if rules:
            problem = "must name regions for the planner"
            remedy = "Resolve rules with planner.model.aliases.permitted."
            raise InputError("avoid", problem, value=rules[0], remedy=remedy)
        return frozenset(self.avoid)

    def described(self) -> dict[str, Any]:
        """Return all fields, with the regions that the rules forbid in place of the rules."""
        found = super().described()
        del found["avoid"], found["allow"]
        found["forbidden"] = sorted(self.forbidden)
        return found


@specified
class RelayingRequest(RuledRequest):
    """Everything that moves many volumes between VMs in regions."""

    _: KW_ONLY
    vms: MostVms = vms_limit_field()

    @property
    def vm_limits(self) -> VmLimits:
        """The numbers of VMs that it states."""
        return VmLimits(self.vms, self.vms_in)

    @property
    def any_may_relay(self) -> bool:
        """Whether regions that are no ends may relay."""
        return getattr(self, "relays", "none") == "any"
