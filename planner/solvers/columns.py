"""Patterns of direct and one-hop paths from one source each, and what they load and cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from planner.model.shared_resources import KINDS, Floats, Integers, SiteResources

PREFER_DIRECT = 1e-9


@dataclass(frozen=True)
class InteriorState:
    """A point inside a linear program and its dual (:mod:`planner.solvers.interior_point`).

    Attributes
    ----------
    primal, reduced : arrays, length 1 + columns
        Lateness, then weights of columns; and their reduced costs.
    slack, slack_prices : arrays, length rows
        What rows have to spare, and what it is worth.
    dual : array, length rows + sources
        Prices of rows (negative) and of sources.
    unit_s : float
        Of its figures.
    """

    primal: Floats
    reduced: Floats
    slack: Floats
    slack_prices: Floats
    dual: Floats
    unit_s: float

    @property
    def columns(self) -> int:
        """Number of columns that it has weights of."""
        return len(self.primal) - 1


@dataclass(frozen=True)
class Routing:
    """A routing of all demands, and what is proven of it.

    Attributes
    ----------
    paths_gbit : array, shape (n, n, n)
        Volume by source, first hop and destination; direct where the first hop is the
        destination.
    objective, bound : float
        What it reaches, and what no routing can beat.
    row_prices : array
        What a VM-second of each row is worth, in the objective's unit.
    resumable : InteriorState | None
        Where a problem that differs little can be taken up.
    """

    paths_gbit: Floats
    objective: float
    bound: float
    row_prices: Floats
    resumable: InteriorState | None = None

    @property
    def gap(self) -> float:
        """How far above the optimum it may at most be, as a share of the bound."""
        return self.objective / self.bound - 1 if self.bound > 0 else 0.0


@dataclass
class PathColumns:
    """Patterns of paths found so far; many problems on the same demands share them.

    Attributes
    ----------
    given : SiteResources
        With all rows.
    demands_gbit : array, shape (n, n)
    usd_per_gbit : array, shape (n, n)
        Fees of links.
    resources : SiteResources
        With the paths' rows that some routing broke so far (:meth:`add_rows`): few ever bind.
    """

    given: SiteResources
    demands_gbit: Floats
    usd_per_gbit: Floats
    resources: SiteResources = field(init=False)
    loads: Floats = field(init=False)
    fees: Floats = field(init=False)
    sources: Integers = field(init=False)
    first_hops: Integers = field(init=False)
    _seen: set[bytes] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Begin with no columns."""
        n = self.given.count
        self.resources = self.given.with_path_rows(np.zeros(0, dtype=np.int64))
        self.loads = np.zeros((0, len(self.resources.rows)))
        self.fees = np.zeros(0)
        self.sources = np.zeros(0, dtype=np.int64)
        self.first_hops = np.zeros((0, n), dtype=np.int64)
        self._pairs = np.nonzero(self.demands_gbit)
        self.senders = np.unique(self._pairs[0])

    @property
    def source_count(self) -> int:
        """Number of sources that send anything."""
        return len(self.senders)

    def cheapest_paths(self, prices: Floats) -> tuple[Floats, Integers]:
        """Return each pair's least price over direct and one-hop paths, and its first hop.

        Parameters
        ----------
        prices : array, shape (n, n)
            Of links; infinite where there is none.
        """
        n = self.resources.count
        blocked = prices.copy()
        np.fill_diagonal(blocked, np.inf)
        relays = np.nonzero(self.resources.may_relay)[0]
        hops = np.broadcast_to(np.arange(n), (n, n))
        best = blocked.copy()
        if len(relays):
            through = blocked[:, None, relays] + blocked.T[None, :, relays]
            position = through.argmin(axis=2)
            relayed = np.take_along_axis(through, position[:, :, None], axis=2)[:, :, 0]
            better = relayed < blocked * (1 - PREFER_DIRECT)
            best = np.where(better, relayed, blocked)
            hops = np.where(better, relays[position], hops)
        return best, hops

    def patterns(self, first_hops: Integers) -> tuple[Floats, Floats]:
        """Return load, shape (n, rows), and fees, length n, of each source's pattern."""
        resources, n = self.resources, self.resources.count
        sites = len(KINDS) * n + 1  # the last: rows that never bind
        position = np.minimum(resources.position[: sites - 1], sites - 1)
        connections = resources.connections_s_per_gbit
        source, destination = self._pairs
        volume = self.demands_gbit[source, destination]
        first = first_hops[source, destination]
        relayed = first != destination
        loads = np.zeros(n * sites)
        fees = np.zeros(n)

        def add(who: Integers, at: Integers, amount: Floats) -> None:
            nonlocal loads
            loads += np.bincount(who * sites + at, amount, minlength=len(loads))

        for who, tail, head, amount in (
            (source, source, first, volume),
            (source[relayed], first[relayed], destination[relayed], volume[relayed]),
        ):
            fees += np.bincount(who, amount * self.usd_per_gbit[tail, head], minlength=n)
            if (resources.rows[:1] < 2 * n).any():
                share = amount * connections[tail, head]
                add(who, position[tail], share)
                add(who, position[n + head], share)
            out, into = resources.cap_s_per_gbit
            add(who, position[2 * n + tail], amount * out[tail, head])
            add(who, position[3 * n + head], amount * into[tail, head])
        of_sites = loads.reshape(n, sites)[:, : len(resources.rows) - len(resources.paths[0])]
        return np.hstack([of_sites, self._path_loads(np.arange(n), first_hops)]), fees

    def _path_loads(self, sources: Integers, first_hops: Integers, since: int = 0) -> Floats:
        """Return the load of patterns on the rows of paths, but for the first of them."""
        tail, head = (ends[since:] for ends in self.resources.paths)
        if not len(tail):
            return np.zeros((len(sources), 0))
        count, n = first_hops.shape
        volumes = self.demands_gbit[sources]
        to_hop = np.bincount(
            (np.arange(count)[:, None] * n + first_hops).ravel(),
            volumes.ravel(),
            minlength=count * n,
        ).reshape(count, n)
        onward = np.where(first_hops[:, head] == tail, volumes[:, head], 0.0)
        gbit = np.where(sources[:, None] == tail, to_hop[:, head], onward)
        return np.asarray(gbit * self.resources.s_per_gbit[tail, head])

    def add_rows(self, codes: Integers) -> bool:
        """Add rows of paths, unless they are there; return whether any is new."""
        resources = self.resources
        fresh = codes[resources.position[codes] == len(resources.rows)]
        if len(fresh):
            assert resources.path_rows is not None
            known = len(resources.path_rows)
            self.resources = resources.with_path_rows(np.concatenate([resources.path_rows, fresh]))
            added = self._path_loads(self.sources, self.first_hops, known)
            self.loads = np.hstack([self.loads, added])
        return len(fresh) > 0

    def prices_of_given(self, row_prices: Floats) -> Floats:
        """Return prices of the first rows so far as prices of all rows."""
        prices = np.zeros(len(self.given.rows))
        prices[self.given.position[self.resources.rows[: len(row_prices)]]] = row_prices
        return prices

    def add(self, first_hops: Integers, loads: Floats, fees: Floats, wanted: Integers) -> Integers:
        """Add the patterns of some sources unless they are known; return those added."""
        fresh = []
        for source in wanted.tolist():
            hops = first_hops[source]
            key = self._key(source, hops)
            if key not in self._seen:
                self._seen.add(key)
                fresh.append(source)
        if fresh:
            self.loads = np.concatenate([self.loads, loads[fresh]])
            self.fees = np.append(self.fees, fees[fresh])
            self.sources = np.append(self.sources, fresh)
            self.first_hops = np.concatenate([self.first_hops, first_hops[fresh]])
        return np.array(fresh, dtype=np.int64)

    def with_resources(self, given: SiteResources, start: InteriorState | None) -> PathColumns:
        """Return the columns and rows of a point on other VMs at the same sites, to be added to.

        Parameters
        ----------
        given : SiteResources
            Of the same rates and caps.
        start : InteriorState, optional
            All columns and rows so far without it.
        """
        columns = start.columns if start else len(self.fees)
        rows = len(start.slack) if start else len(self.resources.rows)
        taken = PathColumns(given, self.demands_gbit, self.usd_per_gbit)
        taken.resources = given.with_path_rows(
            self.resources.rows[len(taken.resources.rows) : rows]
        )
        taken.loads, taken.fees = self.loads[:columns, :rows], self.fees[:columns]
        taken.sources, taken.first_hops = self.sources[:columns], self.first_hops[:columns]
        for source, hops in zip(taken.sources.tolist(), taken.first_hops, strict=True):
            taken._seen.add(taken._key(source, hops))
        return taken

    def at_fees(self, usd_per_gbit: Floats) -> PathColumns:
        """Return the columns and rows so far at other fees of links."""
        taken = replace(self, usd_per_gbit=usd_per_gbit)
        taken.resources, taken.loads = self.resources, self.loads
        taken.sources, taken.first_hops = self.sources, self.first_hops
        taken._seen = set(self._seen)
        sources, hops = self.sources[:, None], self.first_hops
        heads = np.arange(self.given.count)
        onward = np.where(hops != heads, usd_per_gbit[hops, heads], 0.0)
        fees = usd_per_gbit[sources, hops] + onward
        taken.fees = (self.demands_gbit[self.sources] * fees).sum(axis=1)
        return taken

    def _key(self, source: int, hops: Integers) -> bytes:
        wanted: bytes = hops[self.demands_gbit[source] > 0].tobytes()
        return source.to_bytes(4, "little") + wanted

    def cheapest_patterns(self, prices: Floats) -> tuple[float, Floats, Floats, Integers]:
        """Return each source's cheapest pattern at prices of links.

        Returns
        -------
        price : float
            Of all volumes.
        loads, fees, first_hops : arrays
            By source, see :meth:`patterns`.
        """
        best, hops = self.cheapest_paths(prices)
        loads, fees = self.patterns(hops)
        pairs = self._pairs
        return float((self.demands_gbit[pairs] * best[pairs]).sum()), loads, fees, hops

    def all_of(self, prices: Floats) -> Floats:
        """Add every source's cheapest pattern at prices of links; return what links then carry."""
        _, loads, fees, hops = self.cheapest_patterns(prices)
        self.add(hops, loads, fees, self.senders)
        return self._links(self.senders, hops[self.senders], np.ones(self.source_count))

    def links(self, weights: Floats) -> Floats:
        """Return what links carry, shape (n, n), with weights of the first columns."""
        used = np.nonzero(weights > 0)[0]
        return self._links(self.sources[used], self.first_hops[used], weights[used])

    def _links(self, sources: Integers, first_hops: Integers, weights: Floats) -> Floats:
        n = self.resources.count
        destination = np.broadcast_to(np.arange(n), first_hops.shape)
        gbit = weights[:, None] * self.demands_gbit[sources]
        first = np.bincount((sources[:, None] * n + first_hops).ravel(), gbit.ravel(), n * n)
        onward = first_hops != destination
        second = np.bincount((first_hops * n + destination)[onward], gbit[onward], minlength=n * n)
        return np.asarray((first + second).reshape(n, n))

    def paths(self, weights: Floats) -> Floats:
        """Return volumes by source, first hop and destination, of weights that sum to 1."""
        n = self.resources.count
        found = np.zeros(n * n * n)
        used = np.nonzero(weights > 0)[0]
        source = np.repeat(self.sources[used], n)
        destination = np.tile(np.arange(n), len(used))
        hop = self.first_hops[used].ravel()
        amount = np.repeat(weights[used], n) * self.demands_gbit[source, destination]
        found += np.bincount((source * n + hop) * n + destination, amount, minlength=n**3)
        return found.reshape(n, n, n)
