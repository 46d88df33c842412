"""The register of transfers on a store: reports of their programs, and figures from them.

A transfer has at most :data:`MOST_REPORTS` reports: of more, every other one goes, so that those
that stay tell its rate over time. Each report becomes an event, which replaces the one before.
"""

from __future__ import annotations

import json
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from time import time as clock
from typing import Any

import numpy as np

from planner.model.errors import InfeasibleError, InputError
from planner.model.estimate import SECONDS_PER_DAY
from planner.model.network import Network
from planner.model.units import BITS_PER_BYTE, BYTES_PER_GB, volume_text
from planner.model.verification import AchievedShare
from relayd.questions.holds import (
    Hold,
    PoolUse,
    check_room,
    holds_of,
    is_of_many,
    needs_of,
    pools_of,
    regions_of,
    share_left,
)
from relayd.questions.resolving import NetworkView
from relayd.store.database import COLUMNS_OF_ENDS, NAMED_ENDS, Database, matching
from relayd.store.events import Events
from relayd.store.samples.ingest import Batch
from relayd.times import seconds_of, utc_text
from relayd.transfers.expected import DIRECT, expected_of
from relayd.transfers.outcomes import store_outcome
from relayd.transfers.requests import (
    TransferEndRequest,
    TransferProgressRequest,
    TransferStartRequest,
)
from relayd.transfers.tracked import (
    LOST_AFTER_S,
    StoredTransfer,
    TrackedTransfer,
    TransferDetails,
    TransferRate,
    WantedState,
    details,
    tracked,
)

MOST_LISTED = 1000
LAST = 20
"""Transfers of a pair or a label by which what the next one reaches is foretold."""
MOST_REPORTS = 1000
MOST_OF_ONE = 2000
"""Transfers of one reporter, not counting the operator, that were reported within a day."""
CLOCK_SKEW_S = 60.0
"""By which a reporter's clock may be ahead of ours."""
OLDEST_PLAN_S = 7 * SECONDS_PER_DAY
"""By which figures may be newer than those that a plan rests on that takes capacity."""
VOLUME_ROUNDING = 1e-6
"""By which volumes may disagree that were counted in another way."""

_RETRACTED = (
    "EXISTS (SELECT 1 FROM samples JOIN retracted_samples ON sample_id = samples.id "
    "WHERE restored_by IS NULL AND samples.src_id = transfers.src_id "
    "AND samples.dst_id = transfers.dst_id AND measured_at_s = began_s "
    "AND value = ended_s - began_s "
    "AND metric_id = (SELECT id FROM metrics WHERE name = 'transfer_s'))"
)
_COLUMNS = {**COLUMNS_OF_ENDS, "id": "transfers.id", "is_retracted": _RETRACTED}
_LOST = "(SELECT min(is_lost) FROM holds WHERE transfer_number = number)"
_ENDED = {"finished": "finished", "failed": "failed", "cancelled": "was cancelled"}


class NoTransferError(InputError):
    """No transfer has an id."""


class NotOwnerError(InputError):
    """A transfer is another reporter's, or one more than its reporter may have."""


def transfer_rows(
    database: Database,
    state: WantedState | None = None,
    src: str | None = None,
    dst: str | None = None,
    ended_s: tuple[float | None, float | None] = (None, None),
    *,
    before_number: int | None = None,
    limit: int = MOST_LISTED,
) -> list[StoredTransfer]:
    """Return transfers, the newest first: by their ends, where only those are asked for that ended.

    Parameters
    ----------
    state : WantedState, optional
    src, dst : str, optional
        Region ids.
    ended_s : tuple of float, optional
        Those that ended then or later, and before then, in seconds since 1970 (UTC).
    before_number : int, optional
        Of the last of the page before.
    """
    by = ["number"] if state in (None, "in-flight") else ["coalesce(ended_s, heard_s)", "number"]
    key, order = ", ".join(by), ", ".join(f"{column} DESC" for column in by)
    lost_s = clock() - LOST_AFTER_S
    condition, values = matching(
        {
            f"({key}) < (SELECT {key} FROM transfers WHERE number = ?)": before_number,  # noqa: S608
            "ended_s >= ?": ended_s[0],
            "ended_s < ?": ended_s[1],
            "state = 'running' AND heard_s >= ?": lost_s if state == "in-flight" else None,
            "(state = 'failed' OR (state = 'running' AND heard_s < ?))": (
                lost_s if state == "failed" else None
            ),
            "(state != 'running' OR heard_s < ?)": lost_s if state == "ended" else None,
            "state = ?": state if state in ("finished", "cancelled") else None,
            "src.name = ?": src,
            "dst.name = ?": dst,
        }
    )
    return _rows(database, f"{condition} ORDER BY {order} LIMIT ?", *values, limit)


