"""What a transfer costs: egress fees at the tier that the month has reached, and VM hours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from planner.model.catalogue import Catalogue, Tier
from planner.model.errors import DataError, InputError
from planner.model.network import Network

# A network is usually priced by one catalogue.
MOST_CATALOGUES_KEPT = 8

# The mean $/GB of a price list at what a source's provider has billed this month.
Mean: TypeAlias = Callable[[tuple[Tier, ...], str], float]
Pair: TypeAlias = tuple[str, str]


class Prices(Protocol):
    """What the planner asks of a price list."""

    def egress_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> float:
        """Return the mean $/GB on a link whose meter counts this volume in all."""

    def vm_usd_per_h(self, region: str) -> float:
        """Return the price of one VM for an hour."""


def average_usd_per_gb(
    tiers: tuple[Tier, ...], volume_gb: float, month_to_date_gb: float = 0.0
) -> float:
    """Return the mean price of a volume that follows what the month has already seen.

    Parameters
    ----------
    tiers : tuple of Tier
        Ascending, the last without an upper end.
    volume_gb : float
        Above 0.
    month_to_date_gb : float
        Volume already billed under the same tiers this month.
    """
    start, end = month_to_date_gb, month_to_date_gb + volume_gb
    floor = cost = 0.0
    for tier in tiers:
        if start >= floor and end <= tier.up_to_gb:  # all in one tier: its price, to the digit
            return tier.usd_per_gb
        billed = min(end, tier.up_to_gb) - max(start, floor)
        if billed > 0:
            cost += billed * tier.usd_per_gb
        if end <= tier.up_to_gb:
            break
        floor = tier.up_to_gb
    # Differences of large volumes round: the mean is never outside what is charged.
    fees = [tier.usd_per_gb for tier in tiers]
    return min(max(cost / volume_gb, min(fees)), max(fees))


def meter(src: str, dst: str) -> tuple[str, str]:
    """Return what a link's volume is counted with, for tiers of fees.

    Providers count by kind of traffic: between their own regions, and to the internet, which other
    providers are part of. So a link is told by its source's provider and the kind.
    """
    provider = provider_of(src)
    return provider, "regions" if provider_of(dst) == provider else "internet"


def metered_usd_per_gb(prices: Prices, links_gb: Mapping[Pair, float]) -> dict[Pair, float]:
    """Return the mean $/GB of every link where all carry their volumes in the same month.

    Exact where all links of a meter have one price list. Where lists differ, each link is charged
    as if its volume were spread evenly over what the meter counts.

    Parameters
    ----------
    prices : Prices
    links_gb : mapping
        Source and destination to the volume sent, above 0.
    """
    counted_gb: dict[tuple[str, str], float] = {}
    for pair, gb in links_gb.items():
        counted_gb[meter(*pair)] = counted_gb.get(meter(*pair), 0.0) + gb
    return {pair: prices.egress_usd_per_gb(*pair, counted_gb[meter(*pair)]) for pair in links_gb}


def provider_of(region: str) -> str:
    """Return the part of a region's id before the colon."""
    return region.partition(":")[0]


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

    def tiers(self, site: int) -> tuple[Tier, ...]:
        """Return the price list of one site, by its position."""
        return self.lists[self.position[site]][0]

    def usd_per_gb(self, mean: Mean) -> list[float]:
        """Return the mean $/GB for every site; infinity where no price is known."""
        means = [mean(tiers, source) if tiers else inf for tiers, source in self.lists]
        return [means[k] for k in self.position]


