"""Decides which transfers can be promised their deadlines.

A transfer may be admitted if it can be moved in its window together with all that were admitted
before, whose routes and times may change but whose deadlines hold (the guarantee of Amoeba: Zhang
et al., *Guaranteeing Deadlines for Inter-Datacenter Transfers*, EuroSys 2015). There, and in most
systems since, one is decided after the other. Here those of one class are decided together, so that
what they are worth in total is the greatest: branch and bound over the linear program, best bound
first, going down each branch until it is settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from math import floor, fsum, gcd, inf

from planner.schedule.solver import WHOLE, Relaxation, ScheduleProgram

# Iterations of the solver times rows, and what a node takes besides, after which a search stops:
# about five seconds of a core. Ten transfers with windows of their own take a tenth at most.
MOST_WORK = 200_000_000
WORK_OF_NODE = 100_000
PRECISION = 1e-6
# Of equal choices, the one is found first that prefers earlier transfers: by this part of a unit.
PREFERENCE = 0.25


@dataclass(frozen=True)
class Contest:
    """Transfers that are decided together.

    Attributes
    ----------
    worth : dict
        Above 0, by transfer; earlier ones are preferred among equals.
    """

    worth: Mapping[int, float]

    @cached_property
    def unit(self) -> float:
        """What all worths are multiples of: the same for all, or cents; 0 if there is none."""
        values = list(self.worth.values())
        if len(set(values)) == 1:
            return values[0]
        cents = [round(100 * value) for value in values]
        if any(
            abs(100 * value - cent) > PRECISION for value, cent in zip(values, cents, strict=True)
        ):
            return 0.0
        return gcd(*cents) / 100

    @cached_property
    def preferred(self) -> dict[int, float]:
        """The worths, those of earlier ones more by next to nothing: less than a unit in all."""
        many = len(self.worth)
        step = PREFERENCE * self.unit / many**2
        return {
            number: worth + step * (many - at)
            for at, (number, worth) in enumerate(self.worth.items())
        }

    def of(self, numbers: Iterable[int]) -> float:
        """Return what some of them are worth."""
        return fsum(self.worth[number] for number in numbers)

    def attainable(self, bound: float) -> float:
        """Return the most that whole transfers can be worth under a bound."""
        bound = max(0.0, bound) * (1.0 + PRECISION)
        if self.unit <= bound * PRECISION:
            return bound
        return floor(bound / self.unit) * self.unit

    def beaten_at(self, reached: float) -> float:
        """Return a bound under which nothing is worth more than what is reached."""
        if self.unit <= reached * PRECISION:
            return reached
        return (reached + self.unit) * (1.0 - 2 * PRECISION)


@dataclass(frozen=True)
class Admission:
    """Who is admitted of a contest.

    Attributes
    ----------
    reached : float
        What they are worth.
    bound : float
        No choice is worth more, proven.
    """

    admitted: frozenset[int]
    reached: float
    bound: float


def admit(program: ScheduleProgram, contest: Contest) -> Admission:
    """Return who is admitted, in a program where they are then `in` beside those that were.

    Parameters
    ----------
    program : ScheduleProgram
        With all of the contest out.
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
        """Return the best choice that is found."""
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
        """Settle a node, and below it those in which what is undecided is admitted."""
        while not self._is_beaten(bound):
            if self._work >= MOST_WORK:
                self._leave(bound, decided)
                return
            relaxed = self._relaxed(decided)
            if relaxed is None:
                return
            bound = min(bound, relaxed.bound)
            self._take(relaxed.shares)
            decided = {**self._settled(relaxed, bound), **decided}
            parts = {
                number: self._contest.worth[number] * min(share, 1.0 - share)
                for number, share in relaxed.shares.items()
                if 1.0 - WHOLE < share < WHOLE and number not in decided
            }
            if not parts or self._is_beaten(bound):
                return
            branch = max(parts, key=parts.__getitem__)
            self._leave(bound, {**decided, branch: False})
            decided = {**decided, branch: True}

    def _relaxed(self, decided: Mapping[int, bool]) -> Relaxation | None:
        for state, taken in (("in", True), ("out", False), ("wanted", None)):
            numbers = [n for n in self._contest.worth if decided.get(n) is taken]
            self._program.put(numbers, state)
        beaten, before = self._contest.beaten_at(self._reached), self._program.work
        relaxed = self._program.most_worth(self._contest.preferred, beaten)
        self._work += self._program.work - before + WORK_OF_NODE
        return relaxed

    def _take(self, shares: Mapping[int, float]) -> None:
        """Note a choice if it is better than the best."""
        whole = [number for number, share in shares.items() if share >= WHOLE]
        worth = self._contest.of(whole)
        if worth > self._reached:
            self._best, self._reached = frozenset(whole), worth

    def _settled(self, relaxed: Relaxation, bound: float) -> dict[int, bool]:
        """Return how better choices below a node decide, by reduced costs."""
        return {
            number: gain > 0
            for number, gain in relaxed.gains.items()
            if self._is_beaten(bound - abs(gain))
        }

    def _is_beaten(self, bound: float) -> bool:
        """Whether nothing under a bound is worth more than the best choice."""
        if bound == inf:
            return False
        return self._contest.attainable(bound) <= self._reached * (1.0 + 2 * PRECISION)
