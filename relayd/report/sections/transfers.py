"""File transfers: how long the same file takes, and how much that varies."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from probes.analysis.consistency import FEWEST_TRANSFERS, TransferTimes, transfer_times
from probes.analysis.evidence import TooFewError
from relayd.report.data import ReportData
from relayd.report.document import Section, Table

MOST_LISTED = 20


def transfers(data: ReportData) -> Section:
    """Answer how alike transfers of one file are."""
    section = Section(
        "transfers",
        "How alike are transfers of one file?",
        "Times of repeated transfers of the same volume (as 105 MB by scp ten times an hour: "
        "Predictability of cloud networks, 2021): spread, and the 95th percentile over the median, "
        "which is what a cautious deadline adds.",
    )
    times: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for test in data.detailed_tests("transfer_s"):
        section.samples += 1
        volume_gb = test.detail.get("volume_gb")
        if isinstance(volume_gb, int | float):
            times[test.src, test.dst, float(volume_gb)].append(test.value)
    for src, dst, gb, took_s in data.finished_transfers():
        section.samples += 1
        times[src, dst, gb].append(took_s)
    found: list[tuple[str, str, float, TransferTimes]] = []
    for key, seconds in sorted(times.items()):
        try:
            found.append((*key, transfer_times(seconds)))
        except TooFewError:
            continue
    section.concluded = bool(found)
    if not found:
        section.statements.append(
            f"No conclusion. No link has {FEWEST_TRANSFERS} transfers of one volume: report them "
            "(`relayd transfers`), or import times as CSV with transfer_s and volume_mb."
        )
        return section
    worst = float(np.max([times.percentile_95_over_median for *_, times in found]))
    usual = float(np.median([times.seconds.cov for *_, times in found]))
    section.figures["transfers"] = [
        {
            "src": src,
            "dst": dst,
            "volume_gb": volume_gb,
            "transfers": times.transfers,
            "median_s": times.seconds.median,
            "cov": times.seconds.cov,
            "percentile_95_over_median": times.percentile_95_over_median,
        }
        for src, dst, volume_gb, times in found
    ]
    section.statements.append(
        f"Times of {len(found)} repeated transfers vary by {usual:.1%} (median coefficient of "
        f"variation); of the least steady, one in twenty takes over {worst:.2f}x the median."
    )
    least_steady = sorted(found, key=lambda item: -item[3].percentile_95_over_median)
    section.tables.append(
        Table(
            "Transfers of one volume, the least steady first",
            ("from", "to", "MB", "transfers", "median s", "variation", "95th / median"),
            tuple(
                (
                    src,
                    dst,
                    f"{volume_gb * 1e3:,.4g}",
                    str(times.transfers),
                    f"{times.seconds.median:.3g}",
                    f"{times.seconds.cov:.1%}",
                    f"{times.percentile_95_over_median:.2f}",
                )
                for src, dst, volume_gb, times in least_steady[:MOST_LISTED]
            ),
        )
    )
    return section
