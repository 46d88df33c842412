"""Plans of transfers, shuffles and broadcasts as predictions: what their documents promise."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from probes.verification.predictions import PlanPath, PlanPrediction, RateRange, predicted

REGIONS = ("s", "r", "d")
SITES = ("a", "b", "c", "e")
_rates = st.lists(st.floats(0.5, 8.0), min_size=16, max_size=16)


def _network(rates: list[float]) -> Network:
    matrix = np.array(rates).reshape(4, 4)
    np.fill_diagonal(matrix, 0.0)
    return Network.from_matrices(SITES, matrix, rtt_ms=80.0)


def _rtt_ms(src: str, dst: str) -> float:
    return 80.0


@settings(max_examples=8)
@given(_rates, st.sampled_from(["any", "none"]))
def test_a_shuffle_promises_the_rates_of_its_pairs(rates: list[float], relays: Any) -> None:
    demands = {("a", "b"): 50.0, ("a", "c"): 10.0, ("e", "c"): 30.0}
    plan = recommend_shuffle(
        ShuffleRequest(demands, relays=relays), _network(rates), FlatPrices(SITES, 0.02, 1.0)
    )
    found = predicted(plan.model_dump("json"), _rtt_ms)
    of_pair: dict[tuple[str, str], float] = defaultdict(float)
    for path in found.paths:
        of_pair[path.regions[0], path.regions[-1]] += path.rate.expected_gbps
        assert path.rtt_ms == 80.0 * (len(path.regions) - 1)
        assert path.rate.low_gbps <= path.rate.expected_gbps <= path.rate.high_gbps
    assert of_pair == pytest.approx({(p.src, p.dst): p.throughput_gbps for p in plan.pairs})
    assert (found.question, found.sets_rates, found.title) == (
        "shuffle",
        True,
        "shuffle of 3 pairs",
    )


@settings(max_examples=4)
@given(_rates)
def test_a_broadcast_promises_what_every_destination_receives(rates: list[float]) -> None:
    plan = recommend_broadcast(
        BroadcastRequest("a", ["b", "c", "e"], volume_gb=100.0),
        _network(rates),
        FlatPrices(SITES, 0.02, 1.0),
    )
    found = predicted(plan.model_dump("json"), _rtt_ms)
    received: dict[str, float] = defaultdict(float)
    for path in found.paths:
        received[path.regions[-1]] += path.rate.expected_gbps
    assert received == pytest.approx(dict.fromkeys("bce", plan.throughput_gbps))
    assert len({path.regions for path in found.paths}) == len(found.paths)
    assert (found.question, found.title) == ("broadcast", "broadcast from a")


def test_what_a_plan_fills_is_what_its_rates_reach() -> None:
    rates = np.array([[0, 2.0, 2, 2], [9, 0, 9, 9], [9, 9, 0, 9], [9, 9, 9, 0]])
    network = Network.from_matrices(SITES, rates, rtt_ms=80.0, egress_gbps=[6.0, 9, 9, 9])
    vms = dict.fromkeys(SITES, 2)

    def plan(*gbps: float) -> PlanPrediction:
        paths = tuple(
            PlanPath(("a", dst), 64, 80.0, RateRange(0.9 * x, x, 1.1 * x))
            for dst, x in zip("bce", gbps, strict=True)
        )
        return PlanPrediction(
            "p", "x", "", "", "direct", paths, vms, RateRange(1, 1, 1), question="shuffle"
        )

    assert plan(4.0, 3.9, 3.0).filled(network).keys() == {
        ("link", ("a", "b")),
        ("link", ("a", "c")),
    }
    everything = plan(4.0, 4.0, 4.0).filled(network)
    assert (everything["egress cap", ("a",)].expected_gbps, len(everything)) == (12.0, 4)
    assert plan(1.0, 1.0, 1.0).filled(network) == {}


def _transfer(rates_gbps: np.ndarray, **more: Any) -> Plan:
    network = Network.from_matrices(REGIONS, rates_gbps, rtt_ms=80.0)
    request = TransferRequest("s", "d", objective="time", volume_gb=1e4, **more)
    return recommend(request, network, FlatPrices(REGIONS, 0.02, 1.0))


@given(st.integers(1, 6), st.integers(1, 6))
def test_fewer_vms_scale_everything_alike(have_src: int, have_dst: int) -> None:
    rates = np.array([[0, 6.0, 4.0], [1, 0, 6.0], [1, 1, 0]])
    plan = _transfer(rates, vms_in={"s": 4, "d": 4, "r": 2})
    whole = predicted(plan.model_dump("json"), _rtt_ms)
    assert sum(path.rate.expected_gbps for path in whole.paths) == pytest.approx(
        plan.throughput_gbps
    )
    part = whole.with_vms({"s": have_src, "d": have_dst, "r": 1})
    share = min(1.0, *(n / whole.vms[r] for r, n in (("s", have_src), ("d", have_dst))))
    share = min(share, 1 / whole.vms["r"]) if "r" in whole.vms else share
    assert part.share == pytest.approx(share)
    assert part.rate.expected_gbps == pytest.approx(share * plan.throughput_gbps)
    assert all(part.vms[r] <= n for r, n in whole.vms.items())


def test_a_document_that_is_none_is_refused() -> None:
    rates = np.array([[0, 5.0, 1.0], [1, 0, 6.0], [1, 1, 0]])
    good = _transfer(rates, vms=1, relays="r", connections=1).model_dump("json")
    assert predicted(good, _rtt_ms).verdict == "relay"
    path = good["paths"][0]
    changes: tuple[dict[str, Any], ...] = (
        {"paths": []},
        {"throughput_gbps": 0.0},
        {"throughput_gbps": "fast"},
        {"throughput_gbps_low": float("nan")},
        {"throughput_gbps_low": 1e9},
        {"vms": {"s": 1, "d": 1}},
        {"paths": [{**path, "regions": ["s", "r", "r", "d"]}]},
        {"paths": [{**path, "regions": ["r", "d"]}]},
        {"paths": [{**path, "connections": 0}]},
        {"paths": [path, path]},
        {"request": None},
    )
    for change in changes:
        with pytest.raises(InputError, match=r"^plan is not"):
            predicted({**good, **change}, _rtt_ms)
    with pytest.raises(InputError, match="needs a VM in r"):
        predicted(good, _rtt_ms).with_vms({"s": 1, "d": 1})
