"""The optimal allocation for one transfer.

:mod:`planner.transfer.problem` states the problem. Most answers need no search, because figures
in plain sight prove that no relay can pay; the others come from :mod:`planner.transfer.vm_search`.
The cost-time frontier is the least cost at every rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import TypeAlias

from planner.model.units import S_PER_H
from planner.solvers.simplex import BoxedSimplex
from planner.transfer.allocation import (
    EQUAL,
    Allocation,
    connections_suffice,
    rate_bound_gbps,
    relay_limit_gbps,
    relevant_relays,
    scarce_connections,
)
from planner.transfer.fees import MeteredFees
from planner.transfer.problem import Relay, TransferProblem
from planner.transfer.single_path import best_on_path
from planner.transfer.vm_search import BestValue, GreatestRate, LeastCost

FRONTIER_POINTS = 20
# No plan of the frontier needs to be slower than one VM pair direct, nor than this share of the
# greatest rate.
LEAST_SHARE = 0.02
JUST_BELOW = 1 - 1e-9
SAME = 1e-6


def least_cost(transfer: TransferProblem, rate_gbps: float) -> Allocation | None:
    """Return the cheapest allocation at exactly this rate, or None if there is none."""
    if rate_gbps <= 0:
        return None

    def search(problem: TransferProblem) -> Allocation | None:
        return LeastCost(problem, relevant_relays(problem, rate_gbps), rate_gbps).run()

    return _with_connections(transfer, search)


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

    def alone(relay: Relay | None, least_gbps: float) -> Allocation | None:
        return best_on_path(
            transfer,
            relay,
            time_value_usd_per_h=time_value_usd_per_h,
            at_least_gbps=least_gbps,
            budget_usd=budget_usd,
        )

    best = alone(None, at_least_gbps)
    relays: Sequence[Relay] = transfer.relays
    if best:
        value_usd = best.cost_usd + time_value_usd_per_h * transfer.gbps_h / best.rate_gbps
        paying = relays_that_can_pay(transfer, value_usd, budget_usd)
        # Without the relays that cannot pay, a plan may be better only because it is slower.
        # With a limit on the rate that proves nothing, unless the limit binds no direct plan
        # and none but direct plans are left.
        if at_least_gbps <= 0 or (not paying and alone(None, 0.0) == best):
            relays = paying
    if not relays:
        return best

    def search(problem: TransferProblem) -> Allocation | None:
        relays = relevant_relays(problem)
        limit = rate_bound_gbps(problem, relays)
        if limit <= 0 or at_least_gbps > limit * (1 + EQUAL):
            return best
        start = best
        if start is None:  # start from one relay alone, else from the fastest
            singles = (alone(relay, at_least_gbps) for relay in relays)
            start = (
                next((single for single in singles if single), None)
                or GreatestRate(problem, relays, limit, budget_usd, at_least_gbps).run()
            )
        if start is None:
            return None
        return BestValue(
            problem, relays, limit, budget_usd, at_least_gbps, time_value_usd_per_h, start
        ).run()

    return _with_connections(replace(transfer, relays=relays), search)


def fastest(transfer: TransferProblem, *, budget_usd: float = inf) -> Allocation | None:
    """Return the cheapest among the allocations of greatest rate within a budget."""
    limit = most_rate_gbps(transfer)
    if limit <= 0:
        return None
    best_rate = limit
    if budget_usd < inf:
        direct = best_on_path(transfer, None, time_value_usd_per_h=inf, budget_usd=budget_usd)

        def search(problem: TransferProblem) -> Allocation | None:
            found = GreatestRate(problem, relevant_relays(problem), limit, budget_usd)
            found.best = direct
            return found.run()

        best = _with_connections(transfer, search)
        if best is None:
            return None
        best_rate = min(best.rate_gbps, limit)
    # A hair below the optimum, or rounding could make the equality infeasible.
    return least_cost(transfer, best_rate * (1 - EQUAL))


def most_rate_gbps(transfer: TransferProblem) -> float:
    """Return the greatest rate with every VM that the quotas allow; 0 if there is no path."""
    bound_gbps = rate_bound_gbps(transfer, transfer.relays)
    if not any(scarce_connections(transfer, transfer.relays)):
        return bound_gbps
    # Most often, the paths that need fewest connections reach what caps and links allow.
    src_vms, dst_vms, direct = transfer.src.quota, transfer.dst.quota, transfer.direct
    paths = [
        (relay.in_connections_gbps, relay.out_connections_gbps, most_gbps)
        for relay in transfer.relays
        if (most_gbps := relay_limit_gbps(relay, src_vms, dst_vms)) > 0
    ]
    if direct and direct.pair_gbps > 0:
        connections_gbps = direct.connections_gbps
        most_gbps = direct.pair_gbps * min(src_vms, dst_vms)
        paths.append((connections_gbps, connections_gbps, most_gbps))
    paths.sort(key=lambda path: -min(path[0] * src_vms, path[1] * dst_vms))
    left_gbps, out_use, in_use = bound_gbps, 0.0, 0.0
    for out_gbps, in_gbps, most_gbps in paths:
        flow_gbps = min(left_gbps, most_gbps)
        left_gbps -= flow_gbps
        out_use += flow_gbps / out_gbps
        in_use += flow_gbps / in_gbps
    if out_use <= src_vms and in_use <= dst_vms:
        return bound_gbps
    return rate_duals(replace(transfer, relays=relevant_relays(transfer)))[0]


def _with_connections(
    transfer: TransferProblem, search: Callable[[TransferProblem], Allocation | None]
) -> Allocation | None:
    """Return the result of a search that is tried first as if connections were free.

    What it finds then is the optimum if its VMs have the connections for it, as they nearly always
    do; and without these rows, fewer relays matter.
    """
    if any(scarce_connections(transfer, transfer.relays)):
        direct = transfer.direct
        free = replace(
            transfer,
            direct=replace(direct, connections_gbps=inf) if direct else None,
            relays=[
                replace(relay, in_connections_gbps=inf, out_connections_gbps=inf)
                for relay in transfer.relays
            ],
        )
        found = search(free)
        if found is None or connections_suffice(transfer, found):
            return found
    return search(transfer)


Gains: TypeAlias = dict[tuple[str, int | None], float]
"""By resource, and the region of its relay: what one unit more of it adds to the rate, Gbit/s. The
unit is a VM, or what one VM pair reaches over a link."""


def rate_duals(transfer: TransferProblem) -> tuple[float, Gains]:
    """Maximise the rate with all VMs in use: a linear program of four rows, with its duals.

    Limits of links and of relay VMs are bounds of the flows. Where several limits bind alike, what
    paths share is named before the limit of one, and a link before a relay's VM.
    """
    src, dst, direct = transfer.src, transfer.dst, transfer.direct
    relays = [r for r in transfer.relays if r.vm_gbps > 0 and r.quota > 0]
    direct = direct if direct and direct.pair_gbps > 0 else None
    if src.quota < 1 or dst.quota < 1 or not (direct or relays):
        return 0.0, {}
    # Flows are counted in a rate that bounds them all, to be of the size of the other figures.
    unit_gbps = rate_bound_gbps(transfer, relays)
    out_use = [unit_gbps / relay.in_connections_gbps for relay in relays]
    in_use = [unit_gbps / relay.out_connections_gbps for relay in relays]
    most = [relay_limit_gbps(relay, src.quota, dst.quota) for relay in relays]
    if direct:
        out_use.append(unit_gbps / direct.connections_gbps)
        in_use.append(unit_gbps / direct.connections_gbps)
        most.append(direct.pair_gbps * min(src.quota, dst.quota))
    paths = len(most)
    caps_gbps = min(src.cap_gbps * src.quota, dst.cap_gbps * dst.quota)
    upper = []
    for gbps, out, into in zip(most, out_use, in_use, strict=True):
        share = gbps / unit_gbps
        shared = gbps >= caps_gbps or share * out >= src.quota or share * into >= dst.quota
        # Loose where the rows limit it: they are to get the credit.
        upper.append(2 * share if shared else share)
    # One row a resource, in units of VMs: use <= quota.
    rows = [out_use, in_use, [unit_gbps / src.cap_gbps] * paths, [unit_gbps / dst.cap_gbps] * paths]
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
    ends = ("src connections", "dst connections", "src cap", "dst cap")
    gains: Gains = {
        (end, None): max(0.0, program.reduced_cost(paths + i)) * unit_gbps
        for i, end in enumerate(ends)
    }
    if direct:
        gains["direct path", None] = max(0.0, -program.reduced_cost(paths - 1)) * direct.pair_gbps
    for j, relay in enumerate(relays):
        if (gain := -program.reduced_cost(j)) <= EQUAL:
            continue
        limit_gbps = most[j] * (1 + EQUAL)
        if relay.in_gbps * src.quota <= limit_gbps:
            gains["path into", relay.region] = gain * relay.in_gbps
        elif relay.out_gbps * dst.quota <= limit_gbps:
            gains["path out of", relay.region] = gain * relay.out_gbps
        else:
            gains["relay VM", relay.region] = gain * relay.vm_gbps
    return sum(flows[:paths]) * unit_gbps, gains


def relays_that_can_pay(
    transfer: TransferProblem, value_usd: float, budget_usd: float
) -> list[Relay]:
    """Return the relays that can be part of something better than a value, if the rate is free.

    Each Gbit/s through a relay brings its egress fee and its share of a relay VM. If the whole
    volume at that price would cost more than the value, leaving this relay's flow away makes
    any plan better (and, if it would cost more than the budget, no dearer).
    """
    most_usd = value_usd if budget_usd == inf else max(value_usd, budget_usd)
    volume_gb, gbps_h = transfer.volume_gb, transfer.gbps_h
    start_h = transfer.vm_start_s / S_PER_H
    return [
        relay
        for relay in transfer.relays
        if relay.vm_gbps > 0
        and volume_gb * relay.usd_per_gb + relay.vm_usd_per_h * (gbps_h / relay.vm_gbps + start_h)
        < most_usd
    ]


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
