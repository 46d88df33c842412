"""Private against public addresses."""

from __future__ import annotations

import numpy as np

from probes.analysis.asymmetry import FEWEST_PAIRS, paired_difference
from probes.analysis.evidence import TooFewError
from probes.samples import Metric
from relayd.report.data import ReportData
from relayd.report.document import Section, Table
from relayd.store.samples.columns import BothKinds

_METRICS: tuple[Metric, ...] = ("aggregate_mbps", "per_flow_mbps", "rtt_ms")
MOST_LISTED = 10


def addresses(data: ReportData) -> Section:
    """Answer whether private addresses carry more, or are nearer, than public ones."""
    section = Section(
        "addresses",
        "Do private addresses do better than public ones?",
        "Medians of each link over both kinds, compared link by link with signs drawn at random "
        "(Computer Networks 2016). `relayd probe --addresses` chooses the kind.",
    )
    for metric in _METRICS:
        links = list(data.address_kinds(metric))
        section.samples += sum(len(link.private) + len(link.public) for link in links)
        if not links:
            section.statements.append(f"{metric}: no link was tested over both kinds of address.")
            continue
        private = np.array([np.median(link.private) for link in links])
        public = np.array([np.median(link.public) for link in links])
        section.tables.append(_table(metric, links, private, public))
        try:
            found = paired_difference(private, public)
        except TooFewError:
            section.statements.append(
                f"{metric}: {len(links)} links were tested over both kinds; at least "
                f"{FEWEST_PAIRS} are needed to tell a difference from chance."
            )
            continue
        section.figures[metric] = {
            "legs": len(links),
            "private_over_public": found.ratio,
            "p_value": found.p_value,
            "differs": found.differs,
        }
        words = "more than chance gives" if found.differs else "no more than chance gives"
        section.statements.append(
            f"{metric}: private over public is {found.ratio:.2f} (geometric mean of {len(links)} "
            f"links), {words} (p = {found.p_value:.3f})."
        )
    section.concluded = bool(section.figures)
    return section


def _table(
    metric: Metric, links: list[BothKinds], private: np.ndarray, public: np.ndarray
) -> Table:
    ratios = private / np.where(public > 0, public, np.nan)
    order = np.argsort(-np.abs(np.log(np.where(ratios > 0, ratios, np.nan))))[:MOST_LISTED]
    return Table(
        f"{metric} over private and public addresses, where they differ most",
        ("from", "to", "private", "public", "ratio"),
        tuple(
            (
                links[i].src,
                links[i].dst,
                f"{private[i]:.4g}",
                f"{public[i]:.4g}",
                f"{ratios[i]:.2f}",
            )
            for i in order.tolist()
        ),
    )
