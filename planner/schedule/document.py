"""Reads a schedule from its JSON document, to continue it."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, get_args

from planner.model.answer import Cost
from planner.model.errors import FormatError
from planner.model.estimate import ADDRESS_KINDS
from planner.model.network import Snapshot
from planner.schedule.plan import PathRate, Period, SchedulePlan, ScheduleVerdict, TransferSchedule
from planner.schedule.timed_transfer import TimedTransfer

REMEDY = "Give the JSON that `relayd schedule` printed."


def schedule_from(document: Any, field: str = "existing") -> SchedulePlan:
    """Return the schedule of a JSON document: its transfers with their periods, and its time.

    Costs, loads and remedies are left out: continuing the schedule computes them anew.

    Raises
    ------
    FormatError
        If the document is not that of a schedule, naming the entry.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("transfers"), list):
        raise FormatError(field, "is not a schedule", remedy=REMEDY)
    transfers = tuple(
        _transfer(entry, f"{field}, transfer {n}")
        for n, entry in enumerate(document["transfers"], 1)
    )
    verdicts = [transfer.verdict for transfer in transfers]
    return SchedulePlan(
        plan_id=str(document.get("plan_id", "")),
        snapshot=Snapshot("", "", ""),
        request={},
        reason=str(document.get("reason", "")),
        now_s=_figure(document.get("now_s"), f"{field}, now_s"),
        end_s=max((transfer.end_s or 0.0 for transfer in transfers), default=0.0),
        admitted=verdicts.count("admitted"),
        refused=verdicts.count("refused"),
        best_effort=verdicts.count("best effort"),
        volume_gb=sum((t.volume_gb for t in transfers if t.verdict != "refused"), 0.0),
        relayed_share=0.0,
        cost_usd=Cost.of(0.0, 0.0),
        bound_usd=0.0,
        value_usd=0.0,
        transfers=transfers,
        vms={},
    )


def _transfer(entry: Any, where: str) -> TransferSchedule:
    if not isinstance(entry, Mapping):
        raise FormatError(where, "is not an object", value=entry, remedy=REMEDY)
    if entry.get("verdict") not in get_args(ScheduleVerdict):
        raise FormatError(where, "has no verdict", value=entry.get("verdict"), remedy=REMEDY)
    timed = entry.get("deadline_s") is not None
    value = entry.get("value_usd")
    # Makes the checks of a transfer that is asked for.
    asked = TimedTransfer(
        str(entry.get("id", "")),
        str(entry.get("src", "")),
        str(entry.get("dst", "")),
        _figure(entry.get("volume_gb"), f"{where}, volume_gb"),
        _figure(entry.get("start_s"), f"{where}, start_s"),
        _figure(entry["deadline_s"], f"{where}, deadline_s") if timed else None,
        int(_figure(entry.get("priority", 0), f"{where}, priority")),
        None if value is None else _figure(value, f"{where}, value_usd"),
    )
    listed = entry.get("periods")
    if not isinstance(listed, list):
        raise FormatError(where, "has no periods", remedy=REMEDY)
    periods = tuple(_period(item, f"{where}, period {at}") for at, item in enumerate(listed, 1))
    end_s = max((period.end_s for period in periods), default=None)
    return TransferSchedule(
        **TimedTransfer.figures_of(asked),
        verdict=entry["verdict"],
        end_s=end_s,
        slack_s=None if asked.deadline_s is None or end_s is None else asked.deadline_s - end_s,
        egress_usd=0.0,
        periods=periods,
        remedies=None,
    )


def _period(item: Any, where: str) -> Period:
    if not isinstance(item, Mapping) or not isinstance(item.get("paths"), list):
        raise FormatError(where, "has no paths", remedy=REMEDY)
    paths = []
    for path in item["paths"]:
        regions = path.get("regions") if isinstance(path, Mapping) else None
        if not isinstance(regions, list) or len(regions) not in {2, 3}:
            raise FormatError(where, "has a path without two or three regions", remedy=REMEDY)
        paths.append(
            PathRate(
                tuple(map(str, regions)),
                _figure(path.get("throughput_gbps"), where),
                int(_figure(path.get("connections", 1), where)),
                tuple(kind for kind in path.get("addresses", ()) if kind in ADDRESS_KINDS),
            )
        )
    start_s, end_s = (_figure(item.get(key), f"{where}, {key}") for key in ("start_s", "end_s"))
    if end_s < start_s:
        raise FormatError(where, "ends before it starts", value=end_s, remedy=REMEDY)
    rate = _figure(item.get("throughput_gbps"), f"{where}, throughput_gbps")
    return Period(start_s, end_s, rate, tuple(paths))


def _figure(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise FormatError(where, "is not a finite number", value=value, remedy=REMEDY)
    return float(value)
