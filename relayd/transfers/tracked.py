"""A transfer's state: its progress, its rate, its expected end, and whether that is in time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from pydantic import TypeAdapter

from planner.fields.kinds import LEAST_FIGURE
from planner.model.achieved import RATE_OVER_S
from planner.model.link_states import Health
from planner.model.units import BITS_PER_BYTE, duration_s, duration_text, gbps_text
from relayd.times import utc_text
from relayd.transfers.expected import DIRECT, ExpectedTransfer, figures_of, is_whole_plan

_EXPECTED = TypeAdapter(ExpectedTransfer)

LOST_AFTER_S = 86_400.0
"""A transfer without a report for a day has failed."""

StoredState: TypeAlias = Literal["running", "finished", "failed", "cancelled"]
WantedState: TypeAlias = Literal["in-flight", "ended", "finished", "failed", "cancelled"]
HoldState: TypeAlias = Literal["none", "held", "lapsed", "lost"]
TrackedState: TypeAlias = Literal["running", "silent", "finished", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A transfer as it was begun, and what was said of it last.

    Times are seconds since 1970 (UTC).

    Attributes
    ----------
    who : str
        The token that reports it, or ``user@machine``.
    via : str | None
        Its relay, or ``direct``; None where it takes several paths.
    moved_gb : float
        What has arrived.
    limited_by : {"network", "application", "disk", "unknown"}
        What limited its rate, as was reported last.
    """

    id: str
    src: str
    dst: str
    volume_gb: float
    label: str
    who: str
    problem: str
    limited_by: str
    began_s: float
    reported_s: float | None
    ended_s: float | None
    deadline_at_s: float | None
    silent_after_s: float
    via: str | None
    moved_gb: float

    @property
    def last_s(self) -> float:
        """Time of the last report, or of its beginning."""
        return self.began_s if self.reported_s is None else self.reported_s


@dataclass(frozen=True, slots=True)
class StoredTransfer(Transfer):
    """A transfer as it is stored; the table's comments say what each column is."""

    number: int
    digest: str
    plan: str | None
    expected: str | None
    state: StoredState
    moved_via: dict[str, float]
    heard_s: float
    event_id: int | None
    reports: str
    is_retracted: bool
    lost_hold: int | None
    """1 where others have what it held; None where it held nothing."""

    def all_reports(self) -> list[tuple[float, float]]:
        """Return time and GB of each report that is kept, the oldest first."""
        return [(at_s, moved_gb) for at_s, moved_gb in json.loads(self.reports)]


@dataclass(frozen=True, slots=True)
class TrackedTransfer(Transfer):
    """A transfer, and figures from its reports at one time.

    Attributes
    ----------
    state : {"running", "silent", "finished", "failed", "cancelled"}
        ``silent`` without a report for ``silent_after_s``; after a day of that, ``failed``.
    health : {"good", "bad", "unknown", "stale"}
        ``bad``: it failed, is late or slow, lost its hold, or nothing arrives; ``stale``: it is
        silent; ``unknown``: it was cancelled, or has not reported a rate yet.
    share : float
        Which part of all has arrived.
    rate_gbps : float | None
        Over the last half a minute of reports; None unless it is running.
    mean_gbps : float | None
        Since it began.
    expected : ExpectedTransfer | None
        Of its plan.
    planned_end_s : float | None
        When it ends by the plan.
    forecast_end_s : float | None
        When it ends at the rate to expect of the plan at what it achieves now, as `replan` reckons;
        by the plan where it has not reported yet.
    is_late : bool | None
        Whether it ended, or is to end, after the deadline; None where that is not known. One that
        is silent is late if it was when last reported, or would be at its plan's rate from now on.
    is_slow : bool | None
        Whether its rate is below the plan's low bound, or was when last reported; None where that
        is not known.
    reason : str
        The state in a sentence: rate against plan, end against deadline.
    is_retracted : bool
        Whether the sample of its time was retracted: it is no outcome.
    hold : {"none", "held", "lapsed", "lost"}
        Whether the capacity that its plan takes is held for it: ``lapsed`` while it is silent,
        ``lost`` where others had taken it when it reported again.
    cost_usd : float | None
        Of one that finished as planned, VMs as long as it took; by its plan's prices.
    saved_s, saved_usd : float | None
        If over relays, against the direct path as the plan states it; negative for more.
    """

    state: TrackedState
    share: float
    rate_gbps: float | None
    mean_gbps: float | None
    expected: ExpectedTransfer | None
    planned_end_s: float | None
    forecast_end_s: float | None
    is_late: bool | None
    is_slow: bool | None
    reason: str = ""
    is_retracted: bool = False
    hold: HoldState = "none"
    cost_usd: float | None = None
    saved_s: float | None = None
    saved_usd: float | None = None
    health: Health = "unknown"


