"""One figure of every link of a network, as arrays: matrices, and times of samples."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.fields.shared import DEFAULT_CONNECTIONS
from planner.model.catalogue import Catalogue
from planner.model.estimate import DAYS_PER_YEAR, SECONDS_PER_DAY, Kind
from planner.model.link import LINK_FIGURES, Link, LinkFigure
from planner.model.link_array import KINDS, NO_LINK, Floats, LinkArray, Records, most_gbps, taken
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, links_gbps, site_connections, usd_per_gb_or_inf
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS, S_PER_H
from planner.transfer import all_pairs
from planner.transfer.all_pairs import DIRECT, best_relays
from relayd.questions.caveats import disputed_figures
from relayd.tables.matrices import UNITS, CellSources, Matrix, MatrixMetric

Ranks: TypeAlias = NDArray[np.int8]
"""Positions in KINDS, NO_LINK where there is none."""
MEASURED = KINDS.index("measured")
PairKind: TypeAlias = Literal["relayed", "unmeasured", "unsampled", "old", "disputed"]
_ESTIMATES: dict[MatrixMetric, LinkFigure] = {
    "per-flow": "per_flow_mbps",
    "aggregate": "aggregate_gbps",
    "rtt": "rtt_ms",
}


def matrix_of(
    network: Network, catalogue: Catalogue, metric: MatrixMetric, connections: int
) -> Matrix:
    """Return one figure of every link of a network.

    Parameters
    ----------
    network : Network
    catalogue : Catalogue
        For fees.
    metric : MatrixMetric
    connections : int
        For ``relay-gain``: TCP connections that a VM opens.
    """
    links, ranks = network.links, None
    if metric in _ESTIMATES:
        name = _ESTIMATES[metric]
        values = _expected(links, name)
        ranks = links.kinds(links.whole, name)
    elif metric == "relay-gain":
        values, ranks = _relay_gain(network, connections, _in_all_gbps(network, catalogue))
    elif metric == "fee":
        prices = CataloguePrices(catalogue, network)
        values = np.array(
            [
                [usd_per_gb_or_inf(prices, src, dst, 1.0) for dst in network.sites]
                for src in network.sites
            ]
        )
        values[np.isinf(values) | ~links.present] = np.nan  # a provider without prices
    elif metric == "age":
        values = np.maximum(0.0, time.time() - newest_samples_s(links, links.whole))
    else:
        values = np.where(links.present, links.whole["loss_pct"], np.nan)
    sources = None
    if ranks is not None:
        ranks[np.isnan(values)] = NO_LINK
        sources = _named(ranks)
    regions = tuple(network.sites)
    of = metric, UNITS[metric], regions, values, network.snapshot, sources
    return Matrix(*of, catalogue)


def measured_regions(network: Network) -> set[str]:
    """Return the regions that throughput was measured from or to."""
    links = network.links
    is_measured = np.zeros(links.present.shape, bool)
    for name in ("per_flow_mbps", "aggregate_gbps"):
        is_measured |= links.kinds(links.whole, name) == MEASURED
    at = np.union1d(*np.nonzero(is_measured))
    return {links.regions[position] for position in at.tolist()}


def newest_samples_s(links: LinkArray, cells: Records) -> Floats:
    """Return the time of each record's own newest sample; NaN for inferred figures."""
    newest_s = np.full(cells.shape, np.nan)
    for name in LINK_FIGURES:
        is_measured = links.kinds(cells, name) == MEASURED
        at_s = np.where(is_measured, links.measured_at_s(cells, name), np.nan)
        newest_s = np.fmax(newest_s, at_s)
    return newest_s


def evidence_of(network: Network, now_s: float) -> dict[str, int | float | None]:
    """Summarise the evidence behind the links of a network.

    Returns
    -------
    dict
        The number of links whose throughput is of each kind; ``outlived``, those measured longer
        ago than :meth:`.Estimate.outlived` allows; ``unsampled``, those without any sample of
        their own; and ``newest_sample_s`` and ``median_sample_s`` of the newest samples of links,
        seconds since 1970 (UTC).
    """
    links = network.links
    cells = taken(links.whole, links.present)
    kinds = links.kinds(cells, "aggregate_gbps")
    counts = np.bincount(kinds, minlength=len(KINDS)).tolist()
    newest_s = newest_samples_s(links, cells)
    times_s = newest_s[~np.isnan(newest_s)]
    return {
        **dict(zip(KINDS, counts, strict=True)),
        "unsampled": len(newest_s) - len(times_s),
        "outlived": int(_outlived(links, cells, now_s).sum()),
        "newest_sample_s": float(times_s.max()) if len(times_s) else None,
        "median_sample_s": float(np.median(times_s)) if len(times_s) else None,
    }


