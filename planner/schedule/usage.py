"""The load that a schedule puts on each region's VMs over time, and its cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import fsum

import numpy as np

from planner.model.answer import Cost, FeeLine
from planner.model.network import Network
from planner.model.pricing import Pair, Prices, fee_lines, hours_usd, metered_usd_per_gb
from planner.model.shared_resources import PATH, Floats, links_of
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.model.vm_limits import vms_by_region
from planner.schedule.plan import Busy, PathRate, Period, StoredVolume, TariffUse
from planner.schedule.problem import NOTHING_STORED, ROUNDED_SHARE, Route, ScheduleProblem
from planner.schedule.request import ScheduleRequest
from planner.schedule.tariffs import MONTH_S, tariff_use, within
from planner.shared_vms.connections import connections_by_region

SAME_RATE = 1e-9
BUSIEST_SHOWN = 5


@dataclass(frozen=True)
class RoutedRates:
    """Constant rates of one transfer for a time, in Gbit/s by route."""

    number: int
    start_s: float
    end_s: float
    rates_gbps: Mapping[Route, float]

    @property
    def links(self) -> list[tuple[int, int, float]]:
        """Links with the rate on each."""
        return [(u, v, rate) for route, rate in self.rates_gbps.items() for u, v in pairwise(route)]


class Usage:
    """Loads of rows between all moments at which some rate changes.

    Attributes
    ----------
    cuts_s : array, length periods + 1
    loads : array, shape (periods, rows)
        In VMs.
    vms : array, shape (periods, sites)
        Whole ones that each site needs.
    """

    def __init__(
        self,
        found: ScheduleProblem,
        request: ScheduleRequest,
        prices: Prices,
        sending: Sequence[RoutedRates],
    ) -> None:
        self._found, self._problem, self._resources = found, found.problem, found.resources
        self._request, self._prices, self._sending = request, prices, sending
        bounds = [time for item in sending for time in (item.start_s, item.end_s)]
        self.cuts_s = found.tariffs.cuts_s(bounds)
        self._lengths_s: list[float] = np.diff(self.cuts_s).tolist()
        self.loads = np.zeros((len(self._lengths_s), len(self._resources.rows)))
        self._links_gbps = [defaultdict[tuple[int, int], float](float) for _ in self._lengths_s]
        self._routes_gbps = [defaultdict[Route, float](float) for _ in self._lengths_s]
        for item in sending:
            first, last = self._periods_of(item)
            for route, rate in item.rates_gbps.items():
                for row, load in self._resources.route_rows(route).items():
                    self.loads[first:last, row] += rate * load
                for routes in self._routes_gbps[first:last]:
                    routes[route] += rate
            for u, v, rate in item.links:
                for links in self._links_gbps[first:last]:
                    links[u, v] += rate
        needed = np.zeros((len(self.loads), self._resources.count))
        np.maximum.at(needed.T, self._resources.row_sites, self.loads.T)
        self.vms: Floats = np.ceil(needed - ROUNDED_SHARE)
        self._charge()

    def _periods_of(self, item: RoutedRates) -> tuple[int, int]:
        first, last = np.searchsorted(self.cuts_s, (item.start_s, item.end_s)).tolist()
        return first, last

    def _charge(self) -> None:
        """Work out each transfer's GB on links that no tariff covers, and what tariffs charge it.

        Tariffs cover the same share of every transfer that uses a link at the same time.
        """
        tariffs = self._request.tariffs
        self._by_tariff_gb = [0.0] * len(tariffs)
        # Per Gbit on a link, by period: the part that meters count, and what tariffs charge.
        terms: list[dict[tuple[int, int], tuple[float, float]]] = []
        for at_s, length_s, links in zip(
            self.cuts_s.tolist(), self._lengths_s, self._links_gbps, strict=False
        ):
            bands, here = self._found.tariffs.at(at_s + length_s / 2), {}
            for link in bands.keys() & links.keys():
                parts, gbps, usd_s = within(bands[link], links[link]), links[link], 0.0
                for number, rate in parts.items():
                    self._by_tariff_gb[number] += rate * length_s / BITS_PER_BYTE
                    usd_s += rate * tariffs[number].per_gb_usd / BITS_PER_BYTE
                here[link] = max(0.0, gbps - fsum(parts.values())) / gbps, usd_s / gbps
            terms.append(here)
        self._charged: list[tuple[int, Pair, float, float]] = []
        self._outside_gb = defaultdict[Pair, float](float)  # the volume that meters count
        for item in self._sending:
            first, last = self._periods_of(item)
            for u, v, rate in item.links:
                gb = usd = 0.0
                for period in range(first, last):
                    gbit = rate * self._lengths_s[period]
                    part, usd_per_gbit = terms[period].get((u, v), (1.0, 0.0))
                    gb += gbit * part / BITS_PER_BYTE
                    usd += gbit * usd_per_gbit
                pair = self._problem.regions[u], self._problem.regions[v]
                self._charged.append((item.number, pair, gb, usd))
                self._outside_gb[pair] += gb

    def most_vms(self) -> dict[str, int]:
        """Return the most VMs at a time by region, of those that take part."""
        return vms_by_region(self._problem.regions, self.vms.max(axis=0, initial=0.0))

    def connections(self) -> dict[str, int]:
        """Return the most connections that a VM of each region needs at a time."""
        most: dict[str, int] = {}
        regions, allowed = self._problem.regions, self._request.connections
        for routes_gbps, vms in zip(self._routes_gbps, self.vms, strict=True):
            paths = np.zeros((len(regions), len(regions), len(regions)))
            for route, rate in routes_gbps.items():
                paths[route[0], route[1], route[-1]] += rate
            resources, rates = self._resources.as_opened(paths), links_of(paths)
            needed = connections_by_region(resources, regions, rates, vms, allowed)
            most.update({k: max(count, most.get(k, 0)) for k, count in needed.items()})
        return {region: most[region] for region in regions if region in most}

    def cost(self, storage_usd: float) -> Cost:
        """Return the cost of fees and VMs."""
        egress_usd = sum(self.egress_usd().values(), 0.0)
        vm_usd = float(self._paid_h(self.vms) @ self._problem.vm_usd_per_h)
        vm_usd += hours_usd(self.fee_lines())
        return Cost(egress_usd, vm_usd, egress_usd + vm_usd + storage_usd)

    def _paid_h(self, vms: Floats) -> Floats:
        """Return the hours that VMs of each period and site, (periods, n), are paid for by site.

        VMs start again each time that a period needs more, and then their paths get up to speed.
        """
        started = np.maximum(0.0, np.diff(vms, axis=0, prepend=0.0))
        leads_s = self._problem.vm_start_s + self._ramps_s
        paid_s = np.array(self._lengths_s) @ vms + (started * leads_s).sum(axis=0)
        return np.asarray(paid_s / S_PER_H)

    @cached_property
    def _ramps_s(self) -> Floats:
        """Time to get up to speed on the longest path at each site, shape (periods, n)."""
        longest_ms = np.zeros_like(self.vms)
        for of_sites, routes in zip(longest_ms, self._routes_gbps, strict=True):
            for route in routes:
                rtt_ms = sum(self._problem.rtt_ms[link] for link in pairwise(route))
                of_sites[[*route]] = np.maximum(of_sites[[*route]], rtt_ms)
        return ramp_up_s(longest_ms)

    def fee_lines(self) -> tuple[FeeLine, ...]:
        """List the fees besides egress, by the hour while a region has VMs."""
        hours = self._paid_h((self.vms > 0).astype(float)).tolist()
        hours_at = dict(zip(self._problem.regions, hours, strict=True))
        return fee_lines(self._prices, self._outside_gb, hours_at)

    def egress_usd(self) -> dict[int, float]:
        """Return the fees of each transfer: its part of what each meter and tariff charges."""
        usd_per_gb = metered_usd_per_gb(self._prices, self._outside_gb)
        usd = defaultdict[int, list[float]](list)
        for number, link, gb, by_tariffs_usd in self._charged:
            usd[number] += gb * usd_per_gb[link], by_tariffs_usd
        return {number: fsum(of) for number, of in usd.items()}

    def _metered_usd(self, links_gb: Mapping[Pair, float]) -> float:
        """Return the metered fees of volumes on links."""
        usd_per_gb = metered_usd_per_gb(self._prices, links_gb)
        return fsum(gb * usd_per_gb[link] for link, gb in links_gb.items())

    def tariffs(self) -> tuple[TariffUse, ...]:
        """Return the volume, the saving and the break-even of each tariff."""
        used = enumerate(zip(self._request.tariffs, self._by_tariff_gb, strict=True))
        return tuple(
            tariff_use(tariff, gb, self._saved_usd([number]) if gb else 0.0)
            for number, (tariff, gb) in used
        )

    def _saved_usd(self, numbers: Collection[int]) -> float:
        """Return the saving of some tariffs: metered fees avoided, less the tariffs' charges."""
        links_gb, by_tariffs_usd = dict(self._outside_gb), 0.0
        for number in numbers:
            tariff, gb = self._request.tariffs[number], self._by_tariff_gb[number]
            links_gb[tariff.src, tariff.dst] += gb
            by_tariffs_usd += gb * tariff.per_gb_usd
        metered_usd = self._metered_usd(self._outside_gb)
        return self._metered_usd(links_gb) - metered_usd - by_tariffs_usd

    def dearer_tariffs(self) -> set[str]:
        """Return the ids of tariffs that should not be used, as meters would charge less.

        A tariff can be below a link's mean fee but above the fee of its last GB. Return the tariffs
        that lose money by themselves; if only all of them together do, the most expensive one.
        """
        used = [number for number, gb in enumerate(self._by_tariff_gb) if gb]
        room_usd = ROUNDED_SHARE * self._metered_usd(self._outside_gb)
        dearer = [number for number in used if self._saved_usd([number]) < -room_usd]
        if not dearer and used and self._saved_usd(used) < -room_usd:
            dearer = [max(used, key=lambda number: self._request.tariffs[number].per_gb_usd)]
        return {self._request.tariffs[number].id for number in dearer}

    def relayed_share(self) -> float:
        """Return the share of the total volume that goes through a relay."""
        whole = relayed = 0.0
        for item in self._sending:
            for route, rate in item.rates_gbps.items():
                of = self._found.commodities[item.number]
                if of.delivers(route):
                    volume = rate * (item.end_s - item.start_s)
                    whole += volume
                    relayed += volume if route != (of.src, of.dst) else 0.0
        return relayed / whole if whole else 0.0

    def busiest(self) -> tuple[Busy, ...]:
        """Return the regions whose VMs are fullest, over the whole time, the fullest first."""
        if not len(self.loads):
            return ()
        shares = self.loads / self._resources.row_vms
        means = np.average(shares, axis=0, weights=self._lengths_s)
        peaks = shares.max(axis=0)
        found: dict[str, Busy] = {}
        for row in np.lexsort((np.arange(len(means)), -means)).tolist():
            kind, site, _ = self._resources.row(row)
            region = self._problem.regions[site]
            if region not in found and peaks[row] > 0 and kind != PATH:
                found[region] = Busy(region, kind, float(peaks[row]), float(means[row]))
        return tuple(list(found.values())[:BUSIEST_SHOWN])

    def periods(self, network: Network) -> dict[int, tuple[Period, ...]]:
        """Return the periods of each transfer; consecutive ones at the same rates are merged.

        Parameters
        ----------
        network : Network
            Gives the kind of address of each link.
        """
        found = defaultdict[int, list[Period]](list)
        for item in sorted(self._sending, key=lambda item: item.start_s):
            of, paths = found[item.number], self._paths(item, network)
            period = Period(item.start_s, item.end_s, sum(item.rates_gbps.values()), paths)
            last = of[-1] if of and of[-1].end_s == period.start_s else None
            if last and [path.regions for path in last.paths] == [path.regions for path in paths]:
                both = zip(last.paths, paths, strict=True)
                rates = [(one.throughput_gbps, other.throughput_gbps) for one, other in both]
                if all(abs(one - other) <= SAME_RATE * one for one, other in rates):
                    of[-1] = replace(last, end_s=period.end_s)
                    continue
            of.append(period)
        return {number: tuple(periods) for number, periods in found.items()}

    def _paths(self, item: RoutedRates, network: Network) -> tuple[PathRate, ...]:
        found = []
        for route, rate in item.rates_gbps.items():
            slowest = min(float(self._resources.connections_gbps[link]) for link in pairwise(route))
            names = tuple(self._problem.regions[site] for site in route)
            connections = max(1, round(self._request.connections * rate / slowest))
            found.append(PathRate(names, rate, connections, network.addresses(names)))
        found.sort(key=lambda path: (len(path.regions), -path.throughput_gbps, path.regions))
        return tuple(found)


