"""Stability in time: by hour, by day of the week, and at half hours."""

from __future__ import annotations

import numpy as np

from probes.analysis.evidence import FALSE_ALARMS, TooFewError
from probes.analysis.periodicity import DAY_S, HALF_HOUR_S, WEEK_S, periodicity
from probes.samples import Metric
from relayd.report.charts import boxes_by_hour
from relayd.report.data import ReportData
from relayd.report.document import Section

_PERIODS = {"half_hour": HALF_HOUR_S, "day": DAY_S, "week": WEEK_S}
_METRICS: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps", "rtt_ms")
FEWEST_FOR_BOXES = 48


def stability(data: ReportData) -> Section:
    """Answer whether figures change with the time of day, the week, or fixed minutes."""
    section = Section(
        "stability",
        "Does the time matter?",
        "Each pair's series is folded at half an hour, a day and a week; cycles are turned at "
        "random to tell patterns from chance (5 % false alarms a series). Dips at minutes 0 and "
        "30: Predictability of cloud networks, 2021.",
    )
    for metric in _METRICS:
        columns = data.columns(metric)
        section.samples += len(columns)
        ratios: list[np.ndarray] = []
        hours: list[np.ndarray] = []
        p_values: dict[str, list[float]] = {name: [] for name in _PERIODS}
        for _, _, rows in columns.by_pair():
            if len(rows) < FEWEST_FOR_BOXES or np.median(rows["value"]) <= 0:
                continue
            ratios.append(rows["value"] / np.median(rows["value"]))
            hours.append((rows["at_s"] % DAY_S // 3600).astype(int))
            for name, period_s in _PERIODS.items():
                try:
                    found = periodicity(rows["at_s"], rows["value"], period_s)
                except TooFewError:
                    continue
                p_values[name].append(found.p_value)
        if not ratios:
            section.statements.append(
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
    section.concluded = bool(section.charts)
    return section


def _say_patterns(section: Section, metric: str, p_values: dict[str, list[float]]) -> None:
    for name, found in p_values.items():
        words = name.replace("_", " ")
        if not found:
            section.statements.append(
                f"{metric}, pattern by {words}: no conclusion, no pair has enough whole cycles."
            )
            continue
        surely = _discoveries(np.array(found))
        alarms = float(np.mean(np.array(found) <= FALSE_ALARMS))
        section.figures[f"{metric}_{name}"] = {
            "pairs": len(found),
            "below_5_percent": alarms,
            "with_a_pattern": surely,
        }
        section.statements.append(
            f"{metric}, pattern by {words}: {surely} of {len(found)} pairs have one (Benjamini and "
            f"Hochberg at 5 %); chance alone explains 5 % of single tests, {alarms:.0%} were below."
        )


def _discoveries(p_values: np.ndarray) -> int:
    """Return how many hypotheses are rejected at a false discovery rate of 5 %.

    Benjamini and Hochberg, "Controlling the false discovery rate", 1995.
    """
    ordered = np.sort(p_values)
    below = np.flatnonzero(ordered <= FALSE_ALARMS * np.arange(1, ordered.size + 1) / ordered.size)
    return int(below[-1]) + 1 if below.size else 0
