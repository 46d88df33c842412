"""A short-term forecast of a link, and whether it is worth anything.

The forecast is the usual level, the usual pattern of the day, and what is left of the present
deviation from both (a first-order autoregression, fitted at the horizon), on logarithms. Its skill
is measured as history allows: each day is forecast from the days before it alone, and errors are
compared with those of "same as now". A forecast is offered only where the day's pattern is what
helps: it must do better than "same as now" and than the same forecast without a pattern, on more
days than chance explains. Everywhere else there is nothing to foretell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import FALSE_ALARMS, Floats, permutation_p, require
from probes.analysis.series.grid import on_grid
from probes.analysis.series.periodicity import DAY_S

FEWEST_SAMPLES = 120
FEWEST_DAYS = 10
LEARNT_DAYS = 5
"""Before the first day that is forecast."""
LEVEL_DAYS = 7
"""The level is the mean of the last so many days."""
MOST_PHASES = 24
DRAWS = 999


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a series does next, and how good such forecasts have been.

    Attributes
    ----------
    samples, days : int
        Samples, and days that were forecast from those before.
    horizon_s : float
    skill : float
        1 less the mean absolute error over that of "same as now", on logarithms: 0 is no better.
    skill_without_pattern : float
        The same of a forecast that knows the level and the present, but no time of day.
    p_value : float
        How often chance does as well as the pattern did.
    useful : bool
        Whether the forecast is better than both, beyond chance.
    now, expected, low, high : float
        The last value; what is expected after the horizon, and what was between the 5th and the
        95th percentile of past errors. Equal to `now` where the forecast is of no use.
    """

    samples: int
    days: int
    horizon_s: float
    skill: float
    skill_without_pattern: float
    p_value: float
    useful: bool
    now: float
    expected: float
    low: float
    high: float


class _Model(NamedTuple):
    """What was learnt: the level, the pattern about it by phase, and how deviations last."""

    level: float
    pattern: Floats
    kept: float

    def ahead(self, now: Floats, phase_now: np.ndarray, phase_then: np.ndarray) -> Floats:
        deviation = now - self.level - self.pattern[phase_now]
        forecast: Floats = self.level + self.pattern[phase_then] + self.kept * deviation
        return forecast


def forecast(times_s: ArrayLike, values: ArrayLike, horizon_s: float, *, seed: int = 0) -> Forecast:
    """Forecast a series, and judge such forecasts by the past.

    Parameters
    ----------
    times_s : array, length n
        Unix times, in order; roughly equal steps.
    values : array, length n
        Above zero.
    horizon_s : float
        How far ahead; less than a day.
    seed : int
        Of the random signs.

    Raises
    ------
    TooFewError
        If there are fewer than 120 samples or ten days, over 40 % of steps have no sample, or
        samples are farther apart than six hours.
    """
    series = np.asarray(values, dtype=float)
    logs = np.log(np.where(series > 0, series, np.nan))
    grid = on_grid(times_s, logs, fewest=FEWEST_SAMPLES)
    phases = min(MOST_PHASES, int(DAY_S // grid.step_s))
    require("samples a day", phases, 4)
    times, known = grid.times_s, np.isfinite(grid.values)
    day = (np.floor(times / DAY_S) - np.floor(times[0] / DAY_S)).astype(int)
    require("days", int(day[-1]) + 1, FEWEST_DAYS)
    phase = np.minimum((times % DAY_S) / DAY_S * phases, phases - 1).astype(int)
    ahead = max(1, round(horizon_s / grid.step_s))
    errors, days = _errors(grid.values, day, phase, phases, ahead)
    mine, plain, same = (np.abs(error) for error in errors)
    better = np.minimum(*(np.bincount(days, reference - mine) for reference in (plain, same)))[
        np.bincount(days) > 0
    ]
    p_value = _sign_test(better, seed)
    useful = p_value <= FALSE_ALARMS and mine.mean() < min(plain.mean(), same.mean())
    model = _learnt(grid.values, day, phase, phases, ahead)
    last = np.flatnonzero(known)[-1:]
    then_s = times[last] + ahead * grid.step_s
    phase_then = np.minimum((then_s % DAY_S) / DAY_S * phases, phases - 1).astype(int)
    now = float(grid.values[last[0]])
    expected = float(model.ahead(grid.values[last], phase[last], phase_then)[0]) if useful else now
    below, above = np.percentile(errors[0] if useful else errors[2], (5, 95))
    nothing = same.mean() <= 0
    return Forecast(
        int(known.sum()),
        better.size,
        ahead * grid.step_s,
        0.0 if nothing else float(1 - mine.mean() / same.mean()),
        0.0 if nothing else float(1 - plain.mean() / same.mean()),
        p_value,
        bool(useful),
        *(float(np.exp(log)) for log in (now, expected, expected + below, expected + above)),
    )


def _errors(
    logs: Floats, day: np.ndarray, phase: np.ndarray, phases: int, ahead: int
) -> tuple[tuple[Floats, Floats, Floats], np.ndarray]:
    """Return the errors of the forecast, of one without pattern and of "same as now", and days."""
    found: list[tuple[Floats, Floats, Floats]] = []
    days: list[np.ndarray] = []
    for today in range(LEARNT_DAYS, int(day[-1]) + 1):
        now = np.flatnonzero(day == today)
        now = now[now + ahead < logs.size]
        now = now[np.isfinite(logs[now]) & np.isfinite(logs[now + ahead])]
        past = day < today
        if not now.size or np.isfinite(logs[past]).sum() < FEWEST_SAMPLES // 2:
            continue
        truth = logs[now + ahead]
        errors = [
            truth - model.ahead(logs[now], phase[now], phase[now + ahead])
            for model in (
                _learnt(logs[past], day[past], phase[past], phases, ahead),
                _learnt(logs[past], day[past], phase[past], phases, ahead, patterned=False),
            )
        ]
        found.append((errors[0], errors[1], truth - logs[now]))
        days.append(np.full(now.size, today))
    require("days that can be forecast", len(days), FEWEST_DAYS - LEARNT_DAYS)
    mine, plain, same = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return (mine, plain, same), np.concatenate(days)


def _learnt(
    logs: Floats,
    day: np.ndarray,
    phase: np.ndarray,
    phases: int,
    ahead: int,
    *,
    patterned: bool = True,
) -> _Model:
    known = np.isfinite(logs)
    recent = known & (day > day[-1] - LEVEL_DAYS)
    level = float(logs[recent if recent.any() else known].mean())
    pattern = np.zeros(phases)
    if patterned:
        count = np.bincount(phase[known], minlength=phases)
        sums = np.bincount(phase[known], logs[known], minlength=phases)
        with np.errstate(invalid="ignore", divide="ignore"):
            pattern = np.where(count > 0, sums / count - logs[known].mean(), 0.0)
    left = logs - level - pattern[phase]
    now, then = left[:-ahead], left[ahead:]
    both = np.isfinite(now) & np.isfinite(then)
    power = float(now[both] @ now[both])
    kept = float(now[both] @ then[both]) / power if power > 0 else 0.0
    return _Model(level, pattern, min(1.0, max(0.0, kept)))


def _sign_test(gains: Floats, seed: int) -> float:
    """Return how often random signs of the days' gains sum up to as much (one-sided)."""
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), size=(DRAWS, gains.size))
    observed = float(gains.sum())
    return permutation_p(observed * (1 - 1e-9) if observed > 0 else observed, signs @ gains)