def _rows(database: Database, condition: str, *values: object) -> list[StoredTransfer]:
    of = f"transfers {NAMED_ENDS} WHERE {condition}"
    columns = {**_COLUMNS, "lost_hold": _LOST}
    if database.version < 2:
        columns |= {"lost_hold": "NULL", "limited_by": "'unknown'"}
    return database.records(StoredTransfer, of, values, columns)


def achieved_shares(database: Database) -> tuple[AchievedShare, ...]:
    """Return the shares of planned rates that the last transfers of each pair and label reached.

    Of the newest thousand that finished with a plan, the :data:`LAST` of each.
    """
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    sql = (
        "SELECT src.name, dst.name, label, moved_gb, ended_s - began_s, expected "  # noqa: S608
        f"FROM transfers {NAMED_ENDS} WHERE state = 'finished' AND expected IS NOT NULL "
        f"AND NOT {_RETRACTED} ORDER BY number DESC LIMIT ?"
    )
    for src, dst, label, gb, took_s, expected in database.rows(sql, (MOST_LISTED,)):
        planned_gbps = json.loads(expected)["throughput_gbps"]
        if planned_gbps and took_s > 0 and gb > 0:
            for key in ((src, dst, ""), ("", "", label))[: 1 + bool(label)]:
                if len(found[key]) < LAST:
                    found[key].append(BITS_PER_BYTE * gb / took_s / planned_gbps)
    listed = []
    for key, shares in found.items():
        low, median, high = np.quantile(shares, (0.05, 0.5, 0.95)).tolist()
        listed.append(AchievedShare(*key, median, low, high, len(shares)))
    return tuple(listed)


def forget_reports(database: Database, before_s: float) -> int:
    """Remove reports and plans of transfers without a report since a time.

    What became of them stays, with the figures of the plan. Returns how many reports went.
    """
    with database.transaction():
        of_old = "SELECT reports FROM transfers WHERE heard_s < ?"
        count = sum(len(json.loads(text)) for (text,) in database.rows(of_old, (before_s,)))
        database.change(
            "UPDATE transfers SET plan = NULL, reports = '[]' WHERE heard_s < ?", (before_s,)
        )
    return count


