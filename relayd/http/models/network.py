"""Regions, links, matrices and snapshots."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field

from planner.fields.shared import DEFAULT_CONNECTIONS, MOST_CONNECTIONS
from planner.model.estimate import AddressKind, Kind
from planner.model.link import LimitedBy
from planner.model.link_states import LinkState
from planner.model.network import Snapshot
from planner.model.verification import Verified
from probes.samples import Metric
from relayd.http.models.common import Cap, Estimate, Name, Page, RequestModel, ResponseModel

MatrixMetric: TypeAlias = Literal[
    "per-flow", "aggregate", "rtt", "fee", "relay-gain", "loss", "age"
]


class Region(ResponseModel):
    """A region."""

    id: str
    provider: str
    city: str
    country: str
    continent: str
    latitude_deg: float | None
    longitude_deg: float | None
    access: str = Field(
        description="Empty where every customer may use the region; else restricted, government, "
        "china or sovereign."
    )
    in_graph: bool = Field(
        description="Whether links, matrices and relays include it; plans can be made from and to "
        "any region."
    )
    vm_type: str = Field(description="VM type in use there, as `provider:type`.")
    aliases: list[str]


class Regions(ResponseModel):
    """All regions that can be planned between, and all aliases."""

    snapshot: Snapshot
    regions: list[Region]
    aliases: dict[str, list[str]] = Field(description="Alias to regions, the preferred first.")


class Link(ResponseModel):
    """One directed pair of regions."""

    src: str
    dst: str
    rtt_ms: Estimate
    per_flow_mbps: Estimate
    aggregate_gbps: Estimate
    loss_pct: float | None
    limited_by: LimitedBy = Field(
        description="What holds the aggregate where it is: the cap of a VM (`vm`), the windows of "
        "its connections (`window`), the path itself (`path`: more connections were seen to bring "
        "nothing), or not known."
    )
    address: AddressKind = Field(description="Over which its VMs reach each other.")


class LinksQuery(Page):
    """Which links."""

    src: Name | None = Field(None, description="Only links out of this region or alias.")
    dst: Name | None = Field(None, description="Only links into this region or alias.")
    provider: Name | None = Field(None, description="Only links with an end at this provider.")
    source: Kind | None = Field(
        None, description="Only links whose aggregate throughput is of this source."
    )


class Links(ResponseModel):
    """A page of links."""

    snapshot: Snapshot
    links: list[Link]
    next_cursor: str | None = Field(description="For the next page; null on the last.")


class Caps(ResponseModel):
    """The VM at one end of a link."""

    region: str
    vm_type: str = Field(description="As `provider:type`; empty where none is known.")
    egress_gbps: Estimate | None = Field(
        description="Cap of one VM over the link's kind of address; null where not known."
    )
    ingress_gbps: Estimate | None
    window_mb: Estimate


class Light(ResponseModel):
    """A link's round-trip time against light on the shortest way over the globe."""

    distance_km: float = Field(description="Along the great circle.")
    vacuum_ms: float = Field(description="There and back at the speed of light: the bound.")
    fibre_ms: float = Field(description="The same in a straight fibre (1.468 times as long).")
    stretch: float | None = Field(
        description="Round-trip time over that of the fibre; null for no distance."
    )
    possible: bool = Field(description="False where the time is below the bound.")


class LinkAnswer(ResponseModel):
    """One link, the VMs at its ends, and what it costs."""

    snapshot: Snapshot
    link: Link
    sender: Caps
    receiver: Caps
    usd_per_gb: float | None = Field(description="First-tier egress; null without prices.")
    light: Light | None = Field(description="Null where a place is not known.")
    state: LinkState | None = Field(description="Where it is down or degraded now.")


class HistoryQuery(Page):
    """Which samples of a link."""

    metric: Metric | None = Field(None, description="Only this metric.")


