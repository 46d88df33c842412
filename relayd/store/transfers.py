"""Transfers in the store: what their programs said of them, in the order in which they began.

A transfer has at most :data:`MOST_REPORTS` reports: of more, every other one goes, so that those
that stay tell its rate over time. Each report becomes an event, which replaces the one before.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from planner.model.errors import InputError
from planner.model.units import volume_text
from relayd.store.database import Database
from relayd.store.events import Events
from relayd.store.regions import region_id
from relayd.times import utc_text

StoredState: TypeAlias = Literal["running", "finished", "failed", "cancelled"]
EndState: TypeAlias = Literal["finished", "failed", "cancelled"]

WantedState: TypeAlias = Literal["in-flight", "finished", "failed", "cancelled"]

EVENT = "transfer"
LOST_AFTER_S = 86_400.0
"""A transfer that nobody has reported for a day has failed."""
MOST_REPORTS = 1000
RATE_OVER_S = 30.0
"""Over which the rate of the moment is taken, or over one report where they are rarer."""
CLOCK_SKEW_S = 60.0
"""By which a reporter's clock may be ahead of ours."""
ROUNDING = 1e-6
"""By which volumes may disagree that were counted in another way."""

_BEYOND = 2**62
_COLUMNS = (
    "number, transfers.id, src.name, dst.name, volume_gb, label, who, began_s, deadline_at_s, "
    "silent_after_s, digest, plan, expected, via, state, problem, moved_gb, moved_via, "
    "reported_s, ended_s, heard_s, event_id"
)
_SELECT = (
    f"SELECT {_COLUMNS} FROM transfers "  # noqa: S608
    "JOIN regions AS src ON src.id = src_id JOIN regions AS dst ON dst.id = dst_id"
)


class NoTransferError(InputError):
    """No transfer has an id."""


class ProgressReport(NamedTuple):
    """What had arrived at one time."""

    at_s: float
    moved_gb: float


class TransferRow(NamedTuple):
    """A transfer as it is stored; the table's comments say what each column is.

    Attributes
    ----------
    rate_since : ProgressReport
        From which on the rate of the moment is counted.
    """

    number: int
    id: str
    src: str
    dst: str
    volume_gb: float
    label: str
    who: str
    began_s: float
    deadline_at_s: float | None
    silent_after_s: float
    digest: str
    plan: str | None
    expected: str | None
    via: str | None
    state: StoredState
    problem: str
    moved_gb: float
    moved_via: str
    reported_s: float | None
    ended_s: float | None
    heard_s: float
    event_id: int | None
    rate_since: ProgressReport


class WantedTransfers(NamedTuple):
    """Which transfers to list; None for all.

    Attributes
    ----------
    state : WantedState | None
    src, dst : str | None
        Region ids.
    """

    state: WantedState | None = None
    src: str | None = None
    dst: str | None = None


