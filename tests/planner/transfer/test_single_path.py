"""One path: the closed form against every combination of VMs."""

from __future__ import annotations

from itertools import product
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from planner.transfer.allocation import best_on_path, greatest_rate_gbps
from planner.transfer.problem import TransferPath, TransferProblem
from tests.planner import independent
from tests.planner.independent import near
from tests.planner.transfer.strategies import patient, transfers


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
        cost = relay.usd_per_gb * transfer.volume_gb + hourly * (hours + transfer.vm_start_s / 3600)
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
