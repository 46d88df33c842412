"""A store that knows what a lab is made to have."""

from __future__ import annotations

import time
from itertools import permutations
from pathlib import Path

from probes.lab.topology import GOODPUT_SHARE, Topology
from probes.metrics import Metric
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.samples.ingest import append

AN_HOUR_S = 3600.0


def true_store(
    file: Path, topology: Topology, regions: int, connections: int, data_share: float = 1.0
) -> Path:
    """Make a store with the true figures of the first regions of a lab; return its file.

    Parameters
    ----------
    connections : int
        With which rates of links and caps of VMs count as measured.
    data_share : float
        What of a cap is left to data where acknowledgements share it.
    """
    at_s, found = time.time() - AN_HOUR_S, []

    def add(src: str, dst: str, metric: Metric, value: float, count: int | None) -> None:
        found.append(Sample(src, dst, metric, value, at_s, "iperf3", count, 10.0, True))

    sites = topology.sites[:regions]
    for i, j in permutations(range(regions), 2):
        pair = sites[i].region, sites[j].region
        caps_mbps = sites[i].egress_mbps, sites[j].ingress_mbps
        most_mbps = data_share * GOODPUT_SHARE * min(caps_mbps)
        add(*pair, "rtt_ms", topology.rtt_ms[i][j], None)
        add(*pair, "per_flow_mbps", topology.expected_flow_mbps(i, j), 1)
        aggregate_mbps = min(topology.expected_aggregate_mbps(i, j), most_mbps)
        add(*pair, "aggregate_mbps", aggregate_mbps, connections)
    for site in sites:
        of_data = data_share * GOODPUT_SHARE
        vm = site.region, site.region
        add(*vm, "egress_cap_mbps", of_data * site.egress_mbps, connections)
        add(*vm, "ingress_cap_mbps", of_data * site.ingress_mbps, connections)
    with open_store(file, mode="create") as store:
        append(store, found)
        make_snapshot(store, load_catalogue())
    return file
