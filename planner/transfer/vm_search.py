"""Branch and bound over the numbers of VMs of one transfer.

:mod:`planner.transfer.problem` states the problem. Few integers matter (VMs at both ends and at
about eight of sixty relays), and each node of the search is a linear program of a few rows
(:mod:`.vm_programs`). Many relays are nearly equal, and to split on one of them after the other
proves little: the search splits on the VMs at all relays together first. Where the rate is free, it
splits on the rate, too, as long as a program's envelope leaves out more than fractions of VMs do.
It looks for the least cost (:class:`LeastCost`), value or rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count
from math import floor, inf, sqrt

from planner.solvers.simplex import BoxedSimplex
from planner.transfer.allocation import EQUAL, Allocation, allocate, whole_vms
from planner.transfer.problem import Relay, TransferProblem
from planner.transfer.vm_programs import (
    DESTINATION,
    DST_VMS,
    IDLE_VMS,
    SHARE,
    SOURCE,
    SRC_VMS,
    Corner,
    Range,
    VmPrograms,
)

NEGLIGIBLE = 5e-8
"""Shares of the rate below this are what the program's rounding left: the largest path takes them,
well within :data:`~planner.transfer.allocation.ROUNDING`."""
GAP = 1e-6  # relative: a hundredth of a cent on a hundred dollars
SAME_RATE = 1.01  # rates within this ratio are not split further
ALL_RELAYS = -3  # in place of a relay's position, as SOURCE and DESTINATION


@dataclass(slots=True)
class Node:
    """A part of the search: ranges of VM counts, and the program for them.

    Attributes
    ----------
    all_relays : Range | None
        Of the VMs at all relays together; None before the search has split on them.
    least_share, most_share : float
        Of the greatest rate: slower than that, nothing in this part is worth finding, and faster
        plans are in other parts.
    worth_usd : float
        The value per rate that the program was built with (see :class:`BestValue`).
    corner : Corner
        Of its ranges, where what its program says of start-up costs is exact.
    """

    src: Range
    dst: Range
    relays: list[Range]
    all_relays: Range | None
    program: BoxedSimplex
    constant: float
    least_share: float
    most_share: float = 1.0
    worth_usd: float = 0.0
    corner: Corner = (1.0, 0.0)


class VmSearch(VmPrograms):
    """Branch and bound, best bound first, whatever the objective."""

    def __init__(
        self,
        transfer: TransferProblem,
        relays: Sequence[Relay],
        rate_gbps: float,
        budget_usd: float = inf,
        at_least_gbps: float = 0.0,
    ) -> None:
        super().__init__(transfer, relays, rate_gbps, budget_usd)
        # With all its VMs as full as they get, no plan is slower than its slowest part.
        slowest = [transfer.src.cap_gbps, transfer.dst.cap_gbps]
        slowest += [relay.vm_gbps for relay in relays]
        fees = [relay.usd_per_gb for relay in relays]
        if self.direct:
            slowest.append(self.direct.pair_gbps)
            fees.append(self.direct.usd_per_gb)
        self.least_share = min(1.0, max(at_least_gbps, min(slowest)) / rate_gbps)
        if self.fixed_rate:
            self.least_share = 1.0
        self.best: Allocation | None = None
        self.least_egress_usd = transfer.volume_gb * min(fees, default=0.0)

    def run(self) -> Allocation | None:
        """Return the best allocation."""
        src, dst = self.transfer.src, self.transfer.dst
        if not (self.relays or self.direct) or src.quota < 1 or dst.quota < 1:
            return self.best
        least_gbps = self.least_share * self.rate_gbps
        pair = self.direct.pair_gbps if self.direct else 0.0
        most_out = pair + sum([relay.in_gbps for relay in self.relays])
        most_in = pair + sum([relay.out_gbps for relay in self.relays])
        src_vms = whole_vms(least_gbps / min(src.cap_gbps, most_out)), src.quota
        dst_vms = whole_vms(least_gbps / min(dst.cap_gbps, most_in)), dst.quota
        fresh = [self._node(src_vms, dst_vms, *self._relay_vms(least_gbps))]
        queue: list[tuple[float, int, Node, list[float]]] = []
        order = count()
        while True:
            for part in fresh:
                solution = self.solved(part.program, part.src, part.dst) if part else None
                if part is None or solution is None:
                    continue
                bound = part.program.value(solution) + part.constant
                if not self._promising(part, bound):
                    continue
                if found := self._rounded(solution):
                    self._consider(found)
                    if not self._promising(part, bound):
                        continue
                if self.fixed_rate and len(fresh) == 1:  # the root
                    solution = self._without_hopeless_relays(part, bound, solution)
                heappush(queue, (bound, next(order), part, solution))
            while queue:
                bound, _, part, solution = heappop(queue)
                if self._promising(part, bound):
                    break
            else:
                return self._with_fewest_relays()
            fresh = list(self._branches(part, solution))

    # ---- what an objective defines -----------------------------------------------------------

    def _promising(self, node: Node, bound: float) -> bool:
        """Return whether a part of the search can improve on the best so far."""
        raise NotImplementedError

    def _consider(self, found: Allocation) -> None:
        """Take an allocation as the best so far if it is."""
        raise NotImplementedError

    def _is_as_good(self, one: Allocation, best: Allocation) -> bool:
        """Return whether an allocation is as good as the best."""
        raise NotImplementedError

    def _worth_usd(self) -> float:
        """Return the value of a unit of rate in the program."""
        return 0.0

    def _constant_usd(self) -> float:
        """Return the constant to add to the program's optimum."""
        return 0.0

    def _slowest_share(self, decided_usd_per_h: float) -> float:
        """Return the rate below which a part with these VMs can hold nothing better."""
        left_usd = self.budget_usd - self.least_egress_usd - self.start_h * decided_usd_per_h
        return least_share(self.full_rate_h * decided_usd_per_h, left_usd)

    def _most_usd_per_h(
        self, src: Range, dst: Range, relays: list[Range], all_relays: Range | None
    ) -> float:
        """Return the greatest hourly price of all VMs of a part."""
        prices = [relay.vm_usd_per_h for relay in self.relays]
        most = sum([price * high for price, (_, high) in zip(prices, relays, strict=True)])
        if all_relays:
            most = min(most, all_relays[1] * max(prices))
        ends = self.transfer.src, self.transfer.dst
        return most + src[1] * ends[0].vm_usd_per_h + dst[1] * ends[1].vm_usd_per_h

    def _relay_vms(self, least_gbps: float) -> tuple[list[Range], Range | None]:
        """Return the ranges of VMs of each relay, and of all: enough for what direct leaves."""
        ranges = [(0, relay.quota) for relay in self.relays]
        src, dst = self.transfer.src, self.transfer.dst
        direct_gbps = self.direct.pair_gbps * min(src.quota, dst.quota) if self.direct else 0.0
        if not ranges or least_gbps <= direct_gbps * (1 + EQUAL):
            return ranges, None
        vms = whole_vms((least_gbps - direct_gbps) / max([relay.vm_gbps for relay in self.relays]))
        quota = sum([relay.quota for relay in self.relays])
        if len(ranges) > 1 or vms > quota:
            return ranges, (vms, quota)
        return [(vms, quota)], None

    # ---- nodes -------------------------------------------------------------------------------

    def _node(
        self,
        src: Range,
        dst: Range,
        relays: list[Range],
        all_relays: Range | None,
        least_share: float = 0.0,
        most_share: float = 1.0,
        parent: Node | None = None,
        near: Corner | None = None,
    ) -> Node | None:
        if src[0] > src[1] or dst[0] > dst[1]:
            return None
        beyond = _beyond(all_relays, relays)
        if beyond[0] > beyond[1]:
            return None
        ends = self.transfer.src, self.transfer.dst
        relays_usd_per_h = sum(
            [low * r.vm_usd_per_h for r, (low, _) in zip(self.relays, relays, strict=True)]
        )
        share = 1.0
        if not self.fixed_rate:
            least_usd_per_h = src[0] * ends[0].vm_usd_per_h + dst[0] * ends[1].vm_usd_per_h
            least_usd_per_h += relays_usd_per_h + beyond[0] * self.least_relay_usd_per_h
            share = max(self.least_share, least_share, self._slowest_share(least_usd_per_h))
            if share > most_share + EQUAL:
                return None
            share = min(share, most_share)
            least_gbps = share * self.rate_gbps
            src = (max(src[0], whole_vms(least_gbps / ends[0].cap_gbps)), src[1])
            dst = (max(dst[0], whole_vms(least_gbps / ends[1].cap_gbps)), dst[1])
            if src[0] > src[1] or dst[0] > dst[1]:
                return None
        decided_usd_per_h = src[0] * ends[0].vm_usd_per_h + dst[0] * ends[1].vm_usd_per_h
        decided_usd_per_h += relays_usd_per_h
        worth = self._worth_usd()
        corner = share, decided_usd_per_h
        if near:
            most_usd_per_h = self._most_usd_per_h(src, dst, relays, all_relays)
            corner = max(corner, (most_share, most_usd_per_h), key=partial(_product_near, near))
        # What a budget allows is a row of its own, whose coefficients depend on the ranges.
        goes_on = parent.program if parent and self.budget_usd == inf else None
        program, decided = self.program(
            src, dst, relays, (share, most_share), corner, worth, goes_on
        )
        if all_relays:
            is_new = not (goes_on and parent and parent.all_relays)
            self.limit_all_relays(program, beyond, is_new=is_new)
        constant = decided + self._constant_usd()
        return Node(
            src, dst, relays, all_relays, program, constant, share, most_share, worth, corner
        )

    def _rounded(self, solution: list[float]) -> Allocation | None:
        """Return a node's flows with whole VMs, if the quotas and the budget allow it."""
        transfer, rate = self.transfer, self.rate_gbps
        shares = self.shares(solution)
        kept = [share if share > NEGLIGIBLE else 0.0 for share in shares]
        if not any(kept):
            return None
        kept[kept.index(max(kept))] += sum(shares) - sum(kept)
        direct_gbps = kept[0] * rate
        relay_gbps = {
            relay.region: share * rate
            for relay, share in zip(self.relays, kept[1:], strict=True)
            if share
        }
        found = allocate(transfer, direct_gbps, relay_gbps, stretch=not self.fixed_rate)
        return found if self._is_allowed(found) else None

    def _is_allowed(self, found: Allocation) -> bool:
        """Return whether quotas of the ends and the budget allow an allocation."""
        return (
            found.src_vms <= self.transfer.src.quota
            and found.dst_vms <= self.transfer.dst.quota
            and found.cost_usd <= self.budget_usd * (1 + EQUAL)
        )

    def _with_fewest_relays(self) -> Allocation | None:
        """Return the best allocation, with one relay in place of several where that is as good.

        Many relays have the same prices, and programs split flows over them at no gain.
        """
        best = self.best
        if best is None or len(best.relay_gbps) < 2:
            return best
        relayed_gbps = sum(best.relay_gbps.values())
        for relay in sorted(self.relays, key=lambda r: -best.relay_gbps.get(r.region, 0.0)):
            flows = {relay.region: relayed_gbps}
            one = allocate(
                self.transfer, best.direct_gbps, flows, stretch=not self.fixed_rate, relays=[relay]
            )
            allowed = one.relay_vms[relay.region] <= relay.quota and self._is_allowed(one)
            if allowed and self._is_as_good(one, best):
                return one
        return best

    def _branches(self, node: Node, solution: list[float]) -> Iterator[Node | None]:
        """Split a node on the VM count whose rounding would cost most."""
        transfer = self.transfer
        best, which, (low, high), vms = (-1.0, 0.0), 0, (0, 0), 0.0
        ends = (
            (SOURCE, node.src, solution[self.column(SRC_VMS)], transfer.src.vm_usd_per_h),
            (DESTINATION, node.dst, solution[self.column(DST_VMS)], transfer.dst.vm_usd_per_h),
        )
        # Where nothing is left to round, decide what the solution uses before what it does not.
        for end, (least, most), load, price in ends:
            if least < most and (weight := (_rounding(load) * price, load)) > best:
                best, which, (low, high), vms = weight, end, (least, most), load
        loads = [
            least + solution[2 + 2 * k] * self.rate_gbps / relay.vm_gbps
            for k, (relay, (least, _)) in enumerate(zip(self.relays, node.relays, strict=True))
        ]
        all_relays = node.all_relays or (
            sum([least for least, _ in node.relays]),
            sum([most for _, most in node.relays]),
        )
        in_all = sum(loads) + solution[self.column(IDLE_VMS)]
        if len(loads) > 1 and all_relays[0] < all_relays[1] and (rest := _rounding(in_all)):
            weight = (rest * self.least_relay_usd_per_h, in_all)
            if weight > best:
                best, which, (low, high), vms = weight, ALL_RELAYS, all_relays, in_all
        else:
            for k, (relay, (least, most)) in enumerate(zip(self.relays, node.relays, strict=True)):
                if least < most:
                    weight = (_rounding(loads[k]) * relay.vm_usd_per_h, loads[k])
                    if weight > best:
                        best, which, (low, high), vms = weight, k, (least, most), loads[k]
        near = None
        if not self.fixed_rate:
            near = solution[self.column(SHARE)], self._usd_per_h(node, solution)
        if near and (share := self._rate_to_split(node, near, best[0])) is not None:
            of_vms = node.src, node.dst, node.relays, node.all_relays
            for shares in ((node.least_share, share), (share, node.most_share)):
                yield self._node(*of_vms, *shares, node, near)
            return
        if low == high:
            return
        whole = round(vms)
        split = whole - 1 if abs(vms - whole) <= 1e-7 else floor(vms)
        split = min(max(low, split), high - 1)
        for part in ((low, split), (split + 1, high)):
            src = part if which == SOURCE else node.src
            dst = part if which == DESTINATION else node.dst
            together = part if which == ALL_RELAYS else node.all_relays
            relays = node.relays
            if which >= 0:
                relays = relays.copy()
                relays[which] = part
            shares = node.least_share, node.most_share
            yield self._node(src, dst, relays, together, *shares, node, near)

    def _usd_per_h(self, node: Node, solution: list[float]) -> float:
        """Return the hourly price of all VMs of a solution."""
        src, dst = self.transfer.src, self.transfer.dst
        usd_per_h = solution[self.column(SRC_VMS)] * src.vm_usd_per_h
        usd_per_h += solution[self.column(DST_VMS)] * dst.vm_usd_per_h
        usd_per_h += solution[self.column(IDLE_VMS)] * self.least_relay_usd_per_h
        for k, (relay, (low, _)) in enumerate(zip(self.relays, node.relays, strict=True)):
            vms = low + solution[2 + 2 * k] * self.rate_gbps / relay.vm_gbps
            usd_per_h += vms * relay.vm_usd_per_h
        return usd_per_h

    def _rate_to_split(self, node: Node, near: Corner, rounding_usd_per_h: float) -> float | None:
        """Return the rate at which to split a node: None if splitting on VMs proves more.

        What the envelope leaves out is ``t_start (R - R0) (S - S0)``, with the corner's R0 and S0.
        """
        if not self.start_h or not self.counts_cost:
            return None
        least, most = node.least_share, node.most_share
        left_out = self.start_h * (near[0] - node.corner[0]) * (near[1] - node.corner[1])
        rounding = rounding_usd_per_h * (self.full_rate_h + self.start_h * least)
        if left_out <= 2 * rounding or most < least * SAME_RATE:
            return None
        return sqrt(least * most)

    def _without_hopeless_relays(
        self, node: Node, bound: float, solution: list[float]
    ) -> list[float]:
        """Leave out for good the relays whose first VM would cost more than the best so far.

        With the program's dual values, one VM at an unused relay adds at least its price, or
        the reduced cost of all that it can carry (reduced-cost fixing).
        """
        hopeless = set()
        for k, relay in enumerate(self.relays):
            if node.relays[k][0] == 0 and solution[2 + 2 * k] == 0.0:
                flow_usd = node.program.reduced_cost(2 + 2 * k) * relay.vm_gbps / self.rate_gbps
                vm_usd = self.vm_usd(relay.vm_usd_per_h, 1.0)
                if flow_usd >= 0 and not self._promising(node, bound + min(flow_usd, vm_usd)):
                    hopeless.add(k)
        if not hopeless:
            return solution
        columns = {column for k in hopeless for column in (1 + 2 * k, 2 + 2 * k)}
        node.program.drop(columns)
        node.relays = [r for k, r in enumerate(node.relays) if k not in hopeless]
        self.relays = [r for k, r in enumerate(self.relays) if k not in hopeless]
        return [x for j, x in enumerate(solution) if j not in columns]


def least_share(usd_at_full_rate: float, left_usd: float) -> float:
    """Return the share s at which ``usd_at_full_rate / s`` is all that is left."""
    if left_usd > 0:
        return usd_at_full_rate / left_usd
    return inf if usd_at_full_rate > 0 or left_usd < 0 else 0.0


def _beyond(all_relays: Range | None, relays: list[Range]) -> Range:
    """Return the range of VMs at relays beyond those that each relay has at least."""
    if all_relays is None:
        return 0, 0
    decided = sum([least for least, _ in relays])
    return max(0, all_relays[0] - decided), all_relays[1] - decided


def _product_near(near: Corner, corner: Corner) -> float:
    """Return the lower bound of rate times hourly price, by the envelope that touches a corner."""
    return corner[0] * near[1] + corner[1] * near[0] - corner[0] * corner[1]


def _rounding(vms: float) -> float:
    fraction = vms - floor(vms + 1e-7)
    return 1.0 - fraction if fraction > 1e-7 else 0.0


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
