"""Throughput by pair of providers and VM type."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from probes.analysis.variation import spread
from probes.samples import Metric
from relayd.report.data import ReportData, provider_pair
from relayd.report.document import Section, Table

_NAMES: dict[Metric, str] = {
    "per_flow_mbps": "one connection",
    "aggregate_mbps": "many connections",
}
FEWEST_REPEATS = 3


def throughput(data: ReportData) -> Section:
    """Answer how fast pairs are, and how much that varies from test to test."""
    section = Section(
        "throughput",
        "How fast are transfers?",
        "Mean and standard deviation of each pair's median, by providers and VM types; coefficient "
        "of variation of repeated tests of one pair (Computer Networks 2016, WANs between "
        "public-cloud datacenters).",
    )
    for metric, name in _NAMES.items():
        columns = data.columns(metric)
        section.samples += len(columns)
        groups: dict[tuple[str, str], list[float]] = defaultdict(list)
        repeated: list[float] = []
        for src, dst, rows in columns.by_pair():
            setup = columns.setups[int(rows["setup"][-1])]
            types = f"{setup.src_vm or '?'} > {setup.dst_vm or '?'}"
            groups[provider_pair(src, dst), types].append(float(np.median(rows["value"])))
            if len(rows) >= FEWEST_REPEATS and rows["value"].mean() > 0:
                repeated.append(float(rows["value"].std(ddof=1) / rows["value"].mean()))
        if not groups:
            section.statements.append(f"There is no test with {name}.")
            continue
        found = {key: spread(values, fewest=1) for key, values in sorted(groups.items())}
        section.figures[metric] = [
            {
                "providers": providers,
                "vm_types": types,
                "pairs": s.samples,
                "mean": s.mean,
                "deviation": s.deviation,
                "minimum": s.minimum,
                "maximum": s.maximum,
            }
            for (providers, types), s in found.items()
        ]
        section.tables.append(
            Table(
                f"Throughput of {name}, Mbit/s",
                ("providers", "VM types", "pairs", "mean", "deviation", "least", "most"),
                tuple(
                    (
                        providers,
                        types,
                        str(s.samples),
                        *(f"{v:,.0f}" for v in (s.mean, s.deviation, s.minimum, s.maximum)),
                    )
                    for (providers, types), s in found.items()
                ),
            )
        )
        if repeated:
            middle, high = np.percentile(repeated, (50, 95))
            section.figures[f"{metric}_cov_across_tests"] = {
                "pairs": len(repeated),
                "median": float(middle),
                "percentile_95": float(high),
            }
            section.statements.append(
                f"Tests of one pair with {name} vary by {middle:.1%} (median coefficient of "
                f"variation over {len(repeated)} pairs tested {FEWEST_REPEATS} times or more; "
                f"95th percentile {high:.1%})."
            )
        else:
            section.statements.append(
                f"No pair was tested {FEWEST_REPEATS} times with {name}: how much tests vary can't "
                "be told."
            )
    section.concluded = section.samples > 0
    return section
