"""Patterns of one series in time: its memory, its periods, and events that come in clusters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import (
    FALSE_ALARMS,
    NORMAL_95,
    Floats,
    Record,
    permutation_p,
    ranks,
    require,
    runs_of,
    share_bounds,
    without_missing,
)

FEWEST_FILLED_PCT = 60
MOST_STEPS = 200_000
FEWEST_SAMPLES = 48
HOUR_S, HALF_HOUR_S, DAY_S = 3600.0, 1800.0, 86_400.0
WEEK_S = 7 * DAY_S
LAGS_S = (HOUR_S, 6 * HOUR_S, 24 * HOUR_S)
PERIOD_NAMES = {"half_hour": HALF_HOUR_S, "day": DAY_S, "week": WEEK_S}
PHASES = {HALF_HOUR_S: 15, DAY_S: 24, WEEK_S: 7}
FEWEST_CYCLES = {HALF_HOUR_S: 8, DAY_S: 5, WEEK_S: 4}
OTHER_PHASES, OTHER_CYCLES = 12, 5
FEWEST_PER_CYCLE = 0.8
"""Share of a cycle's phases that need a value for the cycle to count."""
FEWEST_PHASES = 2
MOST_JOINED = 64
"""Cycles that are folded onto one another where each alone has too few samples."""
TURNS = (99, 1900)
"""Tried at first, and more of them where the first left it open."""
_MOST_CELLS = 2_000_000
FEWEST_OCCURRENCES = 6
ORDERS = 399


class Grid(NamedTuple):
    """A series on a grid of equal steps."""

    times_s: Floats  # length n: begin of each step, seconds since 1970
    step_s: float  # the length of each
    values: Floats  # length n: mean of the samples in each step; NaN where there is none


def on_grid(times_s: ArrayLike, values: ArrayLike, *, fewest: int) -> Grid:
    """Lay a series in order of time on a grid of its own usual step: the median between samples.

    `fewest` steps with samples are needed, and samples in 60 % of all steps.
    """
    times, series = without_missing(times_s, values)
    require("samples", series.size, fewest)
    between = np.diff(times)
    require("samples at different times", int((between > 0).sum()) + 1, fewest)
    step_s = max(float(np.median(between[between > 0])), (times[-1] - times[0]) / MOST_STEPS)
    place = np.round((times - times[0]) / step_s).astype(int)
    count = np.bincount(place)
    with np.errstate(invalid="ignore"):
        means: Floats = np.bincount(place, series) / count
    filled = int((count > 0).sum())
    require("steps of equal length with samples", filled, fewest)
    share = round(100 * filled / count.size)
    require("of every hundred steps with samples", share, FEWEST_FILLED_PCT)
    return Grid(times[0] + step_s * np.arange(means.size), step_s, means)


# ---- memory -----------------------------------------------------------------------------------


