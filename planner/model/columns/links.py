"""All links of one kind as blocks of columns, and the views of them that a network is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from planner.hints import TYPE_CHECKING
from planner.model.columns.block import (
    ADDRESS,
    COUNTS,
    FIGURE_COUNTS,
    FIGURE_NUMBERS,
    LIMIT,
    LOSS,
    PRIOR,
    SIDE,
    Block,
)
from planner.model.columns.rows import Ageing, LinkRow, Maker
from planner.model.estimate import ADDRESS_KINDS, AGELESS, Estimate, Origin, Prior, aged_level
from planner.model.link import FADING, LIMITED_BY, Expected, Link

if TYPE_CHECKING:
    from typing import Any

    from planner.model.link import LinkFigure


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

    def expected(self, src: str, dst: str, aged: Sequence[Ageing]) -> Expected | None:
        """Return what is expected of a link; see :meth:`.Maker.expected`."""
        found = self._place(src, dst)
        if found is None:
            return None
        block, at = found
        levels: list[float] = []
        for name, figures, mask, newest, newest_mask, numbers, numbers_mask in block.expectations:
            level, newest_s = figures[at & mask], newest[at & newest_mask]
            origin = self.origins[numbers[at & numbers_mask]]
            if aged and level > 0 and newest_s == newest_s and origin.method not in AGELESS:
                level = self._aged(level, newest_s, name, block, at, aged)
            levels.append(level)
        rtt_ms, per_flow_mbps, aggregate_gbps = levels
        return Expected(rtt_ms, per_flow_mbps, aggregate_gbps, origin.rate_cut)

    def _aged(
        self,
        level: float,
        newest_s: float,
        name: LinkFigure,
        block: Block,
        at: int,
        aged: Sequence[Ageing],
    ) -> float:
        fading = FADING[name]
        prior, memory_years = None, fading.memory_years if fading else None
        if name == "aggregate_gbps":
            low, expected, _, years = (v[at & mask] for v, mask in block.columns[PRIOR:COUNTS])
            if low == low:
                prior, memory_years = expected, years
        if memory_years is not None:
            for ageing in aged:
                level = aged_level(level, newest_s, prior, memory_years, *ageing)
        return level

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

    def expected(self, dst: str, aged: Sequence[Ageing] = ()) -> Expected | None:
        """Return what is expected of a link of the columns."""
        return self.columns.expected(self.src, dst, aged)

    def may_be_private(self) -> bool:
        """Look at the column of addresses."""
        return self.columns.has_private(self.src)