def _outlived(links: LinkArray, cells: Records, now_s: float) -> NDArray[np.bool_]:
    """Return which throughput was measured too long ago to rely on."""
    days = (now_s - links.measured_at_s(cells, "aggregate_gbps")) / SECONDS_PER_DAY
    is_old = days > links.prior(cells, "aggregate_gbps")[:, 3] * DAYS_PER_YEAR
    found: NDArray[np.bool_] = is_old & (links.kinds(cells, "aggregate_gbps") == MEASURED)
    return found


def pairs_that_are(
    kind: PairKind, network: Network, catalogue: Catalogue, volume_gb: float, usd_per_h: float
) -> NDArray[np.bool_]:
    """Return which pairs of regions with a link deserve a look.

    Parameters
    ----------
    kind : {"relayed", "unmeasured", "unsampled", "old", "disputed"}
        ``relayed`` where a single relay may be worth more than the direct path; the others by
        throughput, ``old`` as :meth:`.Estimate.outlived` has it, ``unsampled`` and ``disputed`` by
        any figure.
    network : Network
    catalogue : Catalogue
        For fees.
    volume_gb, usd_per_h : float
        That relays are compared for.

    Returns
    -------
    array, shape (n, n)
    """
    links = network.links
    if kind == "relayed":
        worth = relay_worth(network, catalogue, volume_gb, usd_per_h)
        return np.nan_to_num(worth, posinf=0.0) > 1
    found = np.zeros(links.present.shape, bool)
    if kind == "disputed":
        at = {name: i for i, name in enumerate(network.sites)}
        pairs = [(link.src, link.dst) for link in network]
        for one in disputed_figures(network, pairs):
            found[at[one.src], at[one.dst]] = one.src != one.dst
        return found
    cells = taken(links.whole, links.present)
    if kind == "old":
        found[links.present] = _outlived(links, cells, time.time())
    elif kind == "unsampled":
        found[links.present] = np.isnan(newest_samples_s(links, cells))
    else:
        found[links.present] = links.kinds(cells, "aggregate_gbps") != MEASURED
    return found


