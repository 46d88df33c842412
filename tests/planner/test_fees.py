"""Fees of plans are those that the meters of their links count."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.broadcast.plan import BroadcastPlan
from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.model.errors import InfeasibleError
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.placement.reduce import recommend_reduce
from planner.placement.request import Machine, ReduceRequest, TasksRequest
from planner.placement.tasks import recommend_tasks
from planner.replanning.progress import Workload
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, TimedTransfer
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.transfer.optimum import cost_time_frontier
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from planner.transfer.search import TransferSearch
from tests.planner.independent import below, near
from tests.planner.meters import CATALOGUE, metered_usd
from tests.planner.schedule.schedules import sent as sent_in
from tests.planner.transfer.strategies import REGIONS, answer, networks, patient, requests
from tests.properties import examples

VOLUMES = st.sampled_from([1.0, 30.0, 90.0, 400.0, 6000.0])
whole_networks = partial(networks, missing=False)
few = settings(max_examples=examples(30), deadline=None)


@st.composite
def demands(draw: st.DrawFn) -> dict[tuple[str, str], float]:
    pairs = st.tuples(st.sampled_from(REGIONS), st.sampled_from(REGIONS))
    found = draw(st.dictionaries(pairs, VOLUMES, min_size=1, max_size=12))
    found = {pair: gb for pair, gb in found.items() if pair[0] != pair[1]}
    assume(found)
    return found


def broadcast_links(plan: BroadcastPlan) -> list[tuple[str, str, float]]:
    return [
        (link.src, link.dst, tree.share * plan.volume_gb)
        for tree in plan.trees
        for link in tree.legs
    ]


@few
@given(whole_networks(), demands(), st.sampled_from(["time", "cost"]), st.sampled_from([0.0, 0.1]))
def test_a_shuffle_costs_what_meters_count(
    network: Network, volumes: dict[tuple[str, str], float], objective: str, margin: float
) -> None:
    prices = CataloguePrices(CATALOGUE, network)
    request = ShuffleRequest(volumes, objective=objective, margin=margin)  # type: ignore[arg-type]
    plan = recommend_shuffle(request, network, prices)
    sent = [
        (src, dst, path.share * pair.volume_gb)
        for pair in plan.pairs
        for path in pair.paths
        for src, dst in pairwise(path.regions)
    ]
    assert plan.cost_usd.egress == pytest.approx(metered_usd(sent))
    by_path = sum(
        path.share * pair.volume_gb * path.egress_usd_per_gb
        for pair in plan.pairs
        for path in pair.paths
    )
    assert by_path == pytest.approx(plan.cost_usd.egress)
    assert plan.bound_usd <= plan.cost_usd.egress * (1 + 1e-6)
    if plan.direct.cost_usd:
        direct = metered_usd((src, dst, gb) for (src, dst), gb in volumes.items())
        assert plan.direct.cost_usd.egress == pytest.approx(direct)
    rest = {pair: gb / 2 for pair, gb in volumes.items()}
    left = Workload.of(plan.model_dump(), rest)
    assert left.egress_usd(prices) == pytest.approx(
        metered_usd((src, dst, gb / 2) for src, dst, gb in sent)
    )


@few
@given(
    whole_networks(),
    st.lists(st.sampled_from(REGIONS[1:]), min_size=1, max_size=4, unique=True),
    VOLUMES,
    st.sampled_from(["time", "cost", "value"]),
)
def test_a_broadcast_costs_what_meters_count(
    network: Network, destinations: Sequence[str], volume_gb: float, objective: str
) -> None:
    request = BroadcastRequest(
        REGIONS[0],
        tuple(destinations),
        volume_gb=volume_gb,
        objective=objective,  # type: ignore[arg-type]
        margin=0.0,
    )
    plan = recommend_broadcast(request, network, CataloguePrices(CATALOGUE, network))
    sent = broadcast_links(plan)
    assert plan.cost_usd.egress == pytest.approx(metered_usd(sent))
    by_link = sum(
        tree.share * volume_gb * link.egress_usd_per_gb for tree in plan.trees for link in tree.legs
    )
    assert by_link == pytest.approx(plan.cost_usd.egress)
    assert plan.bound_usd <= plan.cost_usd.total * (1 + 1e-6)
    assert plan.direct
    star = metered_usd((REGIONS[0], dst, volume_gb) for dst in destinations)
    assert plan.direct.cost_usd.egress == pytest.approx(star)


@few
@given(
    whole_networks(),
    st.dictionaries(st.sampled_from(REGIONS), VOLUMES, min_size=2),
    st.sampled_from([None, 0.5, 0.9, 1.0]),
    st.sampled_from(["time", "cost"]),
)
def test_a_reduce_stage_costs_what_meters_count_and_keeps_its_budget(
    network: Network, volumes: dict[str, float], share: float | None, objective: str
) -> None:
    prices = CataloguePrices(CATALOGUE, network)

    def usd(fractions: dict[str, float]) -> float:
        return metered_usd(
            (src, dst, gb * part)
            for src, gb in volumes.items()
            for dst, part in fractions.items()
            if src != dst
        )

    free = recommend_reduce(ReduceRequest(volumes, objective=objective), network, prices)  # type: ignore[arg-type]
    for option in free.options:
        assert option.cost_usd.egress == pytest.approx(usd(option.fractions), abs=1e-9)
    if share is None:
        return
    budget_usd = share * free.cost_usd.egress
    request = ReduceRequest(volumes, objective=objective, budget_usd=budget_usd)  # type: ignore[arg-type]
    try:
        plan = recommend_reduce(request, network, prices)
    except InfeasibleError:
        assert objective == "cost" or share < 1
        return
    assert usd(plan.fractions) <= budget_usd * (1 + 1e-6)


@few
@given(whole_networks(), demands())
def test_a_schedule_costs_what_meters_count(
    network: Network, volumes: dict[tuple[str, str], float]
) -> None:
    asked = [TimedTransfer(f"t{n}", *pair, volumes[pair]) for n, pair in enumerate(volumes)]
    plan = recommend_schedule(ScheduleRequest(asked), network, CataloguePrices(CATALOGUE, network))
    usd = metered_usd(
        (src, dst, path.throughput_gbps * (period.end_s - period.start_s) / 8)
        for _, period, path in sent_in(plan)
        for src, dst in pairwise(path.regions)
    )
    assert plan.cost_usd.egress == pytest.approx(usd, rel=1e-5)
    assert sum(each.egress_usd for each in plan.transfers) == pytest.approx(usd, rel=1e-5)
    assert plan.bound_usd <= usd * (1 + 1e-6)


@few
@given(whole_networks(), st.lists(VOLUMES, min_size=6, max_size=6))
def test_a_placement_of_tasks_costs_what_meters_count(
    network: Network, volumes: list[float]
) -> None:
    names = ["p", "q", "r", "s"]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    traffic = dict(zip(pairs, volumes, strict=True))
    places = [("1", "aws:a"), ("2", "aws:a"), ("3", "aws:b"), ("4", "azure:c")]
    request = TasksRequest(
        dict.fromkeys(names, 1.0),
        traffic,
        [Machine(name, region, 1.0) for name, region in places],
        time_limit_s=0.0,
    )
    plan = recommend_tasks(request, network, CataloguePrices(CATALOGUE, network))
    at = {task: dict(places)[machine] for task, machine in plan.assignment.items()}
    sent = ((at[a], at[b], gb) for (a, b), gb in traffic.items() if at[a] != at[b])
    assert plan.cost_usd.egress == pytest.approx(metered_usd(sent))


# ---- one transfer --------------------------------------------------------------------------------


@patient
@given(requests(), networks())
def test_a_plan_costs_what_its_shares_are_charged(
    request: TransferRequest, network: Network
) -> None:
    prices = CataloguePrices(CATALOGUE, network)
    plan = answer(request, network, prices).plan
    usd = metered_usd(
        (src, dst, path.share * request.volume_gb)
        for path in plan.paths
        for src, dst in pairwise(path.regions)
    )
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
