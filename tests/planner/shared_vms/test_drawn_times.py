"""Times in draws: those of a Monte Carlo simulation, exact for one link, and equal where shared."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from planner.model.estimate import Estimate, Origin
from planner.model.shared_resources import Floats, SiteResources
from planner.shared_vms.drawn_times import DrawnTimes
from planner.shared_vms.problem import resources_at_bounds
from planner.solvers.joint import BOUND_SCORE
from tests.planner.networks import stated_network

MEASURED, INFERRED = Origin("measured", "stated"), Origin("inferred", "provider-pair-law")
FACTORS = 40_000


def estimate(expected: float, low: float, high: float) -> Estimate:
    return Estimate(expected * low, expected, expected * high, MEASURED)


def drawn(
    rate: Floats, flows: Floats, caps: Floats, vms: Floats, low: float, high: float
) -> DrawnTimes:
    """Return the times on sites whose figures may all be so much lower or higher."""
    names = [f"r{i}" for i in range(len(rate))]
    unsure = estimate(1.0, low, high)
    network = stated_network(
        dict.fromkeys(permutations(names, 2), unsure), cap_gbps=unsure, flow_mbps=unsure
    )
    at, lower, higher = (
        SiteResources(
            rate * factor, flows * factor, caps[0] * factor, caps[1] * factor, vms, vms > 0
        )
        for factor in (1.0, low, high)
    )
    return DrawnTimes(network, names, at, lower, higher, connections=64)


def simulated(
    rate: Floats,
    flows: Floats,
    caps: Floats,
    vms: Floats,
    links_gbit: Floats,
    low: float,
    high: float,
) -> Floats:
    """Return times with every figure drawn apart, one loop after the other."""
    random = np.random.default_rng(1)
    n = len(rate)

    def factors(*shape: int) -> Floats:
        score = random.standard_normal((FACTORS, *shape))
        spread = np.where(score > 0, np.log(high), -np.log(low)) / BOUND_SCORE
        return np.asarray(np.exp(score * spread))

    of_links, out, into = factors(n, n), factors(n), factors(n)
    worst = np.zeros(FACTORS)
    connections = np.zeros((FACTORS, n))
    for i in range(n):
        for j in range(n):
            if links_gbit[i, j]:
                pairs = min(vms[i], vms[j])
                needs_s = links_gbit[i, j] / (rate[i, j] * pairs * of_links[:, i, j])
                worst = np.maximum(worst, needs_s)
                share = links_gbit[i, j] / (flows[i, j] * of_links[:, i, j])
                connections[:, i] += share / vms[i]
        worst = np.maximum(worst, links_gbit[i].sum() / (caps[0, i] * vms[i] * out[:, i]))
        worst = np.maximum(worst, links_gbit[:, i].sum() / (caps[1, i] * vms[i] * into[:, i]))
    return np.asarray(np.maximum(worst, connections.max(axis=1)))


@pytest.mark.parametrize("seed", range(6))
def test_times_spread_as_those_of_a_simulation(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 5
    rate = random.uniform(1, 5, (n, n))
    np.fill_diagonal(rate, 0.0)
    flows = rate * [1.2, 4.0, 50.0][seed % 3]
    caps = random.uniform(3, 12, (2, n))
    vms = random.integers(1, 4, n).astype(float)
    links = random.uniform(0, 100, (n, n)) * (random.random((n, n)) < 0.6)
    np.fill_diagonal(links, 0.0)
    links[0, 1] = 50.0
    times = drawn(rate, flows, caps, vms, 0.6, 1.3).times_s(links, vms)
    reference = simulated(rate, flows, caps, vms, links, 0.6, 1.3)
    # 64 draws of a fifth's spread: three standard errors of their mean, more at the ends.
    assert times.mean() == pytest.approx(reference.mean(), rel=0.06)
    for quantile in (0.1, 0.5, 0.9):
        expected = np.quantile(reference, quantile)
        assert np.quantile(times, quantile) == pytest.approx(expected, rel=0.12)


def test_a_link_that_no_one_measured_is_odd_in_one_draw() -> None:
    """As for a single transfer: a tenth of its class, where many connections carry it."""
    rates = {pair: Estimate(1.8, 2.0, 2.2, INFERRED) for pair in permutations("abc", 2)}
    network = stated_network({**rates, ("b", "a"): Estimate(1.8, 2.0, 2.2, MEASURED)})
    links = ~np.eye(3, dtype=bool)
    vms, worst = np.ones(3), {}
    for connections in (64, 1):
        at = resources_at_bounds(network, "abc", links, vms, vms > 0, connections)
        bounds = at["expected"], at["low"], at["high"]
        of = DrawnTimes(network, "abc", *bounds, connections)
        for link in ((0, 1), (1, 0)):
            gbit = np.zeros((3, 3))
            gbit[link] = 100.0
            times = of.times_s(gbit, vms)
            worst[connections, link] = np.sort(times)[-2:] / np.median(times)
    assert worst[64, (0, 1)][1] == pytest.approx(10, rel=0.02)
    for of_link in (worst[64, (0, 1)][:1], worst[64, (1, 0)], worst[1, (0, 1)], worst[1, (1, 0)]):
        assert of_link.max() < 1.3


def test_plans_that_meet_the_same_cap_differ_in_no_draw() -> None:
    rate = np.full((3, 3), 50.0)
    np.fill_diagonal(rate, 0.0)
    caps, vms = np.array([[5.0, 50.0, 50.0], [50.0] * 3]), np.ones(3)
    of = drawn(rate, 100 * rate, caps, vms, 0.8, 1.2)
    direct, relayed = np.zeros((3, 3)), np.zeros((3, 3))
    direct[0, 1] = 100.0
    relayed[0, 2] = relayed[2, 1] = 100.0
    assert of.times_s(direct, vms) == pytest.approx(of.times_s(relayed, vms))
    assert np.ptp(of.times_s(direct, vms)) > 1.0


def test_of_one_link_they_are_the_quantiles_of_its_rate() -> None:
    one = np.array([[0.0, 2.0], [2.0, 0.0]])
    caps, vms = np.full((2, 2), 1e3), np.ones(2)
    links = np.array([[0.0, 100.0], [0.0, 0.0]])
    times = drawn(one, 100 * one, caps, vms, 0.5, 1.25).times_s(links, vms)
    within = (times >= 50 / 1.25) & (times <= 50 / 0.5)
    assert within.mean() == pytest.approx(0.9, abs=2 / 64)
    assert np.median(times) == pytest.approx(50, rel=0.01)
