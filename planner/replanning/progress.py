"""Reads a plan in progress: what was asked, how much has moved, and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any, TypeAlias, TypeVar

import numpy as np

from planner.broadcast.request import BroadcastRequest
from planner.fields.demands import Demands, Pair
from planner.fields.kinds import LEAST_FIGURE
from planner.fields.specified import fields_of
from planner.model.errors import InputError
from planner.replanning.plan import PlanKind
from planner.replanning.request import Moved, ReplanRequest
from planner.replanning.workload import Workload, workload_of
from planner.shuffle.request import ShuffleRequest
from planner.transfer.request import TransferRequest

AnyRequest: TypeAlias = TransferRequest | ShuffleRequest | BroadcastRequest
R = TypeVar("R", TransferRequest, ShuffleRequest, BroadcastRequest)

# Each kind's plan has one of these, and no other kind's.
KEY_OF_KIND: dict[PlanKind, str] = {"transfer": "paths", "shuffle": "pairs", "broadcast": "trees"}
REMEDY = "Give a plan as it was answered: the object, or its JSON."
ALL = 1 - 1e-9


@dataclass(frozen=True)
class InProgress:
    """A plan in progress.

    Attributes
    ----------
    kind : PlanKind
    plan : mapping
        As :meth:`planner.transfer.plan.Answer.model_dump` gives it.
    request : AnyRequest
        For what is left, with the limits as they were at the start.
    left_gb, asked_gb : float or mapping
        What is left and what there was at the start; of a shuffle, of each pair.
    moved_gb, remaining_gb, elapsed_s : float
    planned_gbps : float
        Mean rate of the plan until now.
    """

    kind: PlanKind
    plan: Mapping[str, Any]
    request: AnyRequest
    left_gb: float | Mapping[Pair, float]
    asked_gb: float | Mapping[Pair, float]
    moved_gb: float
    remaining_gb: float
    elapsed_s: float
    planned_gbps: float

    @cached_property
    def workload(self) -> Workload:
        """What is left, as the plan moves it."""
        return workload_of(self.plan, self.left_gb)

    @cached_property
    def started(self) -> Workload:
        """Everything, as the plan moves it."""
        return workload_of(self.plan, self.asked_gb)

    @property
    def hour_usd(self) -> float:
        """What an hour is worth: infinity for time, 0 for cost."""
        if isinstance(self.request, ShuffleRequest):
            return inf if self.request.objective == "time" else 0.0
        return self.request.hour_usd

    @property
    def observed_gbps(self) -> float | None:
        """The mean rate so far."""
        return 8 * self.moved_gb / self.elapsed_s if self.elapsed_s > 0 else None


def in_progress(request: ReplanRequest) -> InProgress:
    """Return a plan in progress.

    What has moved is, of a shuffle, all pairs together (taken to be as far as the plan's rates
    bring them) or each pair's; else what every destination has.

    Raises
    ------
    InputError
        If the document is no plan, the figures are out of range, or nothing is left.
    """
    plan, moved_gb, elapsed_s = request.document, request.moved_gb, request.elapsed_s
    kind = _kind(plan)
    try:
        if kind == "shuffle":
            found = _shuffle(plan, moved_gb, elapsed_s)
        else:
            found = _single(kind, plan, moved_gb, elapsed_s)
        assert found.workload.regions
    except (KeyError, TypeError, AttributeError) as fault:
        raise InputError(
            "plan", f"is not a {kind}'s plan: {type(fault).__name__} {fault}", remedy=REMEDY
        ) from None
    return found


def _kind(plan: Any) -> PlanKind:
    if isinstance(plan, Mapping) and {"plan_id", "snapshot", "request", "vms"} <= set(plan):
        for kind, key in KEY_OF_KIND.items():
            if isinstance(plan.get(key), list | tuple):
                return kind
    raise InputError("plan", "is not a plan of a transfer, a shuffle or a broadcast", remedy=REMEDY)


def _single(
    kind: PlanKind, plan: Mapping[str, Any], moved_gb: Moved, elapsed_s: float
) -> InProgress:
    volume_gb = float(plan["request"]["volume_gb"])
    if isinstance(moved_gb, Mapping):
        raise InputError(
            "moved_gb",
            f"must be one volume for a {kind}",
            value=dict(moved_gb),
            remedy="Only a shuffle has pairs.",
        )
    moved = _checked(moved_gb, volume_gb, "moved_gb")
    left = volume_gb - moved
    _refuse_done(left, volume_gb)
    request: AnyRequest = (
        _asked(plan, TransferRequest, volume_gb=left)
        if kind == "transfer"
        else _asked(plan, BroadcastRequest, volume_gb=left)
    )
    planned_gbps = float(plan["throughput_gbps"])
    return InProgress(kind, plan, request, left, volume_gb, moved, left, elapsed_s, planned_gbps)


def _shuffle(plan: Mapping[str, Any], moved_gb: Moved, elapsed_s: float) -> InProgress:
    volumes = {(p["src"], p["dst"]): float(p["volume_gb"]) for p in plan["pairs"]}
    rates = {(p["src"], p["dst"]): float(p["throughput_gbps"]) for p in plan["pairs"]}
    whole = sum(volumes.values())
    if isinstance(moved_gb, Mapping):
        moved = {
            pair: _checked(gb, volumes.get(pair, 0.0), f"moved_gb {pair[0]} -> {pair[1]}")
            for pair, gb in moved_gb.items()
        }
    else:
        moved = _as_planned(volumes, rates, _checked(moved_gb, whole, "moved_gb"))
    left = {pair: gb - moved.get(pair, 0.0) for pair, gb in volumes.items()}
    left = {pair: gb for pair, gb in left.items() if gb > volumes[pair] * (1 - ALL)}
    remaining = sum(left.values())
    _refuse_done(remaining, whole)
    until = _reached(volumes, rates, elapsed_s) if elapsed_s > 0 else {}
    planned = 8 * sum(until.values()) / elapsed_s if elapsed_s > 0 else sum(rates.values())
    return InProgress(
        "shuffle",
        plan,
        _asked(plan, ShuffleRequest, demands_gb=Demands(left)),
        left,
        volumes,
        sum(moved.values()),
        remaining,
        elapsed_s,
        planned,
    )


def _reached(
    volumes: Mapping[Pair, float], rates: Mapping[Pair, float], time_s: float
) -> dict[Pair, float]:
    return {pair: min(gb, rates[pair] * time_s / 8) for pair, gb in volumes.items()}


def _as_planned(
    volumes: Mapping[Pair, float], rates: Mapping[Pair, float], moved_gb: float
) -> dict[Pair, float]:
    """Return each pair's part of what was moved, at the rates of the plan."""
    times_s = [0.0, *sorted(8 * gb / rates[pair] for pair, gb in volumes.items())]
    until_gb = [sum(_reached(volumes, rates, time_s).values()) for time_s in times_s]
    return _reached(volumes, rates, float(np.interp(moved_gb, until_gb, times_s)))


