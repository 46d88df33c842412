"""What links and VMs of a question of many transfers reach, at each bound of the estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner.model.estimate import BOUNDS, Bound
from planner.model.link import Link
from planner.model.network import Network
from planner.model.shared_resources import Floats, SiteResources
from planner.model.units import MBPS_PER_GBPS
from planner.model.vm_limits import PAIR_CONNECTIONS, caps_by_kind


def resources_at_bounds(
    network: Network,
    regions: Sequence[str],
    links: Mapping[tuple[int, int], Link],
    vms: Floats,
    may_relay: np.ndarray,
    connections: int,
) -> dict[Bound, SiteResources]:
    """Return what n sites share, at each bound.

    Links are as :func:`planner.model.vm_limits.link_gbps` says of one, all at once.

    Parameters
    ----------
    regions : sequence of str, length n
    links : mapping
        By position of source and destination; others are not used.
    vms : array, length n
    may_relay : array of bool, length n
    connections : int
        Of a VM, in all.
    """
    n = len(regions)
    src, dst = np.array(list(links), dtype=np.int64).reshape(-1, 2).T
    found: dict[Bound, SiteResources] = {}
    for bound in BOUNDS:
        flow_mbps = np.array([getattr(link.per_flow_mbps, bound) for link in links.values()])
        saturated = np.array([getattr(link.aggregate_gbps, bound) for link in links.values()])
        pair, carried = np.zeros((n, n)), np.zeros((n, n))
        of_pair = min(connections, PAIR_CONNECTIONS) * flow_mbps / MBPS_PER_GBPS
        pair[src, dst] = np.minimum(of_pair, saturated)
        carried[src, dst] = connections * np.minimum(flow_mbps / MBPS_PER_GBPS, saturated)
        egress, ingress, out_weights, in_weights = caps_by_kind(network, regions, bound)
        found[bound] = SiteResources(
            pair,
            carried,
            egress,
            ingress,
            vms,
            may_relay,
            egress_weights=out_weights,
            ingress_weights=in_weights,
        )
    return found
