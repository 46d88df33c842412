"""Linear programs through OR-Tools, which is imported on first use: it is large."""

from __future__ import annotations

from typing import Any


def solver_library() -> Any:
    """Return the module ``pywraplp``."""
    from ortools.linear_solver import pywraplp

    return pywraplp


def new_solver(kind: str = "GLOP") -> Any:
    """Return an empty program for GLOP, CLP or SCIP, which will run in one thread."""
    solver = solver_library().Solver.CreateSolver(kind)
    solver.SetNumThreads(1)
    return solver


def status_of(solver: Any) -> int:
    """Solve a program, again without presolve where GLOP fails; return the status."""
    if (status := solver.Solve()) == solver.ABNORMAL:
        plain = solver_library().MPSolverParameters()
        plain.SetIntegerParam(plain.PRESOLVE, plain.PRESOLVE_OFF)
        status = solver.Solve(plain)
    return int(status)


def solved(solver: Any) -> Any:
    """Solve a program by GLOP, or by CLP where GLOP fails; return the program that was solved.

    Its variables and constraints are in the order of the given one's. None if there is no solution.

    Raises ArithmeticError if both fail.
    """
    status = status_of(solver)
    if status not in {solver.OPTIMAL, solver.INFEASIBLE}:
        from ortools.linear_solver.linear_solver_pb2 import MPModelProto

        model = MPModelProto()
        solver.ExportModelToProto(model)
        solver = new_solver("CLP")
        solver.LoadModelFromProto(model)
        status = solver.Solve()
    if status == solver.INFEASIBLE:
        return None
    if status != solver.OPTIMAL:
        raise ArithmeticError("two solvers failed on a linear program")
    return solver
