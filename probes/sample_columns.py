"""Many samples as columns: read, judged and stored without an object for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from probes.samples import Sample

Row = TypeVar("Row")
Places: TypeAlias = NDArray[np.intp]
_SPARSE = 2


@dataclass(frozen=True, slots=True)
class Coded:
    """A column as places in a list of its values: most columns have few.

    Attributes
    ----------
    values : sequence
        Some may be equal, and some may not occur.
    codes : array of int, length n
    """

    values: Sequence[Any]
    codes: NDArray[np.intp]

    @classmethod
    def of(cls, found: Sequence[Any]) -> Coded:
        """Return a column of hashable values."""
        places: dict[Any, int] = {}
        codes = [places.setdefault(one, len(places)) for one in found]
        return cls(list(places), np.array(codes, np.intp))

    @classmethod
    def same(cls, value: Any, count: int) -> Coded:
        """Return a column that has one value."""
        return cls((value,), np.zeros(count, np.intp))

    def take(self, places: Any) -> Coded:
        """Return the values in some places."""
        return Coded(self.values, self.codes[places])

    def where(self, chosen: NDArray[np.bool_], other: Any) -> Coded:
        """Return the values where they are chosen, and another one elsewhere."""
        if chosen.all():
            return self
        if not chosen.any():
            return Coded.same(other, len(chosen))
        codes = np.where(chosen, self.codes, len(self.values))
        return Coded([*self.values, other], codes)

    def mapped(self, function: Callable[[Any], Any]) -> Coded:
        """Return what a function makes of each value; values that do not occur are asked, too."""
        return Coded(list(map(function, self.values)), self.codes)

    def array(self, kind: type[np.generic]) -> NDArray[Any]:
        """Return the values as an array."""
        return np.array(self.values, kind)[self.codes]

    def each(self) -> list[Any]:
        """Return the values one by one."""
        if len(self.values) == 1:
            return [self.values[0]] * len(self.codes)
        return list(map(self.values.__getitem__, self.codes.tolist()))


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """Samples as columns: attributes are the fields of :class:`~probes.samples.Sample`."""

    src: Coded
    dst: Coded
    metric: Coded
    value: NDArray[np.float64]
    measured_at_s: NDArray[np.float64]
    tool: Coded
    connections: Coded
    duration_s: Coded
    warmed_up: Coded
    src_zone: Coded
    dst_zone: Coded
    src_vm: Coded
    dst_vm: Coded
    detail: Coded
    address: Coded
    new_level: Coded
    intervals: Coded

    @classmethod
    def of(cls, samples: Sequence[Sample]) -> SampleColumns:
        """Return samples as columns.

        Raises
        ------
        TypeError, OverflowError
            If a value or a time is no number.
        """
        columns: list[Any] = list(zip(*samples, strict=True)) or [()] * len(Sample._fields)
        found: list[Any] = [
            *map(Coded.of, columns[:3]),
            # Texts would be read as numbers otherwise.
            *(np.array([one + 0.0 for one in numbers], np.float64) for numbers in columns[3:5]),
            *map(Coded.of, columns[5:]),
        ]
        return cls(*found)

    def __len__(self) -> int:
        """Return how many samples there are."""
        return len(self.value)

    def __getitem__(self, places: Any) -> SampleColumns:
        """Return the samples in some places."""
        found = (getattr(self, name) for name in Sample._fields)
        taken: list[Any] = [
            one.take(places) if isinstance(one, Coded) else one[places] for one in found
        ]
        return SampleColumns(*taken)

    def over(self, address: str) -> SampleColumns:
        """Return the same samples over a kind of address."""
        return replace(self, address=Coded.same(address, len(self)))

    def samples(self) -> Iterator[Sample]:
        """Yield the samples one by one."""
        found = (getattr(self, name) for name in Sample._fields)
        columns = (one.each() if isinstance(one, Coded) else one.tolist() for one in found)
        return map(Sample._make, zip(*columns, strict=True))


def first_places(keys: NDArray[np.int64], size: int) -> tuple[Places, Places]:
    """Return where each different key is first, by key, and which of these each key is.

    Parameters
    ----------
    keys : array of int, length n
    size : int
        All are below it.
    """
    count = len(keys)
    if size > _SPARSE * count:
        _, first, number = np.unique(keys, return_index=True, return_inverse=True)
        return first, number
    places = np.full(size, count)  # sorting takes longer
    places[keys[::-1]] = np.arange(count)[::-1]
    used = np.flatnonzero(places < count)
    number = np.empty(size, np.intp)
    number[used] = np.arange(len(used))
    return places[used], number[keys]


def grouped(rows: Iterable[Row | SampleColumns], most: int) -> Iterator[SampleColumns | list[Row]]:
    """Yield rows many at once, as columns where they come as such.

    Parameters
    ----------
    most : int
        How many that come one by one are yielded at once.
    """
    alone: list[Row] = []
    for row in rows:
        if isinstance(row, SampleColumns):
            if alone:
                yield alone
                alone = []
            yield row
            continue
        alone.append(row)
        if len(alone) == most:
            yield alone
            alone = []
    if alone:
        yield alone
