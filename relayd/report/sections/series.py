"""Changes of figures in time: stability, forecasts, calibration of bounds."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

import numpy as np

from planner.fields.shared import DEFAULT_CONNECTIONS
from planner.model.answer import dumped
from probes.analysis.evidence import FALSE_ALARMS, Coverage, Record, TooFewError, discoveries
from probes.analysis.forecast import forecast
from probes.analysis.patterns import (
    DAY_S,
    HOUR_S,
    PERIOD_NAMES,
    autocorrelation,
    periodicity,
    strongest_period,
)
from probes.samples import Metric
from relayd.backtesting.history import ReplayHistory
from relayd.report.data import ReportData, provider_pair
from relayd.report.document import Section, analysis
from relayd.report.rendering import ranges

METRICS: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps", "rtt_ms")
ANY_PERIOD = "any_period"
FEWEST_FOR_BOXES = 48
HORIZONS_S = {"1h": HOUR_S, "6h": 6 * HOUR_S}
MOST_LISTED = 10
FEWEST_PREDICTIONS = 30
"""With fewer there is no verdict on the bounds of a class."""
AIMED_AT = (0.85, 0.95)


@analysis(
    "stability",
    "Does the time matter?",
    "Each pair's series is folded at half an hour, a day and a week; cycles are turned at "
    "random to tell patterns from chance (5 % false alarms a series). Any other period: the "
    "strongest wave of a periodogram against red noise. Dips at minutes 0 and 30: "
    "Predictability of cloud networks, 2021.",
    METRICS,
)
def stability(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether figures change with the time of day, the week, or fixed minutes."""
    series = [
        (rows["measured_at_s"], rows["value"])
        for _, _, rows in data.pairs(metric)
        if len(rows) >= FEWEST_FOR_BOXES and np.median(rows["value"]) > 0
    ]
    if not series:
        section.say(
            f"{metric}: no conclusion. {FEWEST_FOR_BOXES} samples of a pair are needed, and no "
            "pair has them."
        )
        return
    p_values: dict[str, list[float]] = {name: [] for name in (*PERIOD_NAMES, ANY_PERIOD)}
    for times, values in series:
        for name, period_s in PERIOD_NAMES.items():
            with suppress(TooFewError):
                p_values[name].append(periodicity(times, values, period_s)["p_value"])
        with suppress(TooFewError):
            p_values[ANY_PERIOD].append(strongest_period(times, values)["p_value"])
    for name, found in p_values.items():
        _say_pattern(section, metric, name, found)
    ratios = np.concatenate([values / np.median(values) for _, values in series])
    hours = np.concatenate([times for times, _ in series]) % DAY_S // HOUR_S
    rows = [(f"{hour:02} h", ratios[hours == hour]) for hour in range(24)]
    section.charts.append(
        ranges(
            f"{metric} by hour of the day (UTC), each pair relative to its own median "
            f"({len(series)} pairs, {ratios.size:,} samples): median, 5th to 95th percentile.",
            "relative to the pair's median",
            [(hour, of_hour) for hour, of_hour in rows if len(of_hour)],
        )
    )


def _say_pattern(section: Section, metric: str, name: str, p_values: list[float]) -> None:
    words = "of any period" if name == ANY_PERIOD else f"by {name.replace('_', ' ')}"
    if not p_values:
        section.say(
            f"{metric}, pattern {words}: no conclusion, no pair has enough samples spread over "
            "enough whole cycles."
        )
        return
    count, surely = len(p_values), discoveries(p_values)
    alarms = float(np.mean(np.array(p_values) <= FALSE_ALARMS))
    figures = {"pairs": count, "below_5_percent": alarms, "with_a_pattern": surely}
    section.figures[f"{metric}_{name}"] = figures
    section.say(
        f"{metric}, pattern {words}: {surely} of {count} pairs have one (Benjamini and "
        f"Hochberg at 5 %); chance alone explains 5 % of single tests, {alarms:.0%} were below."
    )


