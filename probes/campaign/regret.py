"""Expected regret: the loss from acting on expected figures, and the links that are to blame.

Regret is a scheduler's loss from acting on expected figures: over all ordered pairs of the fleet's
regions, the mean of ``1 - achieved / best`` throughput, where *best* is the rate of direct or of
the best single relay if the truth were known, and *achieved* that of what plans for time choose
between these by the estimates (:func:`planner.transfer.all_pairs.choose`).
Truth is drawn between the bounds of each estimate.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import inf

import numpy as np
from numpy.typing import NDArray

from planner.model.estimate import BOUNDS
from planner.model.network import Network
from planner.transfer.all_pairs import (
    DIRECT,
    RateBounds,
    Terms,
    best_relays_by_value,
    choose,
    path_rates,
)

SCENARIOS = 24
MARGIN = 0.1
"""Gain for which plans take a relay."""
# A link whose bounds are within this of its expected figure is known well enough.
KNOWN_WELL = 0.08
LEAST_LOSS = 1e-6


@dataclass(frozen=True, slots=True)
class RateMatrices:
    """Rates of one pair of VMs, shape (n, n), capped at both VMs; 0 where there is no link.

    ``drift`` is the possible drift of measured links, as the logarithm of the ratio between bounds;
    infinite for others.
    """

    low: NDArray[np.float64]
    expected: NDArray[np.float64]
    high: NDArray[np.float64]
    unknown: NDArray[np.bool_]
    drift: NDArray[np.float64]

    @classmethod
    def of(cls, network: Network, regions: Sequence[str], connections: int) -> RateMatrices:
        """Return the rates between some regions of a network."""
        count = len(regions)
        figures = np.zeros((3, count, count))
        drift = np.full((count, count), np.inf)
        for (i, src), (j, dst) in permutations(enumerate(regions), 2):
            if (link := network.links.get(src, {}).get(dst)) is None:
                continue
            ends = network.sites[src].egress_gbps, network.sites[dst].ingress_gbps
            cap = min(end.expected for end in ends)
            figures[:, i, j] = [min(link.rate_gbps(connections, bound), cap) for bound in BOUNDS]
            if link.aggregate_gbps.source == "measured":
                drift[i, j] = link.aggregate_gbps.drift(network.aged_to_s or 0.0)
        low, expected, high = figures
        # The spread of a new test by itself is no reason for another one.
        unknown = (high - low > KNOWN_WELL * expected) & (drift > KNOWN_WELL)
        return cls(low, expected, high, unknown, drift)


def expected_regret(
    rates: RateMatrices, seen: NDArray[np.bool_] | None = None
) -> tuple[float, NDArray[np.float64]]:
    """Return the expected regret, and the share of it that each unmeasured link is to blame for.

    The blame for a pair's loss is shared among the links whose figures decide between direct and
    its best path. Where the truth of links that are ``seen`` is known, there is no blame.
    """
    blame = np.zeros(rates.expected.shape)
    pairs = rates.expected > 0
    if not pairs.any():
        return 0.0, blame
    chosen, total = _planned(rates), 0.0
    for truth in _truths(rates):
        if seen is not None:
            figures = (rates.low, rates.expected, rates.high)
            low, expected, high = (np.where(seen, truth, figure) for figure in figures)
            chosen = _planned(replace(rates, low=low, expected=expected, high=high))
        loss, best = _loss(truth, chosen)
        total += float(loss[pairs].mean())
        if seen is not None:
            continue
        src, dst = np.nonzero(loss > LEAST_LOSS)
        relay = best[src, dst].astype(np.intp)
        links = [(src, dst), (src, relay), (relay, dst)]
        wanted = [
            rates.unknown[link] & ((relay != DIRECT) | (at == 0)) for at, link in enumerate(links)
        ]
        share = loss[src, dst] / np.maximum(1, np.sum(wanted, axis=0))
        for link, of_link in zip(links, wanted, strict=True):
            np.add.at(blame, link, share * of_link)
    return total / SCENARIOS, blame / SCENARIOS / pairs.sum()


def regret_once_measured(
    network: Network, regions: Sequence[str], measured: Container[tuple[str, str]], connections: int
) -> float:
    """Return the expected regret once some links have been measured: their truth is then known.

    This is the preposterior analysis of Raiffa and Schlaifer (1961), without the evidence of a
    measurement on other links, and without its noise. Truth is drawn alike, whatever is measured.
    `measured` has the source and destination region of each link; those of other regions do not
    count. It is empty for the present regret.
    """
    seen = np.array([[(src, dst) in measured for dst in regions] for src in regions], dtype=bool)
    return expected_regret(RateMatrices.of(network, regions, connections), seen)[0]


def regret_on(rates: RateMatrices, truth: NDArray[np.float64]) -> float:
    """Return the regret of acting on some rates where others, in Gbit/s, are the truth."""
    loss, _ = _loss(truth, _planned(rates))
    return float(loss[truth > 0].mean())


def _truths(rates: RateMatrices) -> Iterator[NDArray[np.float64]]:
    """Draw possible true rates; always alike."""
    random = np.random.default_rng(0)
    # Figures of real paths spread by ratios, so the draw is even between logarithms.
    low, high = np.log(np.maximum(rates.low, 1e-9)), np.log(np.maximum(rates.high, 1e-9))
    # A new test of a link finds the drift since the last; the spread of tests stays.
    middle = np.log(np.maximum(rates.expected, 1e-9))
    part = np.minimum(1.0, rates.drift / np.maximum(high - low, 1e-9))
    low, high = middle - part * (middle - low), middle + part * (high - middle)
    for _ in range(SCENARIOS):
        truth = np.exp(low + (high - low) * random.random(low.shape))
        truth = np.where(rates.unknown, truth, rates.expected)
        truth[rates.expected <= 0] = 0.0
        yield truth


def _loss(
    truth: NDArray[np.float64], chosen: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return the share of the best rate that each pair loses by its choice, and the best choice.

    A choice is the position of a relay, or :data:`DIRECT`.
    """
    relay, _ = best_relays_by_value(_terms(len(truth)), truth, np.zeros(truth.shape))
    best = np.where(path_rates(truth, relay) > truth, relay, DIRECT).astype(np.int32)
    achieved, possible = path_rates(truth, chosen), path_rates(truth, best)
    return np.where(possible > 0, 1 - achieved / np.maximum(possible, 1e-12), 0.0), best


def _terms(count: int) -> Terms:
    """Return the terms of transfers for which time alone counts."""
    return Terms(1.0, np.zeros((count, count)), np.zeros(count), 0.0, inf, MARGIN)


def _planned(rates: RateMatrices) -> NDArray[np.int32]:
    """Choose for each pair as plans do: the position of a relay, or direct."""
    links, count = RateBounds(rates.low, rates.expected, rates.high), len(rates.low)
    caps, no_time = RateBounds(*np.full((3, count), inf)), np.zeros((count, count))
    return choose(_terms(count), links, caps, caps, no_time, np.isinf(rates.drift)).chosen
