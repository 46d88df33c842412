"""What a schedule says in words: why, and what to beware of."""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.units import S_PER_H
from planner.schedule.plan import AdmissionClass, TransferSchedule
from planner.schedule.tariffs import MOST_CHANGES

NAMES_SHOWN = 5


def reason(transfers: Sequence[TransferSchedule]) -> str:
    """Return why transfers are admitted or refused."""
    timed = [transfer for transfer in transfers if transfer.deadline_s is not None]
    refused = [transfer.id for transfer in timed if transfer.verdict == "refused"]
    if not timed:
        return "No transfer has a deadline: each is sent as early as possible."
    if not refused:
        return "Every deadline can be met." if len(timed) > 1 else "The deadline can be met."
    names = ", ".join(refused[:NAMES_SHOWN]) + (", ..." if len(refused) > NAMES_SHOWN else "")
    return (
        f"{len(timed) - len(refused)} of {len(timed)} deadlines can be met together. No schedule "
        f"on these VMs also meets that of {names} without breaking one of equal or higher priority."
    )


def broken_promises(ids: Sequence[str]) -> tuple[str, ...]:
    """Return a warning for each transfer that a schedule in progress had admitted."""
    return tuple(f"{i} was admitted before, but current estimates no longer allow it" for i in ids)


def tariffs_not_counted(from_s: float) -> str:
    """Return a warning that transfers without a deadline go on after tariffs are counted."""
    return (
        f"tariffs change {MOST_CHANGES} times by hour {from_s / S_PER_H:,.0f}, and are counted no "
        "longer: what is sent without a deadline after it has the links' fees. Tariffs that change "
        "less often are counted for longer"
    )


def warnings(
    made: Sequence[TransferSchedule], admission: Sequence[AdmissionClass], explained: int
) -> tuple[str, ...]:
    """Return warnings of transfers not worth their fees, of open searches and of what is left out.

    Parameters
    ----------
    explained : int
        For how many of the refused there are remedies at most.
    """
    found = [
        f"{transfer.id} is worth {transfer.value_usd:.2f} USD, less than its egress fees of "
        f"{transfer.egress_usd:.2f} USD"
        for transfer in made
        if transfer.value_usd is not None and transfer.egress_usd > transfer.value_usd
    ]
    found += [
        f"admitted of priority {of.priority}: {_extent(of, of.reached)}. The search for more "
        f"was cut short; more than {_extent(of, of.bound)} is not possible"
        for of in admission
        if of.bound > of.reached
    ]
    unexplained = sum(t.verdict == "refused" and t.remedies is None for t in made)
    if unexplained:
        found.append(
            f"remedies are given for the first {explained} refused transfers; "
            f"{unexplained} more are refused"
        )
    return tuple(found)


def _extent(of: AdmissionClass, amount: float) -> str:
    return f"{amount:,.2f} USD" if of.objective == "value" else f"{amount:.0f} transfers"
