"""The optimal allocation for one transfer.

:mod:`planner.transfer.problem` states the problem. Most answers need no search, because figures
in plain sight prove that no relay can pay; the others come from :mod:`planner.transfer.vm_search`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from planner.model.units import S_PER_H
from planner.solvers.simplex import BoxedSimplex
from planner.transfer.allocation import EQUAL, Allocation, allocate, relevant_relays, whole_vms
from planner.transfer.problem import Relay, TransferProblem
from planner.transfer.single_path import best_on_path
from planner.transfer.vm_search import BestValue, GreatestRate, LeastCost


def least_cost(transfer: TransferProblem, rate_gbps: float) -> Allocation | None:
    """Return the cheapest allocation at exactly this rate, or None if there is none."""
    if rate_gbps <= 0:
        return None
    return (
        _direct_if_unbeatable(transfer, rate_gbps)
        or LeastCost(transfer, relevant_relays(transfer, rate_gbps), rate_gbps).run()
    )


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
        paying = _that_can_pay(transfer, value_usd, budget_usd)
        # Without the relays that cannot pay, a plan may be better only because it is slower.
        # With a limit on the rate that proves nothing, unless the limit binds no direct plan
        # and none but direct plans are left.
        if at_least_gbps <= 0 or (not paying and alone(None, 0.0) == best):
            relays = paying
    if not relays:
        return best
    relays = relevant_relays(transfer, relays=relays)
    limit = _rate_bound_gbps(transfer, relays)
    if limit <= 0 or at_least_gbps > limit * (1 + EQUAL):
        return best
    if best is None:  # something to start from: one relay alone, else whatever is fastest
        singles = (alone(relay, at_least_gbps) for relay in relays)
        best = (
            next((single for single in singles if single), None)
            or GreatestRate(transfer, relays, limit, budget_usd, at_least_gbps).run()
        )
    if best is None:
        return None
    return BestValue(
        transfer, relays, limit, budget_usd, at_least_gbps, time_value_usd_per_h, best
    ).run()


def fastest(transfer: TransferProblem, *, budget_usd: float = inf) -> Allocation | None:
    """Return the cheapest among the allocations of greatest rate within a budget."""
    limit = most_rate_gbps(transfer)
    if limit <= 0:
        return None
    best_rate = limit
    if budget_usd < inf:
        search = GreatestRate(transfer, relevant_relays(transfer), limit, budget_usd)
        search.best = best_on_path(transfer, None, time_value_usd_per_h=inf, budget_usd=budget_usd)
        best = search.run()
        if best is None:
            return None
        best_rate = min(best.rate_gbps, limit)
    # A hair below the optimum, or rounding could make the equality infeasible.
    return least_cost(transfer, best_rate * (1 - EQUAL))


def most_rate_gbps(transfer: TransferProblem) -> float:
    """Return the greatest rate with every VM that the quotas allow; 0 if there is no path."""
    direct = transfer.direct
    if direct and all(
        max(relay.in_gbps, relay.out_gbps) <= direct.pair_gbps for relay in transfer.relays
    ):
        src, dst = transfer.src, transfer.dst
        pairs = min(src.quota, dst.quota)
        return min(direct.pair_gbps * pairs, src.cap_gbps * src.quota, dst.cap_gbps * dst.quota)
    return rate_duals(transfer).rate_gbps


@dataclass(frozen=True, slots=True)
class RateDuals:
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


def rate_duals(transfer: TransferProblem) -> RateDuals:
    """Maximise the rate with all VMs in use: a linear program of four rows, with its duals."""
    src, dst, direct = transfer.src, transfer.dst, transfer.direct
    relays = relevant_relays(transfer)
    direct = direct if direct and direct.pair_gbps > 0 else None
    if src.quota < 1 or dst.quota < 1 or not (direct or relays):
        return RateDuals(0.0)
    # Flows are counted in a rate that bounds them all, to be of the size of the other figures.
    unit_gbps = _rate_bound_gbps(transfer, relays)
    out_use = [unit_gbps / relay.in_gbps for relay in relays]
    in_use = [unit_gbps / relay.out_gbps for relay in relays]
    upper = [relay.vm_gbps * relay.quota / unit_gbps for relay in relays]
    if direct:
        out_use.append(unit_gbps / direct.pair_gbps)
        in_use.append(unit_gbps / direct.pair_gbps)
        # Loose: the rows limit it, and are to get the credit.
        upper.append(2 * direct.pair_gbps * min(src.quota, dst.quota) / unit_gbps)
    paths = len(upper)
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
    gains = [max(0.0, program.reduced_cost(paths + i)) * unit_gbps for i in range(4)]
    return RateDuals(
        sum(flows[:paths]) * unit_gbps,
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


def _rate_bound_gbps(transfer: TransferProblem, relays: Sequence[Relay]) -> float:
    """Return a rate that nothing exceeds, without solving for the greatest."""
    src, dst, direct = transfer.src, transfer.dst, transfer.direct
    pair = direct.pair_gbps if direct else 0.0
    fastest_out = max([pair, *[relay.in_gbps for relay in relays]])
    fastest_in = max([pair, *[relay.out_gbps for relay in relays]])
    return min(
        src.quota * min(src.cap_gbps, fastest_out), dst.quota * min(dst.cap_gbps, fastest_in)
    )


def _that_can_pay(transfer: TransferProblem, value_usd: float, budget_usd: float) -> list[Relay]:
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


def _direct_if_unbeatable(transfer: TransferProblem, rate: float) -> Allocation | None:
    """Return the direct allocation if nothing can beat it, which is the common case.

    With a relay, an allocation needs at least one relay VM and, at the ends, the VMs for the
    fastest links there are. If the direct path has the lowest fee and needs no dearer VMs than
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
    return allocate(transfer, rate, {})
