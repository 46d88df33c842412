"""Networks from and to numpy matrices and networkx graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from planner.model.errors import InputError
from planner.model.estimate import ADDRESS_KINDS, BOUNDS, STATED, Estimate, exactly
from planner.model.link import LINK_FIGURES, Link, Site
from planner.model.link_array import FIGURE, LINK, LinkArray, limits_of
from planner.model.units import MBPS_PER_GBPS

if TYPE_CHECKING:
    import networkx as nx

Parts: TypeAlias = tuple[dict[str, Site], LinkArray]
"""Sites and links of a network."""


def parts_of_matrices(
    regions: Sequence[str],
    aggregate_gbps: np.ndarray,
    rtt_ms: np.ndarray | float,
    per_flow_mbps: np.ndarray | None,
    egress_gbps: Sequence[float] | None,
    ingress_gbps: Sequence[float] | None,
) -> Parts:
    """Return sites and links; see :meth:`planner.model.network.Network.from_matrices`."""
    count = len(regions)
    if len(set(regions)) != count:
        raise InputError("regions", "has the same name twice", value=list(regions))
    aggregate = _checked_matrix("aggregate_gbps", aggregate_gbps, count)
    rtt = _checked_matrix("rtt_ms", np.broadcast_to(rtt_ms, (count, count)), count)
    flow = (
        aggregate * MBPS_PER_GBPS
        if per_flow_mbps is None
        else _checked_matrix("per_flow_mbps", per_flow_mbps, count)
    )
    off_diagonal = aggregate.copy()
    np.fill_diagonal(off_diagonal, 0.0)
    egress = _caps("egress_gbps", egress_gbps, off_diagonal.max(axis=1, initial=0.0))
    ingress = _caps("ingress_gbps", ingress_gbps, off_diagonal.max(axis=0, initial=0.0))
    sites = {
        region: Site(region, "", exactly(egress[i]), exactly(ingress[i]), exactly(inf))
        for i, region in enumerate(regions)
    }
    src, dst = np.nonzero((aggregate > 0) & ~np.eye(count, dtype=bool))
    rows = np.zeros(len(src), LINK)
    for name, values in zip(LINK_FIGURES, (rtt, flow, aggregate), strict=True):
        for bound in BOUNDS:
            rows[name][bound] = values[src, dst]
    caps = np.zeros(len(src), FIGURE)
    for bound in BOUNDS:
        caps[bound] = np.minimum(np.array(egress)[src], np.array(ingress)[dst])
    rows["limited_by"] = limits_of(rows["aggregate_gbps"], caps)
    rows["loss_pct"], rows["address"] = np.nan, ADDRESS_KINDS.index("public") + 1
    return sites, LinkArray.of_origins(regions, (src, dst), rows, [STATED])


def parts_of_networkx(graph: nx.DiGraph) -> Parts:
    """Return sites and links; see :meth:`planner.model.network.Network.from_networkx`."""
    regions = [str(node) for node in graph.nodes]
    position = {node: i for i, node in enumerate(graph.nodes)}
    count = len(regions)
    aggregate = np.zeros((count, count))
    rtt = np.full((count, count), 100.0)
    flow = np.zeros((count, count))
    for u, v, data in graph.edges(data=True):
        if "aggregate_gbps" not in data:
            raise InputError(
                f"edge {u} -> {v}", "has no attribute aggregate_gbps", remedy="Add it."
            )
        i, j = position[u], position[v]
        aggregate[i, j] = data["aggregate_gbps"]
        rtt[i, j] = data.get("rtt_ms", 100.0)
        flow[i, j] = data.get("per_flow_mbps", data["aggregate_gbps"] * MBPS_PER_GBPS)
    off_diagonal = aggregate.copy()
    np.fill_diagonal(off_diagonal, 0.0)
    nodes = [graph.nodes[node] for node in graph.nodes]
    return parts_of_matrices(
        regions,
        aggregate,
        rtt,
        flow,
        [data.get("egress_gbps", off_diagonal[i].max(initial=0.0)) for i, data in enumerate(nodes)],
        [
            data.get("ingress_gbps", off_diagonal[:, i].max(initial=0.0))
            for i, data in enumerate(nodes)
        ],
    )


def digraph(sites: Iterable[Site], links: Iterable[Link], **attributes: str) -> nx.DiGraph:
    """See :meth:`planner.model.network.Network.to_networkx`."""
    import networkx as nx  # takes longer to load than most plans take

    graph = nx.DiGraph(**attributes)
    for site in sites:
        graph.add_node(
            site.region,
            vm_type=site.vm_type,
            egress_gbps=site.egress_gbps.expected,
            ingress_gbps=site.ingress_gbps.expected,
            window_mb=site.window_mb.expected,
        )
    for link in links:
        figures: dict[str, float | str] = {}
        for name in ("rtt_ms", "per_flow_mbps", "aggregate_gbps"):
            estimate: Estimate = getattr(link, name)
            figures[name] = estimate.expected
            figures[f"{name}_low"] = estimate.low
            figures[f"{name}_high"] = estimate.high
            figures[f"{name}_source"] = estimate.source
        if link.loss_pct is not None:
            figures["loss_pct"] = link.loss_pct
        figures["limited_by"] = link.limited_by
        graph.add_edge(link.src, link.dst, **figures)
    return graph


def _caps(name: str, given: Sequence[float] | None, largest: np.ndarray) -> list[float]:
    """Return caps as stated, else the largest rate seen; above 0 wherever there is a link."""
    if given is None:
        return [float(cap) for cap in largest]
    caps = [float(cap) for cap in given]
    if len(caps) != len(largest):
        raise InputError(name, f"must have {len(largest)} figures, one a region", value=len(caps))
    for i, cap in enumerate(caps):
        if not cap > 0 and (largest[i] > 0 or cap != 0):
            raise InputError(f"{name}[{i}]", "must be above 0", value=cap)
    return caps


def _checked_matrix(name: str, values: np.ndarray, count: int) -> np.ndarray:
    matrix = np.array(values, dtype=float)
    if matrix.shape != (count, count):
        raise InputError(
            name,
            f"must have shape ({count}, {count}), one row and column a region",
            value=matrix.shape,
        )
    np.fill_diagonal(matrix, 0.0)
    matrix[np.isnan(matrix)] = 0.0
    wrong = np.argwhere((matrix < 0) | np.isinf(matrix))
    if len(wrong):
        i, j = (int(k) for k in wrong[0])
        raise InputError(
            f"{name}[{i}, {j}]", "must be finite and not negative", value=float(matrix[i, j])
        )
    return matrix
