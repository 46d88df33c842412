"""All links of one kind as blocks of columns, and the views of them that a network is made of."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import nan
from typing import Any

from planner.model.columns.block import (
    ADDRESS,
    COUNTS,
    EXPECTED,
    FIGURE_COUNTS,
    FIGURE_NUMBERS,
    LIMIT,
    LOSS,
    NEWEST_S,
    PRIOR,
    PRIOR_EXPECTED,
    PRIOR_MEMORY_YEARS,
    SIDE,
    Block,
)
from planner.model.columns.rows import Ageing, Asked, LinkRow, Maker
from planner.model.estimate import ADDRESS_KINDS, AGELESS, Estimate, Origin, Prior, aged_levels
from planner.model.link import FADING, LIMITED_BY, LINK_FIGURES, Expected, Link


class Origins:
    """Numbers for the origins of links, without the counts and times of their samples."""

    def __init__(self) -> None:
        self.numbers: dict[Origin, int] = {}
        self.all: list[Origin] = []
        """By number."""
        # Most estimates share the very figures of another; hashing them takes longer.
        self._seen: dict[tuple[str, str, str | None, int], tuple[int, Origin]] = {}

    def number_of(self, origin: Origin) -> int:
        """Return the number of an origin, a new one where it is new."""
        kind, method, _, _, _, _, address, figures = origin
        seen = (kind, method, address, id(figures))
        found = self._seen.get(seen)
        if found is None:
            shared = Origin(kind, method, address=address, figures=figures)
            number = self.numbers.setdefault(shared, len(self.numbers))
            if number == len(self.all):
                self.all.append(shared)
            # The origin is kept, so that no other object has the id of its figures.
            found = self._seen[seen] = (number, origin)
        return found[0]


def with_counts(
    origin: Origin, samples: int, links: int, newest_s: float, oldest_s: float
) -> Origin:
    """Return an origin with the counts and times of its samples; NaN where there is no time."""
    if not (samples or links or newest_s == newest_s or oldest_s == oldest_s):
        return origin
    return Origin(
        origin.kind,
        origin.method,
        samples,
        links,
        newest_s if newest_s == newest_s else None,
        oldest_s if oldest_s == oldest_s else None,
        origin.address,
        origin.figures,
    )


class LinkColumns:
    """Links between numbered regions.

    Parameters
    ----------
    names : mapping
        Number to region id.
    blocks : mapping
        Numbers of source and destination, divided by :data:`~.block.SIDE`, to the block of them.
    origins : mapping
        Number to origin, without counts and times of samples.
    """

    def __init__(
        self,
        names: Mapping[int, str],
        blocks: Mapping[tuple[int, int], Block],
        origins: Mapping[int, Origin],
    ) -> None:
        self.names = names
        self.numbers = {name: number for number, name in names.items()}
        self.blocks = blocks
        self.origins = origins
        self._of_row: dict[int, list[tuple[int, Block]]] = {}
        for (row, column), block in sorted(blocks.items(), key=lambda item: item[0]):
            self._of_row.setdefault(row, []).append((column * SIDE, block))
        self._have_private: dict[int, bool] = {}

    def __len__(self) -> int:
        """Return how many links there are."""
        return sum(map(len, self.blocks.values()))

    def __iter__(self) -> Iterator[Link]:
        """Yield all links, by the numbers of source and destination."""
        for src, name in sorted(self.names.items()):
            for dst, block, at in self._row(src):
                yield self._link(name, self.names[dst], block, at)

    def row(self, src: str) -> LinkRow:
        """Return the links out of a region, as a view."""
        return LinkRow(ColumnsRow(self, src))

    def sources(self) -> list[str]:
        """Return the regions with links out of them, by number."""
        return [name for src, name in sorted(self.names.items()) if any(self._row(src))]

    def destinations(self, src: str) -> list[str]:
        """Return where the links out of a region lead, by number."""
        number = self.numbers.get(src)
        return [] if number is None else [self.names[dst] for dst, _, _ in self._row(number)]

    def link(self, src: str, dst: str) -> Link | None:
        """Return a link, made anew; None where there is none."""
        found = self._place(src, dst)
        return found and self._link(src, dst, *found)

    def expected_of(
        self, pairs: Sequence[tuple[str, str]], aged: Sequence[Ageing]
    ) -> list[Expected | None]:
        """Return what is expected of links; see :meth:`.Maker.expected_of`."""
        found: list[Expected | None] = [None] * len(pairs)
        numbers = self.numbers
        of_block: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        for position, (src, dst) in enumerate(pairs):
            source, destination = numbers.get(src), numbers.get(dst)
            if source is not None and destination is not None:
                place = source // SIDE, destination // SIDE
                ends = position, source % SIDE, destination % SIDE
                of_block.setdefault(place, []).append(ends)
        for place, asked in of_block.items():
            block = self.blocks.get(place)
            if block is None:
                continue
            ats = [(position, at) for position, i, j in asked if (at := block.at(i, j)) is not None]
            of_ats = self._expected_at(block, [at for _, at in ats], aged)
            for (position, _), one in zip(ats, of_ats, strict=True):
                found[position] = one
        return found

    def _expected_at(
        self, block: Block, ats: Sequence[int], aged: Sequence[Ageing]
    ) -> Iterator[Expected]:
        """Yield what is expected of links of a block, figure by figure: it has few columns."""
        figures = []
        for figure, name in enumerate(LINK_FIGURES):
            begin = figure * FIGURE_NUMBERS
            numbers = block.values(COUNTS + figure * FIGURE_COUNTS, ats)
            levels = block.values(begin + EXPECTED, ats)
            if aged:
                ages = {number: self.origins[number].method not in AGELESS for number in {*numbers}}
                newest = block.values(begin + NEWEST_S, ats)
                at_s = [
                    at_s if ages[number] else nan
                    for at_s, number in zip(newest, numbers, strict=True)
                ]
                # Without a prior, it fades around itself if at all.
                priors: Sequence[float] = [nan] * len(ats)
                years = [fading.memory_years if (fading := FADING[name]) else nan] * len(ats)
                if name == "aggregate_gbps":
                    priors = block.values(PRIOR_EXPECTED, ats)
                    years = block.values(PRIOR_MEMORY_YEARS, ats)
                for ageing in aged:
                    levels = aged_levels(levels, at_s, priors, years, *ageing)
            figures.append(levels)
        cuts = {number: self.origins[number].rate_cut for number in {*numbers}}
        return map(Expected, *figures, [cuts[number] for number in numbers])

    def _place(self, src: str, dst: str) -> tuple[Block, int] | None:
        """Return the block of a link, and where it is in its columns."""
        source, destination = self.numbers.get(src), self.numbers.get(dst)
        if source is None or destination is None:
            return None
        block = self.blocks.get((source // SIDE, destination // SIDE))
        at = None if block is None else block.at(source % SIDE, destination % SIDE)
        return None if block is None or at is None else (block, at)

    def between(self, src: str, dst: str) -> Iterator[Link]:
        """Yield the links out of a source, then those of others into a destination, by number."""
        if (number := self.numbers.get(src)) is not None:
            for to, block, at in self._row(number):
                yield self._link(src, self.names[to], block, at)
        for _, name in sorted(self.names.items()):
            if name != src and (link := self.link(name, dst)) is not None:
                yield link

    def has_private(self, src: str) -> bool:
        """Whether a link may be over private addresses out of a region, or one near it."""
        number = self.numbers.get(src)
        if number is None:
            return False
        row = number // SIDE
        if row not in self._have_private:
            found = self._of_row.get(row, ())
            self._have_private[row] = any(block.has_private() for _, block in found)
        return self._have_private[row]

    def blocks_of(self, src: str) -> list[tuple[int, Block]]:
        """Return the blocks with links out of a region, and the number of their first ends."""
        number = self.numbers.get(src)
        return [] if number is None else self._of_row.get(number // SIDE, [])

    def _row(self, src: int) -> Iterator[tuple[int, Block, int]]:
        for first, block in self._of_row.get(src // SIDE, ()):
            start, destinations = block.row(src % SIDE)
            for at, dst in enumerate(destinations, start):
                yield first + dst, block, at

    def _link(self, src: str, dst: str, block: Block, at: int) -> Link:
        values = [column[at & mask] for column, mask in block.columns]
        loss_pct, prior = values[LOSS], values[PRIOR:COUNTS]
        return Link(
            src,
            dst,
            self._estimate(values, 0),
            self._estimate(values, 1),
            self._estimate(values, 2, Prior(*prior) if prior[0] == prior[0] else None),
            loss_pct if loss_pct == loss_pct else None,
            LIMITED_BY[values[LIMIT]],
            ADDRESS_KINDS[values[ADDRESS]],
        )

    def _estimate(self, values: list[Any], figure: int, prior: Prior | None = None) -> Estimate:
        begin, counted = figure * FIGURE_NUMBERS, COUNTS + figure * FIGURE_COUNTS
        low, expected, high, newest_s, oldest_s = values[begin : begin + FIGURE_NUMBERS]
        number, samples, links = values[counted : counted + FIGURE_COUNTS]
        origin = with_counts(self.origins[number], samples, links, newest_s, oldest_s)
        return Estimate(low, expected, high, origin, prior)


class ColumnsRow(Maker):
    """Makes the links out of one region from columns."""

    def __init__(self, columns: LinkColumns, src: str) -> None:
        self.columns, self.src = columns, src

    def names(self) -> list[str]:
        """Return where links lead, by the regions' numbers."""
        return self.columns.destinations(self.src)

    def make(self, dst: str) -> Link | None:
        """Return a link of the columns."""
        return self.columns.link(self.src, dst)

    def kind(self) -> Hashable:
        """Return this class and the columns."""
        return ColumnsRow, id(self.columns)

    def expected_of(self, asked: Asked, aged: Sequence[Ageing] = ()) -> list[Expected | None]:
        """Return what is expected of links of the columns."""
        return self.columns.expected_of([(row.src, dst) for row, dst in asked], aged)

    def may_be_private(self) -> bool:
        """Look at the column of addresses."""
        return self.columns.has_private(self.src)
