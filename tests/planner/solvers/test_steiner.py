"""Steiner trees against every arborescence there is, and a bound against the optimum."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.shared_resources import Floats
from planner.solvers.steiner import EXACT_TERMINALS, Arcs, least_tree, near_trees, weight_of
from tests.planner.broadcast.broadcasts import every_tree
from tests.planner.transfer.strategies import patient
from tests.properties import examples


def check_tree(arcs: Arcs, root: int, terminals: list[int]) -> None:
    reached = {root}
    for tail, head in arcs:
        assert tail in reached
        assert head not in reached
        reached.add(head)
    assert reached.issuperset(terminals)
    leaves = {head for _, head in arcs} - {tail for tail, _ in arcs}
    assert leaves <= set(terminals)


def graph(seed: int, n: int, missing: float = 0.0) -> Floats:
    random = np.random.default_rng(seed)
    weights = random.choice([random.uniform(0, 1, (n, n)), random.integers(0, 3, (n, n))])
    weights = np.asarray(weights, dtype=float)
    weights[random.random((n, n)) < missing] = inf
    weights[0, 1:] = np.where(np.isfinite(weights[0, 1:]), weights[0, 1:], 5.0)  # all in reach
    weights[:, 0] = inf
    np.fill_diagonal(weights, inf)
    return weights


@pytest.mark.parametrize("seed", range(examples(30)))
def test_the_tree_is_the_lightest_of_all(seed: int) -> None:
    weights = graph(seed, 5, missing=0.2 * (seed % 3))
    terminals = [[1], [2, 4], [1, 3, 4], [4, 3, 2, 1]][seed % 4]
    arcs, bound = least_tree(weights, 0, terminals)
    check_tree(arcs, 0, terminals)
    trees = every_tree(np.isfinite(weights), 0, terminals)
    lightest = min(weight_of(weights, tree) for tree in trees)
    assert weight_of(weights, arcs) == pytest.approx(lightest, rel=1e-6, abs=1e-6)
    assert bound == pytest.approx(lightest, rel=1e-6, abs=1e-6)
    for tree in near_trees(weights, 0, terminals):
        check_tree(tree, 0, terminals)
        assert weight_of(weights, tree) >= lightest - 1e-9


@patient
@given(seed=st.integers(0, 10**6), n=st.integers(3, 14), missing=st.sampled_from([0.0, 0.3, 0.7]))
def test_bounds_are_below_and_trees_above_the_optimum(seed: int, n: int, missing: float) -> None:
    weights = graph(seed, n, missing)
    terminals = list(range(1, 1 + min(6, n - 1)))
    arcs, bound = least_tree(weights, 0, terminals)
    weight = weight_of(weights, arcs)
    assert bound <= weight + 1e-9
    assert all(
        weight_of(weights, tree) >= bound - 1e-9 for tree in near_trees(weights, 0, terminals)
    )


def test_many_terminals_get_a_tree_and_a_bound_close_to_it() -> None:
    ratios = []
    for seed in range(5):
        weights = np.random.default_rng(seed).uniform(0.1, 1, (40, 40))
        terminals = list(range(1, EXACT_TERMINALS + 12))
        arcs, bound = least_tree(weights, 0, terminals)
        check_tree(arcs, 0, terminals)
        ratios.append(weight_of(weights, arcs) / bound)
    assert min(ratios) >= 1 - 1e-9
    assert max(ratios) <= 1.005


def test_a_steiner_point_is_used_where_it_pays() -> None:
    # Two destinations 3 away, or 1 beyond a hub at 1.
    weights = np.full((4, 4), inf)
    weights[0, 1] = weights[0, 2] = 3.0
    weights[0, 3] = weights[3, 1] = weights[3, 2] = 1.0
    arcs, bound = least_tree(weights, 0, [1, 2])
    assert sorted(arcs) == [(0, 3), (3, 1), (3, 2)]
    assert bound == pytest.approx(3.0)
    assert least_tree(weights, 0, [1])[0] == ((0, 3), (3, 1))
    weights[0, 1] = 2.0  # as light, and one hop fewer
    assert least_tree(weights, 0, [1])[0] == ((0, 1),)
