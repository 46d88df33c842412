"""The optimal allocation: equal to an independent model, and never beaten."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.transfer.optimum import (
    cost_time_frontier,
    fastest,
    least_cost,
    least_value,
    most_rate_gbps,
    rate_duals,
    relevant_paths,
)
from planner.transfer.problem import End, TransferPath, TransferProblem
from tests.planner import independent
from tests.planner.grid import january_grid
from tests.planner.independent import near, same_cost, skyplane_rows
from tests.planner.transfer.strategies import patient, transfers
from tests.properties import cases

ONE_HUNDREDTH_PERCENT = 1e-4


# ---- on measured figures ---------------------------------------------------------------------


def january_requests(count: int, seed: int) -> list[tuple[TransferProblem, float]]:
    """Return random requests at 1, 1.25, 1.5 and 2 times direct, with 1, 2 and 4 VMs a region."""
    random = Random(seed)
    grid = january_grid()
    requests = []
    for src, dst in grid.random_pairs(count, seed):
        vms = random.choice([1, 2, 4])
        transfer = grid.transfer(src, dst, vms=vms, volume_gb=random.choice([1.0, 50.0, 500.0]))
        direct = min(
            grid.pair_gbps[src, dst], transfer.src.cap_gbps, transfer.dst.cap_gbps
        ) * random.choice([1, vms])
        requests.append((transfer, direct * random.choice([1.0, 1.25, 1.5, 2.0])))
    return requests


@pytest.mark.thorough
def test_cost_equals_the_full_model_on_the_january_grid() -> None:
    feasible = above_direct = 0
    count = max(60, cases(600))
    for transfer, rate in january_requests(count, seed=2022):
        found = least_cost(transfer, rate)
        full = independent.least_cost_usd(transfer, rate)
        assert (found is None) == (full == inf), (transfer, rate)
        if found:
            independent.check(transfer, found)
            assert found.rate_gbps == near(rate)
            assert found.cost_usd == near(full, ONE_HUNDREDTH_PERCENT)
            feasible += 1
            above_direct += bool(found.relay_vms)
    assert feasible > 0.4 * count  # or the mix tests little
    assert above_direct > 0.03 * count


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


def relays_of(transfer: TransferProblem, rate_limit_gbps: float = inf) -> list[TransferPath]:
    paths = relevant_paths(transfer, rate_limit_gbps)
    return [path for path in paths if path.region is not None]


@patient
@given(transfers(most_relays=8), st.floats(0.05, 1.0))
def test_leaving_out_irrelevant_relays_never_changes_the_optimum(
    transfer: TransferProblem, share: float
) -> None:
    rate = share * independent.most_rate_gbps(transfer) * (1 - 1e-7)
    few = replace(transfer, relays=relays_of(transfer, rate))
    cost = independent.least_cost_usd(transfer, rate)
    assert same_cost(transfer, independent.least_cost_usd(few, rate), cost)
    without_limit = replace(transfer, relays=relays_of(transfer))
    assert same_cost(transfer, independent.least_cost_usd(without_limit, rate), cost)


# ---- limits and their worth ------------------------------------------------------------------


def test_nothing_can_be_sent_without_a_path() -> None:
    nowhere = TransferProblem(1.0, End(1, 1, 1), End(1, 1, 1), None, [])
    assert most_rate_gbps(nowhere) == 0
    assert rate_duals(nowhere, []) == (0.0, {})
    assert cost_time_frontier(nowhere) == []
    assert [least_cost(nowhere, rate) for rate in (1.0, 0.0, -1.0)] == [None] * 3
    assert least_value(nowhere, time_value_usd_per_h=1.0) is None
    assert fastest(nowhere) is None
    assert fastest(nowhere, budget_usd=1.0) is None
