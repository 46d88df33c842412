"""The optimal allocation for one transfer, by branch and bound over the numbers of VMs.

:mod:`planner.transfer` states the problem. Few integers matter (VMs at both ends and at about
eight of sixty relays), and each node of the search is a linear program of three to six rows
(:mod:`planner.simplex`).

All costs are multiplied by the rate R, which makes them linear::

    cost R = D sum_p x_p fee_p + 8 D sum_v n_v price_v + t_start R sum_v n_v price_v

The last term is a product of two variables when the rate is free. A node with ``n >= L`` and
``R >= R0`` uses its lower envelope ``R S(L) + R0 (S(n) - S(L))`` with ``S(n) = sum n_v price_v``
(McCormick, *Mathematical Programming* 10, 1976), which is exact once all VMs are decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import floor, inf
from typing import TypeAlias

from planner.simplex import BoxedSimplex
from planner.transfer import EQUAL, Allocation, Transfer, relevant_relays, whole_vms
from planner.units import S_PER_H

GAP = 1e-6  # relative: a hundredth of a cent on a hundred dollars
DINKELBACH_ROUNDS = 50
Range: TypeAlias = tuple[int, int]


def least_cost(transfer: Transfer, rate_gbps: float) -> Allocation | None:
    """Return the cheapest allocation at exactly this rate, or None if there is none."""
    if rate_gbps <= 0:
        return None
    return (
        _direct_if_unbeatable(transfer, rate_gbps)
        or _Search(transfer, rate_gbps, rate_gbps).cheapest()
    )


def least_value(
    transfer: Transfer,
    *,
    time_value_usd_per_h: float = 0.0,
    at_least_gbps: float = 0.0,
    budget_usd: float = inf,
) -> Allocation | None:
    """Return the allocation that minimises ``cost + time value x duration``.

    The rate is free above ``at_least_gbps``: VMs are paid by the hour, so going faster can even
    be cheaper. The ratio of a linear function to the rate is minimised by Dinkelbach's method
    (*On nonlinear fractional programming*, Management Science 13, 1967).
    """
    limit = most_rate_gbps(transfer)
    if limit <= 0 or limit < at_least_gbps * (1 - EQUAL):
        return None
    # A floor far below every real rate keeps the ratio defined.
    lowest = min(max(at_least_gbps, limit * 1e-6), limit)
    return _Search(transfer, lowest, limit, budget_usd).best_ratio(time_value_usd_per_h)


def fastest(transfer: Transfer, *, budget_usd: float = inf) -> Allocation | None:
    """Return the cheapest among the allocations of greatest rate within a budget."""
    limit = most_rate_gbps(transfer)
    if limit <= 0:
        return None
    if budget_usd == inf:
        best_rate = limit
    else:
        best = _Search(transfer, limit * 1e-6, limit, budget_usd).greatest_rate()
        if best is None:
            return None
        best_rate = best.rate_gbps
    # A hair below the optimum, or rounding could make the equality infeasible.
    return least_cost(transfer, best_rate * (1 - EQUAL))


def most_rate_gbps(transfer: Transfer) -> float:
    """Return the greatest rate with every VM that the quotas allow; 0 if there is no path."""
    direct = transfer.direct
    if direct and all(
        max(relay.in_gbps, relay.out_gbps) <= direct.pair_gbps for relay in transfer.relays
    ):
        src, dst = transfer.src, transfer.dst
        pairs = min(src.quota, dst.quota)
        return min(direct.pair_gbps * pairs, src.cap_gbps * src.quota, dst.cap_gbps * dst.quota)
    return rate_limits(transfer).rate_gbps


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The greatest rate, and what one unit more of each resource would add to it.

    Attributes
    ----------
    rate_gbps : float
    src_connections_gbps, dst_connections_gbps : float
        Gain from one more VM's connection budget (dual value of that row).
    src_cap_gbps, dst_cap_gbps : float
        Gain from one more VM's cap.
    relay_vm_gbps : dict
        Relay's region to the gain from one more VM there.
    """

    rate_gbps: float
    src_connections_gbps: float = 0.0
    dst_connections_gbps: float = 0.0
    src_cap_gbps: float = 0.0
    dst_cap_gbps: float = 0.0
    relay_vm_gbps: dict[int, float] | None = None


