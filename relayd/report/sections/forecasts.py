"""How long links remember, and whether their next hours can be foretold."""

from __future__ import annotations

import numpy as np

from probes.analysis.evidence import TooFewError, discoveries
from probes.analysis.series.autocorrelation import Autocorrelation, autocorrelation
from probes.analysis.series.forecast import Forecast, forecast
from probes.samples import Metric
from relayd.report.data import ReportData
from relayd.report.document import Section, Table

METRICS: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps", "rtt_ms")
HORIZONS_S = {"1h": 3600.0, "6h": 6 * 3600.0}
MOST_LISTED = 10


def forecasts(data: ReportData) -> Section:
    """Answer whether what a link does next follows from what it did."""
    section = Section(
        "forecasts",
        "Can the next hours be foretold?",
        "Autocorrelation of each pair's series (Computer Networks 2016; Predictability of cloud "
        "networks, 2021); forecasts from the level, the time of day and the present, each day from "
        "the days before, against 'same as now'. A forecast counts where the time of day helps "
        "beyond chance.",
    )
    for metric in METRICS:
        columns = data.columns(metric)
        section.samples += len(columns)
        memories: list[Autocorrelation] = []
        found: dict[str, list[tuple[str, str, Forecast]]] = {name: [] for name in HORIZONS_S}
        for src, dst, rows in columns.by_pair():
            try:
                memories.append(autocorrelation(rows["at_s"], rows["value"]))
                for name, horizon_s in HORIZONS_S.items():
                    ahead = forecast(rows["at_s"], rows["value"], horizon_s)
                    found[name].append((src, dst, ahead))
            except TooFewError:
                continue
        if not memories:
            section.statements.append(
                f"{metric}: no conclusion, no pair has 48 samples at roughly equal steps."
            )
            continue
        _say_memory(section, metric, memories)
        for name, of_pairs in found.items():
            _say_forecasts(section, metric, name, of_pairs)
    section.concluded = bool(section.figures)
    return section


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
    section.statements.append(
        f"{metric}: samples of {remember} of {len(memories)} pairs resemble the one before beyond "
        f"chance (median correlation {next_one:.2f}); a sample is news after "
        f"{lasts_s / 3600:.2g} h, so {worth:.0%} of samples are independent (medians)."
    )


def _say_forecasts(
    section: Section, metric: str, name: str, found: list[tuple[str, str, Forecast]]
) -> None:
    if not found:
        section.statements.append(
            f"{metric}, {name} ahead: no conclusion, no pair has ten days of samples."
        )
        return
    # Of many pairs tested, 5 % would pass by chance: those that count are so many.
    surely = discoveries([ahead.p_value for _, _, ahead in found])
    useful = sorted((item for item in found if item[2].useful), key=lambda item: item[2].p_value)[
        :surely
    ]
    section.figures[f"{metric}_forecast_{name}"] = {
        "pairs": len(found),
        "foretold": len(useful),
        "median_skill": float(np.median([f.skill for _, _, f in useful])) if useful else None,
    }
    if not useful:
        section.statements.append(
            f"{metric}, {name} ahead: the time of day foretells none of {len(found)} pairs."
        )
        return
    skill = float(np.median([ahead.skill for _, _, ahead in useful]))
    section.statements.append(
        f"{metric}, {name} ahead: {len(useful)} of {len(found)} pairs can be foretold; errors are "
        f"{skill:.0%} smaller than those of 'same as now' (median)."
    )
    best = sorted(useful, key=lambda item: -item[2].skill)[:MOST_LISTED]
    section.tables.append(
        Table(
            f"{metric}, {name} ahead, the most predictable first",
            ("from", "to", "skill", "now", "expected", "low", "high"),
            tuple(
                (
                    src,
                    dst,
                    f"{ahead.skill:.0%}",
                    *(f"{x:,.4g}" for x in (ahead.now, ahead.expected, ahead.low, ahead.high)),
                )
                for src, dst, ahead in best
            ),
        )
    )
