"""Patterns that come back: dips at fixed minutes, by the hour of the day, by the day of the week.

A series is folded at a period and cut into phases. If one phase differs, the means of ranks by
phase differ more than they do when each cycle is turned by an angle of its own: that keeps how
neighbours resemble each other, and destroys only what the cycles have in common. (Some clouds dip
at minutes 0 and 30: "Predictability of cloud networks", 2021.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from probes.analysis.evidence import FALSE_ALARMS, Floats, permutation_p, ranks, require

HALF_HOUR_S = 1800.0
DAY_S = 86_400.0
WEEK_S = 7 * DAY_S
PERIOD_NAMES = {"half_hour": HALF_HOUR_S, "day": DAY_S, "week": WEEK_S}
PHASES = {HALF_HOUR_S: 15, DAY_S: 24, WEEK_S: 7}
FEWEST_CYCLES = {HALF_HOUR_S: 8, DAY_S: 5, WEEK_S: 4}
FEWEST_PER_CYCLE = 0.8
"""Share of a cycle's phases that need a value for the cycle to count."""
FEWEST_PHASES = 2
MOST_JOINED = 64
"""Cycles that are folded onto one another where each alone has too few samples."""
TURNS = (99, 1900)
"""Tried at first, and more of them where the first left it open."""
LEFT_OPEN = 2 * FALSE_ALARMS
_MOST_CELLS = 2_000_000


@dataclass(frozen=True, slots=True)
class Periodicity:
    """Whether a series repeats itself.

    Attributes
    ----------
    period_s : float
    samples, cycles : int
        That it rests on; a cycle may be several that were sampled too seldom to count alone.
    p_value : float
    present : bool
        Whether chance produces as much in at most 5 % of cases.
    lowest_phase_s, highest_phase_s : float
        Seconds into the period at which the phase with the lowest values begins, and that with the
        highest.
    depth, height : float
        How far these phases' medians are below and above the median of all, relative to it.
    """

    period_s: float
    samples: int
    cycles: int
    p_value: float
    present: bool
    lowest_phase_s: float
    depth: float
    highest_phase_s: float
    height: float


def periodicity(
    times_s: ArrayLike, values: ArrayLike, period_s: float, *, phases: int = 0, seed: int = 0
) -> Periodicity:
    """Test a series for a pattern of one period.

    Parameters
    ----------
    times_s : array, length n
        Unix times, so that phase 0 is midnight UTC or the full hour.
    values : array, length n
    period_s : float
    phases : int
        Parts of the period, at most; by default 15 of half an hour, 24 of a day, 7 of a week, else
        12. A series with fewer samples a cycle is cut into as many parts as it has.
    seed : int
        Of the permutations.

    Raises
    ------
    TooFewError
        If there are too few cycles with values in most phases (8 half hours, 5 days, 4 weeks).
    """
    times, series = (np.asarray(a, dtype=float) for a in (times_s, values))
    known = np.isfinite(series) & np.isfinite(times)
    times, series = times[known], series[known]
    phases = phases or PHASES.get(period_s, 12)
    least = FEWEST_CYCLES.get(period_s, 5)
    require("values", series.size, FEWEST_PHASES * least)
    cycle = np.floor(times / period_s).astype(np.int64)
    per_cycle = series.size / np.unique(cycle).size
    phases = max(FEWEST_PHASES, min(phases, int(per_cycle)))
    share = (times - cycle * period_s) / period_s
    phase = np.minimum(share * phases, phases - 1).astype(int)
    # Samples at the same time of each cycle tell nothing of the others.
    require(f"different times within {period_s:g} s", np.unique(phase).size, FEWEST_PHASES)
    table = _folded(cycle, phase, ranks(series), phases, least)
    require(f"whole cycles of {period_s:g} s", len(table), least)
    centred = table - np.nanmean(table, axis=1, keepdims=True)
    centred[~np.isfinite(centred)] = 0.0
    observed = float((centred.sum(axis=0) ** 2).sum())
    generator = np.random.default_rng(seed)
    chance = _turned(centred, TURNS[0], generator)
    if permutation_p(observed, chance) <= LEFT_OPEN:
        chance = np.concatenate([chance, _turned(centred, TURNS[1], generator)])
    p_value = permutation_p(observed, chance)
    by_phase = [series[phase == part] for part in range(phases)]
    medians = np.array([np.median(part) if part.size else np.nan for part in by_phase])
    usual = float(np.median(series))
    lowest, highest = int(np.nanargmin(medians)), int(np.nanargmax(medians))
    depth, height = (
        abs(float(medians[extreme]) - usual) / usual if usual else 0.0
        for extreme in (lowest, highest)
    )
    return Periodicity(
        period_s,
        series.size,
        len(table),
        p_value,
        p_value <= FALSE_ALARMS,
        lowest * period_s / phases,
        depth,
        highest * period_s / phases,
        height,
    )


def without_pattern(times_s: ArrayLike, values: ArrayLike, period_s: float) -> Floats:
    """Return a series of positive values over what is usual at each one's time of the period."""
    times, series = (np.asarray(a, dtype=float) for a in (times_s, values))
    phases = PHASES.get(period_s, 12)
    phase = (times % period_s / period_s * phases).astype(int) % phases
    usual = float(np.median(series))
    of_phase = np.ones(phases)
    for part in np.unique(phase).tolist():
        of_phase[part] = np.median(series[phase == part]) / usual if usual else 1.0
    of_phase[of_phase <= 0] = 1.0
    without: Floats = series / of_phase[phase]
    return without


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
        table = _means(row, phase, values, phases)
        kept = table[np.isfinite(table).mean(axis=1) >= FEWEST_PER_CYCLE]
        if len(kept) > len(whole):
            whole = kept
        if len(table) < least or 2 * len(kept) >= len(table):
            break
        joined *= 2
    return whole


def _means(row: np.ndarray, phase: np.ndarray, values: Floats, phases: int) -> Floats:
    """Return the mean of each cycle and phase; NaN where it has no value."""
    shape = (int(row.max()) + 1, phases)
    cell = row * phases + phase
    sums = np.bincount(cell, values, minlength=shape[0] * phases)
    counts = np.bincount(cell, minlength=shape[0] * phases)
    with np.errstate(invalid="ignore"):
        means: Floats = (sums / counts).reshape(shape)
    return means


def _turned(centred: Floats, turns: int, generator: np.random.Generator) -> Floats:
    """Return the statistic when each cycle is turned by an angle of its own, many times."""
    cycles, phases = centred.shape
    waves = np.fft.rfft(centred, axis=1)
    angles = np.exp(-2j * np.pi * np.arange(phases)[:, None] * np.arange(waves.shape[1]) / phases)
    at_once = max(1, _MOST_CELLS // waves.size)
    found = []
    for first in range(0, turns, at_once):
        shape = (min(at_once, turns - first), cycles)
        turned = angles[generator.integers(phases, size=shape)]
        total = np.fft.irfft(np.einsum("tcw,cw->tw", turned, waves), phases, axis=1)
        found.append((total**2).sum(axis=1))
    return np.concatenate(found)
