"""The fleet of the service, and caps of VMs, compared with the catalogue's."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.model.link_states import LinkState
from planner.model.network import Snapshot
from relayd.http.models.common import ResponseModel
from relayd.http.models.network import Site


class FleetHost(ResponseModel):
    """A host that measures, without its login."""

    name: str
    region: str
    zone: str
    vm_type: str = Field(description="As the fleet file has it; may be empty.")
    unreachable: str | None = Field(
        description="Why the watcher can't reach any host of its region; null where it can, or "
        "where nobody watches."
    )
    remedy: str | None = Field(description="What to do about it.")


class VmCapSeen(ResponseModel):
    """The newest cap of one VM in one direction, compared with its type's."""

    host: str
    region: str
    vm_type: str
    cap: Literal["egress", "ingress"]
    mbps: float
    measured_at_s: float
    catalogue_mbps: float | None
    others_of_type: int
    recreate: bool = Field(description="Whether recreating the VM is likely to pay.")
    odds: float | None
    tries_to_be_sure: int | None
    expected_mbps: float | None
    slower_share: float | None = Field(description="Share of VMs of its type that are slower.")
    text: str


class FleetAnswer(ResponseModel):
    """Who measures, and what is wrong now."""

    snapshot: Snapshot
    configured: bool = Field(description="Whether the service has a fleet.")
    problem: str = Field(description="Why the fleet file can't be used now; empty where it can.")
    hosts: list[FleetHost]
    vm_caps: list[VmCapSeen] = Field(description="Measured caps of single VMs.")
    leg_states: list[LinkState] = Field(description="Links that are down or degraded now.")
    may_start_campaigns: bool = Field(
        description="Whether the caller may start one: a fleet, no watcher, and scope `probe`."
    )
    why_not: str = Field(description="Why not; empty where they may.")


class ReferenceCaps(ResponseModel):
    """The catalogue's caps of a VM type."""

    egress_gbps: float
    ingress_gbps: float
    window_mb: float
    burstable: bool = Field(description="Whether its caps hold only while credits last.")
    source: str = Field(description="Where the figures are from, with the date.")


class SiteSeen(Site):
    """A region with the caps of one VM there, and the catalogue's caps of its type."""

    reference: ReferenceCaps | None = Field(description="null where the type is not known.")


class Sites(ResponseModel):
    """The caps of all regions."""

    snapshot: Snapshot
    sites: list[SiteSeen]