def autocorrelation(times_s: ArrayLike, values: ArrayLike) -> Record:
    """Measure a series' memory, and the number of independent samples that it is worth.

    The time of correlation is the integrated one, summed while pairs of neighbouring lags stay
    positive (Geyer, "Practical Markov chain Monte Carlo", Statistical Science 7, 1992); bounds of
    chance are Bartlett's (1946). Needed are 48 samples in order of time, at roughly equal steps.

    Returns ``samples``; ``step_s``, the usual time between them; ``next``, the correlation of a
    sample with the one before, and ``remembers``, whether that is above ``1.96 / sqrt(n)``;
    ``at_lags``, pairs of seconds and correlation over an hour, six hours and a day, as far as the
    series is ten times as long; ``correlation_time_s`` between samples that are as good as
    independent; ``independent_samples`` that the series is worth.
    """
    grid = on_grid(times_s, values, fewest=FEWEST_SAMPLES)
    likeness = correlations(grid.values)
    count = int(np.isfinite(grid.values).sum())
    # 1 + 2 sum of r, over pairs of lags (1, 2), (3, 4), ... for as long as a pair is positive.
    pairs = likeness[1 : 1 + (likeness.size - 1) // 2 * 2].reshape(-1, 2).sum(axis=1)
    steps = max(1.0, 1.0 + 2.0 * float(pairs[np.logical_and.accumulate(pairs > 0)].sum()))
    lags = {lag_s: round(lag_s / grid.step_s) for lag_s in LAGS_S}
    reach = grid.values.size // 10
    return {
        "samples": count,
        "step_s": grid.step_s,
        "next": float(likeness[1]),
        "remembers": float(likeness[1]) > NORMAL_95 / count**0.5,
        "at_lags": [(lag_s, float(likeness[at])) for lag_s, at in lags.items() if 1 <= at <= reach],
        "correlation_time_s": steps * grid.step_s,
        "independent_samples": count / steps,
    }


def correlations(values: Floats) -> Floats:
    """Return the autocorrelation of a grid at lags 0, 1, ... up to half its length.

    Steps without a value count in no product.
    """
    known = np.isfinite(values)
    centred = np.where(known, values - values[known].mean(), 0.0)
    power = float(centred @ centred) / known.sum()
    lags = values.size // 2 + 1
    if power <= 0:
        return np.where(np.arange(lags), 0.0, 1.0)
    length = 2 ** int(np.ceil(np.log2(2 * values.size)))
    spectra = np.abs(np.fft.rfft([known.astype(float), centred], length)) ** 2
    pairs, products = np.fft.irfft(spectra, length)[:, :lags]
    return np.asarray(products / np.maximum(np.round(pairs), 1.0) / power)


# ---- a period that is asked for ---------------------------------------------------------------


def periodicity(times_s: ArrayLike, values: ArrayLike, period_s: float) -> Record:
    """Test a series for a pattern of one period.

    The series is folded at the period and cut into phases: 15 of half an hour, 24 of a day, 7 of a
    week, else 12, or as many as it has samples a cycle. If one phase differs, the means of ranks by
    phase differ more than they do when each cycle is turned by an angle of its own: that keeps how
    neighbours resemble each other, and destroys only what the cycles have in common. (Some clouds
    dip at minutes 0 and 30: "Predictability of cloud networks", 2021.) Times are Unix times, so
    that phase 0 is midnight UTC or the full hour. Too few are under 8 half hours, 5 days or 4 weeks
    with values in most phases.

    Returns ``period_s``; ``samples`` and ``cycles`` that it rests on (a cycle may be several that
    were sampled too seldom to count alone); ``p_value`` and ``present``, whether chance produces as
    much in at most 5 % of cases; ``lowest_phase_s`` and ``highest_phase_s``, the seconds into the
    period at which the phases with the lowest and highest values begin, and ``depth`` and
    ``height``, how far their medians are from the median of all, relative to it.
    """
    times, series = without_missing(times_s, values)
    least = FEWEST_CYCLES.get(period_s, OTHER_CYCLES)
    require("values", series.size, FEWEST_PHASES * least)
    cycle = np.floor(times / period_s).astype(np.int64)
    per_cycle = int(series.size / np.unique(cycle).size)
    phases = max(FEWEST_PHASES, min(PHASES.get(period_s, OTHER_PHASES), per_cycle))
    phase = np.minimum(times % period_s / period_s * phases, phases - 1).astype(int)
    # Samples at the same time of each cycle tell nothing of the others.
    require(f"different times within {period_s:g} s", np.unique(phase).size, FEWEST_PHASES)
    table = _folded(cycle, phase, ranks(series), phases, least)
    require(f"whole cycles of {period_s:g} s", len(table), least)
    p_value = _cycles_p(table)
    medians = _by_phase(series, phase, phases)
    usual = float(np.median(series))
    extremes = [int(np.nanargmin(medians)), int(np.nanargmax(medians))]
    depth, height = (abs(medians[extremes] - usual) / (usual or np.inf)).tolist()
    return {
        "period_s": period_s,
        "samples": series.size,
        "cycles": len(table),
        "p_value": p_value,
        "present": p_value <= FALSE_ALARMS,
        "lowest_phase_s": extremes[0] * period_s / phases,
        "depth": depth,
        "highest_phase_s": extremes[1] * period_s / phases,
        "height": height,
    }


def without_pattern(times_s: Floats, values: Floats, period_s: float) -> Floats:
    """Return a series of positive values, each over the usual value at its time of the period."""
    phases = PHASES.get(period_s, OTHER_PHASES)
    phase = (times_s % period_s / period_s * phases).astype(int) % phases
    of_phase = _by_phase(values, phase, phases) / (float(np.median(values)) or np.inf)
    of_phase[~(of_phase > 0)] = 1.0
    without: Floats = values / of_phase[phase]
    return without


def _by_phase(values: Floats, phase: np.ndarray, phases: int) -> Floats:
    """Return the median of each phase; NaN where it has no value."""
    ordered = values[np.lexsort((values, phase))]
    parts = np.split(ordered, np.bincount(phase, minlength=phases).cumsum()[:-1])
    middles = [part[(len(part) - 1) // 2 : len(part) // 2 + 1] for part in parts]
    return np.array([sum(one) / len(one) if len(one) else np.nan for one in middles])


def _folded(
    cycle: np.ndarray, phase: np.ndarray, values: Floats, phases: int, least: int
) -> Floats:
    """Return the mean of each phase of each cycle that has values in most of its phases.

    Where most cycles have not, as where one test an hour begins at any minute, neighbouring cycles
    are laid onto one another, as few as will do.
    """
    whole: Floats = np.empty((0, phases))
    joined = 1
    while joined <= MOST_JOINED:
        _, row = np.unique(cycle // joined, return_inverse=True)
        cell, cells = row * phases + phase, (int(row.max()) + 1) * phases
        with np.errstate(invalid="ignore"):
            means = np.bincount(cell, values, cells) / np.bincount(cell, minlength=cells)
        table = means.reshape(-1, phases)
        kept = table[np.isfinite(table).mean(axis=1) >= FEWEST_PER_CYCLE]
        whole = max(whole, kept, key=len)
        if len(table) < least or 2 * len(kept) >= len(table):
            break
        joined *= 2
    return whole


def _cycles_p(table: Floats) -> float:
    """Return the p-value of the cycles' agreement: chance turns each by an angle of its own."""
    centred = np.nan_to_num(table - np.nanmean(table, axis=1, keepdims=True))
    cycles, phases = centred.shape
    observed = float((centred.sum(axis=0) ** 2).sum())
    generator = np.random.default_rng(0)
    waves = np.fft.rfft(centred, axis=1)
    angles = np.exp(-2j * np.pi * np.arange(phases)[:, None] * np.arange(waves.shape[1]) / phases)
    at_once = max(1, _MOST_CELLS // waves.size)
    chance: Floats = np.empty(0)
    for turns in TURNS:
        for first in range(0, turns, at_once):
            shape = (min(at_once, turns - first), cycles)
            turned = angles[generator.integers(phases, size=shape)]
            total = np.fft.irfft(np.einsum("tcw,cw->tw", turned, waves), phases, axis=1)
            chance = np.append(chance, (total**2).sum(axis=1))
        if permutation_p(observed, chance) > 2 * FALSE_ALARMS:
            break
    return permutation_p(observed, chance)


# ---- events -----------------------------------------------------------------------------------


def occurrences(values: ArrayLike) -> Record:
    """Count the samples above zero of a series in order of time, such as minutes that lose packets.

    Medians miss events in one sample of ten ("Predictability of cloud networks", 2021, counts
    losses). Returns ``samples``, ``occurrences``, their ``share`` with ``low`` and ``high`` of its
    95 % interval; ``mean`` over all samples, ``median_of_occurrences`` and ``worst`` (0 without
    any); ``episodes``, the runs of neighbouring samples in which it happened, the ``longest`` of
    them in samples, and ``clustered``: fewer runs than chance gives in 95 % of cases.
    """
    series = np.asarray(values, dtype=float)
    happened = series > 0
    count, size = int(happened.sum()), series.size
    lengths = np.diff(runs_of(happened), axis=1)
    low, high = share_bounds(count, size)
    generator = np.random.default_rng(0)
    clustered = False
    if FEWEST_OCCURRENCES <= count < size:
        drawn = (np.sort(generator.choice(size, count, replace=False)) for _ in range(ORDERS))
        chance = [-1 - np.count_nonzero(np.diff(places) > 1) for places in drawn]
        clustered = permutation_p(-lengths.size, chance) <= FALSE_ALARMS
    return {
        "samples": size,
        "occurrences": count,
        "share": count / size,
        "low": low,
        "high": high,
        "mean": float(series.mean()),
        "median_of_occurrences": float(np.median(series[happened])) if count else 0.0,
        "worst": float(series.max(initial=0.0)),
        "episodes": lengths.size,
        "longest": int(lengths.max(initial=0)),
        "clustered": clustered,
    }
