"""All links of a network as one structured array, of which a link is a row made when looked at.

Between n regions stands a square array of n x n records of 112 bytes, :data:`LINK`. A figure of a
link has its three bounds there, and the number of a row of a second table, :data:`EVIDENCE`: what
an estimate rests on, which many links share.

Why it is so: docs/decisions/03-one-array-of-links.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import nan
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from planner.model.errors import InputError
from planner.model.estimate import (
    ADDRESS_KINDS,
    AGELESS,
    BOUNDS,
    SECONDS_PER_DAY,
    Bound,
    Estimate,
    Figures,
    HeldTo,
    Kind,
    Origin,
    Prior,
    RateCut,
    faded,
)
from planner.model.link import AT_LIMIT, FADING, LIMITED_BY, LINK_FIGURES, Link, LinkFigure
from planner.model.throughput import LAW_CONNECTIONS, Providers, slow_connections
from planner.model.units import MBPS_PER_GBPS

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.integer[Any]]
Bools: TypeAlias = NDArray[np.bool_]
Records: TypeAlias = NDArray[Any]
"""Structured: of :data:`LINK` or :data:`EVIDENCE`."""

KINDS: tuple[Kind, ...] = get_args(Kind)
"""From the surest on: a figure made of several is as sure as the last of them."""
NO_LINK = -1
FIGURE = np.dtype(
    [("low", "<f8"), ("expected", "<f8"), ("high", "<f8"), ("evidence", "<u4")], align=True
)
LINK = np.dtype(
    [
        *((name, FIGURE) for name in LINK_FIGURES),
        ("loss_pct", "<f8"),  # NaN where it was not measured
        ("slow_connections", "<f4"),
        ("limited_by", "u1"),  # position in LIMITED_BY
        ("address", "u1"),  # position in ADDRESS_KINDS, and 1; 0 where there is no link
    ],
    align=True,
)
"""One link: its estimates, its loss, its limit, the reading of that, and its kind of address."""
EVIDENCE = np.dtype(
    [("newest_s", "<f8"), ("oldest_s", "<f8"), ("prior", "<f8", (4,))]
    + [(name, "<u4") for name in ("origin", "samples", "links")],
    align=True,
)
"""The evidence of an estimate; NaN where there is no time, or no prior."""
_NO_EVIDENCE: Records = np.zeros(0, EVIDENCE)


def opaque(records: Records) -> Records:
    """View records as bytes, which numpy copies ten times as fast as field by field."""
    return records.view(np.dtype((np.void, records.itemsize)))


def taken(records: Records, at: Any = np.s_[:]) -> Records:
    """Copy the records at some places: all, unless an index of arrays is given."""
    found: Records = opaque(records)[at].copy() if isinstance(at, slice) else opaque(records)[at]
    return found.view(records.dtype)


def put(records: Records, at: Any, others: Records) -> None:
    """Write other records of the same kind at some places."""
    opaque(records)[at] = opaque(others)


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

    def changed(
        self, numbers: NDArray[Any], change: Callable[[Origin], Origin]
    ) -> NDArray[np.int32]:
        """Return the numbers of origins after a change of each."""
        new = np.zeros(len(self.all), np.int32)
        for number in np.flatnonzero(np.bincount(numbers.reshape(-1))).tolist():
            new[number] = self.number_of(change(self.all[number]))
        found: NDArray[np.int32] = new[numbers]
        return found

    def held_to(self, limit: HeldTo, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Return the origins of rates that a limit holds below what their method gives."""

        def held(origin: Origin) -> Origin:
            return origin._replace(figures=(origin.figures or Figures())._replace(held_to=limit))

        return self.changed(numbers, held)


