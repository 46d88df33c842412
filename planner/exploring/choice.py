"""Chooses the path of the next transfer: mostly the best known one, sometimes another.

Always taking the path that is predicted to be best never shows that another has become better, as
only paths that are used show their rate. Jiang et al. (*Via: Improving Internet Telephony Call
Quality Using Predictive Relay Selection*, SIGCOMM 2016) therefore explore among the few relays that
may be best by prediction. Here a path is tried where the expected value of its outcome, the
knowledge gradient (Frazier, Powell, Dayanik: *A Knowledge-Gradient Policy for Sequential
Information Collection*, SIAM J. Control Optim. 2008), exceeds its expected cost over the transfers
to come; and only while the extra cost of all trials over the predicted best path stays under a
share of the cost of transfers, as in conservative bandits (Wu, Shariff, Lattimore, Szepesvári, ICML
2016). Each choice computes this again with the current noise and drift; the last trial may exceed
the share by its unexpected cost.

Beliefs about rates start from estimates and learn from transfers. The logarithm of a path's rate is
a random walk that outcomes show with noise, so beliefs are those of a Kalman filter: a mean and a
variance, which grows with the time since the path was last used (R. Kalman, *A New Approach to
Linear Filtering and Prediction Problems*, 1960). Drift and noise are those that make the outcomes
likeliest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from planner.model.achieved import MOST_SPREAD, spread_of_bounds
from planner.model.units import S_PER_DAY

# Spreads of the logarithm: of one outcome, and of a rate's drift in a day. Variation of one
# path from test to test is 2 to 20 % in the 2015 and 2016 papers, from day to day up to 50 %.
NOISES = (0.02, 0.05, 0.1, 0.2)
DRIFTS_A_DAY = (0.0, 0.03, 0.1, 0.3, 1.0)
# Future transfers for which a lesson learnt now is assumed to hold.
HORIZON = 50
# Ten equally likely values of a standard normal variable, at the middles of its deciles.
SCORES = (-1.645, -1.036, -0.674, -0.385, -0.126, 0.126, 0.385, 0.674, 1.036, 1.645)


class Sent(NamedTuple):
    """An outcome of one of the paths: the logarithm of its rate, and when."""

    path: int
    log_gbps: float
    ended_s: float


@dataclass(frozen=True)
class Belief:
    """The belief about the logarithm of a path's rate in Gbit/s."""

    mean: float
    variance: float
    as_of_s: float | None = None
    """Time of the belief; None for an estimate, which does not age here."""

    @classmethod
    def of_bounds(cls, low_gbps: float, expected_gbps: float, high_gbps: float) -> Belief:
        """Return the belief of an estimate: its expected rate, and its 90 % range as a spread."""
        low_gbps, high_gbps = min(low_gbps, expected_gbps), max(high_gbps, expected_gbps)
        spread = spread_of_bounds(low_gbps, high_gbps)
        return cls(log(expected_gbps), spread**2)

    def at(self, now_s: float, drift_a_day: Any) -> Belief:
        """Return the belief at a later time, under one drift or an array of them."""
        if self.as_of_s is None or now_s <= self.as_of_s:
            return self
        grown = self.variance + drift_a_day**2 * (now_s - self.as_of_s) / S_PER_DAY
        return Belief(self.mean, np.minimum(MOST_SPREAD**2, grown), now_s)

    def after(self, sent: Sent, noise: Any) -> Belief:
        """Return the belief after an outcome, under one noise or an array of them."""
        gain = self.variance / (self.variance + noise**2)
        return Belief(
            self.mean + gain * (sent.log_gbps - self.mean), self.variance * (1 - gain), sent.ended_s
        )


@dataclass(frozen=True)
class DriftModel:
    """Noise of outcomes and drift of rates, as spreads of the logarithm."""

    noise: float
    drift_a_day: float