def stored_volumes(
    periods: Sequence[Period],
    ends: tuple[str, str],
    lies_gb: Mapping[str, float],
    now_s: float,
    usd_per_gb_month: Mapping[str, float],
) -> tuple[StoredVolume, ...]:
    """Return the volumes of a transfer stored at relays from a time on.

    Parameters
    ----------
    periods : sequence of Period
        From `now_s` on, in order. Rates are constant in each, so stored volumes change linearly.
    ends : tuple of str
        Source and destination.
    lies_gb : mapping
        Volumes stored already, by region.
    usd_per_gb_month : mapping
        By region.
    """
    changes: dict[str, list[tuple[float, float, float]]] = {region: [] for region in lies_gb}
    volume_gb = sum(lies_gb.values())
    for period in periods:
        for region, gbit in period.moved_gbit(*ends).items():
            gb = gbit / BITS_PER_BYTE
            volume_gb += max(0.0, gb)
            if region != ends[1] and gb:
                changes.setdefault(region, []).append((period.start_s, period.end_s, gb))
    found = []
    for region, of in changes.items():
        gb, price = lies_gb.get(region, 0.0), usd_per_gb_month[region]
        since_s, at_s, most_gb, gb_s = now_s, now_s, gb, 0.0
        for start_s, end_s, change_gb in of:
            if gb <= NOTHING_STORED * volume_gb:
                since_s, most_gb, gb_s, gb = start_s, 0.0, 0.0, 0.0
            else:
                gb_s += gb * (start_s - at_s)
            gb_s += (gb + change_gb / 2) * (end_s - start_s)
            gb, at_s = gb + change_gb, end_s
            most_gb = max(most_gb, gb)
            if gb <= NOTHING_STORED * volume_gb:
                found.append(StoredVolume(region, since_s, at_s, most_gb, gb_s * price / MONTH_S))
    return tuple(sorted(found, key=lambda stored: (stored.start_s, stored.region)))
