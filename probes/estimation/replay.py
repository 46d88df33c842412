"""Replaying history: what would have been recommended at each time, and what it would have got.

At each step, relayd's rule decides for every pair on what was known before
(:mod:`probes.estimation.rolling`, :mod:`planner.transfer.all_pairs`); what was then measured
during the step is the truth that the decision is held against, beside three others: always direct,
always the relay that looked best, and hindsight, which knows the truth. Hindsight picks the best of
many single measurements, noise included, so that nobody who decides before can quite reach it.

A part of the steps is replayed by itself, and parts are added up in the order of time: wherever
parts are computed, the digits are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from planner.model.units import MBPS_PER_GBPS
from planner.transfer.all_pairs import (
    DIRECT,
    Floats,
    Outcomes,
    RateBounds,
    Terms,
    best_relays_by_value,
    choose,
    outcomes,
    path_rates,
    within_caps,
)
from planner.transfer.allocation import EQUAL
from probes.analysis.cold_tests import steady_rates
from probes.estimation.aggregates import AGGREGATE_NOISE
from probes.estimation.bundles import Windows, bundle_rates
from probes.estimation.flows import FLOW_NOISE
from probes.estimation.rolling import (
    RollingBounds,
    RollingEstimates,
    SeriesColumns,
    bounds_of,
    medians,
)
from probes.estimation.round_trips import OPPOSITE_DIRECTION_ERROR, RTT_NOISE

STRATEGIES = ("relayd", "direct", "relay", "hindsight")
SUMS = ("share", "rate_gbps", "time_s", "cost_usd", "value")
COUNTS = ("decisions", "scored", "carried", "relayed", "hindsight_relays", "right", "near")
NEAR = 0.99
"""Of what hindsight has: what counts as having got it."""
BINS = 1000
"""Of shares from 0 to 1, for their percentiles; one more is for all of it."""
NEVER = -2
"""In place of a choice where none was made yet."""

Places = NDArray[np.int32]
Truths = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scene:
    """What does not change over a replay.

    Attributes
    ----------
    terms : Terms
    egress_gbps, ingress_gbps : RateBounds
        Caps of one VM by its type, each of length n.
    usual_rtt_ms, usual_rtt_error : arrays, shape (n, n)
        Where neither direction was measured.
    windows : Windows
    judged : array of bool, shape (n, n)
        Pairs to decide.
    groups : array of int, shape (n, n)
        Group of each pair, from 0.
    connections : int
        That one VM opens; 1 rests on single flows.
    """

    terms: Terms
    egress_gbps: RateBounds
    ingress_gbps: RateBounds
    usual_rtt_ms: Floats
    usual_rtt_error: Floats
    windows: Windows
    judged: Truths
    groups: NDArray[np.int64]
    connections: int

    @property
    def single_flow(self) -> bool:
        """Whether throughput is that of one connection."""
        return self.connections == 1

    @property
    def regions(self) -> int:
        """How many regions there are."""
        return len(self.judged)


@dataclass(frozen=True, slots=True)
class Part:
    """Some steps, with their samples and what is needed of those before.

    Attributes
    ----------
    edges_s : array, length steps + 1
        When steps begin, and when the last one ends.
    throughput, rtt_ms : SeriesColumns
        Of ``n * n`` pairs, row by row.
    """

    edges_s: Floats
    throughput: SeriesColumns
    rtt_ms: SeriesColumns


@dataclass(slots=True)
class Tally:
    """What is known of some steps in a row.

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
        First and last choices, to count the switches from one part to the next.
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
        shape, count = (scene.regions, scene.regions), len(STRATEGIES)
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


def replay(part: Part, scene: Scene) -> Tally:
    """Replay some steps in a row."""
    tally = Tally.empty(scene)
    shape = scene.judged.shape
    rates, rtts = RollingEstimates(part.throughput), RollingEstimates(part.rtt_ms)
    rate_ends, rtt_ends = rates.ends(part.edges_s), rtts.ends(part.edges_s)
    for step in range(len(part.edges_s) - 1):
        begin, end = rate_ends[:, step], rate_ends[:, step + 1]
        if not (end > begin).any():
            continue
        rtt_ms, rtt_error = _round_trips(rtts, rtt_ends[:, step], scene)
        believed = _believed(rates, begin, rtt_ms, rtt_error, float(part.edges_s[step]), scene)
        seen, _ = medians(rtts.values_between(rtt_ends[:, step], rtt_ends[:, step + 1])[0])
        true_rtt_ms = _either_way(seen.reshape(shape), rtt_ms)
        values, cold_s = rates.values_between(begin, end)
        truth, _ = medians(_steady(values, cold_s, true_rtt_ms, scene))
        estimated = (begin > rates.series.starts[:-1]).reshape(shape)
        _judge(tally, scene, believed, estimated, rtt_ms, truth.reshape(shape), true_rtt_ms)
    return tally