def likeliest(priors: Mapping[int, Belief], sent: Sequence[Sent]) -> DriftModel:
    """Return the noise and the drift under which outcomes, in order of time, are likeliest.

    Of equally likely models, the one with less drift.
    """
    if len(sent) <= len(priors):
        return DriftModel(NOISES[1], DRIFTS_A_DAY[2])
    drifts, noises = np.array(list(product(DRIFTS_A_DAY, NOISES))).T
    beliefs, likelihoods = dict(priors), np.zeros(len(noises))
    for one in sent:
        belief = beliefs[one.path].at(one.ended_s, drifts)
        spread, off = belief.variance + noises**2, one.log_gbps - belief.mean
        likelihoods -= np.log(spread) + off * off / spread
        beliefs[one.path] = belief.after(one, noises)
    best = int(likelihoods.argmax())
    return DriftModel(float(noises[best]), float(drifts[best]))


@dataclass(frozen=True)
class Path:
    """A path that the next transfer may take."""

    belief: Belief  # by estimates alone
    fixed: float
    per_inverse_gbps: float
    """A transfer costs, in terms of its objective, :attr:`fixed` plus this divided by its rate in
    Gbit/s."""
    least_gbps: float = 0.0
    """Rate that limits demand. A path whose rate is believed to be lower is neither best nor tried
    while another meets them."""

    def value(self, log_gbps: float) -> float:
        """Return the cost of a transfer at a rate."""
        return self.fixed + self.per_inverse_gbps * exp(-log_gbps)

    def meets_limits(self, log_gbps: float) -> bool:
        """Return whether a rate is as high as limits demand."""
        return self.least_gbps <= 0 or log_gbps >= log(self.least_gbps)


@dataclass(frozen=True)
class PathChoice:
    """The path to take."""

    path: int
    best: int
    """The best known path; another than :attr:`path` if that is tried."""
    beliefs: tuple[Belief, ...]  # of all paths now
    spent: float
    """Extra cost of trials over the predicted best path."""
    allowed: float
    """The most that this may be."""
    meets_limits: bool  # whether the best path is believed to meet its limits; if not, none is


def choose(paths: Sequence[Path], sent: Sequence[Sent], now_s: float, share: float) -> PathChoice:
    """Choose one of the paths, of which there is at least one, for the next transfer.

    `sent` are outcomes of transfers between the same ends. Trials may cost this share of the cost
    of transfers at most; 0 never tries any.
    """
    ordered = sorted(sent, key=lambda one: one.ended_s)
    priors = {number: path.belief for number, path in enumerate(paths)}
    model = likeliest(priors, ordered)
    beliefs, spent, total = dict(priors), 0.0, 0.0
    # Time alone moves no mean, so only the path that was used is ranked again.
    ranks = [_rank(path, number, beliefs[number].mean) for number, path in enumerate(paths)]
    for one in ordered:
        beliefs = {n: belief.at(one.ended_s, model.drift_a_day) for n, belief in beliefs.items()}
        _, predicted, best = min(ranks)
        total += predicted
        if one.path != best:
            spent += max(0.0, paths[one.path].value(one.log_gbps) - predicted)
        beliefs[one.path] = beliefs[one.path].after(one, model.noise)
        ranks[one.path] = _rank(paths[one.path], one.path, beliefs[one.path].mean)
    beliefs = {n: belief.at(now_s, model.drift_a_day) for n, belief in beliefs.items()}
    fails, predicted, best = min(ranks)
    meets = not fails
    allowed = share * (total + predicted)
    tried, most = best, 0.0
    for number, path in enumerate(paths) if share > 0 else ():
        if meets and not path.meets_limits(beliefs[number].mean):
            continue
        excess = path.value(beliefs[number].mean) - predicted
        # What an outcome of the path is expected to save on the cost of those to come.
        moved = beliefs[number].variance / sqrt(beliefs[number].variance + model.noise**2)
        values = (path.value(beliefs[number].mean + score * moved) for score in SCORES)
        learnt = sum(max(0.0, predicted - value) for value in values) / len(SCORES) * HORIZON
        if number != best and learnt - excess > most and spent + excess <= allowed:
            tried, most = number, learnt - excess
    found = tuple(beliefs[number] for number in range(len(paths)))
    return PathChoice(tried, best, found, spent, allowed, meets)


def _rank(path: Path, number: int, mean: float) -> tuple[bool, float, int]:
    """Return the sort key of a path: whether it fails its limits, cost, number; least is best."""
    return not path.meets_limits(mean), path.value(mean), number
