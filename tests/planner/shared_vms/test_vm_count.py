"""The number of VMs that many transfers take where no one states it: that of a single one."""

from __future__ import annotations

from dataclasses import replace
from math import exp, hypot, inf, log
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import relayd
from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.comparison.recommendation import recommend_candidates
from planner.comparison.request import ComparisonRequest
from planner.fields.shared import MOST_VMS_UNASKED
from planner.model.estimate import Estimate
from planner.model.link import LimitedBy
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.placement.reduce import recommend_reduce
from planner.placement.request import ReduceRequest
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, TimedTransfer
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.planner.networks import stated_network
from tests.properties import examples

A, B, C = "x:a", "x:b", "x:c"


@settings(max_examples=examples(45), deadline=None)
@given(
    gbps=st.floats(0.5, 20),
    caps=st.tuples(st.floats(2, 20), st.floats(2, 20)),
    volume_gb=st.sampled_from([0.1, 10.0, 500.0, 20_000.0]),
    usd_per_h=st.sampled_from([0.0, 0.2, 1.5, 6.0]),
    hour_usd=st.sampled_from([0.0, 20.0, 500.0]),
    vms_in=st.sampled_from([{}, {A: 2}]),
    fleet=st.sampled_from([None, 3, 12]),
)
def test_one_transfer_is_the_same_to_all_questions(
    gbps: float,
    caps: tuple[float, float],
    volume_gb: float,
    usd_per_h: float,
    hour_usd: float,
    vms_in: dict[str, int],
    fleet: int | None,
) -> None:
    """All questions of one pair and volume, direct: one duration, price and number of VMs."""
    # VMs that run cost nothing to start: for a small volume, getting up to speed is then the most
    # of what they are paid for, which a plan of one transfer leaves out.
    assume(fleet is None or volume_gb > 100)
    network = Network.from_matrices(
        [A, B],
        np.full((2, 2), gbps),
        rtt_ms=30.0,
        egress_gbps=[caps[0]] * 2,
        ingress_gbps=[caps[1]] * 2,
    )
    sites = {region: replace(site, vms=fleet) for region, site in network.sites.items()}
    network, prices = network.with_(sites=sites), FlatPrices((A, B), 0.05, usd_per_h)
    same = {"time_value_usd_per_h": hour_usd, "relays": "none", "vms_in": vms_in}
    plan = recommend(TransferRequest(A, B, volume_gb=volume_gb, **same), network, prices)  # type: ignore[arg-type]
    shuffle = recommend_shuffle(
        ShuffleRequest({(A, B): volume_gb}, **same),  # type: ignore[arg-type]
        network,
        prices,
    )
    broadcast = recommend_broadcast(
        BroadcastRequest(A, [B], volume_gb=volume_gb, **same),  # type: ignore[arg-type]
        network,
        prices,
    )
    answers: list[Any] = [shuffle, broadcast]
    if not vms_in:  # comparisons ask for the same everywhere
        request = ComparisonRequest([B], volume_gb=volume_gb, time_value_usd_per_h=hour_usd)
        of = [(A, network, prices)]
        answers += recommend_candidates(request, network.snapshot, of).candidates
    if hour_usd == 20.0:  # what an hour is worth where a question does not ask
        reduce = ReduceRequest({A: volume_gb}, reduce_in=[B], vms_in=vms_in)
        answers.append(recommend_reduce(reduce, network, prices))
        timed = TimedTransfer("t", A, B, volume_gb)
        # A schedule uses all VMs that are stated.
        for transfer in (timed, replace(timed, deadline_s=1e6)) if not vms_in else ():
            asked = ScheduleRequest([transfer], relays="none")
            schedule = recommend_schedule(asked, network, prices)
            assert schedule.vms == plan.vms
            assert schedule.end_s == pytest.approx(plan.duration_s, rel=1e-6)
            assert schedule.cost_usd.total == pytest.approx(plan.cost_usd.total, rel=1e-4)
    for many in answers:
        assert many.vms == plan.vms
        assert many.duration_s == pytest.approx(plan.duration_s, rel=1e-6)
        assert many.cost_usd.egress == pytest.approx(plan.cost_usd.egress)
        assert many.cost_usd.vm == pytest.approx(plan.cost_usd.vm, rel=1e-5)


