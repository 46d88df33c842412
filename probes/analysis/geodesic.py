"""Round-trip times compared with distances on the globe, and detours that suggest wrong routing.

Light in a vacuum sets a bound that nothing beats, ``2 d / c``; in glass it takes 1.47 times as
long. What is left of a round-trip time beyond the bound is the path's length beyond the geodesic,
equipment and queues; the 2016 WAN paper (Computer Networks) finds it in bands of 0-50, 50-100,
100-150 and 200-250 ms, and one pair (EU to AP) whose RTT is near the sum of two others: traffic
that went round the other side of the world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor

from planner.model.baseline.backbone import distance_km
from planner.model.catalogue import Region
from probes.analysis.evidence import require

LIGHT_KM_PER_MS = 299.792458
"""Speed of light in a vacuum (exact, SI)."""
GLASS = 1.468
"""Group index of refraction of single-mode fibre at 1,550 nm (ITU-T G.652 fibres: 1.4682)."""
BAND_MS = 50.0
NEAR_SUM = 0.1
"""An RTT is near the sum of two others within this share of it."""
DETOUR_STRETCH = 1.25
"""A way through a third region is a detour if it is this much longer than the geodesic."""
SLOWER_THAN_USUAL = 1.3
"""Stretch over the median stretch of all pairs from which an RTT asks for an explanation."""
FEWEST_PAIRS = 5


@dataclass(frozen=True, slots=True)
class Propagation:
    """One pair's RTT and what distance explains of it.

    Attributes
    ----------
    src, dst : str
    distance_km : float
    rtt_ms : float
    bound_ms : float
        ``2 d / c``.
    band_ms : float
        Lower end of the band of 50 ms that the RTT beyond the bound is in.
    stretch : float
        RTT over that of light in a straight fibre; infinity for a distance of 0.
    possible : bool
        False where the RTT is below the bound: a wrong location or a wrong measurement.
    """

    src: str
    dst: str
    distance_km: float
    rtt_ms: float
    bound_ms: float
    band_ms: float
    stretch: float
    possible: bool


def propagation(src: Region, dst: Region, rtt_ms: float) -> Propagation | None:
    """Compare an RTT with the distance; None where a region's location is not known."""
    distance = distance_km(src, dst)
    if distance is None:
        return None
    bound_ms = 2 * distance / LIGHT_KM_PER_MS
    rest_ms = rtt_ms - bound_ms
    stretch = rtt_ms / (bound_ms * GLASS) if bound_ms > 0 else float("inf")
    return Propagation(
        src.id,
        dst.id,
        distance,
        rtt_ms,
        bound_ms,
        BAND_MS * floor(max(0.0, rest_ms) / BAND_MS),
        stretch,
        rest_ms >= 0,
    )


@dataclass(frozen=True, slots=True)
class Detour:
    """A pair whose traffic seems to take a detour through another region.

    Attributes
    ----------
    src, dst, through : str
    rtt_ms, sum_ms : float
        Of the pair, and of the two links through the third region.
    stretch : float
        Way through the third region over the geodesic of the pair.
    """

    src: str
    dst: str
    through: str
    rtt_ms: float
    sum_ms: float
    stretch: float


def detours(regions: Mapping[str, Region], rtt_ms: Mapping[tuple[str, str], float]) -> list[Detour]:
    """Return the pairs whose RTT is about the sum of two links by way of a distant region.

    Parameters
    ----------
    regions : mapping
        Id to region.
    rtt_ms : mapping
        Pairs of ids to RTT; one direction is used for both where the other is missing.

    Returns
    -------
    list of Detour
        For each pair at most one, through the region whose sum is nearest.

    Raises
    ------
    TooFewError
        If fewer than five pairs have an RTT and locations.
    """
    both = {(b, a): value for (a, b), value in rtt_ms.items()} | dict(rtt_ms)
    compared = {
        pair: found
        for pair, value in both.items()
        if (found := propagation(regions[pair[0]], regions[pair[1]], value)) is not None
        and found.bound_ms > 1
    }
    require("pairs of regions with places", len(compared) // 2, FEWEST_PAIRS)
    usual = sorted(found.stretch for found in compared.values())[len(compared) // 2]
    ids = list(dict.fromkeys(region for pair in compared for region in pair))
    found_detours = []
    for (src, dst), pair in compared.items():
        if src > dst or pair.stretch < SLOWER_THAN_USUAL * usual:
            continue
        best: Detour | None = None
        for middle in ids:
            first, second = compared.get((src, middle)), compared.get((middle, dst))
            if first is None or second is None:
                continue
            sum_ms = first.rtt_ms + second.rtt_ms
            stretch = (first.distance_km + second.distance_km) / pair.distance_km
            if stretch < DETOUR_STRETCH or abs(sum_ms - pair.rtt_ms) > NEAR_SUM * pair.rtt_ms:
                continue
            if best is None or abs(sum_ms - pair.rtt_ms) < abs(best.sum_ms - best.rtt_ms):
                best = Detour(src, dst, middle, pair.rtt_ms, sum_ms, stretch)
        if best:
            found_detours.append(best)
    return sorted(found_detours, key=lambda detour: -detour.rtt_ms)
