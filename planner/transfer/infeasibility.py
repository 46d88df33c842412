"""Why no plan meets a request's limits, and the smallest change that would make one feasible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, floor, inf

from planner.fields.shared import MOST_VMS
from planner.model.errors import InfeasibleError
from planner.model.units import too_short_texts
from planner.transfer.allocation import EQUAL
from planner.transfer.options import Option
from planner.transfer.request import TransferRequest


def why_infeasible(
    request: TransferRequest,
    vms: int,
    optimum_of: Callable[[TransferRequest], Option | None],
    *,
    more_vms: bool = True,
) -> InfeasibleError:
    """Return the error that names the limit, in the order rate, deadline, budget.

    Each limit is compared with the best that the request's paths and VMs achieve without it, so the
    remedy suffices. There are at most `vms` in a region, and `optimum_of` returns the best plan for
    a request. Where quotas do not allow it, `more_vms` are no remedy.
    """
    unlimited = replace(
        request, objective="time", budget_usd=None, deadline_s=None, min_throughput_gbps=None
    )
    fastest = optimum_of(unlimited)
    if fastest is None:
        return InfeasibleError(
            "no permitted path carries anything", "Permit more relays, or measure more links."
        )
    most = fastest.allocation.rate_gbps
    who = _vms(vms) if more_vms else "the VMs that quotas allow"
    reach = f"{who} and {_connections(request.connections)} reach"
    floor_gbps = request.min_throughput_gbps or 0.0
    if floor_gbps > most * (1 + EQUAL):
        lower = floor(most * 1000) / 1000  # rounded up, it would be out of reach again
        return InfeasibleError(
            f"{floor_gbps:g} Gbit/s is above the {most:.3f} Gbit/s that {reach} over all "
            "permitted paths",
            f"Ask for at most {lower:.3f} Gbit/s"
            f"{_or_more_vms(request, vms, floor_gbps / most) if more_vms else ''}.",
        )
    if request.deadline_s is not None and fastest.duration_s > request.deadline_s * (1 + EQUAL):
        soonest_s = ceil(fastest.duration_s * (1 + EQUAL))
        left_s = request.deadline_s - fastest.ramp_up_s
        share = (fastest.duration_s - fastest.ramp_up_s) / left_s if left_s > 0 else inf
        deadline, takes = too_short_texts(request.deadline_s, fastest.duration_s)
        return InfeasibleError(
            f"the deadline of {deadline} is before the {takes} that the transfer takes at the "
            f"{most:.3f} Gbit/s that {reach}",
            f"Allow at least {soonest_s} s{_or_more_vms(request, vms, share) if more_vms else ''}.",
        )
    frugal = replace(request, objective="cost", budget_usd=None)
    cheapest = optimum_of(frugal)
    if cheapest is not None and request.budget_usd is not None:
        cost = cheapest.allocation
        enough_usd = ceil(cost.cost_usd * (1 + EQUAL) * 100) / 100
        return InfeasibleError(
            f"a budget of {request.budget_usd:g} USD is below the cheapest plan, which costs "
            f"{cost.cost_usd:.4g} USD ({cost.egress_usd:.4g} egress, {cost.vm_usd:.4g} VMs)",
            f"Raise the budget to {enough_usd:.2f} USD or send less.",
        )
    return InfeasibleError(
        "the limits cannot be met together", "Loosen the deadline, the rate or the budget."
    )


def _or_more_vms(request: TransferRequest, vms: int, share: float) -> str:
    """Return how many VMs would suffice: rates grow in proportion to all quotas."""
    if request.vms_in or share == inf:
        return ", or raise `vms`"
    needed = ceil(vms * share * (1 - EQUAL))
    return f", or raise `vms` to {needed}" if needed <= MOST_VMS else ""


def _vms(count: int) -> str:
    return f"{count} VM{'s' if count > 1 else ''} a region"


def _connections(count: int) -> str:
    return f"{count} connection{'s' if count > 1 else ''}"
