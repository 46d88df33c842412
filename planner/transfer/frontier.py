"""The cost-time frontier: the least cost at every rate."""

from __future__ import annotations

from collections.abc import Sequence

from planner.transfer.allocation import Allocation
from planner.transfer.fees import MeteredFees
from planner.transfer.optimum import least_cost, most_rate_gbps
from planner.transfer.problem import TransferProblem
from planner.transfer.single_path import best_on_path

POINTS = 20
# No plan needs to be slower than one VM pair direct, nor slower than this share of the greatest
# rate.
LEAST_SHARE = 0.02
JUST_BELOW = 1 - 1e-9
SAME = 1e-6


def cost_time_frontier(
    transfer: TransferProblem, points: int = POINTS, fees: MeteredFees | None = None
) -> list[Allocation]:
    """Return allocations from the cheapest to the fastest, none beaten in both cost and time.

    Parameters
    ----------
    transfer : TransferProblem
    points : int
        Rates at which the least cost is computed, in equal ratios; dominated ones are dropped.
    fees : MeteredFees, optional
        Charges what each path carries; without it, the problem's fees are taken to hold for any
        share.
    """

    def cheapest_at(rate: float) -> Allocation | None:
        if fees is None:
            return least_cost(transfer, rate)
        return fees.best(
            transfer, lambda charged: least_cost(charged, rate), lambda a: (a.cost_usd, 0.0)
        )

    most = most_rate_gbps(transfer)
    if most <= 0:
        return []
    cheapest = best_on_path(transfer, None)
    slowest = min(cheapest.rate_gbps if cheapest else most, most)
    slowest = max(slowest, most * LEAST_SHARE)
    steps = max(points - 1, 1)
    rates = [slowest * (most / slowest) ** (i / steps) * JUST_BELOW for i in range(points)]
    found = [allocation for rate in rates if (allocation := cheapest_at(rate))]
    return pareto(([cheapest] if cheapest else []) + found)


def pareto(allocations: Sequence[Allocation]) -> list[Allocation]:
    """Return those that no other beats in cost without being slower, slowest first.

    Differences of a millionth are none.
    """
    kept: list[Allocation] = []
    for allocation in sorted(allocations, key=lambda a: (-a.rate_gbps, a.cost_usd)):
        if kept and allocation.cost_usd >= kept[-1].cost_usd * (1 - SAME):
            continue
        if kept and allocation.rate_gbps >= kept[-1].rate_gbps * (1 - SAME):
            kept.pop()
        kept.append(allocation)
    return kept[::-1]
