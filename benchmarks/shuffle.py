"""Speed of shuffles on the January 2022 grid: ``python -m benchmarks.shuffle``.

With one thread of the matrix library, as ``wan.shuffle`` plans: column generation, and the whole
answer. Needs the shared measurements (tests/shared_data.py).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import permutations

import numpy as np

from benchmarks.table import judge, show, with_worst
from planner.model.shared_resources import Floats
from planner.shuffle.problem import shuffle_problem
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.solvers.column_generation import PathColumns, least_time
from tests.planner.grid import january_grid

Demands = Callable[[np.random.Generator, int], Floats]


def _hot(random: np.random.Generator, n: int) -> Floats:
    volumes = np.ones((n, n))
    volumes[:, random.integers(n)] = 30.0
    return volumes


DEMANDS: dict[str, Demands] = {
    "uniform": lambda _, n: np.full((n, n), 10.0),
    "skewed": lambda random, n: random.pareto(1.2, (n, n)) + 0.1,
    "skewed sites": lambda random, n: np.outer(*[random.pareto(1.0, n) + 0.1] * 2),
    "hot destination": _hot,
}


def main() -> None:
    """Print a table: milliseconds, medians and worst over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sites", type=int, nargs="+", default=[12, 40])
    options = parser.parse_args()
    grid = january_grid()
    network, prices = grid.network(), grid.prices()
    rows = []
    for n in options.sites:
        for name, make in DEMANDS.items():
            routing, answer, gaps = [], [], []
            for seed in range(options.seeds):
                random = np.random.default_rng(seed)
                chosen = random.choice(len(grid.regions), n, replace=False)
                regions = [grid.regions[i] for i in np.sort(chosen)]
                part = network.with_(restricted_to=regions)
                volumes = make(random, n)
                pairs = permutations(range(n), 2)
                demands = {(regions[i], regions[j]): float(volumes[i, j]) for i, j in pairs}
                request = ShuffleRequest(demands, margin=0.0, vms=1)
                problem = shuffle_problem(request, part, prices)
                paths = PathColumns(problem.resources, problem.demands_gbit, problem.usd_per_gbit)
                start = time.perf_counter()
                found = least_time(paths)
                gaps.append(found.objective / found.bound - 1)
                routing.append(time.perf_counter() - start)
                start = time.perf_counter()
                recommend_shuffle(request, part, prices)
                answer.append(time.perf_counter() - start)
            name = f"{n} sites, {name}"
            judge(f"shuffle of {name}: gap, %", 100 * max(gaps), 1)
            rows.append((name, with_worst(routing), f"{max(gaps):.5f}", with_worst(answer)))
    header = ("demands", "routing", "gap", "whole answer")
    show(f"Shuffles, median of {options.seeds}", header, rows)


if __name__ == "__main__":
    main()
