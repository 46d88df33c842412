"""Fees against performance."""

from __future__ import annotations

import numpy as np

from probes.analysis.fees import fees_against_performance
from relayd.report.charts import points
from relayd.report.data import ReportData
from relayd.report.document import Section


def fees(data: ReportData) -> Section:
    """Answer whether expensive egress is faster."""
    section = Section(
        "fees",
        "Does a higher price buy speed?",
        "Rank correlation over source regions of the first-tier egress fee and the throughput "
        "with many connections, medians over destinations (Computer Networks 2016).",
    )
    by_source: dict[str, list[tuple[float, float]]] = {}
    for (src, dst), mbps in data.medians("aggregate_mbps").items():
        by_source.setdefault(src, []).append((data.egress_usd_per_gb(src, dst), mbps))
    section.samples = len(data.columns("aggregate_mbps"))
    rows = [
        (
            float(np.nanmedian([f for f, _ in links])),
            float(np.median([r for _, r in links])),
            src.partition(":")[0],
        )
        for src, links in by_source.items()
        if np.isfinite([f for f, _ in links]).any()
    ]
    found = section.say(
        "fees_against_throughput",
        lambda: fees_against_performance([f for f, _, _ in rows], [r for _, r, _ in rows]),
    )
    if found is None:
        section.concluded = False
        return section
    direction = "faster" if found.correlation > 0 else "slower"
    section.statements.append(
        f"Over {found.pairs} source regions, dearer egress goes with {direction} transfers "
        f"(Spearman {found.correlation:+.2f}, p = {found.p_value:.3f})."
        if found.related
        else f"Over {found.pairs} source regions, fee and throughput are not related beyond chance "
        f"(Spearman {found.correlation:+.2f}, p = {found.p_value:.2f})."
    )
    section.charts.append(
        points(
            "Egress fee against throughput, one point a source region.", "USD/GB", "Mbit/s", rows
        )
    )
    return section
