"""The optimal allocation: equal to an independent model, and never beaten."""

from __future__ import annotations

from math import inf

from hypothesis import assume, given
from hypothesis import strategies as st

from planner.transfer.optimum import (
    cost_time_frontier,
    fastest,
    least_cost,
    least_value,
    most_rate_gbps,
    rate_duals,
)
from planner.transfer.problem import NO_RELAYS, End, TransferProblem
from tests.planner import independent
from tests.planner.grid import january_grid
from tests.planner.independent import near, same_cost, skyplane_rows
from tests.planner.transfer.strategies import patient, transfers
from tests.properties import cases

# ---- on measured figures ---------------------------------------------------------------------


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


# ---- limits and their worth ------------------------------------------------------------------


def test_nothing_can_be_sent_without_a_path() -> None:
    nowhere = TransferProblem(1.0, End(1, 1, 1), End(1, 1, 1), None, NO_RELAYS)
    assert most_rate_gbps(nowhere) == 0
    assert rate_duals(nowhere, []) == (0.0, {})
    assert cost_time_frontier(nowhere) == []
    assert [least_cost(nowhere, rate) for rate in (1.0, 0.0, -1.0)] == [None] * 3
    assert least_value(nowhere, time_value_usd_per_h=1.0) is None
    assert fastest(nowhere) is None
    assert fastest(nowhere, budget_usd=1.0) is None
