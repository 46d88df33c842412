"""Loss and jitter."""

from __future__ import annotations

import numpy as np

from probes.samples import Metric
from relayd.report.data import ReportData, provider_pair
from relayd.report.document import Section, Table

_METRICS: tuple[tuple[Metric, str], ...] = (("loss_pct", "loss, %"), ("jitter_ms", "jitter, ms"))
MOST_LISTED = 10


def packet_loss(data: ReportData) -> Section:
    """Answer where packets are lost or late."""
    section = Section(
        "packets",
        "Are packets lost or late?",
        "Loss and jitter of pings by pair of providers (Predictability of cloud networks, 2021).",
    )
    for metric, name in _METRICS:
        medians = data.medians(metric)
        section.samples += len(data.columns(metric))
        if not medians:
            section.statements.append(f"There is no sample of {name.partition(',')[0]}.")
            continue
        groups: dict[str, list[float]] = {}
        for (src, dst), value in medians.items():
            groups.setdefault(provider_pair(src, dst), []).append(value)
        worst = sorted(medians.items(), key=lambda item: -item[1])[:MOST_LISTED]
        section.figures[metric] = {
            "pairs": len(medians),
            "mean": float(np.mean(list(medians.values()))),
            "worst": [{"src": a, "dst": b, "value": value} for (a, b), value in worst],
        }
        section.tables.append(
            Table(
                f"{name.capitalize()} (medians of pairs)",
                ("providers", "pairs", "mean", "most"),
                tuple(
                    (pair, str(len(v)), f"{np.mean(v):.3g}", f"{max(v):.3g}")
                    for pair, v in sorted(groups.items())
                ),
            )
        )
        clean = float(np.mean([value == 0 for value in medians.values()]))
        if metric == "loss_pct":
            section.statements.append(f"{clean:.0%} of {len(medians)} pairs lost nothing.")
    section.concluded = bool(section.figures)
    return section
