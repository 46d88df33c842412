"""The routing of many transfers as one linear program over all paths, through OR-Tools.

The same model as :mod:`planner.solvers.column_generation`, stated to be read: a variable for each
pair and path. It is exact and slow (60,841 variables for all pairs of 40 sites), and takes over
where column generation does not reach its gap.
"""

from __future__ import annotations

import numpy as np

from planner.model.shared_resources import Floats, SiteResources
from planner.solvers.linear_solver import new_solver


def route_over_all_paths(
    resources: SiteResources,
    demands_gbit: Floats,
    usd_per_gbit: Floats,
    deadline_s: float | None = None,
) -> tuple[Floats, float] | None:
    """Return optimal volumes of paths and what they reach, or None if the solver fails.

    Parameters
    ----------
    resources : SiteResources
    demands_gbit, usd_per_gbit : arrays, shape (n, n)
    deadline_s : float, optional
        With it, least fees in that time; without, least time.
    """
    resources = resources.with_fixed_vms
    solver = new_solver("GLOP")
    n, many = resources.count, solver.infinity()
    objective = solver.Objective()
    objective.SetMinimization()
    limits = resources.row_vms * (deadline_s or 0.0)
    rows = [solver.Constraint(-many, float(limit)) for limit in limits]
    if deadline_s is None:
        time_s = solver.NumVar(0, many, "time")
        objective.SetCoefficient(time_s, 1)
        for constraint, vms in zip(rows, resources.row_vms.tolist(), strict=True):
            constraint.SetCoefficient(time_s, -vms)
    known = resources.rate_gbps > 0
    relays = np.nonzero(resources.may_relay)[0].tolist()
    variables = []
    for i, j in zip(*(axis.tolist() for axis in np.nonzero(demands_gbit)), strict=True):
        volume = float(demands_gbit[i, j])
        whole = solver.Constraint(1.0, 1.0)
        hops = [k for k in relays if k not in (i, j) and known[i, k] and known[k, j]]
        for k in [j, *hops] if known[i, j] else hops:
            share = solver.NumVar(0, many, "")
            whole.SetCoefficient(share, 1)
            variables.append((share, i, k, j))
            loads: dict[int, float] = {}
            fees = 0.0
            for u, v in [(i, k)] if k == j else [(i, k), (k, j)]:
                fees += volume * float(usd_per_gbit[u, v])
                for row, need in resources.link_rows(u, v):
                    loads[row] = loads.get(row, 0.0) + volume * need
            for row, load in loads.items():
                rows[row].SetCoefficient(share, load)
            if deadline_s is not None:
                objective.SetCoefficient(share, fees)
    if solver.Solve() != solver.OPTIMAL:
        return None
    paths = np.zeros((n, n, n))
    for share, i, k, j in variables:
        paths[i, k, j] = max(0.0, share.solution_value()) * demands_gbit[i, j]
    moved = paths.sum(axis=1)
    scale = np.divide(demands_gbit, moved, out=np.ones_like(moved), where=moved > 0)
    return paths * scale[:, None, :], objective.Value()