def rate_limits(transfer: Transfer) -> RateLimits:
    """Maximise the rate with all VMs in use: a linear program of four rows, with its duals."""
    src, dst, direct = transfer.src, transfer.dst, transfer.direct
    relays = relevant_relays(transfer)
    out_use = [1 / relay.in_gbps for relay in relays]
    in_use = [1 / relay.out_gbps for relay in relays]
    upper = [relay.vm_gbps * relay.quota for relay in relays]
    if direct and direct.pair_gbps > 0:
        out_use.append(1 / direct.pair_gbps)
        in_use.append(1 / direct.pair_gbps)
        upper.append(direct.pair_gbps * min(src.quota, dst.quota))
    paths = len(upper)
    if not paths or src.quota < 1 or dst.quota < 1:
        return RateLimits(0.0)
    # One row a resource, in units of VMs: use <= quota.
    rows = [out_use, in_use, [1 / src.cap_gbps] * paths, [1 / dst.cap_gbps] * paths]
    quotas = [float(src.quota), float(dst.quota)] * 2
    program = BoxedSimplex(
        [row + [float(i == j) for j in range(4)] for i, row in enumerate(rows)],
        quotas,
        [-1.0] * paths + [0.0] * 4,
        [0.0] * (paths + 4),
        upper + quotas,
    )
    flows = program.solve()
    if flows is None:  # no flow at all is always feasible
        raise ArithmeticError("the rate program has no solution")
    gains = [max(0.0, program.reduced_cost(paths + i)) for i in range(4)]
    return RateLimits(
        sum(flows[:paths]),
        src_connections_gbps=gains[0],
        dst_connections_gbps=gains[1],
        src_cap_gbps=gains[2],
        dst_cap_gbps=gains[3],
        relay_vm_gbps={
            relay.region: gain
            for j, relay in enumerate(relays)
            if (gain := -program.reduced_cost(j) * relay.vm_gbps) > EQUAL
        },
    )


def _promising(bound: float, best: float) -> bool:
    """Whether a part of the search can hold something better than the best so far."""
    return best == inf or bound < best - GAP * (abs(best) + 1e-9)


def _direct_if_unbeatable(transfer: Transfer, rate: float) -> Allocation | None:
    """Return the direct allocation if nothing can beat it, which is the common case.

    With a relay, an allocation needs at least one relay VM and, at the ends, the VMs for the
    fastest legs there are. If the direct path has the lowest fee and needs no dearer VMs than
    that, it is optimal.
    """
    direct, src, dst, relays = transfer.direct, transfer.src, transfer.dst, transfer.relays
    if direct is None or direct.pair_gbps <= 0:
        return None
    pair, fee = direct.pair_gbps, direct.usd_per_gb
    src_vms = whole_vms(rate / min(pair, src.cap_gbps))
    dst_vms = whole_vms(rate / min(pair, dst.cap_gbps))
    if src_vms > src.quota or dst_vms > dst.quota:
        return None
    if relays:
        if min([relay.usd_per_gb for relay in relays]) < fee:
            return None
        fastest_in = max([relay.in_gbps for relay in relays])
        fastest_out = max([relay.out_gbps for relay in relays])
        least_src = whole_vms(rate / min(src.cap_gbps, max(pair, fastest_in)))
        least_dst = whole_vms(rate / min(dst.cap_gbps, max(pair, fastest_out)))
        saved_usd_per_h = (src_vms - least_src) * src.vm_usd_per_h
        saved_usd_per_h += (dst_vms - least_dst) * dst.vm_usd_per_h
        if saved_usd_per_h > min([relay.vm_usd_per_h for relay in relays]):
            return None
    return allocate(transfer, rate, {}, src_vms, dst_vms)


