"""Calibration: how often the bounds of estimates held what was measured later."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from planner.model.answer import dumped
from probes.analysis.series.periodicity import DAY_S
from probes.estimation.coverage import Coverage
from probes.estimation.history_steps import steps_of
from probes.samples import Metric
from relayd.report.data import ReportData, provider_pair
from relayd.report.document import Section, Table

_METRICS: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps")
FEWEST = 30
"""Predictions: with fewer, nothing is said of a class."""
AIMED_AT = (0.85, 0.95)


def calibration(data: ReportData) -> Section:
    """Answer whether 90 % bounds held 90 % of later measurements, by pair of providers."""
    section = Section(
        "calibration",
        "Do the bounds hold?",
        "At the beginning of each day, links that were measured before are estimated from what was "
        "known by then; the median of what was then measured during the day either lies within "
        "their 90 % bounds or does not. Intervals of 95 % are Wilson's (1927); links that are "
        "measured often are not independent of themselves.",
    )
    for metric in _METRICS:
        held: dict[str, int] = defaultdict(int)
        count: dict[str, int] = defaultdict(int)
        history, models = data.history(metric)
        names = np.array([[provider_pair(a, b) for b in history.regions] for a in history.regions])
        for part in history.parts(history.span(DAY_S, data.since_s, None)):
            for step in steps_of(part, models):
                foreseen = step.estimated & ~np.isnan(step.truth_gbps)
                for name in np.unique(names[foreseen]).tolist():
                    of_class = foreseen & (names == name)
                    count[name] += int(of_class.sum())
                    held[name] += int((of_class & step.covered).sum())
        section.samples += history.samples_read
        _say(section, metric, held, count)
    section.concluded = bool(section.tables)
    return section


def _say(section: Section, metric: Metric, held: dict[str, int], count: dict[str, int]) -> None:
    total = Coverage.of(sum(held.values()), sum(count.values()))
    if total.predictions < FEWEST:
        section.statements.append(
            f"{metric}: no conclusion. {FEWEST} measurements of links that had been measured "
            f"before are needed, and there are {total.predictions}."
        )
        return
    found = {name: Coverage.of(held[name], count[name]) for name in sorted(count)}
    section.figures[metric] = {
        "all": dumped(total, as_json=True),
        "by_providers": {name: dumped(of_class, as_json=True) for name, of_class in found.items()},
    }
    assert total.share is not None
    verdict = (
        "as it should"
        if AIMED_AT[0] <= total.share <= AIMED_AT[1]
        else "bounds are too wide"
        if total.share > AIMED_AT[1]
        else "bounds are too narrow"
    )
    section.statements.append(
        f"{metric}: {total.share:.0%} of {total.predictions:,} later measurements lay within the "
        f"90 % bounds of before: {verdict}."
    )
    section.tables.append(
        Table(
            f"{metric}: later measurements within the 90 % bounds of before.",
            ("from > to", "predictions", "in bounds", "95 % interval"),
            tuple(_row(name, one) for name, one in {"all": total, **found}.items()),
        )
    )


def _row(name: str, coverage: Coverage) -> tuple[str, ...]:
    if coverage.share is None or coverage.predictions < FEWEST:
        return (name, f"{coverage.predictions:,}", "too few", "")
    between = f"{coverage.low:.0%} to {coverage.high:.0%}"
    return (name, f"{coverage.predictions:,}", f"{coverage.share:.0%}", between)
