"""Bounds hold what they promise: cross-validation over regions on measured grids."""

from __future__ import annotations

from statistics import median

import pytest

from tests.probes.estimation.cross_validation import Judged, cross_validated

FEWEST = 50
# Median errors of inferred links at version 0.1, by the same test: 4.4, 3.8 and 3.6 %.
MOST_ERROR = {9: 0.044, 200: 0.036}


MOST_WIDTH = 1.6
"""Of bounds, over the range of 90 % of tests."""


def check(judged: Judged) -> None:
    """All together, far links, and every class with enough links."""
    total = judged.coverage()
    assert total.share is not None
    assert total.high is not None
    if total.predictions >= 2 * FEWEST:
        assert total.share >= 0.85
        assert judged.width() <= MOST_WIDTH
    else:
        assert total.high >= 0.85
    far = judged.coverage(far=True)
    assert far.share is None or far.predictions < 2 * FEWEST or far.share >= 0.85
    for name in judged.names():
        of = judged.coverage(name)
        assert of.share is None or of.predictions < FEWEST or of.share >= 0.80, name


@pytest.mark.thorough
@pytest.mark.parametrize("count", [9, 200])
def test_nine_of_ten_later_tests_fall_within_the_bounds(count: int) -> None:
    found = cross_validated(count)
    assert len(found.inferred.errors) > 10_000
    for judged in found:
        check(judged)
    # The spreads of laws are of both grids, each of which is somewhat narrower.
    inferred = Judged([*found.inferred.tests, *found.inferred_later.tests])
    for judged in (inferred, found.measured):
        total = judged.coverage()
        assert total.low is not None
        assert total.low <= 0.95
    share = inferred.coverage().share
    assert share is not None
    assert share <= 0.95
    assert median(found.inferred.errors) <= MOST_ERROR[count]
