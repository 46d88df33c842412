"""The linear programs of a search over numbers of VMs (:mod:`.branch_and_bound`).

Limits of paths are bounds at the most VMs of a part of the search, which are exact once the VMs at
the ends are decided; until then, rows ``x <= P n`` are added where a solution breaks them, so that
each optimum is that of the whole program.

All costs are multiplied by the rate R, which makes them linear::

    cost R = D sum_p x_p fee_p + 8 D sum_v n_v price_v + t_start R sum_v n_v price_v

The last term is a product of two variables when the rate is free. With ``S(n) = sum n_v price_v``
between ``S0`` and ``S1``, and R between ``R0`` and ``R1``, the product is at least ``R0 S + R S0 -
R0 S0``, nor than ``R1 S + R S1 - R1 S1`` (McCormick, *Mathematical Programming* 10, 1976). A part
uses one of them, which is exact at that corner of its ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from operator import add
from typing import TypeAlias

from planner.model.units import S_PER_H
from planner.solvers.simplex import BoxedSimplex
from planner.transfer.allocation import scarce_connections
from planner.transfer.problem import Relay, TransferProblem

BROKEN = 1e-7  # in VMs: beyond what the program's rounding leaves
Range: TypeAlias = tuple[int, int]
Corner: TypeAlias = tuple[float, float]
"""A share of the rate, and what all VMs cost by the hour."""
# In place of a relay's position: a path, and the ends of all paths.
DIRECT = -1
SOURCE, DESTINATION = -2, -1
# Variables that follow the flows.
SRC_VMS, DST_VMS, SHARE, IDLE_VMS = range(4)


class VmPrograms:
    """Programs for one transfer, whatever the objective.

    Rates are shares of ``rate_gbps``, the greatest that is possible, so that the program's
    figures are near 1 whether the transfer crawls or flies. Columns of a program: the direct
    flow; for each relay a *paid* flow (over VMs that the branch has decided on) and a *further*
    flow (each Gbit/s brings its share of a VM's price); VMs at both ends; the rate; VMs at relays
    that carry nothing; VMs at relays beyond those decided on; then slacks. The last two count once
    the search has split on the VMs at all relays together.
    """

    fixed_rate = False
    counts_cost = True

    def __init__(
        self,
        transfer: TransferProblem,
        relays: Sequence[Relay],
        rate_gbps: float,
        budget_usd: float,
    ) -> None:
        self.transfer = transfer
        self.relays = relays
        self.rate_gbps = rate_gbps
        self.budget_usd = budget_usd
        self.start_h = transfer.vm_start_s / S_PER_H
        self.full_rate_h = transfer.gbps_h / rate_gbps
        direct = transfer.direct
        self.direct = direct if direct and direct.pair_gbps > 0 else None
        self.scarce = scarce_connections(transfer, relays)
        # Links that get a row at once, by path and end: a full direct path breaks its limits.
        self.limits = [(DIRECT, SOURCE), (DIRECT, DESTINATION)] if self.direct else []
        self.least_relay_usd_per_h = min([relay.vm_usd_per_h for relay in relays], default=0.0)

    def column(self, after_flows: int) -> int:
        """Return the position of a variable, such as :data:`SRC_VMS`, in the program."""
        return 1 + 2 * len(self.relays) + after_flows

    def solved(self, program: BoxedSimplex, src: Range, dst: Range) -> list[float] | None:
        """Return a program's optimum within the limits of all links; None if it has none."""
        src_column, dst_column = self.column(SRC_VMS), self.column(DST_VMS)
        while (solution := program.solve()) is not None:
            broken = []
            src_open, dst_open = src[0] < src[1], dst[0] < dst[1]
            if src_open or dst_open:
                src_vms, dst_vms = solution[src_column], solution[dst_column]
                flows = [share * self.rate_gbps for share in self.shares(solution)]
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
                vms = src if end == SOURCE else dst
                program.add_row(self._limit_row(k, end, program.width), 0.0, float(vms[1]))
                if not self.fixed_rate and (k, end) not in self.limits:
                    self.limits.append((k, end))
        return None

    def program(
        self,
        src: Range,
        dst: Range,
        relays: list[Range],
        shares: tuple[float, float],
        corner: Corner,
        worth_usd: float,
        parent: BoxedSimplex | None = None,
    ) -> tuple[BoxedSimplex, float]:
        """Return the program of a node, and the cost that its ranges have decided.

        With the program of the node that it is a part of, it goes on from where that ended: only
        costs and bounds differ.
        """
        least_share, most_share = shares
        cost, decided = self._costs(relays, corner)
        most = self.most_shares(src, dst, relays)
        lower = [0.0] * len(most) + [float(src[0]), float(dst[0]), least_share, 0.0, 0.0]
        upper = [*most, float(src[1]), float(dst[1]), most_share, 0.0, 0.0]
        rows, rhs, slack = ([], [], []) if parent else self._rows(src, dst, len(most))
        if self.budget_usd < inf:
            # Counted in budgets, to be of the size of the other rows.
            unit_usd = self.budget_usd or 1.0
            row = [c / unit_usd for c in cost]
            row[self.column(SHARE)] -= self.budget_usd / unit_usd
            rows.append(row)
            rhs.append(-decided / unit_usd)
            slack.append(self.budget_usd / unit_usd)
        if not self.counts_cost:
            cost = [0.0] * len(cost)
            decided = 0.0
        cost[self.column(SHARE)] -= worth_usd
        if parent:
            program = parent.copy()
            program.change(cost, lower, upper)
            return program, decided
        height = len(rows)
        rows = [row + [float(i == j) for j in range(height)] for i, row in enumerate(rows)]
        no_slack = [0.0] * height
        program = BoxedSimplex(rows, rhs, cost + no_slack, lower + no_slack, upper + slack)
        return program, decided

    def _costs(self, relays: list[Range], corner: Corner) -> tuple[list[float], float]:
        """Return the cost of each variable, and what the ranges of relays have decided."""
        transfer, direct, rate = self.transfer, self.direct, self.rate_gbps
        cost = [transfer.volume_gb * direct.usd_per_gb if direct else 0.0]
        decided = 0.0
        share, usd_per_h = corner
        for relay, (low, _) in zip(self.relays, relays, strict=True):
            vm_usd = self.vm_usd(relay.vm_usd_per_h, share)
            fee = transfer.volume_gb * relay.usd_per_gb
            cost += (fee, fee + vm_usd / (relay.vm_gbps / rate))
            decided += low * vm_usd
        start_usd = 0.0
        if not self.fixed_rate:  # the envelope of the start-up term
            start_usd = self.start_h * usd_per_h
            decided -= start_usd * share
        cost += (
            self.vm_usd(transfer.src.vm_usd_per_h, share),
            self.vm_usd(transfer.dst.vm_usd_per_h, share),
            start_usd,
            self.vm_usd(self.least_relay_usd_per_h, share),
            0.0,
        )
        return cost, decided

    def _rows(
        self, src: Range, dst: Range, flows: int
    ) -> tuple[list[list[float]], list[float], list[float]]:
        """Return the rows without slacks, their right sides, and what slacks are at most."""
        transfer, rate = self.transfer, self.rate_gbps
        rows = [[1.0] * flows + [0.0, 0.0, -1.0, 0.0, 0.0]]
        slack = [0.0]
        for end, vms, scarce in zip((SOURCE, DESTINATION), (src, dst), self.scarce, strict=True):
            if scarce:
                rows.append(self._connections_row(end))
                slack.append(float(vms[1]))
        if not self.fixed_rate:  # with a fixed rate, these two are bounds on the VMs
            rows.append([0.0] * flows + [-1.0, 0.0, rate / transfer.src.cap_gbps, 0.0, 0.0])
            rows.append([0.0] * flows + [0.0, -1.0, rate / transfer.dst.cap_gbps, 0.0, 0.0])
            slack += (float(src[1]), float(dst[1]))
        for k, end in self.limits:
            vms = src if end == SOURCE else dst
            if vms[0] < vms[1]:
                rows.append(self._limit_row(k, end, flows + 5))
                slack.append(float(vms[1]))
        return rows, [0.0] * len(rows), slack

    def most_shares(self, src: Range, dst: Range, relays: list[Range]) -> list[float]:
        """Return the upper bounds of the direct flow, and of each relay's paid and further flow."""
        rate = self.rate_gbps
        most = [self.direct.pair_gbps * min(src[1], dst[1]) / rate if self.direct else 0.0]
        for relay, (low, high) in zip(self.relays, relays, strict=True):
            links_gbps = min(relay.in_gbps * src[1], relay.out_gbps * dst[1])
            paid = min(relay.vm_gbps * low, links_gbps)
            most += (paid / rate, (min(relay.vm_gbps * high, links_gbps) - paid) / rate)
        return most

    def _connections_row(self, end: int) -> list[float]:
        """Return the row of one end's connections: those in use, in VMs, less the VMs there."""
        rate = self.rate_gbps
        row = [rate / self.direct.connections_gbps if self.direct else 0.0]
        for relay in self.relays:
            out = end == SOURCE
            row += (rate / (relay.in_connections_gbps if out else relay.out_connections_gbps),) * 2
        return [*row, -float(end == SOURCE), -float(end == DESTINATION), 0.0, 0.0, 0.0]

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
        row[self.column(SRC_VMS) if end == SOURCE else self.column(DST_VMS)] = -1.0
        return row

    def limit_all_relays(self, program: BoxedSimplex, beyond: Range, *, is_new: bool) -> None:
        """Limit the number of VMs at all relays beyond those decided on.

        Parameters
        ----------
        is_new : bool
            Whether the program has no row for it yet.
        """
        column = self.column(IDLE_VMS)
        least, most = map(float, beyond)
        program.upper[column] = program.upper[column + 1] = most
        program.lower[column + 1] = least
        if not is_new:
            return
        row = [0.0] * program.width
        for k, relay in enumerate(self.relays):
            row[2 + 2 * k] = self.rate_gbps / relay.vm_gbps
        row[column], row[column + 1] = 1.0, -1.0
        program.add_row(row, 0.0, 0.0)

    def shares(self, solution: list[float]) -> list[float]:
        """Return the flows of the direct path and of each relay, in shares of the rate."""
        relayed = solution[1 : self.column(SRC_VMS)]
        return [solution[0], *map(add, relayed[::2], relayed[1::2])]

    def vm_usd(self, usd_per_h: float, share: float) -> float:
        """Return the cost of one VM times the share of the rate, at that share."""
        return usd_per_h * (self.full_rate_h + self.start_h * share)
