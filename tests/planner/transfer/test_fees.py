"""What a plan costs is what the meters of its links count."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given

from planner.model.errors import DataError, InfeasibleError
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.transfer.optimum import cost_time_frontier
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from planner.transfer.search import TransferSearch
from tests.planner.independent import below, near
from tests.planner.meters import CATALOGUE, metered_usd
from tests.planner.transfer.strategies import networks, patient, requests


def metered_plan_usd(plan: Plan, volume_gb: float) -> float:
    """Return a plan's fees, by what its links carry."""
    return metered_usd(
        (src, dst, path.share * volume_gb)
        for path in plan.paths
        for src, dst in pairwise(path.regions)
    )


@patient
@given(requests(), networks())
def test_a_plan_costs_what_its_shares_are_charged(
    request: TransferRequest, network: Network
) -> None:
    prices = CataloguePrices(CATALOGUE, network)
    try:
        plan = recommend(request, network, prices)
    except (InfeasibleError, DataError):
        assume(False)
    usd = metered_plan_usd(plan, request.volume_gb)
    assert plan.cost_usd.egress == near(usd)
    by_path = sum(path.share * request.volume_gb * path.egress_usd_per_gb for path in plan.paths)
    assert by_path == near(usd)
    assert below(plan.cost_usd.total, request.budget_usd or inf)
    search = TransferSearch(request, network, prices)
    fees = search.figures.fees
    for point in cost_time_frontier(search.transfer, points=4, fees=fees):
        of_path = fees.usd_per_gb(point)
        usd = sum(of_path[path] * gbps / point.rate_gbps for path, gbps in point.flows.items())
        assert point.egress_usd == near(usd * request.volume_gb)


def test_a_small_share_is_charged_at_its_own_tier() -> None:
    """The direct path is full; the rest goes through a cloud that counts only that rest."""
    regions = ["aws:a", "gcp:f", "azure:r"]
    rates = np.array([[0.0, 1.0, 9.0], [0.0, 0.0, 0.0], [0.0, 9.0, 0.0]])
    network = Network.from_matrices(regions, rates)
    request = TransferRequest(
        "aws:a", "gcp:f", volume_gb=10_000, objective="cost", min_throughput_gbps=1.1, vms=1
    )
    plan = recommend(request, network, CataloguePrices(CATALOGUE, network))
    through = 10_000 * 0.1 / 1.1
    assert [round(path.share, 6) for path in plan.paths] == [0.909091, 0.090909]
    from_aws = 50 * 0.09 + 450 * 0.085 + 9500 * 0.05
    from_azure = 500 * 0.085 + (through - 500) * 0.05
    assert plan.cost_usd.egress == pytest.approx(from_aws + from_azure)
