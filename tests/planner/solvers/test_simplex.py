"""The small dual simplex against SciPy's HiGHS."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner.solvers.simplex import BoxedSimplex
from tests.planner.transfer.strategies import patient

FIGURES = st.sampled_from([-2.0, -1.0, 0.0, 0.0, 1.0, 2.0]) | st.integers(-50, 50).map(
    lambda tenths: tenths / 10
)
Program = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Return rows (with slacks), right sides, costs and bounds; feasible or not."""
    height, width = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    rows = np.array([[draw(FIGURES) for _ in range(width)] for _ in range(height)])
    rhs = np.array([draw(FIGURES) for _ in range(height)])
    cost = np.array([draw(FIGURES) for _ in range(width + height)])
    lower = np.array([draw(FIGURES) for _ in range(width + height)])
    upper = lower + np.array([abs(draw(FIGURES)) for _ in range(width + height)])
    return np.hstack([rows, np.eye(height)]), rhs, cost, lower, upper


def simplex(program: Program) -> BoxedSimplex:
    rows, rhs, cost, lower, upper = (part.tolist() for part in program)
    return BoxedSimplex(rows, rhs, cost, lower, upper)


def assert_solves(program: BoxedSimplex, stated: Program) -> None:
    rows, rhs, cost, lower, upper = stated
    expected = linprog(cost, A_eq=rows, b_eq=rhs, bounds=np.column_stack([lower, upper]))
    assert expected.status in {0, 2}
    solution = program.solve()
    assert (solution is None) == (expected.status == 2)
    if solution is not None:
        x = np.array(solution)
        assert rows @ x == pytest.approx(rhs, abs=1e-6)
        assert (x >= lower - 1e-6).all()
        assert (x <= upper + 1e-6).all()
        assert program.value(solution) == pytest.approx(expected.fun, abs=1e-6)
        assert program.value(solution) == pytest.approx(float(cost @ x))


@patient
@given(programs())
def test_finds_the_optimum_or_that_there_is_none(program: Program) -> None:
    assert_solves(simplex(program), program)


@patient
@given(programs(), st.data())
def test_goes_on_from_where_it_ended_when_costs_and_bounds_change(
    program: Program, data: st.DataObject
) -> None:
    solver = simplex(program)
    rows, rhs, cost, lower, upper = program
    count = len(cost) - len(rhs)
    for _ in range(3):
        solver.solve()
        cost, lower, upper = cost.copy(), lower.copy(), upper.copy()
        cost[:count] = [data.draw(FIGURES) for _ in range(count)]
        lower[:count] = [data.draw(FIGURES) for _ in range(count)]
        upper[:count] = lower[:count] + [abs(data.draw(FIGURES)) for _ in range(count)]
        solver.change(*(part[:count].tolist() for part in (cost, lower, upper)))
        assert_solves(solver, (rows, rhs, cost, lower, upper))
        column = data.draw(st.integers(0, len(cost) - 1))
        upper[column] = lower[column] + abs(data.draw(FIGURES))
        solver.upper[column] = float(upper[column])
        assert_solves(solver, (rows, rhs, cost, lower, upper))


@pytest.mark.parametrize("unit_usd", [1e-9, 1.0, 1e9])
def test_the_optimum_does_not_depend_on_the_unit_of_cost(unit_usd: float) -> None:
    rows = [[1.0, 1.0, 1.0]]
    cost = [0.0902 * unit_usd, 0.09 * unit_usd, 0.0]
    solver = BoxedSimplex(rows, [1.0], cost, [0.0] * 3, [1.0, 1.0, 0.0])
    assert solver.solve() == [0.0, 1.0, 0.0]


@patient
@given(programs(), st.data())
def test_a_copy_is_independent(program: Program, data: st.DataObject) -> None:
    solver = simplex(program)
    before = solver.solve()
    twin = solver.copy()
    rows, rhs, cost, lower, upper = program
    column = data.draw(st.integers(0, len(cost) - 1))
    changed = upper.copy()
    changed[column] = lower[column]
    twin.upper[column] = float(lower[column])
    assert_solves(twin, (rows, rhs, cost, lower, changed))
    assert solver.upper[column] == upper[column]
    assert solver.solve() == (before if before is None else pytest.approx(before))
