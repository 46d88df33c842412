"""Links out of one region that are made when first asked for, and are the same when asked again.

A network of a thousand regions has a million links, of which a question touches a few thousand. A
:class:`LinkRow` stands for a dict of links and has a :class:`Maker` make them: from columns, from
models, or from those of another row. Any thread may read one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from planner.model.link import Expected, Link

Ageing: TypeAlias = tuple[float, float | None]
"""As :meth:`.Link.aged` is told."""
Asked: TypeAlias = "Sequence[tuple[Any, str]]"
"""Makers of links, all of one kind or of any, each with a destination."""


class Maker(ABC):
    """Makes the links out of one region."""

    @abstractmethod
    def names(self) -> Iterable[str]:
        """Return all regions to which there may be a link, in order."""

    @abstractmethod
    def make(self, dst: str) -> Link | None:
        """Return the link to a region, made anew; None where there is none."""

    @abstractmethod
    def may_be_private(self) -> bool:
        """Whether a link may be over private addresses."""

    def may_be_measured(self) -> bool:
        """Whether throughput of a link may have been measured."""
        return True

    def kind(self) -> Hashable:
        """Return what makers have in common that :meth:`expected_of` may ask together."""
        return type(self)

    def expected_of(self, asked: Asked, aged: Sequence[Ageing] = ()) -> list[Expected | None]:
        """Return what is expected of links, in less time than it takes to make them.

        Parameters
        ----------
        asked : sequence of (Maker, str)
            Makers of this one's kind, each with a destination.
        aged : sequence of Ageing
            By what they are to be aged, one after the other.
        """
        found = []
        for maker, dst in asked:
            link = maker.make(dst)
            for to_s, since_s in aged:
                link = link and link.aged(to_s, since_s)
            found.append(link.expected if link else None)
        return found


def expected_of(asked: Asked, aged: Sequence[Ageing] = ()) -> list[Expected | None]:
    """Return what is expected of links of any makers; see :meth:`Maker.expected_of`."""
    if not asked:
        return []
    kinds = {maker: maker.kind() for maker in {maker for maker, _ in asked}}
    if len({*kinds.values()}) == 1:
        return asked[0][0].expected_of(asked, aged)  # type: ignore[no-any-return]
    of_kind: dict[Hashable, list[int]] = {}
    for at, (maker, _) in enumerate(asked):
        of_kind.setdefault(kinds[maker], []).append(at)
    found: list[Expected | None] = [None] * len(asked)
    for places in of_kind.values():
        together = [asked[at] for at in places]
        for at, one in zip(places, together[0][0].expected_of(together, aged), strict=True):
            found[at] = one
    return found


class LinkRow(dict[str, Link]):
    """Destination to link, of one source; a mapping that nobody may change.

    What was made is kept in the dict itself, so that a link that is there is found as quickly as in
    any dict.

    Parameters
    ----------
    maker : Maker
    """

    __slots__ = ("_expected", "_order", "maker")

    def __init__(self, maker: Maker) -> None:
        self.maker = maker
        self._expected: dict[str, Expected] = {}
        self._order: list[str] | None = None

    def __reduce__(self) -> tuple[type[LinkRow], tuple[Maker]]:
        """Leave out what was made of it."""
        return LinkRow, (self.maker,)

    def __missing__(self, dst: str) -> Link:
        """Make a link that is asked for by ``row[dst]``."""
        if (link := self._made(dst)) is None:
            raise KeyError(dst)
        return link

    def get(self, dst: str, default: Any = None) -> Any:
        """Return the link to a region, or something else where there is none."""
        found = dict.get(self, dst)
        if found is None and self._order is None:
            found = self._made(dst)
        return default if found is None else found

    def _made(self, dst: str) -> Link | None:
        link = self.maker.make(dst)
        # Of two threads, both get the one that was first.
        return None if link is None else self.setdefault(dst, link)

    def __contains__(self, dst: object) -> bool:
        """Whether there is a link to a region."""
        return dict.__contains__(self, dst) or self.get(dst) is not None  # type: ignore[arg-type]

    def _whole(self) -> list[str]:
        """Make all links that are not there yet; return their destinations in order."""
        if self._order is None:
            self._order = [dst for dst in self.maker.names() if self.get(dst) is not None]
        return self._order

    def passing(self, to: Iterable[str] | None = None) -> Iterator[Link]:
        """Yield links without keeping those that nobody has asked for yet.

        Parameters
        ----------
        to : iterable of str, optional
            Destinations, where it is not all of them.
        """
        if to is None and self._order is not None:
            yield from self.values()
            return
        for dst in self.maker.names() if to is None else to:
            link = dict.get(self, dst) or self.maker.make(dst)
            if link is not None:
                yield link

    def has_private(self) -> bool:
        """Whether any link is over private addresses."""
        return self.maker.may_be_private() and any(
            link.address == "private" for link in self.passing()
        )

    def __len__(self) -> int:
        """Return how many links there are."""
        return len(self._whole())

    def __bool__(self) -> bool:
        """Whether there is any link."""
        return self._order != [] and next(self.passing(), None) is not None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the destinations."""
        return iter(self._whole())

    def __reversed__(self) -> Iterator[str]:
        """Iterate over the destinations, the last one first."""
        return reversed(self._whole())

    # Lists in place of views: nothing changes.
    def keys(self) -> Any:
        """Return the destinations."""
        return self._whole()

    def values(self) -> Any:
        """Return the links."""
        return [self[dst] for dst in self._whole()]

    def items(self) -> Any:
        """Return pairs of destination and link."""
        return [(dst, self[dst]) for dst in self._whole()]

    def copy(self) -> dict[str, Link]:
        """Return a dict of all links, which may be changed."""
        return dict(self.items())

    def __or__(self, other: Any) -> Any:
        """Return a dict of these links and others, which go before."""
        return {**self, **other}

    def __ror__(self, other: Any) -> Any:
        """Return a dict of others and these links, which go before."""
        return {**other, **self}

    def __eq__(self, other: object) -> bool:
        """Whether another mapping has the same links."""
        if isinstance(other, LinkRow):
            other = other.copy()
        return self.copy() == other

    def __ne__(self, other: object) -> bool:
        """Whether another mapping has other links."""
        return not self == other

    __hash__ = None

    def __repr__(self) -> str:
        """Show all links, as a dict does."""
        return repr(self.copy())


