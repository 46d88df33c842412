"""Links as a list, and as a data frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from planner.model.errors import not_installed
from planner.model.estimate import Estimate
from planner.model.link import LINK_FIGURES, Link
from planner.model.notebook import html_table

if TYPE_CHECKING:
    import pandas as pd


class LinkTable(Sequence[Link]):
    """Links in the network's order: iterate over them, or take them as a data frame."""

    def __init__(self, links: Iterable[Link]) -> None:
        self._links = tuple(links)

    @overload
    def __getitem__(self, position: int) -> Link: ...
    @overload
    def __getitem__(self, position: slice) -> LinkTable: ...
    def __getitem__(self, position: int | slice) -> Link | LinkTable:
        if isinstance(position, slice):
            return LinkTable(self._links[position])
        return self._links[position]

    def __len__(self) -> int:
        return len(self._links)

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
        columns: dict[str, Any] = {
            "src": [link.src for link in self],
            "dst": [link.dst for link in self],
        }
        for name in LINK_FIGURES:
            estimates: list[Estimate] = [getattr(link, name) for link in self]
            columns[name] = [estimate.expected for estimate in estimates]
            for part in ("low", "high", "source"):
                columns[f"{name}_{part}"] = [getattr(estimate, part) for estimate in estimates]
            columns[f"{name}_method"] = [estimate.origin.method for estimate in estimates]
            times_s = pandas.Series([e.measured_at_s for e in estimates], dtype="float64")
            columns[f"{name}_measured_at"] = pandas.to_datetime(times_s, unit="s", utc=True)
            columns[f"{name}_samples"] = [estimate.samples for estimate in estimates]
        columns["loss_pct"] = pandas.Series([link.loss_pct for link in self], dtype="float64")
        columns["limited_by"] = [link.limited_by for link in self]
        columns["address"] = [link.address for link in self]
        frame: pd.DataFrame = pandas.DataFrame(columns)
        return frame


def imported_pandas() -> Any:
    """Return pandas.

    Raises
    ------
    InputError
        If it is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise not_installed("pandas", "pandas", "make data frames") from None
    return pandas
