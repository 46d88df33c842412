"""The placement of tasks as a mixed-integer program, through OR-Tools' SCIP.

``x_au`` says that task a is on VM u, ``y_abuv`` that a is on u and b on v, for each pair of tasks
that exchange a volume ``D_ab``::

    minimise T   with   sum_u x_au = 1,   sum_a cpus_a x_au <= slots_u
                        sum_v y_abuv = x_au,   sum_u y_abuv = x_bv
                        sum_ab,v D_ab y_abuv / E_u <= T   (and the other rows of each VM)
                        sum_ab D_ab y_abuv / P_uv <= T    (for each pair of VMs)

Products of the CPU rows with ``x`` (Sherali and Adams, 1990) make its relaxation tighter: they say
that a VM which holds b has only the rest for b's partners.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from planner.model.shared_resources import Floats, SiteResources
from planner.solvers.linear_solver import new_solver, solver_library

ROUNDING = 1e-9
# With more products than this, the program takes longer to state than it is worth.
MOST_PRODUCTS = 60_000
GAP = 1e-6
MS_PER_S = 1000


@dataclass(frozen=True)
class TaskProblem:
    """The figures of a placement of k tasks on m VMs.

    Attributes
    ----------
    resources : SiteResources
        With one VM at each of m sites.
    traffic_gbit : array, shape (k, k)
    cpus : array, length k
    slots : array, length m
        CPUs of each VM.
    """

    resources: SiteResources
    traffic_gbit: Floats
    cpus: Floats
    slots: Floats

    def links_gbit(self, where: np.ndarray) -> Floats:
        """Return what crosses between VMs, shape (m, m)."""
        m = len(self.slots)
        on = np.zeros((len(where), m))
        on[np.arange(len(where)), where] = 1.0
        links = on.T @ self.traffic_gbit @ on
        np.fill_diagonal(links, 0.0)
        return np.asarray(links)

    def time_s(self, where: np.ndarray) -> float:
        """Return what the fullest limit needs."""
        return self.resources.time_s(self.links_gbit(where))

    def rank(self, where: np.ndarray) -> tuple[float, float]:
        """Return the time, and how full all limits are together; less is better."""
        loads = self.resources.loads(self.links_gbit(where))
        most = float(loads.max(initial=0.0))
        # Next to equal times are the same, or rounding would make two placements better in turn.
        return float(f"{most:.9e}"), float(f"{float((loads**2).sum()):.9e}")

    def fits(self, where: np.ndarray) -> bool:
        """Whether each VM has the CPUs of its tasks."""
        used = np.bincount(where, self.cpus, minlength=len(self.slots))
        return bool((used <= self.slots * (1 + ROUNDING)).all())


def best_assignment(
    problem: TaskProblem, start: np.ndarray | None, time_limit_s: float
) -> tuple[np.ndarray | None, float]:
    """Return the best assignment found in the time, and a bound that none is below.

    Parameters
    ----------
    problem : TaskProblem
    start : array of int, length k, optional
        An assignment to better.
    time_limit_s : float

    Returns
    -------
    tuple
        The start if nothing better is found; None with an infinite bound if there is none at all.
    """
    start_s = inf if start is None else problem.time_s(start)
    pairs = [(int(a), int(b)) for a, b in zip(*np.nonzero(problem.traffic_gbit), strict=True)]
    m = len(problem.slots)
    if start_s == 0 or time_limit_s <= 0 or len(pairs) * m * m > MOST_PRODUCTS:
        return start, 0.0

    solver = new_solver("SCIP")
    solver.SetTimeLimit(round(time_limit_s * MS_PER_S))
    scale = start_s if start_s < inf else _together_s(problem) or 1.0
    time = solver.NumVar(0.0, 1.0 if start_s < inf else solver.infinity(), "")
    on = [[solver.BoolVar("") for _ in range(m)] for _ in problem.cpus]
    for of in on:
        solver.Add(sum(of) == 1)
    for u, slots in enumerate(problem.slots.tolist()):
        solver.Add(
            sum(cpus * of[u] for cpus, of in zip(problem.cpus.tolist(), on, strict=True))
            <= slots * (1 + ROUNDING)
        )
    resources = problem.resources
    rows = [solver.Constraint(-solver.infinity(), 0.0) for _ in resources.rows]
    for constraint in rows:
        constraint.SetCoefficient(time, -1.0)
    both: dict[tuple[int, int, int, int], Any] = {}
    for a, b in pairs:
        volume = float(problem.traffic_gbit[a, b]) / scale
        grid = [[solver.NumVar(0.0, 1.0, "") for _ in range(m)] for _ in range(m)]
        for u in range(m):
            solver.Add(sum(grid[u]) == on[a][u])
            solver.Add(sum(grid[v][u] for v in range(m)) == on[b][u])
            for v in range(m):
                both[a, b, u, v] = grid[u][v]
                if u == v:
                    continue
                for row, need in resources.link_rows(u, v):
                    rows[row].SetCoefficient(grid[u][v], volume * need)
    _tighten(problem, solver, pairs, on, both)
    solver.Minimize(time)
    if start is not None:
        flat = [variable for of in on for variable in of]
        solver.SetHint(flat, [float(place == u) for place in start.tolist() for u in range(m)])
    parameters = solver_library().MPSolverParameters()
    parameters.SetDoubleParam(parameters.RELATIVE_MIP_GAP, GAP)
    status = solver.Solve(parameters)
    if status == solver.INFEASIBLE and start is None:
        return None, inf
    if status not in {solver.OPTIMAL, solver.FEASIBLE}:
        return start, 0.0
    bound_s = max(0.0, solver.Objective().BestBound() * scale)
    found = np.array([[variable.solution_value() for variable in of] for of in on]).argmax(axis=1)
    if not problem.fits(found) or problem.time_s(found) >= start_s:
        return start, min(bound_s, start_s)
    return found, min(bound_s, problem.time_s(found))


def _tighten(
    problem: TaskProblem,
    solver: Any,
    pairs: list[tuple[int, int]],
    on: list[list[Any]],
    both: dict[tuple[int, int, int, int], Any],
) -> None:
    """Add the products of CPU rows with the place of a task."""
    m = len(problem.slots)
    for b in range(len(problem.cpus)):
        partners = {a: 0 for a, other in pairs if other == b} | {
            other: 1 for a, other in pairs if a == b
        }
        partners.pop(b, None)
        for v in range(m) if partners else ():
            for u in range(m):
                used = sum(
                    float(problem.cpus[a]) * (both[a, b, u, v] if kind == 0 else both[b, a, v, u])
                    for a, kind in partners.items()
                )
                room = float(problem.slots[u]) - (float(problem.cpus[b]) if u == v else 0.0)
                solver.Add(used <= room * (1 + ROUNDING) * on[b][v])


def _together_s(problem: TaskProblem) -> float:
    """Return a time in the order of magnitude of any placement."""
    slowest = float(problem.resources.s_per_gbit.max(initial=0.0))
    return float(problem.traffic_gbit.sum()) * slowest
