"""A small dual simplex for linear programs of a few rows whose variables all have bounds.

The transfer problem has three to six rows and about twenty columns, and branch and bound solves
a handful of such programs for each plan. A general solver spends a hundred times longer on
building the model than on solving it; a dense tableau in plain Python is exact here and fast.
(Bounded-variable dual simplex: Chvatal, *Linear Programming*, 1983, chapters 8 and 10.)

Why it is so: docs/decisions/02-own-solvers.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

TOLERANCE = 1e-9
MAX_PIVOTS = 500
CYCLING_FROM = 100
"""Pivots after which variables are taken by their index, which can't cycle (Bland, 1977)."""
# Costs are counted in units of the least that matters, so that the tolerance means the same for
# a megabyte and for an exabyte; but not finer than rounding errors of the greatest allow.
COST_RANGE = 1e-3


class BoxedSimplex:
    """Minimise ``cost . x`` subject to ``rows . x = rhs`` and ``lower <= x <= upper``.

    The last columns must be the identity (one slack for each row): they are the first basis.
    Every bound must be finite. That makes any basis dual feasible once each variable outside it
    is moved to the bound that its reduced cost asks for, so that :meth:`solve` can start from
    wherever the last solve ended, after bounds or costs have changed.

    Parameters
    ----------
    rows : sequence of m lists of n floats
    rhs : sequence of m floats
    cost, lower, upper : sequences of n floats
    """

    def __init__(
        self,
        rows: Sequence[list[float]],
        rhs: Sequence[float],
        cost: Sequence[float],
        lower: Sequence[float],
        upper: Sequence[float],
    ) -> None:
        self._rows = list(rows)
        self._rhs = list(rhs)
        self.lower = list(lower)
        self.upper = list(upper)
        first_slack = len(cost) - len(rhs)
        self._basis = list(range(first_slack, len(cost)))
        # Values of the variables outside the basis; 0 for those inside.
        self._outside = list(lower)
        for j in self._basis:
            self._outside[j] = 0.0
        self._price(list(cost))

    def _price(self, objective: list[float]) -> None:
        """Take an objective: work out the reduced costs of the basis."""
        self._objective = objective
        sizes = [abs(c) for c in objective if c]
        self._unit = max(min(sizes), COST_RANGE * max(sizes)) if sizes else 1.0
        self._cost = [c / self._unit for c in objective]
        for row, j in zip(self._rows, self._basis, strict=True):
            if price := self._cost[j]:  # reduced costs in the basis are 0 by definition
                self._cost = [c - price * a for c, a in zip(self._cost, row, strict=True)]

    @property
    def width(self) -> int:
        """Number of variables, slacks included."""
        return len(self._objective)

    def copy(self) -> BoxedSimplex:
        """Return an independent copy, for the other branch of a search."""
        twin: BoxedSimplex = object.__new__(BoxedSimplex)
        twin.__dict__.update(self.__dict__)
        # Rows are replaced, and never changed in place.
        twin._rows, twin._rhs = self._rows.copy(), self._rhs.copy()
        twin._basis, twin._outside = self._basis.copy(), self._outside.copy()
        twin.lower, twin.upper = self.lower.copy(), self.upper.copy()
        return twin

    def add_row(self, row: Sequence[float], rhs: float, slack: float) -> None:
        """Add a row ``row . x <= rhs``, to solve again from where the last solve ended.

        Parameters
        ----------
        row : sequence of n floats
        rhs : float
        slack : float
            Greatest difference of both sides.
        """
        added = [*row, 1.0]
        self._rows = [[*other, 0.0] for other in self._rows]
        for i, j in enumerate(self._basis):
            if factor := added[j]:
                added = [a - factor * b for a, b in zip(added, self._rows[i], strict=True)]
                rhs -= factor * self._rhs[i]
        self._rows.append(added)
        self._rhs.append(rhs)
        self._basis.append(len(row))
        self._objective = [*self._objective, 0.0]
        self._cost = [*self._cost, 0.0]
        self._outside.append(0.0)
        self.lower.append(0.0)
        self.upper.append(slack)

    def change(self, cost: Sequence[float], lower: Sequence[float], upper: Sequence[float]) -> None:
        """Change all but the slacks, to solve again from where the last solve ended.

        Parameters
        ----------
        cost, lower, upper : sequences of as many floats as there are other variables
        """
        count = len(cost)
        self.lower[:count], self.upper[:count] = lower, upper
        objective = [*cost, *self._objective[count:]]
        if objective != self._objective:
            self._price(objective)

    def value(self, solution: list[float]) -> float:
        """Return the objective of a solution."""
        return float(sum(map(mul, self._objective, solution)))

    def reduced_cost(self, column: int) -> float:
        """Return the change of the optimum by one unit more of a variable."""
        return self._cost[column] * self._unit

    def solve(self) -> list[float] | None:
        """Return an optimal x, or None if the program is infeasible.

        Raises an ArithmeticError if it is not reached in :data:`MAX_PIVOTS` pivots.
        """
        lower, upper, outside, basis = self.lower, self.upper, self._outside, self._basis
        for j, (reduced, low, high) in enumerate(zip(self._cost, lower, upper, strict=True)):
            if reduced < -TOLERANCE or (reduced <= TOLERANCE and outside[j] >= high):
                outside[j] = high
            else:
                outside[j] = low
        for j in basis:
            outside[j] = 0.0
        values = [
            right - sum(map(mul, row, outside))
            for row, right in zip(self._rows, self._rhs, strict=True)
        ]
        for pivots in range(MAX_PIVOTS):
            by_index = pivots >= CYCLING_FROM
            leaving, worst, target = -1, TOLERANCE, 0.0
            for i, (j, value) in enumerate(zip(basis, values, strict=True)):
                if by_index and leaving >= 0 and basis[leaving] < j:
                    continue
                scale = 1.0 + abs(value)
                if (below := (lower[j] - value) / scale) > worst:
                    leaving, worst, target = i, below, lower[j]
                elif (above := (value - upper[j]) / scale) > worst:
                    leaving, worst, target = i, above, upper[j]
                if by_index:
                    worst = TOLERANCE
            if leaving < 0:
                solution = outside.copy()
                for j, value in zip(basis, values, strict=True):
                    solution[j] = value
                return solution
            entering = self._entering(leaving, values[leaving] < target, by_index)
            if entering < 0:
                return None
            # Moving the entering variable by a step brings the leaving one to its bound.
            step = (values[leaving] - target) / self._rows[leaving][entering]
            reached = outside[entering] + step
            for i, row in enumerate(self._rows):
                if factor := row[entering]:
                    values[i] -= factor * step
            values[leaving] = reached
            self._pivot(leaving, entering, target)
        raise ArithmeticError(f"no optimum after {MAX_PIVOTS} pivots")

    def _entering(self, leaving: int, must_rise: bool, by_index: bool) -> int:
        """Pick the variable whose reduced cost reaches zero first, or -1.

        Of several the one with the largest entry, which rounds least, or the first.
        """
        best, best_ratio, best_size = -1, 0.0, 0.0
        lower, upper, cost = self.lower, self.upper, self._cost
        leaves = self._basis[leaving]
        for j, (a, now) in enumerate(zip(self._rows[leaving], self._outside, strict=True)):
            if -TOLERANCE < a < TOLERANCE or j == leaves:
                continue
            # The leaving variable rises if one at its lower bound with a negative entry rises,
            # or one at its upper bound with a positive entry falls. What can't move is neither.
            if now < upper[j] if (a < 0) is must_rise else now > lower[j]:
                size = abs(a)
                ratio = abs(cost[j]) / size
                if (
                    best < 0
                    or ratio < best_ratio - TOLERANCE
                    or (ratio <= best_ratio + TOLERANCE and size > best_size and not by_index)
                ):
                    best, best_ratio, best_size = j, ratio, size
        return best

    def _pivot(self, leaving: int, entering: int, target: float) -> None:
        rows, rhs = self._rows, self._rhs
        pivot = rows[leaving][entering]
        pivot_row = [a / pivot for a in rows[leaving]]
        pivot_rhs = rhs[leaving] / pivot
        for i, row in enumerate(rows):
            if i != leaving and (factor := row[entering]):
                rows[i] = [a - factor * p for a, p in zip(row, pivot_row)]  # noqa: B905
                rhs[i] -= factor * pivot_rhs
        rows[leaving], rhs[leaving] = pivot_row, pivot_rhs
        if factor := self._cost[entering]:
            self._cost = [a - factor * p for a, p in zip(self._cost, pivot_row)]  # noqa: B905
        self._outside[self._basis[leaving]] = target
        self._outside[entering] = 0.0
        self._basis[leaving] = entering