class TransferRegister:
    """Keeps transfers; methods, answers and errors are those of a client of a service.

    Parameters
    ----------
    database : Database
    names : NetworkView
        By which regions are called.
    who : str
        Who reports.
    is_operator : bool
        Whether reports on transfers of others are taken, and any number of transfers.
    address : str
        From where a service got the report.
    """

    def __init__(
        self,
        database: Database,
        names: NetworkView,
        who: str,
        *,
        is_operator: bool = True,
        address: str = "",
    ) -> None:
        self._database, self._names, self._who = database, names, who
        self._is_operator = is_operator
        # Without a token a service names the address, and the store itself user@machine.
        has_token = who != address if address else "@" not in who
        reporter = who if has_token else ""
        self._batch = Batch("transfer", "live", reporter=reporter, address=address)

    def begin_transfer(self, *ends: str, **fields: Any) -> TrackedTransfer:
        """Report the start of a transfer; see :class:`.TransferStartRequest`."""
        found, _ = self.begin(TransferStartRequest(*ends, **fields))
        return found

    def report_transfer(self, id: str, moved_gb: float | str, **fields: Any) -> TrackedTransfer:  # noqa: A002
        """Report the progress of a transfer; see :class:`.TransferProgressRequest`."""
        return self.report(id, TransferProgressRequest(moved_gb, **fields))

    def end_transfer(self, id: str, state: str = "finished", **fields: Any) -> TrackedTransfer:  # noqa: A002
        """Report the end of a transfer; see :class:`.TransferEndRequest`."""
        return self.end(id, TransferEndRequest(state, **fields))

    def begin(self, request: TransferStartRequest) -> tuple[TrackedTransfer, bool]:
        """Store a transfer that begins; return it, and whether it is new.

        It holds what its plan takes, unless it asks for no hold.

        Raises InputError if a region is unknown, another transfer has its id, it begins in the
        future, or its plan is too old or takes more than there ever is. Raises InfeasibleError if
        others leave too little. Raises NotOwnerError if the reporter has :data:`MOST_OF_ONE`
        already.
        """
        source, target, _ = self._names.resolve_pair(request.src, request.dst)
        request = replace(request, src=source, dst=target)
        plan, expected = request.document, expected_of(request.document)
        relays = {path.via for path in expected.paths} if expected else set()
        name = request.id or uuid.uuid4().hex[:16]
        database, now_s = self._database, clock()
        needs: list[Hold] = []
        if plan and not request.no_hold:
            regions, catalogue = regions_of(plan, name), self._names.catalogue
            needs = needs_of(plan, name, self._network_of(regions), catalogue)
            network = self._network_of(regions, needs)
        with database.transaction():
            if request.id is not None and (known := self._find(request.id)) is not None:
                if known.digest != request.digest or not self._owns(known):
                    problem = f"is of another transfer, which began at {utc_text(known.began_s)}"
                    remedy = "Give each transfer an id of its own."
                    raise InputError("id", problem, value=request.id, remedy=remedy)
                return tracked(known, now_s), False
            self._check_count(now_s)
            began_s = _time(request.at_s, now_s)
            late_s = None if request.deadline_s is None else began_s + request.deadline_s
            row = {
                "id": name,
                **database.ends(source, target),
                "volume_gb": request.volume_gb,
                "label": request.label or "",
                "who": self._who,
                "began_s": began_s,
                "deadline_at_s": late_s,
                "silent_after_s": request.silent_after_s,
                "digest": request.digest,
                "plan": None if plan is None else json.dumps(plan),
                "expected": None if expected is None else json.dumps(asdict(expected)),
                "via": None if len(relays) > 1 or is_of_many(plan) else next(iter(relays), DIRECT),
                "heard_s": now_s,
                "state": "running",
                "problem": "",
                "limited_by": "unknown",
                "moved_gb": 0.0,
                "moved_via": "{}",
                "reports": "[]",
            }
            if plan and needs:
                _refuse_old(plan, network)
                check_room(needs, holds_of(database, now_s), network, self._names.catalogue)
            number = database.add("transfers", row, "number")
            for need in needs:
                database.add("holds", need.row(number))
            return self._told(name), True

    def report(self, name: str, request: TransferProgressRequest) -> TrackedTransfer:
        """Store the progress of a transfer; repeating the last report changes nothing.

        Raises NoTransferError or NotOwnerError if there is none with this id, or it is another
        reporter's. Raises InputError if it has ended, or the report goes backwards, beyond the
        volume or into the future.
        """
        return self._reported(name, request, request.moved_gb, "running")

    def end(self, name: str, request: TransferEndRequest) -> TrackedTransfer:
        """Store the end of a transfer; repeating it changes nothing.

        Raises NoTransferError or NotOwnerError if there is none with this id, or it is another
        reporter's. Raises InputError if it has ended in another way, or the last report is wrong;
        see :meth:`report`.
        """
        return self._reported(name, request, request.moved_gb, request.state, request.problem or "")

    def transfer_details(self, id: str) -> TransferDetails:  # noqa: A002
        """Return a transfer with its reports.

        Raises NoTransferError if there is none with this id.
        """
        return details(self._require(id), clock())

    def transfer_rate(self, id: str) -> TransferRate:  # noqa: A002
        """Return the rate at which a transfer is to send now.

        Raises NoTransferError if there is none with this id. Raises InputError if it has ended, or
        was begun without a plan that says its rate.
        """
        row, now_s = self._require(id), clock()
        of = tracked(row, now_s)
        if of.state not in ("running", "silent"):
            raise _after_end(of.state, row)
        planned = of.expected.throughput_gbps if of.expected else None
        if planned is None:
            problem = "is of a transfer without a plan that says its rate"
            remedy = "Begin it with its plan (`plan`; `relayd transfers begin --plan`)."
            raise InputError("id", problem, value=id, remedy=remedy)
        rate, until_s = planned, None
        if of.hold == "held":
            until_s = row.heard_s + row.silent_after_s
        elif row.plan:
            plan, catalogue = json.loads(row.plan), self._names.catalogue
            network = self._network_of(regions_of(plan, id))
            needs = needs_of(plan, id, network, catalogue)
            rate *= share_left(needs, holds_of(self._database, now_s), network, catalogue)
        per_s = max(1, int(rate * BYTES_PER_GB / BITS_PER_BYTE))
        return TransferRate(rate, per_s, of.hold, until_s)

    def transfers(
        self, state: WantedState | None = None, src: str | None = None, dst: str | None = None
    ) -> list[TrackedTransfer]:
        """Return transfers, the newest first, at most a thousand."""
        ends = (
            name and self._names.resolve(name, field).region_id
            for name, field in ((src, "src"), (dst, "dst"))
        )
        (source, target), now_s = ends, clock()
        return [tracked(row, now_s) for row in transfer_rows(self._database, state, source, target)]

    def pools(self) -> list[PoolUse]:
        """Return the use of each pool, and of quotas and interconnects, by transfers."""
        holds = holds_of(self._database, clock())
        network = self._network_of(one.place for one in holds.all)
        return pools_of(network, holds, self._names.catalogue)

    # ---- parts -------------------------------------------------------------------------------

    def _find(self, name: str) -> StoredTransfer | None:
        return next(iter(_rows(self._database, "transfers.id = ?", name)), None)

    def _owns(self, row: StoredTransfer) -> bool:
        return self._is_operator or row.who == self._who

    def _require(self, name: str, *, own: bool = False) -> StoredTransfer:
        if (row := self._find(name)) is None:
            remedy = "`relayd transfers list` has the ids."
            raise NoTransferError("id", "is of no transfer", value=name, remedy=remedy)
        if own and not self._owns(row):
            problem = f"is of a transfer of {row.who or 'the operator'}"
            remedy = (
                "Only the token that began a transfer reports on it and ends it, or one with the "
                "scope `admin`."
            )
            raise NotOwnerError("id", problem, value=name, remedy=remedy)
        return row

    def _check_count(self, now_s: float) -> None:
        if self._is_operator:
            return
        sql = "SELECT count(*) FROM transfers WHERE who = ? AND heard_s >= ?"
        (count,) = self._database.row(sql, (self._who, now_s - LOST_AFTER_S))
        if count >= MOST_OF_ONE:
            problem = f"are more than the {MOST_OF_ONE:,} that a token may report a day"
            remedy = "Report small files as one transfer, or wait until others are a day old."
            raise NotOwnerError("transfers", problem, remedy=remedy)

    def _via(self, given: Mapping[str, float]) -> dict[str, float]:
        return {
            via if via == DIRECT else self._names.resolve(via, "via_gb").region_id: gb
            for via, gb in given.items()
        }

    def _reported(
        self,
        name: str,
        request: TransferProgressRequest | TransferEndRequest,
        moved_gb: float | None,
        state: str,
        why: str = "",
    ) -> TrackedTransfer:
        """Store a report; paths that it leaves out stay as they are."""
        via, now_s = self._via(request.via_gb), clock()
        ends = state != "running"
        with self._database.transaction():
            row = self._require(name, own=True)
            if ends and row.state == state:
                return tracked(row, now_s)
            if row.state != "running":
                if ends:
                    problem = f"can't be {state}: the transfer {_ended(row.state, row)}"
                    raise InputError("state", problem, value=state)
                raise _after_end(row.state, row)
            if moved_gb is None:
                moved_gb = row.volume_gb if state == "finished" else row.moved_gb
            at_s = _time(request.at_s, now_s)
            moved_via = _checked(row, moved_gb, via, at_s)
            reports = [report for report in row.all_reports() if report[0] != at_s]
            reports.append((at_s, moved_gb))
            if len(reports) > MOST_REPORTS:
                reports = [*reports[1:-1:2], reports[-1]]
            only = next(iter(moved_via)) if len(moved_via) == 1 else None if moved_via else row.via
            texts = json.dumps(moved_via, sort_keys=True), json.dumps(reports)
            limit = row.limited_by if request.limited_by == "unknown" else request.limited_by
            told = state, why, limit, at_s if ends else None
            self._renew_hold(row, now_s, ends=ends)
            self._database.change(
                "UPDATE transfers SET moved_gb = ?, via = ?, reported_s = ?, heard_s = ?, "
                "moved_via = ?, reports = ?, state = ?, problem = ?, limited_by = ?, "
                "ended_s = ? WHERE number = ?",
                (moved_gb, only, at_s, now_s, *texts, *told, row.number),
            )
            if ends:
                store_outcome(self._database, self._require(name), self._batch, self._names)
            return self._told(name)

    def _network_of(self, regions: Iterable[str], needs: Iterable[Hold] = ()) -> Network:
        """Return the network with some regions, as far as they are known, for VMs that are needed.

        Quotas count vCPUs of these types.
        """
        catalogue = self._names.catalogue
        known = catalogue.regions.keys() | set(self._names.known_regions())
        vm_types = {one.place: one.vm_type for one in needs if one.vm_type in catalogue.vm_types}
        return self._names.network_of(sorted(known.intersection(regions)), vm_types)

    def _renew_hold(self, row: StoredTransfer, now_s: float, *, ends: bool) -> None:
        """Free the hold of a transfer that ends; keep that of one that fell silent if it fits."""
        database, of = self._database, (row.number,)
        if ends:
            database.change("DELETE FROM holds WHERE transfer_number = ?", of)
        elif row.lost_hold == 0 and now_s > row.heard_s + row.silent_after_s:
            sql = "SELECT kind, place, vm_type, vms, egress_gbps, ingress_gbps FROM holds "
            needs = [Hold(*one) for one in database.rows(f"{sql}WHERE transfer_number = ?", of)]
            network = self._network_of((need.place for need in needs), needs)
            try:
                check_room(needs, holds_of(database, now_s), network, self._names.catalogue)
            except (InfeasibleError, InputError):
                database.change("UPDATE holds SET is_lost = 1 WHERE transfer_number = ?", of)

    def _told(self, name: str) -> TrackedTransfer:
        """Add an event, in the caller's transaction; it replaces the one of progress before."""
        row = self._require(name)
        detail = {
            "src": row.src,
            "dst": row.dst,
            "state": row.state,
            "moved_gb": row.moved_gb,
            "volume_gb": row.volume_gb,
        }
        # In this order, so that no id is used twice.
        number = Events(self._database).add("transfer", row.id, detail)
        if row.event_id is not None:
            self._database.change("DELETE FROM events WHERE id = ?", (row.event_id,))
        replaced = None if row.reported_s is None or row.state != "running" else number
        self._database.change(
            "UPDATE transfers SET event_id = ? WHERE number = ?", (replaced, row.number)
        )
        found = tracked(row, clock())
        if row.lost_hold is not None:
            self._database.change(
                "UPDATE holds SET ends_at_s = ? WHERE transfer_number = ?",
                (found.forecast_end_s, row.number),
            )
        return found


