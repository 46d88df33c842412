"""``relayd study report``: analyses the samples of a store as measurement papers do."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from relayd.history import SampleHistory
from relayd.report.data import ReportData
from relayd.report.document import Report
from relayd.report.sections import SECTIONS


def make_report(
    samples: SampleHistory,
    catalogue: Catalogue,
    *,
    since_s: float | None = None,
    only: Collection[str] = (),
) -> Report:
    """Analyse all samples of a store or a data set, or those since a time, seconds since 1970.

    The catalogue tells the places and prices of regions. There is a section for each question, or
    for those asked by their keys, also where there is too little to answer it. Raises
    :class:`InputError` if there is no such section.
    """
    for key in only:
        if key not in SECTIONS:
            remedy = f"Sections are {', '.join(SECTIONS)}."
            raise InputError(
                "--section", "is not a section of the report", value=key, remedy=remedy
            )
    data = ReportData(samples, catalogue, since_s)
    sections = [one.section(data) for key, one in SECTIONS.items() if not only or key in only]
    about = {
        **samples.about(),
        "measured": _span(data.span_s),
        "corrected for slow start": f"{sum(data.corrected.values()):,} tests",
    }
    return Report("What the samples show", about, sections)


def _span(span_s: tuple[float, float] | None) -> str:
    if span_s is None:
        return "never"
    first, last = (datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") for at in span_s)
    return f"{first} UTC" if first == last else f"{first} to {last} UTC"
