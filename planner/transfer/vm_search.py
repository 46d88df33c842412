"""Branch and bound over the numbers of VMs of one transfer.

:mod:`planner.transfer.problem` states the problem. Few integers matter (VMs at both ends and at
about eight of sixty relays), and each node of the search is a linear program of a few rows
(:mod:`planner.solvers.simplex`). Limits of paths are bounds at the most VMs of a node, which are
exact once the VMs at the ends are decided; until then, rows ``x <= P n`` are added where a solution
breaks them, so that each node's bound is that of the whole program.

All costs are multiplied by the rate R, which makes them linear::

    cost R = D sum_p x_p fee_p + 8 D sum_v n_v price_v + t_start R sum_v n_v price_v

The last term is a product of two variables when the rate is free. A node with ``n >= L`` and
``R >= R0`` uses its lower envelope ``R S(L) + R0 (S(n) - S(L))`` with ``S(n) = sum n_v price_v``
(McCormick, *Mathematical Programming* 10, 1976), which is exact once all VMs are decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import floor, inf
from operator import add
from typing import TypeAlias

from planner.model.units import S_PER_H
from planner.solvers.simplex import BoxedSimplex
from planner.transfer.allocation import EQUAL, Allocation, allocate, scarce_connections, whole_vms
from planner.transfer.problem import Relay, TransferProblem

NEGLIGIBLE = 5e-8
"""Shares of the rate below this are what the program's rounding left: the largest path takes them,
well within :data:`~planner.transfer.allocation.ROUNDING`."""
GAP = 1e-6  # relative: a hundredth of a cent on a hundred dollars
BROKEN = 1e-7  # in VMs: beyond what the program's rounding leaves
Range: TypeAlias = tuple[int, int]
# In place of a relay's position.
SOURCE, DESTINATION = -2, -1
DIRECT = -1


@dataclass(slots=True)
class _Node:
    """A part of the search: ranges of VM counts, and the program for them.

    Attributes
    ----------
    least_share : float
        Of the greatest rate: slower than that, nothing in this part is worth finding.
    worth_usd : float
        The value per rate that the program was built with (see :class:`BestValue`).
    """

    src: Range
    dst: Range
    relays: list[Range]
    program: BoxedSimplex
    constant: float
    least_share: float
    worth_usd: float = 0.0


class _Search:
    """Branch and bound, best bound first, whatever the objective.

    Rates are shares of ``rate_gbps``, the greatest that is possible, so that the program's
    figures are near 1 whether the transfer crawls or flies. Columns of a program: the direct
    flow; for each relay a *paid* flow (over VMs that the branch has decided on) and a *further*
    flow (each Gbit/s brings its share of a VM's price); VMs at both ends; the rate; then slacks.
    """

    fixed_rate = False
    counts_cost = True

    def __init__(
        self,
        transfer: TransferProblem,
        relays: Sequence[Relay],
        rate_gbps: float,
        budget_usd: float = inf,
        at_least_gbps: float = 0.0,
    ) -> None:
        self.transfer = transfer
        self.relays = relays
        self.rate_gbps = rate_gbps
        self.budget_usd = budget_usd
        # With all its VMs as full as they get, no plan is slower than its slowest part.
        slowest = [transfer.src.cap_gbps, transfer.dst.cap_gbps]
        slowest += [relay.vm_gbps for relay in relays]
        if transfer.direct and transfer.direct.pair_gbps > 0:
            slowest.append(transfer.direct.pair_gbps)
        self.least_share = min(1.0, max(at_least_gbps, min(slowest)) / rate_gbps)
        if self.fixed_rate:
            self.least_share = 1.0
        self.best: Allocation | None = None
        self.start_h = transfer.vm_start_s / S_PER_H
        self.full_rate_h = transfer.gbps_h / rate_gbps
        direct = transfer.direct
        self.direct = direct if direct and direct.pair_gbps > 0 else None
        self.scarce = scarce_connections(transfer, relays)
        self.limits: list[tuple[int, int]] = []  # links that had a row: path and end
        fees = [relay.usd_per_gb for relay in relays]
        if self.direct:
            fees.append(self.direct.usd_per_gb)
        self.least_egress_usd = transfer.volume_gb * min(fees, default=0.0)

    @property
    def src_column(self) -> int:
        """Position of the source's VMs in the program."""
        return 1 + 2 * len(self.relays)

    @property
    def dst_column(self) -> int:
        """Position of the destination's VMs in the program."""
        return 2 + 2 * len(self.relays)

    def run(self) -> Allocation | None:
        """Return the best allocation."""
        src, dst = self.transfer.src, self.transfer.dst
        if not (self.relays or self.direct) or src.quota < 1 or dst.quota < 1:
            return self.best
        least_gbps = self.least_share * self.rate_gbps
        pair = self.direct.pair_gbps if self.direct else 0.0
        most_out = pair + sum([relay.in_gbps for relay in self.relays])
        most_in = pair + sum([relay.out_gbps for relay in self.relays])
        fresh: list[_Node | None] = [
            self._node(
                (whole_vms(least_gbps / min(src.cap_gbps, most_out)), src.quota),
                (whole_vms(least_gbps / min(dst.cap_gbps, most_in)), dst.quota),
                [(0, relay.quota) for relay in self.relays],
            )
        ]
        queue: list[tuple[float, int, _Node, list[float]]] = []
        order = count()
        while True:
            for part in fresh:
                solution = self._solved(part) if part else None
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
                return self.best
            fresh = list(self._branches(part, solution))

    # ---- what an objective defines -----------------------------------------------------------

    def _promising(self, node: _Node, bound: float) -> bool:
        """Whether a part of the search can hold something better than the best so far."""
        raise NotImplementedError

    def _consider(self, found: Allocation) -> None:
        """Take an allocation as the best so far if it is."""
        raise NotImplementedError

    def _worth_usd(self) -> float:
        """Return what a unit of rate is worth in the program."""
        return 0.0

    def _constant_usd(self) -> float:
        """Return what is to be added to the program's optimum."""
        return 0.0

    def _slowest_share(self, decided_usd_per_h: float) -> float:
        """Return below which rate a part with these VMs can hold nothing better."""
        left_usd = self.budget_usd - self.least_egress_usd - self.start_h * decided_usd_per_h
        return _least_share(self.full_rate_h * decided_usd_per_h, left_usd)

    # ---- nodes -------------------------------------------------------------------------------

    def _node(self, src: Range, dst: Range, relays: list[Range]) -> _Node | None:
        if src[0] > src[1] or dst[0] > dst[1]:
            return None
        ends = self.transfer.src, self.transfer.dst
        decided_usd_per_h = src[0] * ends[0].vm_usd_per_h + dst[0] * ends[1].vm_usd_per_h
        for relay, (low, _) in zip(self.relays, relays, strict=True):
            decided_usd_per_h += low * relay.vm_usd_per_h
        share = 1.0
        if not self.fixed_rate:
            share = max(self.least_share, self._slowest_share(decided_usd_per_h))
            if share > 1 + EQUAL:
                return None
            share = min(share, 1.0)
        worth = self._worth_usd()
        program, decided = self._program(src, dst, relays, share, decided_usd_per_h, worth)
        return _Node(src, dst, relays, program, decided + self._constant_usd(), share, worth)

    def _solved(self, node: _Node) -> list[float] | None:
        """Return the optimum of a node within the limits of all links; None if it has none."""
        program, src_column, dst_column = node.program, self.src_column, self.dst_column
        while (solution := program.solve()) is not None:
            broken = []
            src_open, dst_open = node.src[0] < node.src[1], node.dst[0] < node.dst[1]
            if src_open or dst_open:
                src_vms, dst_vms = solution[src_column], solution[dst_column]
                flows = [share * self.rate_gbps for share in self._shares(solution)]
                paths: list[tuple[int, float, float, float]] = []
                if self.direct and flows[0]:
                    pair = self.direct.pair_gbps
                    paths.append((DIRECT, flows[0], pair, pair))
                paths += [
                    (k, flow, relay.in_gbps, relay.out_gbps)
                    for k, (flow, relay) in enumerate(zip(flows[1:], self.relays, strict=True))
                    if flow
                ]
                for k, flow, out_gbps, in_gbps in paths:
                    if src_open and flow > (src_vms + BROKEN) * out_gbps:
                        broken.append((k, SOURCE))
                    if dst_open and flow > (dst_vms + BROKEN) * in_gbps:
                        broken.append((k, DESTINATION))
            if not broken:
                return solution
            for k, end in broken:
                vms = node.src if end == SOURCE else node.dst
                program.add_row(self._limit_row(k, end, len(program.lower)), 0.0, float(vms[1]))
                if (k, end) not in self.limits:
                    self.limits.append((k, end))
        return None

    def _shares(self, solution: list[float]) -> list[float]:
        """Return what the direct path and each relay carry, in shares of the rate."""
        relayed = solution[1 : self.src_column]
        return [solution[0], *map(add, relayed[::2], relayed[1::2])]

    def _limit_row(self, k: int, end: int, width: int) -> list[float]:
        """Return the row ``x / P - n <= 0`` of a path's link at one end."""
        row = [0.0] * width
        if k == DIRECT:
            assert self.direct is not None
            row[0] = self.rate_gbps / self.direct.pair_gbps
        else:
            relay = self.relays[k]
            pair_gbps = relay.in_gbps if end == SOURCE else relay.out_gbps
            row[1 + 2 * k] = row[2 + 2 * k] = self.rate_gbps / pair_gbps
        row[self.src_column if end == SOURCE else self.dst_column] = -1.0
        return row

    def _rounded(self, solution: list[float]) -> Allocation | None:
        """Return a node's flows with whole VMs, if the quotas and the budget allow it."""
        transfer, rate = self.transfer, self.rate_gbps
        shares = self._shares(solution)
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
        if (
            found.src_vms > transfer.src.quota
            or found.dst_vms > transfer.dst.quota
            or found.cost_usd > self.budget_usd * (1 + EQUAL)
        ):
            return None
        return found

    def _branches(self, node: _Node, solution: list[float]) -> Iterator[_Node | None]:
        """Split a node on the VM count whose rounding would cost most."""
        transfer = self.transfer
        best, which, (low, high), vms = (-1.0, 0.0), 0, (0, 0), 0.0
        ends = (
            (SOURCE, node.src, solution[self.src_column], transfer.src.vm_usd_per_h),
            (DESTINATION, node.dst, solution[self.dst_column], transfer.dst.vm_usd_per_h),
        )
        # Where nothing is left to round, decide what the solution uses before what it does not.
        for end, (least, most), load, price in ends:
            if least < most and (weight := (_rounding(load) * price, load)) > best:
                best, which, (low, high), vms = weight, end, (least, most), load
        for k, (relay, (least, most)) in enumerate(zip(self.relays, node.relays, strict=True)):
            if least < most:
                load = least + solution[2 + 2 * k] * self.rate_gbps / relay.vm_gbps
                weight = (_rounding(load) * relay.vm_usd_per_h, load)
                if weight > best:
                    best, which, (low, high), vms = weight, k, (least, most), load
        if low == high:
            return
        whole = round(vms)
        split = whole - 1 if abs(vms - whole) <= 1e-7 else floor(vms)
        split = min(max(low, split), high - 1)
        for part in ((low, split), (split + 1, high)):
            src = part if which == SOURCE else node.src
            dst = part if which == DESTINATION else node.dst
            relays = node.relays
            if which >= 0:
                relays = relays.copy()
                relays[which] = part
            # With a free rate, coefficients depend on the ranges: build anew. Otherwise only
            # bounds do, and the program goes on from where it ended.
            if self.fixed_rate:
                yield self._narrowed(node, src, dst, relays)
            else:
                yield self._node(src, dst, relays)

    def _without_hopeless_relays(
        self, node: _Node, bound: float, solution: list[float]
    ) -> list[float]:
        """Leave out for good the relays whose first VM would cost more than the best so far.

        With the program's dual values, one VM at an unused relay adds at least its price, or
        the reduced cost of all that it can carry (reduced-cost fixing).
        """
        hopeless = set()
        for k, relay in enumerate(self.relays):
            if node.relays[k][0] == 0 and solution[2 + 2 * k] == 0.0:
                flow_usd = node.program.reduced_cost(2 + 2 * k) * relay.vm_gbps / self.rate_gbps
                vm_usd = self._vm_usd(relay.vm_usd_per_h, 1.0)
                if flow_usd >= 0 and not self._promising(node, bound + min(flow_usd, vm_usd)):
                    hopeless.add(k)
        if not hopeless:
            return solution
        columns = {column for k in hopeless for column in (1 + 2 * k, 2 + 2 * k)}
        node.program.drop(columns)
        node.relays = [r for k, r in enumerate(node.relays) if k not in hopeless]
        self.relays = [r for k, r in enumerate(self.relays) if k not in hopeless]
        return [x for j, x in enumerate(solution) if j not in columns]

    def _narrowed(self, node: _Node, src: Range, dst: Range, relays: list[Range]) -> _Node:
        program = node.program.copy()
        constant = node.constant
        program.lower[self.src_column], program.upper[self.src_column] = src
        program.lower[self.dst_column], program.upper[self.dst_column] = dst
        most = self._most_shares(src, dst, relays)
        program.upper[: len(most)] = most
        for relay, was, now in zip(self.relays, node.relays, relays, strict=True):
            if was != now:
                constant += (now[0] - was[0]) * self._vm_usd(relay.vm_usd_per_h, 1.0)
        return _Node(src, dst, relays, program, constant, 1.0)

    def _most_shares(self, src: Range, dst: Range, relays: list[Range]) -> list[float]:
        """Return what the direct flow, and each relay's paid and further flow, are at most."""
        rate = self.rate_gbps
        most = [self.direct.pair_gbps * min(src[1], dst[1]) / rate if self.direct else 0.0]
        for relay, (low, high) in zip(self.relays, relays, strict=True):
            links_gbps = min(relay.in_gbps * src[1], relay.out_gbps * dst[1])
            paid = min(relay.vm_gbps * low, links_gbps)
            most += (paid / rate, (min(relay.vm_gbps * high, links_gbps) - paid) / rate)
        return most

    def _vm_usd(self, usd_per_h: float, share: float) -> float:
        """Return the cost of one VM times the share of the rate, at that share."""
        return usd_per_h * (self.full_rate_h + self.start_h * share)

    def _program(
        self,
        src: Range,
        dst: Range,
        relays: list[Range],
        least_share: float,
        decided_usd_per_h: float,
        worth_usd: float,
    ) -> tuple[BoxedSimplex, float]:
        """Return the program of a node, and the cost that its ranges have decided."""
        transfer, direct, rate = self.transfer, self.direct, self.rate_gbps
        cost = [transfer.volume_gb * direct.usd_per_gb if direct else 0.0]
        decided = 0.0
        for relay, (low, _) in zip(self.relays, relays, strict=True):
            vm_usd = self._vm_usd(relay.vm_usd_per_h, least_share)
            fee = transfer.volume_gb * relay.usd_per_gb
            cost += (fee, fee + vm_usd / (relay.vm_gbps / rate))
            decided += low * vm_usd
        start_usd = 0.0
        if not self.fixed_rate:  # the envelope of the start-up term
            start_usd = self.start_h * decided_usd_per_h
            decided -= start_usd * least_share
        cost += (
            self._vm_usd(transfer.src.vm_usd_per_h, least_share),
            self._vm_usd(transfer.dst.vm_usd_per_h, least_share),
            start_usd,
        )

        most = self._most_shares(src, dst, relays)
        flows = len(most)
        rows = [[1.0] * flows + [0.0, 0.0, -1.0]]
        rhs, slack = [0.0], [0.0]
        for end, vms, scarce in zip((SOURCE, DESTINATION), (src, dst), self.scarce, strict=True):
            if scarce:
                rows.append(self._connections_row(end))
                rhs.append(0.0)
                slack.append(float(vms[1]))
        if not self.fixed_rate:  # with a fixed rate, these two are bounds on the VMs
            rows.append([0.0] * flows + [-1.0, 0.0, rate / transfer.src.cap_gbps])
            rows.append([0.0] * flows + [0.0, -1.0, rate / transfer.dst.cap_gbps])
            rhs += (0.0, 0.0)
            slack += (float(src[1]), float(dst[1]))
        if self.budget_usd < inf:
            # Counted in budgets, to be of the size of the other rows.
            unit_usd = self.budget_usd or 1.0
            row = [c / unit_usd for c in cost]
            row[-1] -= self.budget_usd / unit_usd
            rows.append(row)
            rhs.append(-decided / unit_usd)
            slack.append(self.budget_usd / unit_usd)
        if not self.counts_cost:
            cost = [0.0] * len(cost)
            decided = 0.0
        cost[-1] -= worth_usd
        height = len(rows)
        program = BoxedSimplex(
            [row + [float(i == j) for j in range(height)] for i, row in enumerate(rows)],
            rhs,
            cost + [0.0] * height,
            [0.0] * flows + [float(src[0]), float(dst[0]), least_share] + [0.0] * height,
            [*most, float(src[1]), float(dst[1]), 1.0, *slack],
        )
        for k, end in self.limits:
            vms = src if end == SOURCE else dst
            if vms[0] < vms[1]:
                program.add_row(self._limit_row(k, end, len(program.lower)), 0.0, float(vms[1]))
        return program, decided

    def _connections_row(self, end: int) -> list[float]:
        """Return the row of one end's connections: those in use, in VMs, less the VMs there."""
        rate = self.rate_gbps
        row = [rate / self.direct.connections_gbps if self.direct else 0.0]
        for relay in self.relays:
            out = end == SOURCE
            row += (rate / (relay.in_connections_gbps if out else relay.out_connections_gbps),) * 2
        return [*row, -float(end == SOURCE), -float(end == DESTINATION), 0.0]


class LeastCost(_Search):
    """The cheapest allocation at exactly a rate."""

    fixed_rate = True

    def _promising(self, node: _Node, bound: float) -> bool:  # noqa: ARG002
        best = self.best
        return best is None or bound < best.cost_usd * (1 - GAP)

    def _consider(self, found: Allocation) -> None:
        if self.best is None or found.cost_usd < self.best.cost_usd:
            self.best = found


class BestValue(_Search):
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

    def _promising(self, node: _Node, bound: float) -> bool:
        # The bound was computed with the value of then: in terms of today's it is higher.
        bound += (node.worth_usd - self.value_usd) * node.least_share
        return bound < -GAP * self.value_usd * node.least_share

    def _consider(self, found: Allocation) -> None:
        if (value := self._value(found)) < self.value_usd:
            self.best, self.value_usd = found, value

    def _worth_usd(self) -> float:
        return self.value_usd

    def _constant_usd(self) -> float:
        return self.time_usd

    def _slowest_share(self, decided_usd_per_h: float) -> float:
        left_usd = self.value_usd - self.least_egress_usd - self.start_h * decided_usd_per_h
        slowest = _least_share(self.time_usd + self.full_rate_h * decided_usd_per_h, left_usd)
        return max(slowest, super()._slowest_share(decided_usd_per_h))


class GreatestRate(_Search):
    """The greatest rate, whatever the cost within the budget."""

    counts_cost = False

    def _promising(self, node: _Node, bound: float) -> bool:  # noqa: ARG002
        return self.best is None or -bound * self.rate_gbps > self.best.rate_gbps * (1 + GAP)

    def _consider(self, found: Allocation) -> None:
        if self.best is None or found.rate_gbps > self.best.rate_gbps:
            self.best = found

    def _worth_usd(self) -> float:
        return 1.0

    def _slowest_share(self, decided_usd_per_h: float) -> float:
        reached = self.best.rate_gbps / self.rate_gbps if self.best else 0.0
        return max(reached, super()._slowest_share(decided_usd_per_h))


def _least_share(usd_at_full_rate: float, left_usd: float) -> float:
    """Return the share s at which ``usd_at_full_rate / s`` is all that is left."""
    if left_usd > 0:
        return usd_at_full_rate / left_usd
    return inf if usd_at_full_rate > 0 or left_usd < 0 else 0.0


def _rounding(vms: float) -> float:
    fraction = vms - floor(vms + 1e-7)
    return 1.0 - fraction if fraction > 1e-7 else 0.0
