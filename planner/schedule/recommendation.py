"""Many transfers with deadlines over shared VMs: which are admitted, and when each sends.

:func:`recommend_schedule` admits by priority (:mod:`planner.schedule.admission`), finds the least
egress fees of all that is admitted and then the earliest times at those fees
(:mod:`planner.schedule.slots.program`), sends sooner within slots what can be
(:mod:`planner.schedule.earlier`), and gives what is left to transfers without a deadline
(:mod:`planner.schedule.best_effort`). What is refused gets remedies
(:mod:`planner.schedule.remedies`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from itertools import groupby, pairwise

import numpy as np

from planner.model.answer import Cost, identified
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats
from planner.model.units import BITS_PER_BYTE
from planner.schedule.admission import Contest, admit
from planner.schedule.best_effort import Waiting, fill_what_is_left
from planner.schedule.earlier import sped_up
from planner.schedule.explanation import broken_promises, reason, tariffs_not_counted, warnings
from planner.schedule.plan import AdmissionClass, Period, Remedies, SchedulePlan, TransferSchedule
from planner.schedule.problem import Pending, ScheduleProblem, schedule_problem
from planner.schedule.progress import ScheduleProgress
from planner.schedule.remedies import remedies
from planner.schedule.request import ScheduleRequest
from planner.schedule.slots.program import ScheduleProgram
from planner.schedule.slots.slot_program import Route, route_of
from planner.schedule.storage import stored_volumes
from planner.schedule.tariffs import room_gbps
from planner.schedule.timed_transfer import TimedTransfer
from planner.schedule.usage import Sending, Usage
from planner.shared_vms.explanation import vm_warnings

FEES_ROOM = 1e-9


def recommend_schedule(
    request: ScheduleRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> SchedulePlan:
    """Return which transfers are admitted, and a schedule.

    Parameters
    ----------
    request : ScheduleRequest
        New transfers; what a schedule in progress admitted stays admitted as long as figures allow.
    network, prices
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
        if transfer.id in progress.ids:
            raise InputError(
                "transfers",
                "have an id that the schedule in progress has",
                value=transfer.id,
                remedy="Give the new transfer an id of its own.",
            )
    pending = [*progress.pending, *(Pending(t, t.volume_gb) for t in request.transfers)]
    unused: set[str] = set()
    schedule = _Schedule(request, pending, progress, now_s, network, prices, unused)
    while dearer := schedule.usage.dearer_tariffs() if schedule.usage else None:
        unused |= dearer
        bound_usd = schedule.bound_usd  # holds with what is no longer used
        schedule = _Schedule(request, pending, progress, now_s, network, prices, unused)
        schedule.bound_usd = min(schedule.bound_usd, bound_usd)
    return schedule.plan(network, notes)


