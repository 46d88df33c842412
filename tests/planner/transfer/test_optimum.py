"""The optimal allocation: equal to independent models, and never beaten."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from planner.transfer.allocation import best_on_path, greatest_rate_gbps
from planner.transfer.optimum import (
    cost_time_frontier,
    fastest,
    least_cost,
    least_value,
    most_rate_gbps,
    rate_duals,
)
from planner.transfer.problem import NO_RELAYS, End, Relays, TransferPath, TransferProblem
from tests.planner import independent
from tests.planner.grid import january_grid
from tests.planner.independent import near, same_cost, skyplane_rows
from tests.planner.transfer.strategies import MOST_RELAYS, patient, transfers
from tests.properties import cases

# ---- on measured figures ---------------------------------------------------------------------


@pytest.mark.slow
def test_skyplane_is_never_cheaper_and_under_its_rows_costs_are_equal() -> None:
    """Its relays and destinations are held to connections, and to caps of the other end."""
    grid, cheaper, feasible = january_grid(), 0, 0
    pairs = grid.random_pairs(max(30, cases(179)), seed=7)
    for number, (src, dst) in enumerate(pairs):
        vms = 1 + number % 8
        transfer = grid.transfer(src, dst, vms=vms, volume_gb=[10.0, 100.0, 1000.0][number % 3])
        problem = grid.of_skyplane(src, dst, transfer)
        rate = grid.pair_gbps[src, dst] * [1.0, 1.5, vms, 1.25 * vms][number % 4]
        peer_usd = problem.least_cost_usd(rate)
        alike = least_cost(skyplane_rows(transfer, problem), rate)
        assert (alike is None) == (peer_usd == inf), (src, dst)
        if alike:
            ours = least_cost(transfer, rate)
            assert ours is not None
            assert alike.cost_usd == near(peer_usd, 1e-9), (src, dst)
            assert ours.cost_usd <= peer_usd * (1 + 1e-9), (src, dst)
            cheaper += ours.cost_usd < peer_usd * 0.99
            feasible += 1
    assert feasible > 0.4 * len(pairs)
    assert cheaper > 0.03 * len(pairs)


def test_with_a_relay_in_each_of_61_regions_least_cost_equals_the_full_model() -> None:
    grid, feasible = january_grid(), 0
    pairs = grid.random_pairs(max(15, cases(60)), seed=7)
    for number, (src, dst) in enumerate(pairs):
        vms = 1 + number % 8
        transfer = grid.transfer(src, dst, vms=vms, volume_gb=[10.0, 100.0, 1000.0][number % 3])
        rate = grid.pair_gbps[src, dst] * [1.0, 1.5, vms, 1.25 * vms][number % 4]
        least_usd = independent.least_cost_usd(transfer, rate)
        found = least_cost(transfer, rate)
        assert (found is None) == (least_usd == inf), (src, dst)
        if found:
            assert same_cost(transfer, found.cost_usd, least_usd), (src, dst)
            feasible += 1
    assert feasible > 0.4 * len(pairs)


# ---- on random figures -----------------------------------------------------------------------


@patient
@given(transfers(), st.floats(0.02, 1.3))
def test_least_cost_equals_the_full_model(transfer: TransferProblem, share: float) -> None:
    most = independent.most_rate_gbps(transfer)
    assert most_rate_gbps(transfer) == near(most)
    rate = share * most
    assume(rate > 0 and abs(share - 1) > 1e-6)
    found = least_cost(transfer, rate)
    assert (found is None) == (share > 1)
    if found:
        independent.check(transfer, found)
        assert found.rate_gbps == near(rate)
        assert same_cost(transfer, found.cost_usd, independent.least_cost_usd(transfer, rate))


@patient
@given(transfers())
def test_each_step_of_the_frontier_buys_speed_and_the_last_is_the_fastest(
    transfer: TransferProblem,
) -> None:
    points = cost_time_frontier(transfer, points=8)
    for point in points:
        independent.check(transfer, point)
    for slower, faster in pairwise(points):
        assert slower.rate_gbps < faster.rate_gbps
        assert slower.cost_usd < faster.cost_usd
    assert points[-1].rate_gbps == near(independent.most_rate_gbps(transfer))
    for point in points:  # and none can be had for less
        cheapest = least_cost(transfer, point.rate_gbps * (1 - 1e-9))
        assert cheapest is not None
        assert point.cost_usd <= cheapest.cost_usd * (1 + 1e-6)


# ---- one path ----------------------------------------------------------------------------------


def by_trying_everything(
    transfer: TransferProblem,
    relay: TransferPath,
    time_value: float,
    least_gbps: float,
    budget: float,
) -> float:
    """Return the least value; infinity if there is none.

    With its VMs given, a path is best as fast as they carry.
    """
    src, dst = transfer.src, transfer.dst
    best = inf
    for m, k, n in product(
        range(1, src.quota + 1), range(1, relay.quota + 1), range(1, dst.quota + 1)
    ):
        rate = min(src.cap_gbps * m, dst.cap_gbps * n)
        rate = min(rate, relay.in_gbps * m, relay.vm_gbps * k, relay.out_gbps * n)
        hours = 8 * transfer.volume_gb / rate / 3600
        hourly = m * src.vm_usd_per_h + n * dst.vm_usd_per_h
        hourly += k * relay.vm_usd_per_h + relay.usd_per_h + transfer.usd_per_h
        cost = relay.usd_per_gb * transfer.volume_gb + hourly * (hours + transfer.lead_s / 3600)
        if rate >= least_gbps * (1 - 1e-9) and cost <= budget * (1 + 1e-9):
            value = hours if time_value == inf else cost + time_value * hours
            best = min(best, value)
    return best


@patient
@given(
    transfers(),
    st.sampled_from([0.0, 1.0, 20.0, inf]),
    st.floats(0.0, 1.2),
    st.sampled_from([inf, 0.5, 1.01, 2.0]),
)
def test_equals_trying_every_number_of_vms(
    transfer: TransferProblem, time_value: float, share: float, generosity: float
) -> None:
    for relay in transfer.paths:
        most = greatest_rate_gbps(transfer, relay)
        least = share * most
        cheapest = by_trying_everything(transfer, relay, 0.0, 0.0, inf)
        budget = inf if generosity == inf else cheapest * generosity
        found = best_on_path(
            transfer, relay, time_value_usd_per_h=time_value, at_least_gbps=least, budget_usd=budget
        )
        expected = by_trying_everything(transfer, relay, time_value, least, budget)
        assert (found is None) == (expected == inf)
        if found:
            independent.check(transfer, found)
            assert set(found.flows) == {relay.region}
            assert least * (1 - 1e-6) <= found.rate_gbps
            assert independent.below(found.rate_gbps, most)
            hours = 8 * transfer.volume_gb / found.rate_gbps / 3600
            value = hours if time_value == inf else found.cost_usd + time_value * hours
            assert value == near(expected)


# ---- no path -----------------------------------------------------------------------------------


def test_nothing_can_be_sent_without_a_path() -> None:
    nowhere = TransferProblem(1.0, End(1, 1, 1), End(1, 1, 1), None, NO_RELAYS)
    assert most_rate_gbps(nowhere) == 0
    assert rate_duals(nowhere, []) == (0.0, {})
    assert cost_time_frontier(nowhere) == []
    assert [least_cost(nowhere, rate) for rate in (1.0, 0.0, -1.0)] == [None] * 3
    assert least_value(nowhere, time_value_usd_per_h=1.0) is None
    assert fastest(nowhere) is None
    assert fastest(nowhere, budget_usd=1.0) is None


# ---- the rate free, few paths, and relays that are alike -----------------------------------------


ONE_HUNDREDTH_PERCENT = 1e-4
FEW_PATHS_GAP = 1e-5
BITS = 3  # quotas up to 7


@st.composite
def few_relays(draw: st.DrawFn) -> TransferProblem:
    """Return a transfer with up to five relays, without equals, which take programs long.

    Nor has it fees for hours of what is used.
    """
    drawn = draw(transfers())
    unlike = [relay for relay in drawn.relays if (relay.region or 0) < MOST_RELAYS]
    relays = Relays.of(replace(relay, usd_per_h=0.0) for relay in unlike[:5])
    return replace(drawn, relays=relays, usd_per_h=0.0)


# The same on each run: of figures that lie far apart, general solvers may say what is wrong.
steady = settings(patient, derandomize=True)
HOUR_USD = st.sampled_from([0.0, 1.0, 20.0, 200.0])


class WholeModel:
    """All rows of one transfer, its rate free, as one mixed-integer program without pruning.

    What VMs cost before the transfer begins is a product of the rate and of numbers of VMs: these
    are sums of bits here, and the product of a bit and a bounded number is linear.

    Columns: flows (direct first), the rate, then for the source, the destination and each relay the
    bits of its number of VMs, then as many products of a bit and the rate. Flows are in units of
    the greatest rate, money in units of what the volume costs on the dearest path.
    """

    def __init__(self, transfer: TransferProblem, most_gbps: float) -> None:
        self.transfer, self.unit = transfer, most_gbps
        relays = transfer.relays
        paths, sites = 1 + len(relays), 2 + len(relays)
        self.rate = paths
        self.size = paths + 1 + 2 * BITS * sites
        self.first_product = paths + 1 + BITS * sites
        self.rows: list[np.ndarray] = []
        self.limits: list[float] = []
        self.equal = self._row()
        self.equal[:paths], self.equal[self.rate] = 1, -1
        src, dst, direct = transfer.src, transfer.dst, transfer.direct
        self.most = np.ones(self.size)
        ends: list[End | TransferPath] = [src, dst, *relays]
        for site, end in enumerate(ends):
            self._at_most(self._vms(site, 1.0), end.quota)
        for site, (end, connections) in enumerate(
            (
                (src, [r.in_connections_gbps for r in relays]),
                (dst, [r.out_connections_gbps for r in relays]),
            )
        ):
            self._vms_carry(site, {self.rate: end.cap_gbps})
            carried = {1 + k: gbps for k, gbps in enumerate(connections)}
            if direct:
                gbps = direct.out_connections_gbps if site else direct.in_connections_gbps
                carried[0] = gbps
                self._vms_carry(site, {0: direct.out_gbps if site else direct.in_gbps})
            self._vms_carry(site, carried)
        for k, relay in enumerate(relays):
            self._vms_carry(0, {1 + k: relay.in_gbps})
            self._vms_carry(1, {1 + k: relay.out_gbps})
            self._vms_carry(2 + k, {1 + k: relay.vm_gbps})
        self.most[0] = min(1.0, direct.vm_gbps / most_gbps) if direct else 0.0
        for bit in range(paths + 1, self.first_product):
            product = bit + self.first_product - paths - 1
            self._at_most({product: 1.0, bit: -1.0}, 0)
            self._at_most({product: 1.0, self.rate: -1.0}, 0)
            self._at_most({self.rate: 1.0, bit: 1.0, product: -1.0}, 1)
        # Cost times the rate.
        fees = [direct.usd_per_gb if direct else 0.0, *[r.usd_per_gb for r in relays]]
        self.money = self._row()
        self.money[:paths] = np.array(fees) * transfer.volume_gb
        for site, end in enumerate(ends):
            for column, vms in self._vms(site, 1.0).items():
                self.money[column] += vms * end.vm_usd_per_h * transfer.gbps_h / self.unit
                product = column + self.first_product - paths - 1
                self.money[product] = vms * end.vm_usd_per_h * transfer.lead_s / 3600
        self.scale = self.money.max() or 1.0

    def _row(self) -> np.ndarray:
        return np.zeros(self.size)

    def _vms(self, site: int, each: float) -> dict[int, float]:
        first = len(self.transfer.relays) + 2 + BITS * site
        return {first + bit: each * 2**bit for bit in range(BITS)}

    def _at_most(self, row: dict[int, float], limit: float) -> None:
        whole = self._row()
        for column, figure in row.items():
            whole[column] = figure
        self.rows.append(whole)
        self.limits.append(limit)

    def _vms_carry(self, site: int, gbps_of_one: dict[int, float]) -> None:
        use = {column: self.unit / gbps for column, gbps in gbps_of_one.items()}
        self._at_most({**use, **self._vms(site, -1.0)}, 0)

    def solve(
        self, objective: np.ndarray, budget_usd: float = inf, least_gbps: float = 0.0
    ) -> tuple[float, float] | None:
        """Return the least objective and its rate, or None if there is none."""
        rows, limits = [*self.rows], [*self.limits]
        if budget_usd < inf:
            row = self.money / self.scale
            row[self.rate] -= budget_usd / self.scale
            rows.append(row)
            limits.append(0.0)
        least = self._row()
        least[self.rate] = least_gbps / self.unit
        whole = np.zeros(self.size)
        whole[self.rate + 1 : self.first_product] = 1
        found = milp(
            objective,
            constraints=[
                LinearConstraint(np.array(rows), -np.inf, limits),
                LinearConstraint(self.equal[None], 0, 0),
            ],
            bounds=Bounds(least, self.most),
            integrality=whole,
            options={"mip_rel_gap": 1e-9},
        )
        assert found.status in {0, 2}, found.message
        return (
            (float(found.fun), float(found.x[self.rate]) * self.unit) if not found.status else None
        )

    def greatest_rate_gbps(self, budget_usd: float) -> float:
        objective = self._row()
        objective[self.rate] = -1
        found = self.solve(objective, budget_usd)
        return found[1] if found else 0.0

    def least_value_usd(
        self, time_value_usd_per_h: float, least_gbps: float, budget_usd: float
    ) -> float:
        """Return the least cost plus time value; infinity if there is none (Dinkelbach)."""
        time_usd = time_value_usd_per_h * self.transfer.gbps_h / self.unit
        value = inf
        for _ in range(20):
            objective = self.money / self.scale
            objective[self.rate] -= (value if value < inf else 10 * self.scale) / self.scale
            found = self.solve(objective, budget_usd, max(least_gbps, self.unit * 1e-3))
            if found is None:
                return inf
            below, rate_gbps = found
            share = rate_gbps / self.unit
            was = value if value < inf else 10 * self.scale
            better = was + (below * self.scale + time_usd) / share
            if value < inf and better >= value * (1 - 1e-7):
                return min(value, better)
            value = better
        return value


@steady
@given(few_relays(), HOUR_USD, st.floats(0.5, 2.0), st.sampled_from([0.0, 0.5, 0.9]))
def test_the_fastest_and_the_best_are_those_of_the_whole_model(
    transfer: TransferProblem, hour_usd: float, generosity: float, least_share: float
) -> None:
    most = independent.most_rate_gbps(transfer)
    whole, least_gbps = WholeModel(transfer, most), least_share * most
    budget_usd = generosity * independent.least_cost_usd(transfer, max(least_share, 0.2) * most)
    greatest = whole.greatest_rate_gbps(budget_usd)
    value_usd = whole.least_value_usd(hour_usd, least_gbps, budget_usd)
    quick = fastest(transfer, budget_usd=budget_usd)
    best = least_value(
        transfer, time_value_usd_per_h=hour_usd, at_least_gbps=least_gbps, budget_usd=budget_usd
    )
    assert (quick is None) == (greatest <= 1e-9 * most)
    assert (best is None) == (value_usd == inf)
    for found in (quick, best):
        if found:
            independent.check(transfer, found)
            assert independent.below(found.cost_usd, budget_usd)
    assert quick is None or quick.rate_gbps == near(greatest, ONE_HUNDREDTH_PERCENT)
    if best:
        found_usd = best.cost_usd + hour_usd * transfer.gbps_h / best.rate_gbps
        assert found_usd == near(value_usd, ONE_HUNDREDTH_PERCENT)


@steady
@given(few_relays(), HOUR_USD, st.floats(0.05, 1.15), st.integers(2, 3))
def test_plans_of_few_paths_are_the_best_of_these(
    transfer: TransferProblem, hour_usd: float, share: float, most_paths: int
) -> None:
    """Against the best of all sets of two or three paths, each of which carries 10 % at least."""
    few = replace(transfer, most_paths=most_paths, least_part=0.1)
    most = max(p.most_gbps(few.src.quota, few.dst.quota) for p in few.paths)
    rate = min(share * independent.most_rate_gbps(transfer), 1.5 * most)
    found, cost_usd = least_cost(few, rate), independent.least_cost_usd(few, rate)
    value, quickest = least_value(few, time_value_usd_per_h=hour_usd), fastest(few)
    assert (found is None) == (cost_usd == inf)
    for best in (found, value, quickest):
        if best:
            assert len(best.flows) <= few.most_paths
            assert min(best.flows.values()) >= 0.1 * best.rate_gbps * (1 - 1e-6)
            independent.check(few, best)
    if found:
        assert cost_usd * (1 - 1e-5) <= found.cost_usd <= cost_usd * (1 + FEW_PATHS_GAP)
        assert value
        usd = [a.cost_usd + hour_usd * few.gbps_h / a.rate_gbps for a in (value, found)]
        assert usd[0] <= usd[1] * (1 + FEW_PATHS_GAP)
    assert quickest
    above = quickest.rate_gbps * (1 + 2 * FEW_PATHS_GAP)
    assert independent.least_cost_usd(few, above) == inf
    assert found is None or quickest.rate_gbps >= rate * (1 - FEW_PATHS_GAP)


@steady
@given(few_relays(), HOUR_USD, st.floats(0.05, 1.0))
def test_of_relays_that_are_alike_no_more_are_used_than_needed(
    transfer: TransferProblem, hour_usd: float, share: float
) -> None:
    assume(transfer.relays)
    one = replace(transfer, relays=Relays.of(transfer.relays[:1]))
    (relay,) = one.relays
    alike = replace(one, relays=Relays.of(replace(relay, region=k) for k in range(4)))
    rate = share * independent.most_rate_gbps(one)
    cheapest = [least_cost(problem, rate) for problem in (one, alike)]
    best = [least_value(problem, time_value_usd_per_h=hour_usd) for problem in (one, alike)]
    for found, hourly in ((cheapest, 0.0), (best, hour_usd)):
        with_one, with_more = found
        if with_one is None or with_more is None:
            continue
        first, second = (a.cost_usd + hourly * one.gbps_h / a.rate_gbps for a in found if a)
        assert second <= first * (1 + 1e-6)
        vms = sum(with_more.relay_vms.values())
        # With other VMs at the ends, a second path may be as cheap as another VM there.
        ends = {(a.src_vms, a.dst_vms) for a in (with_one, with_more)}
        if second >= first * (1 - 1e-9) and vms <= relay.quota and len(ends) == 1:
            assert len(with_more.relay_vms) <= 1