class FeeRows:
    """Rows and columns of egress prices, and VM prices, of one catalogue on one network."""

    def __init__(self, catalogue: Catalogue, network: Network) -> None:
        self.catalogue = catalogue  # kept, so that its identity stays taken
        self._priced_as = list(map(catalogue.priced_as, network.sites))
        self._rows: dict[str, FeeRow] = {}
        self._columns: dict[str, FeeRow] = {}
        self.vm_usd_per_h = [
            catalogue.vm_usd_per_h(site.region, site.vm_type) for site in network.sites.values()
        ]

    def out_of(self, src: str) -> FeeRow:
        """Return the prices from a region to every site."""
        src = self.catalogue.priced_as(src)
        if src not in self._rows:
            self._rows[src] = self._row((src, site) for site in self._priced_as)
        return self._rows[src]

    def into(self, dst: str) -> FeeRow:
        """Return the prices from every site to a region."""
        dst = self.catalogue.priced_as(dst)
        if dst not in self._columns:
            self._columns[dst] = self._row((site, dst) for site in self._priced_as)
        return self._columns[dst]

    def _row(self, pairs: Iterable[tuple[str, str]]) -> FeeRow:
        lists: list[tuple[tuple[Tier, ...], str]] = []
        known: dict[tuple[tuple[Tier, ...], str], int] = {}
        # By the identity of tiers, which the catalogue keeps: hashing them takes longer.
        seen: dict[tuple[int, str], int] = {}
        of_pair: dict[tuple[str, str], int] = {}
        position = []
        for pair in pairs:
            if pair not in of_pair:
                src, dst = pair
                try:
                    tiers = self.catalogue.egress_price(src, dst).tiers
                except DataError:
                    tiers = ()
                # What has been billed differs by the source's provider, which tells tiers apart.
                provider = provider_of(src)
                place = seen.get((id(tiers), provider))
                if place is None:
                    place = seen[id(tiers), provider] = known.setdefault(
                        (tiers, provider), len(lists)
                    )
                    if place == len(lists):
                        lists.append((tiers, src))
                of_pair[pair] = place
            position.append(of_pair[pair])
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


class CataloguePrices:
    """Prices from a catalogue, for the VM types of a network's sites.

    Parameters
    ----------
    catalogue : Catalogue
    network : Network
        Says which VM type is used in a region.
    month_to_date_gb : mapping
        Provider (or ``*`` for any) to the volume that each of its meters has counted so far this
        month.
    """

    def __init__(
        self, catalogue: Catalogue, network: Network, month_to_date_gb: Mapping[str, float] = {}
    ) -> None:
        self._catalogue = catalogue
        self._network = network
        self._month_to_date_gb = month_to_date_gb
        self._averages: dict[tuple[int, float, float], float] = {}

    def egress_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> float:
        """Return the mean $/GB at the tier that the month has reached."""
        return self._mean(self.price_list(src, dst), src, volume_gb)

    def price_list(self, src: str, dst: str) -> tuple[Tier, ...]:
        """Return the tiers of a link's price; of links with one list, the same object.

        Raises
        ------
        DataError
            If no price is known.
        """
        return self._catalogue.egress_price(src, dst).tiers

    def on(self, network: Network) -> CataloguePrices:
        """Return the same prices for the VM types of another network's sites."""
        return CataloguePrices(self._catalogue, network, self._month_to_date_gb)

    def are_of(self, network: Network) -> bool:
        """Whether the network is the one that they were made for: rows are laid out on it."""
        return network is self._network

    def relayed_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> list[float]:
        """Return the mean $/GB through every site, as :func:`relayed_usd_per_gb` does."""
        rows = fee_rows(self._catalogue, self._network)

        def mean(tiers: tuple[Tier, ...], source: str) -> float:
            return self._mean(tiers, source, volume_gb)

        out_of, into = rows.out_of(src), rows.into(dst)
        first, second = out_of.usd_per_gb(mean), into.usd_per_gb(mean)
        fees = [a + b for a, b in zip(first, second, strict=True)]
        if (provider := provider_of(src)) == provider_of(dst):
            both_gb = 2 * volume_gb  # where the relay is the provider's, too, its meter counts both
            for k, region in enumerate(self._network.sites):
                a, b = out_of.tiers(k), into.tiers(k)
                if len(a) * len(b) > 1 and provider_of(region) == provider:
                    fees[k] = self._mean(a, src, both_gb) + self._mean(b, src, both_gb)
        return fees

    def usd_per_gb_out_of(self, src: str, volume_gb: float) -> list[float]:
        """Return the mean $/GB to every site; infinity where no price is known."""
        rows = fee_rows(self._catalogue, self._network)
        return rows.out_of(src).usd_per_gb(lambda tiers, of: self._mean(tiers, of, volume_gb))

    def site_vms_usd_per_h(self) -> list[float]:
        """Return the price of one VM for an hour at every site."""
        return fee_rows(self._catalogue, self._network).vm_usd_per_h

    def _mean(self, tiers: tuple[Tier, ...], src: str, volume_gb: float) -> float:
        if len(tiers) == 1:
            return tiers[0].usd_per_gb
        billed = self._month_to_date_gb
        so_far = billed.get(provider_of(src), billed.get("*", 0.0)) if billed else 0.0
        key = (id(tiers), volume_gb, so_far)
        if key not in self._averages:
            if len(self._averages) > 10_000:  # volumes differ from request to request
                self._averages.clear()
            self._averages[key] = average_usd_per_gb(tiers, volume_gb, so_far)
        return self._averages[key]

    def vm_usd_per_h(self, region: str) -> float:
        """Return the catalogue's price of the region's VM type; 0 where none is known."""
        return self._catalogue.vm_usd_per_h(region, self._network.sites[region].vm_type)


