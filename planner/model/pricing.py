"""What a transfer costs: egress fees at the tier that the month has reached, and VM hours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from math import inf
from typing import Protocol, TypeAlias

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


class FeeRow:
    """The price list of each of some pairs of regions.

    Attributes
    ----------
    tiers : list
        By pair; no tiers at all where no price is known.
    """

    def __init__(self, catalogue: Catalogue, pairs: Iterable[tuple[str, str]]) -> None:
        self.tiers: list[tuple[Tier, ...]] = []
        # Each list once, with a source that it holds for: what has been billed differs by provider.
        self._lists: dict[tuple[int, str], tuple[int, tuple[Tier, ...], str]] = {}
        self._position = []
        for src, dst in pairs:
            try:
                tiers = catalogue.egress_price(src, dst).tiers
            except DataError:
                tiers = ()
            known = self._lists.setdefault(
                (id(tiers), provider_of(src)), (len(self._lists), tiers, src)
            )
            self.tiers.append(tiers)
            self._position.append(known[0])

    def usd_per_gb(self, mean: Mean) -> list[float]:
        """Return the mean $/GB of every pair; infinity where no price is known."""
        means = [mean(tiers, src) if tiers else inf for _, tiers, src in self._lists.values()]
        return [means[k] for k in self._position]


class FeeRows:
    """Rows and columns of egress prices, and VM prices, of one catalogue on one network.

    Attributes
    ----------
    out_of, into : callable
        From (to) a region, as it is priced, to the prices to (from) every site.
    vm_usd_per_h : list of float
        By site.
    """

    def __init__(self, catalogue: Catalogue, network: Network) -> None:
        self.catalogue = catalogue  # kept, so that its identity stays taken
        sites = list(map(catalogue.priced_as, network.sites))
        self.out_of = cache(lambda src: FeeRow(catalogue, ((src, site) for site in sites)))
        self.into = cache(lambda dst: FeeRow(catalogue, ((site, dst) for site in sites)))
        self.vm_usd_per_h = [
            catalogue.vm_usd_per_h(site.region, site.vm_type) for site in network.sites.values()
        ]

    @classmethod
    def on(cls, catalogue: Catalogue, network: Network) -> FeeRows:
        """Return those of a catalogue on a network, kept with the network."""
        kept: dict[int, FeeRows] = network.kept.setdefault(FeeRows, {})
        if id(catalogue) not in kept:
            if len(kept) >= MOST_CATALOGUES_KEPT:
                kept.clear()
            kept[id(catalogue)] = cls(catalogue, network)
        return kept[id(catalogue)]


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
        rows, priced_as = FeeRows.on(self._catalogue, self._network), self._catalogue.priced_as
        out_of, into = rows.out_of(priced_as(src)), rows.into(priced_as(dst))
        mean = self._mean_of(volume_gb)
        fees = [a + b for a, b in zip(out_of.usd_per_gb(mean), into.usd_per_gb(mean), strict=True)]
        if (provider := provider_of(src)) == provider_of(dst):
            both_gb = 2 * volume_gb  # where the relay is the provider's, too, its meter counts both
            for k, region in enumerate(self._network.sites):
                a, b = out_of.tiers[k], into.tiers[k]
                if len(a) * len(b) > 1 and provider_of(region) == provider:
                    fees[k] = self._mean(a, src, both_gb) + self._mean(b, src, both_gb)
        return fees

    def usd_per_gb_out_of(self, src: str, volume_gb: float) -> list[float]:
        """Return the mean $/GB to every site; infinity where no price is known."""
        rows = FeeRows.on(self._catalogue, self._network)
        return rows.out_of(self._catalogue.priced_as(src)).usd_per_gb(self._mean_of(volume_gb))

    def site_vms_usd_per_h(self) -> list[float]:
        """Return the price of one VM for an hour at every site."""
        return FeeRows.on(self._catalogue, self._network).vm_usd_per_h

    def _mean_of(self, volume_gb: float) -> Mean:
        return lambda tiers, src: self._mean(tiers, src, volume_gb)

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
        self._fees, shape = np.asarray(egress_usd_per_gb, float), (len(regions), len(regions))
        if self._fees.ndim and self._fees.shape != shape:
            raise InputError(
                "egress_usd_per_gb", f"must have shape {shape}", value=self._fees.shape
            )
        self._vms = vm_usd_per_h if isinstance(vm_usd_per_h, Mapping) else {}
        self._vm = 0.0 if isinstance(vm_usd_per_h, Mapping) else float(vm_usd_per_h)

    def egress_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> float:  # noqa: ARG002
        """Return the stated price, whatever the volume."""
        if not self._fees.ndim:
            return float(self._fees)
        return float(self._fees[self._position[src], self._position[dst]])

    def relayed_usd_per_gb(self, src: str, dst: str, regions: Iterable[str]) -> list[float]:
        """Return the $/GB of both links through every region."""
        if not self._fees.ndim:
            return [2 * float(self._fees) for _ in regions]
        via = [self._position[region] for region in regions]
        at = self._position
        found: list[float] = (self._fees[at[src], via] + self._fees[via, at[dst]]).tolist()
        return found

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
