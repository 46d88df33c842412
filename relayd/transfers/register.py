"""The register of transfers on a store: what a service does for its clients."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from time import time as clock
from typing import Any

from planner.exploring.outcome import DIRECT, Outcome
from relayd.questions.answering import NetworkView
from relayd.store.database import Database
from relayd.store.transfers import Transfers, WantedState, WantedTransfers
from relayd.transfers.expected import expected_of
from relayd.transfers.requests import (
    TransferEndRequest,
    TransferProgressRequest,
    TransferStartRequest,
)
from relayd.transfers.tracked import (
    TrackedTransfer,
    TransferDetails,
    details,
    expected_text,
    outcome_of,
    tracked,
)

MOST_LISTED = 1000


class TransferRegister:
    """Keeps transfers; methods, answers and errors are those of a client of a service.

    Parameters
    ----------
    database : Database
    names : NetworkView
        By which regions are called.
    who : str
        Who reports.
    """

    def __init__(self, database: Database, names: NetworkView, who: str) -> None:
        self._transfers, self._names, self._who = Transfers(database), names, who

    def begin_transfer(self, src: str, dst: str, **fields: Any) -> TrackedTransfer:
        """Say that a transfer begins; see :class:`.TransferStartRequest`."""
        found, _ = self.begin(TransferStartRequest(src, dst, **fields))
        return found

    def report_transfer(self, id: str, moved_gb: float | str, **fields: Any) -> TrackedTransfer:  # noqa: A002
        """Say how far a transfer is; see :class:`.TransferProgressRequest`."""
        return self.report(id, TransferProgressRequest(moved_gb, **fields))

    def end_transfer(self, id: str, state: str = "finished", **fields: Any) -> TrackedTransfer:  # noqa: A002
        """Say how a transfer ended; see :class:`.TransferEndRequest`."""
        return self.end(id, TransferEndRequest(state, **fields))

    def begin(self, request: TransferStartRequest) -> tuple[TrackedTransfer, bool]:
        """Keep a transfer that begins; return it, and whether it is new.

        Raises
        ------
        InputError
            If a region is unknown, or another transfer has its id.
        """
        source, target, _ = self._names.resolve_pair(request.src, request.dst)
        request = replace(request, src=source, dst=target)
        expected = expected_of(request.document)
        relays = {path.via for path in expected.paths} if expected else set()
        plan = request.document
        row, is_new = self._transfers.begin(
            request.id,
            source,
            target,
            volume_gb=request.volume_gb,
            who=self._who,
            digest=request.digest,
            label=request.label or "",
            at_s=request.at_s,
            deadline_s=request.deadline_s,
            silent_after_s=request.silent_after_s,
            plan=None if plan is None else json.dumps(plan),
            expected=expected_text(expected),
            via=None if len(relays) > 1 else next(iter(relays), DIRECT),
        )
        return tracked(row, clock()), is_new

    def report(self, name: str, request: TransferProgressRequest) -> TrackedTransfer:
        """Keep how far a transfer is.

        Raises
        ------
        InputError
            See :meth:`relayd.store.transfers.Transfers.report`.
        """
        via = self._via(request.via_gb)
        row = self._transfers.report(name, request.moved_gb, via, request.at_s)
        return tracked(row, clock())

    def end(self, name: str, request: TransferEndRequest) -> TrackedTransfer:
        """Keep how a transfer ended.

        Raises
        ------
        InputError
            See :meth:`relayd.store.transfers.Transfers.end`.
        """
        row = self._transfers.end(
            name,
            request.state,  # type: ignore[arg-type]
            moved_gb=request.moved_gb,
            moved_via=self._via(request.via_gb),
            problem=request.problem or "",
            at_s=request.at_s,
        )
        return tracked(row, clock())

    def transfer(self, id: str) -> TransferDetails:  # noqa: A002
        """Return a transfer with its reports.

        Raises
        ------
        InputError
            If there is none with this id.
        """
        row = self._transfers.require(id)
        return details(row, self._transfers.reports(row), clock())

    def transfers(
        self, state: WantedState | None = None, src: str | None = None, dst: str | None = None
    ) -> list[TrackedTransfer]:
        """Return transfers, the newest first, at most a thousand."""
        wanted = WantedTransfers(state, self._region(src, "src"), self._region(dst, "dst"))
        now_s = clock()
        return [tracked(row, now_s) for row in self._transfers.page(wanted, limit=MOST_LISTED)]

    def _region(self, name: str | None, field: str) -> str | None:
        return None if name is None else self._names.resolve(name, field).region_id

    def _via(self, given: Mapping[str, float]) -> dict[str, float]:
        return {
            via if via == DIRECT else self._names.resolve(via, "via_gb").region_id: gb
            for via, gb in given.items()
        }


def outcomes_of(database: Database, src: str, dst: str) -> tuple[Outcome, ...]:
    """Return what the newest thousand transfers had that finished between two regions, by ids."""
    now_s = clock()
    rows = Transfers(database).page(WantedTransfers("finished", src, dst), limit=MOST_LISTED)
    found = (outcome_of(tracked(row, now_s)) for row in rows)
    return tuple(outcome for outcome in found if outcome is not None)
