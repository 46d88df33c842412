"""Whether the two directions of a pair differ."""

from __future__ import annotations

import numpy as np

from probes.analysis.asymmetry import collapses, paired_difference
from probes.analysis.evidence import TooFewError
from probes.samples import Metric
from relayd.report.charts import cumulative
from relayd.report.data import ReportData
from relayd.report.document import Section, Table

_METRICS: tuple[Metric, ...] = ("per_flow_mbps", "aggregate_mbps")
TOGETHER_S = 1800.0
"""Tests of the two directions within this time are taken as made together."""
MOST_LISTED = 10


def directions(data: ReportData) -> Section:
    """Answer whether a pair is as fast in one direction as in the other."""
    section = Section(
        "directions",
        "Are both directions alike?",
        "Tests of both directions within half an hour, compared pair by pair with signs drawn at "
        "random; one-way collapses below 10 Mbit/s while the other direction went on (Computer "
        "Networks 2016).",
    )
    for metric in _METRICS:
        columns = data.columns(metric)
        section.samples += len(columns)
        rows_of = {(src, dst): rows for src, dst, rows in columns.by_pair() if src != dst}
        ratios, differing, tested, down = [], [], 0, []
        for (src, dst), rows in rows_of.items():
            back = rows_of.get((dst, src))
            if back is None or src > dst:
                continue
            ratios.append(float(np.median(rows["value"]) / np.median(back["value"])))
            there, other = _together(rows, back)
            for (a, b), first, second in (((src, dst), there, other), ((dst, src), other, there)):
                down += [
                    (a, b, c) for c in collapses(first["at_s"], first["value"], second["value"])
                ]
            try:
                found = paired_difference(there["value"], other["value"])
            except TooFewError:
                continue
            tested += 1
            if found.differs:
                differing.append((src, dst, found))
        if not ratios:
            section.statements.append(f"{metric}: no pair was tested in both directions.")
            continue
        larger = np.exp(np.abs(np.log(np.array(ratios))))
        section.figures[metric] = {
            "pairs": len(ratios),
            "median_ratio": float(np.median(larger)),
            "share_over_1_5": float((larger > 1.5).mean()),
            "tested": tested,
            "differing": len(differing),
            "collapses": len(down),
        }
        section.statements.append(
            f"{metric}: the faster direction of a pair is {np.median(larger):.2f}x the other "
            f"(median of {len(ratios)} pairs); {(larger > 1.5).mean():.0%} of pairs differ by more "
            f"than 1.5x. Of {tested} pairs tested often enough, {len(differing)} differ beyond "
            f"chance. {len(down)} one-way collapses."
        )
        section.charts.append(
            cumulative(
                f"{metric}: faster over slower direction of each pair.",
                "ratio",
                {metric: list(larger)},
                log=True,
            )
        )
        if down:
            worst = sorted(down, key=lambda item: item[2].from_s - item[2].until_s)[:MOST_LISTED]
            section.tables.append(
                Table(
                    f"One-way collapses of {metric}, the longest first",
                    ("from", "to", "hours", "samples", "Mbit/s"),
                    tuple(
                        (
                            a,
                            b,
                            f"{(c.until_s - c.from_s) / 3600:.1f}",
                            str(c.samples),
                            f"{c.mbps:.1f}",
                        )
                        for a, b, c in worst
                    ),
                )
            )
    section.concluded = bool(section.figures)
    return section


def _together(rows: np.ndarray, back: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair tests of one direction with tests of the other that were near in time."""
    nearest = np.searchsorted(back["at_s"], rows["at_s"]).clip(1, max(1, len(back) - 1))
    if len(back) == 1:
        nearest = np.zeros(len(rows), dtype=int)
    else:
        earlier = rows["at_s"] - back["at_s"][nearest - 1] < back["at_s"][nearest] - rows["at_s"]
        nearest = nearest - earlier
    close = np.abs(back["at_s"][nearest] - rows["at_s"]) <= TOGETHER_S
    return rows[close], back[nearest[close]]
