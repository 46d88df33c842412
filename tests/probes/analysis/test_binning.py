"""Making a series small loses no sample, and medians stay medians."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.analysis.binning import bins, histogram, joined, points, weighted_median

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


@given(st.lists(st.tuples(FIGURES, st.integers(1, 9)), min_size=1, max_size=30))
def test_a_weighted_median_is_that_of_repeated_values(weighted: list[tuple[float, int]]) -> None:
    values, weights = (np.array(part) for part in zip(*weighted, strict=True))
    expected = np.median(np.repeat(values.astype(float), weights))
    assert weighted_median(values.astype(float), weights) == pytest.approx(expected)


@given(st.lists(FIGURES, max_size=200))
def test_a_histogram_counts_every_value(values: list[float]) -> None:
    bars = histogram(np.array(values, float))
    assert sum(bar.samples for bar in bars) == len(values)
    assert len(bars) <= 60
    assert all(a.high == b.low for a, b in itertools.pairwise(bars))