@dataclass(frozen=True, slots=True)
class TransferRate:
    """The rate at which a transfer is to send now.

    Attributes
    ----------
    rate_gbps : float
        That of its plan while it is held; else what others leave of it on its paths, at least a
        thousandth.
    bytes_per_s : int
        The same, never 0.
    hold : {"none", "held", "lapsed", "lost"}
    until_s : float | None
        The hold ends then unless the transfer is reported, in seconds since 1970 (UTC). None
        without one: what others leave may change at any time.
    """

    rate_gbps: float
    bytes_per_s: int
    hold: HoldState
    until_s: float | None


@dataclass(frozen=True, slots=True)
class TrackedReport:
    """The volume that had arrived at one time.

    Attributes
    ----------
    rate_gbps : float | None
        Since the report before; None for the first.
    """

    at_s: float
    moved_gb: float
    rate_gbps: float | None


@dataclass(frozen=True, slots=True)
class TrackedPath:
    """A path of a transfer: its planned rate, and the volume that arrived over it.

    Attributes
    ----------
    moved_gb : float | None
        None where it was not reported.
    """

    regions: tuple[str, ...]
    planned_gbps: float | None
    moved_gb: float | None


@dataclass(frozen=True, slots=True)
class RestQuestion:
    """A request to plan the rest of the transfer.

    Attributes
    ----------
    question : {"replan", "transfer"}
        ``transfer`` where the plan is not known as a whole.
    advised : bool
        Whether the transfer is late, or much slower than planned.
    path : str
        Of the HTTP service.
    body : mapping
        To be sent there.
    """

    question: Literal["replan", "transfer"]
    advised: bool
    path: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TransferDetails:
    """A transfer with its reports, its paths, its plan, and what to ask about the rest of it."""

    transfer: TrackedTransfer
    reports: tuple[TrackedReport, ...]
    paths: tuple[TrackedPath, ...]
    plan: Mapping[str, Any] | None
    rest: RestQuestion | None = None


def tracked(row: StoredTransfer, now_s: float) -> TrackedTransfer:
    """Return a transfer's state at a time."""
    expected = None if row.expected is None else _EXPECTED.validate_json(row.expected)
    state = _state(row, now_s)
    is_running, under_way = state == "running", state in ("running", "silent")
    rate = _rate_gbps(row) if under_way else None
    plan = expected or ExpectedTransfer()
    planned_end_s = None if plan.duration_s is None else row.began_s + plan.duration_s
    forecast_end_s = planned_end_s if under_way and rate is None else None
    left_gb = max(0.0, row.volume_gb - row.moved_gb)
    if rate is not None and rate > LEAST_FIGURE:
        forecast_end_s = row.last_s + duration_s(left_gb, plan.rest_gbps(rate))
    slow = None if rate is None or plan.least_gbps is None else rate < plan.least_gbps
    late: bool | None = None
    if row.deadline_at_s is not None:
        end_s = row.ended_s if state == "finished" else forecast_end_s
        if state == "silent":
            least_s = duration_s(left_gb, plan.throughput_gbps) if plan.throughput_gbps else 0.0
            # It may have stopped: nothing says that it will be in time.
            late = max(end_s or 0.0, now_s + least_s) > row.deadline_at_s or None
        elif is_running and now_s > row.deadline_at_s:
            late = True
        elif end_s is not None:
            late = end_s > row.deadline_at_s
    took_s = (row.last_s if row.ended_s is None else row.ended_s) - row.began_s
    mean = BITS_PER_BYTE * row.moved_gb / took_s if took_s > 0 else None
    found = TrackedTransfer(
        **{one.name: getattr(row, one.name) for one in fields(Transfer)},
        state=state,
        share=min(1.0, row.moved_gb / row.volume_gb),
        rate_gbps=rate if is_running else None,
        mean_gbps=mean,
        expected=expected,
        planned_end_s=planned_end_s,
        forecast_end_s=forecast_end_s if is_running else None,
        is_late=late,
        is_slow=slow,
        is_retracted=row.is_retracted,
        hold=_hold(row, state),
    )
    return replace(found, reason=_reason(found), health=_health(found), **_outcome(row, found))


