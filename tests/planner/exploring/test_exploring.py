"""Plans that learn from past transfers, what their trials find, and what those may cost."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.exploring import Kind, run
from planner.exploring.choice import Belief, DriftModel, Path, Sent, choose, likeliest
from planner.exploring.outcome import Outcome
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.properties import examples

NAMES = ["a", "b", "near", "far"]


def plan(*outcomes: Outcome, explore: float = 0.02, **more: Any) -> Any:
    """Return a plan from a to b: direct 4 Gbit/s, relays of 3.9 and 3."""
    rate = np.full((4, 4), 4.0)
    rate[0, 2] = rate[2, 1] = 3.9
    rate[0, 3] = rate[3, 1] = 3.0
    np.fill_diagonal(rate, 0.0)
    network = Network.from_matrices(NAMES, rate, rtt_ms=10.0, per_flow_mbps=25 * rate)
    asked: dict[str, Any] = {"objective": "time", "vms": 1, **more}
    request = TransferRequest("a", "b", explore=explore, outcomes=outcomes, **asked)
    return recommend(request, network, FlatPrices(NAMES, 0.02, 1.0), now_s=1e5)


def outcome(number: int, via: str, rate_gbps: float) -> Outcome:
    return Outcome(f"o{number}", "a", "b", rate_gbps, 3600.0 * number, via)


def test_without_outcomes_the_best_is_taken_where_a_trial_is_too_dear() -> None:
    found = plan(explore=0.0001)
    assert (found.verdict, found.exploration.via, found.exploration.best) == (
        "direct",
        "direct",
        "direct",
    )
    assert {rate.via for rate in found.exploration.rates} == {"direct", "near", "far"}
    assert found.exploration.rates[0].gbps == pytest.approx(4.0)
    assert found.best_relay is not None
    assert plan(explore=0.0).exploration is None
    # Outcomes of other ends and of unknown relays do no harm.
    others = [Outcome("x", "b", "a", 0.1, 1.0), Outcome("y", "a", "b", 0.1, 1.0, "elsewhere")]
    again = plan(*others, explore=0.0001).exploration
    assert again.rates == found.exploration.rates


def test_a_path_that_outcomes_show_to_be_slow_is_left() -> None:
    slow = [outcome(number, "direct", 1.0) for number in range(1, 6)]
    found = plan(*slow)
    assert (found.verdict, found.exploration.best) == ("relay", "near")
    known = {rate.via: rate for rate in found.exploration.rates}
    assert known["direct"].gbps == pytest.approx(1.0, rel=0.3)
    assert known["direct"].outcomes == 5
    assert known["direct"].gbps_low < known["direct"].gbps < known["direct"].gbps_high
    assert found.plan_id != plan(*slow[:4]).plan_id


def test_what_transfers_had_is_what_the_plan_predicts() -> None:
    """A dozen transfers of 2.5 Gbit/s where 4 were estimated, with one VM and with two."""
    for vms in (1, 2):
        had = [Outcome(f"{n}", "a", "b", 2.5 * vms, 3600.0 * n, vms=vms) for n in range(1, 13)]
        found = plan(*had, relays="none", volume_gb=500)
        assert found.throughput_gbps == pytest.approx(2.5, rel=0.02)
        assert found.throughput_gbps_low < found.throughput_gbps < found.throughput_gbps_high
        (known,) = found.exploration.rates
        rates = found.throughput_gbps_low, found.throughput_gbps, found.throughput_gbps_high
        assert (known.gbps_low, known.gbps, known.gbps_high) == rates
        assert found.duration_s == pytest.approx(60 + 8 * 500 / found.throughput_gbps, rel=1e-3)
        # A deadline that estimates would keep with one VM takes two.
        cheap: dict[str, Any] = {"objective": "cost", "relays": "none", "vms": 4, "volume_gb": 500}
        hurried = plan(*had, **cheap, deadline_s=1200.0)
        assert hurried.vms["a"] > 1
        assert hurried.duration_s <= 1200.0
        assert plan(**cheap, deadline_s=1200.0).vms == {"a": 1, "b": 1}


def test_limits_hold_for_trials_too() -> None:
    found = plan(explore=0.5, min_throughput_gbps=3.5)
    assert {rate.via for rate in found.exploration.rates} == {"direct", "near"}
    cheaper: dict[str, Any] = {"objective": "cost", "min_throughput_gbps": 3.5}
    fast, slow = ([outcome(n, "direct", rate) for n in range(1, 11)] for rate in (3.9, 1.0))
    assert plan(*fast, **cheaper).verdict == "direct"
    left = plan(*slow, **cheaper)
    assert (left.exploration.best, left.exploration.via, left.warnings) == ("near", "near", ())
    none = plan(explore=0.5, relays="none")
    assert [rate.via for rate in none.exploration.rates] == ["direct"]


@pytest.mark.parametrize("limits", [{"deadline_s": 300.0}, {"min_throughput_gbps": 3.0}])
def test_where_no_path_is_known_to_meet_the_limits_the_plan_warns(limits: dict[str, float]) -> None:
    slow = [outcome(number, "direct", 1.0) for number in range(1, 6)]
    found = plan(*slow, objective="cost", relays="none", volume_gb=100, **limits)
    assert found.verdict == "direct"
    (said,) = found.warnings
    assert "no path meets the limits" in said
    assert "the direct path, which has 1.0" in said
    assert not plan(objective="cost", relays="none", volume_gb=100, **limits).warnings


def test_the_reason_says_when_trials_have_cost_what_they_may() -> None:
    dear = [outcome(number, "far", 2.0) for number in range(1, 4)]
    found = plan(*dear, explore=0.001)
    assert found.exploration.spent > found.exploration.allowed
    assert found.exploration.via == found.exploration.best == "direct"
    assert "Trials have cost what they may; none is made now." in found.reason
    assert "worth a trial" not in found.reason


def test_wrong_exploring_is_named() -> None:
    with pytest.raises(InputError, match="latency") as raised:
        TransferRequest("a", "b", objective="latency", explore=0.01)
    assert raised.value.field == "explore"
    with pytest.raises(InputError, match="are for exploring"):
        TransferRequest("a", "b", outcomes=[{"src": "a", "dst": "b", "rate": 1, "ended_s": 0}])
    with pytest.raises(InputError, match="outcomes outcome1, rate_gbps"):
        TransferRequest("a", "b", explore=0.1, outcomes=[{"src": "a", "dst": "b", "ended_s": 0}])


# ---- choices of paths ----------------------------------------------------------------------------


SEEDS, TRANSFERS = 12, 80


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["still", "jumping", "wandering"])
def test_trials_pay_on_drifting_networks_and_cost_little_on_still_ones(kind: Kind) -> None:
    tried = [run(seed, 0.01, kind, TRANSFERS) for seed in range(SEEDS)]
    never = [run(seed, 0.0, kind, TRANSFERS) for seed in range(SEEDS)]
    assert not any(one.trials for one in never)
    cost, without = (sum(one.cost for one in runs) for runs in (tried, never))
    least = sum(one.least for one in never)
    assert cost <= 1.01 * without
    if kind != "still":
        assert cost - least < without - least
    assert sum(one.trials for one in tried) > SEEDS
    for one in tried:
        # Noise and drift are known better as time goes on, so that the share is not kept exactly.
        assert one.trials_cost - one.worst_trial <= 1.5 * 0.01 * one.cost


@pytest.mark.thorough
@pytest.mark.parametrize(("transfers", "seeds"), [(20, 100), (200, 2)])
@pytest.mark.parametrize("off", [0.02, 0.1, 0.25])
def test_few_transfers_on_a_still_network_cost_little_more(
    off: float, transfers: int, seeds: int
) -> None:
    """Whether estimates are as far off as they say or much better: then no trial finds a gain."""
    tried = [run(seed, 0.01, "still", transfers, off) for seed in range(seeds)]
    never = [run(seed, 0.0, "still", transfers, off) for seed in range(seeds)]
    assert sum(one.trials for one in tried) > seeds / 2
    assert sum(one.cost for one in tried) <= 1.01 * sum(one.cost for one in never)
    # One series may have a trial that is slower than expected, but no second one until it is paid.
    assert sum(one.trials_cost for one in tried) <= 0.01 * sum(one.cost for one in tried)
    for one in tried:
        assert one.trials_cost - one.worst_trial <= 1.5 * 0.01 * one.cost


paths = st.lists(
    st.builds(
        Path,
        st.builds(Belief, st.floats(-2.0, 4.0), st.floats(0.001, 1.0)),
        st.floats(0.0, 50.0),
        st.floats(0.1, 100.0),
        st.sampled_from([0.0, 1.0, 5.0]),
    ),
    min_size=1,
    max_size=6,
)
outcomes = st.lists(
    st.builds(Sent, st.integers(0, 5), st.floats(-3.0, 5.0), st.floats(0.0, 1e7)), max_size=30
)


@settings(max_examples=examples(100), deadline=None)
@given(paths, outcomes, st.floats(0.0, 0.5))
def test_what_is_tried_may_be_paid_and_the_rest_is_best(
    of: list[Path], sent: list[Sent], share: float
) -> None:
    sent = [one._replace(path=one.path % len(of)) for one in sent]
    choice = choose(of, sent, 1e7, share)
    known = list(zip(of, choice.beliefs, strict=True))
    predicted = [path.value(belief.mean) for path, belief in known]
    # Where any path is fast enough for its limits, others are neither best nor tried.
    may = [
        number
        for number, (path, belief) in enumerate(known)
        if not path.least_gbps or belief.mean >= log(path.least_gbps)
    ]
    assert choice.meets_limits == bool(may)
    may = may or list(range(len(of)))
    assert choice.path in may
    assert predicted[choice.best] == min(predicted[n] for n in may)
    excess = predicted[choice.path] - predicted[choice.best]
    if choice.path != choice.best:
        assert choice.spent + excess <= choice.allowed
    without = choose(of, sent, 1e7, 0.0)
    assert without.path == without.best == choice.best
    assert without.beliefs == choice.beliefs


def test_beliefs_are_those_of_all_outcomes_at_once() -> None:
    random = np.random.default_rng(1)
    prior, model = Belief(1.0, 0.3**2), DriftModel(0.1, 0.2)
    times_s = np.sort(random.uniform(0, 5 * 86400, 12))
    logs = random.normal(1.2, 0.3, 12)
    belief = prior
    for time_s, value in zip(times_s.tolist(), logs.tolist(), strict=True):
        belief = belief.at(time_s, model.drift_a_day).after(Sent(0, value, time_s), model.noise)
    # A Gaussian process: the level at the first outcome, and a random walk from there.
    days = (times_s - times_s[0]) / 86400
    level = prior.variance + model.drift_a_day**2 * np.minimum(days[:, None], days[None, :])
    shown = level + model.noise**2 * np.eye(12)
    weights = np.linalg.solve(shown, level[-1])
    assert belief.mean == pytest.approx(prior.mean + weights @ (logs - prior.mean))
    assert belief.variance == pytest.approx(level[-1, -1] - weights @ level[-1])


@pytest.mark.parametrize(("drift", "noise"), [(0.0, 0.05), (1.0, 0.02), (0.3, 0.02)])
def test_noise_and_drift_are_told_apart(drift: float, noise: float) -> None:
    random = np.random.default_rng(2)
    steps = random.normal(0.0, drift * (1 / 48) ** 0.5, 400)
    logs = 1.0 + np.cumsum(steps) + random.normal(0.0, noise, 400)
    sent = [Sent(0, value, 1800.0 * n) for n, value in enumerate(logs.tolist())]
    found = likeliest({0: Belief(1.0, 0.3**2)}, sent)
    assert (found.drift_a_day, found.noise) == (drift, noise)


def test_a_path_that_became_slow_is_left_and_one_that_grew_old_tried_again() -> None:
    of = [Path(Belief(log(5.0), 0.1**2), 0.0, 1.0), Path(Belief(log(4.5), 0.3**2), 0.0, 1.0)]
    assert choose(of, [], 0.0, 0.0).path == 0
    assert choose(of, [], 0.0, 0.2).path == 1  # it may well be faster, and that is soon known
    slow = [Sent(1, log(3.0), 600.0)]
    assert choose(of, slow, 1200.0, 0.05).path == 0
    jumped = [*slow, *(Sent(0, log(5.0 - 0.05 * n), 600.0 + 1800.0 * n) for n in range(60))]
    late = choose(of, jumped, 600.0 + 1800.0 * 60, 0.05)
    assert late.best == 1
    assert exp(late.beliefs[1].mean) < 3.6
