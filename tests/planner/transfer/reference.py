"""The transfer problem as a model to read, solved by OR-Tools (CBC).

It states what :mod:`planner.transfer.problem` says in formulas, line by line, and shares no code
with :mod:`planner.transfer.optimum`, which answers the same question some thirty times faster.
"""

from __future__ import annotations

from ortools.linear_solver import pywraplp

from planner.model.units import S_PER_H
from planner.transfer.allocation import Allocation
from planner.transfer.problem import TransferProblem

# CBC's tolerances are absolute, about 1e-6. Flows are therefore shares of the rate, and money is
# counted in ten-thousandths of what the transfer costs over its dearest path.
STEPS = 1e4
NEGLIGIBLE = 1e-7


def least_cost_reference(transfer: TransferProblem, rate_gbps: float) -> Allocation | None:
    """Return the cheapest allocation at exactly this rate, or None if there is none.

    Parameters
    ----------
    transfer : TransferProblem
    rate_gbps : float

    Raises
    ------
    ArithmeticError
        If the solver ends with neither an optimum nor a proof that there is none.
    """
    if rate_gbps <= 0:
        return None
    R = rate_gbps  # as in the formulas
    src, dst, relays = transfer.src, transfer.dst, transfer.relays
    direct = transfer.direct if transfer.direct and transfer.direct.pair_gbps > 0 else None
    hours = transfer.gbps_h / R + transfer.vm_start_s / S_PER_H
    model = pywraplp.Solver.CreateSolver("CBC")
    total = model.Sum

    # Shares of the rate by path, and VMs.
    x_direct = model.NumVar(0, 1 if direct else 0, "direct")
    x = {r.region: model.NumVar(0, 1, f"share {r.region}") for r in relays}
    n_src = model.IntVar(0, src.quota, "source VMs")
    n_dst = model.IntVar(0, dst.quota, "destination VMs")
    n = {r.region: model.IntVar(0, r.quota, f"VMs {r.region}") for r in relays}

    model.Add(x_direct + total(x.values()) == 1)
    model.Add(n_src >= R / src.cap_gbps)
    model.Add(n_dst >= R / dst.cap_gbps)
    used = x_direct * (R / direct.connections_gbps) if direct else 0
    model.Add(used + total(x[r.region] * (R / r.in_connections_gbps) for r in relays) <= n_src)
    model.Add(used + total(x[r.region] * (R / r.out_connections_gbps) for r in relays) <= n_dst)
    if direct:
        model.Add(x_direct * (R / direct.pair_gbps) <= n_src)
        model.Add(x_direct * (R / direct.pair_gbps) <= n_dst)
    for r in relays:
        model.Add(x[r.region] * (R / r.in_gbps) <= n_src)
        model.Add(x[r.region] * (R / r.out_gbps) <= n_dst)
        model.Add(x[r.region] * (R / r.vm_gbps) <= n[r.region])

    egress = total(x[r.region] * (transfer.volume_gb * r.usd_per_gb) for r in relays)
    if direct:
        egress += x_direct * (transfer.volume_gb * direct.usd_per_gb)
    vms = n_src * src.vm_usd_per_h + n_dst * dst.vm_usd_per_h
    vms += total(n[r.region] * r.vm_usd_per_h for r in relays)
    scale_usd = transfer.volume_gb * max(
        [r.usd_per_gb for r in relays] + [direct.usd_per_gb if direct else 0.0]
    ) + hours * (src.vm_usd_per_h + dst.vm_usd_per_h)
    model.Minimize((egress + vms * hours) * (STEPS / (scale_usd or 1.0)))

    exactly = pywraplp.MPSolverParameters()
    exactly.SetDoubleParam(pywraplp.MPSolverParameters.RELATIVE_MIP_GAP, 0.0)
    status = model.Solve(exactly)
    if status == pywraplp.Solver.INFEASIBLE:
        return None
    if status != pywraplp.Solver.OPTIMAL:
        raise ArithmeticError(f"CBC ended with status {status}")
    flows = {r.region: x[r.region].solution_value() * R for r in relays}
    in_use = [region for region, gbps in flows.items() if gbps > R * NEGLIGIBLE]
    return Allocation(
        R,
        x_direct.solution_value() * R,
        {region: flows[region] for region in in_use},
        round(n_src.solution_value()),
        round(n_dst.solution_value()),
        {region: round(n[region].solution_value()) for region in in_use},
        egress.solution_value(),
        vms.solution_value() * hours,
    )
