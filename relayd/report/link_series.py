"""``relayd series``: everything that is known of one link in time."""

from __future__ import annotations

from contextlib import suppress
from math import inf

import numpy as np
from numpy.typing import NDArray

from probes.analysis.evidence import TooFewError
from probes.analysis.level_shift import LEARNT_FROM, level_shifts
from probes.analysis.series.autocorrelation import autocorrelation
from probes.analysis.series.forecast import forecast
from probes.analysis.series.levels import FEWEST_TESTS, levels_between_tests
from probes.analysis.series.occurrences import occurrences
from probes.analysis.series.periodicity import (
    DAY_S,
    PERIOD_NAMES,
    Periodicity,
    periodicity,
    without_pattern,
)
from probes.analysis.series.spectrum import strongest_period
from probes.samples import Metric
from relayd.report.document import Report, Section
from relayd.store import Store
from relayd.times import utc_text

MOST_SHIFTS = 10
COUNTED: tuple[Metric, ...] = ("loss_pct",)
"""Metrics of which a value above zero is an event, and most are zero."""


def report_series(
    store: Store,
    src: str,
    dst: str,
    metric: Metric,
    *,
    horizon_s: float,
    since_s: float | None = None,
) -> Report:
    """Analyse one metric of one link.

    Parameters
    ----------
    store : Store
    src, dst : str
    metric : Metric
    horizon_s : float
        Of the forecast.
    since_s : float, optional
        Only what was measured since, seconds since 1970.
    """
    samples = store.samples.read(
        src=src, dst=dst, metric=metric, since_s=-inf if since_s is None else since_s, details=False
    )
    rows = samples.rows
    if metric in COUNTED:
        sections = [_events(rows)]
    else:
        sections = [_memory(rows), _periods(rows), _forecast(rows, horizon_s), _levels(rows)]
    for section in sections:
        section.samples = len(rows)
        section.concluded = bool(section.figures)
    first_last = (
        [utc_text(float(at)) for at in rows["measured_at_s"][[0, -1]]] if len(rows) else ["never"]
    )
    about = {"samples": f"{len(rows):,}", "measured": " to ".join(dict.fromkeys(first_last))}
    return Report(f"{metric} of {src} > {dst}", about, tuple(sections))


def _memory(rows: NDArray[np.void]) -> Section:
    section = Section(
        "autocorrelation",
        "How long does it remember?",
        "Autocorrelation; Bartlett's bounds, integrated time of correlation.",
    )
    found = section.conclude(
        "autocorrelation", lambda: autocorrelation(rows["measured_at_s"], rows["value"])
    )
    if found is not None:
        section.say(
            f"A sample resembles the one {found.step_s / 60:.3g} min before "
            + (f"(correlation {found.next:.2f})" if found.remembers else "no more than by chance")
            + f"; {found.samples:,} samples are worth {found.independent_samples:,.0f} independent "
            f"ones, one every {found.correlation_time_s / 3600:.2g} h."
        )
        section.statements += [
            f"Correlation over {lag_s / 3600:g} h: {value:.2f}." for lag_s, value in found.at_lags
        ]
    return section


def _periods(rows: NDArray[np.void]) -> Section:
    section = Section(
        "periods",
        "Does it repeat itself?",
        "Folded at half an hour, a day and a week, with cycles turned at random; the strongest "
        "wave of a periodogram against red noise.",
    )
    for name, period_s in PERIOD_NAMES.items():
        found = section.conclude(
            name,
            lambda p=period_s: periodicity(rows["measured_at_s"], rows["value"], p),  # type: ignore[misc]
        )
        if found is not None:
            section.say(
                f"By {name.replace('_', ' ')}: "
                + (
                    f"a pattern (p = {found.p_value:.3f}), {_extreme(found)}."
                    if found.present
                    else f"no more than chance gives (p = {found.p_value:.2f})."
                )
            )
    any_period = section.conclude(
        "any_period", lambda: strongest_period(rows["measured_at_s"], rows["value"])
    )
    if any_period is not None:
        section.say(
            f"Of any period: every {any_period.period_s / 3600:.3g} h, {any_period.share:.0%} of "
            f"the variance (p = {any_period.p_value:.3f})."
            if any_period.present
            else f"Of any period: none beyond chance (p = {any_period.p_value:.2f})."
        )
    return section


