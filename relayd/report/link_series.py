"""``relayd study series``: all analyses of one link's samples in time."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from math import inf
from typing import NamedTuple

from probes.analysis.evidence import TooFewError
from probes.analysis.forecast import forecast
from probes.analysis.level_shift import (
    FEWEST_TESTS,
    LEARNT_FROM,
    level_shifts,
    levels_between_tests,
)
from probes.analysis.patterns import (
    DAY_S,
    PERIOD_NAMES,
    autocorrelation,
    occurrences,
    periodicity,
    without_pattern,
)
from probes.metrics import METRICS, Metric
from probes.samples import Rows
from relayd.report.data import at_most_connections, in_time
from relayd.report.document import Analysis, Report, Section
from relayd.store import Store
from relayd.times import utc_text

MOST_SHIFTS = 10


class _Series(NamedTuple):
    rows: Rows
    horizon_s: float


def report_series(
    store: Store,
    src: str,
    dst: str,
    metric: Metric,
    *,
    horizon_s: float,
    since_s: float | None = None,
) -> Report:
    """Analyse one metric of one link, with a forecast as far ahead as the horizon.

    All samples, or only those since a time, seconds since 1970.
    """
    begin_s = -inf if since_s is None else since_s
    rows = store.samples.read(src=src, dst=dst, metric=metric, since_s=begin_s, details=False).rows
    asked = (events,) if METRICS[metric].counts_events else (memory, periods, next_hours, levels)
    sections = [one.section(_Series(rows, horizon_s)) for one in asked]
    for section in sections:
        section.samples = len(rows)
    first_last = rows["measured_at_s"][[0, -1]].tolist() if len(rows) else []
    measured = " to ".join(dict.fromkeys(map(utc_text, first_last))) or "never"
    about = {"samples": f"{len(rows):,}", "measured": measured}
    return Report(f"{metric} of {src} > {dst}", about, sections)


@Analysis(
    "autocorrelation",
    "How long does it remember?",
    "Autocorrelation; Bartlett's bounds, integrated time of correlation.",
)
def memory(section: Section, series: _Series) -> None:
    """Tell how much samples resemble earlier ones."""
    if found := section.conclude("autocorrelation", in_time(autocorrelation), series.rows):
        alike = f"(correlation {found['next']:.2f})"
        section.say(
            f"A sample resembles the one {found['step_s'] / 60:.3g} min before "
            f"{alike if found['remembers'] else 'no more than by chance'}; "
            f"{found['samples']:,} samples are worth {found['independent_samples']:,.0f} "
            f"independent ones, one every {found['correlation_time_s'] / 3600:.2g} h.",
            *(f"Correlation over {lag_s / 3600:g} h: {r:.2f}." for lag_s, r in found["at_lags"]),
        )


@Analysis(
    "periods",
    "Does it repeat itself?",
    "Folded at half an hour, a day and a week, with cycles turned at random.",
)
def periods(section: Section, series: _Series) -> None:
    """Tell whether there is a pattern that comes back."""
    for name, period_s in PERIOD_NAMES.items():
        folded = in_time(partial(periodicity, period_s=period_s))
        if found := section.conclude(name, folded, series.rows):
            # The part of the period that is farthest from the usual level.
            word, side = (
                ("highest", "above") if found["height"] > found["depth"] else ("lowest", "below")
            )
            off, at_s = max(found["height"], found["depth"]), found[f"{word}_phase_s"]
            section.say(
                f"By {name.replace('_', ' ')}: "
                + (
                    f"a pattern (p = {found['p_value']:.3f}), {word} from {at_s / 60:.0f} min into "
                    f"it, {off:.1%} {side} usual."
                    if found["present"]
                    else f"no more than chance gives (p = {found['p_value']:.2f})."
                )
            )


@Analysis(
    "forecast",
    "What does it do next?",
    "The level, the time of day and the present, each day forecast from the days before; skill "
    "is the share of the error of 'same as now' that is saved.",
)
def next_hours(section: Section, series: _Series) -> None:
    """Forecast the link, where that is possible."""
    ahead = in_time(partial(forecast, horizon_s=series.horizon_s))
    if found := section.conclude("forecast", ahead, series.rows):
        when = f"In {found['horizon_s'] / 3600:.3g} h"
        section.say(
            f"{when}: {found['expected']:,.4g} ({found['low']:,.4g} to {found['high']:,.4g}), now "
            f"{found['now']:,.4g}. Over {found['days']} days such forecasts had a skill of "
            f"{found['skill']:.0%} (p = {found['p_value']:.3f})."
            if found["useful"]
            else f"{when}: no forecast. The time of day tells nothing beyond chance (p = "
            f"{found['p_value']:.2f})."
        )


@Analysis(
    "levels",
    "Has its level changed?",
    "Page's cumulative sums (1954) for shifts that last; rates in two groups with a gap, whose "
    "order in time tells two levels from one shift (runs, Wald and Wolfowitz 1940).",
)
def levels(section: Section, series: _Series) -> None:
    """Tell whether the level has shifted, or is one of two by turns."""
    rows = at_most_connections(series.rows)
    times, rates = rows["measured_at_s"], rows["value"]
    if len(rates) <= max(LEARNT_FROM, FEWEST_TESTS):
        error = TooFewError("samples with the same connections", len(rates), LEARNT_FROM + 1)
        section.say(f"Levels: no conclusion. {error}")
        return
    besides = ""
    with suppress(TooFewError):
        if periodicity(times, rates, DAY_S)["present"]:
            rates, besides = without_pattern(times, rates, DAY_S), "Besides its daily pattern, "
    found = levels_between_tests(rates.tolist())
    by_turns = found is not None and found.pattern == "two-level"
    shifts = [] if by_turns else level_shifts(rates.tolist())
    section.figures = {
        "levels": found and dict(zip(("pattern", "low", "high", "changes"), found, strict=False)),
        "shifts": [
            {"at_s": float(times[s.position]), "before": s.before, "after": s.after} for s in shifts
        ],
    }
    if found is not None and by_turns:
        section.say(
            f"It is at one of two levels by turns, {found.low_mbps:,.4g} and "
            f"{found.high_mbps:,.4g}: {found.changes} changes."
        )
    for shift in shifts[-MOST_SHIFTS:]:
        section.say(
            f"Since {utc_text(float(times[shift.position]))} it is at {shift.after:,.4g} instead "
            f"of {shift.before:,.4g}."
        )
    if not section.statements:
        section.say("It has one level.")
    if besides:
        section.statements = [besides + said[0].lower() + said[1:] for said in section.statements]


@Analysis(
    "occurrences",
    "How often are packets lost?",
    "Samples with loss, Wilson's interval (1927), and whether they come in fewer runs than by "
    "chance.",
)
def events(section: Section, series: _Series) -> None:
    """Tell the share of samples with lost packets, and whether these come in clusters."""
    if not len(series.rows):
        section.say("There is no sample.")
        return
    found = section.conclude("loss", occurrences, series.rows["value"])
    section.say(
        f"{found['occurrences']:,} of {found['samples']:,} samples lost packets "
        f"({found['share']:.2%}, {found['low']:.2%} to {found['high']:.2%}), {found['mean']:.3g} % "
        "of packets in all."
    )
    if found["occurrences"]:
        section.say(
            f"Where packets were lost, {found['median_of_occurrences']:.3g} % were (median; worst "
            f"{found['worst']:.3g} %), in {found['episodes']:,} episodes of up to "
            f"{found['longest']} samples"
            + (", which are clustered in time." if found["clustered"] else ".")
        )