def _outcome(row: StoredTransfer, of: TrackedTransfer) -> dict[str, Any]:
    """Return what one that finished as planned cost and saved, as far as its plan tells."""
    if of.state != "finished" or of.ended_s is None or of.is_retracted or not row.plan:
        return {}
    plan = figures_of(row.plan)
    if plan is None or not (of.expected and of.expected.is_of(of.volume_gb, row.moved_via)):
        return {}
    took_s, direct = of.ended_s - of.began_s, plan.direct
    found = {"cost_usd": plan.cost_usd.egress + plan.vm_usd(took_s)}
    if plan.verdict != "direct" and direct:
        found["saved_s"] = direct.duration_s - plan.vm_start_s - took_s
        found["saved_usd"] = direct.cost_usd.total - found["cost_usd"]
    return found


def details(row: StoredTransfer, now_s: float) -> TransferDetails:
    """Return a transfer with its reports in the order of time."""
    transfer = tracked(row, now_s)
    reports = row.all_reports()
    listed = [
        TrackedReport(*report, _gbps(before, report))
        for before, report in pairwise([(row.began_s, 0.0), *reports])
    ]
    plan = None if row.plan is None else json.loads(row.plan)
    seen = {}
    if transfer.state == "silent":
        seen["silent_s"] = now_s - row.heard_s
    elif transfer.is_slow and transfer.expected and (least := transfer.expected.least_gbps):
        as_planned_s = (one.at_s for one in reversed(listed) if (one.rate_gbps or 0.0) >= least)
        seen["slow_s"] = transfer.last_s - next(as_planned_s, row.began_s)
    rest = _rest(transfer, plan, now_s, seen)
    return TransferDetails(transfer, tuple(listed), _paths(row, transfer), plan, rest)


def _state(row: StoredTransfer, now_s: float) -> TrackedState:
    if row.state != "running":
        return row.state
    unheard_s = now_s - row.heard_s
    if unheard_s > LOST_AFTER_S:
        return "failed"
    return "silent" if unheard_s > row.silent_after_s else "running"


def _health(of: TrackedTransfer) -> Health:
    if of.state == "silent":
        return "stale"
    if of.is_late or of.is_slow or of.state == "failed" or of.hold == "lost" or of.rate_gbps == 0:
        return "bad"
    return "good" if of.state == "finished" or of.rate_gbps is not None else "unknown"


def _hold(row: StoredTransfer, state: TrackedState) -> HoldState:
    if row.lost_hold is None or state not in ("running", "silent"):
        return "none"
    return "lost" if row.lost_hold else "held" if state == "running" else "lapsed"


def _rate_gbps(row: StoredTransfer) -> float | None:
    """Return the rate of the last reports; None before the first that has a time after it began."""
    if row.reported_s is None:
        return None
    since, until_s = (row.began_s, 0.0), row.reported_s - RATE_OVER_S
    since = max((one for one in row.all_reports() if one[0] <= until_s), default=since)
    return _gbps(since, (row.reported_s, row.moved_gb))


def _gbps(since: tuple[float, float], until: tuple[float, float]) -> float | None:
    """Return the rate between two reports; None between two of one time."""
    span_s, moved_gb = until[0] - since[0], until[1] - since[1]
    return BITS_PER_BYTE * moved_gb / span_s if span_s > 0 else None


