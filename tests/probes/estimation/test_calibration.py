"""Bounds hold what they promise: cross-validation over regions on measured grids."""

from __future__ import annotations

from statistics import median

import pytest

from tests.probes.estimation.cross_validation import Judged, cross_validated

FEWEST = 50
# Median errors of inferred links at version 0.1, by the same test: 4.4, 3.8 and 3.6 %.
MOST_ERROR = {9: 0.044, 200: 0.036}


def check(judged: Judged) -> None:
    """All together, and every class with enough links."""
    total = judged.coverage()
    assert total.share is not None
    assert total.low is not None
    assert total.high is not None
    if total.predictions >= 2 * FEWEST:
        assert 0.85 <= total.share <= 0.95
    else:
        assert total.low <= 0.95
        assert total.high >= 0.85
    for name, held in judged.held.items():
        if len(held) >= FEWEST:
            assert sum(held) >= 0.80 * len(held), name


@pytest.mark.thorough
@pytest.mark.parametrize("count", [9, 200])
def test_nine_of_ten_later_tests_fall_within_the_bounds(count: int) -> None:
    found = cross_validated(count)
    assert len(found.inferred.errors) > 10_000
    for judged in found:
        check(judged)
    assert median(found.inferred.errors) <= MOST_ERROR[count]