class FlatPrices:
    """Prices for one's own network, without a catalogue.

    Parameters
    ----------
    regions : sequence of str
        The network's regions, in the order of the matrix.
    egress_usd_per_gb : float, or array of shape (n, n)
        Price from row to column.
    vm_usd_per_h : float, or mapping from region
    """

    def __init__(
        self,
        regions: list[str] | tuple[str, ...],
        egress_usd_per_gb: float | np.ndarray = 0.0,
        vm_usd_per_h: float | Mapping[str, float] = 0.0,
    ) -> None:
        self._position = {region: i for i, region in enumerate(regions)}
        self._matrix: list[list[float]] | None = None
        self._fee = 0.0
        if isinstance(egress_usd_per_gb, int | float):
            self._fee = float(egress_usd_per_gb)
        else:
            if egress_usd_per_gb.shape != (len(regions), len(regions)):
                raise InputError(
                    "egress_usd_per_gb",
                    f"must have shape ({len(regions)}, {len(regions)})",
                    value=egress_usd_per_gb.shape,
                )
            self._matrix = egress_usd_per_gb.tolist()
        self._vms: Mapping[str, float] = {}
        self._vm = 0.0
        if isinstance(vm_usd_per_h, Mapping):
            self._vms = vm_usd_per_h
        else:
            self._vm = float(vm_usd_per_h)

    def egress_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> float:  # noqa: ARG002
        """Return the stated price, whatever the volume."""
        if self._matrix is None:
            return self._fee
        return self._matrix[self._position[src]][self._position[dst]]

    def relayed_usd_per_gb(self, src: str, dst: str, regions: Iterable[str]) -> list[float]:
        """Return the $/GB of both links through every region."""
        at, matrix = self._position, self._matrix
        if matrix is None:
            return [self._fee + self._fee for _ in regions]
        row, column = matrix[at[src]], at[dst]
        return [row[via] + matrix[via][column] for via in map(at.__getitem__, regions)]

    def vm_usd_per_h(self, region: str) -> float:
        """Return the stated price; 0 for a region that was left out."""
        return self._vms.get(region, self._vm)


def prices_on(prices: Prices, network: Network) -> Prices:
    """Return prices for the VM types of another network's sites, where they depend on them."""
    return prices.on(network) if isinstance(prices, CataloguePrices) else prices


def relayed_usd_per_gb(
    prices: Prices, network: Network, src: str, dst: str, volume_gb: float
) -> list[float]:
    """Return the mean $/GB of both links through every site of a network, in its order.

    As :func:`metered_usd_per_gb` of one path that carries the whole volume. Infinity where the
    price of a link is not known.
    """
    if isinstance(prices, CataloguePrices) and prices.are_of(network):
        return prices.relayed_usd_per_gb(src, dst, volume_gb)

    if isinstance(prices, FlatPrices):
        return prices.relayed_usd_per_gb(src, dst, network.sites)
    provider = provider_of(src) if provider_of(src) == provider_of(dst) else None

    def through(region: str) -> float:
        # Between three regions of one provider, one meter counts both links.
        counted_gb = 2 * volume_gb if provider_of(region) == provider else volume_gb
        try:
            fee = prices.egress_usd_per_gb(src, region, counted_gb)
            return fee + prices.egress_usd_per_gb(region, dst, counted_gb)
        except DataError:
            return inf

    return [through(region) for region in network.sites]


def site_vms_usd_per_h(prices: Prices, network: Network) -> list[float]:
    """Return the price of one VM for an hour at every site of a network, in its order."""
    if isinstance(prices, CataloguePrices) and prices.are_of(network):
        return prices.site_vms_usd_per_h()
    return [prices.vm_usd_per_h(region) for region in network.sites]
