"""Many transfers with deadlines over shared VMs: which are admitted, and when each sends.

:class:`Scheduler` admits by priority (:mod:`planner.schedule.admission`), finds the least egress
fees of all that is admitted and then the earliest times at those fees
(:mod:`planner.schedule.program`), sends sooner within slots what can be, and gives what is left to
transfers without a deadline. What is refused gets remedies.

Within a slot, what must be sent by its end is sent earlier: the program of a schedule knows a
slot's volumes only. Each transfer is sped up as far as the fullest of its rows would let all be.

Transfers without a deadline get what promised ones leave, early first. At every moment the higher
priority goes first; equals share alike (progressive filling; Bertsekas and Gallager, *Data
Networks*). Each keeps to its cheapest path, and is never held back while there is room on that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np

from planner.model.answer import Cost, identified
from planner.model.errors import InputError, no_path
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.units import usd_text
from planner.schedule.admission import admit, remedies
from planner.schedule.plan import (
    AdmissionClass,
    AdmissionObjective,
    Remedies,
    SchedulePlan,
    ScheduleVerdict,
    TransferSchedule,
)
from planner.schedule.problem import (
    PendingTransfer,
    Route,
    as_shuffle,
    is_connected,
    progress_of,
    schedule_problem,
    with_vms_of_largest,
)
from planner.schedule.program import ScheduleProgram
from planner.schedule.request import ScheduleRequest, TimedTransfer
from planner.schedule.usage import RoutedRates, Usage, stored_volumes
from planner.shared_vms.explanation import vm_warnings
from planner.shuffle.problem import ShuffleProblem
from planner.solvers.max_min_fill import FULL, filled

DONE = 1e-9


class Scheduler:
    """Decides one schedule of the pending transfers, which go by their number.

    Attributes
    ----------
    admitted : set of int
    remedies : dict
        Of the first refused transfers, by their number.
    bound_usd : float
        No schedule of the admitted transfers has lower egress fees.
    """

    def __init__(
        self,
        request: ScheduleRequest,
        problem: ShuffleProblem,
        pending: list[PendingTransfer],
        now_s: float,
        prices: Prices,
        unused: Collection[str],
    ) -> None:
        self.found = schedule_problem(request, problem, pending, now_s, unused)
        self.program, self.commodities = ScheduleProgram(self.found), self.found.commodities
        self.timed, self.explain = self.found.timed, request.explain
        self.admitted: set[int] = set()
        self.admission: list[AdmissionClass] = []
        self.remedies: dict[int, Remedies] = {}
        self.sending: list[RoutedRates] = []
        self.bound_usd = 0.0
        self._send_in_time()
        self.usage = Usage(self.found, request, prices, self.sending)
        if len(self.timed) < len(pending):
            self._send_the_rest(self.usage)
            self.usage = Usage(self.found, request, prices, self.sending)
        of = self.found.problem
        self.bound_usd *= of.fees.least_part(of.usd_per_gbit, of.most_gbit)

    def _send_in_time(self) -> None:
        """Admit transfers, find remedies for the refused, and schedule the admitted."""
        program, regions = self.program, self.found.problem.regions
        order = sorted(self.timed, key=self._rank)
        for (_, priority, unvalued), members in groupby(order, key=lambda n: self._rank(n)[:3]):
            values = {n: self.commodities[n].transfer.value_usd or 1.0 for n in members}
            admitted, *worth = admit(program, values)
            self.admitted |= admitted
            objective: AdmissionObjective = "number" if unvalued else "value"
            counts = len(values), len(admitted)
            self.admission.append(AdmissionClass(-priority, objective, *counts, *worth))
        refused = [number for number in order if number not in self.admitted]
        for number in refused[: self.explain]:
            self.remedies[number] = remedies(program, number, regions)
        if not self.admitted:
            return
        least_usd, self.bound_usd = program.least_fees()
        if self.found.disks:
            _, self.bound_usd = program.least_fees(with_storage=False)
        for slot, rates in program.earliest(least_usd).items():
            self._send_in_slot(slot, rates)

    def _rank(self, number: int) -> tuple[bool, int, bool, float, float, int]:
        """Return the sort key of a transfer with a deadline in the order of admission.

        Those that agree in the first three are decided together.
        """
        known, transfer = self.commodities[number].item.known, self.commodities[number].transfer
        together = not known, -transfer.priority, not transfer.value_usd
        return *together, -transfer.usd_per_gb, transfer.deadline_s or 0.0, number

    def _send_in_slot(self, slot: int, rates: dict[int, dict[Route, float]]) -> None:
        """Send a slot's volumes, each transfer as fast as all rows on its paths allow at least.

        Deliveries are sent early. Sent early, volume that goes to a disk would stay there longer
        and might exceed it, so it keeps its rate, or is sent late where nothing else is sent. No
        link is used faster than its cheapest tariff allows, beyond which prices rise.
        """
        program, row_vms = self.program, self.found.resources.row_vms
        taken: Counter[Hashable] = Counter()  # VMs by row, and Gbit/s by link
        loads: dict[int, Counter[Hashable]] = {}
        delivers: dict[int, list[bool]] = {}
        for number, of in rates.items():
            here = loads[number] = Counter[Hashable]()
            for route, rate in of.items():
                here.update({row: load * rate for row, load in program.along(route)[0].items()})
                here.update(dict.fromkeys(pairwise(route), rate))
            taken.update(here)
            delivers[number] = [self.commodities[number].delivers(route) for route in of]
        most = {row: float(row_vms[row]) for row in taken if isinstance(row, int)}
        most |= {link: of[0].rate_gbps for link, of in program.bands[slot].items()}
        start_s, stop_s = self.found.cuts_s[slot : slot + 2].tolist()
        late = not any(any(of) for of in delivers.values())
        for number in sorted(rates):
            speed = min(most[row] / taken[row] for row in loads[number] if row in most)
            if speed <= 1 + FULL or not (late or all(delivers[number])):
                speed = 1.0
            begin_s, end_s = start_s, start_s + (stop_s - start_s) / speed
            if speed == 1.0:
                end_s = stop_s  # exactly, or rounding would part two slots, or make them overlap
            elif late:
                begin_s, end_s = stop_s - (end_s - start_s), stop_s
            faster = {route: rate * speed for route, rate in rates[number].items()}
            self.sending.append(RoutedRates(number, begin_s, end_s, faster))

    def _send_the_rest(self, usage: Usage) -> None:
        """Give the remaining capacity to transfers without a deadline, on their cheapest paths."""
        found, resources = self.found, self.found.resources
        least_usd_per_gbit = found.tariffs.least_usd_per_gbit(found.problem.usd_per_gbit)

        def dearness(route: Route) -> tuple[float, int, float]:
            loads, usd = self.program.along(route)
            return usd, len(route), max(loads.values())

        def least_usd(route: Route) -> float:
            return sum(float(least_usd_per_gbit[link]) for link in pairwise(route))

        numbers = [n for n, of in enumerate(self.commodities) if of.transfer.deadline_s is None]
        rest, routes = [self.commodities[number] for number in numbers], list[Route]()
        for of in rest:
            possible = replace(of, hops=resources.hops(of.src, of.dst)).routes()
            routes.append(min(possible, key=dearness))
            self.bound_usd += of.volume_gbit * min(map(least_usd, possible))
        loads = [self.program.along(route)[0] for route in routes]
        level = np.repeat(np.arange(len(rest)), [len(of) for of in loads])
        row, load = np.array([item for of in loads for item in of.items()]).T
        sparse = level, row.astype(np.int64), load
        volumes, starts = np.array([(of.volume_gbit, of.start_s) for of in rest]).T
        priorities = np.array([of.transfer.priority for of in rest])
        changes = np.unique(np.concatenate([usage.cuts_s, starts]))
        left, now = volumes.copy(), float(starts.min())
        while (left > 0).any():
            active = (left > 0) & (starts <= now)
            later = changes[changes > now]
            until = float(later[0]) if len(later) else np.inf
            slot = int(np.searchsorted(usage.cuts_s, now, side="right")) - 1
            room = resources.row_vms - (usage.loads[slot] if 0 <= slot < len(usage.loads) else 0.0)
            # So little room that sending would never end is none.
            room = np.where(room <= FULL * resources.row_vms, 0.0, room)
            rates = np.zeros(len(rest))
            for priority in sorted(set(priorities[active].tolist()), reverse=True):
                rates, room = filled(rates, sparse, active & (priorities == priority), room)
            sending = active & (rates > 0)
            ends_s = np.full(len(left), np.inf)
            ends_s[sending] = now + left[sending] / rates[sending]
            until = min(until, float(ends_s.min()))
            for at in np.nonzero(sending)[0].tolist():
                rate = {routes[at]: float(rates[at])}
                self.sending.append(RoutedRates(numbers[at], now, until, rate))
            left = np.where(ends_s <= until, 0.0, left - rates * (until - now))
            left[left < DONE * volumes] = 0.0
            now = until

    def answers(
        self, request: ScheduleRequest, now_s: float, network: Network
    ) -> list[TransferSchedule]:
        """Return the answer about each pending transfer."""
        fees, all_periods, found = self.usage.egress_usd(), self.usage.periods(network), []
        usd_per_gb_month = {region: request.disk_price(region) for region in request.disk_gb}
        for number, of in enumerate(self.commodities):
            transfer, item, periods = of.transfer, of.item, all_periods.get(number, ())
            ends, deadline_s = (transfer.src, transfer.dst), transfer.deadline_s
            stored = stored_volumes(periods, ends, item.stored_gb, now_s, usd_per_gb_month)
            periods = item.past + periods
            verdict: ScheduleVerdict = "best effort"
            if deadline_s is not None:
                verdict = "admitted" if number in self.admitted else "refused"
            end_s = None if verdict == "refused" else max(period.end_s for period in periods)
            slack_s = None
            if end_s is not None and deadline_s is not None:
                slack_s = max(0.0, deadline_s - end_s)
            would_do = self.remedies.get(number)
            if would_do and (sent_gb := transfer.volume_gb - item.left_gb):  # which counts
                would_do = replace(would_do, volume_gb=would_do.volume_gb + sent_gb)
            found.append(
                TransferSchedule(
                    **TimedTransfer.figures_of(transfer),
                    verdict=verdict,
                    end_s=end_s,
                    slack_s=slack_s,
                    egress_usd=fees.get(number, 0.0),
                    periods=periods,
                    remedies=would_do,
                    stored=stored,
                )
            )
        return found


NAMES_SHOWN = 5


def recommend_schedule(
    request: ScheduleRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> SchedulePlan:
    """Return a schedule of the transfers that can be admitted.

    Raises InputError if a transfer is in the existing schedule already; DataError if nothing is
    known of any permitted path of any transfer.

    Parameters
    ----------
    request : ScheduleRequest
        New transfers; those admitted earlier stay admitted as long as the estimates allow.
    notes : tuple of str
        What was understood from the request's names; goes first among the warnings.
    """
    now_s = request.now_s or 0.0
    begun = progress_of(request.existing, now_s)
    known = {of.id if isinstance(of, TransferSchedule) else of.transfer.id for of in begun}
    for transfer in request.transfers:
        if transfer.id in known:
            wrong = "have an id that the schedule in progress has"
            remedy = "Give the new transfer an id of its own."
            raise InputError("transfers", wrong, value=transfer.id, remedy=remedy)
    every = [*begun, *(PendingTransfer(t, t.volume_gb) for t in request.transfers)]
    pending = [item for item in every if isinstance(item, PendingTransfer)]

    def scheduled(problem: ShuffleProblem) -> Scheduler:
        unused: set[str] = set()
        schedule = Scheduler(request, problem, pending, now_s, prices, unused)
        while dearer := schedule.usage.dearer_tariffs():
            unused |= dearer
            bound_usd = schedule.bound_usd  # still a bound without the unused tariffs
            schedule = Scheduler(request, problem, pending, now_s, prices, unused)
            schedule.bound_usd = min(schedule.bound_usd, bound_usd)
        return schedule

    schedule, stranded = None, set[str]()
    if pending:
        problem = as_shuffle(request, pending, network, prices)
        asked = [item.transfer for item in pending]
        stranded = {of.id for of in asked if not is_connected(problem, request, of)}
        pending = [item for item in pending if item.transfer.id not in stranded]
        if not pending:
            raise no_path(asked[0].src, asked[0].dst)
        if stranded:
            problem = as_shuffle(request, pending, network, prices)
        if request.vms is not None:
            schedule = scheduled(problem)
        else:
            schedule = scheduled(with_vms_of_largest(request, problem, pending, now_s))
            if set(schedule.timed) - schedule.admitted:
                both = schedule, scheduled(problem)
                schedule = max(both, key=lambda one: [of.reached for of in one.admission])
    made = schedule.answers(request, now_s, network) if schedule else []
    answers = iter(made)
    transfers = tuple(
        of
        if isinstance(of, TransferSchedule)
        else _refused(of)
        if of.transfer.id in stranded
        else next(answers)
        for of in every
    )
    usage, admission = (schedule.usage, schedule.admission) if schedule else (None, [])
    vms, needed = (usage.most_vms(), usage.connections()) if usage else ({}, {})
    storage_usd = sum((stored.usd for t in made for stored in t.stored), 0.0)
    ends = {end for t in made for end in (t.src, t.dst)}
    verdicts = [transfer.verdict for transfer in transfers]
    sent = [transfer for transfer in transfers if transfer.verdict != "refused"]
    plan = SchedulePlan(
        plan_id="",
        snapshot=network.snapshot,
        request=request.described(),
        reason=_reason(transfers, stranded),
        fees=usage.fee_lines() if usage else (),
        now_s=now_s,
        end_s=max((transfer.end_s or 0.0 for transfer in sent), default=now_s),
        admitted=verdicts.count("admitted"),
        refused=verdicts.count("refused"),
        best_effort=verdicts.count("best effort"),
        volume_gb=sum((transfer.volume_gb for transfer in sent), 0.0),
        relayed_share=usage.relayed_share() if usage else 0.0,
        cost_usd=usage.cost(storage_usd) if usage else Cost.of(0.0, 0.0),
        bound_usd=schedule.bound_usd if schedule else 0.0,
        value_usd=sum((t.value_usd or 0.0 for t in transfers if t.verdict == "admitted"), 0.0),
        transfers=transfers,
        vms=vms,
        busiest=usage.busiest() if usage else (),
        admission=tuple(admission),
        connections=needed,
        storage_usd=storage_usd,
        tariffs=usage.tariffs() if usage else (),
        vm_start_s=max((request.starts_s(network.sites[end]) for end in ends), default=0.0),
        warnings=(
            *notes,
            *(_no_path_text(of) for of in transfers if of.id in stranded),
            *_warnings(made, pending, admission, request.explain),
            *vm_warnings(request, network, vms, ends, needed),
        ),
    )
    return identified(plan)


def _refused(item: PendingTransfer) -> TransferSchedule:
    """Return the answer about a transfer between whose ends nothing is known."""
    return TransferSchedule(
        **TimedTransfer.figures_of(item.transfer),
        verdict="refused",
        end_s=None,
        slack_s=None,
        egress_usd=0.0,
        periods=item.past,
        remedies=None,
    )


def _no_path_text(of: TransferSchedule) -> str:
    return (
        f"{of.id} is refused: at these rates, nothing is known to lead from {of.src} to {of.dst}. "
        "Measure or import one of its links, or plan with the expected rates"
    )


def _reason(transfers: Sequence[TransferSchedule], stranded: Collection[str]) -> str:
    """Explain in a sentence why transfers are admitted or refused."""
    transfers = [transfer for transfer in transfers if transfer.id not in stranded]
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
    made: Sequence[TransferSchedule],
    pending: Sequence[PendingTransfer],
    admission: Sequence[AdmissionClass],
    explained: int,
) -> tuple[str, ...]:
    """Warn of broken promises, fees above a worth, unfinished searches and remedies left out.

    Parameters
    ----------
    pending : sequence of PendingTransfer
        That these answers are about.
    explained : int
        The most refused transfers that get remedies.
    """
    found = [
        f"{transfer.id} was admitted before, but current estimates no longer allow it"
        for transfer, item in zip(made, pending, strict=True)
        if item.known and transfer.verdict == "refused"
    ]
    found += [
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
