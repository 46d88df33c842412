"""What the first page of the dashboard shows: health, recent events, where relays pay."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.model.estimate import Kind
from planner.model.link_states import LinkState
from planner.model.network import Snapshot
from relayd.http.models.common import RequestModel, ResponseModel

MOST_GAINS = 50


class KnowledgeSeen(ResponseModel):
    """What is known of directed pairs of regions, by the source of the aggregate throughput."""

    measured: int
    inferred: int
    baseline: int
    outlived: int = Field(
        description="Of the measured ones: measured longer ago than such links keep their level."
    )
    newest_sample_s: float | None = Field(
        description="When the newest sample of any link was taken, seconds since 1970 (UTC)."
    )
    median_sample_s: float | None = Field(
        description="The same of the link in the middle, of all that have a sample."
    )
    old_prices: list[str] = Field(
        description="Egress prices that are more than a year old, in a sentence with what renews "
        "them; empty where none are."
    )


class SnapshotState(ResponseModel):
    """The newest snapshot and what waits for the next."""

    created_at_s: float | None = Field(description="Null for a baseline.")
    warning: str | None = Field(description="Since when snapshots fail or are overdue, and why.")


class MeasuringToday(ResponseModel):
    """What measuring has taken since midnight UTC."""

    since_s: float = Field(description="Midnight, seconds since 1970 (UTC).")
    done: int = Field(description="Probes of campaigns that ended well.")
    failed: int
    sent_gb: float
    usd: float = Field(description="Egress, with what liveness probes have spent or reserved.")
    budget_usd: float | None = Field(
        description="The watcher's daily budget; null where this service watches nothing."
    )


class PredictionSeen(ResponseModel):
    """The newest sample of each link since a day ago against the snapshot of that time."""

    before: str = Field(description="Id of that snapshot.")
    samples: int
    median_error: float | None = Field(
        description="Median of |sample - estimate| / estimate; null for no samples."
    )
    inside_share: float | None = Field(
        description="Share of the samples between the bounds; 0.9 is what bounds promise."
    )


class TransfersSeen(ResponseModel):
    """Transfers that their programs report."""

    in_flight: int = Field(description="Running or silent; at most 1,000 are counted.")
    late: int = Field(description="Of these: to end after their deadline.")
    silent: int = Field(description="Of these: not reported for longer than they should be.")


class EventSeen(ResponseModel):
    """Something that happened, as the stream of events has it."""

    id: int
    at_s: float
    kind: str = Field(description="`leg` or `verification`.")
    subject: str
    detail: dict[str, Any]


class Overview(ResponseModel):
    """The state of knowledge and of measuring at one glance."""

    snapshot: Snapshot
    checked_at_s: float
    since_s: float = Field(description="A day before, seconds since 1970 (UTC).")
    knowledge: KnowledgeSeen
    leg_states: list[LinkState] = Field(description="Links that are down or degraded now.")
    snapshots: SnapshotState
    measuring: MeasuringToday
    prediction: PredictionSeen | None = Field(
        description="Null where no snapshot of a day ago is kept."
    )
    transfers: TransfersSeen
    events: list[EventSeen] = Field(description="Since a day ago, the newest first, at most 100.")


class RelayGainsQuery(RequestModel):
    """How many."""

    limit: int = Field(10, ge=1, le=MOST_GAINS, description="Most entries of the answer.")


class RelayGainSeen(ResponseModel):
    """A pair of regions, and the best single relay between them."""

    src: str
    dst: str
    relay: str
    gain: float = Field(description="Throughput through the relay over that of the direct path.")
    gain_low: float
    gain_high: float
    probability: float = Field(description="That the gain is at least a tenth.")
    source: Kind = Field(description="The least certain source of the links compared.")
    direct_gbps: float
    relay_gbps: float
    direct_s: float = Field(description="Time of the volume.")
    relay_s: float
    direct_usd: float = Field(description="Egress and VMs, for the volume.")
    relay_usd: float
    pays_from_usd_per_h: float = Field(
        description="What an hour must be worth for the relay to pay: its additional cost over "
        "the time that it saves. A split over it and the direct path may pay earlier."
    )


class RelayGains(ResponseModel):
    """Where a single relay gains most, one VM a region, the largest gain first."""

    snapshot: Snapshot
    volume_gb: float = Field(description="That times and costs are of.")
    pairs: int = Field(description="On which a relay is expected to gain a tenth or more.")
    relays: list[RelayGainSeen]
