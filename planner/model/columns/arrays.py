"""Figures of links as arrays, read from the columns that hold them without making a link.

What columns do not hold, such as links from models, is made link by link.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import exp, log, nan
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from planner.model.columns.block import (
    COUNTS,
    EXPECTED,
    FIGURE_COUNTS,
    FIGURE_NUMBERS,
    FORMATS,
    LOSS,
    NEWEST_S,
    PRIOR,
    PRIOR_EXPECTED,
    PRIOR_MEMORY_YEARS,
    SIDE,
    Block,
)
from planner.model.columns.links import ColumnsRow, LinkColumns
from planner.model.columns.rows import Aged, Among, Joined, Maker, Replaced, maker_of
from planner.model.estimate import (
    AGELESS,
    DAYS_PER_YEAR,
    SECONDS_PER_DAY,
    Estimate,
    Fading,
    Kind,
    Prior,
    faded_level,
)
from planner.model.link import FADING, LINK_FIGURES, Link, LinkFigure

Floats: TypeAlias = NDArray[np.float64]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""From the surest on: a figure made of several is as sure as the last of them."""
NO_LINK = -1
_NO_PRIOR = Prior(nan, nan, nan, nan)


class FigureArrays(NamedTuple):
    """One figure of the links out of a region: a value for each of n destinations.

    Attributes
    ----------
    expected : array
        NaN where there is no link.
    kinds : array
        Position in :data:`KINDS`; :data:`NO_LINK` where there is no link.
    measured_at_s : array
        :attr:`.Estimate.measured_at_s`; NaN where there is none.
    prior_expected, memory_years : array
        Of the prior; NaN where there is none.
    """

    expected: Floats
    kinds: NDArray[np.int8]
    measured_at_s: Floats
    prior_expected: Floats
    memory_years: Floats

    def where(self, chosen: NDArray[np.bool_], other: FigureArrays) -> FigureArrays:
        """Return these values where they are chosen, and others elsewhere."""
        parts: Iterable[tuple[NDArray[Any], NDArray[Any]]] = zip(self, other, strict=True)
        return FigureArrays._make(np.where(chosen, own, further) for own, further in parts)

    def aged(self, to_s: float, since_s: float | None, otherwise: Fading | None) -> FigureArrays:
        """Return what is expected as its age lets it stand: what :meth:`.Estimate.aged` says.

        To the last digit: logarithms are those of :mod:`math`, from which NumPy's differ.
        """
        days = (to_s - self.measured_at_s) // SECONDS_PER_DAY
        if since_s is not None:
            days -= np.maximum(0.0, (since_s - self.measured_at_s) // SECONDS_PER_DAY)
        due = (days > 0) & (self.expected > 0)
        has_prior = ~np.isnan(self.prior_expected)
        if otherwise is None:
            due &= has_prior
        if not due.any():
            return self
        own = _each(log, self.expected[due])
        level = own.copy()
        # What has no prior fades around itself, and stays where it is.
        fades = has_prior[due] | ~np.isfinite(own)
        if fades.any():
            prior = np.where(has_prior, self.prior_expected, self.expected)[due][fades]
            years = self.memory_years[due][fades]
            if otherwise is not None:
                years[~has_prior[due][fades]] = otherwise.memory_years
            # Many samples are of one day.
            share, of_share = np.unique(
                -days[due][fades] / (DAYS_PER_YEAR * years), return_inverse=True
            )
            kept = _each(exp, share)[of_share]
            with np.errstate(invalid="ignore"):  # what is expected may be infinite
                level[fades] = faded_level(kept, own[fades], _each(log, prior))
        expected = self.expected.copy()
        expected[due] = _each(exp, level)
        return self._replace(expected=expected)


def _each(function: Callable[[float], float], values: Floats) -> Floats:
    return np.fromiter(map(function, values.tolist()), np.float64, len(values))


class ArrayReader:
    """Reads figures of rows of links as arrays.

    Parameters
    ----------
    regions : iterable of str
        The destinations, in the order that arrays are to have.
    """

    def __init__(self, regions: Iterable[str]) -> None:
        self._index = {region: position for position, region in enumerate(regions)}
        self._columns: dict[LinkColumns, _SpreadColumns] = {}
        nothing = np.full(len(self._index), nan)
        no_link = np.full(len(self._index), NO_LINK, np.int8)
        self._no_links = FigureArrays(nothing, no_link, nothing, nothing, nothing)

    def __len__(self) -> int:
        """Return how many destinations there are."""
        return len(self._index)

    def estimates(self, row: Mapping[str, Link], name: LinkFigure) -> FigureArrays:
        """Return an estimate of all links of a row."""
        return self._read(maker_of(row), name, aged=True)

    def origins(self, row: Mapping[str, Link], name: LinkFigure) -> FigureArrays:
        """Return an estimate of all links of a row whose expected values may not have aged.

        That takes less time, where only the rest matters.
        """
        return self._read(maker_of(row), name, aged=False)

    def count(self, row: Mapping[str, Link]) -> int:
        """Return how many links of a row there are."""
        return int((self.origins(row, "rtt_ms").kinds != NO_LINK).sum())

    def loss_pct(self, row: Mapping[str, Link]) -> Floats:
        """Return the loss of all links of a row; NaN where it was not measured."""
        return self._read(maker_of(row), None, aged=False).expected

    def _read(self, maker: Maker, name: LinkFigure | None, *, aged: bool) -> FigureArrays:
        """Return an estimate; without a name, the loss, which is no estimate."""
        match maker:
            case ColumnsRow(columns=columns, src=src):
                return self._of_columns(columns, src, name)
            case Aged(links=links, to_s=to_s, since_s=since_s):
                found = self._read(links, name, aged=aged)
                return found.aged(to_s, since_s, FADING[name]) if name and aged else found
            case Among(links=links, kept=kept):
                found = self._read(links, name, aged=aged)
                chosen = [region in kept for region in self._index]
                return found if all(chosen) else found.where(np.array(chosen), self._no_links)
            case Joined(links=first, further=second):
                if isinstance(maker, Replaced):
                    first, second = second, first
                found = self._read(first, name, aged=aged)
                further = self._read(second, name, aged=aged)
                if further is self._no_links:
                    return found
                return found.where(found.kinds != NO_LINK, further)
        return self._of_links(maker, name)

    def _of_links(self, maker: Maker, name: LinkFigure | None) -> FigureArrays:
        links = [maker.make(dst) for dst in maker.names() if dst in self._index]
        if not (found := [link for link in links if link is not None]):
            return self._no_links
        at = [self._index[link.dst] for link in found]
        columns = zip(*(_values(link, name) for link in found), strict=True)
        return FigureArrays._make(map(partial(_placed, at), self._no_links, columns))

    def _of_columns(self, columns: LinkColumns, src: str, name: LinkFigure | None) -> FigureArrays:
        if src not in columns.numbers:
            return self._no_links
        if (found := self._columns.get(columns)) is None:
            found = self._columns[columns] = _SpreadColumns(columns, self._index)
        none = self._no_links.expected
        if name is None:
            kinds = found.kinds[found.row(src, COUNTS)]
            return FigureArrays(found.row(src, LOSS), kinds, none, none, none)
        figure = LINK_FIGURES.index(name)
        begin = figure * FIGURE_NUMBERS
        origins = found.row(src, COUNTS + figure * FIGURE_COUNTS)
        prior_expected = memory_years = none
        if name == "aggregate_gbps":
            has_none = np.isnan(found.row(src, PRIOR))
            prior_expected = np.where(has_none, nan, found.row(src, PRIOR_EXPECTED))
            memory_years = np.where(has_none, nan, found.row(src, PRIOR_MEMORY_YEARS))
        newest_s = found.row(src, begin + NEWEST_S)
        return FigureArrays(
            found.row(src, begin + EXPECTED),
            found.kinds[origins],
            np.where(found.ageless[origins], nan, newest_s),
            prior_expected,
            memory_years,
        )


def _placed(at: Sequence[int], missing: NDArray[Any], values: Sequence[float]) -> NDArray[Any]:
    placed = missing.copy()
    placed[at] = values
    return placed


def _values(link: Link, name: LinkFigure | None) -> tuple[float, int, float, float, float]:
    if name is None:
        return nan if link.loss_pct is None else link.loss_pct, 0, nan, nan, nan
    estimate: Estimate = getattr(link, name)
    at_s, prior = estimate.measured_at_s, estimate.prior or _NO_PRIOR
    return (
        estimate.expected,
        KINDS.index(estimate.source),
        nan if at_s is None else at_s,
        prior.expected,
        prior.memory_years,
    )


class _SpreadColumns:
    """Columns of links, spread out in the order of a reader's regions.

    Attributes
    ----------
    kinds, ageless : array
        By the number of an origin, its kind, and whether its age does not matter. The last number
        stands for no link.
    """

    def __init__(self, columns: LinkColumns, index: Mapping[str, int]) -> None:
        self._columns = columns
        slots = (max(columns.numbers.values()) // SIDE + 1) * SIDE
        # Regions that the columns do not have are read from a place after all others.
        numbers = [columns.numbers.get(region, slots) for region in index]
        self._shape, self._numbers = (SIDE, slots + 1), np.array(numbers, np.intp)
        self._no_origin = max(columns.origins, default=-1) + 1
        self.kinds = np.full(self._no_origin + 1, NO_LINK, np.int8)
        self.ageless = np.zeros(self._no_origin + 1, np.bool_)
        for number, origin in columns.origins.items():
            self.kinds[number] = KINDS.index(origin.kind)
            self.ageless[number] = origin.method in AGELESS
        self._blocks: list[tuple[int, Block]] = []
        self._rows: dict[int, NDArray[Any]] = {}

    def row(self, src: str, position: int) -> NDArray[Any]:
        """Return a column of the links out of a region, for all regions of the reader."""
        blocks = self._columns.blocks_of(src)
        if blocks is not self._blocks:  # the rows that share blocks mostly follow each other
            self._blocks, self._rows = blocks, {}
        if position not in self._rows:
            self._rows[position] = self._spread(position)
        row: NDArray[Any] = self._rows[position][self._columns.numbers[src] % SIDE]
        return row

    def _spread(self, position: int) -> NDArray[Any]:
        missing = nan if position < COUNTS else self._no_origin
        rows = np.full(self._shape, missing, FORMATS[position])
        for first, block in self._blocks:
            present = np.unpackbits(np.frombuffer(block.bitmap, np.uint8), bitorder="little")
            values, _ = block.columns[position]  # of one value, all links get it
            rows[:, first : first + SIDE][present.reshape(SIDE, SIDE).view(bool)] = values
        return rows[:, self._numbers]
