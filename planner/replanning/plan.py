"""Advice on a plan in progress: keep it or change it, with the time and cost of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from planner.model.answer import Bounded, Cost, Recommendation

ReplanVerdict: TypeAlias = Literal["keep", "change"]
PlanKind: TypeAlias = Literal["transfer", "shuffle", "broadcast"]


@dataclass(frozen=True, slots=True)
class Continuation:
    """Time and cost from now on, until everything has moved.

    Attributes
    ----------
    duration_s, duration_s_low, duration_s_high : float
        Starting VMs and getting up to speed included.
    cost_usd : Cost
        Cost still to be paid.
    """

    duration_s: float
    duration_s_low: float
    duration_s_high: float
    cost_usd: Cost


@dataclass(frozen=True, slots=True)
class ChangeCost:
    """Time and cost of changing; the new plan's figures include them.

    Attributes
    ----------
    vms_to_start, vms_to_stop : dict
        Region to number of VMs.
    wait_s : float
        Until the VMs have started; meanwhile the old plan continues.
    ramp_up_s : float
        Until connections on new paths are up to speed.
    usd : float
        For VMs that start, and for all VMs while connections get up to speed.
    """

    vms_to_start: dict[str, int]
    vms_to_stop: dict[str, int]
    wait_s: float
    ramp_up_s: float
    usd: float


@dataclass(frozen=True, slots=True)
class Replan(Recommendation):
    """A recommendation for a plan in progress.

    Attributes
    ----------
    kind : PlanKind
        Kind of plan in progress.
    observed_gbps, planned_gbps : float | None
        Mean rate so far, and the plan's; None where nothing has been observed.
    change : Continuation | None
        With the best other plan; None if there is none.
    saving_s, saving_usd : Bounded | None
        Of changing over keeping the plan. At the low bound, the old plan is as fast as its
        estimates allow and the new one as slow.
    gain : Bounded | None
        How many times better changing is, in the objective's terms.
    needed_gain : float
        Least low bound of the gain at which changing is recommended.
    cost_of_change : ChangeCost | None
    plan : dict | None
        The best other plan for the remaining volume, as :meth:`model_dump` gives it.
    """

    planned_on: str
    kind: PlanKind
    verdict: ReplanVerdict
    reason: str
    elapsed_s: float
    remaining_gb: float
    observed_gbps: float | None
    planned_gbps: float | None
    keep: Continuation
    change: Continuation | None
    saving_s: Bounded | None
    saving_usd: Bounded | None
    gain: Bounded | None
    needed_gain: float
    cost_of_change: ChangeCost | None
    plan: dict[str, Any] | None

    def __repr__(self) -> str:
        """Describe the answer in one line."""
        gain = f", {self.gain.expected:.2f}x (at least {self.gain.low:.2f}x)" if self.gain else ""
        return f"<Replan of {self.plan_id}: {self.verdict}{gain}>"