@dataclass(frozen=True, eq=False, repr=False)
class LinkArray(Mapping[str, "LinkRow"]):
    """Directed links between regions: a mapping of source to destination to :class:`.Link`."""

    regions: tuple[str, ...] = ()  # length n: their positions are rows and columns of the table
    table: Records = field(default_factory=lambda: np.zeros((0, 0), LINK))
    """Shape (n, n): may be mapped from a file; it is never written to."""
    evidence: Records = field(default_factory=lambda: _NO_EVIDENCE)
    """What estimates rest on, by the number that they have in the table."""
    origins: tuple[Origin, ...] = ()
    """By their number in the evidence, without counts and times of samples."""
    patches: Mapping[tuple[int, int], tuple[Any, ...]] = field(default_factory=dict)
    """Row and column to a record, as a tuple, that stands for the table's."""

    # ---- making ------------------------------------------------------------------------------

    @classmethod
    def of(cls, links: Iterable[Link], regions: Iterable[str] = ()) -> LinkArray:
        """Return links as an array, in which some regions come first, with or without links.

        A link that comes twice is an InputError.
        """
        found = list(links)
        ends = (end for link in found for end in (link.src, link.dst))
        names = tuple(dict.fromkeys((*regions, *ends)))
        index = {name: number for number, name in enumerate(names)}
        rows, evidence, origins = _records(found)
        src = np.array([index[link.src] for link in found], np.int64)
        dst = np.array([index[link.dst] for link in found], np.int64)
        return cls(names, _laid(names, src, dst, rows), evidence, origins)

    @classmethod
    def of_figures(
        cls,
        names: Sequence[str],
        origins: Origins,
        ends: tuple[Ints, Ints],
        figures: Sequence[Records],
        others: Sequence[NDArray[Any]],
    ) -> LinkArray:
        """Return m links between n regions, by the numbers of their ends, whose figures are arrays.

        All have length m. `figures` are in the order of :data:`~planner.model.link.LINK_FIGURES`,
        with the fields of :data:`FIGURE` but evidence, and those of :data:`EVIDENCE` but the prior.
        `others` are loss in percent, the four numbers of the aggregate's prior, the probability
        that connections are slow, limit (position in LIMITED_BY) and kind of address (position in
        ADDRESS_KINDS).
        """
        loss_pct, *prior, slow, limit, address = others
        rows = np.zeros(len(ends[0]), LINK)
        parts: list[Records] = []
        for name, one in zip(LINK_FIGURES, figures, strict=True):
            for bound in BOUNDS:
                rows[name][bound] = one[bound]
            evidence = np.zeros(len(rows), EVIDENCE)
            for column in ("newest_s", "oldest_s", "origin", "samples", "links"):
                evidence[column] = one[column]
            evidence["prior"] = np.transpose(prior) if name == "aggregate_gbps" else nan
            distinct, number = _distinct(evidence)
            rows[name]["evidence"] = number + sum(map(len, parts))
            parts.append(distinct)
        rows["loss_pct"], rows["slow_connections"] = loss_pct, slow
        rows["limited_by"], rows["address"] = limit, address + 1
        table = _laid(tuple(names), *ends, rows)
        return cls(tuple(names), table, np.concatenate(parts), tuple(origins.all))

    @classmethod
    def of_origins(
        cls, names: Sequence[str], table: Records, origins: Sequence[Origin]
    ) -> LinkArray:
        """Return links between n named regions whose figures rest on no samples.

        The table, (n, n), has the number of an origin in place of evidence.
        """
        return cls(tuple(names), table, _without_samples(len(origins)), tuple(origins))

    def __reduce__(self) -> tuple[type[LinkArray], tuple[Any, ...]]:
        """Leave out cached properties."""
        return LinkArray, (self.regions, self.table, self.evidence, self.origins, self.patches)

    # ---- links -------------------------------------------------------------------------------

    @cached_property
    def index(self) -> dict[str, int]:
        """Region id to its position."""
        return {name: position for position, name in enumerate(self.regions)}

    def __getitem__(self, src: str) -> LinkRow:
        return self._row_of(src)

    @cached_property
    def _row_of(self) -> Callable[[str], LinkRow]:
        return cache(lambda src: LinkRow(self, src, self.index[src]))

    def get(  # type: ignore[override]
        self, src: str, default: Mapping[str, Link] | None = None
    ) -> Mapping[str, Link]:
        """Return the links out of a region; of an unknown one, the default, or none."""
        return self[src] if src in self.index else default or {}

    def __iter__(self) -> Iterator[str]:
        return iter(self.regions)

    def __len__(self) -> int:
        return len(self.regions)

    def __bool__(self) -> bool:
        """Return whether there is any link."""
        return bool(self.present.any())

    def __repr__(self) -> str:
        """Describe the array in one line."""
        return f"<LinkArray of {self.count} links between {len(self.regions)} regions>"

    def all_links(self) -> Iterator[Link]:
        """Yield all links by source and destination, without keeping them."""
        for src in self.regions:
            yield from self.out_of(src)

    def out_of(self, src: str) -> list[Link]:
        """Return the links out of a region, without keeping them."""
        cells = self.row(self.index[src])
        at = np.flatnonzero(cells["address"])
        records = zip(at.tolist(), taken(cells, at).tolist(), strict=True)
        return [self._link(src, self.regions[place], record) for place, record in records]

    def link(self, src: str, dst: str) -> Link | None:
        """Return a link, made from its record; None where there is none."""
        i, j = self.index.get(src, NO_LINK), self.index.get(dst, NO_LINK)
        if i < 0 or j < 0:
            return None
        record = self.patches.get((i, j)) or self.table[i, j].item()
        return self._link(src, dst, record) if record[-1] else None

    def _link(self, src: str, dst: str, record: tuple[Any, ...]) -> Link:
        *figures, loss_pct, slow, limit, address = record
        rtt_ms, per_flow_mbps, aggregate_gbps = (
            Estimate(low, expected, high, *self._evidence_of(number))
            for low, expected, high, number in figures
        )
        loss_pct, kind = None if loss_pct != loss_pct else loss_pct, ADDRESS_KINDS[address - 1]
        facts = loss_pct, LIMITED_BY[limit], kind, round(slow, 6)
        return Link(src, dst, rtt_ms, per_flow_mbps, aggregate_gbps, *facts)

    @cached_property
    def _evidence_of(self) -> Callable[[int], tuple[Origin, Prior | None]]:
        @cache
        def made(number: int) -> tuple[Origin, Prior | None]:
            *times_s, prior, origin, samples, links = self.evidence[number].item()
            newest_s, oldest_s = (None if at_s != at_s else at_s for at_s in times_s)
            counts = {"samples": samples, "links": links}
            of = self.origins[origin]._replace(**counts, newest_s=newest_s, oldest_s=oldest_s)
            return of, None if prior[0] != prior[0] else Prior(*prior.tolist())

        return made

    # ---- arrays ------------------------------------------------------------------------------

    def row(self, position: int) -> Records:
        """Return the records of the links out of a region."""
        patches = {j: record for (i, j), record in self.patches.items() if i == position}
        return _patched(self.table[position], patches)

    def column(self, position: int) -> Records:
        """Return the records of the links into a region."""
        patches = {i: record for (i, j), record in self.patches.items() if j == position}
        return _patched(self.table[:, position], patches)

    @cached_property
    def whole(self) -> Records:
        """The records of all links, shape (n, n)."""
        return _patched(self.table, self.patches)

    @cached_property
    def _addresses(self) -> Records:
        patches = {at: record[-1] for at, record in self.patches.items()}
        return _patched(self.table["address"], patches)

    @cached_property
    def present(self) -> Bools:
        """Where there is a link, shape (n, n)."""
        found: Bools = self._addresses != 0
        return found

    @property
    def count(self) -> int:
        """Number of links."""
        return int(np.count_nonzero(self.present))

    @cached_property
    def has_private(self) -> bool:
        """Return whether any link is over private addresses."""
        return bool((self._addresses == ADDRESS_KINDS.index("private") + 1).any())

    def kinds(self, cells: Records, name: LinkFigure) -> NDArray[np.int8]:
        """Return the kind of an estimate of some records: a position in KINDS, or NO_LINK."""
        found: NDArray[np.int8] = self._of_evidence(self._kinds, cells, name, NO_LINK)
        return found

    @cached_property
    def _kinds(self) -> NDArray[np.int8]:
        """The kind of each evidence."""
        of_origin = np.array([KINDS.index(origin.kind) for origin in self.origins], np.int8)
        found: NDArray[np.int8] = of_origin[self.evidence["origin"]]
        return found

    def measured_at_s(self, cells: Records, name: LinkFigure) -> Floats:
        """Return the times from which an estimate of some records ages; NaN where it does not."""
        ageless = np.array([origin.method in AGELESS for origin in self.origins], np.bool_)
        at_s = np.where(ageless[self.evidence["origin"]], nan, self.evidence["newest_s"])
        found: Floats = self._of_evidence(at_s, cells, name, nan)
        return found

    def prior(self, cells: Records, name: LinkFigure) -> Floats:
        """Return the four numbers of a prior of some records, in a last dimension."""
        found: Floats = self._of_evidence(self.evidence["prior"], cells, name, nan)
        return found

    def by_origin(self, cells: Records, name: LinkFigure, of: Callable[[Origin], float]) -> Floats:
        """Return what a function says of the origin of each estimate of some records; else 0."""
        of_origin = np.array([of(origin) for origin in self.origins], float)
        found: Floats = self._of_evidence(of_origin[self.evidence["origin"]], cells, name, 0.0)
        return found

    def _of_evidence(self, values: Any, cells: Records, name: LinkFigure, otherwise: float) -> Any:
        """Return the value of each estimate's evidence; `otherwise` where there is no link."""
        found = np.full((*cells.shape, *values.shape[1:]), otherwise, values.dtype)
        there = cells["address"] != 0
        found[there] = values[cells[name]["evidence"][there]]
        return found

    def rate_cuts(self, cells: Records) -> list[tuple[int, RateCut]]:
        """Return the positions of links whose rate falls after some time, with the fall."""
        if not self._cuts:
            return []
        none, origins = len(self.origins), self.evidence["origin"]
        numbers = self._of_evidence(origins, cells, "aggregate_gbps", otherwise=none).tolist()
        return [(k, self._cuts[number]) for k, number in enumerate(numbers) if number in self._cuts]

    @cached_property
    def _cuts(self) -> dict[int, RateCut]:
        """The fall of each number of an origin that has one."""
        return {n: origin.rate_cut for n, origin in enumerate(self.origins) if origin.rate_cut}

    def origins_of(self, name: LinkFigure) -> list[Origin]:
        """Return the origins that a figure of some link has, without counts and times."""
        numbers = self.evidence["origin"][self.whole[name]["evidence"][self.present]]
        return [self.origins[number] for number in np.unique(numbers).tolist()]

    # ---- others made of these ----------------------------------------------------------------

    def with_links(self, links: Iterable[Link]) -> LinkArray:
        """Return these links with some replaced or added, between the same regions."""
        found = list(links)
        records, evidence, origins = _records(found, len(self.evidence), len(self.origins))
        places = [(self.index[link.src], self.index[link.dst]) for link in found]
        patches = {**self.patches, **dict(zip(places, records.tolist(), strict=True))}
        evidence = np.concatenate([self.evidence, evidence])
        return LinkArray(self.regions, self.table, evidence, self.origins + origins, patches)

    def with_rows(self, ends: tuple[Ints, Ints], rows: Records, origins: Origins) -> LinkArray:
        """Return these links with other records of some.

        Numbers of evidence behind that of these links are those of origins without samples.
        """
        cells = taken(self.whole)
        put(cells, ends, rows)
        added = _without_samples(len(origins.all), len(self.origins))
        evidence = np.concatenate([self.evidence, added])
        return LinkArray(self.regions, cells, evidence, (*self.origins, *origins.all))

    def over(self, other: LinkArray) -> LinkArray:
        """Return these links, and those of another array where there are none of these."""
        regions = tuple(dict.fromkeys((*self.regions, *other.regions)))
        first, second = self.among(regions), other.among(regions)
        cells = taken(second.whole)
        for name in LINK_FIGURES:
            cells[name]["evidence"][second.present] += np.uint32(len(self.evidence))
        put(cells, first.present, taken(first.whole, first.present))
        evidence = taken(second.evidence)
        evidence["origin"] += len(self.origins)
        return LinkArray(
            regions, cells, np.concatenate([self.evidence, evidence]), self.origins + other.origins
        )

    def where(self, chosen: Bools) -> LinkArray:
        """Return these links where they are chosen, (n, n), and elsewhere none."""
        cells = np.zeros(self.table.shape, LINK)
        put(cells, chosen, taken(self.whole, chosen))
        return self.with_cells(cells)

    def among(self, regions: Iterable[str]) -> LinkArray:
        """Return the links between some regions, in the order of these."""
        names = tuple(regions)
        if names == self.regions:
            return self
        at = np.array([self.index.get(name, NO_LINK) for name in names], np.int64)
        known = at >= 0
        cells = np.zeros((len(names), len(names)), LINK)
        put(cells, np.ix_(known, known), taken(self.whole, np.ix_(at[known], at[known])))
        return LinkArray(names, cells, self.evidence, self.origins)

    def with_cells(self, cells: Records) -> LinkArray:
        """Return links of the same regions and evidence with other records."""
        return LinkArray(self.regions, cells, self.evidence, self.origins)

    def aged(self, to_s: float, since_s: float | None = None) -> LinkArray:
        """Return the links as their age lets them stand; see :meth:`.Estimate.aged`."""
        if not (self.evidence["newest_s"] < to_s).any():  # nothing was measured
            return self
        found = taken(self.whole, self.present)
        for name in LINK_FIGURES:
            at_s, expected = self.measured_at_s(found, name), found[name]["expected"]
            days = (to_s - at_s) // SECONDS_PER_DAY
            if since_s is not None:
                days -= np.maximum(0.0, (since_s - at_s) // SECONDS_PER_DAY)
            prior, otherwise = self.prior(found, name), FADING[name]
            if otherwise is not None:
                around = np.stack(np.broadcast_arrays(*otherwise.around(expected)), axis=-1)
                prior = np.where(np.isnan(prior), around, prior)
            due = (days > 0) & (expected > 0) & np.isfinite(expected) & ~np.isnan(prior[..., 0])
            low, middle, high = (found[name][bound][due] for bound in BOUNDS)
            aged = faded((low, middle, high), tuple(prior[due].T), days[due])
            for bound, values in zip(BOUNDS, aged, strict=True):
                found[name][bound][due] = values
        cells = np.zeros(self.table.shape, LINK)
        put(cells, self.present, found)
        return self.with_cells(cells)

    def check(self) -> None:
        """Refuse bounds that are out of order, or no numbers; an InputError names the first."""
        for name in LINK_FIGURES:
            low, expected, high = (self.whole[name][bound] for bound in BOUNDS)
            wrong = np.argwhere(~((low <= expected) & (expected <= high)) & self.present)
            if len(wrong):
                i, j = wrong[0].tolist()
                raise InputError(
                    f"{self.regions[i]} -> {self.regions[j]}",
                    f"has bounds of {name} that are out of order or no numbers",
                    value=f"{low[i, j]:g} <= {expected[i, j]:g} <= {high[i, j]:g}",
                    remedy="Give low, expected and high in this order.",
                )


class LinkRow(Mapping[str, Link]):
    """Destination to link, of one source; a link is made when first asked for."""

    __slots__ = ("_at", "_links", "_made", "src")

    def __init__(self, links: LinkArray, src: str, at: int) -> None:
        self.src = src
        self._links, self._at = links, at
        self._made: dict[str, Link] = {}

    def __getitem__(self, dst: str) -> Link:
        found = self._made.get(dst) or self._links.link(self.src, dst)
        if found is None:
            raise KeyError(dst)
        return self._made.setdefault(dst, found)

    def __iter__(self) -> Iterator[str]:
        regions = self._links.regions
        return iter([regions[at] for at in np.flatnonzero(self._links.present[self._at]).tolist()])

    def __len__(self) -> int:
        return int(np.count_nonzero(self._links.present[self._at]))


def _records(
    links: Sequence[Link], first: int = 0, first_origin: int = 0
) -> tuple[Records, Records, tuple[Origin, ...]]:
    """Return a record for each link, the evidence that records refer to, and its origins.

    So many rows of evidence, and origins, come before.
    """
    numbers: dict[tuple[Origin, Prior | None], int] = {}

    def figure(one: Estimate) -> tuple[float, float, float, int]:
        number = numbers.setdefault((one.origin, one.prior), len(numbers))
        return one.low, one.expected, one.high, number + first

    rows = [
        (
            *map(figure, link.estimates.values()),
            nan if link.loss_pct is None else link.loss_pct,
            link.slow_connections,
            LIMITED_BY.index(link.limited_by),
            ADDRESS_KINDS.index(link.address) + 1,
        )
        for link in links
    ]
    origins = Origins()
    evidence = [
        (
            nan if origin.newest_s is None else origin.newest_s,
            nan if origin.oldest_s is None else origin.oldest_s,
            prior or (nan,) * 4,
            origins.number_of(origin) + first_origin,
            origin.samples,
            origin.links,
        )
        for origin, prior in numbers
    ]
    return np.array(rows, LINK), np.array(evidence, EVIDENCE), tuple(origins.all)


def _without_samples(count: int, first: int = 0) -> Records:
    """Return evidence of as many origins, numbered from the first, that rest on no samples."""
    rows = [(nan, nan, (nan,) * 4, first + number, 0, 0) for number in range(count)]
    return np.array(rows, EVIDENCE)


def _patched(cells: Records, patches: Mapping[Any, Any]) -> Records:
    """Return records with others in some places."""
    if patches:
        cells = taken(cells)
        for at, record in patches.items():
            cells[at] = record
    return cells


def rates_gbps(cells: Records, connections: int, bound: Bound = "expected") -> Floats:
    """Return :meth:`.Link.rate_gbps` of records of links; 0 where there is no link."""
    flows_gbps = connections * cells["per_flow_mbps"][bound] / MBPS_PER_GBPS
    found: Floats = np.minimum(flows_gbps, most_gbps(cells, connections, bound))
    return found


def most_gbps(cells: Records, connections: int, bound: Bound = "expected") -> Floats:
    """Return :meth:`.Link.most_gbps` of records of links."""
    saturated: Floats = cells["aggregate_gbps"][bound]
    if connections <= LAW_CONNECTIONS:
        return saturated
    by_windows = cells["limited_by"] == LIMITED_BY.index("window")
    return np.where(by_windows, saturated * (connections / LAW_CONNECTIONS), saturated)


def bounds_of(estimates: Iterable[Estimate]) -> Records:
    """Return the bounds of estimates as an array of :data:`FIGURE`, without evidence."""
    return np.array([(one.low, one.expected, one.high, 0) for one in estimates], FIGURE)


def scaled(figures: Records, factor: float) -> Records:
    """Return figures of so many times the quantity."""
    found = taken(figures)
    for bound in BOUNDS:
        found[bound] *= factor
    return found


def limits_of(rates_gbps: Records, caps_gbps: Records, windows_gbps: Records | None = None) -> Ints:
    """Return the limit of each rate, as positions in LIMITED_BY.

    A cap of its VMs, else what windows allow over round-trip times, else it is not known. All are
    arrays of :data:`FIGURE`.
    """
    found = np.full(rates_gbps.shape, LIMITED_BY.index("unknown"))
    for limits, name in ((windows_gbps, "window"), (caps_gbps, "vm")):
        if limits is not None:
            level = AT_LIMIT * limits["expected"]
            at_limit = (rates_gbps["expected"] >= level) & (rates_gbps["high"] >= limits["low"])
            found[at_limit & (level > 0)] = LIMITED_BY.index(name)
    return found


def slow_connections_of(
    names: Sequence[str],
    ends: tuple[Ints, Ints],
    limits: Ints,
    shown: Mapping[Providers, tuple[float, float]] | None = None,
) -> Floats:
    """Return the probability of each of m links that its connections are slow.

    `ends` are numbers of names; `limits`, positions in LIMITED_BY: where a limit is known, it is 0.
    `shown` says by providers how many ramps showed slow connections, and how many the end of a
    path.
    """
    providers = [name.partition(":")[0] for name in names]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(providers))}
    number = np.array([numbers[name] for name in providers], np.int64)
    of_pair = np.array(
        [
            [slow_connections((a, b), *(shown or {}).get((a, b), (0, 0))) for b in numbers]
            for a in numbers
        ]
    ).reshape(len(numbers), len(numbers))
    found: Floats = of_pair[number[ends[0]], number[ends[1]]]
    return np.where(limits == LIMITED_BY.index("unknown"), found, 0.0)


