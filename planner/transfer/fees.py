"""The fees of a transfer whose volume is divided over paths.

A path's fee depends on what the meters of its links count, and that on how the volume is divided. A
plan over one path is charged for the whole volume, and so is every path when a search begins:
since tiers fall, no division is charged less. What is found is then charged for what its links
carry, the search is repeated at those fees, and the cheapest division found is kept. The cost that
is stated is always what the meters count; that no other division is better is proven where fees do
not depend on the division, and elsewhere only up to what the division adds to the fees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from planner.model.pricing import Pair, Prices, metered_usd_per_gb
from planner.transfer.allocation import EQUAL, Allocation
from planner.transfer.problem import TransferProblem

ROUNDS = 4


class MeteredFees:
    """Charges allocations of one request for what their links carry.

    `links` returns the links of a path: direct (None), or through the relay at a position.
    """

    def __init__(
        self, volume_gb: float, prices: Prices, links: Callable[[int | None], Sequence[Pair]]
    ) -> None:
        self.volume_gb, self.prices, self.links = volume_gb, prices, links

    def links_gb(self, allocation: Allocation) -> dict[Pair, float]:
        """Return the volume on each link in use."""
        gb_per_gbps, flows = self.volume_gb / allocation.rate_gbps, allocation.flows.items()
        return {link: flow * gb_per_gbps for path, flow in flows for link in self.links(path)}

    def usd_per_gb(self, allocation: Allocation) -> dict[int | None, float]:
        """Return the fee of each path in use, None being direct, by what its links carry."""
        fees = metered_usd_per_gb(self.prices, self.links_gb(allocation))
        return {path: sum(fees[link] for link in self.links(path)) for path in allocation.flows}

    def best(
        self,
        transfer: TransferProblem,
        solve: Callable[[TransferProblem], Allocation | None],
        worth: Callable[[Allocation], tuple[float, float]],
        budget_usd: float = inf,
    ) -> Allocation | None:
        """Return the best that is found at the fees of what links carry.

        Parameters
        ----------
        transfer : TransferProblem
            With fees for the whole volume.
        solve : callable
            Returns the best allocation at a problem's fees.
        worth : callable
            Orders allocations, the best first.
        """
        best: Allocation | None = None
        for _ in range(ROUNDS):
            found = solve(transfer)
            if found is None:
                break
            charged, fees = found, {}
            if len(found.flows) > 1:
                fees = self.usd_per_gb(found)
                usd_gbps = sum(fees[path] * flow for path, flow in found.flows.items())
                egress_usd = usd_gbps * self.volume_gb / found.rate_gbps
                charged = replace(found, egress_usd=egress_usd)
            if charged.cost_usd <= budget_usd * (1 + EQUAL) and (
                best is None or worth(charged) < worth(best)
            ):
                best = charged
            if abs(charged.egress_usd - found.egress_usd) <= EQUAL * charged.egress_usd:
                break
            transfer = transfer.at_fees(fees)
        return best
