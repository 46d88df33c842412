"""Transfers of this program: begun with what they hold, reported meanwhile, and ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any, Self, TypeAlias, TypedDict, Unpack

from planner.fields.kinds import MOST_NAME
from planner.model.answer import Recommendation
from planner.model.errors import InputError, RelaydError
from planner.model.units import volume_text
from relayd.transfers.expected import SAME_VOLUME, expected_of
from relayd.transfers.requests import TransferProgressRequest, TransferStartRequest
from relayd.transfers.tracked import TrackedTransfer

LOG = logging.getLogger(__name__)
REPORT_EVERY_S = 10.0
"""Or a third of the time after which it is silent, where that is shorter."""

Tell: TypeAlias = Callable[[Callable[[Any], Any]], Awaitable[TrackedTransfer]]
"""Calls a function with what has ``begin_transfer``, ``report_transfer`` and ``end_transfer``."""


class TransferOptions(TypedDict, total=False):
    """Fields of :class:`.TransferStartRequest` besides those that a plan has."""

    id: str | None
    label: str | None
    deadline_s: float | str | None
    silent_after_s: float | str
    no_hold: bool


class ReportedTransfer:
    """A transfer that this program carries out: ``async with wan.transfer(plan) as transfer:``.

    While the block runs, it is reported in the background, so that its hold stays. It ends with the
    block: as failed by an exception, as cancelled by one that no ``except Exception`` catches
    (``KeyboardInterrupt``, ``asyncio.CancelledError``), and as failed where :meth:`moved` said less
    than the volume; else as finished. What goes wrong in reporting never stops the block: see
    ``problem``.

    Parameters
    ----------
    tell : Tell
        The register, here or at a service.
    plan : Recommendation or mapping
        A plan as it was answered, or its document; of a schedule, its transfer that `id` names.
    **options
        Of :class:`TransferOptions`.

    Attributes
    ----------
    id : str
        Known in the block. An `id` that is given and under way already is gone on with.
    rate_gbps : float | None
        The rate that it may use: what the plan expects.
    problem : RelaydError | None
        Why the last report failed; None if it did not.

    Raises
    ------
    InputError
        If the plan does not say what it moves, or an option is wrong; on entering, if the id is of
        a transfer that has ended, or the plan is too old or takes more than there is.
    InfeasibleError
        On entering, if others leave too little; ``starts_at_s`` says from when they do not.
    """

    def __init__(
        self,
        tell: Tell,
        plan: Recommendation | Mapping[str, Any],
        **options: Unpack[TransferOptions],
    ) -> None:
        request = TransferStartRequest(plan=plan, **options)
        self._tell, self._fields = tell, request.to_json()
        self._volume_gb = request.volume_gb
        self._every_s = min(REPORT_EVERY_S, request.silent_after_s / 3)
        expected = expected_of(request.document)
        self.id, self._said, self._has_said = request.id or "", (0.0, 0.0), False
        self.rate_gbps = expected and expected.throughput_gbps
        self.problem: RelaydError | None = None

    @property
    def moved_gb(self) -> float:
        """The volume that has arrived, as far as was said."""
        return self._said[0]

    async def begin(self) -> None:
        """Begin it, and report it from now on; raises what the class says."""
        found = await self._tell(lambda at: at.begin_transfer(**self._fields))
        if found.reported_s is not None:  # begun before: refused if it has ended
            known = found
            found = await self._tell(lambda at: at.report_transfer(known.id, known.moved_gb))
        # Times are the register's, whose clock may differ from ours.
        self._clock_s = found.last_s - monotonic()
        self.id, self._said = found.id, (found.moved_gb, found.last_s)
        self._reports = asyncio.create_task(self._report())

    async def end(self, error: BaseException | None = None) -> None:
        """End it, by the exception that left the block or without."""
        self._reports.cancel()
        ended: dict[str, Any] = {}
        if error is not None:
            state = "failed" if isinstance(error, Exception) else "cancelled"
            ended = {"state": state, "problem": _told(error)}
        elif self._has_said and self.moved_gb < self._volume_gb * (1 - SAME_VOLUME):
            whole, moved = volume_text(self._volume_gb), volume_text(self.moved_gb)
            ended = {"state": "failed", "problem": f"its program left it at {moved} of {whole}"}
        if self._has_said:
            ended["moved_gb"] = self.moved_gb
        at_s = self._clock_s + monotonic()
        await self._try(lambda at: at.end_transfer(self.id, at_s=at_s, **ended))

    def moved(self, gb: float | str) -> None:
        """Say what has arrived since it began, in GB; the next report tells it.

        It costs some microseconds, and any thread may say it: a smaller volume than before changes
        nothing.

        Raises
        ------
        InputError
            If it is more than the volume.
        """
        moved_gb = TransferProgressRequest(gb).moved_gb
        if moved_gb > self._volume_gb * (1 + SAME_VOLUME):
            problem = f"is more than the {volume_text(self._volume_gb)} of the transfer"
            raise InputError("moved_gb", problem, value=gb, remedy="Give GB (10^9 bytes).")
        if moved_gb >= self.moved_gb:
            at_s = self._clock_s + monotonic()
            self._said, self._has_said = (min(moved_gb, self._volume_gb), at_s), True

    async def _report(self) -> None:
        """Say again what was said last, as of then: so nothing is claimed, and the hold stays."""

        def again(at: Any) -> Any:
            moved_gb, at_s = self._said
            return at.report_transfer(self.id, moved_gb, at_s=at_s)

        while True:
            await asyncio.sleep(self._every_s)
            await self._try(again)

    async def _try(self, call: Callable[[Any], Any]) -> None:
        try:
            await self._tell(call)
        except RelaydError as problem:
            if self.problem is None:
                LOG.warning("transfer %s is not reported: %s", self.id, problem)
            self.problem = problem
        else:
            self.problem = None

    async def __aenter__(self) -> Self:
        """Begin it."""
        await self.begin()
        return self

    async def __aexit__(self, _: object, error: BaseException | None, __: object) -> None:
        """End it."""
        await self.end(error)


def _told(error: BaseException) -> str:
    """Return the text of an exception as stores can keep it."""
    text = f"{type(error).__name__}: {error}".rstrip(": ").replace("\0", " ")
    return text.encode(errors="replace").decode()[:MOST_NAME]