def allocate(
    transfer: Transfer,
    direct_gbps: float,
    relay_gbps: dict[int, float],
    src_vms: int | None = None,
    dst_vms: int | None = None,
) -> Allocation:
    """Return flows with the fewest VMs that carry them, and the cost of both."""
    relays = (
        [relay for relay in transfer.relays if relay.region in relay_gbps] if relay_gbps else []
    )
    direct = transfer.direct
    rate = direct_gbps + sum(relay_gbps.values())
    egress_usd = direct_gbps * direct.usd_per_gb if direct else 0.0
    relay_vms = {}
    vm_usd_per_h = 0.0
    if src_vms is None or dst_vms is None:
        out_use = in_use = direct_gbps / direct.pair_gbps if direct and direct_gbps else 0.0
        for relay in relays:
            out_use += relay_gbps[relay.region] / relay.in_gbps
            in_use += relay_gbps[relay.region] / relay.out_gbps
        src_vms = whole_vms(max(out_use, rate / transfer.src.cap_gbps))
        dst_vms = whole_vms(max(in_use, rate / transfer.dst.cap_gbps))
    for relay in relays:
        flow = relay_gbps[relay.region]
        egress_usd += flow * relay.usd_per_gb
        relay_vms[relay.region] = whole_vms(flow / relay.vm_gbps)
        vm_usd_per_h += relay_vms[relay.region] * relay.vm_usd_per_h
    vm_usd_per_h += src_vms * transfer.src.vm_usd_per_h + dst_vms * transfer.dst.vm_usd_per_h
    hours = transfer.gbps_h / rate + transfer.vm_start_s / S_PER_H
    return Allocation(
        rate,
        direct_gbps,
        relay_gbps,
        src_vms,
        dst_vms,
        relay_vms,
        egress_usd * transfer.volume_gb / rate,
        vm_usd_per_h * hours,
    )


@dataclass(slots=True)
class _Node:
    """A part of the search: ranges of VM counts, and the program for them."""

    src: Range
    dst: Range
    relays: list[Range]
    program: BoxedSimplex
    constant: float