@pytest.mark.parametrize(("limited_by", "least"), [("vm", 0.9), ("path", 0.5)])
def test_bounds_of_several_vms_that_no_one_tried_are_wider(
    limited_by: LimitedBy, least: float
) -> None:
    """As those of a single transfer: further VM pairs may bring less, as squares add up."""
    rates, links = {(A, B): Estimate(4.5, 5.0, 5.5)}, {(A, B): {"limited_by": limited_by}}
    network, prices = stated_network(rates, links=links), FlatPrices((A, B))
    for vms in (1, 2, 7):
        same: dict[str, Any] = {"vms": vms, "objective": "time", "vm_start_s": 0.0}
        shuffle = recommend_shuffle(ShuffleRequest({(A, B): 1e4}, **same), network, prices)
        broadcast = recommend_broadcast(
            BroadcastRequest(A, [B], volume_gb=1e4, **same), network, prices
        )
        plan = recommend(TransferRequest(A, B, volume_gb=1e4, **same), network, prices)
        further = (1 + (vms - 1) * least) / vms
        slow_s = 8e4 / (5 * vms) * exp(hypot(log(5 / 4.5), log(further)))
        assert plan.throughput_gbps_low == pytest.approx(8e4 / slow_s)
        assert plan.throughput_gbps_high == pytest.approx(5.5 * vms)
        for many in (shuffle, broadcast):
            assert many.duration_s_high == pytest.approx(slow_s + 8.5 * 0.05)
            assert many.duration_s_low == pytest.approx(8e4 / (5.5 * vms) + 8.5 * 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("hour_usd", [5.0, 20.0, inf])
@pytest.mark.parametrize("volume_gb", [5.0, 200.0, 2000.0])
def test_no_fewer_vms_are_as_good(hour_usd: float, volume_gb: float) -> None:
    """A shuffle with relays: fewer stated VMs are more than 5 % worse than the best number."""
    gbps = np.array([[0, 1, 5], [1, 0, 5], [5, 5, 0]])
    network = Network.from_matrices([A, B, C], gbps, rtt_ms=20.0)
    prices = FlatPrices((A, B, C), 0.02, 1.5)
    request = ShuffleRequest(
        {(A, B): volume_gb, (C, A): volume_gb / 2},
        time_value_usd_per_h=hour_usd,
        # Where time alone counts, the start of VMs would hide what their number brings.
        vms_running=hour_usd == inf,
    )

    def worth(vms: int | None) -> float:
        plan = recommend_shuffle(replace(request, vms=vms), network, prices)
        if hour_usd == inf:
            return plan.duration_s
        return plan.cost_usd.vm + hour_usd * plan.duration_s / 3600

    worths = [worth(vms) for vms in range(1, MOST_VMS_UNASKED + 1)]
    fewest = next(n for n, value in enumerate(worths, 1) if value <= 1.05 * min(worths))
    plan = recommend_shuffle(request, network, prices)
    assert max(plan.vms.values()) == fewest
    assert worth(None) <= worths[fewest - 1] * (1 + 1e-3)


@pytest.mark.parametrize("vms", [None, 1, 3])
@pytest.mark.parametrize("objective", ["value", "time", "cost"])
@pytest.mark.parametrize("seed", range(8))
def test_one_transfer_takes_as_long_by_each_question(
    seed: int, objective: Any, vms: int | None
) -> None:
    random = np.random.default_rng(seed)
    gbps = random.uniform(1.0, 9.0, (4, 4)).round(2)
    np.fill_diagonal(gbps, 0.0)
    wan = relayd.open(
        {
            "regions": list("abcd"),
            "aggregate_gbps": gbps.tolist(),
            "rtt_ms": 70,
            "usd_per_gb": 0.02,
            "vm_usd_per_h": random.uniform(0.1, 9.0),
        }
    )
    volume_gb = float(10 ** random.uniform(0, 5))
    of: dict[str, Any] = {"vms": vms, "relays": "none", "connections": 64}
    plan = wan.plan("a", "b", volume_gb=volume_gb, objective=objective, **of)
    shuffle = wan.shuffle({("a", "b"): volume_gb}, objective=objective, **of)
    broadcast = wan.broadcast("a", ["b"], volume_gb=volume_gb, objective=objective, **of)
    assert shuffle.duration_s == pytest.approx(plan.duration_s, rel=1e-6)
    assert broadcast.duration_s == pytest.approx(plan.duration_s, rel=1e-6)
    assert shuffle.vms == broadcast.vms == plan.vms
    if objective == "time" and vms:
        asked = {"id": "x", "src": "a", "dst": "b", "volume_gb": volume_gb}
        assert wan.schedule([asked], **of).end_s == pytest.approx(plan.duration_s, rel=1e-6)
