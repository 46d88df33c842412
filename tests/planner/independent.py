"""The transfer problem once more, for tests: stated from the design, sharing no solver.

The full model over all one-hop paths, without pruning, through SciPy's HiGHS; and a check of any
allocation against every constraint, with its cost recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from planner.transfer.allocation import Allocation
from planner.transfer.problem import Relays, TransferProblem

TOLERANCE = 1e-6


def least_cost_usd(transfer: TransferProblem, rate_gbps: float) -> float:
    """Return the least cost at exactly this rate; infinity if there is no way.

    Variables: the share of each path (direct first), VMs at the source, at the destination and at
    each relay, then whether each path is used.
    """
    relays = transfer.relays
    paths = 1 + len(relays)
    used = paths + 2 + len(relays)
    size = used + paths
    src, dst = paths, paths + 1
    hours = transfer.gbps_h / rate_gbps + transfer.lead_s / 3600
    cost, most, rows = np.zeros(size), np.ones(size), []
    for column, end in ((src, transfer.src), (dst, transfer.dst)):
        cost[column] = end.vm_usd_per_h * hours
        most[column] = end.quota
    src_connections, dst_connections = np.zeros(size), np.zeros(size)
    src_connections[src] = dst_connections[dst] = -1

    def limited(path: int, vms: int, one_vm_gbps: float) -> None:
        row = np.zeros(size)
        row[path], row[vms] = rate_gbps / one_vm_gbps, -1
        rows.append(row)

    if transfer.direct and transfer.direct.in_gbps > 0:
        cost[0] = transfer.volume_gb * transfer.direct.usd_per_gb
        src_connections[0] = rate_gbps / transfer.direct.in_connections_gbps
        dst_connections[0] = rate_gbps / transfer.direct.out_connections_gbps
        most[0] = min(1.0, transfer.direct.vm_gbps / rate_gbps)
        limited(0, src, transfer.direct.in_gbps)
        limited(0, dst, transfer.direct.out_gbps)
    else:
        most[0] = 0
    for k, relay in enumerate(relays):
        path, vms = 1 + k, paths + 2 + k
        cost[path] = transfer.volume_gb * relay.usd_per_gb
        cost[vms] = relay.vm_usd_per_h * hours
        cost[used + path] = relay.usd_per_h * hours
        most[vms] = relay.quota
        src_connections[path] = rate_gbps / relay.in_connections_gbps
        dst_connections[path] = rate_gbps / relay.out_connections_gbps
        limited(path, src, relay.in_gbps)
        limited(path, dst, relay.out_gbps)
        limited(path, vms, relay.vm_gbps)
    # As rows: HiGHS goes wrong on fractional bounds of integer variables.
    for column, end in ((src, transfer.src), (dst, transfer.dst)):
        cap = np.zeros(size)
        cap[:paths], cap[column] = rate_gbps / end.cap_gbps, -1
        rows.append(cap)
    for path in range(paths):
        row = np.zeros((2, size))
        row[0, [path, used + path]] = 1, -1
        row[1, [path, used + path]] = -1, transfer.least_part
        rows += [*row]
    limits = np.zeros(2 + len(rows) + 1)
    limits[-1] = min(transfer.most_paths, paths)
    rows.append(np.r_[np.zeros(used), np.ones(paths)])
    whole = np.r_[np.zeros(paths), np.ones(size - paths)]
    shares = np.r_[np.ones(paths), np.zeros(size - paths)]
    scale = cost.max() / 1000 or 1.0
    result = milp(
        cost / scale,
        constraints=[
            LinearConstraint(np.array([src_connections, dst_connections, *rows]), -np.inf, limits),
            LinearConstraint(shares[None], 1, 1),
        ],
        bounds=Bounds(0, most),
        integrality=whole,
        options={"mip_rel_gap": 0},
    )
    assert result.status in {0, 2}, result.message
    fixed_usd = transfer.usd_per_h * hours
    return float(result.fun * scale) + fixed_usd if result.status == 0 else inf


@dataclass(frozen=True)
class SkyplaneProblem:
    """A transfer as the integer program of Skyplane states it (Jain et al., NSDI 2023, section 5).

    Both ends of a link are held to K connections of a VM, each of which carries ``A / K`` of the
    saturated rate A of one VM pair. Paths have one relay at most.

    Attributes
    ----------
    pair_gbps, usd_per_gb : mapping
        By the ends of a link: ``s``, ``d``, or a relay's number.
    sites : mapping
        Egress cap, ingress cap, price of an hour and quota.
    """

    volume_gb: float
    pair_gbps: dict[tuple[Any, Any], float]
    usd_per_gb: dict[tuple[Any, Any], float]
    sites: dict[Any, tuple[float, float, float, int]]
    vm_start_s: float

    def least_cost_usd(self, rate_gbps: float) -> float:
        """Return the least cost at exactly this rate; infinity if there is no way."""
        links, sites = list(self.pair_gbps), list(self.sites)
        size = 2 * len(links) + len(sites)
        hours = 8 * self.volume_gb / rate_gbps / 3600 + self.vm_start_s / 3600
        cost, whole, most = np.zeros(size), np.zeros(size), np.full(size, np.inf)
        rows, low, high = [], [], []

        def add(row: dict[int, float], least: float, greatest: float) -> None:
            rows.append(np.zeros(size))
            rows[-1][list(row)] = list(row.values())
            low.append(least)
            high.append(greatest)

        for k, link in enumerate(links):  # a link's flow, then its connections in VMs
            cost[k] = self.volume_gb * self.usd_per_gb[link] / rate_gbps
            add({k: 1.0, len(links) + k: -self.pair_gbps[link]}, -inf, 0.0)
        for n, (site, (egress, ingress, usd_per_h, quota)) in enumerate(self.sites.items()):
            vms = 2 * len(links) + n
            cost[vms], whole[vms], most[vms] = usd_per_h * hours, 1, quota
            out = [k for k, (src, _) in enumerate(links) if src == site]
            into = [k for k, (_, dst) in enumerate(links) if dst == site]
            for used, cap in ((out, egress), (into, ingress)):
                add({**dict.fromkeys(used, 1.0), vms: -cap}, -inf, 0.0)
                add({**{len(links) + k: 1.0 for k in used}, vms: -1.0}, -inf, 0.0)
            sent = {"s": rate_gbps, "d": -rate_gbps}.get(site, 0.0)
            add({**dict.fromkeys(out, 1.0), **dict.fromkeys(into, -1.0)}, sent, sent)
        scale = cost.max() / 1000 or 1.0
        result = milp(
            cost / scale,
            constraints=LinearConstraint(np.array(rows), low, high),
            bounds=Bounds(0, most),
            integrality=whole,
            options={"mip_rel_gap": 0},
        )
        assert result.status in {0, 2}, result.message
        return float(result.fun * scale) if result.status == 0 else inf


def skyplane_rows(transfer: TransferProblem, pairs: SkyplaneProblem) -> TransferProblem:
    """Return a transfer with the rows of Skyplane's program in place of relayd's."""
    direct, *relays = (
        replace(
            path,
            in_gbps=first,
            out_gbps=last,
            vm_gbps=min(first, last, *pairs.sites[path.region][:2]) if relay else inf,
            in_connections_gbps=first,
            out_connections_gbps=last,
        )
        for path in transfer.paths
        for relay in [path.region is not None]
        for first in [pairs.pair_gbps["s", path.region if relay else "d"]]
        for last in [pairs.pair_gbps[path.region if relay else "s", "d"]]
    )
    return replace(transfer, direct=direct, relays=Relays.of(relays))


def most_rate_gbps(transfer: TransferProblem, further: dict[str, float] | None = None) -> float:
    """Return the greatest rate with all VMs in use.

    Parameters
    ----------
    transfer : TransferProblem
    further : dict, optional
        How much more there is of a resource: ``src connections``, ``dst connections``,
        ``src cap``, ``dst cap``, ``direct path``, ``path into R`` and ``path out of R`` of a
        relay's region R, or R itself (as text), all in VMs.
    """
    more = further or {}
    relays, src, dst = transfer.relays, transfer.src, transfer.dst
    direct = transfer.direct if transfer.direct and transfer.direct.in_gbps > 0 else None
    unit = max([0.0, *(r.in_gbps for r in relays), *(r.vm_gbps for r in relays)])
    unit = max(unit, direct.in_gbps) if direct else unit
    if unit <= 0:
        return 0.0
    rows = [
        [unit / direct.in_connections_gbps if direct else 0.0],
        [unit / direct.out_connections_gbps if direct else 0.0],
        [unit / src.cap_gbps] * (1 + len(relays)),
        [unit / dst.cap_gbps] * (1 + len(relays)),
    ]
    rows[0] += [unit / r.in_connections_gbps for r in relays]
    rows[1] += [unit / r.out_connections_gbps for r in relays]
    limits = [
        src.quota + more.get("src connections", 0.0),
        dst.quota + more.get("dst connections", 0.0),
        src.quota + more.get("src cap", 0.0),
        dst.quota + more.get("dst cap", 0.0),
    ]
    more_direct, most = more.get("direct path", 0.0), 0.0
    if direct:
        ends = ((src, direct.in_gbps), (dst, direct.out_gbps))
        most = min(gbps * (end.quota + more_direct) for end, gbps in ends)
        most = min(most, direct.vm_gbps)
    bounds: list[tuple[float, float]] = [(0, most / unit)]
    for r in relays:
        into = r.in_gbps * (src.quota + more.get(f"path into {r.region}", 0.0))
        out_of = r.out_gbps * (dst.quota + more.get(f"path out of {r.region}", 0.0))
        passed = r.vm_gbps * (r.quota + more.get(str(r.region), 0.0))
        bounds.append((0, min(into, out_of, passed) / unit))
    result = linprog(-np.ones(1 + len(relays)), A_ub=rows, b_ub=limits, bounds=bounds)
    assert result.status == 0, result.message
    return float(-result.fun * unit)


def check(transfer: TransferProblem, found: Allocation) -> None:
    """Assert that an allocation keeps every constraint and costs what it says."""
    assert min(found.flows.values()) > 1e-8 * found.rate_gbps, (
        "a path that carries what rounding left"
    )
    relays = {r.region: r for r in transfer.relays if r.region is not None}
    assert set(found.flows) - {None} == set(found.relay_vms) <= set(relays)
    flows = [(relays[region], found.flows[region]) for region in found.relay_vms]
    rate = found.direct_gbps + sum(gbps for _, gbps in flows)
    assert rate > 0
    assert found.rate_gbps == near(rate)
    assert found.direct_gbps >= 0
    assert all(gbps > 0 for _, gbps in flows)
    assert found.src_vms <= transfer.src.quota
    assert found.dst_vms <= transfer.dst.quota
    assert below(rate, transfer.src.cap_gbps * found.src_vms)
    assert below(rate, transfer.dst.cap_gbps * found.dst_vms)
    out_use = in_use = egress_usd = 0.0
    if found.direct_gbps:
        assert transfer.direct is not None
        out_use = found.direct_gbps / transfer.direct.in_connections_gbps
        in_use = found.direct_gbps / transfer.direct.out_connections_gbps
        assert below(found.direct_gbps, transfer.direct.in_gbps * found.src_vms)
        assert below(found.direct_gbps, transfer.direct.out_gbps * found.dst_vms)
        assert below(found.direct_gbps, transfer.direct.vm_gbps)
        egress_usd = found.direct_gbps / rate * transfer.direct.usd_per_gb * transfer.volume_gb
    out_use += sum(gbps / r.in_connections_gbps for r, gbps in flows)
    in_use += sum(gbps / r.out_connections_gbps for r, gbps in flows)
    assert below(out_use, found.src_vms)
    assert below(in_use, found.dst_vms)
    hourly = found.src_vms * transfer.src.vm_usd_per_h + found.dst_vms * transfer.dst.vm_usd_per_h
    hourly += transfer.usd_per_h
    for relay, gbps in flows:
        vms = found.relay_vms[relay.region or 0]
        assert vms <= relay.quota
        assert below(gbps, relay.vm_gbps * vms)
        assert below(gbps, relay.in_gbps * found.src_vms)
        assert below(gbps, relay.out_gbps * found.dst_vms)
        egress_usd += gbps / rate * relay.usd_per_gb * transfer.volume_gb
        hourly += vms * relay.vm_usd_per_h + relay.usd_per_h
    hours = 8 * transfer.volume_gb / rate / 3600
    assert found.egress_usd == near(egress_usd)
    assert found.vm_usd == near(hourly * (hours + transfer.lead_s / 3600))


def below(value: float, limit: float) -> bool:
    return value <= limit * (1 + TOLERANCE)


def same_cost(transfer: TransferProblem, usd: float, other_usd: float) -> bool:
    """Whether costs agree as well as general solvers can tell.

    Their tolerances are absolute: a millionth of the dearest path's fees may go astray.
    """
    if usd == other_usd:
        return True
    fees = [relay.usd_per_gb for relay in transfer.relays]
    fees += [transfer.direct.usd_per_gb] if transfer.direct else []
    dearest_usd = transfer.volume_gb * max(fees, default=0.0)
    return abs(usd - other_usd) <= 1e-5 * min(usd, other_usd) + 1e-6 * dearest_usd


def near(value: float, tolerance: float = TOLERANCE) -> Any:
    """Expect a value that is equal but for rounding."""
    return pytest.approx(value, rel=tolerance, abs=0.0)
