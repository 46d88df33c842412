"""Links out of one region that are made when first asked for, and are the same when asked again.

A network of a thousand regions has a million links, of which a question touches a few thousand. A
:class:`LinkRow` stands for a dict of links and has a :class:`Maker` make them: from columns, from
models, or from those of another row. Any thread may read one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from planner.hints import TYPE_CHECKING
from planner.model.link import Expected, Link

if TYPE_CHECKING:
    from typing import Any, TypeAlias

Ageing: TypeAlias = tuple[float, float | None]
"""As :meth:`.Link.aged` is told."""


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

    def expected(self, dst: str, aged: Sequence[Ageing] = ()) -> Expected | None:
        """Return what is expected of a link, in less time than it takes to make it.

        Parameters
        ----------
        dst : str
        aged : sequence of Ageing
            By what it is to be aged, one after the other.
        """
        link = self.make(dst)
        for to_s, since_s in aged:
            link = link and link.aged(to_s, since_s)
        return link.expected if link else None


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

    def expected(self, dst: str) -> Expected | None:
        """Return what is expected of the link to a region; None where there is none."""
        found = self._expected.get(dst)
        if found is None:
            link = dict.get(self, dst)
            found = self.maker.expected(dst) if link is None else link.expected
            if found is not None:
                self._expected[dst] = found
        return found

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

    def expected(self, dst: str, aged: Sequence[Ageing] = ()) -> Expected | None:
        """Return what is expected of a link, aged."""
        return self.links.expected(dst, ((self.to_s, self.since_s), *aged))

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

    def expected(self, dst: str, aged: Sequence[Ageing] = ()) -> Expected | None:
        """Return what is expected of a link to a region that is kept."""
        return self.links.expected(dst, aged) if dst in self.kept else None

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

    def names(self) -> Iterable[str]:
        """Return the destinations of both."""
        return dict.fromkeys((*self.links.names(), *self.further.names()))

    def make(self, dst: str) -> Link | None:
        """Return a link of the first, else of the second."""
        return self.links.make(dst) or self.further.make(dst)

    def expected(self, dst: str, aged: Sequence[Ageing] = ()) -> Expected | None:
        """Return what is expected of a link of the first, else of the second."""
        return self.links.expected(dst, aged) or self.further.expected(dst, aged)

    def may_be_private(self) -> bool:
        """Ask both."""
        return self.links.may_be_private() or self.further.may_be_private()

    def may_be_measured(self) -> bool:
        """Ask both."""
        return self.links.may_be_measured() or self.further.may_be_measured()


class Replaced(Joined):
    """Links of one row, some of which those of another replace."""

    def make(self, dst: str) -> Link | None:
        """Return a link of the second, else of the first."""
        return self.further.make(dst) or self.links.make(dst)

    def expected(self, dst: str, aged: Sequence[Ageing] = ()) -> Expected | None:
        """Return what is expected of a link of the second, else of the first."""
        return self.further.expected(dst, aged) or self.links.expected(dst, aged)


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


def expected(row: Mapping[str, Link], dst: str) -> Expected | None:
    """Return what is expected of a link of a row, without making it; None where there is none."""
    if isinstance(row, LinkRow):
        return row.expected(dst)
    link = row.get(dst)
    return link.expected if link else None


def passing(row: Mapping[str, Link], to: Iterable[str] | None = None) -> Iterable[Link]:
    """Return links of a row, all or those to some destinations; without keeping them."""
    if isinstance(row, LinkRow):
        return row.passing(to)
    return row.values() if to is None else [row[dst] for dst in to if dst in row]