def _ended(state: str, row: StoredTransfer) -> str:
    return f"{_ENDED[state]} at {utc_text(row.heard_s if row.ended_s is None else row.ended_s)}"


def _after_end(state: str, row: StoredTransfer) -> InputError:
    remedy = "Begin another transfer for what is moved after that."
    problem = f"is of a transfer that {_ended(state, row)}"
    return InputError("id", problem, value=row.id, remedy=remedy)


def _refuse_old(plan: Mapping[str, Any], network: Network) -> None:
    of = plan.get("snapshot")
    made_on, now = of.get("as_of") if isinstance(of, Mapping) else None, network.snapshot.as_of
    try:
        age_s = seconds_of(now) - seconds_of(made_on) if made_on and now else 0.0
    except (TypeError, ValueError):
        return
    if age_s > OLDEST_PLAN_S:
        problem = f"rests on what was known at {made_on}, and newer figures are of {now}"
        remedy = "Plan again, or begin it with `--no-hold`."
        raise InputError("plan", problem, remedy=remedy)


def _time(at_s: float | None, now_s: float) -> float:
    if at_s is not None and at_s > now_s + CLOCK_SKEW_S:
        problem = f"is over {CLOCK_SKEW_S:g} s in the future"
        remedy = "Set the clock, or leave the time out."
        raise InputError("at_s", problem, value=at_s, remedy=remedy)
    return now_s if at_s is None else at_s


