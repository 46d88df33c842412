"""Choosing paths where many transfers go: what trials find, and what they may cost."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.exploring import Kind, run
from planner.exploring.choice import Belief, DriftModel, Path, Sent, choose, likeliest
from tests.properties import examples

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
