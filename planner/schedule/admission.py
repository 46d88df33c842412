"""Decides which transfers can be promised their deadlines.

A transfer may be admitted if it can be moved in its window together with all that were admitted
before, whose routes and times may change but whose deadlines hold (the guarantee of Amoeba: Zhang
et al., *Guaranteeing Deadlines for Inter-Datacenter Transfers*, EuroSys 2015). There, and in most
systems since, transfers are decided one after the other. Here those of one class are decided
together, for the greatest total worth: branch and bound over the linear program, best bound first,
going down each branch until it is settled.
:func:`remedies` finds changes that would admit a refused one without breaking a promised deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from math import ceil, floor, fsum, gcd, inf

import numpy as np

from planner.fields.shared import MOST_VMS
from planner.model.units import BITS_PER_BYTE
from planner.schedule.plan import MoreVms, Remedies
from planner.schedule.solver import WHOLE, ScheduleProgram

# A search stops after this much work, in solver iterations times rows, plus the overhead of each
# node: about five seconds of a core. Ten transfers with their own windows take a tenth at most.
MOST_WORK = 200_000_000
WORK_OF_NODE = 100_000
PRECISION = 1e-6


@dataclass(frozen=True)
class Contest:
    """Transfers that are decided together.

    Attributes
    ----------
    worth : dict
        Above 0, by transfer.
    """

    worth: Mapping[int, float]

    @cached_property
    def unit(self) -> float:
        """The common divisor of all worths: their equal value, or whole cents; 0 if none."""
        values = list(self.worth.values())
        if len(set(values)) == 1:
            return values[0]
        cents = [round(100 * value) for value in values]
        if any(
            abs(100 * value - cent) > PRECISION for value, cent in zip(values, cents, strict=True)
        ):
            return 0.0
        return gcd(*cents) / 100

    def of(self, numbers: Iterable[int]) -> float:
        """Return the total worth of some transfers."""
        return fsum(self.worth[number] for number in numbers)

    def attainable(self, bound: float) -> float:
        """Return the most that whole transfers can be worth under a bound."""
        bound = max(0.0, bound) * (1.0 + PRECISION)
        if self.unit <= bound * PRECISION:
            return bound
        return floor(bound / self.unit) * self.unit


@dataclass(frozen=True)
class Admission:
    """The transfers of a contest that are admitted.

    Attributes
    ----------
    reached : float
        Their total worth.
    bound : float
        No choice is worth more, proven.
    """

    admitted: frozenset[int]
    reached: float
    bound: float


def admit(program: ScheduleProgram, contest: Contest) -> Admission:
    """Return the transfers admitted, and put them `in` the program.

    Parameters
    ----------
    program : ScheduleProgram
        With all transfers of the contest out.
    """
    search = _AdmissionSearch(program, contest)
    best = search.run()
    program.put(contest.worth, "out")
    program.put(best, "in")
    admitted = set(best)
    for number in contest.worth:
        if number in admitted or contest.of({*admitted, number}) > search.bound:
            continue
        program.put([number], "wanted")
        if program.fits(number):
            admitted.add(number)
        program.put([number], "in" if number in admitted else "out")
    reached = contest.of(admitted)
    return Admission(frozenset(admitted), reached, max(reached, search.bound))


class _AdmissionSearch:
    """Branch and bound.

    Attributes
    ----------
    bound : float
        No choice is worth more; proven at any time.
    """

    def __init__(self, program: ScheduleProgram, contest: Contest) -> None:
        self._program, self._contest = program, contest
        self._best: frozenset[int] = frozenset()
        self._reached = 0.0
        self._work = 0
        self._open: list[tuple[float, int, dict[int, bool]]] = []
        self._count = count()
        self.bound = inf

    def run(self) -> frozenset[int]:
        """Return the best choice found."""
        self._leave(inf, {})
        while self._open and self._work < MOST_WORK:
            bound, _, decided = heappop(self._open)
            if self._is_beaten(-bound):
                break
            self._go_down(-bound, decided)
        bounds = [-bound for bound, _, _ in self._open if not self._is_beaten(-bound)]
        self.bound = self._contest.attainable(max(bounds)) if bounds else self._reached
        return self._best

    def _leave(self, bound: float, decided: dict[int, bool]) -> None:
        """Keep a node for later, behind those with higher bounds."""
        heappush(self._open, (-bound, next(self._count), decided))

    def _go_down(self, bound: float, decided: dict[int, bool]) -> None:
        """Settle a node, then those below it that admit one more undecided transfer each."""
        while not self._is_beaten(bound):
            if self._work >= MOST_WORK:
                self._leave(bound, decided)
                return
            relaxed = self._relaxed(decided)
            if relaxed is None:
                return
            bound = min(bound, relaxed[0])
            self._take(relaxed[1])
            parts = {
                number: self._contest.worth[number] * min(share, 1.0 - share)
                for number, share in relaxed[1].items()
                if 1.0 - WHOLE < share < WHOLE and number not in decided
            }
            if not parts or self._is_beaten(bound):
                return
            branch = max(parts, key=parts.__getitem__)
            self._leave(bound, {**decided, branch: False})
            decided = {**decided, branch: True}

    def _relaxed(self, decided: Mapping[int, bool]) -> tuple[float, dict[int, float]] | None:
        for state, taken in (("in", True), ("out", False), ("wanted", None)):
            numbers = [n for n in self._contest.worth if decided.get(n) is taken]
            self._program.put(numbers, state)
        before = self._program.work
        relaxed = self._program.most_worth(self._contest.worth)
        self._work += self._program.work - before + WORK_OF_NODE
        return relaxed

    def _take(self, shares: Mapping[int, float]) -> None:
        """Note a choice if it is better than the best."""
        whole = [number for number, share in shares.items() if share >= WHOLE]
        worth = self._contest.of(whole)
        if worth > self._reached:
            self._best, self._reached = frozenset(whole), worth

    def _is_beaten(self, bound: float) -> bool:
        """Return whether no choice within a bound is worth more than the best one."""
        if bound == inf:
            return False
        return self._contest.attainable(bound) <= self._reached * (1.0 + 2 * PRECISION)


# A solver's rounding does not justify another second or another VM.
ROUNDING = 1e-6


def remedies(program: ScheduleProgram, number: int, regions: tuple[str, ...]) -> Remedies:
    """Return changes that would each admit a refused transfer while admitted ones stay admitted.

    Parameters
    ----------
    program : ScheduleProgram
        Its last slot is long enough for any transfer alone, and no window reaches into it.
    number : int
    regions : tuple of str
        Names of sites.
    """
    commodity = program.commodities[number]
    program.put([number], "wanted")
    share = program.most_moved(number) if commodity.last >= commodity.first else 0.0
    more_vms = _more_vms(program, number, regions)
    deadline_s = _earliest_end_s(program, number)
    program.let_send_until(number, commodity.last)
    program.put([number], "out")
    moved_gb = share * commodity.volume_gbit / BITS_PER_BYTE
    return Remedies(moved_gb * (1 - ROUNDING) if share > ROUNDING else 0.0, deadline_s, more_vms)


def _earliest_end_s(program: ScheduleProgram, number: int) -> float:
    """Return the earliest deadline, in whole seconds, that the whole transfer can meet."""
    commodity = program.commodities[number]
    too_early, late = max(commodity.last, commodity.first - 1), len(program.cuts_s) - 2
    program.put([number], "wanted")
    while late - too_early > 1:
        middle = (late + too_early) // 2
        program.let_send_until(number, middle)
        if program.fits(number):
            late = program.last_slot(number)
        else:
            too_early = middle
    program.let_send_until(number, late)
    program.fits(number)  # adds the relays that it needs
    program.put([number], "in")
    part = program.least_part(number, late)
    start_s, end_s = program.cuts_s[late], program.cuts_s[late + 1]
    least_s = start_s + part * (end_s - start_s)
    window_s = least_s - program.cuts_s[commodity.first]
    return float(ceil(least_s - window_s * (1.0 - WHOLE) / 2))


def _more_vms(program: ScheduleProgram, number: int, regions: tuple[str, ...]) -> MoreVms | None:
    """Return a smallest sufficient set of VMs, as far as rounding up finds it."""
    commodity = program.commodities[number]
    if commodity.last < commodity.first:
        return None
    program.put([number], "in")
    found = program.fewest_vms({})
    if found is None:
        return None
    fractions, at_least = found
    # Site by site, the smallest fraction first: can it do with the whole VMs below?
    fixed: dict[int, float] = {}
    for site in np.argsort(fractions, kind="stable").tolist():
        up = ceil(fractions[site] - ROUNDING)
        if up <= ROUNDING + fractions[site] or up == 0:
            continue
        fewer = program.fewest_vms({**fixed, site: float(up - 1)})
        if fewer and _whole(fewer[0]) < _whole(fractions):
            fixed[site] = float(up - 1)
            fractions = fewer[0]
    if fractions.max() > MOST_VMS:
        return None
    vms = {
        regions[site]: ceil(more - ROUNDING)
        for site, more in enumerate(fractions.tolist())
        if more > ROUNDING
    }
    return MoreVms(vms, max(1, ceil(at_least - ROUNDING)))


def _whole(fractions: np.ndarray) -> int:
    return int(np.ceil(fractions - ROUNDING).sum())
