"""Many transfers with deadlines over shared VMs: which are admitted, and when each sends.

:mod:`planner.schedule.solve` decides; here, the answer is put together and explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.model.answer import Cost, identified
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.units import usd_text
from planner.schedule.plan import AdmissionClass, Period, SchedulePlan, TransferSchedule
from planner.schedule.problem import PendingTransfer, ScheduleProgress, vms_of_largest
from planner.schedule.request import ScheduleRequest, TimedTransfer
from planner.schedule.solve import Scheduler
from planner.schedule.usage import stored_volumes
from planner.shared_vms.explanation import vm_warnings

NAMES_SHOWN = 5


def recommend_schedule(
    request: ScheduleRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> SchedulePlan:
    """Return a schedule of the transfers that can be admitted.

    Parameters
    ----------
    request : ScheduleRequest
        New transfers; those admitted earlier stay admitted as long as the estimates allow.
    notes : tuple of str
        What was understood from the request's names; goes first among the warnings.

    Raises
    ------
    InputError
        If a transfer is in the existing schedule already.
    DataError
        If nothing is known of any permitted path of a transfer.
    """
    now_s = request.now_s or 0.0
    progress = ScheduleProgress.of(request.existing, now_s)
    for transfer in request.transfers:
        if transfer.id in progress.order:
            problem = "have an id that the schedule in progress has"
            remedy = "Give the new transfer an id of its own."
            raise InputError("transfers", problem, value=transfer.id, remedy=remedy)
    pending = [*progress.pending, *(PendingTransfer(t, t.volume_gb) for t in request.transfers)]

    def scheduled(asked: ScheduleRequest) -> Scheduler:
        unused: set[str] = set()
        schedule = Scheduler(asked, pending, now_s, network, prices, unused)
        while dearer := schedule.usage.dearer_tariffs() if schedule.usage else None:
            unused |= dearer
            bound_usd = schedule.bound_usd  # still a bound without the unused tariffs
            schedule = Scheduler(asked, pending, now_s, network, prices, unused)
            schedule.bound_usd = min(schedule.bound_usd, bound_usd)
        return schedule

    vms = vms_of_largest(request, pending, now_s, network, prices)
    schedule = scheduled(replace(request, vms_in=vms) if vms else request)
    if vms and set(schedule.timed) - schedule.admitted:
        both = schedule, scheduled(request)
        schedule = max(both, key=lambda one: [of.reached for of in one.admission])
    schedule.request = request
    return _ScheduleAnswer(schedule, progress, now_s).plan(network, notes)


class _ScheduleAnswer:
    """Puts together the answer of one schedule."""

    def __init__(self, schedule: Scheduler, progress: ScheduleProgress, now_s: float) -> None:
        self.schedule, self.progress, self.now_s = schedule, progress, now_s
        self.request = schedule.request

    def plan(self, network: Network, notes: tuple[str, ...]) -> SchedulePlan:
        usage = self.schedule.usage
        periods = usage.periods(network) if usage else {}
        fees = usage.egress_usd() if usage else {}
        pending = self.schedule.pending
        made = [
            self._answer(number, periods.get(number, ()), fees.get(number, 0.0))
            for number in range(len(pending))
        ]
        order = {name: at for at, name in enumerate(self.progress.order)}
        found = sorted([*self.progress.done, *made], key=lambda t: order.get(t.id, len(order)))
        transfers, verdicts = tuple(found), [transfer.verdict for transfer in found]
        needed = usage.connections() if usage else {}
        vms = usage.most_vms() if usage else {}
        storage_usd = sum((stored.usd for t in made for stored in t.stored), 0.0)
        ends = {end for item in pending for end in (item.transfer.src, item.transfer.dst)}
        starts_s = (self.request.starts_s(network.sites[end]) for end in ends)
        late = {*self.schedule.timed} - self.schedule.admitted
        broken = (
            f"{pending[number].transfer.id} was admitted before, but current estimates no longer "
            "allow it"
            for number in sorted(late)
            if pending[number].known
        )
        sent = [transfer for transfer in transfers if transfer.verdict != "refused"]
        plan = SchedulePlan(
            plan_id="",
            snapshot=network.snapshot,
            request=self.request.described(),
            reason=_reason(transfers),
            fees=usage.fee_lines() if usage else (),
            now_s=self.now_s,
            end_s=max((transfer.end_s or 0.0 for transfer in sent), default=self.now_s),
            admitted=verdicts.count("admitted"),
            refused=verdicts.count("refused"),
            best_effort=verdicts.count("best effort"),
            volume_gb=sum((transfer.volume_gb for transfer in sent), 0.0),
            relayed_share=usage.relayed_share() if usage else 0.0,
            cost_usd=usage.cost(storage_usd) if usage else Cost.of(0.0, 0.0),
            bound_usd=self.schedule.bound_usd,
            value_usd=sum((t.value_usd or 0.0 for t in transfers if t.verdict == "admitted"), 0.0),
            transfers=transfers,
            vms=vms,
            busiest=usage.busiest() if usage else (),
            admission=tuple(self.schedule.admission),
            connections=needed,
            storage_usd=storage_usd,
            tariffs=usage.tariffs() if usage else (),
            vm_start_s=max(starts_s, default=0.0),
            warnings=(
                *notes,
                *broken,
                *_warnings(made, self.schedule.admission, self.request.explain),
                *vm_warnings(self.request, network, vms, ends, needed),
            ),
        )
        return identified(plan)

    def _answer(
        self, number: int, periods: tuple[Period, ...], egress_usd: float
    ) -> TransferSchedule:
        item = self.schedule.pending[number]
        transfer = item.transfer
        ends, prices = (transfer.src, transfer.dst), self.request.disk_price
        usd_per_gb_month = {region: prices(region) for region in self.request.disk_gb}
        stored = stored_volumes(periods, ends, item.stored_gb, self.now_s, usd_per_gb_month)
        periods = (*self.progress.past.get(transfer.id, ()), *periods)
        timed = transfer.deadline_s is not None
        refused = timed and number not in self.schedule.admitted
        end_s = None if refused else max(period.end_s for period in periods)
        slack_s = None
        if end_s is not None and transfer.deadline_s is not None:
            slack_s = max(0.0, transfer.deadline_s - end_s)
        remedies = self.schedule.remedies.get(number)
        if remedies and (sent_gb := transfer.volume_gb - item.left_gb):  # which counts
            remedies = replace(remedies, volume_gb=remedies.volume_gb + sent_gb)
        return TransferSchedule(
            **TimedTransfer.figures_of(transfer),
            verdict="refused" if refused else "admitted" if timed else "best effort",
            end_s=end_s,
            slack_s=slack_s,
            egress_usd=egress_usd,
            periods=periods,
            remedies=remedies,
            stored=stored,
        )


def _reason(transfers: Sequence[TransferSchedule]) -> str:
    """Explain in a sentence why transfers are admitted or refused."""
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


def _warnings(
    made: Sequence[TransferSchedule], admission: Sequence[AdmissionClass], explained: int
) -> tuple[str, ...]:
    """Warn of transfers not worth their fees, unfinished searches and remedies left out.

    Parameters
    ----------
    explained : int
        The most refused transfers that get remedies.
    """
    found = [
        f"{transfer.id} is worth {usd_text(transfer.value_usd)}, less than its egress fees of "
        f"{usd_text(transfer.egress_usd)}"
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
    return usd_text(amount) if of.objective == "value" else f"{amount:.0f} transfers"
