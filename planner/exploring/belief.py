"""What is believed of the rates of paths: estimates at first, then what transfers had.

The logarithm of a path's rate is a random walk that outcomes show with noise, so beliefs are those
of a Kalman filter: a mean and a variance, which grows with the time since the path was last used
(R. Kalman, *A New Approach to Linear Filtering and Prediction Problems*, 1960). How fast rates
wander and how noisy outcomes are is chosen by what makes the outcomes likeliest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, log
from typing import NamedTuple

from planner.model.units import S_PER_DAY

# Of a normal distribution, from the middle to the end of the 90 % range.
SCORE_90 = 1.645
# No estimate is surer, and none is worth less than this, as a spread of the logarithm.
LEAST_SPREAD, MOST_SPREAD = 0.02, 1.5
# Spreads of the logarithm: of one outcome, and of what a rate wanders by in a day. Variation of one
# path from test to test is 2 to 20 % in the 2015 and 2016 papers, from day to day up to 50 %.
NOISES = (0.02, 0.05, 0.1, 0.2)
DRIFTS_A_DAY = (0.0, 0.03, 0.1, 0.3, 1.0)


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

    def at(self, now_s: float, drift_a_day: float) -> Belief:
        """Return what is believed later."""
        if self.as_of_s is None or now_s <= self.as_of_s:
            return self
        grown = self.variance + drift_a_day**2 * (now_s - self.as_of_s) / S_PER_DAY
        return Belief(self.mean, min(MOST_SPREAD**2, grown), now_s)

    def after(self, sent: Sent, noise: float) -> Belief:
        """Return what is believed after an outcome."""
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
    models = [DriftModel(noise, drift) for drift, noise in product(DRIFTS_A_DAY, NOISES)]
    default = DriftModel(NOISES[1], DRIFTS_A_DAY[2])
    if len(sent) <= len(priors):
        return default
    return max(models, key=lambda model: _log_likelihood(model, priors, sent))


def _log_likelihood(model: DriftModel, priors: Mapping[int, Belief], sent: Sequence[Sent]) -> float:
    """As :meth:`Belief.at` and :meth:`Belief.after`, in plain numbers: it is most of the work."""
    noise, drift = model.noise**2, model.drift_a_day**2 / S_PER_DAY
    most = MOST_SPREAD**2
    state = {number: (prior.mean, prior.variance, inf) for number, prior in priors.items()}
    total = 0.0
    for path, log_gbps, ended_s in sent:
        mean, variance, as_of_s = state[path]
        if ended_s > as_of_s:
            variance += drift * (ended_s - as_of_s)
            if variance > most:
                variance = most
        spread, off = variance + noise, log_gbps - mean
        total -= log(spread) + off * off / spread
        gain = variance / spread
        state[path] = mean + gain * off, variance * (1 - gain), ended_s
    return total