# What a plan was asked for beside what is to be moved; the rest is not asked again.
_SHOWN = {"frontier", "candidates", "max_age_s", "max_price_age_s", "month_to_date_gb", "vm_types"}
# What is under way is not a trial any more.
_SHOWN |= {"explore", "outcomes"}


def _asked(plan: Mapping[str, Any], made: type[R], **changes: Any) -> R:
    """Return what a plan was asked for, as it was described, with some changes."""
    asked = plan["request"]
    known = fields_of(made).keys() - _SHOWN
    found = {name: value for name, value in asked.items() if name in known}
    try:
        return made(**{**found, "avoid": asked.get("forbidden", ()), **changes})
    except InputError as fault:
        raise InputError("plan", f"was asked for what can't be: {fault}", remedy=REMEDY) from None


def without_limits(request: AnyRequest) -> AnyRequest:
    """Return a request for least time, whatever it costs."""
    if isinstance(request, TransferRequest):
        return replace(
            request, objective="time", deadline_s=None, budget_usd=None, min_throughput_gbps=None
        )
    return replace(request, objective="time", deadline_s=None)


def _checked(value: float, most: float, field: str) -> float:
    if value > most * (2 - ALL):
        raise InputError(
            field,
            f"is more than the {most:g} GB of the plan",
            value=value,
            remedy="Give what has arrived, not what was sent over all links.",
        )
    return min(value, most)


def _refuse_done(left_gb: float, whole_gb: float) -> None:
    if left_gb <= max(whole_gb * (1 - ALL), LEAST_FIGURE):
        raise InputError("moved_gb", "leaves nothing to move", value=whole_gb)
