"""Speed of shuffles on the January 2022 grid: ``python -m benchmarks.shuffle``.

With one thread of the matrix library, as ``wan.shuffle`` plans: column generation, and the whole
answer. Needs the shared measurements (tests/shared_data.py).
"""

from __future__ import annotations

import argparse

from benchmarks.table import judge, show, timed, with_worst
from planner.shuffle.problem import shuffle_problem
from planner.shuffle.recommendation import recommend_shuffle
from planner.solvers.column_generation import PathColumns, least_time
from scripts.shuffle_study import DEMANDS, shuffle_of
from tests.planner.grid import january_grid


def main() -> None:
    """Print a table: milliseconds, medians and worst over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sites", type=int, nargs="+", default=[12, 40])
    options = parser.parse_args()
    prices, rows = january_grid().prices(), []
    for sites in options.sites:
        for demands in DEMANDS:
            routing: list[float] = []
            answer: list[float] = []
            gaps = []
            for seed in range(options.seeds):
                request, part = shuffle_of("caps", demands, sites, seed)
                problem = shuffle_problem(request, part, prices)
                paths = PathColumns(problem.resources, problem.demands_gbit, problem.usd_per_gbit)
                found = timed(routing, least_time, paths)
                gaps.append(found.objective / found.bound - 1)
                timed(answer, recommend_shuffle, request, part, prices)
            name = f"{sites} sites, {demands}"
            judge(f"shuffle of {name}: gap, %", 100 * max(gaps), 1)
            rows.append((name, with_worst(routing), f"{max(gaps):.5f}", with_worst(answer)))
    header = ("demands", "routing", "gap", "whole answer")
    show(f"Shuffles, median of {options.seeds}", header, rows)


if __name__ == "__main__":
    main()