@analysis(
    "forecasts",
    "Can the next hours be foretold?",
    "Autocorrelation of each pair's series (Computer Networks 2016; Predictability of cloud "
    "networks, 2021); forecasts from the level, the time of day and the present, each day from "
    "the days before, against 'same as now'. A forecast counts where the time of day helps "
    "beyond chance.",
    METRICS,
)
def forecasts(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether a link's next hours follow from its past."""
    memories: list[Record] = []
    found: dict[str, list[Record]] = {name: [] for name in HORIZONS_S}
    for src, dst, rows in data.pairs(metric):
        with suppress(TooFewError):
            memories.append(autocorrelation(rows["measured_at_s"], rows["value"]))
            for name, horizon_s in HORIZONS_S.items():
                ahead = forecast(rows["measured_at_s"], rows["value"], horizon_s)
                found[name].append({"src": src, "dst": dst, **ahead})
    if not memories:
        section.say(f"{metric}: no conclusion, no pair has 48 samples at roughly equal steps.")
        return
    _say_memory(section, metric, memories)
    for name, of_pairs in found.items():
        _say_forecasts(section, metric, name, of_pairs)


def _say_memory(section: Section, metric: str, memories: list[Record]) -> None:
    remember = sum(memory["remembers"] for memory in memories)
    next_one, lasts_s, independent, samples = (
        np.array([memory[key] for memory in memories])
        for key in ("next", "correlation_time_s", "independent_samples", "samples")
    )
    worth = float(np.median(independent / samples))
    correlation, usual_s = float(np.median(next_one)), float(np.median(lasts_s))
    section.figures[f"{metric}_autocorrelation"] = {
        "pairs": len(memories),
        "remember": remember,
        "median_of_next": correlation,
        "median_correlation_time_s": usual_s,
        "median_share_independent": worth,
    }
    section.say(
        f"{metric}: samples of {remember} of {len(memories)} pairs resemble the one before beyond "
        f"chance (median correlation {correlation:.2f}); a sample is news after "
        f"{usual_s / 3600:.2g} h, so {worth:.0%} of samples are independent (medians)."
    )


def _say_forecasts(section: Section, metric: str, name: str, found: list[Record]) -> None:
    if not found:
        section.say(f"{metric}, {name} ahead: no conclusion, no pair has ten days of samples.")
        return
    # Of many pairs tested, 5 % would pass by chance: only so many count.
    surely = discoveries([ahead["p_value"] for ahead in found])
    useful = sorted((ahead for ahead in found if ahead["useful"]), key=lambda a: a["p_value"])
    useful = useful[:surely]
    skill = float(np.median([ahead["skill"] for ahead in useful])) if useful else None
    figures = {"pairs": len(found), "foretold": len(useful), "median_skill": skill}
    section.figures[f"{metric}_forecast_{name}"] = figures
    if skill is None:
        section.say(
            f"{metric}, {name} ahead: the time of day foretells none of {len(found)} pairs."
        )
        return
    section.say(
        f"{metric}, {name} ahead: {len(useful)} of {len(found)} pairs can be foretold; errors are "
        f"{skill:.0%} smaller than those of 'same as now' (median)."
    )
    section.table(
        f"{metric}, {name} ahead, the most predictable first",
        sorted(useful, key=lambda ahead: -ahead["skill"])[:MOST_LISTED],
        "src dst skill:.0% now:,.4g expected:,.4g low:,.4g high:,.4g",
    )


@analysis(
    "calibration",
    "Do the bounds hold?",
    "At the beginning of each day, links that were measured before are estimated from what was "
    "known by then; the median of what was then measured during the day either lies within "
    "their 90 % bounds or does not. Intervals of 95 % are Wilson's (1927); links that are "
    "measured often are not independent of themselves.",
    METRICS[:2],
)
def calibration(section: Section, data: ReportData, metric: Metric) -> None:
    """Tell whether 90 % bounds held 90 % of later measurements, by pair of providers."""
    held, count = _predictions(data, metric)
    total = Coverage.of(sum(held.values()), sum(count.values()))
    if total.predictions < FEWEST_PREDICTIONS or total.share is None:
        section.say(
            f"{metric}: no conclusion. {FEWEST_PREDICTIONS} measurements of links that had been "
            f"measured before are needed, and there are {total.predictions}."
        )
        return
    found = {name: Coverage.of(held[name], count[name]) for name in sorted(count)}
    section.figures[metric] = dumped({"all": total, "by_providers": found}, as_json=True)
    low, high = AIMED_AT
    verdict = (
        "bounds are too narrow"
        if total.share < low
        else "bounds are too wide"
        if total.share > high
        else "as it should"
    )
    section.say(
        f"{metric}: {total.share:.0%} of {total.predictions:,} later measurements lay within the "
        f"90 % bounds of before: {verdict}."
    )
    section.table(
        f"{metric}: later measurements within the 90 % bounds of before.",
        (_coverage_record(name, one) for name, one in {"all": total, **found}.items()),
        "providers predictions:,d in_bounds interval",
    )


def _predictions(data: ReportData, metric: Metric) -> tuple[Counter[str], Counter[str]]:
    """Count the later measurements within the bounds of before, and all later measurements.

    By pair of providers. Each day, links are estimated from the samples of before.
    """
    held: Counter[str] = Counter()
    count: Counter[str] = Counter()
    history = ReplayHistory(data.samples, data.catalogue, metric)
    connections = 1
    if metric == "aggregate_mbps":
        connections = max(2, history.most_connections or DEFAULT_CONNECTIONS)
    estimator = history.estimator(connections)
    names = np.array([[provider_pair(a, b) for b in history.regions] for a in history.regions])
    for step in map(estimator.step, history.steps(history.span(DAY_S, data.since_s, None))):
        foreseen = step.estimated & ~np.isnan(step.truth_gbps)
        count.update(names[foreseen].tolist())
        held.update(names[foreseen & step.covered].tolist())
    return held, count


def _coverage_record(name: str, coverage: Coverage) -> Record:
    record = {"providers": name, "predictions": coverage.predictions}
    if coverage.share is None or coverage.predictions < FEWEST_PREDICTIONS:
        return record | {"in_bounds": "too few", "interval": ""}
    interval = f"{coverage.low:.0%} to {coverage.high:.0%}"
    return record | {"in_bounds": f"{coverage.share:.0%}", "interval": interval}
