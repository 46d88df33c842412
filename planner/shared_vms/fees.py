"""Fees of volumes on links: each provider's meters count all links of a kind together.

A link's fee depends on the volume that its meter counts (:func:`planner.model.pricing.meter`), and
so on the routing, while a linear program needs one fee per link. Callers therefore begin with the
fees of some routing, find a plan, and repeat at that plan's fees where they differ (:data:`ROUNDS`,
:data:`SAME_FEES`). Stated costs are always those of the metered volumes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from planner.model.answer import FeeLine
from planner.model.pricing import (
    CataloguePrices,
    FlatPrices,
    Pair,
    Prices,
    fee_lines,
    has_fees,
    meter,
)
from planner.model.shared_resources import Floats
from planner.model.units import BITS_PER_BYTE

ROUNDS = 4
SAME_FEES = 5e-3
"""Fees of links that differ by less count as equal."""
LEAST_GB = 1e-9


class LinkFees:
    """Fees of links among n sites, by the volumes on all of them.

    Parameters
    ----------
    regions : sequence of str, length n
        Of the sites; several may be in one region.
    """

    def __init__(self, prices: Prices, regions: Sequence[str]) -> None:
        n = len(regions)
        self._prices, self._regions = prices, regions
        # Links of one meter that have one price list cost the same: the number of each link's
        # list, and of each list an example and its meter.
        self._list_of: NDArray[np.int64] = np.full((n, n), -1)
        self._lists: dict[Hashable, int] = {}
        self._examples: list[Pair] = []
        self._meters: dict[tuple[str, str], int] = {}
        self._meter_of_list: list[int] = []

    def add(self, src: int, dst: int) -> None:
        """Add a link.

        Raises DataError if its price is not known.
        """
        pair, prices = (self._regions[src], self._regions[dst]), self._prices
        key: Hashable = pair  # custom prices may depend on the volume
        if isinstance(prices, CataloguePrices):
            key = meter(*pair), id(prices.price_list(*pair))
        elif type(prices) is FlatPrices:
            key = meter(*pair), prices.egress_usd_per_gb(*pair, LEAST_GB)
        if key not in self._lists:
            prices.egress_usd_per_gb(*pair, LEAST_GB)  # is known
            self._lists[key] = len(self._examples)
            self._examples.append(pair)
            number = self._meters.setdefault(meter(*pair), len(self._meters))
            self._meter_of_list.append(number)
        self._list_of[src, dst] = self._lists[key]

    def usd_per_gbit(self, links_gbit: Floats, missing: float = 0.0) -> Floats:
        """Return the mean fee of each link if the links carry these volumes in the same month.

        Parameters
        ----------
        links_gbit : array, shape (n, n)
        missing : float
            Fee of links that were not added.

        Returns
        -------
        array, shape (n, n)
        """
        of, known = np.array(self._meter_of_list, dtype=np.int64), self._list_of >= 0
        counted_gb = np.zeros(len(self._meters))
        np.add.at(counted_gb, of[self._list_of[known]], links_gbit[known] / BITS_PER_BYTE)
        return self._matrix(self._usd_per_gb(counted_gb[of]), missing)

    @property
    def meters(self) -> int:
        """Number of meters that count any of the links."""
        return len(self._meters)

    def counted_by(self, number: int) -> NDArray[np.bool_]:
        """Return a mask of the links that a meter counts, shape (n, n)."""
        of = np.array([*self._meter_of_list, -1])
        return np.asarray(of[self._list_of] == number)

    def least_usd_per_gbit(self, most_gbit: float | Floats) -> Floats:
        """Return lower bounds on fees under any routing, shape (n, n), 0 where there is no link.

        As volume grows, mean prices fall, or rise from a free first tier and then fall: they are
        least at one of the ends.

        Parameters
        ----------
        most_gbit : float, or array by meter
            The most that meters count.
        """
        most_gb = np.broadcast_to(most_gbit, self.meters)[self._meter_of_list] / BITS_PER_BYTE
        least = np.minimum(self._usd_per_gb(np.zeros(len(most_gb))), self._usd_per_gb(most_gb))
        return self._matrix(least, 0.0)

    def least_part(self, usd_per_gbit: Floats, most_gbit: float | Floats) -> float:
        """Return the least ratio of the fees charged under any routing to some fees."""
        paid = (usd_per_gbit > 0) & (self._list_of >= 0)
        parts = self.least_usd_per_gbit(most_gbit)[paid] / usd_per_gbit[paid]
        return float(parts.min(initial=1.0))

    def usd(self, links_gbit: Floats) -> float:
        """Return the metered fees of volumes on links."""
        return float((links_gbit * self.usd_per_gbit(links_gbit)).sum())

    def lines(self, links_gbit: Floats, hours: Floats) -> tuple[FeeLine, ...]:
        """List the fees besides egress, with the hours that VMs of sites run."""
        links_gb, hours_at = defaultdict[Pair, float](float), dict[str, float]()
        if not has_fees(self._prices):
            return ()
        for region, hours_here in zip(self._regions, hours.tolist(), strict=True):
            if hours_here:
                hours_at[region] = max(hours_here, hours_at.get(region, 0.0))
        for src, dst in np.argwhere(links_gbit).tolist():
            pair = self._regions[src], self._regions[dst]
            links_gb[pair] += float(links_gbit[src, dst]) / BITS_PER_BYTE * (pair[0] != pair[1])
        return fee_lines(self._prices, links_gb, hours_at)

    def _usd_per_gb(self, counted_gb: Floats) -> Floats:
        """Return the mean price of every list at its metered volume."""
        volumes_gb = np.maximum(counted_gb, LEAST_GB).tolist()
        lists = zip(self._examples, volumes_gb, strict=True)
        return np.array([self._prices.egress_usd_per_gb(*pair, gb) for pair, gb in lists])

    def _matrix(self, usd_per_gb: Floats, missing: float) -> Floats:
        return np.append(usd_per_gb / BITS_PER_BYTE, missing)[self._list_of]


def same_fees(one: Floats, other: Floats) -> bool:
    """Return whether fees of links are so close that another round would change nothing."""
    return bool(np.allclose(one, other, rtol=SAME_FEES, atol=0.0))
