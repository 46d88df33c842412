"""Decides every pair at each step of a history, and counts what came of it.

Relayd's rule decides for every pair on what was known before the step
(:mod:`planner.transfer.all_pairs`); what was then measured during the step is the truth that the
decision is held against, beside three others: always direct, always the relay that looked best, and
hindsight, which knows the truth. Hindsight picks the best of many single measurements, noise
included, so that a decision made before can't quite reach it.

Steps are replayed one by one and added up in the order of time: wherever they are computed, the
digits are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from planner.transfer.all_pairs import (
    DIRECT,
    Floats,
    Outcomes,
    Terms,
    best_relays_by_value,
    choose,
    outcomes,
    path_rates,
)
from planner.transfer.allocation import EQUAL
from relayd.backtesting.history import Step, StepEstimator, StepSamples, Truths

STRATEGIES = ("relayd", "direct", "relay", "hindsight")
SUMS = ("share", "rate_gbps", "time_s", "cost_usd", "value")
COUNTS = (
    "decisions",
    "scored",
    "carried",
    "relayed",
    "hindsight_relays",
    "right",
    "near",
    "verdict_right",
    "foreseen",
    "covered",
)
NEAR = 0.99
"""Of what hindsight has: what counts as having got it."""
BINS = 1000
"""Of shares from 0 to 1, for their percentiles; one more is for all of it."""
NEVER = -2
"""In place of a choice where none was made yet."""

Places = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Scene:
    """What does not change over a replay.

    Attributes
    ----------
    terms : Terms
    estimator : StepEstimator
    judged : array of bool, shape (n, n)
        Pairs to decide.
    groups : array of int, shape (n, n)
        Group of each pair, from 0.
    """

    terms: Terms
    estimator: StepEstimator
    judged: Truths
    groups: NDArray[np.int64]


@dataclass(slots=True)
class Tally:
    """What came of some steps in a row.

    Attributes
    ----------
    steps : int
        Those in which something was measured.
    sums : array, shape (strategies, sums, n, n)
        Shares over scored decisions; the others over those where all strategies carried something.
    counts : array of int, shape (counts, n, n)
    stalled : array of int, shape (strategies, n, n)
        Decisions whose path then carried nothing.
    switches : array of int, shape (strategies, n, n)
    first, last : arrays of int, shape (strategies, n, n)
        First and last choices, to count the switches from one step to the next.
    histogram : array of int, shape (strategies, groups, bins + 1)
        Shares of what hindsight has.
    """

    steps: int
    sums: Floats
    counts: NDArray[np.int64]
    stalled: NDArray[np.int64]
    switches: NDArray[np.int64]
    first: Places
    last: Places
    histogram: NDArray[np.int64]

    @classmethod
    def empty(cls, scene: Scene) -> Tally:
        """Return the tally of no steps."""
        shape, count = scene.judged.shape, len(STRATEGIES)
        groups = int(scene.groups.max(initial=0)) + 1
        return cls(
            0,
            np.zeros((count, len(SUMS), *shape)),
            np.zeros((len(COUNTS), *shape), np.int64),
            np.zeros((count, *shape), np.int64),
            np.zeros((count, *shape), np.int64),
            np.full((count, *shape), NEVER, np.int32),
            np.full((count, *shape), NEVER, np.int32),
            np.zeros((count, groups, BINS + 1), np.int64),
        )

    def add(self, later: Tally) -> None:
        """Add the steps that follow these."""
        self.steps += later.steps
        self.sums += later.sums
        self.counts += later.counts
        self.stalled += later.stalled
        changed = (self.last != NEVER) & (later.first != NEVER) & (self.last != later.first)
        self.switches += later.switches + changed
        self.first = np.where(self.first == NEVER, later.first, self.first)
        self.last = np.where(later.last == NEVER, self.last, later.last)
        self.histogram += later.histogram


def replay(samples: StepSamples, scene: Scene) -> Tally:
    """Replay a step."""
    tally, step = Tally.empty(scene), scene.estimator.step(samples)
    foreseen = scene.judged & step.estimated & ~np.isnan(step.truth_gbps)
    tally.counts[COUNTS.index("foreseen")] += foreseen
    tally.counts[COUNTS.index("covered")] += foreseen & step.covered
    _judge(tally, scene, step)
    return tally


def _judge(tally: Tally, scene: Scene, step: Step) -> None:
    """Decide every pair, and count what came of it."""
    terms = scene.terms
    factors, believed, estimated, rtt_ms, truth, true_rtt_ms, _ = step
    chosen, likeliest = choose(terms, *factors, rtt_ms)
    known = ~np.isnan(truth)
    # A direct link that is down needs a relay: without one there is nothing to recommend.
    possible = (believed.expected > 0) | (likeliest != DIRECT)
    decided = scene.judged & estimated & possible & known & np.isfinite(terms.egress_usd)
    if not decided.any():
        return
    true_rates = np.nan_to_num(truth)
    np.fill_diagonal(true_rates, 0.0)
    relay, value = best_relays_by_value(terms, true_rates, true_rtt_ms)
    direct = np.full_like(relay, DIRECT)
    alone = outcomes(terms, true_rates, true_rtt_ms, direct)
    hindsight = np.where(value < alone.value * (1 - EQUAL), relay, DIRECT).astype(np.int32)

    told = np.where(known, 1.0, 0.0)
    paths_known = (path_rates(told, chosen) > 0) & (path_rates(told, likeliest) > 0)
    choices = np.stack([chosen, direct, likeliest, hindsight])
    results = [
        alone if path is direct else outcomes(terms, true_rates, true_rtt_ms, path)
        for path in (chosen, direct, likeliest, hindsight)
    ]
    best = results[-1]
    scored = decided & paths_known & (best.rate_gbps > 0)
    tally.steps += 1
    carried = scored & np.all([result.rate_gbps > 0 for result in results], axis=0)
    shares = [_share(best, result, scored) for result in results]
    for place, result in enumerate(results):
        tally.sums[place, 0] += np.where(scored, shares[place], 0.0)
        for number, quantity in enumerate(result, start=1):
            tally.sums[place, number] += np.where(carried, quantity, 0.0)
        tally.stalled[place] += scored & (result.rate_gbps <= 0)
        bins = np.floor(shares[place][scored] * BINS).astype(np.int64)
        np.add.at(tally.histogram[place], (scene.groups[scored], bins), 1)
    same_kind = (chosen == DIRECT) == (hindsight == DIRECT)
    for number, truths in enumerate(
        (
            decided,
            scored,
            carried,
            scored & (chosen != DIRECT),
            scored & (hindsight != DIRECT),
            scored & same_kind,
            scored & (shares[0] >= NEAR),
            scored & ((chosen != DIRECT) == _is_worth(terms, results)),
        )
    ):
        tally.counts[number] += truths
    _note_choices(tally, choices, scored)


def _share(best: Outcomes, result: Outcomes, scored: Truths) -> Floats:
    """Return what a strategy got of what hindsight has: values are losses, so their ratio."""
    paid = np.where(scored & (result.value > 0) & (result.value < inf), result.value, inf)
    share = np.where(result.value <= 0, 1.0, np.where(scored, best.value, 0.0) / paid)
    return np.minimum(1.0, share)


def _is_worth(terms: Terms, results: list[Outcomes]) -> Truths:
    """Whether the relay that looked best was better than direct by the margin."""
    direct, relay = (results[STRATEGIES.index(name)] for name in ("direct", "relay"))
    least = (1 + terms.margin) * relay.value * (1 - EQUAL)
    found: Truths = (relay.rate_gbps > 0) & (direct.value >= least)
    return found


def _note_choices(tally: Tally, choices: Places, scored: Truths) -> None:
    tally.switches += scored & (tally.last != NEVER) & (tally.last != choices)
    tally.first = np.where(scored & (tally.first == NEVER), choices, tally.first)
    tally.last = np.where(scored, choices, tally.last)