def _round_trips(
    rtts: RollingEstimates, known: NDArray[np.int64], scene: Scene
) -> tuple[Floats, Floats]:
    """Return round-trip times and their relative errors: measured, opposite direction, model."""
    values, _, newest_s = rtts.newest_values(known)
    # Their age plays no part: flows are inferred from them as they were.
    found = bounds_of(values, newest_s, newest_s, RTT_NOISE)
    shape = scene.judged.shape
    expected = found.expected.reshape(shape)
    with np.errstate(invalid="ignore"):
        error = found.high.reshape(shape) / expected - 1
    opposite = np.maximum(error.T, OPPOSITE_DIRECTION_ERROR)
    error = np.where(np.isnan(expected), opposite, error)
    error = np.where(np.isnan(error), scene.usual_rtt_error, error)
    return _either_way(expected, scene.usual_rtt_ms), error


def _either_way(measured: Floats, otherwise: Floats) -> Floats:
    """Return round-trip times: measured, else the opposite direction's, else others."""
    found = np.where(np.isnan(measured), measured.T, measured)
    return np.where(np.isnan(found), otherwise, found)


def _believed(
    rates: RollingEstimates,
    known: NDArray[np.int64],
    rtt_ms: Floats,
    rtt_error: Floats,
    now_s: float,
    scene: Scene,
) -> RateBounds:
    """Return the rates of one VM pair as relayd would have estimated them."""
    values, cold_s, newest_s = rates.newest_values(known)
    noise = FLOW_NOISE if scene.single_flow else AGGREGATE_NOISE
    found = bounds_of(_steady(values, cold_s, rtt_ms, scene), newest_s, now_s, noise)
    shape = scene.judged.shape
    links = RollingBounds(*(bound.reshape(shape) for bound in found))
    egress = _raised(scene.egress_gbps, links)
    ingress = _raised(scene.ingress_gbps, RollingBounds(*(bound.T for bound in links)))
    if not scene.single_flow:
        links = bundle_rates(
            links,
            rates.newest_connections(known).reshape(shape),
            scene.connections,
            rtt_ms,
            rtt_error,
            scene.windows,
        )
    return RateBounds(*map(within_caps, links, egress, ingress))


def _raised(caps: RateBounds, links: RollingBounds) -> RateBounds:
    """Raise the caps of VMs to what a link has exceeded; rows of `links` are the VMs'."""
    most = np.nan_to_num(links.expected, nan=-1.0)
    np.fill_diagonal(most, -1.0)
    fastest = most.argmax(axis=1)
    rows = np.arange(len(most))
    exceeded = most[rows, fastest] > caps.expected
    return RateBounds(
        *(
            np.where(exceeded, link[rows, fastest], cap)
            for cap, link in zip(caps, links, strict=True)
        )
    )


def _steady(values_mbps: Floats, cold_s: Floats, rtt_ms: Floats, scene: Scene) -> Floats:
    if cold_s.any():
        values_mbps = steady_rates(
            values_mbps, rtt_ms.ravel()[:, None], cold_s, one_flow=scene.single_flow
        )
    return values_mbps / MBPS_PER_GBPS


def _judge(
    tally: Tally,
    scene: Scene,
    believed: RateBounds,
    estimated: Truths,
    rtt_ms: Floats,
    truth: Floats,
    true_rtt_ms: Floats,
) -> None:
    """Decide every pair, and count what came of it."""
    terms = scene.terms
    chosen, likeliest = choose(terms, believed, rtt_ms)
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
        )
    ):
        tally.counts[number] += truths
    _note_choices(tally, choices, scored)


def _share(best: Outcomes, result: Outcomes, scored: Truths) -> Floats:
    """Return what a strategy got of what hindsight has: values are losses, so their ratio."""
    paid = np.where(scored & (result.value > 0) & (result.value < inf), result.value, inf)
    share = np.where(result.value <= 0, 1.0, np.where(scored, best.value, 0.0) / paid)
    return np.minimum(1.0, share)


def _note_choices(tally: Tally, choices: Places, scored: Truths) -> None:
    tally.switches += scored & (tally.last != NEVER) & (tally.last != choices)
    tally.first = np.where(scored & (tally.first == NEVER), choices, tally.first)
    tally.last = np.where(scored, choices, tally.last)
