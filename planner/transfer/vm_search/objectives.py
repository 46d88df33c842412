"""What a search over numbers of VMs looks for: least cost, best value or greatest rate."""

from __future__ import annotations

from collections.abc import Sequence

from planner.transfer.allocation import EQUAL, Allocation
from planner.transfer.problem import Relay, TransferProblem
from planner.transfer.vm_search.branch_and_bound import GAP, Node, VmSearch, least_share
from planner.transfer.vm_search.programs import Range


class LeastCost(VmSearch):
    """The cheapest allocation at exactly a rate."""

    fixed_rate = True

    def _promising(self, node: Node, bound: float) -> bool:  # noqa: ARG002
        best = self.best
        return best is None or bound < best.cost_usd * (1 - GAP)

    def _consider(self, found: Allocation) -> None:
        if self.best is None or found.cost_usd < self.best.cost_usd:
            self.best = found

    def _is_as_good(self, one: Allocation, best: Allocation) -> bool:
        return one.cost_usd <= best.cost_usd * (1 + EQUAL)


class BestValue(VmSearch):
    """The least ``cost + time value x duration``, with the rate free.

    A ratio of linear functions, ``(cost R + time value 8 D) / R``, is below q exactly where
    ``cost R + time value 8 D - q R`` is below zero (Dinkelbach, *On nonlinear fractional
    programming*, Management Science 13, 1967). q is the best value so far. It falls during the
    search, and a part that held nothing below a larger q holds nothing below a smaller one: a
    single tree does.
    """

    def __init__(
        self,
        transfer: TransferProblem,
        relays: Sequence[Relay],
        rate_gbps: float,
        budget_usd: float,
        at_least_gbps: float,
        time_value_usd_per_h: float,
        best: Allocation,
    ) -> None:
        super().__init__(transfer, relays, rate_gbps, budget_usd, at_least_gbps)
        self.time_usd = time_value_usd_per_h * self.full_rate_h
        self.best = best
        self.value_usd = self._value(best)

    def _value(self, found: Allocation) -> float:
        return found.cost_usd + self.time_usd * self.rate_gbps / found.rate_gbps

    def _promising(self, node: Node, bound: float) -> bool:
        # The bound was computed with the value of then: in terms of today's it is higher.
        bound += (node.worth_usd - self.value_usd) * node.least_share
        return bound < -GAP * self.value_usd * node.least_share

    def _consider(self, found: Allocation) -> None:
        if (value := self._value(found)) < self.value_usd:
            self.best, self.value_usd = found, value

    def _is_as_good(self, one: Allocation, best: Allocation) -> bool:
        return self._value(one) <= self._value(best) * (1 + EQUAL)

    def _worth_usd(self) -> float:
        return self.value_usd

    def _constant_usd(self) -> float:
        return self.time_usd

    def _most_usd_per_h(
        self, src: Range, dst: Range, relays: list[Range], all_relays: Range | None
    ) -> float:
        # Nothing better than the best so far pays more for VMs, even if it is as fast as can be.
        vm_usd = self.value_usd - self.least_egress_usd - self.time_usd
        paid = vm_usd / (self.full_rate_h + self.start_h)
        return min(paid, super()._most_usd_per_h(src, dst, relays, all_relays))

    def _slowest_share(self, decided_usd_per_h: float) -> float:
        left_usd = self.value_usd - self.least_egress_usd - self.start_h * decided_usd_per_h
        slowest = least_share(self.time_usd + self.full_rate_h * decided_usd_per_h, left_usd)
        return max(slowest, super()._slowest_share(decided_usd_per_h))


class GreatestRate(VmSearch):
    """The greatest rate, whatever the cost within the budget."""

    counts_cost = False

    def _promising(self, node: Node, bound: float) -> bool:  # noqa: ARG002
        return self.best is None or -bound * self.rate_gbps > self.best.rate_gbps * (1 + GAP)

    def _consider(self, found: Allocation) -> None:
        if self.best is None or found.rate_gbps > self.best.rate_gbps:
            self.best = found

    def _is_as_good(self, one: Allocation, best: Allocation) -> bool:
        return one.rate_gbps >= best.rate_gbps * (1 - EQUAL)

    def _worth_usd(self) -> float:
        return 1.0

    def _slowest_share(self, decided_usd_per_h: float) -> float:
        reached = self.best.rate_gbps / self.rate_gbps if self.best else 0.0
        return max(reached, super()._slowest_share(decided_usd_per_h))
