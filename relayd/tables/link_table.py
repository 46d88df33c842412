"""Links as a list, and as a data frame."""

from __future__ import annotations

from collections import UserList
from typing import TYPE_CHECKING, Any

from planner.model.errors import not_installed
from planner.model.link import LINK_FIGURES, Link
from planner.model.notebook import html_table

if TYPE_CHECKING:
    import pandas as pd


class LinkTable(UserList[Link]):
    """Links in the network's order: iterate over them, or take them as a data frame."""

    def __repr__(self) -> str:
        """Count the links, and those whose throughput was measured."""
        measured = sum(link.aggregate_gbps.source == "measured" for link in self)
        return f"<{len(self):,} links, throughput measured on {measured:,}>"

    def _repr_html_(self) -> str:
        header = ("from", "to", "RTT ms", "flow Mbit/s", "VM pair Gbit/s", "bounds", "source")
        rows = [
            (
                link.src,
                link.dst,
                f"{link.rtt_ms.expected:.1f}",
                f"{link.per_flow_mbps.expected:.0f}",
                f"{link.aggregate_gbps.expected:.2f}",
                f"{link.aggregate_gbps.low:.2f}-{link.aggregate_gbps.high:.2f}",
                link.aggregate_gbps.source,
            )
            for link in self
        ]
        return html_table(repr(self)[1:-1], header, rows)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each link (needs pandas, the extra ``relayd[pandas]``).

        Columns are ``src``, ``dst``, ``loss_pct``, ``limited_by`` and ``address``, and for each of
        ``rtt_ms``, ``per_flow_mbps`` and ``aggregate_gbps`` the expected value under this name, and
        ``_low``, ``_high``, ``_source``, ``_method``, ``_measured_at`` (UTC) and ``_samples`` after
        it.
        """
        pandas = imported_pandas()
        frame: pd.DataFrame = pandas.DataFrame([link_row(link) for link in self], columns=COLUMNS)
        for name in LINK_FIGURES:
            times_s = frame[f"{name}_measured_at"].astype("float64")
            frame[f"{name}_measured_at"] = pandas.to_datetime(times_s, unit="s", utc=True)
        return frame.astype({"loss_pct": "float64"})


_PARTS = ("low", "high", "source", "method", "measured_at", "samples")
_FIGURES = (column for name in LINK_FIGURES for column in (name, *(f"{name}_{p}" for p in _PARTS)))
COLUMNS = ("src", "dst", *_FIGURES, "loss_pct", "limited_by", "address")


def link_row(link: Link) -> dict[str, Any]:
    """Return a link's row, by :data:`COLUMNS`; times are seconds since 1970 (UTC)."""
    found: list[object] = [link.src, link.dst]
    for of in link.estimates.values():
        found += [of.expected, of.low, of.high, of.source, of.origin.method, of.measured_at_s]
        found.append(of.samples)
    found += [link.loss_pct, link.limited_by, link.address]
    return dict(zip(COLUMNS, found, strict=True))


def imported_pandas() -> Any:
    """Return pandas.

    Raises InputError if it is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise not_installed("pandas", "pandas", "make data frames") from None
    return pandas
