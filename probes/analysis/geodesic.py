"""Round-trip times compared with distances on the globe, and detours that suggest wrong routing.

Light in a vacuum sets a bound that nothing beats, ``2 d / c``; in glass it takes 1.47 times as
long. The rest of a round-trip time comes from the path's length beyond the geodesic, from
equipment and from queues; the 2016 WAN paper (Computer Networks) finds it in bands of 0-50, 50-100,
100-150 and 200-250 ms, and one pair (EU to AP) whose RTT is near the sum of two others: traffic
that went round the other side of the world.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from planner.model.baseline.backbone import distance_km
from planner.model.catalogue import Region
from probes.analysis.evidence import Record, require

LIGHT_KM_PER_MS = 299.792458
"""Speed of light in a vacuum (exact, SI)."""
GLASS = 1.468
"""Group index of refraction of single-mode fibre at 1,550 nm (ITU-T G.652 fibres: 1.4682)."""
NEAR_SUM = 0.1
"""An RTT is near the sum of two others within this share of it."""
DETOUR_STRETCH = 1.25
"""A way through a third region is a detour if it is this much longer than the geodesic."""
SLOWER_THAN_USUAL = 1.3
"""Stretch over the median stretch of all pairs from which an RTT asks for an explanation."""
FEWEST_PAIRS = 5


def propagation(src: Region, dst: Region, rtt_ms: float) -> Record | None:
    """Compare an RTT with the distance; None where a region's location is not known.

    Returns ``distance_km``; the round trip of light in a vacuum, ``vacuum_ms``, and in a straight
    fibre, ``fibre_ms``; ``stretch``, the RTT over that in a fibre, None for a distance of 0;
    ``possible``, False where the RTT is below that in a vacuum: a wrong location or a wrong
    measurement.
    """
    distance = distance_km(src, dst)
    if distance is None:
        return None
    vacuum_ms = 2 * distance / LIGHT_KM_PER_MS
    return {
        "distance_km": distance,
        "vacuum_ms": vacuum_ms,
        "fibre_ms": vacuum_ms * GLASS,
        "stretch": rtt_ms / (vacuum_ms * GLASS) if vacuum_ms > 0 else None,
        "possible": rtt_ms >= vacuum_ms,
    }


def detours(regions: Mapping[str, Region], rtt_ms: Mapping[tuple[str, str], float]) -> list[Record]:
    """Return the pairs whose RTT is about the sum of two links by way of a distant region.

    One direction is used for both where the other is missing; five pairs with places are needed.
    For each pair at most one, ``through`` the region whose sum is nearest, the slowest first:
    ``src``, ``dst``, ``rtt_ms`` of the pair, ``sum_ms`` of the two links, and ``stretch``, the way
    through the third region over the geodesic of the pair.
    """
    names = list(dict.fromkeys(region for pair in rtt_ms for region in pair))
    place = {name: at for at, name in enumerate(names)}
    km = np.array([[distance_km(regions[a], regions[b]) or 0.0 for b in names] for a in names])
    km = km.reshape(len(names), len(names))
    rtts = np.full(km.shape, np.nan)
    for (src, dst), value in rtt_ms.items():
        rtts[place[src], place[dst]] = value
    rtts = np.where(np.isnan(rtts), rtts.T, rtts)
    rtts[2 * km / LIGHT_KM_PER_MS <= 1] = np.nan
    known = np.isfinite(rtts)
    require("pairs of regions with places", int(known.sum()) // 2, FEWEST_PAIRS)
    over_distance = np.where(known, rtts, 0.0) / np.where(known, km, 1.0)
    usual = np.sort(over_distance[known])[known.sum() // 2]
    found = []
    for at, to in np.argwhere(known & (over_distance >= SLOWER_THAN_USUAL * usual)).tolist():
        rtt, sums = rtts[at, to], rtts[at] + rtts[:, to]
        stretch = (km[at] + km[:, to]) / km[at, to]
        near = (stretch >= DETOUR_STRETCH) & (abs(sums - rtt) <= NEAR_SUM * rtt)
        if names[at] > names[to] or not near.any():
            continue
        via = int(np.where(near, abs(sums - rtt), np.inf).argmin())
        pair = {"src": names[at], "dst": names[to], "through": names[via], "rtt_ms": float(rtt)}
        found.append(pair | {"sum_ms": float(sums[via]), "stretch": float(stretch[via])})
    return sorted(found, key=lambda detour: -detour["rtt_ms"])
