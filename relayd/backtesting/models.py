"""What is believed of a history's regions without its measurements of links."""

from __future__ import annotations

import numpy as np

from planner.model.baseline.graph import baseline_rtt_ms, flow_cap_gbps
from planner.model.catalogue import Catalogue
from planner.transfer.all_pairs import Floats, RateBounds
from probes.estimation.bundles import Windows
from probes.estimation.history_steps import Models
from probes.estimation.laws_of_pairs import LawsOfPairs
from probes.estimation.rolling import RollingBounds
from probes.estimation.round_trips import RTT_OF_NO_PLACE
from relayd.backtesting.history import ReplayHistory


def models_of(history: ReplayHistory, catalogue: Catalogue, connections: int) -> Models:
    """Return laws, caps, windows and round-trip times of a history's regions."""
    regions, sites = history.regions, history.sites
    count = len(regions)
    rtt_ms, rtt_error = np.ones((count, count)), np.zeros((count, count))
    for i, src in enumerate(regions):
        for j, dst in enumerate(regions):
            if i != j:
                modelled = baseline_rtt_ms(catalogue.region(src), catalogue.region(dst))
                modelled = modelled or RTT_OF_NO_PLACE
                rtt_ms[i, j] = modelled.expected
                rtt_error[i, j] = modelled.high / modelled.expected - 1

    def of_sites(name: str) -> tuple[Floats, Floats, Floats]:
        found = [getattr(sites[region], name) for region in regions]
        low, expected, high = (
            np.array([getattr(estimate, bound) for estimate in found])
            for bound in ("low", "expected", "high")
        )
        return low, expected, high

    return Models(
        RateBounds(*of_sites("egress_gbps")),
        RateBounds(*of_sites("ingress_gbps")),
        rtt_ms,
        rtt_error,
        Windows(
            RollingBounds(*of_sites("window_mb")),
            np.array([flow_cap_gbps(sites[region], catalogue) for region in regions]),
        ),
        LawsOfPairs(regions),
        connections,
    )
