"""A schedule in progress: what has been sent, and what is still to be sent."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.model.errors import InputError
from planner.model.units import BITS_PER_BYTE
from planner.schedule.plan import Period, SchedulePlan, TransferSchedule
from planner.schedule.problem import Pending
from planner.schedule.storage import NOTHING_STORED
from planner.schedule.timed_transfer import TimedTransfer

# Of a transfer's volume: less is the rounding of a sum.
NOTHING_LEFT = 1e-9


@dataclass(frozen=True)
class ScheduleProgress:
    """Where a schedule stands.

    Attributes
    ----------
    order : tuple of TransferSchedule
        All that the schedule had, as it had them.
    past : dict
        Id to the periods before now.
    pending : tuple of Pending
    done : tuple of TransferSchedule
        Those that have ended, or were given up after a part was sent.
    """

    order: tuple[TransferSchedule, ...]
    past: dict[str, tuple[Period, ...]]
    pending: tuple[Pending, ...]
    done: tuple[TransferSchedule, ...]

    @property
    def ids(self) -> frozenset[str]:
        """Ids that new transfers can't have; one that was refused may be asked for again."""
        return frozenset(transfer.id for transfer in self.order)

    @classmethod
    def of(cls, existing: SchedulePlan | None, now_s: float) -> ScheduleProgress:
        """Return where a schedule stands at a time, if it was kept to.

        Raises
        ------
        InputError
            If the time is before the one that the schedule was planned from.
        """
        if existing is None:
            return cls((), {}, (), ())
        if now_s < existing.now_s:
            raise InputError(
                "now",
                f"is before the schedule in progress, made at {existing.now_s:g} s",
                value=now_s,
            )
        past, pending, done, order = {}, [], [], []
        for transfer in existing.transfers:
            before = tuple(
                replace(period, end_s=min(period.end_s, now_s))
                for period in transfer.periods
                if period.start_s < now_s
            )
            if transfer.verdict == "refused" and not before:
                continue
            order.append(transfer)
            past[transfer.id] = before
            moved_gbit = {transfer.dst: 0.0}
            for period in before:
                for region, gbit in period.moved_gbit(transfer.src, transfer.dst).items():
                    moved_gbit[region] = moved_gbit.get(region, 0.0) + gbit
            left_gb = transfer.volume_gb - moved_gbit.pop(transfer.dst) / BITS_PER_BYTE
            if transfer.verdict == "refused" or left_gb <= NOTHING_LEFT * transfer.volume_gb:
                done.append(replace(transfer, periods=before, egress_usd=0.0, stored=()))
            else:
                asked = TimedTransfer(**TimedTransfer.figures_of(transfer))
                stored_gb = {
                    region: gbit / BITS_PER_BYTE
                    for region, gbit in moved_gbit.items()
                    if gbit > NOTHING_STORED * transfer.volume_gb
                }
                pending.append(Pending(asked, left_gb, known=True, stored_gb=stored_gb))
        return cls(tuple(order), past, tuple(pending), tuple(done))
