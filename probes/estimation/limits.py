"""Limits on how far one source alone may move a figure from what models say of it."""

from __future__ import annotations

from collections.abc import Iterable
from math import log

import numpy as np

from planner.model.estimate import BOUNDS
from planner.model.link import Site
from planner.model.link_array import LinkArray, bounds_of
from planner.model.units import MBPS_PER_GBPS
from probes.estimation.groups import Floats
from probes.samples import Metric

FAR = 2.0
"""Times the distance of the bounds that hold 90 % of links."""
LEAST_FAR = log(2.0)
"""VMs of the next size. One in twenty links of the 2022 grids is off by this and :data:`FAR`."""
_OF_LINKS = {
    "rtt_ms": ("rtt_ms", 1.0),
    "per_flow_mbps": ("per_flow_mbps", 1.0),
    "aggregate_mbps": ("aggregate_gbps", MBPS_PER_GBPS),
}
_OF_VMS = {"egress_cap_mbps": "egress_gbps", "ingress_cap_mbps": "ingress_gbps"}


def limits(metric: Metric, sites: Iterable[Site], links: LinkArray) -> tuple[Floats, Floats] | None:
    """Return the logarithms of the least and the most that one source may claim, shape (n, n).

    Caps of VMs are on the diagonal; NaN without a model of a link, None without one of a metric.
    """
    if metric in _OF_LINKS:
        name, factor = _OF_LINKS[metric]
        low, level, high = (factor * links.whole[name][bound] for bound in BOUNDS)
    elif metric in _OF_VMS:
        caps = bounds_of(getattr(site, _OF_VMS[metric]) for site in sites)
        low, level, high = (np.diag(MBPS_PER_GBPS * caps[bound]) for bound in BOUNDS)
    else:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        low, level, high = np.log([low, level, high])
        far = np.maximum(LEAST_FAR, FAR * np.maximum(level - low, high - level))
        return level - far, level + far