def held_ends(
    limited_by: Ints, egress_gbps: Floats | float, ingress_gbps: Floats | float
) -> tuple[Bools, Bools]:
    """Return masks of links whose aggregate holds a VM that sends, and one that receives.

    A path may hold either. A cap holds the VMs that have it, which a row of their own states, so
    that it says nothing of the other end's; and windows hold each connection of the sender. Limits
    are positions in LIMITED_BY; caps are those of one VM that sends, and of one that receives.
    """
    by_vm = limited_by == LIMITED_BY.index("vm")
    by_receiver = by_vm & (ingress_gbps < egress_gbps)
    by_sender = (by_vm & ~by_receiver) | (limited_by == LIMITED_BY.index("window"))
    return ~by_receiver, ~by_sender


def _laid(names: Sequence[str], src: Ints, dst: Ints, rows: Records) -> Records:
    """Return records in a square table, each once."""
    table = np.zeros((len(names), len(names)), LINK)
    put(table, (src, dst), rows)
    if np.count_nonzero(table["address"]) != len(rows):
        keys = src * len(names) + dst
        twice = next(key for key in keys.tolist() if np.count_nonzero(keys == key) > 1)
        i, j = divmod(twice, len(names))
        raise InputError(f"{names[i]} -> {names[j]}", "comes twice", remedy="Give each link once.")
    return table


def _distinct(rows: Records) -> tuple[Records, Ints]:
    """Return the distinct rows of a table, and which of them each row is."""
    bits = rows.view(np.uint64).reshape(len(rows), EVIDENCE.itemsize // 8)
    weights = np.random.default_rng(0).integers(1, 1 << 63, bits.shape[1], np.uint64) | 1
    # Sorting one number a row takes a tenth of sorting rows.
    hashed = ((bits ^ (bits >> np.uint64(29))) * weights).sum(axis=1, dtype=np.uint64)
    _, first, number = np.unique(hashed, return_index=True, return_inverse=True)
    if (bits[first][number] != bits).any():  # two rows have one hash
        _, first, number = np.unique(bits, axis=0, return_index=True, return_inverse=True)
    return taken(rows, first), number.reshape(-1)