def pairs_by_price(network: Network, catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """Yield a pair of regions with a link for each price of a source, in the order of links."""
    for src, row in network.links.items():
        alike: dict[str, str] = {}
        for dst in row:
            alike.setdefault(catalogue.priced_as(dst), dst)
        yield from ((src, dst) for dst in alike.values())


def links_to_watch(network: Network, most: int) -> tuple[list[Link], int]:
    """Return links between regions with a link that was measured or is not up, and their number.

    Regions without samples need no watching: figures of a baseline change with its data alone.
    Of more than the most, links that are not up come first, then measured ones; else they are
    sorted.
    """
    names = sorted(network.sites)
    links = network.links.among(names)
    is_measured = ~np.isnan(newest_samples_s(links, links.whole))
    is_up = np.ones(is_measured.shape, bool)
    for src, dst in network.states:
        is_up[links.index[src], links.index[dst]] = False
    touched = links.present & (is_measured | ~is_up)
    regions = np.union1d(*np.nonzero(touched))
    is_near = np.isin(np.arange(len(names)), regions)
    sources, destinations = np.nonzero(links.present & is_near & is_near[:, None])
    known = len(sources)
    chosen = np.arange(known)
    if known > most:
        pairs = sources, destinations
        chosen = np.lexsort((~is_measured[pairs], is_up[pairs]))[:most]
    ends = zip(sources[chosen].tolist(), destinations[chosen].tolist(), strict=True)
    return [network.link(names[src], names[dst]) for src, dst in ends], known


def _expected(links: LinkArray, name: LinkFigure) -> Floats:
    expected: Floats = np.where(links.present, links.whole[name]["expected"], np.nan)
    return expected


def _named(ranks: Ranks) -> CellSources:
    names: tuple[Kind | None, ...] = (*KINDS, None)  # -1 is the last
    return tuple(tuple(map(names.__getitem__, row)) for row in ranks.tolist())


def _in_all_gbps(network: Network, catalogue: Catalogue) -> Floats:
    """Return what interconnects and the connections of sites let links carry, whatever the VMs."""
    prices, regions = CataloguePrices(catalogue, network), list(network.sites)
    out, into = site_connections(prices, regions)
    flows_gbps = _expected(network.links, "per_flow_mbps") / MBPS_PER_GBPS
    with np.errstate(invalid="ignore"):  # no link, and no limit
        in_all = np.minimum(out[:, None], into) * flows_gbps
    return np.asarray(np.fmin(links_gbps(prices, regions), in_all))


def _relay_gain(network: Network, connections: int, in_all: Floats) -> tuple[Floats, Ranks]:
    """Return the best single relay over direct, and the least sure of the links of both.

    `in_all` is what links carry whatever the VMs, in Gbit/s. A link in trouble has no gain: what a
    relay is worth there is for as long as that lasts.
    """
    links = network.links
    flows_gbps = connections * _expected(links, "per_flow_mbps") / MBPS_PER_GBPS
    whole_gbps = np.where(links.present, most_gbps(links.whole, connections), np.nan)
    # The source is that of the binding limit: so many flows, or the saturated rate.
    flows_bind = flows_gbps < whole_gbps
    direct_gbps = np.where(flows_bind, flows_gbps, whole_gbps)
    of_flows, of_whole = (
        links.kinds(links.whole, name) for name in ("per_flow_mbps", "aggregate_gbps")
    )
    ranks = np.where(flows_bind, of_flows, of_whole)
    egress, ingress = network.caps()
    known = np.minimum(np.nan_to_num(direct_gbps), in_all)
    best = best_relays(known, egress, ingress)
    capped = np.minimum(np.minimum(known, egress[:, None]), ingress[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        gain: Floats = np.where(capped > 0, best.rate_gbps.astype(float) / capped, np.nan)
    np.fill_diagonal(gain, np.nan)
    gain = _without_trouble(gain, network)
    relay = best.relay  # -1, none, takes any link's: the gain is 0 then, and as sure as direct is
    first, second = (np.take_along_axis(ranks, relay, axis) for axis in (1, 0))
    through = np.maximum(first, second)
    return gain, np.maximum(ranks, np.where(relay < 0, ranks, through))


def _without_trouble(figures: Floats, network: Network) -> Floats:
    """Take out links that are down or degraded now."""
    regions = list(network.sites)
    for src, dst in network.states:
        figures[regions.index(src), regions.index(dst)] = np.nan
    return figures


def relay_worth(
    network: Network, catalogue: Catalogue, volume_gb: float, usd_per_h: float
) -> Floats:
    """Compare direct paths with the best single relays, by cost and time of a volume.

    For looking at promising pairs first: one VM a region, without the time that it takes to start.

    Parameters
    ----------
    network : Network
    catalogue : Catalogue
        For fees.
    volume_gb : float
    usd_per_h : float
        What an hour is worth; infinity where time alone counts.

    Returns
    -------
    array, shape (n, n)
        What the direct path comes to over what the relay does, fees, VMs and time together; 0,
        infinite or NaN where one of them does not exist, NaN where the link is in trouble.
    """
    links, fees = network.links, matrix_of(network, catalogue, "fee", 1).values * volume_gb
    gbps = np.where(links.present, most_gbps(links.whole, DEFAULT_CONNECTIONS), np.nan)
    prices, regions = CataloguePrices(catalogue, network), tuple(network.sites)
    vms = prices.vm_prices_usd_per_h(regions)
    gbps = np.minimum(gbps, _in_all_gbps(network, catalogue))
    rates = all_pairs.within_caps(gbps, *network.caps())
    rtt_ms = np.nan_to_num(_expected(links, "rtt_ms"))
    fees, gbps_h = np.nan_to_num(fees, nan=np.inf), volume_gb * BITS_PER_BYTE / S_PER_H
    terms = all_pairs.Terms(gbps_h, fees, vms, 0.0, usd_per_h, 0.0)
    relay, through = all_pairs.best_relays_by_value(terms, rates, rtt_ms)
    direct = all_pairs.outcomes(terms, rates, rtt_ms, np.full_like(relay, DIRECT)).value
    with np.errstate(divide="ignore", invalid="ignore"):
        return _without_trouble(direct / through, network)
