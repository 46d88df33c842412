"""Stability in time: by hour, by day of the week, and at half hours."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from probes.analysis.evidence import FALSE_ALARMS, TooFewError, discoveries
from probes.analysis.series.periodicity import DAY_S, PERIOD_NAMES, periodicity
from probes.analysis.series.spectrum import strongest_period
from probes.samples import Metric
from relayd.report.charts import boxes_by_hour
from relayd.report.data import ReportData
from relayd.report.document import Section

_ANY = "any_period"
_METRICS: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps", "rtt_ms")
FEWEST_FOR_BOXES = 48


def stability(data: ReportData) -> Section:
    """Answer whether figures change with the time of day, the week, or fixed minutes."""
    section = Section(
        "stability",
        "Does the time matter?",
        "Each pair's series is folded at half an hour, a day and a week; cycles are turned at "
        "random to tell patterns from chance (5 % false alarms a series). Any other period: the "
        "strongest wave of a periodogram against red noise. Dips at minutes 0 and 30: "
        "Predictability of cloud networks, 2021.",
    )
    for metric in _METRICS:
        columns = data.columns(metric)
        section.samples += len(columns)
        ratios: list[np.ndarray] = []
        hours: list[np.ndarray] = []
        p_values: dict[str, list[float]] = {name: [] for name in (*PERIOD_NAMES, _ANY)}
        for _, _, rows in columns.by_pair():
            if len(rows) < FEWEST_FOR_BOXES or np.median(rows["value"]) <= 0:
                continue
            ratios.append(rows["value"] / np.median(rows["value"]))
            hours.append((rows["at_s"] % DAY_S // 3600).astype(int))
            for name, period_s in PERIOD_NAMES.items():
                try:
                    found = periodicity(rows["at_s"], rows["value"], period_s)
                except TooFewError:
                    continue
                p_values[name].append(found.p_value)
            with suppress(TooFewError):
                p_values[_ANY].append(strongest_period(rows["at_s"], rows["value"]).p_value)
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
        words = "of any period" if name == _ANY else f"by {name.replace('_', ' ')}"
        if not found:
            section.statements.append(
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
        section.statements.append(
            f"{metric}, pattern {words}: {surely} of {len(found)} pairs have one (Benjamini and "
            f"Hochberg at 5 %); chance alone explains 5 % of single tests, {alarms:.0%} were below."
        )