class SampleSeen(ResponseModel):
    """A sample, with where it is kept and came from."""

    id: int
    batch_id: int
    src: str
    dst: str
    metric: Metric
    value: float = Field(description="In the unit that the metric's name ends in.")
    measured_at_s: float
    tool: str
    connections: int | None
    duration_s: float | None
    warmed_up: bool
    src_zone: str
    dst_zone: str
    src_vm: str
    dst_vm: str
    detail: str = Field(description="JSON object with further output of the tool, or empty.")
    address: AddressKind | None = Field(description="Over which kind of address, where known.")
    new_level: bool = Field(
        description="Whether a verification measured twice and found that the link has changed."
    )
    intervals: int | None = Field(description="Of how many intervals it is the median.")


class History(ResponseModel):
    """A page of samples, the oldest first."""

    snapshot: Snapshot
    samples: list[SampleSeen]
    next_cursor: str | None


class MatrixQuery(RequestModel):
    """Which figure for all pairs."""

    metric: MatrixMetric = "aggregate"
    connections: int = Field(
        DEFAULT_CONNECTIONS,
        ge=1,
        le=MOST_CONNECTIONS,
        description="For `relay-gain`: TCP connections that a VM opens.",
    )
    measured_only: bool = Field(
        False, description="Leave out regions none of whose throughput was measured."
    )
    digits: int | None = Field(
        None,
        ge=1,
        le=15,
        description="Round to so many significant digits: a smaller answer. Null for all digits.",
    )
    snapshot: str | None = Field(
        None, description="Id of an older snapshot (`/v1/snapshots`); null for the newest."
    )


class MatrixAnswer(ResponseModel):
    """One figure for every pair of regions, row to column."""

    snapshot: Snapshot
    metric: MatrixMetric
    unit: str
    regions: list[str]
    values: list[list[float | None]] = Field(description="null where nothing is known.")
    sources: list[list[Kind | None]] | None = Field(
        description="What each value rests on; null for metrics that are no estimates."
    )


class Site(ResponseModel):
    """A region with the caps of one VM there."""

    region: str
    vm_type: str
    egress_gbps: Cap
    ingress_gbps: Cap
    window_mb: Estimate
    private_egress_gbps: Estimate | None = Field(
        description="The caps of traffic over private addresses, and of all traffic where they are "
        "the higher ones; null where they are not known to differ."
    )
    private_ingress_gbps: Estimate | None
    private_network: str = Field(
        description="Sites that name the same one reach each other by private addresses."
    )


class NewerSamples(ResponseModel):
    """Samples that are stored and that the snapshot does not know."""

    samples: int
    since_s: float = Field(description="When the first of them was stored, Unix time.")
    reason: Literal["none", "begun", "failed"] = Field(
        description="No snapshot of them was made; one was begun and has not ended; or it failed."
    )
    tried_at_s: float | None = Field(description="When that was, Unix time.")


class Graph(ResponseModel):
    """A whole snapshot: enough to plan without asking again."""

    snapshot: Snapshot
    aged_to_s: float | None = Field(
        description="Unix time that bounds are widened for; null for those as measured."
    )
    sites: list[Site]
    links: list[Link]
    other_links: list[Link] = Field(
        description="Links over the kind of address that is not in use, where both are known."
    )
    leg_states: list[LinkState] = Field(
        description="Links that are down or degraded now; to be laid over the links' figures."
    )
    verifications: list[Verified] = Field(
        description="What runs of plans have shown; to be allowed for in plans between their ends."
    )
    newer_samples: NewerSamples | None = Field(
        description="What has waited for a snapshot for longer than usual; null for nothing."
    )


class SnapshotSeen(ResponseModel):
    """A snapshot that is kept."""

    id: str
    as_of: str = Field(description="Time of its newest sample, RFC 3339.")
    created_at_s: float
    source: str
    samples_through: int = Field(description="Id of the newest sample that it rests on.")
    links: int
    sites: int


class SnapshotsQuery(Page):
    """Which snapshots."""

    older_than_s: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="Only those made at least so long ago."
    )


class Snapshots(ResponseModel):
    """A page of snapshots, the newest first."""

    snapshot: Snapshot
    snapshots: list[SnapshotSeen]
    next_cursor: str | None


class CatalogueAnswer(ResponseModel):
    """Regions, VM types and prices."""

    snapshot: Snapshot
    digest: str = Field(description="Identifies the content.")
    catalogue: dict[str, Any] = Field(
        description="Regions, aliases, VM types, their defaults, and egress prices, as rows."
    )
