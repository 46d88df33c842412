"""The cost-time frontier: nothing on it is beaten by anything else on it."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given

from planner.transfer.optimum import cost_time_frontier, least_cost
from planner.transfer.problem import TransferProblem
from tests.planner import independent
from tests.planner.independent import near
from tests.planner.transfer.strategies import patient, transfers


@patient
@given(transfers())
def test_each_step_buys_speed_and_the_last_is_the_fastest(transfer: TransferProblem) -> None:
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
