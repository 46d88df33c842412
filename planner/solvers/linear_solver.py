"""OR-Tools, imported on first use: that takes longer than planning a transfer, which needs none."""

from __future__ import annotations

from typing import Any

from planner.model.errors import not_installed


def solver_library() -> Any:
    """Return the module ``pywraplp``.

    Raises
    ------
    InputError
        If OR-Tools is not installed: with pandas, which it needs, it is larger than all else.
    """
    try:
        from ortools.linear_solver import pywraplp
    except ModuleNotFoundError:
        raise not_installed("ortools", "solver", "answer this question") from None
    return pywraplp


def new_solver(kind: str) -> Any:
    """Return an empty program for GLOP, CLP, CBC or SCIP, which will run in one thread."""
    solver = solver_library().Solver.CreateSolver(kind)
    solver.SetNumThreads(1)
    return solver


def copied(solver: Any, kind: str) -> Any:
    """Return the same program for another solver."""
    from ortools.linear_solver.linear_solver_pb2 import MPModelProto

    model = MPModelProto()
    solver.ExportModelToProto(model)
    copy = new_solver(kind)
    copy.LoadModelFromProto(model)
    return copy
