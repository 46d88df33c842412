"""Loss and jitter."""

from __future__ import annotations

import numpy as np

from probes.analysis.consistency import first_packets
from probes.analysis.evidence import TooFewError, discoveries
from probes.analysis.series.occurrences import occurrences
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
        "Loss and jitter of pings by pair of providers, and loss as what happens in some samples: "
        "how many, and whether they come together; first packets of runs against the others "
        "(Predictability of cloud networks, 2021).",
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
        if metric == "loss_pct":
            _say_occurrences(section, data)
    _say_first_packets(section, data)
    section.concluded = bool(section.figures)
    return section


def _say_occurrences(section: Section, data: ReportData) -> None:
    """Say in how many samples packets were lost: medians of pairs do not see rare loss."""
    found = [
        (src, dst, occurrences(rows["value"]))
        for src, dst, rows in data.columns("loss_pct").by_pair()
        if src != dst
    ]
    samples = sum(of.samples for _, _, of in found)
    lossy = sum(of.occurrences for _, _, of in found)
    clean = sum(not of.occurrences for _, _, of in found)
    lossy_pairs = [item for item in found if item[2].occurrences]
    clustered = sum(of.clustered for _, _, of in lossy_pairs)
    section.figures["loss_occurrences"] = {
        "samples": samples,
        "lossy": lossy,
        "pairs": len(found),
        "pairs_without_loss": clean,
        "pairs_with_clusters": clustered,
    }
    section.statements.append(
        f"{clean} of {len(found)} pairs lost nothing in any sample; {lossy:,} of {samples:,} "
        f"samples lost packets ({lossy / samples:.2%}). On {clustered} of {len(lossy_pairs)} pairs "
        "with loss it comes together in time more than by chance."
    )
    if lossy_pairs:
        worst = sorted(lossy_pairs, key=lambda item: -item[2].share)[:MOST_LISTED]
        section.tables.append(
            Table(
                "Samples with loss, the most frequent first",
                ("from", "to", "samples", "with loss", "share", "lost then, %", "worst, %"),
                tuple(
                    (
                        src,
                        dst,
                        f"{of.samples:,}",
                        f"{of.occurrences:,}",
                        f"{of.share:.2%}",
                        f"{of.median_of_occurrences:.3g}",
                        f"{of.worst:.3g}",
                    )
                    for src, dst, of in worst
                ),
            )
        )


def _say_first_packets(section: Section, data: ReportData) -> None:
    """Say where the first packet of a run takes longer than the others."""
    runs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for test in data.detailed_tests("rtt_ms"):
        first_ms = test.detail.get("first_ms")
        if isinstance(first_ms, int | float):
            runs.setdefault((test.src, test.dst), []).append((float(first_ms), test.value))
    found = []
    for (src, dst), of_link in runs.items():
        try:
            found.append((src, dst, first_packets(*np.array(of_link).T)))
        except TooFewError:
            continue
    if not found:
        section.statements.append(
            "First packets: no conclusion, no pair has six runs that keep them."
        )
        return
    # Of many pairs tested, 5 % would pass by chance: those that count are so many.
    slow = sorted((item for item in found if item[2].first_differs), key=lambda i: i[2].p_value)
    slow = slow[: discoveries([of.p_value for _, _, of in found])]
    section.figures["first_packets"] = {
        "pairs": len(found),
        "slow": [
            {"src": a, "dst": b, "over_others": of.first_over_others, "extra_ms": of.extra_ms}
            for a, b, of in slow[:MOST_LISTED]
        ],
        "with_slow_first": len(slow),
    }
    extra = ""
    if slow:
        extra = f", by {np.median([of.extra_ms for _, _, of in slow]):.3g} ms (median)"
    section.statements.append(
        f"The first packet of a run takes longer than the others on {len(slow)} of {len(found)} "
        f"pairs{extra}."
    )
