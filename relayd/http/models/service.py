"""Models of the service itself: health, the overview, tokens, events, batches and scripts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.model.estimate import Kind
from planner.model.link_states import LinkState
from planner.transfer.plan import Plan
from relayd.emitting.formats import DEFAULT_PORT, FORMATS
from relayd.http.models.common import Name, RequestModel, answer, many, maybe, model_of
from relayd.http.problems import Problem
from relayd.store.events import Event
from relayd.store.tokens import Scope, Token

MOST_GAINS = 50

# ---- for operators -----------------------------------------------------------------------------

HEALTH = model_of("Health", "The process answers.", status=Literal["ok"])
READINESS = answer(
    "Readiness",
    "Whether requests should be sent here.",
    status=Literal["ready", "not ready"],
    reasons=(list[str], "Why not; empty where ready."),
    warnings=(
        list[str],
        "What to look into though it is ready: snapshots that fail or are overdue, since when and "
        "why, and a disk of the store that is nearly full.",
    ),
    snapshot_age_s=(float | None, "Since its newest sample; null for a baseline."),
    checked_at_s=float,
    watch=(
        maybe(
            model_of(
                "WatchHealth",
                "How the watcher is, as far as anyone may know.",
                role=(str, "`prober`, `standby` or `stopped`."),
                last_look_age_s=(float | None, "Since the last liveness probe."),
                legs_down=int | None,
                legs_degraded=int | None,
            )
        ),
        "How the watcher of the fleet is; null where nothing is watched.",
    ),
)
WATCH = answer(
    "Watch",
    "The watcher of the fleet.",
    watch=(
        dict[str, Any] | None,
        "Its role, links, budget, campaigns and webhook; null where nothing is watched.",
    ),
)

# ---- tokens ------------------------------------------------------------------------------------

TOKEN = model_of(
    "TokenSeen",
    "What is known of a token: never the secret, nor its digest.",
    Token,
    without=("id", "digest"),
    number=int,
    scopes=list[Scope],
    last_used_at_s=(
        float | None,
        "Null for never; up to a minute old where another process answered.",
    ),
    requests_per_s=(
        float | None,
        "That it may send; 0 for no limit, null for that of the service.",
    ),
    max_series=(int | None, "Metrics of links that it may report; 0 and null as above."),
    state=Literal["valid", "expired", "revoked"],
)
TOKEN_ANSWER = answer(
    "TokenAnswer",
    "The token of the caller.",
    token=(maybe(TOKEN), "Null where the service needs none."),
    scopes=(list[Scope], "All that the caller has; `admin` has the others."),
)
TOKENS = answer(
    "Tokens",
    "All tokens of the store.",
    tokens=(
        many(
            model_of(
                "TokenListed",
                "A token in the list of all.",
                base=TOKEN,
                series=(int, "Metrics of links that it has reported."),
            )
        ),
        "The oldest first, with those that expired or were revoked.",
    ),
    requests_per_s=(float, "Of a token without a limit of its own; 0 for none."),
    max_series=(int, "Of a token without a limit of its own; 0 for none."),
)

# ---- what happens ------------------------------------------------------------------------------


class EventsQuery(RequestModel):
    """From where on."""

    after: int | None = Field(
        None,
        ge=0,
        le=2**62,
        description="Id of the last event seen, where Last-Event-ID can't be sent.",
    )


EVENT = model_of("EventSeen", "Something that happened, as the stream of events has it.", Event)
OVERVIEW = answer(
    "Overview",
    "The state of knowledge and of measuring at one glance.",
    checked_at_s=float,
    since_s=(float, "A day before, seconds since 1970 (UTC)."),
    knowledge=model_of(
        "KnowledgeSeen",
        "What is known of directed pairs of regions, by the source of the aggregate throughput.",
        measured=int,
        inferred=int,
        baseline=int,
        outlived=(
            int,
            "Of the measured ones: measured longer ago than such links keep their level.",
        ),
        newest_sample_s=(
            float | None,
            "When the newest sample of any link was taken, seconds since 1970 (UTC).",
        ),
        median_sample_s=(
            float | None,
            "The same of the link in the middle, of all that have a sample.",
        ),
        old_prices=(
            list[str],
            "Egress prices that are more than a year old, in a sentence with what renews them; "
            "empty where none are.",
        ),
    ),
    leg_states=(list[LinkState], "Links that are down or degraded now."),
    snapshots=model_of(
        "SnapshotState",
        "The newest snapshot and what waits for the next.",
        created_at_s=(float | None, "Null for a baseline."),
        warning=(str | None, "Since when snapshots fail or are overdue, and why."),
    ),
    measuring=model_of(
        "MeasuringToday",
        "What measuring has taken since midnight UTC.",
        since_s=(float, "Midnight, seconds since 1970 (UTC)."),
        done=(int, "Probes of campaigns that ended well."),
        failed=int,
        sent_gb=float,
        usd=(float, "Egress, with what liveness probes have spent or reserved."),
        budget_usd=(
            float | None,
            "The watcher's daily budget; null where this service watches nothing.",
        ),
    ),
    prediction=(
        maybe(
            model_of(
                "PredictionSeen",
                "The newest sample of each link since a day ago against the snapshot of that time.",
                before=(str, "Id of that snapshot."),
                samples=int,
                median_error=(
                    float | None,
                    "Median of |sample - estimate| / estimate; null for no samples.",
                ),
                inside_share=(
                    float | None,
                    "Share of the samples between the bounds; 0.9 is what bounds promise.",
                ),
            )
        ),
        "Null where no snapshot of a day ago is kept.",
    ),
    transfers=model_of(
        "TransfersSeen",
        "Transfers that their programs report.",
        in_flight=(int, "Running or silent; at most 1,000 are counted."),
        late=(int, "Of these: to end after their deadline."),
        silent=(int, "Of these: not reported for longer than they should be."),
    ),
    events=(many(EVENT), "Since a day ago, the newest first, at most 100."),
)


class RelayGainsQuery(RequestModel):
    """How many."""

    limit: int = Field(10, ge=1, le=MOST_GAINS, description="Most entries of the answer.")


RELAY_GAINS = answer(
    "RelayGains",
    "Where a single relay gains most, one VM a region, the largest gain first.",
    volume_gb=(float, "That times and costs are of."),
    pairs=(int, "On which a relay is expected to gain a tenth or more."),
    relays=many(
        model_of(
            "RelayGainSeen",
            "A pair of regions, and the best single relay between them.",
            src=str,
            dst=str,
            relay=str,
            gain=(float, "Throughput through the relay over that of the direct path."),
            gain_low=float,
            gain_high=float,
            probability=(float, "That the gain is at least a tenth."),
            source=(Kind, "The least certain source of the links compared."),
            direct_gbps=float,
            relay_gbps=float,
            direct_s=(float, "Time of the volume."),
            relay_s=float,
            direct_usd=(float, "Egress and VMs, for the volume."),
            relay_usd=float,
            pays_from_usd_per_h=(
                float,
                "What an hour must be worth for the relay to pay: its additional cost over the "
                "time that it saves. A split over it and the direct path may pay earlier.",
            ),
        )
    ),
)

# ---- batches of plans, and scripts -------------------------------------------------------------


class PlanBatch(RequestModel):
    """Many transfers, each answered on its own."""

    plans: list[dict[str, Any]] = Field(
        min_length=1,
        description="Each a PlanRequest; a wrong one gets a problem of its own.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/PlanRequest"}},
    )


class ScriptRequest(RequestModel):
    """A plan of one transfer, and the tool that shall run it."""

    plan: dict[str, Any] = Field(description="As `/v1/plans` answered it.")
    emit: str = Field(description="The tool.", json_schema_extra={"enum": [*FORMATS]})
    endpoints: dict[str, Name | list[Name]] = Field(
        {}, max_length=100, description="Region of the plan to the address of its VM, or several."
    )
    port: int = Field(DEFAULT_PORT, ge=1, le=65535, description="That relays and ends listen on.")


BATCH_ANSWER = answer(
    "BatchAnswer",
    "Answers in the order of the requests.",
    results=many(
        model_of(
            "BatchItem",
            "One answer of a batch: a plan, or the problem with its request.",
            plan=Plan | None,
            problem=Problem | None,
        )
    ),
)
SCRIPT_ANSWER = answer("ScriptAnswer", "A script, or a configuration of a tool.", script=str)
