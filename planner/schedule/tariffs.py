"""Tariffs of links over time: when they change, and how much of a rate they cover.

A percentile contract bills a month by the rate that is exceeded in 5 % of its intervals only, so
what is sent below a rate that is paid already is free (Laoutaris et al., *Inter-Datacenter Bulk
Transfers with NetStitcher*, SIGCOMM 2011; Feng et al., *Jetway*, ACM Multimedia 2012).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from planner.model.errors import InputError
from planner.model.shared_resources import Floats
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.schedule.plan import TariffUse
from planner.schedule.request import SAME_S, Tariff

# Each change of price is a slot more, and the program grows with slots.
MOST_CHANGES = 1000
MONTH_S = 730 * S_PER_H
MICROSECONDS = 6


class Band(NamedTuple):
    """A part of a link's rate that has a price of its own, by the number of its tariff."""

    number: int
    rate_gbps: float
    usd_per_gbit: float
    tariff: Tariff


class LinkTariffs:
    """The tariffs of links between sites.

    Parameters
    ----------
    tariffs : sequence of Tariff
        Between regions by id.
    regions : sequence of str
        Of the sites; tariffs of others do not matter.
    usd_per_gbit : array, shape (n, n)
        Fees of links; tariffs that are no cheaper do not matter.
    unused : collection of str
        Ids of tariffs to do without.
    """

    def __init__(
        self,
        tariffs: Sequence[Tariff],
        regions: Sequence[str],
        usd_per_gbit: Floats,
        unused: Collection[str] = (),
    ) -> None:
        index = {region: site for site, region in enumerate(regions)}
        self._bands = defaultdict[tuple[int, int], list[Band]](list)
        for number, tariff in enumerate(tariffs):
            if tariff.src in index and tariff.dst in index and tariff.id not in unused:
                link, rate = (index[tariff.src], index[tariff.dst]), tariff.rate_gbps
                usd = tariff.per_gb_usd / BITS_PER_BYTE
                if usd < usd_per_gbit[link]:
                    band = Band(number, inf if rate is None else rate, usd, tariff)
                    self._bands[link].append(band)
        for bands in self._bands.values():
            bands.sort(key=lambda band: band.usd_per_gbit)

    def cuts_s(self, times_s: Iterable[float]) -> Floats:
        """Add to times those between them at which a tariff begins or ends.

        Changes within a microsecond of a given time are dropped, or rounding would make slots of no
        length, in which VMs stop and start again.

        Raises InputError if that is too often.
        """
        times = np.unique(np.array(list(times_s), dtype=float))
        if not len(times):
            return times
        from_s, to_s = float(times[0]), float(times[-1])
        tariffs = [band.tariff for bands in self._bands.values() for band in bands]
        of_tariffs = {tariff.id: _changes_s(tariff, from_s, to_s) for tariff in tariffs}
        found = np.array([at_s for of in of_tariffs.values() for at_s in of], dtype=float)
        changes = np.unique(np.round(found, MICROSECONDS))
        changes = changes[(changes > from_s) & (changes < to_s)]
        if len(changes) > MOST_CHANGES:
            most = max(of_tariffs, key=lambda name: len(of_tariffs[name]))
            raise InputError(
                "tariffs",
                f"change more than {MOST_CHANGES} times in what is scheduled, {most} most often",
                remedy="Give hours rather than seconds in every_s, fewer tariffs, or schedule a "
                "shorter time.",
            )
        at = np.searchsorted(times, changes)
        apart_s = np.minimum(changes - times[at - 1], times[at] - changes)
        return np.union1d(times, changes[apart_s > SAME_S])

    def at(self, time_s: float) -> dict[tuple[int, int], list[Band]]:
        """Return the bands that hold at a time, by link, the cheapest first."""
        now = {
            link: [band for band in bands if band.tariff.holds_at(time_s)]
            for link, bands in self._bands.items()
        }
        return {link: bands for link, bands in now.items() if bands}

    def least_usd_per_gbit(self, usd_per_gbit: Floats) -> Floats:
        """Return the lowest fee of each link at any time, shape (n, n)."""
        least = usd_per_gbit.copy()
        for link, bands in self._bands.items():
            least[link] = bands[0].usd_per_gbit
        return least


def _changes_s(tariff: Tariff, from_s: float, to_s: float) -> list[float]:
    """List the times at which a tariff begins or ends between two times, up to one too many."""
    every_s, first, many = tariff.every_s or 0.0, 0, 0
    if every_s:
        first = max(0, int((from_s - tariff.start_s) / every_s))
        many = int(min(MOST_CHANGES, max(0.0, (to_s - tariff.start_s) / every_s - first)))
    ends_s = [tariff.start_s] if tariff.end_s is None else [tariff.start_s, tariff.end_s]
    # One turn more, as it may begin in the last moment.
    return [turn * every_s + at_s for turn in range(first, first + many + 2) for at_s in ends_s]


def within(bands: Sequence[Band], rate_gbps: float) -> dict[int, float]:
    """Return the part of a link's rate in each band, by tariff."""
    found: dict[int, float] = {}
    for band in bands:
        if rate_gbps <= 0:
            break
        found[band.number] = min(rate_gbps, band.rate_gbps)
        rate_gbps -= found[band.number]
    return found


def tariff_use(tariff: Tariff, volume_gb: float, saved_usd: float) -> TariffUse:
    """Return the use of a tariff, with its break-even if savings grow with the volume."""
    pays = tariff.monthly_usd > 0 and volume_gb > 0 and saved_usd > 0
    held_s = min(MONTH_S, inf if tariff.end_s is None else tariff.end_s - tariff.start_s)
    if tariff.end_s is not None and tariff.every_s is not None:
        held_s = MONTH_S * (tariff.end_s - tariff.start_s) / tariff.every_s
    full_gb = None if tariff.rate_gbps is None else tariff.rate_gbps * held_s / BITS_PER_BYTE
    break_even_gb = tariff.monthly_usd * volume_gb / saved_usd if pays else None
    of = tariff.id, tariff.src, tariff.dst, volume_gb, saved_usd, tariff.monthly_usd
    return TariffUse(*of, break_even_gb, full_gb)