class _Search:
    """Branch and bound for one transfer with its rate fixed or within a range.

    Columns of a program: the direct flow; for each relay a *paid* flow (over VMs that the
    branch has decided on) and a *further* flow (each Gbit/s brings its share of a VM's price);
    VMs at both ends; the rate; then slacks.
    """

    def __init__(
        self, transfer: Transfer, rate_low: float, rate_high: float, budget_usd: float = inf
    ) -> None:
        self.transfer = transfer
        self.rate_low = rate_low
        self.rate_high = rate_high
        self.free = rate_low < rate_high
        self.budget_usd = budget_usd
        self.relays = relevant_relays(transfer, rate_high)
        self.start_h = transfer.vm_start_s / S_PER_H
        self.src_column = 1 + 2 * len(self.relays)
        self.dst_column = self.src_column + 1
        self.rate_column = self.src_column + 2

    def cheapest(self) -> Allocation | None:
        """Minimise the cost."""
        return self._minimise(lambda a: a.cost_usd * a.rate_gbps, rate_cost=0.0)

    def greatest_rate(self) -> Allocation | None:
        """Maximise the rate, whatever the cost within the budget."""
        return self._minimise(lambda a: -a.rate_gbps, rate_cost=-1.0, with_cost=False)

    def best_ratio(self, time_value_usd_per_h: float) -> Allocation | None:
        """Minimise ``cost + time value x duration``."""
        weight = self.transfer.gbps_h * time_value_usd_per_h

        def value(allocation: Allocation) -> float:
            return allocation.cost_usd + weight / allocation.rate_gbps

        best = self.greatest_rate()
        for _ in range(DINKELBACH_ROUNDS):
            if best is None:
                break
            ratio = value(best)
            better = self._minimise(
                lambda a, q=ratio: (value(a) - q) * a.rate_gbps,  # type: ignore[misc]
                rate_cost=-ratio,
                constant=weight,
            )
            if better is None or value(better) >= ratio * (1 - GAP):
                break
            best = better
        return best

    def _minimise(
        self,
        objective: Callable[[Allocation], float],
        rate_cost: float,
        *,
        with_cost: bool = True,
        constant: float = 0.0,
    ) -> Allocation | None:
        transfer = self.transfer
        if transfer.src.quota < 1 or transfer.dst.quota < 1:
            return None
        best: Allocation | None = None
        best_value = inf

        def node(src: Range, dst: Range, relays: list[Range]) -> _Node | None:
            if src[0] > src[1] or dst[0] > dst[1]:
                return None
            program, decided = self._program(src, dst, relays, rate_cost, with_cost)
            return _Node(src, dst, relays, program, constant + decided)

        least_src = max(1, whole_vms(self.rate_low / transfer.src.cap_gbps))
        least_dst = max(1, whole_vms(self.rate_low / transfer.dst.cap_gbps))
        root = node(
            (least_src, transfer.src.quota),
            (least_dst, transfer.dst.quota),
            [(0, relay.quota) for relay in self.relays],
        )
        queue: list[tuple[float, int, _Node, list[float]]] = []
        order = count()
        fresh = [root]
        while True:
            for part in fresh:
                solution = part.program.solve() if part else None
                if part is None or solution is None:
                    continue
                bound = part.program.value(solution) + part.constant
                if not _promising(bound, best_value):
                    continue
                allocation = self._rounded(solution)
                if allocation and (found := objective(allocation)) < best_value:
                    best, best_value = allocation, found
                if _promising(bound, best_value):
                    heappush(queue, (bound, next(order), part, solution))
            if not queue:
                return best
            bound, _, part, solution = heappop(queue)
            if not _promising(bound, best_value):
                return best
            fresh = list(self._branches(part, solution, node))

    def _rounded(self, solution: list[float]) -> Allocation | None:
        """Return a node's flows with whole VMs, if the quotas and the budget allow it."""
        transfer = self.transfer
        relay_gbps = {
            relay.region: flow
            for k, relay in enumerate(self.relays)
            if (flow := solution[1 + 2 * k] + solution[2 + 2 * k]) > EQUAL * self.rate_high
        }
        direct_gbps = solution[0] if solution[0] > EQUAL * self.rate_high else 0.0
        if not direct_gbps and not relay_gbps:
            return None
        allocation = allocate(transfer, direct_gbps, relay_gbps)
        if (
            allocation.src_vms > transfer.src.quota
            or allocation.dst_vms > transfer.dst.quota
            or allocation.cost_usd > self.budget_usd * (1 + EQUAL)
        ):
            return None
        return allocation

    def _branches(
        self,
        node: _Node,
        solution: list[float],
        build: Callable[[Range, Range, list[Range]], _Node | None],
    ) -> Iterator[_Node | None]:
        """Split a node on the VM count whose rounding would cost most."""
        transfer = self.transfer
        choices: list[tuple[float, int, Range, float]] = []
        ends = (
            (-2, node.src, solution[self.src_column], transfer.src.vm_usd_per_h),
            (-1, node.dst, solution[self.dst_column], transfer.dst.vm_usd_per_h),
        )
        for which, (low, high), vms, price in ends:
            if low < high:
                choices.append((self._rounding(vms) * price, which, (low, high), vms))
        for k, relay in enumerate(self.relays):
            low, high = node.relays[k]
            if low < high:
                vms = low + solution[2 + 2 * k] / relay.vm_gbps
                weight = self._rounding(vms) * relay.vm_usd_per_h
                choices.append((weight, k, (low, high), vms))
        if not choices:
            return
        # Where nothing is left to round, decide what the solution uses before what it does not.
        _, which, (low, high), vms = max(choices, key=lambda c: (c[0], c[3], -c[1]))
        whole = round(vms)
        if abs(vms - whole) <= 1e-7:
            split = max(low, whole - 1)
        else:
            split = floor(vms)
        for part in ((low, split), (split + 1, high)):
            src = part if which == -2 else node.src
            dst = part if which == -1 else node.dst
            relays = node.relays
            if which >= 0:
                relays = relays.copy()
                relays[which] = part
            # With a free rate, coefficients depend on the ranges: build anew. Otherwise only
            # bounds do, and the program goes on from where it ended.
            yield build(src, dst, relays) if self.free else self._narrowed(node, src, dst, relays)

    @staticmethod
    def _rounding(vms: float) -> float:
        fraction = vms - floor(vms + 1e-7)
        return 1.0 - fraction if fraction > 1e-7 else 0.0

    def _narrowed(self, node: _Node, src: Range, dst: Range, relays: list[Range]) -> _Node:
        program = node.program.copy()
        constant = node.constant
        program.lower[self.src_column], program.upper[self.src_column] = src
        program.lower[self.dst_column], program.upper[self.dst_column] = dst
        for k, (relay, was, now) in enumerate(zip(self.relays, node.relays, relays, strict=True)):
            if was != now:
                program.upper[1 + 2 * k] = relay.vm_gbps * now[0]
                program.upper[2 + 2 * k] = relay.vm_gbps * (now[1] - now[0])
                constant += (now[0] - was[0]) * self._vm_cost(relay.vm_usd_per_h)
        return _Node(src, dst, relays, program, constant)

    def _vm_cost(self, usd_per_h: float) -> float:
        """Return the cost of one VM times the rate, at the lowest rate."""
        return usd_per_h * (self.transfer.gbps_h + self.start_h * self.rate_low)

    def _program(
        self, src: Range, dst: Range, relays: list[Range], rate_cost: float, with_cost: bool
    ) -> tuple[BoxedSimplex, float]:
        """Return the program of a node, and the cost that its ranges have decided."""
        transfer = self.transfer
        direct = transfer.direct if transfer.direct and transfer.direct.pair_gbps > 0 else None
        inverse = 1 / direct.pair_gbps if direct else 0.0
        out_use, in_use = [inverse], [inverse]
        cost = [transfer.volume_gb * direct.usd_per_gb if direct else 0.0]
        upper = [direct.pair_gbps * min(src[1], dst[1]) if direct else 0.0]
        decided = 0.0
        decided_usd_per_h = src[0] * transfer.src.vm_usd_per_h + dst[0] * transfer.dst.vm_usd_per_h
        for relay, (low, high) in zip(self.relays, relays, strict=True):
            out_use += (1 / relay.in_gbps,) * 2
            in_use += (1 / relay.out_gbps,) * 2
            vm_cost = self._vm_cost(relay.vm_usd_per_h)
            fee = transfer.volume_gb * relay.usd_per_gb
            cost += (fee, fee + vm_cost / relay.vm_gbps)
            upper += (relay.vm_gbps * low, relay.vm_gbps * (high - low))
            decided += low * vm_cost
            decided_usd_per_h += low * relay.vm_usd_per_h
        cost.append(self._vm_cost(transfer.src.vm_usd_per_h))
        cost.append(self._vm_cost(transfer.dst.vm_usd_per_h))
        cost.append(0.0)
        if self.free:  # the envelope of the start-up term
            cost[-1] = self.start_h * decided_usd_per_h
            decided -= self.start_h * decided_usd_per_h * self.rate_low

        flows = len(upper)
        rows = [
            [1.0] * flows + [0.0, 0.0, -1.0],
            [*out_use, -1.0, 0.0, 0.0],
            [*in_use, 0.0, -1.0, 0.0],
        ]
        rhs = [0.0, 0.0, 0.0]
        slack = [0.0, float(src[1]), float(dst[1])]
        if self.free:  # with a fixed rate, these two are bounds on the VMs
            rows.append([0.0] * flows + [-1.0, 0.0, 1 / transfer.src.cap_gbps])
            rows.append([0.0] * flows + [0.0, -1.0, 1 / transfer.dst.cap_gbps])
            rhs += (0.0, 0.0)
            slack += (float(src[1]), float(dst[1]))
        if self.budget_usd < inf:
            rows.append([*cost[:-1], cost[-1] - self.budget_usd])
            rhs.append(-decided)
            slack.append(self.budget_usd * self.rate_high)
        if not with_cost:
            cost = [0.0] * len(cost)
            decided = 0.0
        cost[-1] += rate_cost
        height = len(rows)
        program = BoxedSimplex(
            [row + [float(i == j) for j in range(height)] for i, row in enumerate(rows)],
            rhs,
            cost + [0.0] * height,
            [0.0] * flows + [float(src[0]), float(dst[0]), self.rate_low] + [0.0] * height,
            [*upper, float(src[1]), float(dst[1]), self.rate_high, *slack],
        )
        return program, decided
