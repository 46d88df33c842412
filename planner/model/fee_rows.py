"""Prices of a catalogue over a network's sites, laid out as rows and columns.

A plan asks for the fee out of its source to every site, and from every site into its destination:
some 140 pairs, but hardly twenty price lists. Which list holds for which pair stays while the
network does, so it is found once; a plan works out each list's mean price for its volume once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import NamedTuple, TypeAlias

from planner.model.catalogue import Catalogue, Tier
from planner.model.errors import DataError
from planner.model.network import Network

# A network is usually priced by one catalogue.
MOST_CATALOGUES_KEPT = 8

# The mean $/GB of a price list at what a source's provider has billed this month.
Mean: TypeAlias = Callable[[tuple[Tier, ...], str], float]


class FeeRow(NamedTuple):
    """Which price list holds for every site, in the network's order.

    Attributes
    ----------
    lists : list
        Each price list once, with the source of a pair that it holds for; no tiers at all
        where no price is known.
    position : list of int
        By site, which of the lists.
    """

    lists: list[tuple[tuple[Tier, ...], str]]
    position: list[int]

    def usd_per_gb(self, mean: Mean) -> list[float]:
        """Return the mean $/GB for every site; infinity where no price is known."""
        means = [mean(tiers, source) if tiers else inf for tiers, source in self.lists]
        return [means[k] for k in self.position]


class FeeRows:
    """Rows and columns of egress prices, and VM prices, of one catalogue on one network."""

    def __init__(self, catalogue: Catalogue, network: Network) -> None:
        self.catalogue = catalogue  # kept, so that its identity stays taken
        self._sites = list(network.sites)
        self._rows: dict[str, FeeRow] = {}
        self._columns: dict[str, FeeRow] = {}
        vm_types = (catalogue.vm_types.get(site.vm_type) for site in network.sites.values())
        self.vm_usd_per_h = [vm.price_usd_per_h if vm else 0.0 for vm in vm_types]

    def out_of(self, src: str) -> FeeRow:
        """Return the prices from a region to every site."""
        if src not in self._rows:
            self._rows[src] = self._row((src, site) for site in self._sites)
        return self._rows[src]

    def into(self, dst: str) -> FeeRow:
        """Return the prices from every site to a region."""
        if dst not in self._columns:
            self._columns[dst] = self._row((site, dst) for site in self._sites)
        return self._columns[dst]

    def _row(self, pairs: Iterable[tuple[str, str]]) -> FeeRow:
        lists: list[tuple[tuple[Tier, ...], str]] = []
        known: dict[tuple[tuple[Tier, ...], str], int] = {}
        position = []
        for src, dst in pairs:
            try:
                tiers = self.catalogue.egress_price(src, dst).tiers
            except DataError:
                tiers = ()
            # What has been billed differs by the source's provider, which tells tiers apart.
            key = (tiers, src.partition(":")[0])
            if key not in known:
                known[key] = len(lists)
                lists.append((tiers, src))
            position.append(known[key])
        return FeeRow(lists, position)


def fee_rows(catalogue: Catalogue, network: Network) -> FeeRows:
    """Return the rows of a catalogue on a network, kept with the network."""
    kept: dict[int, FeeRows] = network.kept.setdefault(FeeRows, {})
    rows = kept.get(id(catalogue))
    if rows is None:
        if len(kept) >= MOST_CATALOGUES_KEPT:
            kept.clear()
        rows = kept[id(catalogue)] = FeeRows(catalogue, network)
    return rows