def _paths(row: StoredTransfer, transfer: TrackedTransfer) -> tuple[TrackedPath, ...]:
    moved, found = row.moved_via, {}
    for path in transfer.expected.paths if transfer.expected else ():
        found[path.via] = TrackedPath(path.regions, path.throughput_gbps, moved.get(path.via))
    for via, gb in moved.items():
        regions = (row.src, row.dst) if via == DIRECT else (row.src, via, row.dst)
        found.setdefault(via, TrackedPath(regions, None, gb))
    return tuple(found.values())


def _rest(
    transfer: TrackedTransfer,
    plan: Mapping[str, Any] | None,
    now_s: float,
    seen: Mapping[str, float],
) -> RestQuestion | None:
    left_gb = transfer.volume_gb - transfer.moved_gb
    if transfer.state not in ("running", "silent") or left_gb < LEAST_FIGURE:
        return None
    advised = bool(transfer.is_late or transfer.is_slow)
    if is_whole_plan(plan):
        elapsed_s = max(0.0, transfer.last_s - transfer.began_s)
        body = {"plan": plan, "moved_gb": transfer.moved_gb, "elapsed_s": elapsed_s, **seen}
        if transfer.rate_gbps is not None:
            body["rate_gbps"] = transfer.rate_gbps
        return RestQuestion("replan", advised, "/v1/replans", body)
    rest: dict[str, Any] = {"src": transfer.src, "dst": transfer.dst, "volume_gb": left_gb}
    if transfer.deadline_at_s is not None and transfer.deadline_at_s > now_s:
        rest["deadline_s"] = transfer.deadline_at_s - now_s
    return RestQuestion("transfer", advised, "/v1/plans", rest)


def _reason(of: TrackedTransfer) -> str:
    if of.state == "silent":
        last = "began" if of.reported_s is None else "was reported"
        often = f"should be reported at least every {duration_text(of.silent_after_s)}"
        seen = ["late"] * bool(of.is_late) + ["much slower than planned"] * bool(of.is_slow)
        known = f" As far as is known, it is {' and '.join(seen)}." if seen else ""
        return f"It is silent: it {last} at {utc_text(of.last_s)}, and {often}.{known}"
    if of.state in ("failed", "cancelled"):
        why = of.problem.rstrip(".") or (
            "no program has reported it for a day" if of.ended_s is None else "no reason was given"
        )
        return f"It {'failed' if of.state == 'failed' else 'was cancelled'}: {why}."
    if of.state == "finished":
        rate = "" if of.mean_gbps is None else f" at {gbps_text(of.mean_gbps)} Gbit/s"
        return f"It finished{rate}{_against_plan(of, of.mean_gbps)}{_against_deadline(of)}."
    if of.rate_gbps is None:
        return "It began, and has not reported progress yet."
    if of.rate_gbps == 0:
        return "Nothing has arrived lately" + (", and the deadline is over." if of.is_late else ".")
    rate = f"It runs at {gbps_text(of.rate_gbps)} Gbit/s{_against_plan(of, of.rate_gbps)}"
    lost = " Others have what it held: it fell silent before." if of.hold == "lost" else ""
    return f"{rate}{_against_deadline(of)}.{lost}"


def _against_plan(of: TrackedTransfer, rate_gbps: float | None) -> str:
    planned = of.expected.throughput_gbps if of.expected else None
    if planned is None or rate_gbps is None:
        return ""
    if of.is_slow:
        return f", much slower than the {gbps_text(planned)} Gbit/s planned"
    return f" ({gbps_text(planned)} planned)"


def _against_deadline(of: TrackedTransfer) -> str:
    end_s = of.ended_s if of.ended_s is not None else of.forecast_end_s
    if of.deadline_at_s is None or end_s is None:
        return ""
    apart_s = of.deadline_at_s - end_s
    verb = "ends" if of.ended_s is None else "ended"
    how = "before" if apart_s >= 0 else "after"
    return f", and {verb} {duration_text(abs(apart_s))} {how} its deadline"
