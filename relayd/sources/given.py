"""Networks of one's own, with their prices: matrices, graphs and data frames."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from inspect import signature
from itertools import product
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from planner.model.catalogue import Catalogue, EgressPrice, Tier
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import CataloguePrices, usd_per_gb_or_inf
from probes.importers.graphs import directed

if TYPE_CHECKING:
    import networkx as nx

_FREE = EgressPrice("of 0 USD/GB", ("*",), ("*",), (Tier(0.0),), unconfirmed=True)
"""Where neither the caller nor the catalogue states one."""
_NAMED = 'Write {"regions": ["paris", "rome"], "aggregate_gbps": [[0, 1], [1, 0]]}.'


def given(db: Any, catalogue: Catalogue) -> tuple[Network, Catalogue]:
    """Read what :func:`relayd.open` takes as a network, and lay its prices over a catalogue.

    Raises
    ------
    InputError
        If a figure is missing or wrong.
    """
    if isinstance(db, Network):
        return db, _priced(catalogue, db, (), {})
    if hasattr(db, "columns"):
        import networkx as nx

        if "src" not in db:  # a square of rates
            return given({"aggregate_gbps": db}, catalogue)
        db = nx.from_pandas_edgelist(db, "src", "dst", True, nx.DiGraph)
    if not isinstance(db, Mapping):
        if not hasattr(db, "nodes"):
            raise InputError(
                "db", f"is a {type(db).__name__}, which names no regions", remedy=_NAMED
            )
        graph = directed(db)
        network = Network.from_networkx(graph)
        fees = graph.edges(data="usd_per_gb", default=np.nan)
        return network, _priced(catalogue, network, fees, graph.nodes(data="vm_usd_per_h"))
    figures = dict(db)
    index = getattr(figures.get("aggregate_gbps"), "index", None)
    names = figures.get("regions", None if callable(index) else index)
    if names is None:
        raise InputError("regions", "is missing", remedy=_NAMED)
    regions = figures["regions"] = list(map(str, names))
    shape = len(regions), len(regions)
    usd_per_gb, hourly = (
        _shaped(name, figures.pop(name, np.nan), size)
        for name, size in (("usd_per_gb", shape), ("vm_usd_per_h", shape[:1]))
    )
    known = [*signature(Network.from_matrices).parameters]
    for name in set(figures).difference(known):
        remedy = f"Figures are {', '.join(known)}, usd_per_gb and vm_usd_per_h."
        raise InputError(name, "is not a figure of a network", remedy=remedy)
    network = Network.from_matrices(**figures)
    pairs = product(regions, repeat=2)
    fees = ((*pair, usd) for pair, usd in zip(pairs, usd_per_gb.ravel().tolist(), strict=True))
    return network, _priced(catalogue, network, fees, dict(zip(regions, hourly, strict=True)))


def _shaped(name: str, value: object, shape: tuple[int, ...]) -> NDArray[np.float64]:
    try:
        return np.broadcast_to(np.asarray(value, float), shape)
    except (TypeError, ValueError) as error:
        remedy = f"Give one number, or an array of shape {shape}, in the order of the regions."
        raise InputError(name, f"is no array of prices: {error}", remedy=remedy) from None


def _priced(
    catalogue: Catalogue,
    network: Network,
    fees: Iterable[tuple[str, str, float]],
    hourly: Mapping[str, Any],
) -> Catalogue:
    """Return a catalogue with USD per GB of links and per hour of VMs, where they differ."""
    free = replace(catalogue, egress_prices=(_FREE, *catalogue.egress_prices))
    usual, vm_prices = CataloguePrices(free, network), dict(catalogue.vm_prices)
    link_prices = defaultdict[str, dict[str, float]](dict)
    for src, dst, usd in fees:
        if src != dst and not isnan(usd):
            link_prices[src][dst] = float(usd)
    for name, usd in dict(hourly).items():
        type_id = network.sites[name].vm_type
        if usd is not None and not isnan(usd) and usd != usual.vm_usd_per_h(name):
            vm_prices[type_id] = {**vm_prices.get(type_id, {}), name: float(usd)}
    return replace(free, link_prices=link_prices, vm_prices=vm_prices)


def graph_of(network: Network, catalogue: Catalogue) -> nx.DiGraph:
    """Return a graph with prices, USD: ``usd_per_gb`` of first tiers, ``vm_usd_per_h``."""
    graph, prices = network.to_networkx(), CataloguePrices(catalogue, network)
    for region, data in graph.nodes(data=True):
        data["vm_usd_per_h"] = prices.vm_usd_per_h(region)
    for src, dst, data in graph.edges(data=True):
        if isfinite(usd := usd_per_gb_or_inf(prices, src, dst, 1.0)):
            data["usd_per_gb"] = usd
    return graph
