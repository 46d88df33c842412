"""Random transfers against the whole model as one mixed-integer program (SciPy's HiGHS).

The program states the rows of the design as they are, in flows and VMs, without pruning. Where the
rate is free, what VMs cost before the transfer begins is a product of the rate and of numbers of
VMs: these are sums of bits there, and the product of a bit and a bounded number is linear.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from planner.transfer.optimum import fastest, least_cost, least_value
from planner.transfer.problem import End, Relays, TransferPath, TransferProblem
from tests.planner import independent
from tests.planner.independent import near
from tests.properties import cases

ONE_HUNDREDTH_PERCENT = 1e-4
FEW_PATHS_GAP = 1e-5
BITS = 4  # quotas up to 8
REQUESTS = 500


@dataclass(frozen=True)
class Asked:
    transfer: TransferProblem
    rate_gbps: float
    budget_usd: float
    time_value_usd_per_h: float


def random_request(seed: int) -> Asked:
    """Return a request with caps, path limits, flows, fees, quotas, a rate and a budget."""
    random = np.random.default_rng(seed)

    def rate() -> float:
        return float(random.choice([0.5, 1.0, 2.0, 5.0, random.uniform(0.1, 12.0)]))

    def plenty(gbps: float) -> float:
        """Return what a VM's connections carry on a link of this limit."""
        return gbps * float(random.choice([1.0, 1.1, 2.0, random.uniform(1, 8), inf]))

    def usd_per_h() -> float:
        return float(random.choice([0.4, 1.5, random.uniform(0.0, 6.0)]))

    def quota() -> int:
        return int(random.integers(1, 9))

    def fee() -> float:
        return float(random.choice([0.02, 0.09, random.uniform(0.0, 0.2)]))

    def receiver(gbps: float) -> float:
        """Return the limit of a VM that receives: as one that sends, or by its cap alone."""
        return float(random.choice([gbps, rate(), inf]))

    into, direct = rate(), None
    if random.random() < 0.85:
        out = receiver(into)
        direct = TransferPath(None, into, out, inf, fee(), 0.0, 1, plenty(into), plenty(out))
    relays = []
    for region in range(int(random.integers(0 if direct else 1, 6))):
        into, out = rate(), receiver(rate())
        vm_gbps = random.choice([min(into, out) * random.choice([1.0, 0.6]), rate()])
        relays.append(
            TransferPath(
                region,
                into,
                out,
                float(vm_gbps),
                fee(),
                usd_per_h(),
                quota(),
                plenty(into),
                plenty(out),
            )
        )
    transfer = TransferProblem(
        float(random.choice([10.0, 500.0, random.uniform(1, 5000)])),
        End(2 * rate(), usd_per_h(), quota()),
        End(2 * rate(), usd_per_h(), quota()),
        direct,
        Relays.of(relays),
        float(random.choice([0.0, 60.0, 300.0])),
    )
    most = independent.most_rate_gbps(transfer)
    share = float(random.uniform(0.05, 1.15))
    dearest = max([r.usd_per_gb for r in relays] + [direct.usd_per_gb if direct else 0.0])
    budget_usd = transfer.volume_gb * (dearest + 0.01) * float(random.uniform(0.2, 1.5))
    hourly = float(random.choice([0.0, 1.0, 20.0, 200.0]))
    return Asked(transfer, share * most, budget_usd, hourly)


