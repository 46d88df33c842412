"""Advice on a plan in progress: keep it or change it, with the time and cost of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from planner.model.answer import Bounded, Cost, Recommendation
from planner.model.text.blocks import answer_text, vms_text
from planner.model.text.figures import figure
from planner.model.text.page import PLAIN, TextPage
from planner.model.units import duration_text, usd_text, volume_text

ReplanVerdict: TypeAlias = Literal["keep", "change"]
PlanKind: TypeAlias = Literal["transfer", "shuffle", "broadcast"]
CauseKind: TypeAlias = Literal["silent", "link", "others", "slow", "slowest"]


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
class Cause:
    """The most probable cause that holds up a plan in progress.

    Attributes
    ----------
    kind : {"silent", "link", "others", "slow", "slowest"}
        It is not reported; one of its links is down or degraded; it is slower than planned, and
        others began on the same VMs since; it is slower than planned; it is slower than all
        transfers before.
    text : str
        A sentence.
    """

    kind: CauseKind
    text: str


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
    cause : Cause | None
        None where it runs as planned, as far as is known.
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
    cause: Cause | None = None

    def text(self, page: TextPage = PLAIN) -> str:
        """Return the text for people: verdict and reason, both ways, what changing takes."""
        keeps = self.verdict == "keep"
        rate = ""
        if self.observed_gbps is not None and self.planned_gbps is not None:
            observed, planned = (figure(self, f"{name}_gbps") for name in ("observed", "planned"))
            rate = f", at {observed} Gbit/s (planned: {planned})"
        ways = {"keep": self.keep, "change": self.change}
        fields = ("duration_s", "bounds", "cost_usd.egress", "cost_usd.vm")

        def cell(name: str, field: str) -> str:
            way = ways[name]
            if way is None:
                return "-"
            if field == "bounds":
                return (
                    f"{duration_text(way.duration_s_low)} to {duration_text(way.duration_s_high)}"
                )
            return figure(way, field)

        return answer_text(
            page,
            self,
            "Keep to the plan." if keeps else "Change the plan.",
            f"{self.kind} {self.plan_id}, {volume_text(self.remaining_gb)} left after "
            f"{duration_text(self.elapsed_s)}{rate}",
            page.table(
                ("from now on", "time", "bounds", "$ egress", "$ VM"),
                [(name, *(cell(name, field) for field in fields)) for name in ways],
            ),
            page.filled(f"Probable cause: {self.cause.text}" if self.cause else ""),
            page.filled(_cost_of_change(self)),
            "" if keeps else page.filled("--json has the new plan, under `plan`."),
            sure=f"Planned on snapshot {self.planned_on}. Now:",
        )

    def __repr__(self) -> str:
        """Describe the answer in one line."""
        gain = f", {self.gain.expected:.2f}x (at least {self.gain.low:.2f}x)" if self.gain else ""
        return f"<Replan of {self.plan_id}: {self.verdict}{gain}>"


def _cost_of_change(answer: Replan) -> str:
    change, gain = answer.cost_of_change, answer.gain
    if change is None or gain is None:
        return ""
    parts = []
    if change.vms_to_start:
        vms = vms_text(change.vms_to_start)
        parts.append(f"start {vms} ({duration_text(change.wait_s)}, the old plan goes on)")
    if change.vms_to_stop:
        parts.append(f"stop {vms_text(change.vms_to_stop)}")
    if change.ramp_up_s:
        parts.append(f"{duration_text(change.ramp_up_s)} to get new paths up to speed")
    what = "; ".join(parts) if parts else "nothing to start or to wait for"
    return (
        f"Changing takes: {what}; {usd_text(change.usd)} in all. Gain {gain.expected:.2f}x "
        f"({gain.low:.2f}x to {gain.high:.2f}x); {answer.needed_gain:.2f}x at the low bound are "
        "needed."
    )
