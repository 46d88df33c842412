"""What relays would gain: single flows, aggregates, latency."""

from __future__ import annotations

import numpy as np

from probes.analysis.relay_gains import GainDistribution, latency_gains, throughput_gains
from relayd.report.charts import cumulative
from relayd.report.data import Matrix, ReportData
from relayd.report.document import Section


def relays(data: ReportData) -> Section:
    """Answer how much the best relay gains over direct."""
    section = Section(
        "relays",
        "What would relays gain?",
        "Best single relay over direct for every pair, from the medians of direct tests: "
        "min(first link, second link), for aggregates within the VMs' caps as far as they are "
        "known (the largest rate of a row or column otherwise). HotCloud 2018, Figure 1c, and its "
        "rebuttal by aggregates.",
    )
    series: dict[str, GainDistribution] = {}
    _, flows = data.matrix("per_flow_mbps")
    _, many = data.matrix("aggregate_mbps")
    _, rtt = data.matrix("rtt_ms")
    for name, conclude in (
        ("one_connection", lambda: throughput_gains(flows)),
        (
            "many_connections",
            lambda: throughput_gains(many, _greatest(many, 1), _greatest(many, 0)),
        ),
        ("latency", lambda: latency_gains(rtt)),
    ):
        found = section.say(name, conclude)
        if found is None:
            continue
        series[name.replace("_", " ")] = found
        section.figures[name].pop("gains")
        section.statements.append(
            f"{name.replace('_', ' ').capitalize()}: {found.share_1_5:.0%} of {found.pairs} pairs "
            f"gain 1.5x or more, {found.share_1_1:.0%} gain 1.1x or more; median "
            f"{found.median:.2f}x, most {found.maximum:.1f}x."
        )
    if series:
        section.charts.append(
            cumulative(
                "Gain of the best single relay over direct: share of pairs up to each gain.",
                "gain over direct",
                {name: list(found.gains) for name, found in series.items()},
                log=True,
            )
        )
    section.samples = sum(
        len(data.columns(m)) for m in ("per_flow_mbps", "aggregate_mbps", "rtt_ms")
    )
    section.concluded = bool(series)
    return section


def _greatest(rates: Matrix, along: int) -> Matrix:
    known = np.where(np.isfinite(rates), rates, 0.0)
    greatest: Matrix = known.max(axis=along, initial=0.0)
    return greatest
