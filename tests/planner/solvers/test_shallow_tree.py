"""Lightest trees within a delay are those of an enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from planner.solvers.shallow_tree import lightest_within
from tests.planner.solvers.test_steiner import every_tree
from tests.properties import examples


@pytest.mark.parametrize("seed", range(examples(40)))
def test_the_lightest_of_all_trees_in_time_is_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    n, terminals = 5, list(range(1, 3 + seed % 3))
    known = random.random((n, n)) < 0.8
    known[0] = True
    np.fill_diagonal(known, False)
    weights = np.where(known, random.uniform(0, 1, (n, n)) * (random.random((n, n)) < 0.7), np.inf)
    delays = np.where(known, random.uniform(1, 10, (n, n)), np.inf)

    def depth(arcs: tuple[tuple[int, int], ...]) -> float:
        at = {0: 0.0}
        for tail, head in arcs:
            at[head] = at[tail] + float(delays[tail, head])
        return max(at[terminal] for terminal in terminals)

    def weight(arcs: tuple[tuple[int, int], ...]) -> float:
        return sum(float(weights[arc]) for arc in arcs)

    trees = every_tree(known, 0, terminals)
    depths = np.array([depth(arcs) for arcs in trees])
    for most in np.quantile(depths, [0.0, 0.1, 0.4, 1.0], method="lower").tolist():
        most *= 1 + 1e-9
        least = min(weight(arcs) for arcs, d in zip(trees, depths, strict=True) if d <= most)
        found = lightest_within(weights, delays, 0, terminals, most, least + 0.1)
        assert found is not None
        assert weight(found) == pytest.approx(least, abs=1e-9)
        assert depth(found) <= most
        assert lightest_within(weights, delays, 0, terminals, most, least * (1 - 1e-6)) is None
    assert lightest_within(weights, delays, 0, terminals, depths.min() * 0.99, 1e9) is None