class WholeModel:
    """All rows of one transfer, its rate free.

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
        if direct is None:
            self.most[0] = 0
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
                self.money[product] = vms * end.vm_usd_per_h * transfer.vm_start_s / 3600
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


def test_random_requests_equal_the_whole_model() -> None:
    feasible = relayed = 0
    for seed in range(max(25, cases(REQUESTS))):
        asked = random_request(seed)
        transfer, rate = asked.transfer, asked.rate_gbps
        most = independent.most_rate_gbps(transfer)
        full_usd = independent.least_cost_usd(transfer, rate)
        found = least_cost(transfer, rate)
        assert (found is None) == (full_usd == inf) == (rate > most), seed
        if found:
            independent.check(transfer, found)
            assert found.cost_usd == near(full_usd, ONE_HUNDREDTH_PERCENT), seed
            feasible += 1
            relayed += bool(found.relay_vms)

        whole = WholeModel(transfer, most)
        greatest = whole.greatest_rate_gbps(asked.budget_usd)
        quick = fastest(transfer, budget_usd=asked.budget_usd)
        assert (quick is None) == (greatest <= 1e-9 * most), seed
        if quick:
            independent.check(transfer, quick)
            assert independent.below(quick.cost_usd, asked.budget_usd)
            assert quick.rate_gbps == near(greatest, ONE_HUNDREDTH_PERCENT), seed

        least_gbps = min(rate, most) * (seed % 2) * 0.9
        value = whole.least_value_usd(asked.time_value_usd_per_h, least_gbps, asked.budget_usd)
        best = least_value(
            transfer,
            time_value_usd_per_h=asked.time_value_usd_per_h,
            at_least_gbps=least_gbps,
            budget_usd=asked.budget_usd,
        )
        assert (best is None) == (value == inf), seed
        if best:
            independent.check(transfer, best)
            assert independent.below(best.cost_usd, asked.budget_usd)
            found_usd = (
                best.cost_usd + asked.time_value_usd_per_h * transfer.gbps_h / best.rate_gbps
            )
            assert found_usd == near(value, ONE_HUNDREDTH_PERCENT), seed
    assert feasible > 15
    assert relayed > 5


def test_plans_of_few_paths_are_the_best_of_these() -> None:
    """Against the best of all sets of three paths, each of which carries 10 % at least."""
    cut = 0
    for seed in range(max(60, cases(REQUESTS))):
        asked = random_request(seed)
        few = replace(asked.transfer, most_paths=2 + seed % 2, least_part=0.1)
        most = max(p.most_gbps(few.src.quota, few.dst.quota) for p in few.paths)
        rate = min(asked.rate_gbps, 1.5 * most)
        found, free = least_cost(few, rate), least_cost(asked.transfer, rate)
        cost = independent.least_cost_usd(few, rate)
        assert (found is None) == (cost == inf), seed
        hour_usd, hours = asked.time_value_usd_per_h, few.gbps_h
        for best in (found, fastest(few), least_value(few, time_value_usd_per_h=hour_usd)):
            if best:
                assert len(best.flows) <= few.most_paths, seed
                assert min(best.flows.values()) >= 0.1 * best.rate_gbps * (1 - 1e-6), seed
                independent.check(few, best)
        if found and free:
            cut += found.cost_usd > free.cost_usd * (1 + 1e-6)
            assert cost * (1 - 1e-5) <= found.cost_usd <= cost * (1 + FEW_PATHS_GAP), seed
        value, quickest = least_value(few, time_value_usd_per_h=hour_usd), fastest(few)
        if value and found:
            usd = [a.cost_usd + hour_usd * hours / a.rate_gbps for a in (value, found)]
            assert usd[0] <= usd[1] * (1 + FEW_PATHS_GAP), seed
        if quickest:
            above = quickest.rate_gbps * (1 + 2 * FEW_PATHS_GAP)
            assert independent.least_cost_usd(few, above) == inf, seed
            assert found is None or quickest.rate_gbps >= rate * (1 - FEW_PATHS_GAP), seed
    assert cut > 2


def test_of_relays_that_are_alike_no_more_are_used_than_needed() -> None:
    used = 0
    for seed in range(max(100, cases(REQUESTS))):
        asked = random_request(seed)
        hour_usd, relays = asked.time_value_usd_per_h, asked.transfer.relays
        if not relays:
            continue
        one = replace(asked.transfer, relays=Relays.of(relays[:1]))
        alike = replace(one, relays=Relays.of(replace(relays[0], region=k) for k in range(4)))
        gbps_h = one.gbps_h
        cheapest = [least_cost(problem, asked.rate_gbps) for problem in (one, alike)]
        best = [least_value(problem, time_value_usd_per_h=hour_usd) for problem in (one, alike)]
        for found, hourly in ((cheapest, 0.0), (best, hour_usd)):
            with_one, with_more = found
            if with_one is None or with_more is None:
                continue
            first, second = (a.cost_usd + hourly * gbps_h / a.rate_gbps for a in found if a)
            assert second <= first * (1 + 1e-6), seed
            vms = sum(with_more.relay_vms.values())
            # With other VMs at the ends, a second path may be as cheap as another VM there.
            ends = {(a.src_vms, a.dst_vms) for a in (with_one, with_more)}
            if second >= first * (1 - 1e-9) and vms <= relays[0].quota and len(ends) == 1:
                used += bool(vms)
                assert len(with_more.relay_vms) <= 1, seed
    assert used > 5