def _extreme(found: Periodicity) -> str:
    """Return where it is farthest from what is usual."""
    if found.height > found.depth:
        word, at_s, how = "highest", found.highest_phase_s, f"{found.height:.1%} above"
    else:
        word, at_s, how = "lowest", found.lowest_phase_s, f"{found.depth:.1%} below"
    return f"{word} from {at_s / 60:.0f} min into it, {how} usual"


def _forecast(rows: NDArray[np.void], horizon_s: float) -> Section:
    section = Section(
        "forecast",
        "What does it do next?",
        "The level, the time of day and the present, each day forecast from the days before; skill "
        "is the share of the error of 'same as now' that is saved.",
    )
    found = section.conclude(
        "forecast", lambda: forecast(rows["measured_at_s"], rows["value"], horizon_s)
    )
    if found is not None:
        ahead = f"In {found.horizon_s / 3600:.3g} h"
        if found.useful:
            section.say(
                f"{ahead}: {found.expected:,.4g} ({found.low:,.4g} to {found.high:,.4g}), now "
                f"{found.now:,.4g}. Over {found.days} days such forecasts had a skill of "
                f"{found.skill:.0%} (p = {found.p_value:.3f})."
            )
        else:
            section.say(
                f"{ahead}: no forecast. The time of day tells nothing beyond chance (p = "
                f"{found.p_value:.2f})."
            )
    return section


def _levels(rows: NDArray[np.void]) -> Section:
    section = Section(
        "levels",
        "Has its level changed?",
        "Page's cumulative sums (1954) for shifts that last; rates in two groups with a gap, whose "
        "order in time tells two levels from one shift (runs, Wald and Wolfowitz 1940).",
    )
    rates = rows["value"]
    if len(rates):
        alike = rows["connections"] == rows["connections"].max()
        rates, times = rates[alike], rows["measured_at_s"][alike]
    if len(rates) <= max(LEARNT_FROM, FEWEST_TESTS):
        error = TooFewError("samples with the same connections", len(rates), LEARNT_FROM + 1)
        section.say(f"Levels: no conclusion. {error}")
        return section
    beside = ""
    with suppress(TooFewError):
        if periodicity(times, rates, DAY_S).present:
            rates, beside = without_pattern(times, rates, DAY_S), "Beside its daily pattern, "
    levels = levels_between_tests(rates.tolist())
    back_and_forth = levels is not None and levels.pattern == "two-level"
    shifts = [] if back_and_forth else level_shifts(rates.tolist())
    section.figures = {
        "levels": levels
        and {
            "pattern": levels.pattern,
            "low": levels.low_mbps,
            "high": levels.high_mbps,
            "changes": levels.changes,
        },
        "shifts": [
            {"at_s": float(times[s.position]), "before": s.before, "after": s.after} for s in shifts
        ],
    }
    if levels is not None and back_and_forth:
        section.say(
            f"It is at one of two levels by turns, {levels.low_mbps:,.4g} and "
            f"{levels.high_mbps:,.4g}: {levels.changes} changes."
        )
    for shift in shifts[-MOST_SHIFTS:]:
        section.say(
            f"Since {utc_text(float(times[shift.position]))} it is at {shift.after:,.4g} instead "
            f"of {shift.before:,.4g}."
        )
    if not section.statements:
        section.say("It has one level.")
    if beside:
        section.statements = [beside + said[0].lower() + said[1:] for said in section.statements]
    return section


def _events(rows: NDArray[np.void]) -> Section:
    section = Section(
        "occurrences",
        "How often are packets lost?",
        "Samples with loss, Wilson's interval (1927), and whether they come in fewer runs than by "
        "chance.",
    )
    if not len(rows):
        section.say("There is no sample.")
        return section
    found = section.conclude("loss", lambda: occurrences(rows["value"]))
    section.say(
        f"{found.occurrences:,} of {found.samples:,} samples lost packets ({found.share:.2%}, "
        f"{found.low:.2%} to {found.high:.2%}), {found.mean:.3g} % of packets in all."
    )
    if found.occurrences:
        section.say(
            f"Where packets were lost, {found.median_of_occurrences:.3g} % were (median; worst "
            f"{found.worst:.3g} %), in {found.episodes:,} episodes of up to {found.longest} samples"
            + (", which are clustered in time." if found.clustered else ".")
        )
    return section
