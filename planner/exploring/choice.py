"""Chooses the path of the next transfer: mostly the best by what is known, sometimes another.

Always taking the path that is predicted to be best never finds that another has become better, as
only paths that are used show their rate. Jiang et al. (*Via: Improving Internet Telephony Call
Quality Using Predictive Relay Selection*, SIGCOMM 2016) therefore explore among the few relays that
may be best by prediction. Here a path is tried where what its outcome is expected to teach, the
knowledge gradient (Frazier, Powell, Dayanik: *A Knowledge-Gradient Policy for Sequential
Information Collection*, SIAM J. Control Optim. 2008), is worth more over the transfers to come than
it is expected to cost; and only while what all trials have cost more than was predicted of the best
path stays under a share of what transfers cost, as in conservative bandits (Wu, Shariff, Lattimore,
Szepesvári, ICML 2016). That is counted again at each choice, by what is known of noise and drift
then; the last trial may exceed the share by what it cost more than was expected of it.

What is believed of rates is an estimate at first, then what transfers had. The logarithm of a
path's rate is a random walk that outcomes show with noise, so beliefs are those of a Kalman filter:
a mean and a variance, which grows with the time since the path was last used (R. Kalman, *A New
Approach to Linear Filtering and Prediction Problems*, 1960). How fast rates wander and how noisy
outcomes are is chosen by what makes the outcomes likeliest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, log, sqrt
from typing import Any, NamedTuple

import numpy as np

from planner.model.units import S_PER_DAY

# Of a normal distribution, from the middle to the end of the 90 % range.
SCORE_90 = 1.645
# No estimate is surer, and none is worth less than this, as a spread of the logarithm.
LEAST_SPREAD, MOST_SPREAD = 0.02, 1.5
# Spreads of the logarithm: of one outcome, and of what a rate wanders by in a day. Variation of one
# path from test to test is 2 to 20 % in the 2015 and 2016 papers, from day to day up to 50 %.
NOISES = (0.02, 0.05, 0.1, 0.2)
DRIFTS_A_DAY = (0.0, 0.03, 0.1, 0.3, 1.0)
# Transfers to come for which what is learnt now is taken to hold.
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
    """What is believed of the logarithm of a path's rate in Gbit/s.

    Attributes
    ----------
    as_of_s : float | None
        When that was so; None for an estimate, which does not grow old here.
    """

    mean: float
    variance: float
    as_of_s: float | None = None

    @classmethod
    def of_bounds(cls, low_gbps: float, expected_gbps: float, high_gbps: float) -> Belief:
        """Return what an estimate says: its expected rate, and the width of its 90 % range."""
        spread = log(max(high_gbps, expected_gbps) / max(1e-9, min(low_gbps, expected_gbps)))
        spread = min(MOST_SPREAD, max(LEAST_SPREAD, spread / (2 * SCORE_90)))
        return cls(log(expected_gbps), spread**2)

    def at(self, now_s: float, drift_a_day: Any) -> Belief:
        """Return what is believed later, under one drift or an array of them."""
        if self.as_of_s is None or now_s <= self.as_of_s:
            return self
        grown = self.variance + drift_a_day**2 * (now_s - self.as_of_s) / S_PER_DAY
        return Belief(self.mean, np.minimum(MOST_SPREAD**2, grown), now_s)

    def after(self, sent: Sent, noise: Any) -> Belief:
        """Return what is believed after an outcome, under one noise or an array of them."""
        gain = self.variance / (self.variance + noise**2)
        return Belief(
            self.mean + gain * (sent.log_gbps - self.mean), self.variance * (1 - gain), sent.ended_s
        )


@dataclass(frozen=True)
class DriftModel:
    """How noisy outcomes are, and how fast rates wander, as spreads of the logarithm."""

    noise: float
    drift_a_day: float


def likeliest(priors: Mapping[int, Belief], sent: Sequence[Sent]) -> DriftModel:
    """Return the noise and the drift under which outcomes, in order of time, are likeliest.

    Of none and of one that are as likely, less drift.
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
    """A path that the next transfer may take.

    Attributes
    ----------
    belief : Belief
        By estimates alone.
    fixed, per_inverse_gbps : float
        What a transfer costs, in the terms of its objective: the first, and the second divided by
        its rate in Gbit/s.
    least_gbps : float
        Rate that limits demand. A path whose rate is believed to be lower is neither best nor tried
        while another meets them.
    """

    belief: Belief
    fixed: float
    per_inverse_gbps: float
    least_gbps: float = 0.0

    def value(self, log_gbps: float) -> float:
        """Return what a transfer costs at a rate."""
        return self.fixed + self.per_inverse_gbps * exp(-log_gbps)

    def meets_limits(self, log_gbps: float) -> bool:
        """Say whether a rate is as high as limits demand."""
        return self.least_gbps <= 0 or log_gbps >= log(self.least_gbps)


