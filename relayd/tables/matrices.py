"""One figure for every pair of regions, as a labelled matrix."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from planner.model.errors import DataError
from planner.model.estimate import Kind
from planner.model.link import Link
from planner.model.network import Network, Snapshot
from planner.model.notebook import html_table, shortened
from planner.model.pricing import CataloguePrices
from planner.model.units import MBPS_PER_GBPS
from relayd.tables.link_table import imported_pandas

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from planner.model.catalogue import Catalogue

MatrixMetric: TypeAlias = Literal[
    "per-flow", "aggregate", "rtt", "fee", "relay-gain", "loss", "age"
]
MATRIX_METRICS: tuple[MatrixMetric, ...] = get_args(MatrixMetric)
CellSources: TypeAlias = tuple[tuple[Kind | None, ...], ...]
UNITS = {
    "per-flow": "Mbit/s",
    "aggregate": "Gbit/s",
    "rtt": "ms",
    "fee": "USD/GB",
    "relay-gain": "ratio",
    "loss": "%",
    "age": "s",
}
# From the surest on: a figure made of several is as sure as the last of them.
_SOURCES: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, repr=False)
class Matrix:
    """A labelled matrix, row to column.

    Attributes
    ----------
    metric, unit : str
    regions : tuple of str, length n
    values : array, shape (n, n)
        NaN on the diagonal and where nothing is known.
    snapshot : Snapshot
    sources : tuple of n tuples of n, optional
        What each value rests on: ``measured``, ``inferred`` or ``baseline``, None where nothing
        is known. A relay gain has the least sure source of the links that it compares. None for
        metrics that are no estimates (``fee``, ``loss``, ``age``).
    """

    metric: str
    unit: str
    regions: tuple[str, ...]
    values: NDArray[np.float64]
    snapshot: Snapshot
    sources: CellSources | None = None

    def __getitem__(self, pair: tuple[str, str]) -> float:
        """Return the value of one pair of region ids."""
        src, dst = pair
        return float(self.values[self.regions.index(src), self.regions.index(dst)])

    def __repr__(self) -> str:
        """Say what the matrix shows, of how many regions, and the range of its values."""
        known = sorted(value for row in self.values.tolist() for value in row if value == value)
        values = (
            f"{len(known):,} values from {known[0]:.4g} to {known[-1]:.4g} {self.unit}, "
            f"median {known[len(known) // 2]:.4g}"
            if known
            else "no values"
        )
        return f"<Matrix {self.metric} of {len(self.regions)} regions: {values}>"

    def _repr_html_(self) -> str:
        shown = shortened(len(self.regions))
        names = ["…" if i is None else self.regions[i] for i in shown]
        rows = [
            [name, *("…" if i is None or j is None else _cell(self.values[i, j]) for j in shown)]
            for name, i in zip(names, shown, strict=True)
        ]
        return html_table(repr(self)[1:-1], ["", *names], rows)

    def to_frame(self, *, wide: bool = False) -> pd.DataFrame:
        """Return a data frame (needs pandas, the extra ``relayd[pandas]``).

        Parameters
        ----------
        wide : bool
            False for a row for each pair with a value: ``src``, ``dst``, ``value`` and, where
            values are estimates, ``source``. True for sources as index and destinations as
            columns.
        """
        pandas = imported_pandas()
        names = list(self.regions)
        if wide:
            frame: pd.DataFrame = pandas.DataFrame(self.values, names, names)
            return frame
        known = [
            (i, j)
            for i, row in enumerate(self.values.tolist())
            for j, value in enumerate(row)
            if value == value
        ]
        columns: dict[str, list[object]] = {
            "src": [names[i] for i, _ in known],
            "dst": [names[j] for _, j in known],
            "value": [self.values[pair] for pair in known],
        }
        if self.sources is not None:
            columns["source"] = [self.sources[i][j] for i, j in known]
        tidy: pd.DataFrame = pandas.DataFrame(columns)
        return tidy


def _cell(value: float) -> str:
    return f"{value:.4g}" if value == value else ""


def matrix_of(
    network: Network, catalogue: Catalogue, metric: MatrixMetric, connections: int
) -> Matrix:
    """Return one figure of every link of a network.

    Parameters
    ----------
    connections : int
        For ``relay-gain``: TCP connections that a VM opens.
    """
    import numpy as np

    regions = tuple(network.sites)
    index = network.index
    values = np.full((len(regions), len(regions)), np.nan)
    ranks = np.full(values.shape, -1, np.int8)
    figure = link_figure(metric, network, catalogue, connections)
    source = _source(metric, connections)
    for link in network:
        at = index[link.src], index[link.dst]
        values[at] = figure(link)
        if source:
            ranks[at] = _SOURCES.index(source(link))
    if metric == "relay-gain":
        values, ranks = _relay_gain(values, ranks, network)
    ranks[np.isnan(values)] = -1
    sources = None
    if source:
        names: tuple[Kind | None, ...] = (*_SOURCES, None)  # -1 is the last
        sources = tuple(tuple(names[rank] for rank in row) for row in ranks.tolist())
    return Matrix(metric, UNITS[metric], regions, values, network.snapshot, sources)


def link_figure(
    metric: MatrixMetric, network: Network, catalogue: Catalogue, connections: int
) -> Callable[[Link], float]:
    """Return what gives a link's figure in a metric's unit, NaN where nothing is known.

    Of ``relay-gain`` it is the rate of the direct path with so many connections.
    """
    prices = CataloguePrices(catalogue, network)
    now_s = time.time()

    def fee(link: Link) -> float:
        try:
            return prices.egress_usd_per_gb(link.src, link.dst, 1.0)
        except DataError:
            return float("nan")  # a provider without prices

    def age_s(link: Link) -> float:
        newest_s = newest_sample_s(link)
        return float("nan") if newest_s is None else max(0.0, now_s - newest_s)

    figures: dict[MatrixMetric, Callable[[Link], float]] = {
        "per-flow": lambda link: link.per_flow_mbps.expected,
        "aggregate": lambda link: link.aggregate_gbps.expected,
        "rtt": lambda link: link.rtt_ms.expected,
        "fee": fee,
        "relay-gain": lambda link: link.rate_gbps(connections),
        "loss": lambda link: float("nan") if link.loss_pct is None else link.loss_pct,
        "age": age_s,
    }
    return figures[metric]


def newest_sample_s(link: Link) -> float | None:
    """Return the time of the newest sample of this very link: what is inferred has none."""
    times = [
        estimate.measured_at_s
        for estimate in (link.rtt_ms, link.per_flow_mbps, link.aggregate_gbps)
        if estimate.source == "measured" and estimate.measured_at_s is not None
    ]
    return max(times, default=None)


def _source(metric: MatrixMetric, connections: int) -> Callable[[Link], Kind] | None:
    def of_rate(link: Link) -> Kind:
        """Return the source of what binds: so many flows, or the saturated rate."""
        flows_gbps = connections * link.per_flow_mbps.expected / MBPS_PER_GBPS
        if flows_gbps < link.aggregate_gbps.expected:
            return link.per_flow_mbps.source
        return link.aggregate_gbps.source

    found: dict[MatrixMetric, Callable[[Link], Kind]] = {
        "per-flow": lambda link: link.per_flow_mbps.source,
        "aggregate": lambda link: link.aggregate_gbps.source,
        "rtt": lambda link: link.rtt_ms.source,
        "relay-gain": of_rate,
    }
    return found.get(metric)


def _relay_gain(
    direct_gbps: NDArray[np.float64], ranks: NDArray[np.int8], network: Network
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    """Return the best single relay over direct, and the least sure of the links of both."""
    import numpy as np

    from planner.transfer.all_pairs import best_relays

    egress, ingress = (np.array(caps) for caps in network.caps())
    known = np.nan_to_num(direct_gbps)
    best = best_relays(known, egress, ingress)
    capped = np.minimum(np.minimum(known, egress[:, None]), ingress[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        gain: NDArray[np.float64] = np.where(
            capped > 0, best.rate_gbps.astype(float) / capped, np.nan
        )
    np.fill_diagonal(gain, np.nan)
    relay = best.relay  # -1, none, takes any link's: the gain is 0 then, and as sure as direct is
    rows, columns = np.indices(relay.shape)
    through = np.maximum(ranks[rows, relay], ranks[relay, columns])
    return gain, np.maximum(ranks, np.where(relay < 0, ranks, through))