class Transfers:
    """The transfers of a store.

    Parameters
    ----------
    database : Database
        Open for writing if something is to be said of them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    # ---- what programs say -----------------------------------------------------------------

    def begin(
        self,
        id: str | None,  # noqa: A002
        src: str,
        dst: str,
        *,
        volume_gb: float,
        who: str,
        digest: str,
        label: str = "",
        at_s: float | None = None,
        deadline_s: float | None = None,
        silent_after_s: float,
        plan: str | None = None,
        expected: str | None = None,
        via: str | None = None,
    ) -> tuple[TransferRow, bool]:
        """Store a transfer that begins; the same once more is the one that is there.

        Returns it, and whether it is new.

        Parameters
        ----------
        id : str | None
            None for a new one.
        src, dst : str
            Region ids.
        digest : str
            Of the request: beginning a transfer again is told from another under its id.
        plan, expected : str | None
            JSON of the whole plan, and of its figures.
        via : str | None
            The relay, or ``direct``; None for several paths.

        Raises
        ------
        InputError
            If another transfer has its id, or it begins in the future.
        """
        database, now_s = self._database, time.time()
        with database.transaction():
            if id is not None and (known := self.get(id)) is not None:
                if known.digest != digest:
                    raise InputError(
                        "id",
                        f"is of another transfer, which began at {utc_text(known.began_s)}",
                        value=id,
                        remedy="Give each transfer an id of its own.",
                    )
                return known, False
            began_s = _time(at_s, now_s)
            row = {
                "id": id or uuid.uuid4().hex[:16],
                "src_id": region_id(database, src),
                "dst_id": region_id(database, dst),
                "volume_gb": volume_gb,
                "label": label,
                "who": who,
                "began_s": began_s,
                "deadline_at_s": None if deadline_s is None else began_s + deadline_s,
                "silent_after_s": silent_after_s,
                "digest": digest,
                "plan": plan,
                "expected": expected,
                "via": via,
                "heard_s": now_s,
            }
            begun = {"state": "running", "problem": "", "moved_gb": 0.0, "moved_via": "{}"}
            database.add("transfers", {**row, **begun})
            return self._told(self.require(str(row["id"]))), True

    def report(
        self, name: str, moved_gb: float, moved_via: Mapping[str, float], at_s: float | None
    ) -> TransferRow:
        """Store how far a transfer is; the last report once more changes nothing.

        Parameters
        ----------
        moved_via : mapping
            GB by relay or ``direct``; paths that it does not name keep what they had.

        Raises
        ------
        NoTransferError
            If there is none with this id.
        InputError
            If it has ended, or the report goes backwards, beyond the volume or into the future.
        """
        now_s = time.time()
        with self._database.transaction():
            row = self.require(name)
            if row.state != "running":
                raise InputError(
                    "id",
                    f"is of a transfer that {_ENDED[row.state]} at {_ended_text(row)}",
                    value=name,
                    remedy="Begin another transfer for what is moved after that.",
                )
            self._keep(row, moved_gb, moved_via, _time(at_s, now_s), now_s)
            return self._told(self.require(name))

    def end(
        self,
        name: str,
        state: EndState,
        *,
        moved_gb: float | None = None,
        moved_via: Mapping[str, float] = {},
        problem: str = "",
        at_s: float | None = None,
    ) -> TransferRow:
        """Store how a transfer ended; the same once more changes nothing.

        Raises
        ------
        NoTransferError
            If there is none with this id.
        InputError
            If it has ended in another way, or the last report is wrong; see :meth:`report`.
        """
        database, now_s = self._database, time.time()
        with database.transaction():
            row = self.require(name)
            if row.state == state:
                return row
            if row.state != "running":
                raise InputError(
                    "state",
                    f"can't be {state}: the transfer {_ENDED[row.state]} at {_ended_text(row)}",
                    value=state,
                )
            if moved_gb is None:
                moved_gb = row.volume_gb if state == "finished" else row.moved_gb
            ended_s = _time(at_s, now_s)
            self._keep(row, moved_gb, moved_via, ended_s, now_s)
            database.change(
                "UPDATE transfers SET state = ?, problem = ?, ended_s = ? WHERE number = ?",
                (state, problem, ended_s, row.number),
            )
            return self._told(self.require(name))

    def forget_before(self, at_s: float) -> int:
        """Remove reports and plans of transfers that nobody has reported since a time.

        What became of them stays, with the figures of the plan. Returns how many reports went.
        """
        old = "SELECT number FROM transfers WHERE heard_s < ?"
        with self._database.transaction():
            (count,) = self._database.row(
                f"SELECT count(*) FROM transfer_reports WHERE transfer IN ({old})",  # noqa: S608
                (at_s,),
            )
            self._database.change(
                f"DELETE FROM transfer_reports WHERE transfer IN ({old})",  # noqa: S608
                (at_s,),
            )
            self._database.change("UPDATE transfers SET plan = NULL WHERE heard_s < ?", (at_s,))
        return int(count)

    # ---- what is known of them ---------------------------------------------------------------

    def get(self, name: str) -> TransferRow | None:
        """Return a transfer; None if there is none with this id."""
        found = self._database.row(f"{_SELECT} WHERE transfers.id = ?", (name,))
        return None if found is None else self._row(found)

    def require(self, name: str) -> TransferRow:
        """Return a transfer.

        Raises
        ------
        NoTransferError
            If there is none with this id.
        """
        found = self.get(name)
        if found is None:
            raise NoTransferError(
                "id", "is of no transfer", value=name, remedy="`relayd transfers list` has the ids."
            )
        return found

    def page(
        self, wanted: WantedTransfers, *, before_number: int = 0, limit: int
    ) -> list[TransferRow]:
        """Return transfers, the newest first; 0 for the first page."""
        lost_s = time.time() - LOST_AFTER_S
        conditions: dict[str, tuple[object, ...]] = {"number < ?": (before_number or _BEYOND,)}
        if wanted.state == "in-flight":
            conditions["state = 'running' AND heard_s >= ?"] = (lost_s,)
        elif wanted.state == "failed":
            conditions["(state = 'failed' OR (state = 'running' AND heard_s < ?))"] = (lost_s,)
        elif wanted.state is not None:
            conditions["state = ?"] = (wanted.state,)
        if wanted.src is not None:
            conditions["src.name = ?"] = (wanted.src,)
        if wanted.dst is not None:
            conditions["dst.name = ?"] = (wanted.dst,)
        values = [value for given in conditions.values() for value in given]
        rows = self._database.rows(
            f"{_SELECT} WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?",
            (*values, limit),
        )
        return [self._row(row) for row in rows]

    def reports(self, row: TransferRow) -> list[ProgressReport]:
        """Return the reports of a transfer, the oldest first."""
        return [
            ProgressReport(*found)
            for found in self._database.rows(
                "SELECT at_s, moved_gb FROM transfer_reports WHERE transfer = ? ORDER BY at_s",
                (row.number,),
            )
        ]

    # ---- parts -------------------------------------------------------------------------------

    def _row(self, found: Sequence[object]) -> TransferRow:
        row = TransferRow._make((*found, ProgressReport(0.0, 0.0)))
        since = None
        if row.state == "running" and row.reported_s is not None:
            since = self._database.row(
                "SELECT at_s, moved_gb FROM transfer_reports WHERE transfer = ? AND at_s <= ? "
                "ORDER BY at_s DESC LIMIT 1",
                (row.number, row.reported_s - RATE_OVER_S),
            )
        return row._replace(
            rate_since=ProgressReport(*since) if since else ProgressReport(row.began_s, 0.0)
        )

    def _keep(
        self,
        row: TransferRow,
        moved_gb: float,
        moved_via: Mapping[str, float],
        at_s: float,
        now_s: float,
    ) -> None:
        last_s = row.began_s if row.reported_s is None else row.reported_s
        if at_s < last_s:
            raise InputError(
                "at_s",
                f"is before the last report ({utc_text(last_s)})"
                if row.reported_s is not None
                else f"is before it began ({utc_text(last_s)})",
                value=at_s,
                remedy="Report in the order of time.",
            )
        if moved_gb > row.volume_gb * (1 + ROUNDING):
            raise InputError(
                "moved_gb",
                f"is more than the {volume_text(row.volume_gb)} of the transfer",
                value=moved_gb,
                remedy="Give what has arrived, not what was sent over all links.",
            )
        if moved_gb < row.moved_gb:
            raise _backwards("moved_gb", row.moved_gb, moved_gb)
        via = self._via(row, moved_gb, moved_via)
        database = self._database
        if at_s == row.reported_s:
            database.change(
                "UPDATE transfer_reports SET moved_gb = ? WHERE transfer = ? AND at_s = ?",
                (moved_gb, row.number, at_s),
            )
        else:
            database.change(
                "INSERT INTO transfer_reports (transfer, at_s, moved_gb) VALUES (?, ?, ?)",
                (row.number, at_s, moved_gb),
            )
            self._thin(row)
        only = next(iter(via)) if len(via) == 1 else row.via if not via else None
        database.change(
            "UPDATE transfers SET moved_gb = ?, moved_via = ?, via = ?, reported_s = ?, "
            "heard_s = ? WHERE number = ?",
            (moved_gb, json.dumps(via, sort_keys=True), only, at_s, now_s, row.number),
        )

    def _via(
        self, row: TransferRow, moved_gb: float, given: Mapping[str, float]
    ) -> dict[str, float]:
        known: dict[str, float] = json.loads(row.moved_via)
        for name, gb in given.items():
            if gb < known.get(name, 0.0):
                raise _backwards(f"via_gb {name}", known[name], gb)
        found = {**known, **given}
        if (total_gb := sum(found.values())) > moved_gb * (1 + ROUNDING):
            raise InputError(
                "via_gb",
                f"are together more than the {volume_text(moved_gb)} that have arrived",
                value=total_gb,
            )
        return found

    def _thin(self, row: TransferRow) -> None:
        counted = "SELECT count(*) FROM transfer_reports WHERE transfer = ?"
        if self._database.row(counted, (row.number,))[0] > MOST_REPORTS:
            times_s = [report.at_s for report in self.reports(row)]
            self._database.change_many(
                "DELETE FROM transfer_reports WHERE transfer = ? AND at_s = ?",
                [(row.number, at_s) for at_s in times_s[:-1:2]],
            )

    def _told(self, row: TransferRow) -> TransferRow:
        """Add an event, in the caller's transaction; it replaces the one of progress before."""
        detail = {
            "src": row.src,
            "dst": row.dst,
            "state": row.state,
            "moved_gb": row.moved_gb,
            "volume_gb": row.volume_gb,
        }
        # In this order, so that no id is used twice.
        number = Events(self._database).add(EVENT, row.id, detail)
        if row.event_id is not None:
            self._database.change("DELETE FROM events WHERE id = ?", (row.event_id,))
        replaced = None if row.reported_s is None or row.state != "running" else number
        self._database.change(
            "UPDATE transfers SET event_id = ? WHERE number = ?", (replaced, row.number)
        )
        return row._replace(event_id=replaced)


_ENDED = {"finished": "finished", "failed": "failed", "cancelled": "was cancelled"}


def _ended_text(row: TransferRow) -> str:
    return utc_text(row.heard_s if row.ended_s is None else row.ended_s)


def _time(at_s: float | None, now_s: float) -> float:
    if at_s is None:
        return now_s
    if at_s > now_s + CLOCK_SKEW_S:
        raise InputError(
            "at_s",
            f"is over {CLOCK_SKEW_S:g} s in the future",
            value=at_s,
            remedy="Set the clock, or leave the time out.",
        )
    return at_s


def _backwards(field: str, before_gb: float, gb: float) -> InputError:
    return InputError(
        field,
        f"is less than the {volume_text(before_gb)} that were reported before",
        value=gb,
        remedy="Give all that has arrived since the transfer began.",
    )
