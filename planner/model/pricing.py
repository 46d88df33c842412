"""Prices of transfers: egress fees at the tier that the month has reached, and VM hours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from math import inf
from typing import Protocol, TypeAlias

import numpy as np

from planner.model.answer import FeeLine
from planner.model.catalogue import Catalogue, Tier
from planner.model.errors import DataError, InputError
from planner.model.link_array import Ints
from planner.model.network import Network
from planner.model.throughput import Floats

HOUR = "hour"
"""The unit of fees for as long as VMs run."""
NO_CATALOGUE = Catalogue({}, {}, {}, {}, ())
Pair: TypeAlias = tuple[str, str]
PriceList: TypeAlias = tuple[tuple[Tier, ...], float]
"""Tiers, and the GB that the month has billed before."""


class Prices(Protocol):
    """A price list, as the planner needs it."""

    def egress_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> float:
        """Return the mean $/GB on a link whose meter counts this volume in all."""

    def vm_usd_per_h(self, region: str) -> float:
        """Return the price of one VM for an hour."""


def average_usd_per_gb(
    tiers: tuple[Tier, ...], volume_gb: Floats | float, month_to_date_gb: float = 0.0
) -> Floats:
    """Return the mean price of volumes (above 0), each after what the month has already billed.

    Tiers ascend; the last has no upper end.
    """
    ends_gb, floors_gb, fees, so_far_usd, least, most = _steps_of(tiers)
    end_gb = month_to_date_gb + volume_gb
    first = ends_gb.searchsorted(month_to_date_gb, side="right")
    last = ends_gb.searchsorted(end_gb)
    usd = so_far_usd[last] + (end_gb - floors_gb[last]) * fees[last]
    usd -= so_far_usd[first] + (month_to_date_gb - floors_gb[first]) * fees[first]
    # Differences of large volumes round: the mean is never outside what is charged, and that of
    # one tier its price, to the digit.
    mean = np.minimum(np.maximum(usd / volume_gb, least), most)
    return np.where(first == last, fees[last], mean)


@cache
def _steps_of(tiers: tuple[Tier, ...]) -> tuple[Floats, Floats, Floats, Floats, float, float]:
    """Return ends, floors and prices of tiers, what all below each floor costs, and price range."""
    ends_gb = np.array([tier.up_to_gb for tier in tiers])
    fees = np.array([tier.usd_per_gb for tier in tiers])
    floors_gb = np.array([0.0, *ends_gb[:-1]])
    so_far_usd = np.cumsum([0.0, *np.diff(floors_gb) * fees[:-1]])
    return ends_gb, floors_gb, fees, so_far_usd, min(fees.tolist()), max(fees.tolist())


def meter(src: str, dst: str) -> tuple[str, str]:
    """Return the meter that counts a link's volume, for tiers of fees.

    Providers count by kind of traffic: between their own regions, and to the internet, which other
    providers are part of. So a link is told by its source's provider and the kind.
    """
    provider = provider_of(src)
    return provider, "regions" if provider_of(dst) == provider else "internet"


def metered_usd_per_gb(prices: Prices, links_gb: Mapping[Pair, float]) -> dict[Pair, float]:
    """Return the mean $/GB of links where all carry their volumes (GB, above 0) in the same month.

    Exact where all links of a meter have one price list. Where lists differ, each link is charged
    as if its volume were spread evenly over what the meter counts.
    """
    counted_gb: dict[tuple[str, str], float] = {}
    for pair, gb in links_gb.items():
        counted_gb[meter(*pair)] = counted_gb.get(meter(*pair), 0.0) + gb
    return {pair: prices.egress_usd_per_gb(*pair, counted_gb[meter(*pair)]) for pair in links_gb}


def provider_of(region: str) -> str:
    """Return the part of a region's id before the colon."""
    return region.partition(":")[0]


