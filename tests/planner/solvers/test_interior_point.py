"""The interior point against the whole linear program over all paths, by SciPy's HiGHS."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from planner.model.shared_resources import Floats, links_of
from planner.solvers.columns import PathColumns
from planner.solvers.interior_point import InteriorPoint
from tests.planner.schedule.schedules import World, world

GAP = 1e-3


def demands(of: World, seed: int) -> Floats:
    """Return volumes in Gbit between some pairs that a path connects."""
    random = np.random.default_rng(seed)
    n = len(of.rate)
    found = random.uniform(1, 100, (n, n)) * (random.random((n, n)) < 0.7)
    found[0, 1] = 50.0
    for i in range(n):
        for j in range(n):
            if i == j or not of.paths(i, j):
                found[i, j] = 0.0
    return found


def columns_of(of: World, wanted: Floats) -> PathColumns:
    """Return columns with one pattern a source, as a solver would begin."""
    columns = PathColumns(of.resources(), wanted, of.fees / 8)
    columns.all_of(of.resources().s_per_gbit + np.where(of.rate > 0, 0.0, np.inf))
    columns.add_rows(columns.given.path_rows_above(np.ones_like(wanted), 0.0)[:1])
    return columns


def least(of: World, wanted: Floats, late_usd_per_s: float, deadline_s: float, fees: bool) -> float:
    """Return the least fees plus the price of lateness, over all paths at once."""
    n = len(of.rate)
    paths = [
        (i, k, j) for i in range(n) for j in range(n) if wanted[i, j] > 0 for k in of.paths(i, j)
    ]
    pairs = sorted({(i, j) for i, _, j in paths})
    caps = np.zeros((len(of.limits), 1 + len(paths)))
    caps[:, 0] = -of.limits  # lateness gives every row its VMs for longer
    moved = np.zeros((len(pairs), 1 + len(paths)))
    cost = np.zeros(1 + len(paths))
    cost[0] = late_usd_per_s
    for column, (i, k, j) in enumerate(paths, 1):
        for row, load in of.loads(i, k, j).items():
            caps[row, column] = load
        moved[pairs.index((i, j)), column] = 1.0
        links = [(i, j)] if k == j else [(i, k), (k, j)]
        cost[column] = sum(of.fees[link] for link in links) / 8 if fees else 0.0
    solved = linprog(
        cost,
        A_ub=caps,
        b_ub=of.limits * deadline_s,
        A_eq=moved,
        b_eq=[wanted[pair] for pair in pairs],
        method="highs",
    )
    assert solved.status == 0, solved.message
    return float(solved.fun)


@pytest.mark.parametrize("seed", range(25))
def test_its_bound_and_its_routing_enclose_the_least_time(seed: int) -> None:
    of = world(seed)
    wanted = demands(of, seed)
    columns = columns_of(of, wanted)
    exact_s = least(of, wanted, 1.0, 0.0, fees=False)
    found = InteriorPoint(columns, 0.0, 1.0, exact_s * 2, 0.0, GAP).solve()
    assert found.bound <= exact_s * (1 + 1e-7)
    assert found.objective >= exact_s * (1 - 1e-7)
    assert found.objective <= found.bound * (1 + GAP * 1.001)
    # The routing moves all of every demand, and needs the time it says.
    assert np.allclose(found.paths_gbit.sum(axis=1), wanted, rtol=1e-9, atol=1e-9)
    assert columns.resources.time_s(links_of(found.paths_gbit)) == pytest.approx(
        found.objective, rel=1e-9
    )


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("spare", [0.02, 0.5, 3.0])
def test_fees_and_lateness_are_the_least_together(seed: int, spare: float) -> None:
    of = world(seed)
    wanted = demands(of, seed)
    deadline_s = (1 + spare) * least(of, wanted, 1.0, 0.0, fees=False)
    usd = least(of, wanted, 1e6, 1e9, fees=True)  # at leisure
    penalty = 0.3 * usd / deadline_s
    exact_usd = least(of, wanted, penalty, deadline_s, fees=True)
    columns = columns_of(of, wanted)
    found = InteriorPoint(columns, 1.0, penalty, deadline_s, deadline_s, GAP, usd).solve()
    assert found.bound <= exact_usd * (1 + 1e-7)
    assert found.objective >= exact_usd * (1 - 1e-7)
    assert found.objective <= found.bound * (1 + GAP * 1.001)
    links = links_of(found.paths_gbit)
    late_s = max(0.0, columns.resources.time_s(links) - deadline_s)
    stated_usd = float((links * of.fees / 8).sum()) + penalty * late_s
    assert stated_usd == pytest.approx(found.objective, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_row_prices_are_what_a_little_more_of_a_row_brings(seed: int) -> None:
    """No more than its price: the optimum is convex in what there is of a site."""
    of = world(seed)
    wanted = demands(of, seed)
    columns = columns_of(of, wanted)
    exact_s = least(of, wanted, 1.0, 0.0, fees=False)
    found = InteriorPoint(columns, 0.0, 1.0, exact_s * 2, 0.0, GAP).solve()
    site_prices = np.zeros(len(of.rate))
    resources = columns.given
    np.add.at(site_prices, resources.row_sites, found.row_prices)
    # A path's row is at the end with fewer VMs; of equals, at the source: more at either end
    # brings no more than its price.
    src, dst = resources.paths
    of_paths = found.row_prices[len(found.row_prices) - len(src) :]
    ends = np.where(resources.row_sites[-len(src) :] == src, dst, src) if len(src) else src
    np.add.at(site_prices, ends, of_paths)
    for site in range(resources.count):
        more = replace(of, vms=of.vms + 0.01 * (np.arange(len(of.vms)) == site))
        saved_s = exact_s - least(more, wanted, 1.0, 0.0, fees=False)
        # The price of a VM-second times the seconds for which it is had; and what the gap leaves.
        assert saved_s <= 0.01 * site_prices[site] * exact_s + GAP * exact_s