class _Schedule:
    """Decides one schedule."""

    def __init__(
        self,
        request: ScheduleRequest,
        pending: list[Pending],
        progress: ScheduleProgress,
        now_s: float,
        network: Network,
        prices: Prices,
        unused: Collection[str],
    ) -> None:
        self.request, self.pending, self.progress, self.now_s = request, pending, progress, now_s
        self.found: ScheduleProblem | None = None
        self.timed = [n for n, item in enumerate(pending) if item.transfer.deadline_s is not None]
        self.untimed = [n for n, item in enumerate(pending) if item.transfer.deadline_s is None]
        self.admitted: set[int] = set()
        self.admission: list[AdmissionClass] = []
        self.remedies: dict[int, Remedies] = {}
        self.sending: list[Sending] = []
        self.bound_usd = 0.0
        self.usage: Usage | None = None
        if not pending:
            return
        self.found = schedule_problem(request, pending, now_s, network, prices, unused)
        self.program = ScheduleProgram(
            self.found.resources,
            self.found.problem.usd_per_gbit,
            self.found.cuts_s,
            self.found.commodities,
            self.found.tariffs,
            self.found.disks,
        )
        self._send_in_time()
        self._send_the_rest(prices)
        self.usage = self._usage(prices)
        of = self.found.problem
        self.bound_usd *= of.fees.least_part(of.usd_per_gbit, of.most_gbit)

    def _send_in_time(self) -> None:
        """Admit, explain what is refused, and schedule what is admitted."""
        assert self.found
        program, regions = self.program, self.found.problem.regions
        order = sorted(range(len(self.timed)), key=self._rank)
        admitted: set[int] = set()
        for (_, priority, unvalued), members in groupby(order, key=lambda n: self._rank(n)[:3]):
            worth = {n: 1.0 if unvalued else self._value_usd(n) for n in members}
            choice = admit(program, Contest(worth))
            admitted |= choice.admitted
            self.admission.append(
                AdmissionClass(
                    priority=-priority,
                    objective="number" if unvalued else "value",
                    transfers=len(worth),
                    admitted=len(choice.admitted),
                    reached=choice.reached,
                    bound=choice.bound,
                )
            )
        self.admitted = {self.timed[number] for number in admitted}
        refused = [number for number in order if number not in admitted]
        for number in refused[: self.request.explain]:
            self.remedies[self.timed[number]] = remedies(program, number, regions)
        if not admitted:
            return
        least_usd, self.bound_usd = program.least_fees()
        if self.found.disks:
            _, self.bound_usd = program.least_fees(with_storage=False)
        program.earliest(least_usd * (1 + FEES_ROOM))
        rates: dict[int, dict[int, dict[Route, float]]] = {}
        for flow in program.flows():
            of_slot = rates.setdefault(flow.slot, {})
            of_slot.setdefault(flow.commodity, {})[flow.route] = flow.rate_gbps
        for slot, of in sorted(rates.items()):
            self._send_in_slot(slot, of)

    def _value_usd(self, number: int) -> float:
        return self.pending[self.timed[number]].transfer.value_usd or 0.0

    def _rank(self, number: int) -> tuple[bool, int, bool, float, float, int]:
        """Return the sort key of a transfer with a deadline in the order of admission.

        Those that agree in the first three are decided together.
        """
        item = self.pending[self.timed[number]]
        transfer = item.transfer
        assert transfer.deadline_s is not None
        return (
            not item.known,
            -transfer.priority,
            not transfer.value_usd,
            -transfer.usd_per_gb,
            transfer.deadline_s,
            number,
        )

    def _send_in_slot(self, slot: int, rates: dict[int, dict[Route, float]]) -> None:
        assert self.found
        numbers = sorted(rates)
        loads = np.zeros((len(numbers), len(self.found.resources.rows)))
        for at, number in enumerate(numbers):
            for route, rate in rates[number].items():
                for row, load in self.program.along(route)[0].items():
                    loads[at, row] += load * rate
        start_s, stop_s = (float(cut) for cut in self.found.cuts_s[slot : slot + 2])
        length_s = self.program.lengths_s[slot]
        for begin_s, end_s, speeds in self._speeds(slot, numbers, rates, loads, length_s):
            # To the digit, or rounding would make two slots overlap.
            until_s = stop_s if end_s >= length_s else min(stop_s, start_s + end_s)
            for at, number in enumerate(numbers):
                if speeds[at] > 0:
                    at_once = {by: rate * float(speeds[at]) for by, rate in rates[number].items()}
                    self.sending.append(
                        Sending(
                            self.timed[number],
                            start_s + begin_s,
                            until_s,
                            self._ends(self.timed[number]),
                            at_once,
                        )
                    )

    def _speeds(
        self,
        slot: int,
        numbers: list[int],
        rates: dict[int, dict[Route, float]],
        loads: Floats,
        length_s: float,
    ) -> list[tuple[float, float, np.ndarray]]:
        """Return periods of a slot, with multiples of the rates of each transfer.

        What is delivered is sent early. What fills a disk would lie there for longer, and might
        exceed it: it keeps its rate, or is sent late where nothing else is.
        """
        assert self.found
        row_vms = self.found.resources.row_vms
        loads, row_vms = self._with_tariffs(slot, numbers, rates, loads, row_vms)
        delivers = [
            [self.program.commodities[number].delivers(route) for route in rates[number]]
            for number in numbers
        ]
        fills = np.array([not all(each) for each in delivers])
        late = not any(map(any, delivers))
        if fills.any() and not late:
            loads, row_vms = np.column_stack([loads, fills]), np.append(row_vms, fills.sum())
        periods = sped_up(loads, row_vms, length_s)
        if late:
            periods = [(length_s - end_s, length_s - begin_s, x) for begin_s, end_s, x in periods]
        return periods

    def _with_tariffs(
        self,
        slot: int,
        numbers: list[int],
        rates: dict[int, dict[Route, float]],
        loads: Floats,
        row_vms: Floats,
    ) -> tuple[Floats, Floats]:
        """Return loads and rows with those of links that would cost more if sent over faster."""
        bands = self.program.bands[slot]
        if not bands:
            return loads, row_vms
        columns, most = [], []
        for link, of in bands.items():
            column = np.zeros(len(numbers))
            for at, number in enumerate(numbers):
                for route, rate in rates[number].items():
                    if link in pairwise(route):
                        column[at] += rate
            room = room_gbps(of, float(column.sum()))
            if column.any() and np.isfinite(room):
                columns.append(column)
                most.append(room)
        return np.column_stack([loads, *columns]), np.concatenate([row_vms, most])

    def _usage(self, prices: Prices) -> Usage:
        assert self.found
        found = self.found
        return Usage(
            found.problem, found.resources, self.request, prices, self.sending, found.tariffs
        )

    def _send_the_rest(self, prices: Prices) -> None:
        """Give what is left to transfers without a deadline, each over its cheapest path."""
        if not self.untimed:
            return
        assert self.found
        usage = self._usage(prices)
        hops = {number: self._cheapest_hop(number) for number in self.untimed}
        of = self.found.problem.usd_per_gbit
        least_usd_per_gbit = self.found.tariffs.least_usd_per_gbit(of)
        waiting = []
        for number in self.untimed:
            item = self.pending[number]
            src, dst = self._ends(number)
            loads = self.program.along(route_of(src, hops[number], dst))[0]
            volume = item.left_gb * BITS_PER_BYTE
            self.bound_usd += volume * min(
                sum(float(least_usd_per_gbit[link]) for link in pairwise(route_of(src, hop, dst)))
                for hop in self._possible_hops(number)
            )
            start_s = self.found.starts_s[number]
            waiting.append(Waiting(volume, start_s, item.transfer.priority, loads))
        row_vms = self.found.resources.row_vms
        for share in fill_what_is_left(waiting, usage.cuts_s, row_vms - usage.loads, row_vms):
            number = self.untimed[share.number]
            src, dst = self._ends(number)
            rates = {route_of(src, hops[number], dst): share.rate_gbps}
            self.sending.append(Sending(number, share.start_s, share.end_s, (src, dst), rates))

    def _possible_hops(self, number: int) -> list[int]:
        assert self.found
        src, dst = self._ends(number)
        resources = self.found.resources
        hops = [dst] if resources.rate_gbps[src, dst] > 0 else []
        rate = resources.rate_gbps
        may = resources.may_relay & (rate[src] > 0) & (rate[:, dst] > 0)
        may[[src, dst]] = False
        return [*hops, *np.nonzero(may)[0].tolist()]

    def _cheapest_hop(self, number: int) -> int:
        src, dst = self._ends(number)

        def dearness(hop: int) -> tuple[float, bool, float]:
            loads, usd = self.program.along(route_of(src, hop, dst))
            return usd, hop != dst, max(loads.values())

        return min(self._possible_hops(number), key=dearness)

    def _ends(self, number: int) -> tuple[int, int]:
        assert self.found
        regions = self.found.problem.regions
        transfer = self.pending[number].transfer
        return regions.index(transfer.src), regions.index(transfer.dst)

    # ---- answer --------------------------------------------------------------------------

    def plan(self, network: Network, notes: tuple[str, ...]) -> SchedulePlan:
        periods = self.usage.periods(network) if self.usage else {}
        fees = self.usage.egress_usd() if self.usage else {}
        made = [
            self._answer(number, periods.get(number, ()), fees.get(number, 0.0))
            for number in range(len(self.pending))
        ]
        order = {transfer.id: at for at, transfer in enumerate(self.progress.order)}
        transfers = tuple(
            sorted([*self.progress.done, *made], key=lambda t: order.get(t.id, len(order)))
        )
        verdicts = [transfer.verdict for transfer in transfers]
        needed = self.usage.connections() if self.usage else {}
        vms = self.usage.most_vms() if self.usage else {}
        storage_usd = sum((stored.usd for t in made for stored in t.stored), 0.0)
        ends = {end for item in self.pending for end in (item.transfer.src, item.transfer.dst)}
        sent = [transfer for transfer in transfers if transfer.verdict != "refused"]
        plan = SchedulePlan(
            plan_id="",
            snapshot=network.snapshot,
            request=self.request.described(),
            reason=reason(transfers),
            now_s=self.now_s,
            end_s=max((transfer.end_s or 0.0 for transfer in sent), default=self.now_s),
            admitted=verdicts.count("admitted"),
            refused=verdicts.count("refused"),
            best_effort=verdicts.count("best effort"),
            volume_gb=sum((transfer.volume_gb for transfer in sent), 0.0),
            relayed_share=self.usage.relayed_share() if self.usage else 0.0,
            cost_usd=self.usage.cost(storage_usd) if self.usage else Cost.of(0.0, 0.0),
            bound_usd=self.bound_usd,
            value_usd=sum((t.value_usd or 0.0 for t in transfers if t.verdict == "admitted"), 0.0),
            transfers=transfers,
            vms=vms,
            busiest=self.usage.busiest() if self.usage else (),
            admission=tuple(self.admission),
            connections=needed,
            storage_usd=storage_usd,
            tariffs=self.usage.tariffs() if self.usage else (),
            warnings=notes
            + broken_promises(self._broken())
            + warnings(made, self.admission, self.request.explain)
            + self._late_tariffs()
            + vm_warnings(
                self.request,
                network,
                vms,
                ends,
                needed,
                connections=self.request.connections,
                relays=self.request.relays == "any",
            ),
        )
        return identified(plan)

    def _late_tariffs(self) -> tuple[str, ...]:
        if self.usage is None or not (self.usage.cuts_s > self.usage.tariffs_until_s).any():
            return ()
        return (tariffs_not_counted(self.usage.tariffs_until_s),)

    def _broken(self) -> list[str]:
        """Return the ids of transfers that were admitted before, and no longer are."""
        return [
            item.transfer.id
            for number, item in enumerate(self.pending)
            if item.known and number in self.timed and number not in self.admitted
        ]

    def _answer(
        self, number: int, periods: tuple[Period, ...], egress_usd: float
    ) -> TransferSchedule:
        item = self.pending[number]
        transfer = item.transfer
        stored = stored_volumes(
            periods,
            (transfer.src, transfer.dst),
            item.stored_gb,
            self.now_s,
            {region: self.request.disk_price(region) for region in self.request.disk_gb},
        )
        periods = (*self.progress.past.get(transfer.id, ()), *periods)
        timed = transfer.deadline_s is not None
        refused = timed and number not in self.admitted
        end_s = None if refused else max(period.end_s for period in periods)
        slack_s = None
        if end_s is not None and transfer.deadline_s is not None:
            slack_s = max(0.0, transfer.deadline_s - end_s)
        return TransferSchedule(
            **TimedTransfer.figures_of(transfer),
            verdict="refused" if refused else "admitted" if timed else "best effort",
            end_s=end_s,
            slack_s=slack_s,
            egress_usd=egress_usd,
            periods=periods,
            remedies=self._remedies(number, item),
            stored=stored,
        )

    def _remedies(self, number: int, item: Pending) -> Remedies | None:
        found = self.remedies.get(number)
        if found is None:
            return None
        # Of a transfer that has begun, what is sent already counts.
        sent_gb = item.transfer.volume_gb - item.left_gb
        return replace(found, volume_gb=found.volume_gb + sent_gb) if sent_gb else found
