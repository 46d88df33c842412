"""``relayd replan``: whether to keep to a plan in progress, for people or as JSON."""

from __future__ import annotations

import argparse

from planner.model.answer import Bounded
from planner.model.units import duration_text, gbps_text, usd_text, volume_text
from planner.replanning.plan import Continuation, Replan
from planner.replanning.request import ReplanRequest
from relayd.cli import text
from relayd.cli.questions import printing
from relayd.cli.text import filled


def run(options: argparse.Namespace) -> int:
    """Answer one request."""
    return printing.ask_and_print(options, ReplanRequest, human)


def human(answer: Replan) -> str:
    """Return an answer for people: verdict and reason, both ways, what changing takes."""
    verdict = "Keep to the plan." if answer.verdict == "keep" else "Change the plan."
    rate = ""
    if answer.observed_gbps is not None and answer.planned_gbps is not None:
        rate = (
            f", at {gbps_text(answer.observed_gbps)} Gbit/s "
            f"(planned: {gbps_text(answer.planned_gbps)})"
        )
    head = (
        f"{answer.kind} {answer.plan_id}, {volume_text(answer.remaining_gb)} left after "
        f"{duration_text(answer.elapsed_s)}{rate}"
    )
    blocks = [printing.headed(verdict, head), filled(answer.reason), _ways(answer)]
    if answer.cost_of_change:
        blocks.append(filled(_cost_of_change(answer)))
    if answer.verdict == "change":
        blocks.append(filled("--json has the new plan, under `plan`."))
    now = printing.snapshot_text(answer.snapshot)
    blocks.append(filled(f"Planned on snapshot {answer.planned_on}; now snapshot {now}"))
    return printing.with_notes(blocks, answer)


def _ways(answer: Replan) -> str:
    def row(name: str, way: Continuation | None) -> tuple[str, ...]:
        if way is None:
            return (name, *["-"] * 4)
        bounds = f"{duration_text(way.duration_s_low)} to {duration_text(way.duration_s_high)}"
        cost = way.cost_usd
        return (
            name,
            duration_text(way.duration_s),
            bounds,
            usd_text(cost.egress),
            usd_text(cost.vm),
        )

    rows = [row("keep", answer.keep), row("change", answer.change)]
    return text.table(("from now on", "time", "bounds", "$ egress", "$ VM"), rows)


def _cost_of_change(answer: Replan) -> str:
    change, gain = answer.cost_of_change, answer.gain
    assert change is not None
    assert gain is not None
    parts = []
    if change.vms_to_start:
        vms = printing.vms_text(change.vms_to_start)
        parts.append(f"start {vms} ({duration_text(change.wait_s)}, the old plan goes on)")
    if change.vms_to_stop:
        parts.append(f"stop {printing.vms_text(change.vms_to_stop)}")
    if change.ramp_up_s:
        parts.append(f"{duration_text(change.ramp_up_s)} to get new paths up to speed")
    what = "; ".join(parts) if parts else "nothing to start or to wait for"
    return (
        f"Changing takes: {what}; ${usd_text(change.usd)} in all. Gain {_range(gain)}; "
        f"{answer.needed_gain:.2f}x at the low bound are needed."
    )


def _range(of: Bounded) -> str:
    return f"{of.expected:.2f}x ({of.low:.2f}x to {of.high:.2f}x)"
