"""Making a series small loses no sample, and medians stay medians."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.analysis.binning import Points, bins, histogram, joined, points

FIGURES = st.floats(0, 1e6)
SERIES = st.lists(st.tuples(st.floats(1e9, 2e9), FIGURES), max_size=60)


@given(SERIES, SERIES, st.integers(1, 50))
def test_bins_hold_every_sample_once(
    first: list[tuple[float, float]], second: list[tuple[float, float]], most: int
) -> None:
    parts = [points(*np.array(sorted(part), float).reshape(-1, 2).T) for part in (first, second)]
    whole = joined(*parts)
    found = list(bins(whole, most))
    everything = sorted(first + second)
    assert len(found) <= most
    assert sum(each.samples for each in found) == len(everything)
    begin = 0
    for each in found:
        values = [value for _, value in everything[begin : begin + each.samples]]
        begin += each.samples
        assert (each.low, each.high) == (min(values), max(values))
        assert each.median == pytest.approx(float(np.median(values)))
    assert all(a.end_s <= b.begin_s for a, b in itertools.pairwise(found))


@given(st.lists(FIGURES, max_size=200))
def test_a_histogram_counts_every_value(values: list[float]) -> None:
    bars = histogram(np.array(values, float))
    assert sum(bar.samples for bar in bars) == len(values)
    assert len(bars) <= 60
    assert all(a.high == b.low for a, b in itertools.pairwise(bars))


def test_summaries_count_with_the_weight_of_their_samples() -> None:
    at_s, weights = np.array([1.0, 2.0, 3.0]), np.array([1, 5, 2])
    medians = np.array([10.0, 20.0, 40.0])
    (found,) = bins(Points(at_s, at_s, weights, medians - 1, medians, medians + 1), 1)
    assert (found.samples, found.low, found.median, found.high) == (8, 9.0, 20.0, 41.0)