class CataloguePrices:
    """Prices from a catalogue, for the VM types of a network's sites.

    `month_to_date_gb` says by provider (or ``*`` for any) what each of its meters has counted so
    far this month; regions `without_vms` have no VM to charge, as a store takes the data itself
    there.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        network: Network,
        month_to_date_gb: Mapping[str, float] = {},
        without_vms: Collection[str] = (),
    ) -> None:
        self.catalogue = catalogue
        self._network = network
        self._month_to_date_gb = month_to_date_gb
        self._without_vms = without_vms

    def egress_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> float:
        """Return the mean $/GB at the tier that the month has reached."""
        tiers = self.price_list(src, dst)
        billed_gb = self.billed_gb(src)
        if billed_gb + volume_gb <= tiers[0].up_to_gb:
            return tiers[0].usd_per_gb
        return float(average_usd_per_gb(tiers, volume_gb, billed_gb))

    def billed_gb(self, src: str) -> float:
        """Return what each meter of a region's provider has counted this month."""
        billed = self._month_to_date_gb
        return billed.get(provider_of(src), billed.get("*", 0.0))

    def price_list(self, src: str, dst: str) -> tuple[Tier, ...]:
        """Return the tiers of a link's price; of links with one list, the same object."""
        return self.catalogue.egress_price(src, dst).tiers

    def price_lists(self, regions: tuple[str, ...]) -> tuple[list[PriceList], Ints]:
        """Return the price lists of links between n regions, and that of each, (n, n).

        Where a price is not known it is infinite.
        """
        numbers, listed = dict[PriceList, int](), np.zeros((len(regions), len(regions)), np.int64)
        for row, src in zip(listed, regions, strict=True):
            some, alike = self.catalogue.priced_alike(regions, src, True)
            found = []
            for dst in some:
                try:
                    tiers = self.price_list(src, dst)
                except DataError:
                    tiers = (Tier(inf),)
                of = tiers, self.billed_gb(src)
                found.append(numbers.setdefault(of, len(numbers)))
            row[:] = np.array(found)[alike]
        return list(numbers), listed

    def on(self, network: Network, catalogue: Catalogue | None = None) -> CataloguePrices:
        """Return the same prices for the VM types of another network's sites.

        The catalogue is another one where its interconnects carry less.
        """
        of = catalogue or self.catalogue
        return CataloguePrices(of, network, self._month_to_date_gb, self._without_vms)

    def vm_usd_per_h(self, region: str) -> float:
        """Return the price of the region's VM type; 0 where none is known, or none is charged."""
        if region in self._without_vms:
            return 0.0
        return self.catalogue.vm_usd_per_h(region, self._network.sites[region].vm_type)

    def vm_prices_usd_per_h(self, regions: tuple[str, ...]) -> Floats:
        """Return :meth:`vm_usd_per_h` of each region."""
        sites = self._network.sites
        vm_types = tuple([sites[region].vm_type for region in regions])
        found = self.catalogue.vm_prices_usd_per_h(regions, vm_types)
        if charged_nothing := self._without_vms:
            found = np.where(np.isin(regions, list(charged_nothing)), 0.0, found)
        return found


class FlatPrices:
    """Prices for one's own network of n regions, without a catalogue.

    Egress at one price, or from row to column, (n, n); VMs at one price, or by region.
    """

    def __init__(
        self,
        regions: list[str] | tuple[str, ...],
        egress_usd_per_gb: float | np.ndarray = 0.0,
        vm_usd_per_h: float | Mapping[str, float] = 0.0,
    ) -> None:
        self._position = {region: i for i, region in enumerate(regions)}
        fees, shape = np.asarray(egress_usd_per_gb, float), (len(regions), len(regions))
        if fees.ndim and fees.shape != shape:
            raise InputError("egress_usd_per_gb", f"must have shape {shape}", value=fees.shape)
        self._fees = fees
        self._vms = vm_usd_per_h if isinstance(vm_usd_per_h, Mapping) else {}
        self._vm = 0.0 if isinstance(vm_usd_per_h, Mapping) else float(vm_usd_per_h)

    def egress_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> float:  # noqa: ARG002
        """Return the stated price, whatever the volume."""
        if not self._fees.ndim:
            return float(self._fees)
        return float(self._fees[self._position[src], self._position[dst]])

    def vm_usd_per_h(self, region: str) -> float:
        """Return the stated price; 0 for a region that was left out."""
        return self._vms.get(region, self._vm)


def _catalogue_of(prices: Prices) -> Catalogue:
    """Return the catalogue that prices are from; an empty one for others."""
    return prices.catalogue if isinstance(prices, CataloguePrices) else NO_CATALOGUE


def has_fees(prices: Prices) -> bool:
    """Return whether there are fees besides egress, interconnects, or sites with limits."""
    return bool(_catalogue_of(prices).fees) or _catalogue_of(prices).limits_connections


