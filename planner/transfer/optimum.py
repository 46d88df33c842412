"""The optimal allocation for one transfer.

:mod:`planner.transfer.problem` states the problem, and :mod:`planner.transfer.vm_search` searches
what relays remain where figures in plain sight prove that the others cannot pay.
The cost-time frontier is the least cost at every rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import TypeAlias

import numpy as np

from planner.model.units import S_PER_H
from planner.solvers.simplex import BoxedSimplex
from planner.transfer.allocation import (
    EQUAL,
    Allocation,
    allocate,
    best_on_path,
    greatest_rate_gbps,
    whole_vms,
)
from planner.transfer.fees import MeteredFees
from planner.transfer.problem import Relays, TransferPath, TransferProblem
from planner.transfer.vm_search import VmSearch, scarce_connections

FRONTIER_POINTS = 20
# No plan of the frontier needs to be slower than one VM pair direct, nor than this share of the
# greatest rate.
LEAST_SHARE = 0.02
JUST_BELOW = 1 - 1e-9
SAME_VALUE = 1e-6


def least_cost(transfer: TransferProblem, rate_gbps: float) -> Allocation | None:
    """Return the cheapest allocation at exactly this rate, or None if there is none."""
    if rate_gbps <= 0:
        return None
    best = None
    if rate_gbps <= greatest_rate_gbps(transfer, transfer.direct) and transfer.direct:
        best = allocate(transfer, [(transfer.direct, rate_gbps)])
    paths = relevant_paths(transfer, rate_gbps)
    return VmSearch(transfer, paths, rate_gbps, at_least_gbps=rate_gbps, best=best).run()


def least_value(
    transfer: TransferProblem,
    *,
    time_value_usd_per_h: float = 0.0,
    at_least_gbps: float = 0.0,
    budget_usd: float = inf,
) -> Allocation | None:
    """Return the allocation that minimises ``cost + time value x duration``.

    The rate is free above ``at_least_gbps``: VMs are paid by the hour, so going faster can even
    be cheaper. The time value is finite; :func:`fastest` is for a boundless one.
    """

    def alone(path: TransferPath | None, least_gbps: float) -> Allocation | None:
        return best_on_path(
            transfer,
            path,
            time_value_usd_per_h=time_value_usd_per_h,
            at_least_gbps=least_gbps,
            budget_usd=budget_usd,
        )

    best = alone(transfer.direct, at_least_gbps)
    if best:
        value_usd = best.cost_usd + time_value_usd_per_h * transfer.gbps_h / best.rate_gbps
        paying = relays_that_can_pay(transfer, value_usd, budget_usd)
        # Without the relays that cannot pay, a plan may be better only because it is slower.
        # With a limit on the rate that proves nothing, unless the limit binds no direct plan
        # and none but direct plans are left.
        if at_least_gbps <= 0 or (not paying and alone(transfer.direct, 0.0) == best):
            transfer = replace(transfer, relays=paying)
    if not transfer.relays:
        return best

    paths = relevant_paths(transfer)
    limit = rate_bound_gbps(transfer, paths)
    if limit <= 0 or at_least_gbps > limit * (1 + EQUAL):
        return best
    if best is None:  # start from one relay alone, else from the fastest
        singles = (alone(path, at_least_gbps) for path in paths if path.region is not None)
        best = next((single for single in singles if single), None) or _within_budget(
            transfer, paths, limit, budget_usd, at_least_gbps
        )
    if best is None:
        return None
    return VmSearch(
        transfer,
        paths,
        limit,
        time_usd=time_value_usd_per_h * transfer.gbps_h / limit,
        at_least_gbps=at_least_gbps,
        budget_usd=budget_usd,
        best=best,
    ).run()


def fastest(transfer: TransferProblem, *, budget_usd: float = inf) -> Allocation | None:
    """Return the cheapest among the allocations of greatest rate within a budget."""
    rate = most_rate_gbps(transfer)
    if rate <= 0:
        return None
    best = best_on_path(transfer, transfer.direct, time_value_usd_per_h=inf, budget_usd=budget_usd)
    if budget_usd < inf or transfer.most_paths < inf:
        paths = relevant_paths(transfer)
        best = _within_budget(transfer, paths, rate, budget_usd, best=best)
        if best is None:
            return None
        rate = min(best.rate_gbps, rate)
    # A hair below the optimum, or rounding could make the equality infeasible.
    return least_cost(transfer, rate * (1 - EQUAL)) or best


def _within_budget(
    transfer: TransferProblem,
    paths: Sequence[TransferPath],
    limit_gbps: float,
    budget_usd: float,
    at_least_gbps: float = 0.0,
    best: Allocation | None = None,
) -> Allocation | None:
    """Return an allocation of greatest rate within a budget."""
    return VmSearch(
        transfer,
        paths,
        limit_gbps,
        time_usd=1.0,
        at_least_gbps=at_least_gbps,
        budget_usd=budget_usd,
        counts_cost=False,
        best=best,
    ).run()


# ---- bounds --------------------------------------------------------------------------------------


def relevant_paths(transfer: TransferProblem, rate_limit_gbps: float = inf) -> list[TransferPath]:
    """Return the direct path and the relays that an optimal allocation can need, cheapest first.

    A relay k dominates r if it is no dearer (fee and VM), forwards no less with one VM, and needs
    no more connections on either link, where connections can bind at all. While k has room, flow
    moves from r to k at no loss, by shares of a VM that k has in use or by whole VMs; k then
    carries at least ``min(P, Q, u) min(n_s, n_d, N)``. The direct path dominates in the same way.
    So r is never needed if all that dominate it *together* carry the rate, or all that the caps of
    the ends let through, whatever the numbers of VMs at the ends. Dropping whatever is dominated by
    a single path would lose optima: each path has a limit of its own.
    """
    src, dst, direct = transfer.src, transfer.dst, transfer.direct
    src_scarce, dst_scarce = scarce_connections(transfer, transfer.paths)
    # With n VMs at the end that has fewer, caps let through at most `cap_gbps` n.
    most_vms = max(1, min(src.quota, dst.quota))
    cap_gbps = max(
        min(src.cap_gbps, dst.cap_gbps * dst.quota), min(src.cap_gbps * src.quota, dst.cap_gbps)
    )
    least_vms = 1
    if rate_limit_gbps < inf:
        least_vms = min(whole_vms(rate_limit_gbps / end.cap_gbps) for end in (src, dst))
    kept: list[TransferPath] = []
    rows = transfer.relays.rows
    rows = rows[(rows["vm_gbps"] > 0) & (rows["quota"] > 0)]
    last_first = rows["region"], rows["vm_usd_per_h"], -rows["vm_gbps"], rows["usd_per_gb"]
    usable = list(Relays(rows[np.lexsort(last_first)]))
    if transfer.most_paths < inf or transfer.least_part:
        usable = _needed_of_few(usable, transfer.most_paths)
        return [direct, *usable] if direct else usable
    for r in usable:
        a = r.in_connections_gbps if src_scarce else 0.0
        b = r.out_connections_gbps if dst_scarce else 0.0
        # What those that dominate it carry for each VM at the ends, and with the least VMs.
        by_vm = by_rate = 0.0
        scarcer = direct and (direct.in_connections_gbps < a or direct.out_connections_gbps < b)
        if direct and direct.usd_per_gb <= r.usd_per_gb and not scarcer and direct.vm_gbps == inf:
            by_vm = min(direct.in_gbps, direct.out_gbps)
            by_rate = by_vm * least_vms
        for k in kept:
            if by_vm >= cap_gbps or by_rate >= rate_limit_gbps:
                break
            is_no_dearer = k.vm_gbps >= r.vm_gbps and k.vm_usd_per_h <= r.vm_usd_per_h
            is_no_dearer = is_no_dearer and k.usd_per_h <= r.usd_per_h
            if is_no_dearer and k.in_connections_gbps >= a and k.out_connections_gbps >= b:
                each_gbps = min(k.vm_gbps, k.in_gbps, k.out_gbps)
                by_vm += each_gbps * min(1.0, k.quota / most_vms)
                by_rate += each_gbps * min(least_vms, k.quota)
        if by_vm < cap_gbps and by_rate < rate_limit_gbps:
            kept.append(r)
    return [direct, *kept] if direct else kept


def _needed_of_few(relays: Sequence[TransferPath], most: float) -> list[TransferPath]:
    """Return the relays that a plan of few paths can need, of those given cheapest first.

    Where as many as it may use are as wide as r in all, one of them is free to take its place.
    """
    kept: list[TransferPath] = []
    for r in relays:
        wider = 0
        for k in kept:
            wider += (
                k.vm_gbps >= r.vm_gbps
                and k.in_gbps >= r.in_gbps
                and k.out_gbps >= r.out_gbps
                and k.vm_usd_per_h <= r.vm_usd_per_h
                and k.usd_per_h <= r.usd_per_h
                and k.quota >= r.quota
                and k.in_connections_gbps >= r.in_connections_gbps
                and k.out_connections_gbps >= r.out_connections_gbps
            )
        if wider < most:
            kept.append(r)
    return kept


def rate_bound_gbps(transfer: TransferProblem, paths: Sequence[TransferPath]) -> float:
    """Return a rate that nothing exceeds: the greatest, where connections cannot run out."""
    src, dst = transfer.src, transfer.dst
    most_out = max([path.in_connections_gbps for path in paths], default=0.0)
    most_in = max([path.out_connections_gbps for path in paths], default=0.0)
    return min(
        sum([path.most_gbps(src.quota, dst.quota) for path in paths]),
        src.quota * min(src.cap_gbps, most_out),
        dst.quota * min(dst.cap_gbps, most_in),
    )


def most_rate_gbps(transfer: TransferProblem) -> float:
    """Return the greatest rate with every VM that the quotas allow; 0 if there is no path."""
    if any(scarce_connections(transfer, transfer.paths)):
        return rate_duals(transfer, relevant_paths(transfer))[0]
    return rate_bound_gbps(transfer, transfer.paths)


Gains: TypeAlias = dict[tuple[str, int | None], float]
"""By resource, and the region of its relay: what one unit more of it adds to the rate, Gbit/s. The
unit is a VM, or what one VM pair reaches over a link."""


def rate_duals(transfer: TransferProblem, paths: Sequence[TransferPath]) -> tuple[float, Gains]:
    """Maximise the rate with all VMs in use: a linear program of four rows, with its duals.

    Limits of links and of relay VMs are bounds of the flows. Where several limits bind alike, what
    paths share is named before the limit of one, and a link before a relay's VM.

    Raises an ArithmeticError if the program can't be solved.
    """
    src, dst = transfer.src, transfer.dst
    # Flows are counted in a rate that bounds them all, to be of the size of the other figures.
    unit_gbps = rate_bound_gbps(transfer, paths)
    if unit_gbps <= 0:
        return 0.0, {}
    out_use = [unit_gbps / path.in_connections_gbps for path in paths]
    in_use = [unit_gbps / path.out_connections_gbps for path in paths]
    most = [path.most_gbps(src.quota, dst.quota) for path in paths]
    count = len(paths)
    caps_gbps = min(src.cap_gbps * src.quota, dst.cap_gbps * dst.quota)
    upper = []
    for gbps, out, into in zip(most, out_use, in_use, strict=True):
        share = gbps / unit_gbps
        shared = gbps >= caps_gbps or share * out >= src.quota or share * into >= dst.quota
        # Loose where the rows limit it: they are to get the credit.
        upper.append(2 * share if shared else share)
    # One row a resource, in units of VMs: use <= quota.
    rows = [out_use, in_use, [unit_gbps / src.cap_gbps] * count, [unit_gbps / dst.cap_gbps] * count]
    quotas = [float(src.quota), float(dst.quota)] * 2
    program = BoxedSimplex(
        [row + [float(i == j) for j in range(4)] for i, row in enumerate(rows)],
        quotas,
        [-1.0] * count + [0.0] * 4,
        [0.0] * (count + 4),
        upper + quotas,
    )
    flows = program.solve()
    if flows is None:  # no flow at all is always feasible
        raise ArithmeticError("the rate program has no solution")
    ends = ("src connections", "dst connections", "src cap", "dst cap")
    gains: Gains = {
        (end, None): max(0.0, program.reduced_cost(count + i)) * unit_gbps
        for i, end in enumerate(ends)
    }
    for j, path in enumerate(paths):
        if (gain := -program.reduced_cost(j)) <= EQUAL:
            continue
        for resource, gbps, vms in (
            ("path into", path.in_gbps, src.quota),
            ("path out of", path.out_gbps, dst.quota),
            ("VM", path.vm_gbps, path.quota),
        ):
            if gbps * vms <= most[j] * (1 + EQUAL):
                gains[resource, path.region] = gain * gbps
                break
    return sum(flows[:count]) * unit_gbps, gains


def relays_that_can_pay(transfer: TransferProblem, value_usd: float, budget_usd: float) -> Relays:
    """Return the relays that can be part of something better than a value, if the rate is free.

    Each Gbit/s through a relay brings its egress fee and its share of a relay VM. If the whole
    volume at that price would cost more than the value, leaving this relay's flow away makes
    any plan better (and, if it would cost more than the budget, no dearer).
    """
    most_usd = value_usd if budget_usd == inf else max(value_usd, budget_usd)
    volume_gb, gbps_h = transfer.volume_gb, transfer.gbps_h
    lead_h = transfer.lead_s / S_PER_H
    rows = transfer.relays.rows
    rows = rows[rows["vm_gbps"] > 0]
    hours = gbps_h / rows["vm_gbps"] + lead_h
    return Relays(rows[volume_gb * rows["usd_per_gb"] + rows["vm_usd_per_h"] * hours < most_usd])


def cost_time_frontier(
    transfer: TransferProblem, points: int = FRONTIER_POINTS, fees: MeteredFees | None = None
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
    cheapest = best_on_path(transfer, transfer.direct)
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
        if kept and allocation.cost_usd >= kept[-1].cost_usd * (1 - SAME_VALUE):
            continue
        if kept and allocation.rate_gbps >= kept[-1].rate_gbps * (1 - SAME_VALUE):
            kept.pop()
        kept.append(allocation)
    return kept[::-1]
