"""How figures change in time: stability, forecasts, calibration of bounds."""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress

import numpy as np

from planner.model.answer import dumped
from probes.analysis.evidence import FALSE_ALARMS, TooFewError, discoveries
from probes.analysis.series.autocorrelation import Autocorrelation, autocorrelation
from probes.analysis.series.forecast import Forecast, forecast
from probes.analysis.series.periodicity import DAY_S, PERIOD_NAMES, periodicity
from probes.analysis.series.spectrum import strongest_period
from probes.estimation.coverage import Coverage
from probes.samples import Metric
from relayd.report.charts import boxes_by_hour
from relayd.report.data import ReportData
from relayd.report.document import Section, analysis

METRICS: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps", "rtt_ms")
ANY_PERIOD = "any_period"
FEWEST_FOR_BOXES = 48
HORIZONS_S = {"1h": 3600.0, "6h": 6 * 3600.0}
MOST_LISTED = 10
FEWEST_PREDICTIONS = 30
"""With fewer, nothing is said of the bounds of a class."""
AIMED_AT = (0.85, 0.95)


@analysis(
    "stability",
    "Does the time matter?",
    "Each pair's series is folded at half an hour, a day and a week; cycles are turned at "
    "random to tell patterns from chance (5 % false alarms a series). Any other period: the "
    "strongest wave of a periodogram against red noise. Dips at minutes 0 and 30: "
    "Predictability of cloud networks, 2021.",
)
def stability(section: Section, data: ReportData) -> None:
    """Answer whether figures change with the time of day, the week, or fixed minutes."""
    for metric in METRICS:
        section.samples += data.count(metric)
        ratios: list[np.ndarray] = []
        hours: list[np.ndarray] = []
        p_values: dict[str, list[float]] = {name: [] for name in (*PERIOD_NAMES, ANY_PERIOD)}
        for _, _, rows in data.pairs(metric):
            times, values = rows["measured_at_s"], rows["value"]
            if len(rows) < FEWEST_FOR_BOXES or np.median(values) <= 0:
                continue
            ratios.append(values / np.median(values))
            hours.append((times % DAY_S // 3600).astype(int))
            for name, period_s in PERIOD_NAMES.items():
                with suppress(TooFewError):
                    p_values[name].append(periodicity(times, values, period_s).p_value)
            with suppress(TooFewError):
                p_values[ANY_PERIOD].append(strongest_period(times, values).p_value)
        if not ratios:
            section.say(
                f"{metric}: no conclusion. {FEWEST_FOR_BOXES} samples of a pair are needed, and no "
                "pair has them."
            )
            continue
        _say_patterns(section, metric, p_values)
        all_ratios, all_hours = np.concatenate(ratios), np.concatenate(hours)
        section.charts.append(
            boxes_by_hour(
                f"{metric} by hour of the day, each pair relative to its own median "
                f"({len(ratios)} pairs, {all_ratios.size:,} samples).",
                "relative to the pair's median",
                [all_ratios[all_hours == hour] for hour in range(24)],
            )
        )


def _say_patterns(section: Section, metric: str, p_values: dict[str, list[float]]) -> None:
    for name, found in p_values.items():
        words = "of any period" if name == ANY_PERIOD else f"by {name.replace('_', ' ')}"
        if not found:
            section.say(
                f"{metric}, pattern {words}: no conclusion, no pair has enough samples spread over "
                "enough whole cycles."
            )
            continue
        surely = discoveries(found)
        alarms = float(np.mean(np.array(found) <= FALSE_ALARMS))
        section.figures[f"{metric}_{name}"] = {
            "pairs": len(found),
            "below_5_percent": alarms,
            "with_a_pattern": surely,
        }
        section.say(
            f"{metric}, pattern {words}: {surely} of {len(found)} pairs have one (Benjamini and "
            f"Hochberg at 5 %); chance alone explains 5 % of single tests, {alarms:.0%} were below."
        )


@analysis(
    "forecasts",
    "Can the next hours be foretold?",
    "Autocorrelation of each pair's series (Computer Networks 2016; Predictability of cloud "
    "networks, 2021); forecasts from the level, the time of day and the present, each day from "
    "the days before, against 'same as now'. A forecast counts where the time of day helps "
    "beyond chance.",
)
def forecasts(section: Section, data: ReportData) -> None:
    """Answer whether what a link does next follows from what it did."""
    for metric in METRICS:
        section.samples += data.count(metric)
        memories: list[Autocorrelation] = []
        found: dict[str, list[tuple[str, str, Forecast]]] = {name: [] for name in HORIZONS_S}
        for src, dst, rows in data.pairs(metric):
            with suppress(TooFewError):
                memories.append(autocorrelation(rows["measured_at_s"], rows["value"]))
                for name, horizon_s in HORIZONS_S.items():
                    ahead = forecast(rows["measured_at_s"], rows["value"], horizon_s)
                    found[name].append((src, dst, ahead))
        if not memories:
            section.say(f"{metric}: no conclusion, no pair has 48 samples at roughly equal steps.")
            continue
        _say_memory(section, metric, memories)
        for name, of_pairs in found.items():
            _say_forecasts(section, metric, name, of_pairs)


def _say_memory(section: Section, metric: str, memories: list[Autocorrelation]) -> None:
    remember = sum(memory.remembers for memory in memories)
    next_one = float(np.median([memory.next for memory in memories]))
    lasts_s = float(np.median([memory.correlation_time_s for memory in memories]))
    worth = float(np.median([memory.independent_samples / memory.samples for memory in memories]))
    section.figures[f"{metric}_autocorrelation"] = {
        "pairs": len(memories),
        "remember": remember,
        "median_of_next": next_one,
        "median_correlation_time_s": lasts_s,
        "median_share_independent": worth,
    }
    section.say(
        f"{metric}: samples of {remember} of {len(memories)} pairs resemble the one before beyond "
        f"chance (median correlation {next_one:.2f}); a sample is news after "
        f"{lasts_s / 3600:.2g} h, so {worth:.0%} of samples are independent (medians)."
    )


def _say_forecasts(
    section: Section, metric: str, name: str, found: list[tuple[str, str, Forecast]]
) -> None:
    if not found:
        section.say(f"{metric}, {name} ahead: no conclusion, no pair has ten days of samples.")
        return
    # Of many pairs tested, 5 % would pass by chance: those that count are so many.
    surely = discoveries([ahead.p_value for _, _, ahead in found])
    useful = sorted((item for item in found if item[2].useful), key=lambda item: item[2].p_value)
    useful = useful[:surely]
    skill = float(np.median([ahead.skill for _, _, ahead in useful])) if useful else None
    section.figures[f"{metric}_forecast_{name}"] = {
        "pairs": len(found),
        "foretold": len(useful),
        "median_skill": skill,
    }
    if skill is None:
        section.say(
            f"{metric}, {name} ahead: the time of day foretells none of {len(found)} pairs."
        )
        return
    section.say(
        f"{metric}, {name} ahead: {len(useful)} of {len(found)} pairs can be foretold; errors are "
        f"{skill:.0%} smaller than those of 'same as now' (median)."
    )
    best = sorted(useful, key=lambda item: -item[2].skill)[:MOST_LISTED]
    section.table(
        f"{metric}, {name} ahead, the most predictable first",
        ({"from": src, "to": dst, **dumped(ahead, as_json=True)} for src, dst, ahead in best),
        {
            "from": ("from", ""),
            "to": ("to", ""),
            "skill": ("skill", ".0%"),
            **{key: (key, ",.4g") for key in ("now", "expected", "low", "high")},
        },
    )


@analysis(
    "calibration",
    "Do the bounds hold?",
    "At the beginning of each day, links that were measured before are estimated from what was "
    "known by then; the median of what was then measured during the day either lies within "
    "their 90 % bounds or does not. Intervals of 95 % are Wilson's (1927); links that are "
    "measured often are not independent of themselves.",
)
def calibration(section: Section, data: ReportData) -> None:
    """Answer whether 90 % bounds held 90 % of later measurements, by pair of providers."""
    rates: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps")
    for metric in rates:
        held: dict[str, int] = defaultdict(int)
        count: dict[str, int] = defaultdict(int)
        for providers, covered in data.predictions(metric):
            count[providers] += len(covered)
            held[providers] += int(covered.sum())
        section.samples += data.count(metric)
        _say_coverage(section, metric, held, count)
    section.concluded = bool(section.tables)


def _say_coverage(
    section: Section, metric: Metric, held: dict[str, int], count: dict[str, int]
) -> None:
    total = Coverage.of(sum(held.values()), sum(count.values()))
    if total.predictions < FEWEST_PREDICTIONS or total.share is None:
        section.say(
            f"{metric}: no conclusion. {FEWEST_PREDICTIONS} measurements of links that had been "
            f"measured before are needed, and there are {total.predictions}."
        )
        return
    found = {name: Coverage.of(held[name], count[name]) for name in sorted(count)}
    section.figures[metric] = {
        "all": dumped(total, as_json=True),
        "by_providers": {name: dumped(of_class, as_json=True) for name, of_class in found.items()},
    }
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
        {
            "from > to": ("name", ""),
            "predictions": ("predictions", ",d"),
            "in bounds": ("share", ""),
            "95 % interval": ("interval", ""),
        },
    )


def _coverage_record(name: str, coverage: Coverage) -> dict[str, object]:
    record = {"name": name, "predictions": coverage.predictions}
    if coverage.share is None or coverage.predictions < FEWEST_PREDICTIONS:
        return record | {"share": "too few", "interval": ""}
    interval = f"{coverage.low:.0%} to {coverage.high:.0%}"
    return record | {"share": f"{coverage.share:.0%}", "interval": interval}
