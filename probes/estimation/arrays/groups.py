"""Values in groups that follow each other: medians and bounds of all groups at once.

Logarithms and powers are those of :mod:`math`, one by one: NumPy's differ in the last digit by the
processor that it runs on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, repeat
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from probes.estimation.bounds import LEAST_NOISE, MAD_TO_SIGMA, NORMAL_90

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]


def each(function: Callable[..., float], *values: Floats) -> Floats:
    """Return what a function says of the values of arrays, one by one."""
    shape = values[0].shape
    lists = (one.ravel().tolist() for one in values)
    return np.fromiter(map(function, *lists), np.float64, values[0].size).reshape(shape)


def powers(values: Floats, exponent: float = 2.0) -> Floats:
    """Return powers of values, as Python works them out."""
    found = map(pow, values.ravel().tolist(), repeat(exponent))
    return np.fromiter(found, np.float64, values.size).reshape(values.shape)


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the different values in order; :func:`numpy.unique` loads masked arrays for that."""
    ordered = np.sort(values, axis=None)
    first = np.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    found: NDArray[Any] = ordered[first]
    return found


def coded(keys: Ints) -> tuple[list[int], Ints]:
    """Return the different keys in order, and which of them each is; for keys from 0 to few."""
    there = np.zeros(int(keys.max(initial=-1)) + 1, np.bool_)
    there[keys] = True
    return np.flatnonzero(there).tolist(), (np.cumsum(there) - 1)[keys]


class Groups(NamedTuple):
    """Where groups begin, and where the last one ends.

    Attributes
    ----------
    begins : array of int, length m + 1
    """

    begins: Ints

    @classmethod
    def of(cls, *keys: NDArray[Any]) -> Groups:
        """Return the groups in which all keys are the same; equal ones follow each other."""
        changes = np.zeros(len(keys[0]), np.bool_)
        for key in keys:
            changes[1:] |= key[1:] != key[:-1]
        changes[:1] = True
        return cls(np.append(np.flatnonzero(changes), len(changes)))

    def __iter__(self) -> Iterator[Any]:
        """Iterate over slices."""
        return (slice(begin, end) for begin, end in pairwise(self.begins.tolist()))

    @property
    def first(self) -> Ints:
        """Places of the first of each group."""
        return self.begins[:-1]

    @property
    def counts(self) -> Ints:
        """How many there are in each group."""
        return np.diff(self.begins)

    def numbers(self) -> Ints:
        """Return the number of its group for each value."""
        return np.repeat(np.arange(len(self.first)), self.counts)

    def spread(self, of_groups: NDArray[Any]) -> NDArray[Any]:
        """Return what is of each group for each of its values."""
        return np.repeat(of_groups, self.counts)

    def reduced(self, function: np.ufunc, values: NDArray[Any]) -> NDArray[Any]:
        """Return what a function such as :obj:`numpy.maximum` makes of each group."""
        found: NDArray[Any] = function.reduceat(values, self.first) if len(values) else values
        return found

    def kept(self, chosen: Bools) -> Groups:
        """Return the groups of the values that are chosen, without those that have none."""
        return Groups.of(self.numbers()[chosen])

    def medians(self, values: Floats) -> Floats:
        """Return the median of each group."""
        counts = self.counts
        if not len(values) or counts.max() == 1:
            return values
        ordered = values[np.lexsort((values, self.numbers()))]
        below, above = ordered[self.first + (counts - 1) // 2], ordered[self.first + counts // 2]
        found: Floats = np.where(below == above, below, (below + above) / 2)
        return found

    def deviations(self, values: Floats, middles: Floats) -> Floats:
        """Return the median of absolute deviations of each group."""
        return self.medians(np.abs(values - self.spread(middles)))

    def bounds(self, values: Floats, noise: Floats | float) -> tuple[Floats, Floats, Floats]:
        """Return, for each group, :func:`probes.estimation.bounds.bounds_of` its values."""
        middles, counts = self.medians(values), self.counts
        noises = np.broadcast_to(np.asarray(noise, np.float64), middles.shape)
        errors = np.maximum(LEAST_NOISE, noises)
        if len(many := np.flatnonzero(counts > 1)):
            sigmas = MAD_TO_SIGMA * self.deviations(values, middles)[many]
            expected = middles[many]
            with np.errstate(divide="ignore", invalid="ignore"):
                spreads = np.where(expected > 0, NORMAL_90 * sigmas / expected, 0.0)
            squares = powers(noises[many]) / counts[many] + powers(spreads)
            errors[many] = np.maximum(LEAST_NOISE, np.sqrt(squares))
        return middles / (1 + errors), middles, middles * (1 + errors)