def fee_lines(
    prices: Prices, links_gb: Mapping[Pair, float], hours: Mapping[str, float]
) -> tuple[FeeLine, ...]:
    """List the fees besides egress; only a catalogue has some.

    `hours` says how long VMs run in each region. Links have fees by the hour while VMs run at both
    ends.
    """
    catalogue, names, found = _catalogue_of(prices), list(hours), list[FeeLine]()
    region = catalogue.region
    for fee in catalogue.fees:
        if fee.usd_per_gb:
            gb = sum(gb * fee.times(*map(region, pair)) for pair, gb in links_gb.items())
            units, each_usd = gb * fee.units_per_gb, fee.usd_per_gb / fee.units_per_gb
            found.append(FeeLine(fee.name, units, fee.unit, each_usd, gb * fee.usd_per_gb))
        if fee.usd_per_h:
            joined = {frozenset(link) for link in fee.links([*map(region, names)])}
            in_all_h = sum(min(hours[names[at]] for at in ends) for ends in joined)
            in_all_h += sum(h for name, h in hours.items() if fee.is_at(region(name)))
            usd = in_all_h * fee.usd_per_h
            found.append(FeeLine(fee.name, in_all_h, HOUR, fee.usd_per_h, usd))
    return tuple(line for line in found if line.quantity)


def hourly_usd(prices: Prices, regions: Iterable[str]) -> float:
    """Return the fees of an hour in which VMs run in regions."""
    return hours_usd(fee_lines(prices, {}, dict.fromkeys(regions, 1.0)))


def hours_usd(lines: Iterable[FeeLine]) -> float:
    """Add up the fees by the hour."""
    return sum(line.usd for line in lines if line.unit == HOUR)


def link_gbps(prices: Prices, src: str, dst: str) -> float:
    """Capacity of a link: an interconnect's own, else infinity."""
    catalogue = _catalogue_of(prices)
    joined = src != dst and catalogue.has_interconnects
    return (joined and catalogue.egress_price(src, dst).gbps) or inf


def links_gbps(prices: Prices, regions: Sequence[str]) -> Floats:
    """Return :func:`link_gbps` of each link between n regions, (n, n); (1, 1) without any."""
    regions = regions if _catalogue_of(prices).has_interconnects else regions[:1]
    return np.array([[link_gbps(prices, src, dst) for dst in regions] for src in regions])


def site_connections(prices: Prices, regions: Sequence[str]) -> Floats:
    """Return the connections that n sites allow in all, (2, n): out and in; infinite if any."""
    sites = [_catalogue_of(prices).region(region) for region in regions]
    return np.array([[getattr(s, f"connections_{w}") or inf for s in sites] for w in ("out", "in")])


def least_connections(prices: Prices, *links: Pair) -> tuple[float, int, str]:
    """Return the most that the sites of links allow, by which way out (0) or in (1) of which."""
    if not _catalogue_of(prices).limits_connections:
        return inf, 0, ""
    ends = [(at, pair[at]) for pair in links for at in (0, 1)]
    return min((float(site_connections(prices, [end])[at, 0]), at, end) for at, end in ends)


def prices_on(prices: Prices, network: Network) -> Prices:
    """Return prices for the VM types of another network's sites, where they depend on them."""
    return prices.on(network) if isinstance(prices, CataloguePrices) else prices


def relayed_usd_per_gb(
    prices: Prices, network: Network, src: str, dst: str, volume_gb: float
) -> Floats:
    """Return the mean $/GB of both links through every region; infinity where a price is not known.

    As :func:`metered_usd_per_gb` of one path that carries the whole volume.
    """
    provider = provider_of(src) if provider_of(src) == provider_of(dst) else None
    regions = network.usual.regions

    def alike(end: str, *, sends: bool) -> tuple[Sequence[str], Ints]:
        if isinstance(prices, CataloguePrices):
            return prices.catalogue.priced_alike(regions, end, sends)
        return regions, np.arange(len(regions))

    def counted_gb(region: str) -> float:
        # Between three regions of one provider, one meter counts both links.
        return 2 * volume_gb if provider_of(region) == provider else volume_gb

    some, number = alike(src, sends=True)
    first = [usd_per_gb_or_inf(prices, src, region, counted_gb(region)) for region in some]
    others, other_number = alike(dst, sends=False)
    second = [usd_per_gb_or_inf(prices, region, dst, counted_gb(region)) for region in others]
    return np.asarray(np.array(first)[number] + np.array(second)[other_number])


def vm_prices_usd_per_h(prices: Prices, network: Network, at: Ints) -> Floats:
    """Return the price of one VM for an hour in the regions at some positions."""
    regions = network.usual.regions
    if isinstance(prices, CataloguePrices):
        return np.asarray(prices.vm_prices_usd_per_h(regions)[at])
    return np.array([prices.vm_usd_per_h(regions[k]) for k in at.tolist()])


def usd_per_gb_or_inf(prices: Prices, src: str, dst: str, volume_gb: float) -> float:
    """Return the mean $/GB on a link; infinity where no price is known."""
    try:
        return prices.egress_usd_per_gb(src, dst, volume_gb)
    except DataError:
        return inf
