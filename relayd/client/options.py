"""The keywords of questions, as :class:`relayd.sources.wan.Wan` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isinf
from typing import Any, TypedDict

from planner.broadcast.request import BroadcastObjective
from planner.placement.request import Links, PlacementObjective
from planner.schedule.request import RatesBound
from planner.shuffle.request import ShuffleObjective
from planner.transfer.request import Objective
from relayd.questions.circumstances import CommonOptions


class TransferOptions(CommonOptions, total=False):
    """Of :meth:`relayd.sources.wan.Wan.plan`."""

    volume_gb: float
    objective: Objective
    time_value_usd_per_h: float
    budget_usd: float | None
    deadline_s: float | None
    min_throughput_gbps: float | None
    relays: str
    max_age_s: float | None
    frontier: bool
    candidates: int


class ShuffleOptions(CommonOptions, total=False):
    """Of :meth:`relayd.sources.wan.Wan.shuffle`."""

    objective: ShuffleObjective
    deadline_s: float | None
    relays: str
    frontier: bool


class BroadcastOptions(CommonOptions, total=False):
    """Of :meth:`relayd.sources.wan.Wan.broadcast`."""

    volume_gb: float
    objective: BroadcastObjective
    time_value_usd_per_h: float
    deadline_s: float | None
    relays: str
    frontier: bool


class ScheduleOptions(CommonOptions, total=False):
    """Of :meth:`relayd.sources.wan.Wan.schedule`."""

    now_s: float
    rates: RatesBound
    relays: str
    explain: int


class ReduceOptions(CommonOptions, total=False):
    """Of :meth:`relayd.sources.wan.Wan.place_reduce`."""

    selectivity: float
    links: Links
    objective: PlacementObjective
    budget_usd: float | None
    deadline_s: float | None
    reduce_in: Sequence[str]


class TasksOptions(TypedDict, total=False):
    """Of :meth:`relayd.sources.wan.Wan.place_tasks`."""

    time_limit_s: float | None
    connections: int | None
    month_to_date_gb: Mapping[str, float]
    vm_types: Mapping[str, str]
    vm_start_s: float


def as_json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords as the body of a request; infinity, which JSON lacks, as a word."""
    return {
        name: "inf"
        if isinstance(value, float) and isinf(value) and value > 0
        else dict(value)
        if isinstance(value, Mapping)
        else list(value)
        if isinstance(value, tuple | set | frozenset)
        else value
        for name, value in options.items()
        if value is not None
    }
