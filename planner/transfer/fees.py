"""The fees of a transfer whose volume is divided over paths.

A path's fee depends on what the meters of its links count, and that on how the volume is divided. A
plan over one path is charged for the whole volume, and so is every path when a search begins:
since tiers fall, no division is charged less. What is found is then charged for what its links
carry, the search is repeated at those fees, and the cheapest division found is kept. The cost that
is stated is always what the meters count; that no other division is better is proven where fees do
not depend on the division, and elsewhere only up to what the division adds to the fees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

from planner.model.pricing import Pair, Prices, metered_usd_per_gb
from planner.transfer.allocation import EQUAL, Allocation
from planner.transfer.problem import TransferProblem

ROUNDS = 4


class MeteredFees:
    """Charges allocations of one request for what their links carry.

    Parameters
    ----------
    volume_gb : float
    prices : Prices
    links : callable
        Returns the links of a path: direct (None), or through the relay at a position.
    """

    def __init__(
        self, volume_gb: float, prices: Prices, links: Callable[[int | None], list[Pair]]
    ) -> None:
        self.volume_gb, self.prices, self.links = volume_gb, prices, links

    def usd_per_gb(self, allocation: Allocation) -> dict[int | None, float]:
        """Return the fee of each path in use, None being direct, by what its links carry."""
        flows: list[tuple[int | None, float]] = [*allocation.relay_gbps.items()]
        if allocation.direct_gbps:
            flows.append((None, allocation.direct_gbps))
        gb_per_gbps = self.volume_gb / allocation.rate_gbps
        links_gb = {link: flow * gb_per_gbps for path, flow in flows for link in self.links(path)}
        fees = metered_usd_per_gb(self.prices, links_gb)
        return {path: sum(fees[link] for link in self.links(path)) for path, _ in flows}

    def charged(self, allocation: Allocation) -> Allocation:
        """Return an allocation with the fees that meters count."""
        if len(allocation.relay_gbps) + bool(allocation.direct_gbps) == 1:
            return allocation
        fees = self.usd_per_gb(allocation)
        usd_gbps = fees.get(None, 0.0) * allocation.direct_gbps
        usd_gbps += sum(fees[relay] * flow for relay, flow in allocation.relay_gbps.items())
        egress_usd = usd_gbps * self.volume_gb / allocation.rate_gbps
        return replace(allocation, egress_usd=egress_usd)

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
        budget_usd : float, optional
        """
        best: Allocation | None = None
        for _ in range(ROUNDS):
            found = solve(transfer)
            if found is None:
                break
            charged = self.charged(found)
            if charged.cost_usd <= budget_usd * (1 + EQUAL) and (
                best is None or worth(charged) < worth(best)
            ):
                best = charged
            if abs(charged.egress_usd - found.egress_usd) <= EQUAL * charged.egress_usd:
                break
            transfer = _at_fees(transfer, self.usd_per_gb(found))
        return best


def _at_fees(transfer: TransferProblem, usd_per_gb: dict[int | None, float]) -> TransferProblem:
    """Return a problem with other fees on some paths."""
    direct = transfer.direct
    if direct and None in usd_per_gb:
        direct = replace(direct, usd_per_gb=usd_per_gb[None])
    relays = [
        replace(relay, usd_per_gb=usd_per_gb[relay.region]) if relay.region in usd_per_gb else relay
        for relay in transfer.relays
    ]
    return replace(transfer, direct=direct, relays=relays)
