"""Speed of broadcasts to 10 of the 63 regions measured in January 2022.

``python -m benchmarks.broadcast``; run it with ``OPENBLAS_NUM_THREADS=1``,
as ``relayd plan broadcast``
runs. The reference, in the same run, is a flow to each destination over the ends and the 14
cheapest relays through OR-Tools: as a mixed-integer program for least fees (CBC), as a
linear program for least time (GLOP). Needs the shared measurements (tests/shared_data.py).
"""

from __future__ import annotations

import argparse
from statistics import median

import numpy as np

from benchmarks.table import judge, show, timed, with_worst
from planner.broadcast.problem import BroadcastProblem, broadcast_problem
from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastObjective, BroadcastRequest
from planner.model.pricing import FlatPrices, Prices
from tests.planner.grid import january_grid

RELAYS = 14
FEES_ALONE = "fees alone (caps loose)"
OBJECTIVES: dict[str, BroadcastObjective] = {
    FEES_ALONE: "cost",
    "cost": "cost",
    "value": "value",
    "time": "time",
}


def main() -> None:
    """Print a table: milliseconds, medians and worst over seeds, and proven gaps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--destinations", type=int, nargs="+", default=[5, 10])
    parser.add_argument("--full", type=int, default=2, help="seeds on which OR-Tools runs too")
    options = parser.parse_args()
    grid = january_grid()
    network, priced = grid.network(), grid.prices()
    free = FlatPrices(grid.regions, grid.matrix(grid.usd_per_gb, max(grid.usd_per_gb.values())))
    rows = []
    for count in options.destinations:
        for case, objective in OBJECTIVES.items():
            prices: Prices = free if case == FEES_ALONE else priced
            by_time = case == "time"
            times: list[float] = []
            full: list[float] = []
            gaps, theirs = [], []
            for seed in range(options.seeds):
                random = np.random.default_rng(seed)
                chosen = random.choice(len(grid.regions), count + 1, False)
                src, *ends = (grid.regions[i] for i in chosen)
                request = BroadcastRequest(
                    src, tuple(ends), volume_gb=500.0, objective=objective, margin=0.0, vms=1
                )
                if seed == 0:
                    recommend_broadcast(request, network, prices)  # imports
                plan = timed(times, recommend_broadcast, request, network, prices)
                gaps.append(plan.gap)
                if seed < options.full and case in (FEES_ALONE, "time"):
                    problem = broadcast_problem(request, network, prices)
                    value = timed(full, _by_flows, problem, by_time)
                    mine = 4000.0 / plan.throughput_gbps if by_time else plan.cost_usd.egress
                    theirs.append(value / mine)
            if full:
                judge(f"broadcast to {count}, {case}, of OR-Tools", median(times) / median(full), 1)
            found = (with_worst(full), f"{median(theirs):.3f}x") if full else ("", "")
            rows.append((f"{count}, {case}", with_worst(times), f"{max(gaps):.2%}", *found))
    header = ("destinations", "whole answer", "gap", "OR-Tools", "it finds")
    show(f"Broadcasts, median of {options.seeds}", header, rows)


def _by_flows(problem: BroadcastProblem, least_time: bool) -> float:
    """Return the least seconds, or the least fees in USD, of flows to every destination."""
    from ortools.linear_solver import pywraplp

    ends = [problem.root, *problem.terminals]
    fees = np.where(np.isfinite(problem.usd_per_gbit), problem.usd_per_gbit, 9e9)
    order = np.argsort(fees[ends].min(axis=0) + fees[:, ends].min(axis=1), kind="stable")
    sites = ends + [i for i in order.tolist() if i not in ends][:RELAYS]
    arcs = [
        (u, v)
        for u in sites
        for v in sites
        if problem.resources.rate_gbps[u, v] > 0 and v != problem.root
    ]
    solver = pywraplp.Solver.CreateSolver("GLOP" if least_time else "CBC")
    many = solver.infinity()
    objective = solver.Objective()
    objective.SetMinimization()
    links = {
        arc: solver.NumVar(0, many, "") if least_time else solver.IntVar(0, 1, "") for arc in arcs
    }
    for terminal in problem.terminals:
        balance = {
            site: solver.Constraint(*[{problem.root: -1.0, terminal: 1.0}.get(site, 0.0)] * 2)
            for site in sites
        }
        for (u, v), link in links.items():
            flow = solver.NumVar(0, 1, "")
            balance[u].SetCoefficient(flow, -1)
            balance[v].SetCoefficient(flow, 1)
            carried = solver.Constraint(-many, 0)
            carried.SetCoefficient(flow, 1)
            carried.SetCoefficient(link, -1)
    if least_time:
        resources, duration = problem.resources, solver.NumVar(0, many, "")
        objective.SetCoefficient(duration, 1)
        for site in sites:
            for kind in range(4):
                row = solver.Constraint(-many, 0)
                row.SetCoefficient(duration, -float(resources.vms[site]))
                for (u, v), link in links.items():
                    if (u, v)[kind % 2] == site:
                        pair = resources.rate_gbps[u, v]
                        by = (pair, pair, resources.egress_gbps[u], resources.ingress_gbps[v])
                        row.SetCoefficient(link, float(problem.volume_gbit / by[kind]))
    else:
        for arc, link in links.items():
            objective.SetCoefficient(link, float(problem.usd_per_gbit[arc]) * problem.volume_gbit)
    assert solver.Solve() == pywraplp.Solver.OPTIMAL
    return float(objective.Value())


if __name__ == "__main__":
    main()
