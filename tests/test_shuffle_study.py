"""The study's page states what its script finds."""

from __future__ import annotations

import pytest

from planner.solvers.column_generation import GAP
from scripts.shuffle_study import DEMANDS, PAGE, SEEDS, case, provider_rows, size_rows


@pytest.mark.thorough
def test_rows_of_the_tables_are_those_that_the_script_finds() -> None:
    text = PAGE.read_text()
    few = [
        case(view, demands, 6, seed)
        for view in ("caps", "flow")
        for demands in DEMANDS
        for seed in range(SEEDS)
    ]
    for row in size_rows(few):
        assert row in text
    azure = [case("caps", "uniform", 12, seed, "azure") for seed in range(SEEDS)]
    (row,) = provider_rows(azure)
    assert row in text


def test_relays_never_lengthen_a_shuffle_nor_does_a_plan() -> None:
    for seed in range(100, 105):
        for view in ("caps", "flow"):
            found = case(view, "skewed", 8, seed)
            assert found.planning >= 1 - 1e-6
            assert found.relaying >= 1 - GAP