@dataclass(frozen=True)
class PathChoice:
    """The path to take.

    Attributes
    ----------
    path, best : int
        The one to take, and the best by what is known; they differ where one is tried.
    beliefs : tuple of Belief
        Of all paths now.
    wandering : DriftModel
    spent, allowed : float
        What trials have cost more than was predicted of the best path, and what they may have.
    meets_limits : bool
        Whether the best path is believed to meet its limits; if not, none is.
    """

    path: int
    best: int
    beliefs: tuple[Belief, ...]
    wandering: DriftModel
    spent: float
    allowed: float
    meets_limits: bool


def choose(paths: Sequence[Path], sent: Sequence[Sent], now_s: float, share: float) -> PathChoice:
    """Return the path of the next transfer.

    Parameters
    ----------
    paths : sequence of Path
        At least one.
    sent : sequence of Sent
        Outcomes of transfers between the same ends.
    now_s : float
    share : float
        Most of what transfers cost that trials may cost; 0 never tries any.
    """
    ordered = sorted(sent, key=lambda one: one.ended_s)
    priors = {number: path.belief for number, path in enumerate(paths)}
    model = likeliest(priors, ordered)
    beliefs, spent, total = dict(priors), 0.0, 0.0
    # Time alone moves no mean, so only the path that was used is ranked again.
    ranks = [_rank(path, number, beliefs[number].mean) for number, path in enumerate(paths)]
    for one in ordered:
        beliefs = _at(beliefs, one.ended_s, model)
        _, predicted, best = min(ranks)
        total += predicted
        if one.path != best:
            spent += max(0.0, paths[one.path].value(one.log_gbps) - predicted)
        beliefs[one.path] = beliefs[one.path].after(one, model.noise)
        ranks[one.path] = _rank(paths[one.path], one.path, beliefs[one.path].mean)
    beliefs = _at(beliefs, now_s, model)
    fails, predicted, best = min(ranks)
    meets = not fails
    allowed = share * (total + predicted)
    tried, most = best, 0.0
    for number, path in enumerate(paths) if share > 0 else ():
        if meets and not path.meets_limits(beliefs[number].mean):
            continue
        excess = path.value(beliefs[number].mean) - predicted
        worth = HORIZON * _learnt(path, beliefs[number], predicted, model) - excess
        if number != best and worth > most and spent + excess <= allowed:
            tried, most = number, worth
    return PathChoice(
        tried, best, tuple(beliefs[n] for n in range(len(paths))), model, spent, allowed, meets
    )


def _at(beliefs: Mapping[int, Belief], now_s: float, model: DriftModel) -> dict[int, Belief]:
    return {number: belief.at(now_s, model.drift_a_day) for number, belief in beliefs.items()}


def _rank(path: Path, number: int, mean: float) -> tuple[bool, float, int]:
    """Return whether a path fails its limits, what it costs, and its number: the least is best."""
    return not path.meets_limits(mean), path.value(mean), number


def _learnt(path: Path, belief: Belief, predicted: float, model: DriftModel) -> float:
    """Return by how much one outcome of a path is expected to lower what the best path costs."""
    moved = belief.variance / sqrt(belief.variance + model.noise**2)
    values = (path.value(belief.mean + score * moved) for score in SCORES)
    return sum(max(0.0, predicted - value) for value in values) / len(SCORES)
