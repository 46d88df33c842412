"""Plans in progress: noise never flips them, level shifts are followed, changing has its price."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.broadcast.recommendation import recommend_broadcast
from planner.broadcast.request import BroadcastRequest
from planner.model.answer import Answer
from planner.model.errors import InputError
from planner.model.estimate import STATED, Estimate
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.model.shared_resources import Floats
from planner.model.vm_limits import PAIR_CONNECTIONS
from planner.replanning.plan import Replan
from planner.replanning.progress import InProgress
from planner.replanning.recommendation import replan as answer_replan
from planner.replanning.request import ReplanRequest
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.planner.networks import stated_network
from tests.planner.transfer.strategies import patient
from tests.properties import examples

REGIONS = ("a", "b", "c", "d", "e")
PRICES = FlatPrices(REGIONS, 0.02, 1.0)
VOLUME_GB = 1000.0


def network(rate_gbps: Floats, error: float = 0.03, cap_gbps: float = 20.0) -> Network:
    """Return a network whose links are known to within a relative error."""

    def estimate(rate: float) -> Estimate:
        return Estimate(rate / (1 + error), rate, rate / (1 - error), STATED)

    rates = {
        (a, b): estimate(float(rate_gbps[REGIONS.index(a), REGIONS.index(b)]))
        for a, b in permutations(REGIONS, 2)
    }
    return stated_network(rates, cap_gbps=cap_gbps)


def flat(direct_gbps: float, other_gbps: float = 4.0) -> Floats:
    rates = np.full((5, 5), other_gbps)
    rates[0, 1] = direct_gbps
    return rates


def transfer(net: Network, **further: Any) -> dict[str, Any]:
    # Too few connections to divide: each plan is over one path.
    usual = {"objective": "time", "volume_gb": VOLUME_GB, "connections": 4, "vms": 1}
    request = TransferRequest("a", "b", **{**usual, **further})
    return recommend(request, net, PRICES).model_dump("json")


def replan(
    plan: Any,
    moved_gb: Any,
    elapsed_s: float,
    net: Network,
    prices: FlatPrices,
    *,
    changes: int = 0,
) -> Any:
    request = ReplanRequest(plan, moved_gb=moved_gb, elapsed_s=elapsed_s, changes=changes)
    return answer_replan(request, net, prices)


def in_progress(plan: Any, moved_gb: Any, elapsed_s: float) -> InProgress:
    return InProgress(ReplanRequest(plan, moved_gb=moved_gb, elapsed_s=elapsed_s))


# ---- known answers -------------------------------------------------------------------------------


def test_on_the_same_numbers_nothing_is_changed() -> None:
    net = network(flat(5.0))
    plan = transfer(net)
    answer = replan(plan, 300.0, 480.0, net, PRICES)
    assert answer.verdict == "keep"
    assert answer.change is None
    assert answer.keep.duration_s == pytest.approx(8 * 700 / 5, rel=1e-3)
    assert answer.keep.cost_usd.egress == pytest.approx(700 * 0.02)
    assert answer.keep.cost_usd.vm == pytest.approx(2 * answer.keep.duration_s / 3600)
    assert answer.observed_gbps == pytest.approx(answer.planned_gbps)
    assert not answer.warnings


def test_a_level_shift_is_followed_at_its_price() -> None:
    plan = transfer(network(flat(5.0)))
    assert plan["verdict"] == "direct"
    answer = replan(plan, 300.0, 480.0, network(flat(0.5)), PRICES)
    assert answer.verdict == "change"
    cost = answer.cost_of_change
    (relays,) = [[path["regions"] for path in answer.plan["paths"] if len(path["regions"]) == 3]]
    assert cost.vms_to_start == {route[1]: 1 for route in relays}
    assert cost.wait_s == 60.0
    # While the relay starts, the old plan moves on; then the rest gets up to speed and goes.
    rest_gb = 700 - 0.5 * 60 / 8
    wait_s = 60 + 8 * rest_gb / answer.plan["throughput_gbps"] + 8.5 * 0.1
    assert answer.change.duration_s == pytest.approx(wait_s, rel=1e-3)
    started = len(relays)
    usd = 60 * (2 + started) + (wait_s - 60) * sum(answer.plan["vms"].values())
    assert answer.change.cost_usd.vm == pytest.approx(usd / 3600, rel=1e-3)
    assert answer.saving_s.low <= answer.saving_s.expected <= answer.saving_s.high
    assert 1.1 <= answer.gain.low <= answer.gain.expected <= answer.gain.high


def test_the_last_gigabytes_are_not_worth_a_new_vm() -> None:
    plan = transfer(network(flat(5.0)))
    shifted = network(flat(0.5))
    assert replan(plan, 999.0, 1600.0, shifted, PRICES).verdict == "keep"
    assert replan(plan, 500.0, 800.0, shifted, PRICES).verdict == "change"


def test_vms_that_run_are_not_paid_to_start_again() -> None:
    # Relayed by c; the direct path recovers: nothing starts, one VM stops.
    plan = transfer(network(flat(0.5)))
    relays = {path["regions"][1] for path in plan["paths"] if len(path["regions"]) == 3}
    assert relays
    answer = replan(plan, 300.0, 600.0, network(flat(19.0)), PRICES)
    assert answer.verdict == "change"
    cost = answer.cost_of_change
    assert cost.vms_to_start == {}
    assert cost.wait_s == 0
    assert set(cost.vms_to_stop) <= relays


def test_a_doubtful_gain_is_not_followed_and_a_surprise_is_said() -> None:
    plan = transfer(network(flat(5.0)))
    doubtful = replan(plan, 300.0, 480.0, network(flat(3.0), error=0.4), PRICES)
    assert doubtful.verdict == "keep"
    assert doubtful.gain is None or doubtful.gain.low < 1.1
    slow = replan(plan, 100.0, 1600.0, network(flat(5.0)), PRICES)
    assert slow.verdict == "keep"
    assert any("Measure a -> b" in warning for warning in slow.warnings)


def test_a_deadline_about_to_be_missed_is_a_reason() -> None:
    net = network(flat(5.0))
    plan = transfer(net, objective="cost", deadline_s=1800.0)
    assert plan["verdict"] == "direct"
    slower = network(flat(3.6, 8.0))
    kept = replan(transfer(net, objective="cost"), 300.0, 480.0, slower, PRICES)
    assert kept.verdict == "keep"
    answer = replan(plan, 300.0, 480.0, slower, PRICES)
    assert answer.verdict == "change"
    assert answer.keep.duration_s > 1800 - 480 >= answer.change.duration_s
    past = replan(plan, 300.0, 1900.0, net, PRICES)
    assert any("deadline has passed" in warning for warning in past.warnings)


def test_what_is_left_of_a_budget_binds_the_new_plan() -> None:
    net, shifted = network(flat(5.0), cap_gbps=5.0), network(flat(0.5), cap_gbps=5.0)
    free = replan(transfer(net, connections=64), 300.0, 480.0, shifted, PRICES)
    # Spent: 300 GB at 0.02, two VMs for nine minutes. Left: too little to relay everything.
    spent_usd = 300 * 0.02 + 2 * 540 / 3600
    assert free.change.cost_usd.total > 27.0
    limited = transfer(net, connections=64, budget_usd=27.0 + spent_usd)
    bound = replan(limited, 300.0, 480.0, shifted, PRICES)
    assert bound.plan["request"]["budget_usd"] == pytest.approx(27.0, rel=1e-3)
    assert bound.plan["cost_usd"]["total"] <= 27.0 * (1 + 1e-3)
    gone = replan(transfer(net, budget_usd=21.0), 300.0, 48_000.0, shifted, PRICES)
    assert any("budget is spent" in warning for warning in gone.warnings)


@pytest.mark.slow
def test_shuffles_and_broadcasts_are_followed_too() -> None:
    demands = {("a", "b"): 500.0, ("b", "a"): 100.0, ("c", "b"): 50.0}
    before, after = network(flat(5.0)), network(flat(0.4))
    shuffle = recommend_shuffle(ShuffleRequest(demands), before, PRICES)
    broadcast = recommend_broadcast(
        BroadcastRequest("a", ("b", "c"), volume_gb=500.0, objective="time"),
        network(flat(5.0, 3.0)),
        PRICES,
    )
    tree = broadcast.model_dump("json")
    assert any(
        link["src"] == "a" and link["dst"] == "b" for t in tree["trees"] for link in t["legs"]
    )
    for plan, moved in ((shuffle.model_dump("json"), 100.0), (tree, 100.0)):
        same = before if plan is not tree else network(flat(5.0, 3.0))
        steady = replan(plan, moved, 160.0, same, PRICES)
        assert steady.verdict == "keep"
        moved_on = replan(plan, moved, 160.0, after, PRICES)
        assert moved_on.verdict == "change"
        assert moved_on.change.duration_s < moved_on.keep.duration_s / 1.1
        assert replan(moved_on.plan, 1.0, 10.0, after, PRICES).verdict == "keep"


def test_what_a_shuffle_moved_is_spread_as_planned_unless_told() -> None:
    demands = {("a", "b"): 500.0, ("c", "d"): 100.0}
    net = network(flat(5.0))
    plan = recommend_shuffle(ShuffleRequest(demands), net, PRICES).model_dump("json")
    rates = {(p["src"], p["dst"]): p["throughput_gbps"] for p in plan["pairs"]}
    elapsed_s = 40.0
    moved = {pair: rate * elapsed_s / 8 for pair, rate in rates.items()}
    spread = in_progress(plan, sum(moved.values()), elapsed_s)
    told = in_progress(plan, moved, elapsed_s)
    assert spread.remaining_gb == pytest.approx(told.remaining_gb)
    assert spread.workload.links_gb == pytest.approx(told.workload.links_gb)
    assert spread.planned_gbps == pytest.approx(sum(rates.values()))
    done = in_progress(plan, {("c", "d"): 100.0}, 100.0)
    assert ("c", "d") not in done.workload.links_gb
    with pytest.raises(InputError, match="more than the 100 GB"):
        in_progress(plan, {("c", "d"): 101.0}, 100.0)


@pytest.mark.parametrize(
    ("change", "moved", "elapsed", "words"),
    [
        (lambda plan: [], 1.0, 1.0, "is not a plan"),
        (lambda plan: {}, 1.0, 1.0, "is not a plan"),
        (lambda plan: {**plan, "paths": None}, 1.0, 1.0, "is not a plan"),
        (lambda plan: {**plan, "paths": [{"share": 1}]}, 1.0, 1.0, "transfer's plan"),
        (lambda plan: {**plan, "request": {}}, 1.0, 1.0, "transfer's plan"),
        (lambda plan: {**plan, "vms": {"nowhere": 1}}, 1.0, 1.0, "not part of the network"),
        (lambda plan: plan, 1000.0, 1.0, "nothing to move"),
        (lambda plan: plan, 1001.0, 1.0, "more than the 1000 GB"),
        (lambda plan: plan, -1.0, 1.0, "0 or more"),
        (lambda plan: plan, {("a", "b"): 1.0}, 1.0, "one volume"),
        (lambda plan: plan, 1.0, float("nan"), "elapsed"),
        (lambda plan: plan, "all", 1.0, "moved"),
    ],
)
def test_wrong_progress_is_named(
    change: Callable[[Any], Any], moved: Any, elapsed: float, words: str
) -> None:
    net = network(flat(5.0))
    plan = change(transfer(net))
    with pytest.raises(InputError, match=words):
        replan(plan, moved, elapsed, net, PRICES)


# ---- noise ---------------------------------------------------------------------------------------


def seen(truth: Floats, error: float, random: np.random.Generator) -> Network:
    """Return what a measurement shows of the truth, which its bounds enclose."""
    noise = random.uniform(1 - error, 1 + error, truth.shape)
    return network(truth * noise, error)


def true_rate_gbps(plan: dict[str, Any], truth: Floats) -> float:
    """Return at which rate a plan of one transfer really runs, its connections and caps full."""
    workload = in_progress(plan, 0.0, 0.0).workload
    volume_gb = float(plan["request"]["volume_gb"])
    exact = network(truth, 1e-9)
    of_vms = plan["request"]["connections"], PAIR_CONNECTIONS
    return 8 * volume_gb / workload.transfer_s(exact, PRICES, *of_vms)[1]


@pytest.mark.slow
@settings(patient, max_examples=examples(30))
@given(
    seed=st.integers(0, 10**6),
    error=st.sampled_from([0.02, 0.05, 0.1, 0.2]),
    objective=st.sampled_from(["time", "value", "cost"]),
    spread=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_stationary_noise_never_flips_plans(
    seed: int, error: float, objective: str, spread: float
) -> None:
    random = np.random.default_rng(seed)
    truth = 4.0 * np.exp(spread * random.standard_normal((5, 5)))
    plan = transfer(seen(truth, error, random), objective=objective, volume_gb=20_000.0)
    done_gb, begun_s, changes = 0.0, 0.0, 0
    ways = [_way(plan)]
    for _ in range(12):
        step_s = 0.06 * 8 * float(plan["request"]["volume_gb"]) / true_rate_gbps(plan, truth)
        begun_s += step_s
        done_gb += true_rate_gbps(plan, truth) * step_s / 8
        if done_gb >= 0.99 * plan["request"]["volume_gb"]:
            break
        answer = replan(plan, done_gb, begun_s, seen(truth, error, random), PRICES, changes=changes)
        if answer.verdict == "change":
            plan, done_gb, begun_s = answer.plan, 0.0, 0.0
            changes += 1
            assert _way(plan) not in ways
            ways.append(_way(plan))
    assert changes <= 1


def _way(plan: dict[str, Any]) -> tuple[object, ...]:
    paths = sorted((tuple(p["regions"]), round(p["share"], 2)) for p in plan["paths"])
    return (*paths, *sorted(plan["vms"].items()))


@settings(patient, max_examples=examples(30))
@given(seed=st.integers(0, 10**6), error=st.sampled_from([0.02, 0.05, 0.1]))
def test_a_real_shift_is_followed_once(seed: int, error: float) -> None:
    random = np.random.default_rng(seed)
    truth = flat(8.0, 5.0) * random.uniform(0.9, 1.1, (5, 5))
    plan = transfer(seen(truth, error, random))
    moved = 100.0
    truth[0, 1] /= 8  # the direct path collapses
    first = replan(plan, moved, 100.0, seen(truth, error, random), PRICES)
    assert first.verdict == "change"
    for _ in range(4):
        again = replan(first.plan, 10.0, 20.0, seen(truth, error, random), PRICES, changes=1)
        assert again.verdict == "keep"


def test_an_answer_is_the_same_for_a_plan_and_for_its_json() -> None:
    net = network(flat(5.0))
    answer: Answer = recommend(TransferRequest("a", "b", volume_gb=VOLUME_GB), net, PRICES)
    read = json.loads(answer.model_dump_json())
    one = replan(answer.model_dump(), 10.0, 20.0, network(flat(0.3)), PRICES)
    two = replan(read, 10.0, 20.0, network(flat(0.3)), PRICES)
    assert replan(answer.model_dump_json(), 10.0, 20.0, network(flat(0.3)), PRICES) == two
    assert isinstance(one, Replan)
    assert replace(one, planned_on="") == replace(two, planned_on="")
    assert json.loads(two.model_dump_json())["verdict"] == two.verdict
