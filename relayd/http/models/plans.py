"""Questions about one transfer; the answer is :class:`planner.transfer.plan.Plan`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from planner.fields.quantities import MOST_VOLUME_GB
from planner.fields.shared import (
    DEFAULT_CONNECTIONS,
    DEFAULT_MARGIN,
    DEFAULT_TIME_VALUE_USD_PER_H,
    DEFAULT_VM_START_S,
    DEFAULT_VOLUME_GB,
    MOST_CONNECTIONS,
    MOST_VMS,
)
from planner.model.network import Snapshot
from planner.transfer.plan import Plan
from planner.transfer.request import DEFAULT_CANDIDATES, MOST_CANDIDATES, Objective
from relayd.http.models.common import Answered, Asked, Name
from relayd.http.models.problems import Problem

MOST_RULES = 50
MOST_PLACES = 200

# Far beyond what is sensible; keeps products of figures finite.
MOST_FIGURE = 1e12

Rules: TypeAlias = Annotated[list[Name], Field(max_length=MOST_RULES)]
Vms: TypeAlias = Annotated[int, Field(ge=1, le=MOST_VMS)]
Positive: TypeAlias = Annotated[float, Field(ge=1e-9, le=MOST_FIGURE)]


class Circumstances(Asked):
    """What may be said with any question, as far as a query string can say it."""

    margin: float = Field(
        DEFAULT_MARGIN,
        ge=0,
        lt=100,
        description="How much relays must surely gain before they are recommended; 0.1 is 10 %.",
    )
    vms: int = Field(1, ge=1, le=MOST_VMS, description="VMs in a region.")
    connections: int = Field(
        DEFAULT_CONNECTIONS,
        ge=1,
        le=MOST_CONNECTIONS,
        description="TCP connections that one VM opens.",
    )
    avoid: Rules = Field(
        [], description="Places that must not relay: `provider:aws`, `country:DE`, a region."
    )
    allow: Rules = Field([], description="The only places that may relay.")
    vm_start_s: float = Field(
        DEFAULT_VM_START_S,
        ge=0,
        le=MOST_FIGURE,
        description="Time that each VM is paid for before anything is sent.",
    )


class Places(Asked):
    """What differs from region to region or provider to provider; in JSON bodies alone."""

    vms_in: dict[Name, Vms] = Field(
        {}, max_length=MOST_PLACES, description="Region to its own number of VMs."
    )
    month_to_date_gb: dict[Name, Annotated[float, Field(ge=0, le=MOST_FIGURE)]] = Field(
        {},
        max_length=MOST_PLACES,
        description="Provider (or `*`) to what it has billed this month, for tiered fees.",
    )
    vm_types: dict[Name, Name] = Field(
        {}, max_length=MOST_PLACES, description="Region or provider to VM type."
    )


class PlanQuery(Circumstances):
    """One transfer, as a query string."""

    src: Name = Field(description="Region id, bare region name, alias or city to send from.")
    dst: Name = Field(description="The same for where to.")
    volume_gb: float = Field(
        DEFAULT_VOLUME_GB, ge=1e-9, le=MOST_VOLUME_GB, description="In GB (10^9 bytes)."
    )
    objective: Objective = Field(
        "value", description="`value` is least cost plus time at `time_value_usd_per_h`."
    )
    time_value_usd_per_h: Annotated[float, Field(ge=0, le=MOST_FIGURE)] | Literal["inf"] = Field(
        DEFAULT_TIME_VALUE_USD_PER_H, description="What an hour is worth; `inf` is least time."
    )
    budget_usd: Positive | None = Field(None, description="Most to spend.")
    deadline_s: Positive | None = Field(None, description="Latest end, from now.")
    min_throughput_gbps: Positive | None = Field(None, description="Least rate.")
    relays: Name = Field("any", description="`any`, `one`, `none`, or the only relay to consider.")
    max_age_s: Annotated[float, Field(ge=0, le=MOST_FIGURE)] | None = Field(
        None, description="Refuse to answer from measurements older than this."
    )
    frontier: bool = Field(False, description="Whether to add the cost-time frontier.")
    candidates: int = Field(
        DEFAULT_CANDIDATES,
        ge=1,
        le=MOST_CANDIDATES,
        description="Most single relays to compare: `best_relay` and its `alternatives`.",
    )


class PlanRequest(PlanQuery, Places):
    """One transfer, as a JSON body."""

    def keywords(self) -> dict[str, Any]:
        """Return what differs from the defaults, as keywords of :meth:`.Wan.plan`."""
        said = self.model_dump(exclude_unset=True)
        if said.get("time_value_usd_per_h") == "inf":
            said["time_value_usd_per_h"] = float("inf")
        return said


class PlanBatch(Asked):
    """Many transfers, each answered on its own."""

    plans: list[dict[str, Any]] = Field(
        min_length=1,
        description="Each a PlanRequest; one that is wrong gets a problem of its own.",
        json_schema_extra={"items": {"$ref": "#/components/schemas/PlanRequest"}},
    )


class BatchItem(Answered):
    """One answer of a batch: a plan, or why there is none."""

    plan: Plan | None
    problem: Problem | None


class BatchAnswer(Answered):
    """Answers in the order of the questions."""

    snapshot: Snapshot
    results: list[BatchItem]