def _checked(
    row: StoredTransfer, moved_gb: float, given: Mapping[str, float], at_s: float
) -> dict[str, float]:
    """Return GB by path with those of a report, and refuse what does not follow the last one."""
    if at_s < row.last_s:
        before = "it began" if row.reported_s is None else "the last report"
        problem = f"is before {before} ({utc_text(row.last_s)})"
        raise InputError("at_s", problem, value=at_s, remedy="Report in the order of time.")
    if moved_gb > row.volume_gb * (1 + VOLUME_ROUNDING):
        problem = f"is more than the {volume_text(row.volume_gb)} of the transfer"
        remedy = "Give what has arrived, not what was sent over all links."
        raise InputError("moved_gb", problem, value=moved_gb, remedy=remedy)
    paths = {f"via_gb {via}": (row.moved_via.get(via, 0.0), gb) for via, gb in given.items()}
    for field, (before_gb, gb) in {"moved_gb": (row.moved_gb, moved_gb), **paths}.items():
        if gb < before_gb:
            problem = f"is less than the {volume_text(before_gb)} that were reported before"
            remedy = "Give all that has arrived since the transfer began."
            raise InputError(field, problem, value=gb, remedy=remedy)
    found = {**row.moved_via, **given}
    if (total_gb := sum(found.values())) > moved_gb * (1 + VOLUME_ROUNDING):
        problem = f"are together more than the {volume_text(moved_gb)} that have arrived"
        raise InputError("via_gb", problem, value=total_gb)
    return found
