"""One figure of every link of a network, computed on columns: matrices, and times of samples."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.catalogue import Catalogue
from planner.model.columns.arrays import KINDS, NO_LINK, ArrayReader
from planner.model.columns.rows import maker_of
from planner.model.estimate import DAYS_PER_YEAR, SECONDS_PER_DAY, Kind
from planner.model.link import LINK_FIGURES, Link, LinkFigure
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.model.units import MBPS_PER_GBPS
from planner.transfer.all_pairs import best_relays
from relayd.tables.matrices import UNITS, CellSources, Matrix, MatrixMetric

Floats: TypeAlias = NDArray[np.float64]
Ranks: TypeAlias = NDArray[np.int8]
"""Positions in KINDS, NO_LINK where there is none."""
Row: TypeAlias = Mapping[str, Link]
MEASURED = KINDS.index("measured")


def matrix_of(
    network: Network, catalogue: Catalogue, metric: MatrixMetric, connections: int
) -> Matrix:
    """Return one figure of every link of a network.

    Parameters
    ----------
    connections : int
        For ``relay-gain``: TCP connections that a VM opens.
    """
    regions = tuple(network.sites)
    values = np.full((len(regions), len(regions)), np.nan)
    ranks = np.full(values.shape, NO_LINK, np.int8)
    figures = _figures(metric, network, catalogue, connections)
    for src, row in network.links.items():
        at = network.index[src]
        values[at], of_row = figures(src, row)
        if of_row is not None:
            ranks[at] = of_row
    if metric == "relay-gain":
        values, ranks = _relay_gain(values, ranks, network)
    sources = None
    if metric in _ESTIMATES or metric == "relay-gain":
        ranks[np.isnan(values)] = NO_LINK
        sources = _named(ranks)
    return Matrix(metric, UNITS[metric], regions, values, network.snapshot, sources)


def measured_regions(network: Network) -> set[str]:
    """Return the regions that throughput was measured from or to."""
    regions, reader = list(network.sites), ArrayReader(network.sites)
    found = set()
    for src, row in network.links.items():
        kinds = (reader.origins(row, name).kinds for name in ("per_flow_mbps", "aggregate_gbps"))
        if len(at := np.flatnonzero(np.any([each == MEASURED for each in kinds], axis=0))):
            found |= {src, *(regions[position] for position in at)}
    return found


def newest_samples_s(row: Row, reader: ArrayReader) -> Floats:
    """Return the time of the newest sample of each link of a row itself.

    What is inferred has none: NaN there.
    """
    newest_s = np.full(len(reader), np.nan)
    for name in LINK_FIGURES:
        found = reader.origins(row, name)
        newest_s = np.fmax(newest_s, np.where(found.kinds == MEASURED, found.measured_at_s, np.nan))
    return newest_s


class Knowledge(NamedTuple):
    """What the links of a network rest on.

    Attributes
    ----------
    links : mapping
        Number of links whose throughput is of each kind.
    outlived : int
        How many of them were measured longer ago than :meth:`.Estimate.outlived` allows.
    sampled_at_s : array
        When the newest sample of each link that has any was taken, seconds since 1970 (UTC).
    """

    links: Mapping[Kind, int]
    outlived: int
    sampled_at_s: Floats


def knowledge(network: Network, now_s: float) -> Knowledge:
    """Return what the links of a network rest on."""
    reader = ArrayReader(network.sites)
    counts, outlived = np.zeros(len(KINDS), int), 0
    times_s = [np.zeros(0)]
    for row in network.links.values():
        found = reader.origins(row, "aggregate_gbps")
        counts += np.bincount(found.kinds[found.kinds != NO_LINK], minlength=len(KINDS))
        days = (now_s - found.measured_at_s) / SECONDS_PER_DAY
        is_old = days > found.memory_years * DAYS_PER_YEAR
        outlived += int((is_old & (found.kinds == MEASURED)).sum())
        newest_s = newest_samples_s(row, reader)
        times_s.append(newest_s[~np.isnan(newest_s)])
    links = dict(zip(KINDS, counts.tolist(), strict=True))
    return Knowledge(links, outlived, np.concatenate(times_s))


def pairs_by_price(network: Network, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """Yield a pair of regions with a link for each price of a source, in the order of links."""
    reader = ArrayReader(network.sites)
    for src, row in network.links.items():
        is_there = (reader.origins(row, "rtt_ms").kinds != NO_LINK).tolist()
        ends = (dst for dst in maker_of(row).names() if is_there[network.index[dst]])
        yield from ((src, dst) for dst in dict.fromkeys(map(catalogue.priced_as, ends)))


def links_to_watch(network: Network, most: int) -> tuple[list[Link], int]:
    """Return links between regions of which a link was measured or is not up, and how many are.

    Nobody has to watch what no sample touches: figures of a baseline change with its data alone.
    Where there are more than the most, those that are not up come first, then those that were
    measured; else they are sorted.
    """
    names = sorted(network.sites)
    reader = ArrayReader(names)
    rows = [network.links.get(src, {}) for src in names]
    is_there = np.array([reader.origins(row, "rtt_ms").kinds != NO_LINK for row in rows], bool)
    newest_s = np.array([newest_samples_s(row, reader) for row in rows], float)
    is_measured = ~np.isnan(newest_s)
    is_up = np.ones(is_there.shape, bool)
    at = {name: position for position, name in enumerate(names)}
    for src, dst in network.states:
        is_up[at[src], at[dst]] = False
    touched = is_there & (is_measured | ~is_up)
    regions = touched.any(axis=0) | touched.any(axis=1)
    sources, destinations = np.nonzero(is_there & regions & regions[:, None])
    known = len(sources)
    chosen = np.arange(known)
    if known > most:
        pairs = sources, destinations
        chosen = np.lexsort((~is_measured[pairs], is_up[pairs]))[:most]
    ends = zip(sources[chosen].tolist(), destinations[chosen].tolist(), strict=True)
    return [network.link(names[src], names[dst]) for src, dst in ends], known


_ESTIMATES: dict[MatrixMetric, LinkFigure] = {
    "per-flow": "per_flow_mbps",
    "aggregate": "aggregate_gbps",
    "rtt": "rtt_ms",
}


def _figures(
    metric: MatrixMetric, network: Network, catalogue: Catalogue, connections: int
) -> Callable[[str, Row], tuple[Floats, Ranks | None]]:
    """Return what gives a row of a metric, and the sources of estimates, of a region's links.

    Of ``relay-gain`` it is the rate of the direct path with so many connections.
    """
    reader, prices = ArrayReader(network.sites), CataloguePrices(catalogue, network)
    now_s = time.time()

    def estimates(_: str, row: Row) -> tuple[Floats, Ranks]:
        found = reader.estimates(row, _ESTIMATES[metric])
        return found.expected, found.kinds

    def rates(_: str, row: Row) -> tuple[Floats, Ranks]:
        flow = reader.estimates(row, "per_flow_mbps")
        whole = reader.estimates(row, "aggregate_gbps")
        flows_gbps = connections * flow.expected / MBPS_PER_GBPS
        # The source is that of what binds: so many flows, or the saturated rate.
        flows_bind = flows_gbps < whole.expected
        return (
            np.where(flows_bind, flows_gbps, whole.expected),
            np.where(flows_bind, flow.kinds, whole.kinds),
        )

    def fees(src: str, row: Row) -> tuple[Floats, None]:
        usd_per_gb = np.array(prices.usd_per_gb_out_of(src, 1.0))
        usd_per_gb[np.isinf(usd_per_gb)] = np.nan  # a provider without prices
        usd_per_gb[reader.origins(row, "aggregate_gbps").kinds == NO_LINK] = np.nan
        return usd_per_gb, None

    def ages_s(_: str, row: Row) -> tuple[Floats, None]:
        return np.maximum(0.0, now_s - newest_samples_s(row, reader)), None

    def losses_pct(_: str, row: Row) -> tuple[Floats, None]:
        return reader.loss_pct(row), None

    further = {"relay-gain": rates, "fee": fees, "age": ages_s, "loss": losses_pct}
    return estimates if metric in _ESTIMATES else further[metric]


def _named(ranks: Ranks) -> CellSources:
    names: tuple[Kind | None, ...] = (*KINDS, None)  # -1 is the last
    return tuple(tuple(map(names.__getitem__, row)) for row in ranks.tolist())


def _relay_gain(direct_gbps: Floats, ranks: Ranks, network: Network) -> tuple[Floats, Ranks]:
    """Return the best single relay over direct, and the least sure of the links of both."""
    egress, ingress = (np.array(caps) for caps in network.caps())
    known = np.nan_to_num(direct_gbps)
    best = best_relays(known, egress, ingress)
    capped = np.minimum(np.minimum(known, egress[:, None]), ingress[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        gain: Floats = np.where(capped > 0, best.rate_gbps.astype(float) / capped, np.nan)
    np.fill_diagonal(gain, np.nan)
    relay = best.relay  # -1, none, takes any link's: the gain is 0 then, and as sure as direct is
    first, second = (np.take_along_axis(ranks, relay, axis) for axis in (1, 0))
    through = np.maximum(first, second)
    return gain, np.maximum(ranks, np.where(relay < 0, ranks, through))
