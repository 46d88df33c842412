"""All links of a snapshot as arrays: how they are made at once, and written as blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.columns.block import (
    COUNTS,
    FIGURE_COUNTS,
    FIGURE_NUMBERS,
    FORMATS,
    SIDE,
    Block,
    assembled,
)
from planner.model.columns.links import LinkColumns, Origins, with_counts
from planner.model.errors import InputError
from planner.model.estimate import ADDRESS_KINDS, Estimate, Origin
from planner.model.link import LIMITED_BY, LINK_FIGURES, Link, LinkFigure

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
_DTYPES: dict[str, Any] = {"d": np.dtype("<f8"), "I": np.dtype("<u4"), "B": np.dtype("u1")}
_NO_PRIOR = (nan,) * 4
_SLOTS = SIDE * SIDE


class EstimateArrays(NamedTuple):
    """Estimates as arrays of one shape.

    Attributes
    ----------
    low, expected, high : array
        NaN where there is none.
    origin : array of int
        Number of the origin.
    samples, links : array of int
    newest_s, oldest_s : array
        NaN where there is none.
    """

    low: Floats
    expected: Floats
    high: Floats
    origin: NDArray[np.int32]
    samples: NDArray[np.int32]
    links: NDArray[np.int32]
    newest_s: Floats
    oldest_s: Floats

    @classmethod
    def none(cls, *shape: int) -> EstimateArrays:
        """Return arrays without an estimate."""
        return cls._make(
            np.zeros(shape, np.int32) if name in _COUNTED else np.full(shape, nan)
            for name in cls._fields
        )

    @classmethod
    def of(cls, estimates: Sequence[Estimate | None], origins: Origins) -> EstimateArrays:
        """Return estimates as arrays of their number."""
        found = cls.none(len(estimates))
        for place, one in enumerate(estimates):
            if one is not None:
                found.set(place, one, origins)
        return found

    @property
    def known(self) -> NDArray[np.bool_]:
        """Where there is an estimate."""
        return ~np.isnan(self.expected)

    def at(self, place: Any, origins: Origins) -> Estimate | None:
        """Return one of the estimates."""
        values = [column[place].item() for column in self]
        low, expected, high, number, *counts = values
        if expected != expected:
            return None
        return Estimate(low, expected, high, with_counts(origins.all[number], *counts))

    def set(self, place: Any, estimate: Estimate, origins: Origins) -> None:
        """Put one in a place."""
        origin = estimate.origin
        values = (
            *(estimate.low, estimate.expected, estimate.high, origins.number_of(origin)),
            *(origin.samples, origin.links, origin.newest_s, origin.oldest_s),
        )
        columns: Sequence[NDArray[Any]] = self
        for column, value in zip(columns, values, strict=True):
            column[place] = nan if value is None else value

    def take(self, places: Any) -> EstimateArrays:
        """Return those in some places."""
        return EstimateArrays._make(column[places] for column in self)

    def put(self, places: Any, others: EstimateArrays) -> None:
        """Put others in some places."""
        columns: Sequence[NDArray[Any]] = self
        for column, values in zip(columns, others, strict=True):
            column[places] = values

    def with_bounds(
        self, low: Floats, expected: Floats, high: Floats, origin: NDArray[np.int32]
    ) -> EstimateArrays:
        """Return others that rest on the same samples."""
        return self._replace(low=low, expected=expected, high=high, origin=origin)


_COUNTED = ("origin", "samples", "links")


@dataclass(frozen=True)
class LinkArrays:
    """Links between numbered regions.

    Attributes
    ----------
    names : sequence of str, length n
        The regions: their numbers are their places here.
    origins : Origins
    src, dst : array of int, length m
        Numbers of the ends of each link.
    columns : list of arrays of length m
        In the order and the formats of :mod:`planner.model.columns.block`.
    """

    names: Sequence[str]
    origins: Origins
    src: Ints
    dst: Ints
    columns: list[NDArray[Any]]

    @classmethod
    def of(cls, links: Iterable[Link], names: Iterable[str] = ()) -> LinkArrays:
        """Return links as a table.

        Parameters
        ----------
        names : iterable of str, optional
            Regions that come first.

        Raises
        ------
        ValueError
            If a link's limit or kind of address has a name that is not known.
        OverflowError
            If a count has more than 32 bits.
        """
        found = list(links)
        ends = (end for link in found for end in (link.src, link.dst))
        index = {name: number for number, name in enumerate(dict.fromkeys((*names, *ends)))}
        origins = Origins()
        columns = [
            np.array(values, _DTYPES[name])
            for name, values in zip(FORMATS, _columns_of(found, origins.number_of), strict=True)
        ]
        src = np.array([index[link.src] for link in found], np.int64)
        dst = np.array([index[link.dst] for link in found], np.int64)
        return cls(list(index), origins, src, dst, columns)

    @classmethod
    def of_figures(
        cls,
        names: Sequence[str],
        origins: Origins,
        ends: tuple[Ints, Ints],
        figures: Sequence[EstimateArrays],
        others: Sequence[NDArray[Any]],
    ) -> LinkArrays:
        """Return links whose figures are arrays.

        Parameters
        ----------
        names, origins
        ends : (array, array)
        figures : sequence of EstimateArrays
            In the order of :data:`~planner.model.link.LINK_FIGURES`.
        others : sequence of arrays
            Loss, the four numbers of the prior, limit, and kind of address.
        """
        *numbers, limit, address = others
        found: list[NDArray[Any]] = []
        for one in figures:
            found += [one.low, one.expected, one.high, one.newest_s, one.oldest_s]
        found += numbers
        for one in figures:
            found += [one.origin, one.samples, one.links]
        found += [limit, address]
        columns = [
            values.astype(_DTYPES[name], copy=False)
            for name, values in zip(FORMATS, found, strict=True)
        ]
        return cls(names, origins, *ends, columns)

    def __len__(self) -> int:
        """Return how many links there are."""
        return len(self.src)

    def take(self, places: Any) -> LinkArrays:
        """Return some of the links."""
        columns = [column[places] for column in self.columns]
        return LinkArrays(self.names, self.origins, self.src[places], self.dst[places], columns)

    def joined(self, other: LinkArrays) -> LinkArrays:
        """Return these links and others of the same regions and origins."""
        columns = map(np.concatenate, zip(self.columns, other.columns, strict=True))
        src = np.concatenate([self.src, other.src])
        return LinkArrays(
            self.names, self.origins, src, np.concatenate([self.dst, other.dst]), list(columns)
        )

    def placed(self, places: Ints, names: Sequence[str]) -> LinkArrays:
        """Return the same links between regions that have other numbers.

        Parameters
        ----------
        places : array of int, length n
            The new number of each region.
        names : sequence of str
            All that have a number.
        """
        src, dst = places[self.src], places[self.dst]
        return LinkArrays(names, self.origins, src, dst, self.columns)

    def origins_of(self, name: LinkFigure) -> list[Origin]:
        """Return the origins that a figure of some link has, without counts and times."""
        numbers = self.columns[COUNTS + LINK_FIGURES.index(name) * FIGURE_COUNTS]
        used = np.flatnonzero(np.bincount(numbers))
        return [self.origins.all[number] for number in used.tolist()]

    def blocks(
        self, numbers: Sequence[int], number_of: Callable[[Origin], int]
    ) -> Iterator[tuple[tuple[int, int], int, bytes]]:
        """Yield the links as blocks: which one, how many links it has, and its memory.

        Parameters
        ----------
        numbers : sequence of int, length n
            Of each region in the blocks.
        number_of : callable
            Returns the number under which an origin is kept, without counts and times of its
            samples.

        Raises
        ------
        InputError
            If a link comes twice, or a figure's bounds are out of order or no numbers.
        """
        if not len(self):
            return
        of_region = np.array(numbers, np.int64)
        src, dst = of_region[self.src], of_region[self.dst]
        width = int(of_region.max()) // SIDE + 1
        keys = ((src // SIDE) * width + dst // SIDE) * _SLOTS + src % SIDE * SIDE + dst % SIDE
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        self._check(order, keys)
        renumbered = self._renumbered(number_of)
        begins = np.flatnonzero(np.diff(keys // _SLOTS, prepend=-1))
        for begin, end in zip(begins.tolist(), [*begins[1:].tolist(), len(keys)], strict=True):
            places = order[begin:end]
            present = np.zeros(_SLOTS, np.uint8)
            present[keys[begin:end] % _SLOTS] = 1
            pieces = (
                (column[places] if new is None else new[column[places]]).tobytes()
                for column, new in zip(self.columns, renumbered, strict=True)
            )
            bitmap = np.packbits(present, bitorder="little").tobytes()
            place = divmod(int(keys[begin]) // _SLOTS, width)
            yield place, end - begin, assembled(bitmap, end - begin, pieces)

    def _renumbered(self, number_of: Callable[[Origin], int]) -> list[NDArray[Any] | None]:
        """Return, for columns of origins, the new number by the old one."""
        used = np.zeros(len(self.origins.all), np.bool_)
        places = [COUNTS + figure * FIGURE_COUNTS for figure in range(len(LINK_FIGURES))]
        for place in places:
            used[self.columns[place]] = True
        new: NDArray[Any] = np.zeros(len(used), _DTYPES["I"])
        for number in np.flatnonzero(used).tolist():
            new[number] = number_of(self.origins.all[number])
        return [new if place in places else None for place in range(len(FORMATS))]

    def _check(self, order: Ints, keys: Ints) -> None:
        twice = np.flatnonzero(np.diff(keys) == 0)
        if len(twice):
            raise InputError(
                self._named(order[twice[0]]), "comes twice", remedy="Give each link once."
            )
        for figure, name in enumerate(LINK_FIGURES):
            begin = figure * FIGURE_NUMBERS
            low, expected, high = self.columns[begin : begin + 3]
            wrong = np.flatnonzero(~((low <= expected) & (expected <= high)))
            if len(wrong):
                at = wrong[0]
                raise InputError(
                    self._named(at),
                    f"has bounds of {name} that are out of order or no numbers",
                    value=f"{low[at]:g} <= {expected[at]:g} <= {high[at]:g}",
                    remedy="Give low, expected and high in this order.",
                )

    def _named(self, place: Any) -> str:
        return f"{self.names[self.src[place]]} -> {self.names[self.dst[place]]}"

    def as_columns(self) -> LinkColumns:
        """Return the links as blocks, of which views are made."""
        origins = Origins()
        blocks = {
            place: Block(data)
            for place, _, data in self.blocks(range(len(self.names)), origins.number_of)
        }
        return LinkColumns(dict(enumerate(self.names)), blocks, dict(enumerate(origins.all)))


def _columns_of(
    links: Sequence[Link], number_of: Callable[[Origin], int]
) -> list[Sequence[float | int]]:
    numbers: list[Sequence[float]] = []
    counts: list[Sequence[int]] = []
    for name in LINK_FIGURES:
        estimates = [getattr(link, name) for link in links]
        origins = [estimate.origin for estimate in estimates]
        numbers += [[getattr(one, bound) for one in estimates] for bound in _BOUNDS]
        numbers.append([nan if o.newest_s is None else o.newest_s for o in origins])
        numbers.append([nan if o.oldest_s is None else o.oldest_s for o in origins])
        counts.append([number_of(origin) for origin in origins])
        counts += [[origin.samples for origin in origins], [origin.links for origin in origins]]
    numbers.append([nan if link.loss_pct is None else link.loss_pct for link in links])
    priors = [link.aggregate_gbps.prior or _NO_PRIOR for link in links]
    numbers += [[prior[part] for prior in priors] for part in range(len(_NO_PRIOR))]
    counts.append([LIMITED_BY.index(link.limited_by) for link in links])
    counts.append([ADDRESS_KINDS.index(link.address) for link in links])
    return [*numbers, *counts]


_BOUNDS = ("low", "expected", "high")
