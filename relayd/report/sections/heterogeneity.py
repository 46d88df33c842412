"""How much bandwidth differs by destination, with one connection and with many."""

from __future__ import annotations

import numpy as np

from probes.analysis.variation import Homogeneity, homogeneity
from probes.samples import Metric
from relayd.report.charts import ranges
from relayd.report.data import ReportData
from relayd.report.document import Section

_VIEWS: tuple[tuple[Metric, str], ...] = (
    ("per_flow_mbps", "one connection"),
    ("aggregate_mbps", "many connections"),
)
MOST_SOURCES = 24


def heterogeneity(data: ReportData) -> Section:
    """Answer whether bandwidth differs by destination, for one flow and for many."""
    section = Section(
        "heterogeneity",
        "Is bandwidth the same towards every destination?",
        "Coefficient of variation of the rates from one source to its destinations, and fastest "
        "over slowest; HotCloud 2018, Figure 1a (one connection), Figure 2 and Table 3 (many).",
    )
    for metric, name in _VIEWS:
        rates: dict[str, dict[str, float]] = {}
        for (src, dst), value in data.medians(metric).items():
            rates.setdefault(src, {})[dst] = value
        section.samples += len(data.columns(metric))
        found: list[Homogeneity] = []
        for src, row in rates.items():
            if len(row) >= 3:
                found.append(homogeneity(src, row))
        if not found:
            section.statements.append(
                f"With {name}: no conclusion. Three destinations of a source are needed, and no "
                "source has them."
            )
            continue
        covs = np.array([h.over_destinations.cov for h in found])
        uniform = sum(h.homogeneous for h in found)
        ratio = float(np.median([h.fastest_over_slowest for h in found]))
        section.figures[metric] = {
            "sources": len(found),
            "median_cov": float(np.median(covs)),
            "homogeneous": uniform,
            "median_fastest_over_slowest": ratio,
        }
        section.statements.append(
            f"With {name}, rates from one source vary by {np.median(covs):.0%} over its "
            f"destinations (median of {len(found)} sources; fastest over slowest {ratio:.1f}x); "
            f"{uniform} of {len(found)} sources send at one rate to all (under 10 %)."
        )
        shown = sorted(rates, key=lambda src: -float(np.median(list(rates[src].values()))))
        rows = [(src, name, list(rates[src].values())) for src in shown[:MOST_SOURCES]]
        section.charts.append(
            ranges(
                f"Rates from each source to its destinations with {name}: median, 5th to 95th "
                f"percentile{' (the fastest 24 sources)' if len(shown) > MOST_SOURCES else ''}.",
                "Mbit/s",
                rows,
                log=metric == "per_flow_mbps",
            )
        )
    section.concluded = bool(section.figures)
    return section
