"""Values in groups that follow each other: medians and bounds of all groups at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
LEAST_NOISE = 0.01
NORMAL_90 = 1.645
MAD_TO_SIGMA = 1.4826


class Groups(NamedTuple):
    """Begins of m groups, and the end of the last one."""

    begins: Ints

    @classmethod
    def of(cls, *keys: NDArray[Any]) -> Groups:
        """Return the groups in which all keys are the same; equal ones follow each other."""
        changes = np.zeros(len(keys[0]), np.bool_)
        for key in keys:
            changes[1:] |= key[1:] != key[:-1]
        changes[:1] = True
        return cls(np.append(np.flatnonzero(changes), len(changes)))

    def part(self, number: int) -> slice:
        """Return the places of one group."""
        return slice(int(self.begins[number]), int(self.begins[number + 1]))

    def __iter__(self) -> Iterator[Any]:
        """Iterate over slices."""
        return (slice(begin, end) for begin, end in pairwise(self.begins.tolist()))

    @property
    def first(self) -> Ints:
        """Places of the first of each group."""
        return self.begins[:-1]

    @property
    def counts(self) -> Ints:
        """The size of each group."""
        return np.diff(self.begins)

    def numbers(self) -> Ints:
        """Return each value's number of its group."""
        return np.repeat(np.arange(len(self.first)), self.counts)

    def spread(self, of_groups: NDArray[Any]) -> NDArray[Any]:
        """Repeat a figure of each group for each of its values."""
        return np.repeat(of_groups, self.counts)

    def newest(self, most: int) -> Bools:
        """Mark the last values of each group, up to a number."""
        found: Bools = self.spread(self.begins[1:]) - np.arange(self.begins[-1]) <= most
        return found

    def reduced(self, function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """Apply a function such as :obj:`numpy.maximum` to each group."""
        found: NDArray[Any] = function.reduceat(values, self.first) if len(values) else values
        return found

    def differ(self, values: NDArray[Any]) -> Bools:
        """Mark the groups that have several values."""
        found: Bools = self.reduced(np.minimum, values) != self.reduced(np.maximum, values)
        return found

    def medians(self, values: Floats) -> Floats:
        """Return the median of each group."""
        counts = self.counts
        if not len(values) or counts.max() == 1:
            return values
        ordered = values[np.lexsort((values, self.numbers()))]
        found: Floats = ordered[self.first + (counts - 1) // 2] + ordered[self.first + counts // 2]
        return found / 2

    def deviations(self, values: Floats, middles: Floats) -> Floats:
        """Return the median of absolute deviations of each group."""
        return self.medians(np.abs(values - self.spread(middles)))

    def bounds(self, values: Floats, noise: Floats | float) -> tuple[Floats, Floats, Floats]:
        """Return the median of each group, with bounds from spread and noise.

        Noise is the relative error of one measurement, 90th percentile.
        """
        middles, counts = self.medians(values), self.counts
        sigmas = MAD_TO_SIGMA * self.deviations(values, middles)
        with np.errstate(divide="ignore", invalid="ignore"):
            spreads = np.where(middles > 0, NORMAL_90 * sigmas / middles, 0.0)
        errors = np.maximum(LEAST_NOISE, np.sqrt(np.square(noise) / counts + spreads**2))
        return middles / (1 + errors), middles, middles * (1 + errors)


def median_bounds(values: Floats, noise: float) -> tuple[float, float, float]:
    """Return the median of at least one value with bounds; see :meth:`Groups.bounds`."""
    low, expected, high = Groups(np.array([0, len(values)])).bounds(values, noise)
    return low.item(), expected.item(), high.item()
