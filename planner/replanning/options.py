"""Projects keeping the plan and changing it: how long each takes, and what is still to pay."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from planner.model.answer import Bounded, Cost
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.units import S_PER_H
from planner.replanning.plan import ChangeCost, Continuation
from planner.replanning.remaining import Workload


@dataclass(frozen=True)
class Projection:
    """How long a plan still takes and costs, from now to the end.

    Attributes
    ----------
    times_s, costs : tuples
        Where links are as fast as their bounds, as expected, and as slow.
    """

    times_s: tuple[float, float, float]
    costs: tuple[Cost, Cost, Cost]

    def values(self, hour_usd: float) -> tuple[float, ...]:
        """Return cost plus the value of time in USD, or the times in s where time alone counts."""
        if hour_usd == inf:
            return self.times_s
        return tuple(
            cost.total + hour_usd * time_s / S_PER_H
            for time_s, cost in zip(self.times_s, self.costs, strict=True)
        )

    def shown(self) -> Continuation:
        """Return it in the form of the answer."""
        fast, expected, slow = self.times_s
        return Continuation(expected, fast, slow, self.costs[1])


@dataclass(frozen=True)
class Projector:
    """Projects plans on one network and price list, with one request's connections and VM start."""

    network: Network
    prices: Prices
    connections: int
    pair_connections: int
    vm_start_s: float

    def keep(self, workload: Workload) -> Projection:
        """Project keeping the plan: its VMs run, and its connections are up to speed."""
        span = workload.transfer_s(self.network, self.connections, self.pair_connections)
        egress_usd = workload.egress_usd(self.prices)
        hourly_usd = workload.vm_usd_per_h(self.prices)
        fast, expected, slow = (
            Cost.of(egress_usd, hourly_usd * time_s / S_PER_H) for time_s in span
        )
        return Projection((span.low, span.expected, span.high), (fast, expected, slow))

    def change(
        self, old: Workload, new: Workload, keep: Projection
    ) -> tuple[Projection, ChangeCost] | None:
        """Project changing the plan; None if the old plan ends before the new VMs have started.

        Until they have, the old plan continues at its expected rate.
        """
        prices = self.prices
        regions = dict.fromkeys([*old.vms, *new.vms])
        start = {r: n for r in regions if (n := new.vms.get(r, 0) - old.vms.get(r, 0)) > 0}
        stop = {r: n for r in regions if (n := old.vms.get(r, 0) - new.vms.get(r, 0)) > 0}
        wait_s = self.vm_start_s if start else 0.0
        moved = wait_s / keep.times_s[1] if keep.times_s[1] > 0 else 1.0
        if moved >= 1:
            return None
        ramp_s = new.ramp_up_s(self.network, old.routes)
        hourly_old, hourly_new = old.vm_usd_per_h(prices), new.vm_usd_per_h(prices)
        starting = sum(n * prices.vm_usd_per_h(region) for region, n in start.items())
        egress_usd = moved * old.egress_usd(prices) + (1 - moved) * new.egress_usd(prices)
        span = new.transfer_s(self.network, self.connections, self.pair_connections)
        fast_s, expected_s, slow_s = ((1 - moved) * time_s + ramp_s for time_s in span)

        def cost(rest_s: float) -> Cost:
            vm_usd = (hourly_old + starting) * wait_s + hourly_new * rest_s
            return Cost.of(egress_usd, vm_usd / S_PER_H)

        projection = Projection(
            (wait_s + fast_s, wait_s + expected_s, wait_s + slow_s),
            (cost(fast_s), cost(expected_s), cost(slow_s)),
        )
        usd = (starting * wait_s + hourly_new * ramp_s) / S_PER_H
        return projection, ChangeCost(start, stop, wait_s, ramp_s, usd)


def gain_of(change: Projection, keep: Projection, hour_usd: float) -> Bounded:
    """Return how many times better a change is: expected, and at the bounds against and for it."""
    kept, changed = keep.values(hour_usd), change.values(hour_usd)

    def ratio(over: float, of: float) -> float:
        return over / of if of > 0 and min(over, of) < inf else 1.0

    return Bounded(
        ratio(kept[1], changed[1]), ratio(kept[0], changed[2]), ratio(kept[2], changed[0])
    )


def difference(kept: tuple[float, ...], changed: tuple[float, ...]) -> Bounded:
    """Return what a change saves: expected, and at the bounds against and for it."""
    return Bounded(kept[1] - changed[1], kept[0] - changed[2], kept[2] - changed[0])