class Given(Maker):
    """Links that are there already, for what is made of them."""

    def __init__(self, links: Mapping[str, Link]) -> None:
        self.links = links

    def names(self) -> Iterable[str]:
        """Return their destinations."""
        return self.links

    def make(self, dst: str) -> Link | None:
        """Return one of them."""
        return self.links.get(dst)

    def may_be_private(self) -> bool:
        """Look at them."""
        return any(link.address == "private" for link in self.links.values())


class Aged(Maker):
    """Links of another row as their age lets them stand; see :meth:`.Link.aged`."""

    def __init__(self, links: Maker, to_s: float, since_s: float | None) -> None:
        self.links, self.to_s, self.since_s = links, to_s, since_s

    def names(self) -> Iterable[str]:
        """Return the same destinations."""
        return self.links.names()

    def make(self, dst: str) -> Link | None:
        """Return a link, aged."""
        link = self.links.make(dst)
        return link and link.aged(self.to_s, self.since_s)

    def kind(self) -> Hashable:
        """Return this class, and how links are aged."""
        return Aged, self.to_s, self.since_s

    def expected_of(self, asked: Asked, aged: Sequence[Ageing] = ()) -> list[Expected | None]:
        """Return what is expected of links, aged."""
        within = [(maker.links, dst) for maker, dst in asked]
        return expected_of(within, ((self.to_s, self.since_s), *aged))

    def may_be_private(self) -> bool:
        """Ask the other row."""
        return self.links.may_be_private()

    def may_be_measured(self) -> bool:
        """Ask the other row."""
        return self.links.may_be_measured()


