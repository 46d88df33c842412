"""OR-Tools, imported on first use: that takes longer than planning a transfer, which needs none."""

from __future__ import annotations

from typing import Any


def solver_library() -> Any:
    """Return the module ``pywraplp``."""
    from ortools.linear_solver import pywraplp

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
