"""Decides a schedule: which transfers are admitted, and when each sends.

:class:`Scheduler` admits by priority (:mod:`planner.schedule.admission`), finds the least egress
fees of all that is admitted and then the earliest times at those fees
(:mod:`planner.schedule.solver`), sends sooner within slots what can be, and gives what is left to
transfers without a deadline. What is refused gets remedies. Room is shared out alike over time
(progressive filling; Bertsekas and Gallager, *Data Networks*).

Within a slot, what must be sent by its end is sent earlier: the program of a schedule knows a
slot's volumes only. Each transfer of the slot starts at the constant rate that would end with the
slot, all are sped up together as far as their rows allow, and as one ends, the rest are sped up
again.

Transfers without a deadline get what promised ones leave, early first. At every moment the higher
priority goes first; equals share alike. Each keeps to its cheapest path, and is never held back
while there is room on that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats
from planner.model.units import BITS_PER_BYTE
from planner.schedule.admission import Contest, admit, remedies
from planner.schedule.plan import AdmissionClass, Remedies
from planner.schedule.problem import PendingTransfer, ScheduleProblem, schedule_problem
from planner.schedule.program import Route, route_of
from planner.schedule.request import ScheduleRequest
from planner.schedule.solver import ScheduleProgram
from planner.schedule.tariffs import room_gbps
from planner.schedule.usage import RoutedRates, Usage
from planner.solvers.max_min_fill import FULL, filled

DONE = 1e-9


def worthwhile(room: Floats, row_vms: Floats) -> Floats:
    """Return the free capacity of rows; 0 where it is so small that sending would never end."""
    return np.where(room <= FULL * row_vms, 0.0, room)


def sped_up(
    loads: Floats, row_vms: Floats, length_s: float
) -> list[tuple[float, float, np.ndarray]]:
    """Return periods of a slot: start and end from the slot's start, and the speed of each.

    Parameters
    ----------
    loads : array, shape (transfers, rows)
        VMs of each row that the constant rates over the whole slot take; together they fit.
    row_vms : array, length rows
    length_s : float

    Returns
    -------
    list
        Speeds are multiples of the constant rates; their products with lengths add up to the slot.
    """
    left = np.ones(len(loads))  # of each one's volume
    now = 0.0
    periods: list[tuple[float, float, np.ndarray]] = []
    while (left > 0).any():
        needed = left * length_s / (length_s - now)  # never more than before, so it fits
        speed = _sped_up(loads * needed[:, None], row_vms, left > 0) * needed
        sending = left > 0
        ends = np.full(len(left), np.inf)
        ends[sending] = left[sending] * length_s / speed[sending]
        first = float(ends.min())
        until = min(length_s, now + first)
        done = sending & (ends <= first * (1 + DONE))
        if until >= length_s * (1 - DONE) or not (sending & ~done).any():
            until = min(until, length_s) if not (sending & ~done).any() else length_s
            # Send the remaining volume exactly.
            last = np.where(sending, left * length_s / (until - now), 0.0)
            periods.append((now, until, last))
            return periods
        periods.append((now, until, np.where(sending, speed, 0.0)))
        left = np.where(done | ~sending, 0.0, left - speed * (until - now) / length_s)
        now = until
    return periods


def _sped_up(loads: Floats, row_vms: Floats, growing: np.ndarray) -> Floats:
    """Return the factors by which transfers can be sped up together."""
    room = worthwhile(row_vms - loads.sum(axis=0), row_vms)
    return filled(np.ones(len(loads)), _sparse(loads), growing, room)[0]


@dataclass(frozen=True)
class BestEffortTransfer:
    """A transfer without a deadline.

    Attributes
    ----------
    loads : mapping
        Row to the VMs that a Gbit/s takes.
    """

    volume_gbit: float
    start_s: float
    priority: int
    loads: Mapping[int, float]


def fill_what_is_left(
    waiting: Sequence[BestEffortTransfer], cuts_s: Floats, left_vms: Floats, row_vms: Floats
) -> list[tuple[int, float, float, float]]:
    """Return the transfer, start, end and rate of each sending period, until all have ended.

    Parameters
    ----------
    waiting : sequence of BestEffortTransfer
        With at least one row each.
    cuts_s : array, length slots + 1
    left_vms : array, shape (slots, rows)
        Capacity that admitted transfers leave in each slot.
    row_vms : array, length rows
        Capacity before the first slot and after the last.
    """
    matrix = np.zeros((len(waiting), len(row_vms)))
    for number, transfer in enumerate(waiting):
        for row, load in transfer.loads.items():
            matrix[number, row] = load
    volumes = np.array([transfer.volume_gbit for transfer in waiting], dtype=float)
    left = volumes.copy()
    starts = np.array([transfer.start_s for transfer in waiting], dtype=float)
    priorities = np.array([transfer.priority for transfer in waiting])
    changes = np.unique(np.concatenate([cuts_s, starts]))
    found: list[tuple[int, float, float, float]] = []
    now = float(starts.min(initial=np.inf))
    while (left > 0).any():
        active = (left > 0) & (starts <= now)
        later = changes[changes > now]
        until = float(later[0]) if len(later) else np.inf
        if not active.any():
            now = until
            continue
        slot = int(np.searchsorted(cuts_s, now, side="right")) - 1
        within = 0 <= slot < len(left_vms)
        rates = _rates(matrix, active, priorities, left_vms[slot] if within else row_vms, row_vms)
        ends_s = np.full(len(left), np.inf)
        sending = active & (rates > 0)
        ends_s[sending] = now + left[sending] / rates[sending]
        until = min(until, float(ends_s.min()))
        found += [
            (number, now, until, float(rates[number])) for number in np.nonzero(sending)[0].tolist()
        ]
        left = np.where(ends_s <= until, 0.0, left - rates * (until - now))
        left[left < DONE * volumes] = 0.0
        now = until
    return found


def _rates(
    matrix: Floats, active: np.ndarray, priorities: np.ndarray, room: Floats, row_vms: Floats
) -> Floats:
    """Return rates by priority, and by progressive filling within one."""
    rates = np.zeros(len(matrix))
    room = worthwhile(room, row_vms)
    for priority in sorted(set(priorities[active].tolist()), reverse=True):
        rates, room = filled(rates, _sparse(matrix), active & (priorities == priority), room)
    return rates


def _sparse(loads: Floats) -> tuple[np.ndarray, np.ndarray, Floats]:
    number, row = np.nonzero(loads)
    return number, row, loads[number, row]


FEES_ROOM = 1e-9


class Scheduler:
    """Decides one schedule.

    Attributes
    ----------
    pending : list of PendingTransfer
    timed, untimed : list of int
        Numbers of those with and without a deadline.
    admitted : set of int
    remedies : dict
        By number of a refused transfer.
    usage : Usage | None
        None if nothing is to be sent.
    bound_usd : float
        No schedule of the admitted transfers has lower egress fees.
    """

    def __init__(
        self,
        request: ScheduleRequest,
        pending: list[PendingTransfer],
        now_s: float,
        network: Network,
        prices: Prices,
        unused: Collection[str],
    ) -> None:
        self.request, self.pending = request, pending
        self.found: ScheduleProblem  # if anything is pending
        self.timed = [n for n, item in enumerate(pending) if item.transfer.deadline_s is not None]
        self.untimed = [n for n, item in enumerate(pending) if item.transfer.deadline_s is None]
        self.admitted: set[int] = set()
        self.admission: list[AdmissionClass] = []
        self.remedies: dict[int, Remedies] = {}
        self.sending: list[RoutedRates] = []
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
        """Admit transfers, find remedies for the refused, and schedule the admitted."""
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
        numbers = sorted(rates)
        loads = np.zeros((len(numbers), len(self.found.resources.rows)))
        for at, number in enumerate(numbers):
            for route, rate in rates[number].items():
                for row, load in self.program.along(route)[0].items():
                    loads[at, row] += load * rate
        start_s, stop_s = (float(cut) for cut in self.found.cuts_s[slot : slot + 2])
        length_s = self.program.lengths_s[slot]
        for begin_s, end_s, speeds in self._speeds(slot, numbers, rates, loads, length_s):
            # Exactly, or rounding would make two slots overlap.
            until_s = stop_s if end_s >= length_s else min(stop_s, start_s + end_s)
            for at, number in enumerate(numbers):
                if speeds[at] > 0:
                    at_once = {by: rate * float(speeds[at]) for by, rate in rates[number].items()}
                    self.sending.append(
                        RoutedRates(
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

        Deliveries are sent early. Sent early, volume that goes to a disk would stay there longer
        and might exceed it, so it keeps its rate, or is sent late where nothing else is sent.
        """
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
        """Add rows for links that would cost more if transfers used them faster."""
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
        found = self.found
        return Usage(
            found.problem, found.resources, self.request, prices, self.sending, found.tariffs
        )

    def _send_the_rest(self, prices: Prices) -> None:
        """Give the remaining capacity to transfers without a deadline, on their cheapest paths."""
        if not self.untimed:
            return
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
            waiting.append(BestEffortTransfer(volume, start_s, item.transfer.priority, loads))
        row_vms = self.found.resources.row_vms
        left_vms = row_vms - usage.loads
        for at, from_s, to_s, rate_gbps in fill_what_is_left(
            waiting, usage.cuts_s, left_vms, row_vms
        ):
            number = self.untimed[at]
            src, dst = self._ends(number)
            rates = {route_of(src, hops[number], dst): rate_gbps}
            self.sending.append(RoutedRates(number, from_s, to_s, (src, dst), rates))

    def _possible_hops(self, number: int) -> list[int]:
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
        regions = self.found.problem.regions
        transfer = self.pending[number].transfer
        return regions.index(transfer.src), regions.index(transfer.dst)
