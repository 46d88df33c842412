"""Models of what is measured: samples, decisions about them, campaigns, the fleet, transfers."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from planner.model.estimate import AddressKind
from planner.model.link_states import LinkState
from probes.importers.limits import (
    MAX_CONNECTIONS,
    MAX_DURATION_S,
    MAX_INTERVALS,
    MAX_TIME_S,
    MIN_TIME_S,
)
from probes.importers.physics import FAULTS
from probes.samples import Metric
from relayd.http.models.common import (
    MOST_NAME,
    Name,
    Page,
    RequestModel,
    Text,
    answer,
    dict_of,
    many,
    maybe,
    model_of,
    page,
)
from relayd.http.models.network import SITE
from relayd.questions.disputes import DisputedFigure
from relayd.snapshots.effects import Effect
from relayd.store.campaigns.states import CampaignState, Failures, StageState
from relayd.store.samples.quarantine import QuarantinedRow, ReasonCount, State
from relayd.store.transfers import WantedState
from relayd.transfers.tracked import TrackedTransfer, TransferDetails

MOST_DECIDED = 1000
MOST_PAIRS = 1000
Word: TypeAlias = Annotated[Text, Field(max_length=100)]

# ---- samples that a client sends ---------------------------------------------------------------


class SampleGiven(RequestModel):
    """One measurement. Two with equal values are one sample, however often they are sent."""

    src: Name = Field(description="`provider:region`; a zone may follow as clouds write it.")
    dst: Name
    metric: Metric
    value: float = Field(ge=0, description="In the unit that the metric's name ends in.")
    measured_at_s: float = Field(
        ge=MIN_TIME_S, le=MAX_TIME_S, description="Start, seconds since 1970 (UTC)."
    )
    tool: Word = Field("api", min_length=1)
    connections: int | None = Field(None, ge=1, le=MAX_CONNECTIONS)
    duration_s: float | None = Field(None, gt=0, le=MAX_DURATION_S)
    warmed_up: bool = False
    src_zone: Word = ""
    dst_zone: Word = ""
    src_vm: Word = ""
    dst_vm: Word = ""
    detail: dict[str, Any] | None = Field(None, description="Further output of the tool.")
    address: AddressKind | None = Field(
        None, description="Over which kind of address it was measured."
    )
    new_level: bool = Field(
        False, description="Whether it was measured twice, and the link has changed its level."
    )
    intervals: int | None = Field(
        None, ge=1, le=MAX_INTERVALS, description="Of how many intervals it is the median."
    )


class SamplesGiven(RequestModel):
    """Samples in one document."""

    samples: list[dict[str, Any]] = Field(
        description="Each a SampleGiven; a wrong one is rejected with its reason.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/SampleGiven"}},
    )


REJECTION = model_of(
    "Rejection",
    "A sample that nothing rests on.",
    row=(int, "From 1: its place in the list, or its line."),
    reason=str,
)
INGEST_ANSWER = answer(
    "IngestAnswer",
    "What became of the samples; when this is read, those accepted are on disk.",
    accepted=int,
    duplicates=(int, "Those that were there already."),
    rejected=int,
    rejections=(many(REJECTION), "The first 100."),
    quarantined=(int, "Those that can't be measurements: kept apart, and nothing rests on them."),
    quarantine=(many(REJECTION), "The first 100 of these."),
    batch_id=(int | None, "Under which new samples are kept."),
)

# ---- quarantine and decisions ------------------------------------------------------------------


def _kind(reason: str) -> str:
    if reason not in FAULTS:
        raise ValueError(f"must be one of {', '.join(FAULTS)}")
    return reason


class QuarantineQuery(Page):
    """Which samples of quarantine."""

    reason: (
        Annotated[str, AfterValidator(_kind), Field(json_schema_extra={"enum": list(FAULTS)})]
        | None
    ) = Field(None, description="Only those of one kind of reason.")
    state: State = Field(
        "open", description="Of which nobody has decided, or those accepted or rejected."
    )
    src: Name | None = Field(None, description="Only of links out of this region.")
    dst: Name | None = Field(None, description="Only of links into this region.")


QUARANTINED_SAMPLE = model_of(
    "QuarantinedSample",
    "A sample that nothing rests on, as it was sent.",
    QuarantinedRow,
    without=("sample", "reporter", "address"),
    token=(str | None, "Name of the token that sent it; null for commands."),
    src=str,
    dst=str,
    metric=str,
    value=float,
    measured_at_s=float,
    tool=str,
    connections=int | None,
    src_vm=str,
    dst_vm=str,
)
QUARANTINE = page(
    "Quarantine",
    "A page of samples that nothing rests on.",
    disputes=(
        list[str],
        "Figures that samples of some source contradict, or that nobody has confirmed.",
    ),
    disputed=(
        many(
            model_of(
                "DisputedSeen",
                "A figure that samples contradict, or that nobody has confirmed.",
                DisputedFigure,
                sources=(list[str], "Who reported them, as a selection names them."),
            )
        ),
        "The same, each with what to decide about.",
    ),
    reasons=(
        many(
            model_of(
                "QuarantineReason",
                "How many samples are in quarantine for one kind of reason.",
                ReasonCount,
            )
        ),
        "The kinds that occur, with counts.",
    ),
    samples=many(QUARANTINED_SAMPLE),
)


class SelectionGiven(RequestModel):
    """Which samples are meant: those to which all that is stated applies."""

    source: Annotated[Text, Field(max_length=MOST_NAME + 10)] | None = Field(
        None, description="Who reported them: `files`, `token NAME`, `address IP`."
    )
    token: Name | None = Field(None, description="Name of the token that sent them.")
    address: Word | None = Field(None, description="From where they were sent.")
    tool: Word | None = Field(None, description="With or without its version.")
    src: Name | None = None
    dst: Name | None = None
    metric: Metric | None = None
    batch: int | None = Field(None, ge=1, le=2**53)
    since_s: float | None = Field(None, description="Measured then or later, seconds since 1970.")
    until_s: float | None = Field(None, description="Measured then or earlier.")


class DecisionRequest(RequestModel):
    """What an operator decides about samples."""

    decision: Literal["accept", "reject", "confirm", "retract", "restore"] = Field(
        description="`accept` and `reject` samples in quarantine; `confirm` others as the own "
        "prober's, `retract` them so that they count no longer, `restore` retracted ones."
    )
    quarantined: list[Annotated[int, Field(ge=1, le=2**53)]] = Field(
        [], max_length=MOST_DECIDED, description="Ids of samples in quarantine."
    )
    selection: SelectionGiven | None = Field(None, description="Of samples not in quarantine.")
    reason: Text = Field("", max_length=500, description="Why, for the record.")
    through: int | None = Field(
        None,
        ge=0,
        le=2**53,
        description="The last sample that `selection` means, as the effects have it: samples that "
        "came later are left as they are.",
    )

    @model_validator(mode="after")
    def _names_samples(self) -> Self:
        if (self.decision in ("accept", "reject")) is not bool(self.quarantined):
            raise ValueError("`accept` and `reject`, and they alone, need ids in `quarantined`")
        if (self.decision in ("accept", "reject")) is (self.selection is not None):
            raise ValueError("`confirm`, `retract` and `restore`, and they alone, need `selection`")
        return self


EFFECTS_ANSWER = answer(
    "EffectsAnswer",
    "What a decision would do.",
    samples=(int, "How many it is about."),
    through=(int, "The last sample there is, or that was asked for; to be sent with the decision."),
    total=(int, "Figures that would change by over 0.1 %."),
    changed=(
        many(model_of("EffectSeen", "A figure that becomes another.", Effect)),
        "The first 100, the largest ratio first.",
    ),
)
DECISION_ANSWER = answer(
    "DecisionAnswer",
    "A decision that was made; the next snapshot heeds it.",
    samples=(int, "How many it was about."),
    batch_id=(int | None, "That has them, of those accepted."),
)

# ---- campaigns ---------------------------------------------------------------------------------


class CampaignRequest(RequestModel):
    """What to measure with the fleet of the service."""

    budget_usd: float = Field(gt=0, le=1e6, description="Most to spend on egress.")
    phases: list[Literal["rtt", "per-flow", "caps", "aggregate"]] | None = Field(
        None, min_length=1, max_length=4, description="Which to measure; all where left out."
    )
    pairs: list[Name] = Field(
        [], max_length=MOST_PAIRS, description="Only these, as `source>destination` of hosts."
    )
    thorough: bool = Field(False, description="All pairs, not only those that matter.")
    connections: int = Field(64, ge=1, le=128, description="Most TCP connections of a probe.")
    max_minutes: float | None = Field(None, gt=0, le=10_000, description="Begin nothing later.")
    resume: bool = Field(False, description="Go on with the last campaign, if it is unfinished.")


CAMPAIGN = model_of(
    "CampaignSeen",
    "A campaign and how far it is.",
    CampaignState,
    without=("planned", "done", "failed"),
    is_running=(bool, "Whether some process is running it now."),
    may_be_stopped=(bool, "Whether it is running and `stop` ends it; the watcher would go on."),
    probes=model_of(
        "ProbeCounts", "How many probes are in which state.", planned=int, done=int, failed=int
    ),
)
CAMPAIGN_ANSWER = answer(
    "CampaignAnswer",
    "One campaign.",
    campaign=CAMPAIGN,
    stages=(
        many(
            model_of(
                "StageSeen",
                "Probes that were chosen together, and how far they are.",
                StageState,
                stage=(str, "`rtt`, `per-flow`, `caps`, `aggregate 1`, ..."),
            )
        ),
        "In the order in which they were planned.",
    ),
    failures=(
        many(
            model_of(
                "FailuresSeen",
                "Probes that failed for the same reason.",
                Failures,
                pairs=(list[list[str]], "Source and destination host, the first 20."),
            )
        ),
        "By reason, the most frequent first.",
    ),
    progress=(
        dict[str, Any] | None,
        "The last `campaign` event of one that is not finished, with its `at_s`: `status`, "
        "`stage`, `round` of `rounds`, `done` of `total`, `left_s`.",
    ),
)
CAMPAIGNS = page("Campaigns", "Campaigns, the newest first.", campaigns=many(CAMPAIGN))
CAMPAIGN_PART = model_of(
    "CampaignPart", "What some probes take at most.", rounds=int, volume_gb=float, egress_usd=float
)
REGION_PART = model_of(
    "RegionPart",
    "Volumes that a region sends and receives, and the cost of its egress.",
    sent_gb=float,
    received_gb=float,
    egress_usd=float,
)
FORECAST = model_of(
    "ForecastSeen",
    "Upper bounds of a campaign's time, volume and cost.",
    base=CAMPAIGN_PART,
    duration_s=float,
    phases=dict_of(CAMPAIGN_PART),
    regions=dict_of(REGION_PART),
)
FORECAST_ANSWER = answer(
    "ForecastAnswer",
    "The forecast of a campaign, and of measuring all pairs.",
    campaign=FORECAST,
    all_pairs=(FORECAST, "All pairs with 64 connections for 5 s."),
    regret=model_of(
        "RegretSeen",
        "Expected regret: the share of throughput lost for lack of measurements.",
        before=(
            float,
            "The mean over all ordered pairs of regions of which something is known, now.",
        ),
        after=(float, "The same after all of it, if the budget allows that."),
        saved_per_usd=(
            float | None,
            "What a dollar of egress saves of it; null where that or its cost is nothing.",
        ),
        unknown_regions=(
            list[str],
            "Regions of the fleet of which nothing is known; the regret is not of them.",
        ),
    ),
)

# ---- the fleet ---------------------------------------------------------------------------------

FLEET_HOST = model_of(
    "FleetHost",
    "A host that measures, without its login.",
    name=str,
    region=str,
    zone=str,
    vm_type=(str, "As the fleet file has it; may be empty."),
    unreachable=(
        str | None,
        "Why the watcher can't reach any host of its region; null where it can, or where nobody "
        "watches.",
    ),
    remedy=(str | None, "What to do about it."),
)
FLEET_ANSWER = answer(
    "FleetAnswer",
    "Who measures, and what is wrong now.",
    configured=(bool, "Whether the service has a fleet."),
    problem=(str, "Why the fleet file can't be used now; empty where it can."),
    hosts=many(FLEET_HOST),
    vm_caps=(
        many(
            model_of(
                "VmCapSeen",
                "The newest cap of one VM in one direction, compared with its type's.",
                host=str,
                region=str,
                vm_type=str,
                cap=Literal["egress", "ingress"],
                mbps=float,
                measured_at_s=float,
                catalogue_mbps=float | None,
                others_of_type=int,
                recreate=(bool, "Whether recreating the VM is likely to pay."),
                odds=float | None,
                tries_to_be_sure=int | None,
                expected_mbps=float | None,
                slower_share=(float | None, "Share of VMs of its type that are slower."),
                text=str,
            )
        ),
        "Measured caps of single VMs.",
    ),
    leg_states=(list[LinkState], "Links that are down or degraded now."),
    may_start_campaigns=(
        bool,
        "Whether the caller may start one: a fleet, no watcher, and scope `probe`.",
    ),
    why_not=(str, "Why not; empty where they may."),
)
REFERENCE_CAPS = model_of(
    "ReferenceCaps",
    "The catalogue's caps of a VM type.",
    egress_gbps=float,
    ingress_gbps=float,
    window_mb=float,
    burstable=(bool, "Whether its caps hold only while credits last."),
    source=(str, "Where the figures are from, with the date."),
)
SITES = answer(
    "Sites",
    "The caps of all regions.",
    sites=many(
        model_of(
            "SiteSeen",
            "A region with the caps of one VM there, and the catalogue's caps of its type.",
            base=SITE,
            reference=(maybe(REFERENCE_CAPS), "Null where the type is not known."),
        )
    ),
)

# ---- transfers that their programs report ------------------------------------------------------


class TransfersQuery(Page):
    """Which transfers."""

    state: WantedState | None = Field(
        None, description="`in-flight` are those that run and those that are silent."
    )
    src: Name | None = Field(None, description="Only from this region.")
    dst: Name | None = Field(None, description="Only to this region.")


TRANSFERS_ANSWER = page(
    "TransfersAnswer", "Transfers, the newest first.", transfers=list[TrackedTransfer]
)
TRANSFER_ANSWER = answer("TransferAnswer", "One transfer.", transfer=TrackedTransfer)
TRANSFER_DETAILS_ANSWER = answer(
    "TransferDetailsAnswer", "One transfer, with all that is known of it.", details=TransferDetails
)