class Among(Maker):
    """Links of another row to some regions alone."""

    def __init__(self, links: Maker, kept: Collection[str]) -> None:
        self.links, self.kept = links, kept

    def names(self) -> Iterable[str]:
        """Return those destinations that are kept."""
        return [dst for dst in self.links.names() if dst in self.kept]

    def make(self, dst: str) -> Link | None:
        """Return a link to a region that is kept."""
        return self.links.make(dst) if dst in self.kept else None

    def expected_of(self, asked: Asked, aged: Sequence[Ageing] = ()) -> list[Expected | None]:
        """Return what is expected of links to regions that are kept."""
        kept = [dst in maker.kept for maker, dst in asked]
        within = [(m.links, dst) for (m, dst), is_kept in zip(asked, kept, strict=True) if is_kept]
        found = iter(expected_of(within, aged))
        return [next(found) if is_kept else None for is_kept in kept]

    def may_be_private(self) -> bool:
        """Ask the other row."""
        return self.links.may_be_private()

    def may_be_measured(self) -> bool:
        """Ask the other row."""
        return self.links.may_be_measured()


class Joined(Maker):
    """Links of one row, and those of another to regions that the first does not lead to."""

    def __init__(self, links: Maker, further: Maker) -> None:
        self.links, self.further = links, further

    def _in_order(self) -> tuple[Maker, Maker]:
        """Return both, the one first whose links go before."""
        return self.links, self.further

    def names(self) -> Iterable[str]:
        """Return the destinations of both."""
        return dict.fromkeys((*self.links.names(), *self.further.names()))

    def make(self, dst: str) -> Link | None:
        """Return a link of either."""
        first, second = self._in_order()
        return first.make(dst) or second.make(dst)

    def expected_of(self, asked: Asked, aged: Sequence[Ageing] = ()) -> list[Expected | None]:
        """Return what is expected of links of either."""
        rows = [maker._in_order() for maker, _ in asked]
        found = expected_of(
            [(first, dst) for (first, _), (_, dst) in zip(rows, asked, strict=True)], aged
        )
        missing = [at for at, one in enumerate(found) if one is None]
        others = expected_of([(rows[at][1], asked[at][1]) for at in missing], aged)
        for at, one in zip(missing, others, strict=True):
            found[at] = one
        return found

    def may_be_private(self) -> bool:
        """Ask both."""
        return self.links.may_be_private() or self.further.may_be_private()

    def may_be_measured(self) -> bool:
        """Ask both."""
        return self.links.may_be_measured() or self.further.may_be_measured()


class Replaced(Joined):
    """Links of one row, some of which those of another replace."""

    def _in_order(self) -> tuple[Maker, Maker]:
        return self.further, self.links


def maker_of(row: Mapping[str, Link]) -> Maker:
    """Return what makes links of a row that another one is made of."""
    return row.maker if isinstance(row, LinkRow) else Given(row)


def replaced(row: Mapping[str, Link], links: Mapping[str, Link]) -> Mapping[str, Link]:
    """Return a row with some links replaced, or added at its end."""
    if not isinstance(row, LinkRow):
        return {**row, **links}
    maker = row.maker
    # One layer of replaced links, however often some are replaced: layers are looked through
    # recursively.
    if isinstance(maker, Replaced) and isinstance(maker.further, Given):
        return LinkRow(Replaced(maker.links, Given({**maker.further.links, **links})))
    return LinkRow(Replaced(maker, Given(links)))


def expected_in(asked: Iterable[tuple[Mapping[str, Link], str]]) -> list[Expected | None]:
    """Return what is expected of links without making them; None where there is none.

    Parameters
    ----------
    asked : iterable of (row, destination)
        Rows of links, each with a destination.
    """
    found: list[Expected | None] = []
    unknown: list[tuple[int, LinkRow, str]] = []
    for row, dst in asked:
        if not isinstance(row, LinkRow):
            link = row.get(dst)
            found.append(link.expected if link else None)
            continue
        one = row._expected.get(dst)
        if one is None and (link := dict.get(row, dst)):
            one = row._expected[dst] = link.expected
        if one is None:
            unknown.append((len(found), row, dst))
        found.append(one)
    made = expected_of([(row.maker, dst) for _, row, dst in unknown])
    for (at, row, dst), one in zip(unknown, made, strict=True):
        if one is not None:
            found[at] = row._expected[dst] = one
    return found


def passing(row: Mapping[str, Link], to: Iterable[str] | None = None) -> Iterable[Link]:
    """Return links of a row, all or those to some destinations; without keeping them."""
    if isinstance(row, LinkRow):
        return row.passing(to)
    return row.values() if to is None else [row[dst] for dst in to if dst in row]
