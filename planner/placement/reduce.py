"""Where to reduce: each region's fraction of the keys, for the shortest shuffle.

The question of Iridium (Pu et al., *Low Latency Geo-distributed Data Analytics*, SIGCOMM 2015).
Region i has ``S_i`` for the stage and region j reduces the fraction ``r_j`` of all keys, so
``S_i r_j`` goes from i to j, and what stays costs nothing. Every limit of a region's VMs
(:mod:`planner.model.shared_resources`) is linear in the fractions::

    minimise T    with  sum_j r_j = 1,  loads(S_i r_j) <= VMs * T

Where a VM's egress and ingress caps are all that binds, this is the paper's model. With
heterogeneous links in its place each pair has a capacity of its own, ``S_i r_j <= B_ij T``: what
that promises, and the real duration, stand side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from math import inf
from typing import NamedTuple

import numpy as np

from planner.fields.demands import Demands
from planner.model.answer import Bottleneck, OneMoreVm, identified
from planner.model.errors import DataError, InfeasibleError, InputError, RelaydError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats, SiteResources
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, duration_text, more_usd_text, usd_text
from planner.model.vm_limits import BINDING, bottlenecks_of_rows, too_late, vms_by_region
from planner.placement.plan import ReduceOption, ReducePlacement
from planner.placement.request import Links, ReduceRequest
from planner.shared_vms.candidates import with_decided_vms
from planner.shared_vms.connections import connections_by_region
from planner.shared_vms.explanation import one_more_vm, vm_warnings
from planner.shared_vms.fees import ROUNDS, same_fees
from planner.shuffle.problem import shuffle_problem
from planner.shuffle.request import ShuffleRequest
from planner.solvers.linear_solver import new_solver, solved

FRACTION_ROUNDING = 1e-9
# A fraction below this is the rounding of a solver.
NOTHING = 1e-9


def recommend_reduce(
    request: ReduceRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> ReducePlacement:
    """Return the fractions of a reduce stage for each region.

    Raises InfeasibleError if the budget or the deadline can't be met; names one that can. Raises
    InputError or DataError if a region is not known, or none can reduce.
    """
    made = partial(_Reduce, request, network, prices)
    most = made({})
    if request.vms is not None:
        return most.plan(notes)
    links = most.transfers(most.even)
    of = request, most.problem, request.hour_usd, request.deadline_s, links
    return with_decided_vms(*of, made).plan(notes)


class _Spread:
    """Fractions with what they send: volumes on links, the VMs that take part, and times."""

    def __init__(self, of: _Reduce, fractions: Floats) -> None:
        self.fractions, self.links_gbit = fractions, of.transfers(fractions)
        self.vms = ((of.volumes > 0) | (fractions > 0)) * of.resources.vms
        used = self.links_gbit > 0
        # Until VMs have started, until links are up to speed, and in between.
        self.start_s = of.problem.start_s(self.vms) if used.any() else 0.0
        self.ramp_s = ramp_up_s(float((of.problem.rtt_ms * used).max(initial=0.0)))
        self.transfer_s = of.resources.time_s(self.links_gbit)
        self.lead_s = self.start_s + self.ramp_s
        self.duration_s = self.transfer_s + self.lead_s


class _Solution(NamedTuple):
    fractions: Floats
    time_s: float
    row_prices: Floats


class _Reduce:
    """Decides one placement."""

    def __init__(
        self, request: ReduceRequest, network: Network, prices: Prices, vms: Mapping[str, float]
    ) -> None:
        self.request, self.network = request, network
        volumes = {region: gb for region, gb in request.shuffle_gb.items() if gb > 0}
        wanted = request.reduce_in or tuple(request.input_gb)
        for region in (*volumes, *wanted):
            network.check_region(region, "input_gb", names="names a region that")
        reachable = [
            region
            for region in wanted
            if all(src == region or region in network.links.get(src, {}) for src in volumes)
        ]
        if not reachable:
            raise DataError(
                "Every region that may reduce lacks a link from some region with input. Measure or "
                "import the missing links, or let more regions reduce."
            )
        self.left_out = [region for region in wanted if region not in reachable]
        # Of equal fractions, as far as they are sent.
        demands = {
            (src, dst): gb / (len(reachable) - (src in reachable))
            for src, gb in volumes.items()
            for dst in reachable
            if dst != src
        }
        if not demands:
            problem = "is already in the region that reduces it"
            remedy = "Name two regions with input, or another one to reduce in."
            raise InputError("input_gb", problem, value=reachable[0], remedy=remedy)
        same = ("vms", "vms_in", "connections", "vm_start_s", "vms_running")
        asked = {name: getattr(request, name) for name in same}
        shuffle = ShuffleRequest(Demands(demands), relays="none", **asked)
        self.problem = shuffle_problem(shuffle, network, prices)
        self.problem = self.problem.with_vms(vms) if vms else self.problem
        self.regions = self.problem.regions
        self.volumes = np.array([volumes.get(r, 0.0) * BITS_PER_BYTE for r in self.regions])
        self.may = np.array([region in reachable for region in self.regions])
        self.resources = self.problem.resources.with_fixed_vms
        self.even, self.single = self.may / self.may.sum(), np.eye(len(self.regions))
        self.only_time_by_hose = request.objective != "cost" and request.links == "hose"
        self.fees = self._fees_at(self.even)
        self.budget_usd = inf if request.budget_usd is None else request.budget_usd
        # The time that the deadline leaves for sending.
        self.most_s = (request.deadline_s or inf) - _Spread(self, self.may.astype(float)).lead_s

    # ---- figures of fractions --------------------------------------------------------------

    def transfers(self, fractions: Floats) -> Floats:
        """Return the volumes on links of some fractions."""
        transfers = self.volumes[:, None] * fractions[None, :]
        np.fill_diagonal(transfers, 0.0)
        return np.asarray(transfers)

    def _fees_at(self, fractions: Floats) -> Floats:
        """Return the cost of all keys in each region, at the fees of some fractions."""
        usd_per_gbit = self.problem.fees.usd_per_gbit(self.transfers(fractions))
        return np.asarray(self.volumes @ usd_per_gbit)

    def _egress_usd(self, fractions: Floats) -> float:
        return self.problem.fees.usd(self.transfers(fractions))

    def _links_s(self, resources: SiteResources) -> Floats:
        """Return the time that all of a region takes to another on each pair's own link."""
        times = self.volumes[:, None] * resources.paths_s(resources.vms)
        np.fill_diagonal(times, 0.0)
        return np.asarray(times)

    def _option(self, name: str, of: _Spread, links: Links = "hose") -> ReduceOption:
        promised_s = of.transfer_s
        if links == "heterogeneous":
            promised_s = float((self._links_s(self.resources) * of.fractions).max(initial=0.0))
        named = zip(self.regions, of.fractions.tolist(), strict=True)
        return ReduceOption(
            name,
            {region: fraction for region, fraction in named if fraction > 0},
            promised_s + of.lead_s,
            of.duration_s,
            float(of.links_gbit.sum()) / BITS_PER_BYTE,
            self.problem.cost(of.links_gbit, of.vms, of.transfer_s + of.ramp_s),
        )

    # ---- the linear program ----------------------------------------------------------------

    def _rows(self, links: Links, resources: SiteResources) -> Floats:
        """Return the time that all keys in each region take on each row, shape (rows, n)."""
        if links == "hose":
            loads = [resources.loads(self.transfers(all_there)) for all_there in self.single]
            return np.array(loads).T / resources.row_vms[:, None]
        times = self._links_s(resources)
        each = np.einsum("ij,jk->ijk", times, np.eye(len(times))).reshape(-1, len(times))
        return np.asarray(each[each.any(axis=1)])

    def _solve(
        self,
        links: Links,
        *,
        least: str,
        most_s: float = inf,
        most_usd: float = inf,
        resources: SiteResources | None = None,
    ) -> _Solution | None:
        """Return the fractions of least time or least fees, or None if there are none."""
        matrix, n = self._rows(links, resources or self.resources), len(self.may)
        # Relative to the time and fees of equal fractions, so that figures are near 1.
        time_scale = float((matrix @ self.even).max()) or 1.0
        usd_scale = float(self.fees @ self.even) or 1.0
        # Of fractions, and of the time: their sum, the time of each row, and the fees.
        terms = np.zeros((len(matrix) + 2, n + 1))
        terms[0, :n], terms[-1, :n] = 1.0, self.fees / usd_scale
        terms[1:-1, :n], terms[1:-1, n] = matrix / time_scale, -1.0
        low, high = np.full(len(terms), -inf), np.zeros(len(terms))
        low[0], high[0], high[-1] = 1.0, 1.0, most_usd / usd_scale
        solver, most = new_solver(), [*self.may.astype(float).tolist(), most_s / time_scale]
        variables = [solver.NumVar(0.0, bound, "") for bound in most]
        for of_row, *bounds in zip(terms, low.tolist(), high.tolist(), strict=True):
            row = solver.Constraint(*bounds)
            for at in np.flatnonzero(of_row).tolist():
                row.SetCoefficient(variables[at], float(of_row[at]))
        goal = terms[-1] if least == "fees" else np.eye(n + 1)[n]
        for variable, worth in zip(variables, goal.tolist(), strict=True):
            solver.Objective().SetCoefficient(variable, worth)
        try:
            solver = solved(solver)
        except ArithmeticError as error:
            raise RelaydError(f"On this placement, {error}.") from error
        if solver is None:
            return None
        found = np.array([variable.solution_value() for variable in solver.variables()[:-1]])
        found = np.where(found > NOTHING, found, 0.0)
        found /= found.sum()
        prices = np.array([-row.dual_value() for row in solver.constraints()[1:-1]])
        return _Solution(found, float((matrix @ found).max(initial=0.0)), prices)

    def _decide(self, links: Links) -> _Solution:
        """Return the fractions under one assumption, within the limits.

        Repeated at the fees of the fractions found, as fees depend on metered volumes.
        """
        budget_usd, self.fees = self.budget_usd, self._fees_at(self.even)
        best: _Solution | None = None
        for _ in range(ROUNDS):
            found = self._decide_at_fees(links)
            made = found or self._solve(links, least="fees")
            assert made
            within = self._egress_usd(made.fractions) <= budget_usd * (1 + FRACTION_ROUNDING)
            if within and (found or made.time_s <= self.most_s):
                best = made if best is None else min(best, made, key=self._rank)
            fees = self._fees_at(made.fractions)
            if same_fees(fees, self.fees):
                break
            self.fees = fees
        if best is None:
            cheapest = self._solve(links, least="fees")
            assert cheapest
            usd = self._egress_usd(cheapest.fractions)
            if usd <= budget_usd * (1 + FRACTION_ROUNDING) and cheapest.time_s <= self.most_s:
                return cheapest  # fees of other fractions, which led here, were higher
            raise InfeasibleError(
                f"the budget of {usd_text(budget_usd)} is below the least egress fees of "
                f"{usd_text(usd)}",
                f"Allow at least {usd_text(np.ceil(usd * 100) / 100)}.",
            )
        return best

    def _rank(self, solution: _Solution) -> tuple[float, float]:
        figures = solution.time_s, self._egress_usd(solution.fractions)
        return figures if self.request.objective != "cost" else (figures[1], figures[0])

    def _decide_at_fees(self, links: Links) -> _Solution | None:
        """Return the fractions at some fees; None where these are above the budget."""
        request, most_s = self.request, self.most_s
        fast = self._solve(links, least="time", most_usd=self.budget_usd)
        if fast is None:
            return None
        if fast.time_s > most_s * (1 + FRACTION_ROUNDING):
            everywhere = _Spread(self, self.may.astype(float))
            needed_s = fast.time_s + everywhere.lead_s
            raise too_late(request.deadline_s or inf, needed_s, everywhere.start_s)
        if request.objective == "cost":
            cheap = self._solve(links, least="fees", most_s=max(most_s, fast.time_s))
            assert cheap
            usd = float(self.fees @ cheap.fractions) * (1 + FRACTION_ROUNDING)
            return self._solve(links, least="time", most_usd=usd) or cheap
        cheap = self._solve(links, least="fees", most_s=fast.time_s * (1 + FRACTION_ROUNDING))
        return cheap._replace(row_prices=fast.row_prices) if cheap else fast

    @cached_property
    def solution(self) -> _Solution:
        """The program's solution for the links that were asked about."""
        return self._decide(self.request.links)

    @cached_property
    def chosen(self) -> _Spread:
        """The fractions that are recommended."""
        return _Spread(self, self.solution.fractions)

    # ---- answer ----------------------------------------------------------------------------

    def plan(self, notes: tuple[str, ...]) -> ReducePlacement:
        request, chosen, network = self.request, self.chosen, self.network
        other: Links = "heterogeneous" if request.links == "hose" else "hose"
        made = self._option(request.links, chosen, request.links)
        options = [made]
        notes = notes + tuple(
            f"{region} can't reduce: a link into it is not known" for region in self.left_out
        )
        try:
            compared = _Spread(self, self._decide(other).fractions)
            options.append(self._option(other, compared, other))
        except InfeasibleError:
            notes += (f"under {other} links, nothing meets the limits",)
        options += self._without_a_plan()
        transfers, used, time_s = chosen.links_gbit, chosen.vms, chosen.transfer_s
        worth_s = self._worth_s()
        low_s, high_s = self.problem.range_s(transfers, used, made.duration_s, chosen.lead_s)
        bottlenecks = bottlenecks_of_rows(self.resources, self.regions, worth_s, time_s)
        vms, more = vms_by_region(self.regions, used), self._one_more_vm(worth_s)
        rates, most = transfers / max(time_s, NOTHING), request.connections
        needed = connections_by_region(self.resources, self.regions, rates, used, most)
        notes += vm_warnings(request, network, vms, self.regions, needed, more=more)
        plan = ReducePlacement(
            plan_id="",
            snapshot=network.snapshot,
            request=request.described(),
            reason=self._reason(options, bottlenecks),
            fees=self.problem.fee_lines(transfers, used, made.duration_s),
            links=request.links,
            fractions=made.fractions,
            promised_s=made.promised_s,
            duration_s=made.duration_s,
            duration_s_low=low_s,
            duration_s_high=high_s,
            moved_gb=made.moved_gb,
            shuffle_gb=float(self.volumes.sum()) / BITS_PER_BYTE,
            cost_usd=made.cost_usd,
            vms=vms,
            options=tuple(options),
            bottlenecks=bottlenecks,
            one_more_vm=more,
            connections=needed,
            warnings=notes,
            vm_start_s=chosen.start_s,
        )
        return identified(plan)

    def _without_a_plan(self) -> list[ReduceOption]:
        found = []
        local = np.where(self.may, self.volumes, 0.0)
        if local.sum() > 0:
            of = _Spread(self, local / local.sum())
            found.append(self._option("where the data is", of))
        single = (_Spread(self, all_there) for all_there in self.single[self.may])
        fastest = min(single, key=lambda one: one.duration_s)
        equal = self._option("equal", _Spread(self, self.even))
        return [*found, equal, self._option("one region", fastest)]

    def _reason(self, options: list[ReduceOption], bottlenecks: tuple[Bottleneck, ...]) -> str:
        made = options[0]
        equal = next(option for option in options if option.name == "equal")
        text = (
            f"Ends {equal.duration_s / made.duration_s:.2f}x as fast as equal fractions, "
            f"{more_usd_text(made.cost_usd.total - equal.cost_usd.total)}."
            if made.duration_s
            else "Nothing has to be moved."
        )
        if self.request.links == "heterogeneous":
            text += (
                f" Heterogeneous links promise {duration_text(made.promised_s)}; the measured "
                f"limits of VMs make it {duration_text(made.duration_s)}."
            )
        if bottlenecks:
            text += f" The bottleneck is {bottlenecks[0].constraint} at {bottlenecks[0].region}."
        return text

    def _worth_s(self) -> Floats:
        """Return the marginal saving of one more VM of each row, in s."""
        row_vms = self.resources.row_vms
        loads = self.resources.loads(self.chosen.links_gbit) / row_vms
        if loads.max(initial=0.0) and self.only_time_by_hose:
            # A row says load / VMs <= T: its price times T / VMs is the saving of a VM.
            return np.asarray(self.solution.row_prices * self.chosen.transfer_s / row_vms)
        return np.where(np.arange(len(loads)) == loads.argmax(), loads / row_vms, 0.0)

    def _one_more_vm(self, worth: Floats) -> tuple[OneMoreVm, ...]:
        """Return the saving of one more VM with new fractions, where only time counts."""
        now_s = self.chosen.duration_s
        if not self.only_time_by_hose:
            return ()

        def saved_with(wider: SiteResources) -> tuple[float, float]:
            more = replace(self.problem.resources, vms=wider.vms).with_fixed_vms
            solved = self._solve("hose", least="time", most_usd=self.budget_usd, resources=more)
            assert solved
            of = _Spread(self, solved.fractions)
            duration_s = more.time_s(of.links_gbit) + of.lead_s
            return duration_s, now_s - duration_s

        return one_more_vm(self.resources, self.regions, worth, BINDING * now_s, saved_with)
