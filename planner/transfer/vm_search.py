"""Branch and bound over the numbers of VMs of one transfer.

:mod:`planner.transfer.problem` states the problem. Few integers matter (VMs at both ends and at
about eight of sixty relays), and each part of the search is a linear program of a few rows. Many
relays are nearly equal, and to split on one of them after the other proves little: the search
splits on the VMs at all relays together first. Where the rate is free, it splits on the rate, too,
as long as a program's envelope leaves out more than fractions of VMs do.

Limits of paths are bounds at the most VMs of a part of the search, which are exact once the VMs at
the ends are decided; until then, rows ``x <= P n`` are added where a solution breaks them, so that
each optimum is that of the whole program.

A plan may be held to a few paths that carry some part of the rate each. A flow is at most its
greatest, ``x_p <= M_p``, so that ``sum_p x_p / M_p`` is at most the number of paths; where a
solution uses more, or one for less, the search splits on whether a path is used at all.

All costs are multiplied by the rate R, which makes them linear::

    cost R = D sum_p x_p fee_p + 8 D sum_v n_v price_v + t_lead R sum_v n_v price_v

Fees by the hour add to the price of all VMs: those of a relay with its first VM.

The last term is a product of two variables when the rate is free. With ``S(n) = sum n_v price_v``
between ``S0`` and ``S1``, and R between ``R0`` and ``R1``, the product is at least ``R0 S + R S0 -
R0 S0``, nor than ``R1 S + R S1 - R1 S1`` (McCormick, *Mathematical Programming* 10, 1976). A part
uses one of them, which is exact at that corner of its ranges.

What is least is a ratio of linear functions: ``(cost R + time value 8 D) / R`` is below q exactly
where ``cost R + time value 8 D - q R`` is below zero (Dinkelbach, *On nonlinear fractional
programming*, Management Science 13, 1967). q is the best value so far. It falls during the search,
and a part that held nothing below a larger q holds nothing below a smaller one: a single tree does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import count
from math import floor, inf, sqrt
from typing import Any, TypeAlias

from planner.model.units import S_PER_H
from planner.solvers.simplex import BoxedSimplex
from planner.transfer.allocation import EQUAL, Allocation, allocate, is_simple, whole_vms
from planner.transfer.problem import TransferPath, TransferProblem

BROKEN = 1e-7  # in VMs: beyond what the program's rounding leaves
NEGLIGIBLE = 5e-8
"""Shares of the rate below this are what the program's rounding left: the largest path takes them,
well within :data:`~planner.transfer.allocation.ROUNDING`."""
VALUE_GAP = 1e-6  # relative: a hundredth of a cent on a hundred dollars
PARTS = 300
"""Of a search for a plan of few paths, which ends with the best so far: on the January 2022 grid,
that was within 0.6 % of the optimum in the worst of 800."""
RATE_STEP = 1.01  # rates within this ratio are not split further
# In place of a path's position: the VMs at both ends, and at all relays together.
SOURCE, DESTINATION, ALL_RELAYS = -2, -1, -3
NAMES = {SOURCE: "src", DESTINATION: "dst", ALL_RELAYS: "together"}
Range: TypeAlias = tuple[int, int]
Corner: TypeAlias = tuple[float, float]
"""A share of the rate, and what all VMs cost by the hour."""


@dataclass(slots=True)
class Ranges:
    """A part of the search: numbers of VMs, and shares of the greatest rate.

    Attributes
    ----------
    relays : list of Range
        By path; the direct one has none.
    together : Range
        Of the VMs at all relays.
    used, unused : frozenset of int
        Paths that carry their part at least, and those that carry nothing.
    """

    src: Range
    dst: Range
    relays: list[Range]
    together: Range
    least_share: float
    most_share: float = 1.0
    used: frozenset[int] = frozenset()
    unused: frozenset[int] = frozenset()

    @property
    def decided(self) -> int:
        """The VMs that relays have at least."""
        return sum([least for least, _ in self.relays])


@dataclass(slots=True)
class Node:
    """A part of the search with its program, where that is exact, and q when it was built."""

    part: Ranges
    program: BoxedSimplex
    constant: float
    corner: Corner
    worth: float


class VmSearch:
    """Looks for the least cost plus time, best bound first; :meth:`run` is the answer.

    Rates are shares of `rate_gbps`, which is the greatest that is possible or, with as much for
    `at_least_gbps`, the only one. Columns of a program: for each path a *paid* flow (over VMs that
    the part has decided on) and a *further* flow (each Gbit/s brings its share of a VM's price);
    VMs at both ends; the rate; VMs at relays that carry nothing; then slacks.

    Parameters
    ----------
    paths : sequence of TransferPath
        Those to consider.
    time_usd : float
        What the time at `rate_gbps` is worth.
    counts_cost : bool
        Whether cost counts at all; otherwise time alone.
    best : Allocation, optional
        The best that is known.
    """

    def __init__(
        self,
        transfer: TransferProblem,
        paths: Sequence[TransferPath],
        rate_gbps: float,
        *,
        time_usd: float = 0.0,
        at_least_gbps: float = 0.0,
        budget_usd: float = inf,
        counts_cost: bool = True,
        best: Allocation | None = None,
    ) -> None:
        self.transfer, self.paths, self.rate_gbps = transfer, paths, rate_gbps
        self.time_usd, self.counts_cost, self.budget_usd = time_usd, counts_cost, budget_usd
        self.lead_h = transfer.lead_s / S_PER_H
        self.full_rate_h = transfer.gbps_h / rate_gbps
        src, dst = transfer.src, transfer.dst
        # With all its VMs as full as they get, no plan is slower than its slowest part.
        slowest = min([src.cap_gbps, dst.cap_gbps])
        for p in paths:
            slowest = min(slowest, p.in_gbps, p.out_gbps, p.vm_gbps)
            slowest = min(slowest, p.in_connections_gbps, p.out_connections_gbps)
        self.least_share = min(1.0, max(at_least_gbps, slowest) / rate_gbps)
        self.stretches = at_least_gbps < rate_gbps
        self.least_egress_usd = transfer.volume_gb * min([p.usd_per_gb for p in paths], default=0.0)
        relays = [p for p in paths if p.region is not None]
        self.least_usd_per_h = min([p.vm_usd_per_h for p in relays], default=0.0)
        self.most_usd_per_h = max([p.vm_usd_per_h + p.usd_per_h for p in relays], default=0.0)
        self.relays = len(relays)
        self.most_paths, self.least_part = transfer.most_paths, transfer.least_part
        self.scarce = scarce_connections(transfer, paths)
        # Links that have a row: a full direct path breaks its limits.
        self.limits = [
            (k, end)
            for k, p in enumerate(paths)
            if p.region is None
            for end in (SOURCE, DESTINATION)
        ]
        self.best, self.value = best, self._value(best) if best else inf
        self.parts = PARTS if self.most_paths < inf else inf

    def run(self) -> Allocation | None:
        """Return the best allocation."""
        queue: list[tuple[float, int, Node, list[float]]] = []
        order = count()
        nodes = [self._root()]
        while True:
            for node in nodes:
                solution = self._solved(node) if node else None
                if node is None or solution is None:
                    continue
                bound = node.program.value(solution) + node.constant
                if self._promising(node, bound):
                    self._round(solution)
                    if self._promising(node, bound):
                        heappush(queue, (bound, next(order), node, solution))
            while queue and next(order) <= self.parts:
                bound, _, node, solution = heappop(queue)
                if self._promising(node, bound):
                    break
            else:
                return self._with_fewest_relays()
            nodes = list(self._branches(node, solution))

    # ---- values ------------------------------------------------------------------------------

    def _value(self, found: Allocation) -> float:
        cost_usd = found.cost_usd if self.counts_cost else 0.0
        return cost_usd + self.time_usd * self.rate_gbps / found.rate_gbps

    def _promising(self, node: Node, bound: float) -> bool:
        """Return whether a part of the search can improve on the best so far."""
        if self.best is None:
            return True
        # The bound was computed with the value of then: in terms of today's it is higher.
        share = node.part.least_share
        return bound + (node.worth - self.value) * share < -VALUE_GAP * self.value * share

    def _round(self, solution: list[float]) -> None:
        """Take a solution's flows with whole VMs as the best so far, if allowed and better."""
        shares = self._shares(solution)
        kept = [share if share > NEGLIGIBLE else 0.0 for share in shares]
        if not any(kept):
            return
        kept[kept.index(max(kept))] += sum(shares) - sum(kept)
        flows = [
            (p, share * self.rate_gbps) for p, share in zip(self.paths, kept, strict=True) if share
        ]
        if self.stretches and len(flows) > self.most_paths:  # the largest, as fast as they get
            flows = sorted(flows, key=lambda of: -of[1])[: int(self.most_paths)]
        least_gbps = self.least_part * sum([flow for _, flow in flows])
        if least_gbps and (few := [(p, max(least_gbps, flow)) for p, flow in flows]) != flows:
            at = max(range(len(few)), key=lambda k: few[k][1])
            more_gbps = sum([flow for _, flow in few]) - sum([flow for _, flow in flows])
            few[at] = few[at][0], few[at][1] - more_gbps
            flows = few
        found = allocate(self.transfer, flows, stretch=self.stretches)
        if self._is_allowed(found) and (value := self._value(found)) < self.value:
            self.best, self.value = found, value

    def _is_allowed(self, found: Allocation) -> bool:
        """Return whether quotas of the ends, the budget and other limits allow an allocation."""
        return (
            is_simple(self.transfer, found)
            and found.rate_gbps >= self.least_share * self.rate_gbps * (1 - EQUAL)
            and all(
                p.quota >= found.relay_vms.get(p.region, 0)
                for p in self.paths
                if p.region is not None
            )
            and found.src_vms <= self.transfer.src.quota
            and found.dst_vms <= self.transfer.dst.quota
            and found.cost_usd <= self.budget_usd * (1 + EQUAL)
        )

    def _with_fewest_relays(self) -> Allocation | None:
        """Return the best allocation, with one relay in place of several where that is as good.

        Many relays have the same prices, and programs split flows over them at no gain.
        """
        best = self.best
        if best is None or len(best.relay_vms) < 2:
            return best
        relayed_gbps = sum([best.flows[region] for region in best.relay_vms])
        direct = [
            (p, best.direct_gbps) for p in self.paths if p.region is None and best.direct_gbps
        ]
        relays = [path for path in self.paths if path.region is not None]
        for relay in sorted(relays, key=lambda path: -best.flows.get(path.region, 0.0)):
            flows = [*direct, (relay, relayed_gbps)]
            one = allocate(self.transfer, flows, stretch=self.stretches)
            if self._is_allowed(one) and self._value(one) <= self._value(best) * (1 + EQUAL):
                return one
        return best

    # ---- parts of the search -----------------------------------------------------------------

    def _root(self) -> Node | None:
        src, dst = self.transfer.src, self.transfer.dst
        least_gbps, paths = self.least_share * self.rate_gbps, self.paths
        most_out, most_in = (sum([p.in_gbps for p in paths]), sum([p.out_gbps for p in paths]))
        direct_gbps = sum([p.most_gbps(src.quota, dst.quota) for p in paths if p.region is None])
        relays = [p for p in paths if p.region is not None]
        vms = 0  # enough for what direct leaves
        if relays and least_gbps > direct_gbps * (1 + EQUAL):
            vms = whole_vms((least_gbps - direct_gbps) / max([p.vm_gbps for p in relays]))
        if not paths or min(src.quota, dst.quota) < 1:
            return None
        return self._node(
            Ranges(
                (whole_vms(least_gbps / min(src.cap_gbps, most_out)), src.quota),
                (whole_vms(least_gbps / min(dst.cap_gbps, most_in)), dst.quota),
                [
                    (vms if len(relays) == 1 else 0, path.quota) if path in relays else (0, 0)
                    for path in paths
                ],
                (vms, sum([path.quota for path in relays])),
                self.least_share,
            )
        )

    def _node(
        self, part: Ranges, near: Corner | None = None, parent: BoxedSimplex | None = None
    ) -> Node | None:
        """Return a part with its program; None where it can hold nothing."""
        ends = self.transfer.src, self.transfer.dst
        if (part.used or part.unused) and not self._decide_paths(part):
            return None
        decided = part.decided
        idle = max(0, part.together[0] - decided)
        if part.src[0] > part.src[1] or part.dst[0] > part.dst[1] or decided > part.together[1]:
            return None
        relays_usd_per_h = self.transfer.usd_per_h + sum(
            [_vms_usd_per_h(p, low) for p, (low, _) in zip(self.paths, part.relays, strict=True)]
        )
        usd_per_h = part.src[0] * ends[0].vm_usd_per_h + part.dst[0] * ends[1].vm_usd_per_h
        usd_per_h += relays_usd_per_h
        share = max(part.least_share, self._slowest_share(usd_per_h + idle * self.least_usd_per_h))
        if share > part.most_share + EQUAL:
            return None
        part.least_share = share = min(share, part.most_share)
        least_gbps = share * self.rate_gbps
        part.src = (max(part.src[0], whole_vms(least_gbps / ends[0].cap_gbps)), part.src[1])
        part.dst = (max(part.dst[0], whole_vms(least_gbps / ends[1].cap_gbps)), part.dst[1])
        if part.src[0] > part.src[1] or part.dst[0] > part.dst[1]:
            return None
        usd_per_h = part.src[0] * ends[0].vm_usd_per_h + part.dst[0] * ends[1].vm_usd_per_h
        corner = share, usd_per_h + relays_usd_per_h
        if near and self.stretches:
            far = part.most_share, self._most_usd_per_h(part)
            corner = max(
                corner, far, key=lambda at: at[0] * near[1] + at[1] * near[0] - at[0] * at[1]
            )
        worth = 0.0
        if self.stretches:
            worth = self.value if self.best else self.time_usd / self.least_share
        program, constant = self._program(part, corner, worth, parent)
        return Node(part, program, constant + self.time_usd, corner, worth)

    def _decide_paths(self, part: Ranges) -> bool:
        """Give the paths that are used the VMs for their part, and none to those that are not.

        False where that is impossible.
        """
        if len(part.used) >= self.most_paths:
            part.unused = frozenset(range(len(self.paths))) - part.used
        least_gbps = self.least_part * part.least_share * self.rate_gbps
        part.relays = [*part.relays]
        for k, (path, (low, high)) in enumerate(zip(self.paths, part.relays, strict=True)):
            if k in part.unused:
                part.relays[k], high = (low, 0), 0
            elif k in part.used and path.region is not None:
                low = max(low, whole_vms(least_gbps / path.vm_gbps))
                part.relays[k] = low, high
            links_gbps = min(path.in_gbps * part.src[1], path.out_gbps * part.dst[1])
            if low > high or (k in part.used and links_gbps < least_gbps * (1 - EQUAL)):
                return False
        return True

    def _slowest_share(self, decided_usd_per_h: float) -> float:
        """Return the rate below which a part with these VMs can hold nothing better."""
        before_usd = self.least_egress_usd + self.lead_h * decided_usd_per_h
        moving_usd = self.full_rate_h * decided_usd_per_h
        share = _least_share(moving_usd, self.budget_usd - before_usd)
        if not self.counts_cost:
            return max(share, _least_share(self.time_usd, self.value))
        return max(share, _least_share(self.time_usd + moving_usd, self.value - before_usd))

    def _most_usd_per_h(self, part: Ranges) -> float:
        """Return the greatest hourly price of all VMs of a part."""
        most = sum(
            [_vms_usd_per_h(p, high) for p, (_, high) in zip(self.paths, part.relays, strict=True)]
        )
        most = min(most, part.together[1] * self.most_usd_per_h) + self.transfer.usd_per_h
        most += part.src[1] * self.transfer.src.vm_usd_per_h
        most += part.dst[1] * self.transfer.dst.vm_usd_per_h
        if self.counts_cost:
            # Nothing better than the best so far pays more for VMs, however fast it is.
            vm_usd = self.value - self.least_egress_usd - self.time_usd
            most = min(most, vm_usd / (self.full_rate_h + self.lead_h))
        return most

    def _branches(self, node: Node, solution: list[float]) -> Iterator[Node | None]:
        """Split a part on the VM count whose rounding would cost most."""
        part, src, dst = node.part, self.transfer.src, self.transfer.dst
        first = 2 * len(self.paths)
        src_vms, dst_vms, share, idle = solution[first : first + 4]
        loads = [
            least + solution[2 * k + 1] * self.rate_gbps / path.vm_gbps
            for k, (path, (least, _)) in enumerate(zip(self.paths, part.relays, strict=True))
        ]
        usd_per_h = src_vms * src.vm_usd_per_h + dst_vms * dst.vm_usd_per_h
        usd_per_h += idle * self.least_usd_per_h + self.transfer.usd_per_h
        usd_per_h += sum([v * path.vm_usd_per_h for v, path in zip(loads, self.paths, strict=True)])
        near = share, usd_per_h
        if (path_at := self._path_to_decide(part, solution)) is not None:
            one = frozenset([path_at])
            for sets in ((part.used | one, part.unused), (part.used, part.unused | one)):
                used, unused = sets
                yield self._node(replace(part, used=used, unused=unused), near, node.program)
            return
        counts = [
            (SOURCE, part.src, src_vms, src.vm_usd_per_h),
            (DESTINATION, part.dst, dst_vms, dst.vm_usd_per_h),
        ]
        in_all = sum(loads) + idle
        if part.together[0] < part.together[1] and self.relays > 1 and _rounding(in_all):
            counts.append((ALL_RELAYS, part.together, in_all, self.least_usd_per_h))
        else:
            of_relays = zip(count(), part.relays, loads, self.paths, strict=False)
            counts += [(k, vms, load, path.vm_usd_per_h) for k, vms, load, path in of_relays]
        # Where nothing is left to round, decide what the solution uses before what it does not.
        open_counts = [
            (_rounding(load) * usd_per_h, load, which, vms)
            for which, vms, load, usd_per_h in counts
            if vms[0] < vms[1]
        ]
        rounding_usd_per_h, load, which, (low, high) = max(
            open_counts, key=lambda one: one[:2], default=(-1.0, 0.0, 0, (0, 0))
        )
        if (rate := self._rate_to_split(node, near, rounding_usd_per_h)) is not None:
            for shares in ((part.least_share, rate), (rate, part.most_share)):
                narrower = replace(part, least_share=shares[0], most_share=shares[1])
                yield self._node(narrower, near, node.program)
            return
        if low == high:
            return
        whole = round(load)
        split = whole - 1 if abs(load - whole) <= 1e-7 else floor(load)
        split = min(max(low, split), high - 1)
        for half in ((low, split), (split + 1, high)):
            sites: dict[str, Any] = {NAMES[which]: half} if which < 0 else {}
            if which >= 0:
                sites = {"relays": [half if k == which else v for k, v in enumerate(part.relays)]}
            yield self._node(replace(part, **sites), near, node.program)

    def _path_to_decide(self, part: Ranges, solution: list[float]) -> int | None:
        """Return a path of a solution that is used for too little, or of too many; None of none."""
        if self.most_paths == inf and not self.least_part:
            return None
        shares, rate = self._shares(solution), solution[2 * len(self.paths) + 2]
        active = {k for k, share in enumerate(shares) if share > NEGLIGIBLE}
        undecided = active - part.used
        least = self.least_part * rate * (1 - BROKEN)
        slivers = [k for k in undecided if shares[k] < least]
        if slivers:
            return min(slivers, key=lambda k: (shares[k], k))
        if undecided and len(active | part.used) > self.most_paths:
            return max(undecided, key=lambda k: (shares[k], -k))
        return None

    def _rate_to_split(self, node: Node, near: Corner, rounding_usd_per_h: float) -> float | None:
        """Return the rate at which to split a part: None if splitting on VMs proves more.

        What the envelope leaves out is ``t_lead (R - R0) (S - S0)``, with the corner's R0 and S0.
        """
        if not self.lead_h or not self.counts_cost:
            return None
        least, most = node.part.least_share, node.part.most_share
        left_out = self.lead_h * (near[0] - node.corner[0]) * (near[1] - node.corner[1])
        rounding = rounding_usd_per_h * (self.full_rate_h + self.lead_h * least)
        if left_out <= 2 * rounding or most < least * RATE_STEP:
            return None
        return sqrt(least * most)

    # ---- programs ----------------------------------------------------------------------------

    def _program(
        self, part: Ranges, corner: Corner, worth: float, parent: BoxedSimplex | None
    ) -> tuple[BoxedSimplex, float]:
        """Return the program of a part, and the cost that its ranges have decided.

        It goes on from where that of the part it is in ended: only costs and bounds differ.
        """
        rate, volume_gb, src, dst = self.rate_gbps, self.transfer.volume_gb, part.src, part.dst
        share, usd_per_h = corner
        hours = self.full_rate_h + self.lead_h * share
        cost, upper = list[float](), list[float]()
        decided = -self.lead_h * usd_per_h * share + self.transfer.usd_per_h * hours
        for path, (low, high) in zip(self.paths, part.relays, strict=True):
            fee, each_usd_per_h = volume_gb * path.usd_per_gb, path.vm_usd_per_h
            if path.usd_per_h and high and not low:  # no more than is paid with all of its VMs
                each_usd_per_h += path.usd_per_h / high
            cost += (fee, fee + each_usd_per_h * hours * rate / path.vm_gbps)
            decided += _vms_usd_per_h(path, low) * hours
            links_gbps = min(path.in_gbps * src[1], path.out_gbps * dst[1])
            if path.region is None and part.together[0]:  # relays have a part, too
                links_gbps = min(links_gbps, (1 - self.least_part) * part.most_share * rate)
            carried_gbps = path.vm_gbps if path.region is None else path.vm_gbps * low
            paid = min(carried_gbps, links_gbps)
            further = 0.0 if path.region is None else min(path.vm_gbps * high, links_gbps) - paid
            upper += (paid / rate, further / rate)
        lower = [0.0] * len(upper)
        for k in part.used:
            lower[2 * k] = min(self.least_part * part.least_share, upper[2 * k])
        for k in part.unused:
            upper[2 * k] = upper[2 * k + 1] = 0.0
        lower += [float(src[0]), float(dst[0]), part.least_share, 0.0]
        ends = self.transfer.src, self.transfer.dst
        cost += [*(end.vm_usd_per_h * hours for end in ends), self.lead_h * usd_per_h]
        cost.append(self.least_usd_per_h * hours)
        least_idle, most_idle = (float(vms - part.decided) for vms in part.together)
        upper += [float(src[1]), float(dst[1]), part.most_share, most_idle]
        at_share, together = len(upper) - 2, len(upper) + 1
        spent = []
        if self.budget_usd < inf:
            # Counted in budgets, to be of the size of the other rows.
            unit_usd = self.budget_usd or 1.0
            row = [c / unit_usd for c in cost]
            row[at_share] -= self.budget_usd / unit_usd
            spent.append((row, -decided / unit_usd, self.budget_usd / unit_usd))
        if not self.counts_cost:
            cost, decided = [0.0] * len(cost), 0.0
        cost[at_share] -= worth
        if parent and not spent:
            program = parent.copy()
            program.change(cost, lower, upper)
        else:
            rows = [*self._rows(part), *spent]
            none, height = [0.0] * len(rows), range(len(rows))
            whole = [[*row, *(float(i == j) for j in height)] for i, (row, *_) in enumerate(rows)]
            program = BoxedSimplex(
                whole,
                [rhs for _, rhs, _ in rows],
                cost + none,
                lower + none,
                upper + [slack for *_, slack in rows],
            )
        # The slack of the row of all relays is the negative of the VMs that are not decided on.
        program.lower[together], program.upper[together] = -most_idle, -max(0.0, least_idle)
        return program, decided

    def _rows(self, part: Ranges) -> list[tuple[list[float], float, float]]:
        """Return rows without slacks, with right sides and what slacks are at most."""
        rate, flows, most = self.rate_gbps, 2 * len(self.paths), (part.src[1], part.dst[1])
        vms_of = [x for path in self.paths for x in (0.0, rate / path.vm_gbps)]
        rows = [
            ([1.0] * flows + [0.0, 0.0, -1.0, 0.0], 0.0, 0.0),
            ([*vms_of, 0.0, 0.0, 0.0, 1.0], 0.0, 0.0),
        ]
        connections = (
            [path.in_connections_gbps for path in self.paths],
            [path.out_connections_gbps for path in self.paths],
        )
        ends = self.transfer.src, self.transfer.dst
        for at, (end, each) in enumerate(zip(ends, connections, strict=True)):
            less = [-float(at == 0), -float(at == 1)]
            if self.scarce[at]:
                use = [rate / gbps for gbps in each for _ in range(2)]
                rows.append(([*use, *less, 0.0, 0.0], 0.0, float(most[at])))
            if self.stretches:  # with a fixed rate, this is a bound on the VMs
                row = [0.0] * flows + [*less, rate / end.cap_gbps, 0.0]
                rows.append((row, 0.0, float(most[at])))
        if self.most_paths < inf:
            of_ends = self.transfer.src.quota, self.transfer.dst.quota
            parts = [max(EQUAL, min(1.0, p.most_gbps(*of_ends) / rate)) for p in self.paths]
            row = [1.0 / share for share in parts for _ in range(2)] + [0.0] * 4
            rows.append((row, self.most_paths, self.most_paths))
        for k, which in self.limits:
            vms = part.src if which == SOURCE else part.dst
            if vms[0] < vms[1]:
                rows.append((self._limit_row(k, which, flows + 4), 0.0, float(vms[1])))
        return rows

    def _limit_row(self, k: int, end: int, width: int) -> list[float]:
        """Return the row ``x / P - n <= 0`` of a path's link at one end."""
        row, path = [0.0] * width, self.paths[k]
        row[2 * k] = row[2 * k + 1] = self.rate_gbps / (
            path.in_gbps if end == SOURCE else path.out_gbps
        )
        row[2 * len(self.paths) + (end == DESTINATION)] = -1.0
        return row

    def _solved(self, node: Node) -> list[float] | None:
        """Return a program's optimum within the limits of all links; None if it has none."""
        part, program, first = node.part, node.program, 2 * len(self.paths)
        while (solution := program.solve()) is not None:
            flows = [share * self.rate_gbps for share in self._shares(solution)]
            broken = [
                (k, end, vms)
                for end, vms, used in (
                    (SOURCE, part.src, solution[first]),
                    (DESTINATION, part.dst, solution[first + 1]),
                )
                if vms[0] < vms[1]
                for k, (flow, path) in enumerate(zip(flows, self.paths, strict=True))
                if flow > (used + BROKEN) * (path.in_gbps if end == SOURCE else path.out_gbps)
            ]
            small = [
                k
                for k in part.used
                if self.stretches
                and flows[k] < self.least_part * solution[first + 2] * self.rate_gbps * (1 - BROKEN)
            ]
            for k in small:
                row = [0.0] * program.width
                row[2 * k] = row[2 * k + 1] = -1.0
                row[first + 2] = self.least_part
                program.add_row(row, 0.0, 1.0)
            if not broken and not small:
                return solution
            for k, end, vms in broken:
                program.add_row(self._limit_row(k, end, program.width), 0.0, float(vms[1]))
                if self.stretches and (k, end) not in self.limits:
                    self.limits.append((k, end))
        return None

    def _shares(self, solution: list[float]) -> list[float]:
        """Return the flow of each path, in shares of the rate."""
        return [solution[2 * k] + solution[2 * k + 1] for k in range(len(self.paths))]


def _vms_usd_per_h(relay: TransferPath, vms: int) -> float:
    """Cost of a relay's VMs and of fees for using it in an hour, in USD."""
    return vms * relay.vm_usd_per_h + relay.usd_per_h if vms else 0.0


def scarce_connections(
    transfer: TransferProblem, paths: Sequence[TransferPath]
) -> tuple[bool, bool]:
    """Say whether connections can run out at the source, and at the destination.

    They can't where on every path they carry as much as a VM's cap lets through.
    """
    out_gbps = min([path.in_connections_gbps for path in paths], default=inf)
    in_gbps = min([path.out_connections_gbps for path in paths], default=inf)
    return out_gbps < transfer.src.cap_gbps, in_gbps < transfer.dst.cap_gbps


def _least_share(usd_at_full_rate: float, left_usd: float) -> float:
    """Return the share s at which ``usd_at_full_rate / s`` is all that is left."""
    if left_usd > 0:
        return usd_at_full_rate / left_usd
    return inf if usd_at_full_rate > 0 or left_usd < 0 else 0.0


def _rounding(vms: float) -> float:
    fraction = vms - floor(vms + 1e-7)
    return 1.0 - fraction if fraction > 1e-7 else 0.0
