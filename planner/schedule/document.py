"""Reads a schedule from its JSON document, to continue it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from planner.model.answer import Cost
from planner.model.errors import FormatError
from planner.model.network import Snapshot
from planner.schedule.plan import SchedulePlan, TransferSchedule
from planner.schedule.timed_transfer import TimedTransfer

REMEDY = "Give the JSON that `relayd schedule` printed."
# What a document may leave out.
DEFAULTS = {
    "start_s": 0.0,
    "deadline_s": None,
    "priority": 0,
    "value_usd": None,
    "end_s": None,
    "slack_s": None,
    "egress_usd": 0.0,
    "remedies": None,
}
_TRANSFER = TypeAdapter(TransferSchedule)


def schedule_from(document: Any, field: str = "existing") -> SchedulePlan:
    """Return the schedule of a JSON document: its transfers with their periods, and its time.

    Costs, loads and remedies are left out: continuing the schedule computes them.

    Raises
    ------
    FormatError
        If the document is not that of a schedule, naming the entry.
    """
    if not isinstance(document, Mapping) or not isinstance(document.get("transfers"), list):
        raise FormatError(field, "is not a schedule", remedy=REMEDY)
    now_s = document.get("now_s")
    if isinstance(now_s, bool) or not isinstance(now_s, int | float):
        raise FormatError(f"{field}, now_s", "is not a number", value=now_s, remedy=REMEDY)
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
        now_s=float(now_s),
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
    try:
        text = json.dumps({**DEFAULTS, **entry}, allow_nan=False)
        transfer = _TRANSFER.validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        at = ", ".join(str(part) for part in first["loc"])
        raise FormatError(f"{where}, {at}", f"is wrong: {first['msg']}", remedy=REMEDY) from error
    except (TypeError, ValueError) as error:
        raise FormatError(where, "has a figure that is not finite", remedy=REMEDY) from error
    TimedTransfer(**TimedTransfer.figures_of(transfer))  # makes the checks of one that is asked for
    for period in transfer.periods:
        if period.end_s < period.start_s:
            raise FormatError(where, "has a period that ends before it starts", remedy=REMEDY)
        if any(len(path.regions) not in {2, 3} for path in period.paths):
            raise FormatError(where, "has a path without two or three regions", remedy=REMEDY)
    return replace(transfer, egress_usd=0.0, remedies=None, stored=())
