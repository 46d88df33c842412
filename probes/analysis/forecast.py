"""A short-term forecast of a link, and whether it is worth anything.

The forecast is the usual level, the usual pattern of the day, and the remainder of the present
deviation from both (a first-order autoregression, fitted at the horizon), on logarithms. Its skill
is measured on the past: each day is forecast from the days before it alone, and errors are
compared with those of "same as now". A forecast is offered only where the day's pattern is what
helps: it must do better than "same as now" and than the same forecast without a pattern, on more
days than chance explains. Everywhere else there is nothing to foretell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import FALSE_ALARMS, Floats, Record, require, sign_p
from probes.analysis.patterns import DAY_S, on_grid

FEWEST_SAMPLES = 120
FEWEST_DAYS = 10
LEARNT_DAYS = 5
"""Before the first day that is forecast."""
LEVEL_DAYS = 7
"""The level is the mean of the last so many days."""
MOST_PHASES = 24
DRAWS = 999


class _Days(NamedTuple):
    """A series of logarithms, with the day and the phase of the day of each step."""

    logs: Floats
    day: np.ndarray
    phase: np.ndarray


def forecast(times_s: ArrayLike, values: ArrayLike, horizon_s: float) -> Record:
    """Forecast a series, and judge such forecasts by the past.

    Arrays have length n: Unix times in order, at roughly equal steps, and values above zero. The
    horizon is less than a day. Needed are 120 samples at most six hours apart, in ten days, and 60
    % of steps with a sample.

    Returns ``samples``, and ``days`` that were forecast from those before; ``horizon_s``;
    ``skill``, 1 less the mean absolute error over that of "same as now", on logarithms (0 is no
    better), and ``skill_without_pattern``, of a forecast that knows no time of day; ``p_value`` of
    the pattern's success, and ``useful``: whether the forecast is better than both, beyond chance;
    ``now`` and ``expected`` values, and ``low`` to ``high`` by the 5th and 95th percentile of past
    errors (``expected`` is ``now`` where the forecast is of no use).
    """
    series = np.asarray(values, dtype=float)
    grid = on_grid(times_s, np.log(np.where(series > 0, series, np.nan)), fewest=FEWEST_SAMPLES)
    phases = min(MOST_PHASES, int(DAY_S // grid.step_s))
    require("samples a day", phases, 4)
    whole = np.floor(grid.times_s / DAY_S)
    days = _Days(grid.values, (whole - whole[0]).astype(int), _phase_at(grid.times_s, phases))
    require("days", int(days.day[-1]) + 1, FEWEST_DAYS)
    ahead = max(1, round(horizon_s / grid.step_s))
    errors, on_day = _errors(days, phases, ahead)
    mine, plain, same = np.abs(errors)
    better = np.minimum(*(np.bincount(on_day, reference - mine) for reference in (plain, same)))
    better = better[np.bincount(on_day) > 0]
    p_value = sign_p(better, DRAWS)
    useful = p_value <= FALSE_ALARMS and bool(mine.mean() < min(plain.mean(), same.mean()))
    last = np.flatnonzero(np.isfinite(days.logs))[-1:]
    now = expected = float(days.logs[last[0]])
    if useful:
        then = _phase_at(grid.times_s[last] + ahead * grid.step_s, phases)
        found = _forecasts(days, phases, ahead, days.logs[last], days.phase[last], then)
        expected = float(found[0][0])
    below, above = np.percentile(errors[0 if useful else 2], (5, 95))
    rates = np.exp([now, expected, expected + below, expected + above]).tolist()
    usual = float(same.mean())
    return {
        "samples": int(np.isfinite(days.logs).sum()),
        "days": better.size,
        "horizon_s": ahead * grid.step_s,
        "skill": 1 - float(mine.mean()) / usual if usual > 0 else 0.0,
        "skill_without_pattern": 1 - float(plain.mean()) / usual if usual > 0 else 0.0,
        "p_value": p_value,
        "useful": useful,
        **dict(zip(("now", "expected", "low", "high"), rates, strict=True)),
    }


def _phase_at(at_s: Floats, phases: int) -> np.ndarray:
    return np.minimum(at_s % DAY_S / DAY_S * phases, phases - 1).astype(int)


def _forecasts(
    past: _Days, phases: int, ahead: int, now: Floats, phase_now: np.ndarray, phase_then: np.ndarray
) -> list[Floats]:
    """Return forecasts from some values, fitted to the past: with a pattern, and without one."""
    logs, day, phase = past
    known = np.isfinite(logs)
    recent = known & (day > day[-1] - LEVEL_DAYS)
    level = float(logs[recent if recent.any() else known].mean())
    count = np.bincount(phase[known], minlength=phases)
    sums = np.bincount(phase[known], logs[known], minlength=phases)
    with np.errstate(invalid="ignore", divide="ignore"):
        usual = np.where(count > 0, sums / count - logs[known].mean(), 0.0)
    found = []
    for pattern in (usual, np.zeros(phases)):
        left = logs - level - pattern[phase]
        before, after = left[:-ahead], left[ahead:]
        both = np.isfinite(before) & np.isfinite(after)
        power = float(before[both] @ before[both])
        kept = float(before[both] @ after[both]) / power if power > 0 else 0.0
        lasting = min(1.0, max(0.0, kept)) * (now - level - pattern[phase_now])
        found.append(level + pattern[phase_then] + lasting)
    return found


def _errors(days: _Days, phases: int, ahead: int) -> tuple[Floats, np.ndarray]:
    """Return the errors of the forecast, of one without pattern and of "same as now", and days."""
    logs, day, phase = days
    errors, on_day = [], []
    for today in range(LEARNT_DAYS, int(day[-1]) + 1):
        now = np.flatnonzero(day == today)
        now = now[now + ahead < logs.size]
        now = now[np.isfinite(logs[now]) & np.isfinite(logs[now + ahead])]
        past = _Days(*(part[day < today] for part in days))
        if not now.size or np.isfinite(past.logs).sum() < FEWEST_SAMPLES // 2:
            continue
        found = _forecasts(past, phases, ahead, logs[now], phase[now], phase[now + ahead])
        errors.append(logs[now + ahead] - np.array([*found, logs[now]]))
        on_day.append(np.full(now.size, today))
    require("days that can be forecast", len(on_day), FEWEST_DAYS - LEARNT_DAYS)
    return np.concatenate(errors, axis=1), np.concatenate(on_day)
