"""Models of the network as it is known: regions, links and their evidence, snapshots, changes."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from pydantic import Field

from planner.fields.shared import DEFAULT_CONNECTIONS, MOST_CONNECTIONS
from planner.model.estimate import AddressKind, Figures, Kind, Origin, Prior, RateCut
from planner.model.link import LimitedBy
from planner.model.link_states import LinkState
from planner.model.network import NewerSamples
from planner.model.verification import Verified
from probes.analysis.binning import HistogramBar, TimeBin
from probes.estimation.current_samples import LinkShift
from probes.estimation.provenance import FigureProvenance, UsedSeries
from probes.importers.limits import MAX_TIME_S
from probes.samples import Metric, Sample
from relayd.http.models.common import Name, Page, RequestModel, answer, many, maybe, model_of, page
from relayd.snapshots.changes import EstimateChange
from relayd.store import SnapshotRow
from relayd.store.links.events import LinkEvent
from relayd.store.links.series import MetricSeen

MatrixMetric: TypeAlias = Literal[
    "per-flow", "aggregate", "rtt", "fee", "relay-gain", "loss", "age"
]
MOST_BINS = 1000
MOST_LISTED = 5000
LEAST_FOR_SHAPE = 8
"""Fewer samples have no distribution worth showing."""
DAY_S = 86400.0
MOST_S = 100 * 366 * DAY_S

# ---- estimates ---------------------------------------------------------------------------------

ESTIMATED = model_of(
    "Estimated",
    "What every estimate has.",
    source=Kind,
    measured_at_s=(
        float | None,
        "Time from which it ages, seconds since 1970 (UTC): of the newest sample.",
    ),
    samples=(int, "How many samples of this very quantity it rests on."),
    basis=(str, "In words, for people, what it was made from."),
    prior=(
        maybe(
            model_of(
                "EstimatePrior",
                "What would be believed without measurements of its own: what these fade to with "
                "age.",
                Prior,
            )
        ),
        "Null where it fades around itself, or never.",
    ),
    origin=model_of(
        "EstimateOrigin",
        "From what an estimate was made; keys that are missing are null or 0.",
        Origin,
        sparse=True,
        figures=maybe(
            model_of(
                "EstimateFigures",
                "The figures that an estimate was made with; those that its method has none of "
                "are missing.",
                Figures,
                sparse=True,
                rate_cut=maybe(model_of("RateCut", "A lasting fall of a link's rate.", RateCut)),
            )
        ),
    ),
)
ESTIMATE = model_of(
    "Estimate",
    "What is believed of one quantity; nine of ten later tests lie between low and high.",
    base=ESTIMATED,
    low=float,
    expected=float,
    high=float,
)
CAP = model_of(
    "Cap",
    "What one VM can do at most; null where nothing is known of its type.",
    base=ESTIMATED,
    low=float | None,
    expected=float | None,
    high=float | None,
)

# ---- regions and sites -------------------------------------------------------------------------

REGIONS = answer(
    "Regions",
    "All regions that can be planned between, and all aliases.",
    regions=many(
        model_of(
            "Region",
            "A region.",
            id=str,
            provider=str,
            city=str,
            country=str,
            continent=str,
            latitude_deg=float | None,
            longitude_deg=float | None,
            access=(
                str,
                "Empty where every customer may use the region; else restricted, government, "
                "china or sovereign.",
            ),
            in_graph=(
                bool,
                "Whether links, matrices and relays include it; plans can be made from and to any "
                "region.",
            ),
            vm_type=(str, "VM type in use there, as `provider:type`."),
            aliases=list[str],
        )
    ),
    aliases=(dict[str, list[str]], "Alias to regions, the preferred first."),
)
CATALOGUE_ANSWER = answer(
    "CatalogueAnswer",
    "Regions, VM types and prices.",
    digest=(str, "Identifies the content."),
    catalogue=(
        dict[str, Any],
        "Regions, aliases, VM types, their defaults, and egress prices, as rows.",
    ),
)
SITE = model_of(
    "Site",
    "A region with the caps of one VM there.",
    region=str,
    vm_type=str,
    egress_gbps=CAP,
    ingress_gbps=CAP,
    window_mb=ESTIMATE,
    private_egress_gbps=(
        maybe(ESTIMATE),
        "The caps of traffic over private addresses, and of all traffic where they are the higher "
        "ones; null where they are not known to differ.",
    ),
    private_ingress_gbps=maybe(ESTIMATE),
    private_network=(str, "Sites that name the same one reach each other by private addresses."),
)

# ---- links -------------------------------------------------------------------------------------

LINK = model_of(
    "Link",
    "One directed pair of regions.",
    src=str,
    dst=str,
    rtt_ms=ESTIMATE,
    per_flow_mbps=ESTIMATE,
    aggregate_gbps=ESTIMATE,
    loss_pct=float | None,
    limited_by=(
        LimitedBy,
        "What holds the aggregate where it is: the cap of a VM (`vm`), the windows of its "
        "connections (`window`), the path itself (`path`: more connections were seen to bring "
        "nothing), or not known.",
    ),
    address=(AddressKind, "Over which its VMs reach each other."),
)


class LinksQuery(Page):
    """Which links."""

    src: Name | None = Field(None, description="Only links out of this region or alias.")
    dst: Name | None = Field(None, description="Only links into this region or alias.")
    provider: Name | None = Field(None, description="Only links with an end at this provider.")
    source: Kind | None = Field(
        None, description="Only links whose aggregate throughput is of this source."
    )


LINKS = page("Links", "A page of links.", links=many(LINK))
CAPS = model_of(
    "Caps",
    "The VM at one end of a link.",
    region=str,
    vm_type=(str, "As `provider:type`; empty where none is known."),
    egress_gbps=(
        maybe(ESTIMATE),
        "Cap of one VM over the link's kind of address; null where not known.",
    ),
    ingress_gbps=maybe(ESTIMATE),
    window_mb=ESTIMATE,
)
LINK_ANSWER = answer(
    "LinkAnswer",
    "One link, the VMs at its ends, and what it costs.",
    link=LINK,
    sender=CAPS,
    receiver=CAPS,
    usd_per_gb=(float | None, "First-tier egress; null without prices."),
    light=(
        maybe(
            model_of(
                "Light",
                "A link's round-trip time against light on the shortest way over the globe.",
                distance_km=(float, "Along the great circle."),
                vacuum_ms=(float, "There and back at the speed of light: the bound."),
                fibre_ms=(float, "The same in a straight fibre (1.468 times as long)."),
                stretch=(
                    float | None,
                    "Round-trip time over that of the fibre; null for no distance.",
                ),
                possible=(bool, "False where the time is below the bound."),
            )
        ),
        "Null where a place is not known.",
    ),
    state=(LinkState | None, "Where it is down or degraded now."),
)


class HistoryQuery(Page):
    """Which samples of a link."""

    metric: Metric | None = Field(None, description="Only this metric.")


SAMPLE = model_of(
    "SampleSeen",
    "A sample, with where it is kept and came from.",
    Sample,
    id=int,
    batch_id=int,
    value=(float, "In the unit that the metric's name ends in."),
    detail=(str, "JSON object with further output of the tool, or empty."),
)
HISTORY = page("History", "A page of samples, the oldest first.", samples=many(SAMPLE))


class SummaryQuery(RequestModel):
    """Of what to sum up the samples of a link."""

    metric: Metric = "rtt_ms"
    bins: int = Field(200, ge=1, le=MOST_BINS, description="Into how many stretches of time.")
    since_s: float | None = Field(
        None, ge=0, le=MAX_TIME_S, description="Only what was measured at or after this time."
    )
    until_s: float | None = Field(
        None, ge=0, le=MAX_TIME_S, description="Only what was measured at or before this time."
    )
    list_up_to: int = Field(
        0,
        ge=0,
        le=MOST_LISTED,
        description="Also list the samples one by one where they are no more than this.",
    )


LINK_SUMMARY = answer(
    "LinkSummary",
    "The samples of a link and metric, small enough to look at.",
    src=str,
    dst=str,
    metric=Metric,
    metrics=(
        many(model_of("MetricSeen", "How much was measured of one metric of a link.", MetricSeen)),
        "All that this link has samples of.",
    ),
    samples=(int, "How many of this metric are in this time."),
    compacted=(
        int,
        "How many of them are no longer kept one by one: they are in the bins, not in the "
        "distribution.",
    ),
    bins=(
        many(
            model_of("Bin", "Samples of a stretch of time, values in the metric's unit.", TimeBin)
        ),
        "Stretches of equal length; those without samples missing.",
    ),
    points=(
        maybe(
            many(model_of("Point", "One sample.", at_s=float, value=float, connections=int | None))
        ),
        "Every sample, the oldest first; null where there are too many.",
    ),
    histogram=many(
        model_of(
            "Bar",
            "A bar of a histogram: from `low` up to but without `high`; the last bar with it.",
            HistogramBar,
        )
    ),
    quantiles=(
        list[float],
        "Of 0, 1, ... 100 %; as many as samples where these are fewer, and then the values "
        "themselves.",
    ),
    has_shape=(
        bool,
        f"Whether there are the {LEAST_FOR_SHAPE} samples without which a distribution says "
        "nothing.",
    ),
)


class LinkEventsQuery(Page):
    """Which part of the list."""


LINK_EVENT = model_of(
    "LinkEventSeen", "Something that happened to a link.", LinkEvent, without=("number",)
)
LINK_EVENTS = page(
    "LinkEvents", "A page of what happened to a link, the newest first.", events=many(LINK_EVENT)
)
EVIDENCE_SERIES = model_of(
    "EvidenceSeries",
    "Samples of one link and metric that a figure rests on.",
    UsedSeries,
    without=("most",),
    samples=(many(SAMPLE), "Those that counted, the newest first."),
    left_out=many(model_of("LeftOut", "Samples that were not used.", reason=str, samples=int)),
    was_read=(
        bool,
        "False where a figure rests on so many links that the samples of this one were not looked "
        "up.",
    ),
)
EVIDENCE = model_of(
    "Evidence",
    "What one figure was made of.",
    FigureProvenance,
    estimate=(
        maybe(ESTIMATE),
        "As the snapshot has it, not widened for age; null where it has no bounds.",
    ),
    series=many(EVIDENCE_SERIES),
    further=(int, "How many links took part that are not named."),
)
LINK_EVIDENCE = answer(
    "LinkEvidence",
    "What is behind each figure of a link.",
    src=str,
    dst=str,
    evidence=many(EVIDENCE),
)

# ---- all pairs ---------------------------------------------------------------------------------


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


MATRIX_ANSWER = answer(
    "MatrixAnswer",
    "One figure for every pair of regions, row to column.",
    metric=MatrixMetric,
    unit=str,
    regions=list[str],
    values=(list[list[float | None]], "Null where nothing is known."),
    sources=(
        list[list[Kind | None]] | None,
        "What each value rests on; null for metrics that are no estimates.",
    ),
)

# ---- snapshots and what changed between them ---------------------------------------------------

GRAPH = answer(
    "Graph",
    "A whole snapshot: enough to plan without asking again.",
    aged_to_s=(float | None, "Unix time that bounds are widened for; null for those as measured."),
    sites=many(SITE),
    links=many(LINK),
    other_links=(
        many(LINK),
        "Links over the kind of address that is not in use, where both are known.",
    ),
    leg_states=(
        list[LinkState],
        "Links that are down or degraded now; to be laid over the links' figures.",
    ),
    verifications=(
        list[Verified],
        "What runs of plans have shown; to be allowed for in plans between their ends.",
    ),
    newer_samples=(
        NewerSamples | None,
        "What has waited for a snapshot for longer than usual; null for nothing.",
    ),
)
SNAPSHOT = model_of(
    "SnapshotSeen",
    "A snapshot that is kept.",
    SnapshotRow,
    without=("as_of_s", "catalogue_digest"),
    as_of=(str, "Time of its newest sample, RFC 3339."),
)


class SnapshotsQuery(Page):
    """Which snapshots."""

    older_than_s: float = Field(
        0.0, ge=0, allow_inf_nan=False, description="Only those made at least so long ago."
    )


SNAPSHOTS = page("Snapshots", "Snapshots, the newest first.", snapshots=many(SNAPSHOT))


class ChangesQuery(Page):
    """Since when."""

    since_s: float = Field(DAY_S, gt=0, le=MOST_S, description="Seconds ago; a day by default.")
    since: str | None = Field(
        None,
        min_length=1,
        max_length=40,
        description="In place of `since_s`, a time: RFC 3339, such as 2026-05-01T08:00:00Z.",
    )
    source: Kind | None = Field(
        None, description="Only changes whose new estimate is of this source."
    )


CHANGE = model_of(
    "ChangeSeen",
    "An estimate that left its bounds.",
    EstimateChange,
    metric=Literal[
        "aggregate_gbps", "per_flow_mbps", "rtt_ms", "egress_gbps", "ingress_gbps", "window_mb"
    ],
    before=(ESTIMATE, "As it was then, with bounds widened for age."),
    after=ESTIMATE,
)
CHANGES = page(
    "Changes",
    "What has changed, the largest ratio first.",
    since_s=(float, "The time that was asked for, seconds since 1970 (UTC)."),
    before=(
        maybe(SNAPSHOT),
        "The snapshot that was the newest then; null where none is kept that is as old.",
    ),
    oldest=(maybe(SNAPSHOT), "The oldest that is kept."),
    changes=many(CHANGE),
    total=(int, "Of these changes, on all pages."),
    total_by_source=(dict[Kind, int], "Of all changes, by the source of the new estimate."),
    new_regions=list[str],
    lost_regions=list[str],
    shifts=(
        many(
            model_of(
                "ShiftSeen",
                "A lasting change of level that was found in the samples of a link.",
                LinkShift,
                metric=Metric,
            )
        ),
        "Found since then, the newest first.",
    ),
)
