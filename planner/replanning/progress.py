"""Reads a plan in progress: what it was asked, how far it has come, what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import inf, isfinite
from typing import Any, TypeAlias

from planner.broadcast.request import BroadcastRequest
from planner.model.errors import InputError
from planner.replanning.plan import PlanKind
from planner.replanning.remaining import (
    Course,
    course_of_broadcast,
    course_of_shuffle,
    course_of_transfer,
)
from planner.shuffle.request import ShuffleRequest
from planner.transfer.request import TransferRequest

Pair: TypeAlias = tuple[str, str]
Moved: TypeAlias = float | Mapping[Pair, float]
AnyRequest: TypeAlias = TransferRequest | ShuffleRequest | BroadcastRequest

# Each kind's plan has one of these, and no other kind's.
KEY_OF_KIND: dict[PlanKind, str] = {"transfer": "paths", "shuffle": "pairs", "broadcast": "trees"}
ALL = 1 - 1e-9
HALVINGS = 60


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
    course : Course
        What the plan does with what is left.
    started : Course
        What it did with everything.
    moved_gb, remaining_gb, elapsed_s : float
    planned_gbps : float
        Mean rate of the plan until now.
    """

    kind: PlanKind
    plan: Mapping[str, Any]
    request: AnyRequest
    course: Course
    started: Course
    moved_gb: float
    remaining_gb: float
    elapsed_s: float
    planned_gbps: float

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


def in_progress(plan: Mapping[str, Any], moved_gb: Moved, elapsed_s: float) -> InProgress:
    """Return a plan in progress.

    Parameters
    ----------
    plan : mapping
        A plan of a transfer, a shuffle or a broadcast as JSON has it.
    moved_gb : float or mapping
        What every destination has, in GB; of a shuffle, all pairs together (taken to be as far as
        the plan's rates bring them) or each pair's.
    elapsed_s : float
        Since sending began.

    Raises
    ------
    InputError
        If the document is no plan, the figures are out of range, or nothing is left.
    """
    if not (_is_number(elapsed_s) and isfinite(elapsed_s) and elapsed_s >= 0):
        raise InputError("elapsed", "must be a time of 0 s or more", value=elapsed_s)
    kind = _kind(plan)
    try:
        if kind == "shuffle":
            return _shuffle(plan, moved_gb, elapsed_s)
        return _single(kind, plan, moved_gb, elapsed_s)
    except (KeyError, TypeError, AttributeError) as fault:
        raise InputError(
            "plan",
            f"is not a {kind}'s plan: {type(fault).__name__} {fault}",
            remedy="Give a document as `--json` prints it.",
        ) from None


def _kind(plan: Any) -> PlanKind:
    if isinstance(plan, Mapping) and {"plan_id", "snapshot", "request", "vms"} <= set(plan):
        for kind, key in KEY_OF_KIND.items():
            if isinstance(plan.get(key), list | tuple):
                return kind
    raise InputError(
        "plan",
        "is not a plan of a transfer, a shuffle or a broadcast",
        remedy="Give what `relayd plan --json`, `relayd shuffle --json` or `relayd broadcast "
        "--json` printed.",
    )


def _single(
    kind: PlanKind, plan: Mapping[str, Any], moved_gb: Moved, elapsed_s: float
) -> InProgress:
    volume_gb = float(plan["request"]["volume_gb"])
    if isinstance(moved_gb, Mapping):
        raise InputError(
            "moved",
            f"must be one volume for a {kind}",
            value=dict(moved_gb),
            remedy="Only a shuffle has pairs.",
        )
    moved = _checked(moved_gb, volume_gb, "moved")
    left = volume_gb - moved
    _refuse_done(left, volume_gb)
    of = course_of_transfer if kind == "transfer" else course_of_broadcast
    made = TransferRequest if kind == "transfer" else BroadcastRequest
    request: AnyRequest = made(**{**_fields(plan["request"], made), "volume_gb": left})
    return InProgress(
        kind,
        plan,
        request,
        of(plan, left),
        of(plan, volume_gb),
        moved,
        left,
        elapsed_s,
        float(plan["throughput_gbps"]),
    )


def _shuffle(plan: Mapping[str, Any], moved_gb: Moved, elapsed_s: float) -> InProgress:
    volumes = {(p["src"], p["dst"]): float(p["volume_gb"]) for p in plan["pairs"]}
    rates = {(p["src"], p["dst"]): float(p["throughput_gbps"]) for p in plan["pairs"]}
    whole = sum(volumes.values())
    if isinstance(moved_gb, Mapping):
        moved = {
            pair: _checked(gb, volumes.get(pair, 0.0), f"moved {pair[0]} -> {pair[1]}")
            for pair, gb in moved_gb.items()
        }
    else:
        moved = _as_planned(volumes, rates, _checked(moved_gb, whole, "moved"))
    left = {pair: gb - moved.get(pair, 0.0) for pair, gb in volumes.items()}
    left = {pair: gb for pair, gb in left.items() if gb > volumes[pair] * (1 - ALL)}
    remaining = sum(left.values())
    _refuse_done(remaining, whole)
    asked = _fields(plan["request"], ShuffleRequest)
    until = _reached(volumes, rates, elapsed_s) if elapsed_s > 0 else {}
    planned = 8 * sum(until.values()) / elapsed_s if elapsed_s > 0 else sum(rates.values())
    return InProgress(
        "shuffle",
        plan,
        ShuffleRequest(**{**asked, "demands_gb": left}),
        course_of_shuffle(plan, left),
        course_of_shuffle(plan, volumes),
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
    if moved_gb <= 0:
        return {}
    low_s, high_s = 0.0, max((8 * gb / rates[pair] for pair, gb in volumes.items()), default=0.0)
    for _ in range(HALVINGS):
        middle_s = (low_s + high_s) / 2
        if sum(_reached(volumes, rates, middle_s).values()) < moved_gb:
            low_s = middle_s
        else:
            high_s = middle_s
    return _reached(volumes, rates, high_s)


def _fields(asked: Mapping[str, Any], request: type) -> dict[str, Any]:
    """Return the fields of a request as they were described."""
    known = {item.name for item in fields(request)}
    found = {name: value for name, value in asked.items() if name in known}
    for name, made in (("forbidden", frozenset), ("destinations", tuple)):
        if name in found:
            found[name] = made(found[name])
    if found.get("time_value_usd_per_h") == "inf":
        found["time_value_usd_per_h"] = inf
    return found


def without_limits(request: AnyRequest) -> AnyRequest:
    """Return a request for least time, whatever it costs."""
    if isinstance(request, TransferRequest):
        return replace(
            request, objective="time", deadline_s=None, budget_usd=None, min_throughput_gbps=None
        )
    if isinstance(request, ShuffleRequest):
        return replace(request, objective="time", deadline_s=None)
    return replace(request, objective="time", deadline_s=None)


def _checked(value: Any, most: float, field: str) -> float:
    if not (_is_number(value) and isfinite(value) and value >= 0):
        raise InputError(field, "must be a volume of 0 or more", value=value)
    if value > most * (2 - ALL):
        raise InputError(
            field,
            f"is more than the {most:g} GB of the plan",
            value=value,
            remedy="Give what has arrived, not what was sent over all links.",
        )
    return min(float(value), most)


def _refuse_done(left_gb: float, whole_gb: float) -> None:
    if left_gb <= whole_gb * (1 - ALL):
        raise InputError("moved", "leaves nothing to move", value=whole_gb)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
