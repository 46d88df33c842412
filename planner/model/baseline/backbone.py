"""Round-trip time from coordinates: shortest paths over a backbone of 55 hubs.

Great-circle distance alone is 17 % off in the median, because cables follow coasts. The hubs are
landing points and exchange cities; the edges are the routes between them that carry most traffic.
The figures below are those that ``python -m scripts.fit_backbone`` finds from pings between 63
regions in April 2022 (open data of the Skyplane project, Apache-2.0) and Azure's monthly medians of
April 2024, 44 regions to five (CC BY 4.0). On regions that are left out in turn the model is off by
5 % in the median and 17 % at the 90th percentile. Hubs that neither survey has (Queretaro,
Auckland, Bangkok, Kuala Lumpur, Beijing, Shanghai) keep what their distances say.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.model.catalogue import Region

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.integer[Any]]

EARTH_RADIUS_KM = 6371.0088
P90_ERROR = 0.18
# Light in glass travels at about two thirds of c: a round trip takes 1 ms for each 100 km.
FIBRE_MS_PER_KM = 0.0100
# Regions this near share a city's own network and never reach the backbone.
METRO_KM = 120.0
METRO_MS = 2.38
ZONES_MS = 1.0
"""Between zones of a region, assumed: Google Cloud had less than 1 ms for 95 % (best practices for
region selection, 2019), and Azure aims at less than 2 (what are availability zones, 2026-02)."""
# Sums over a path in either direction are then the same number.
_DECIMALS = 6

# Latitude and longitude of each in degrees. DJI is Djibouti, CAI Suez, FUJ Fujairah, FOR Fortaleza,
# MAA Chennai, and MEX Queretaro.
_PLACES_DEG = (
    "ASH 39.04 -77.49 NYC 40.71 -74.00 CHI 41.88 -87.63 DAL 32.78 -96.80 LAX 34.05 -118.24 "
    "SJC 37.34 -121.90 SEA 47.60 -122.33 MIA 25.76 -80.19 MTL 45.50 -73.57 MEX 20.60 -100.40 "
    "DEN 39.74 -104.99 ATL 33.75 -84.39 PHX 33.45 -112.07 SLC 40.76 -111.89 LON 51.51 -0.13 "
    "FRA 50.11 8.68 MRS 43.30 5.37 LIS 38.72 -9.14 STO 59.33 18.07 AMS 52.37 4.90 PAR 48.86 "
    "2.35 MAD 40.42 -3.70 MIL 45.46 9.19 WAW 52.23 21.01 DUB 53.35 -6.26 CAI 30.00 32.50 DJI "
    "11.60 43.15 FUJ 25.10 56.30 TLV 32.08 34.78 BOM 19.08 72.88 MAA 13.08 80.27 DEL 28.61 "
    "77.21 SIN 1.35 103.82 JKT -6.21 106.85 KUL 3.14 101.69 BKK 13.76 100.50 HKG 22.32 114.17 "
    "TPE 24.05 120.52 TYO 35.68 139.69 SEL 37.57 126.98 OSA 34.69 135.50 FUK 33.59 130.40 PEK "
    "39.90 116.40 SHA 31.23 121.47 SYD -33.87 151.21 PER -31.95 115.86 MEL -37.81 144.96 AKL "
    "-36.85 174.76 GUM 13.44 144.79 FOR -3.73 -38.50 SAO -23.55 -46.63 SCL -33.45 -70.67 CPT "
    "-33.92 18.42 JNB -26.20 28.05 PTY 8.98 -79.52"
)
HUBS = {
    hub: (float(north), float(east))
    for hub, north, east in zip(*(_PLACES_DEG.split()[at::3] for at in range(3)), strict=True)
}

# Round-trip ms of each edge: first those over land, then submarine cables.
LAND_EDGES_MS = (
    "ASH-NYC 9.8 ASH-CHI 19.7 ASH-DAL 36.9 ASH-MIA 31.6 CHI-SEA 45.1 CHI-SJC 56.6 DAL-LAX 39.1 "
    "DAL-MIA 35.5 SJC-LAX 12.2 SJC-SEA 23.8 NYC-CHI 18.1 CHI-DAL 26.6 FOR-SAO 43.1 SAO-SCL 51.2 "
    "LIS-LON 32.1 CPT-JNB 26.0 LON-FRA 14.8 LON-MRS 23.0 FRA-MRS 17.7 LIS-MRS 25.2 BOM-MAA 18.0 "
    "OSA-TYO 10.6 STO-FRA 24.7 STO-AMS 23.6 AMS-LON 9.7 AMS-FRA 9.8 AMS-PAR 11.0 PAR-LON 9.5 "
    "PAR-FRA 11.9 PAR-MRS 15.2 PAR-MAD 22.2 MAD-LIS 12.4 MAD-MRS 18.0 MIL-FRA 12.6 MIL-MRS 10.3 "
    "MIL-PAR 14.8 WAW-FRA 19.3 WAW-STO 17.9 MTL-NYC 12.9 MTL-CHI 24.9 MEX-DAL 28.5 MEX-PHX 36.3 "
    "PHX-LAX 13.6 PHX-DAL 28.9 DEN-CHI 29.9 DEN-SLC 14.0 SLC-SEA 23.6 SLC-SJC 20.3 SLC-LAX 20.1 "
    "DEN-DAL 22.5 ATL-ASH 18.6 ATL-DAL 24.1 ATL-MIA 20.9 ATL-CHI 20.4 KUL-SIN 8.9 BKK-KUL 24.7 "
    "SYD-MEL 16.1 MEL-PER 52.3 FUK-OSA 11.7 BOM-DEL 24.0 DEL-MAA 34.9 PEK-SHA 22.5 SHA-HKG 25.4 "
    "PEK-HKG 38.7"
)
SEA_EDGES_MS = (
    "NYC-LON 68.0 MIA-FOR 63.5 NYC-FOR 69.5 MIA-PTY 27.0 PTY-SCL 61.4 CPT-LIS 114.8 MRS-CAI 45.2 "
    "CAI-DJI 29.8 DJI-FUJ 26.6 DJI-BOM 40.8 FUJ-BOM 23.5 MAA-SIN 32.4 SIN-HKG 32.7 HKG-TPE 11.0 "
    "TPE-TYO 30.7 HKG-TYO 44.0 SIN-TYO 67.3 SIN-PER 44.7 PER-SYD 43.5 SYD-LAX 133.6 SYD-SJC "
    "135.4 TYO-SEA 87.5 TYO-SJC 101.8 TYO-LAX 94.3 TPE-LAX 129.4 OSA-SEL 15.8 HKG-OSA 36.6 "
    "SYD-GUM 78.9 GUM-TYO 35.9 DUB-LON 8.9 DUB-NYC 66.1 JKT-SIN 13.3 JKT-PER 42.4 AKL-SYD 27.9 "
    "AKL-LAX 123.0 FUK-SEL 9.8 FUK-SHA 13.5 TLV-MRS 41.2 TLV-CAI 6.9 SHA-TYO 23.3 SHA-TPE 12.7 "
    "PEK-SEL 14.2 BKK-HKG 23.0 FUJ-CAI 38.1 PTY-LAX 54.6"
)


class Area(NamedTuple):
    """A part of the world: ms to reach the backbone, ms a kilometre overland, and hubs there."""

    access_ms: float
    land_ms_per_km: float
    hubs: tuple[str, ...]


AREAS = {
    name: Area(access_ms, land_ms_per_km, tuple(hubs.split()))
    for name, access_ms, land_ms_per_km, hubs in (
        ("NAM", 2.12, 0.0177, "ASH NYC CHI DAL LAX SJC SEA MIA MTL MEX DEN ATL PHX SLC"),
        ("SAM", 1.82, 0.0219, "FOR SAO SCL PTY"),
        ("EU", 1.18, 0.0196, "LON FRA MRS LIS STO AMS PAR MAD MIL WAW DUB"),
        ("AF", 1.66, 0.0161, "CPT JNB"),
        ("ME", 1.92, 0.0207, "CAI FUJ DJI TLV"),
        ("IN", 1.52, 0.0202, "BOM MAA DEL"),
        ("SEA", 1.59, 0.018, "SIN JKT KUL BKK"),
        ("EA", 2.06, 0.015, "HKG TPE TYO SEL OSA FUK PEK SHA"),
        ("OC", 1.62, 0.0171, "SYD PER MEL AKL"),  # Guam is for transit alone
    )
}
# Islands and a peninsula with a closed border: a region there reaches its nearest hub alone, and
# other regions of its country overland.
SCATTERED_AREA = "EA"
_ANYWHERE = Area(1.75, 0.0180, tuple(HUBS))
_AREA_NUMBERS = {area: number for number, area in enumerate(AREAS)}


def great_circle_km(
    latitudes_a_deg: ArrayLike,
    longitudes_a_deg: ArrayLike,
    latitudes_b_deg: ArrayLike,
    longitudes_b_deg: ArrayLike,
) -> Floats:
    """Return great-circle distances in km (haversine formula, mean Earth radius)."""
    a, b = np.radians(latitudes_a_deg), np.radians(latitudes_b_deg)
    apart = np.radians(np.subtract(longitudes_a_deg, longitudes_b_deg))
    half_angle = np.sin((a - b) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin(apart / 2) ** 2
    found: Floats = 2 * EARTH_RADIUS_KM * np.arcsin(np.minimum(1.0, np.sqrt(half_angle)))
    return found


def distance_km(a: Region, b: Region) -> float | None:
    """Return the distance between two regions, or None where a coordinate is missing."""
    if not (a.is_placed and b.is_placed):
        return None
    (a_deg, a_east_deg), (b_deg, b_east_deg) = (
        np.array((one.latitude_deg, one.longitude_deg), float) for one in (a, b)
    )
    return float(great_circle_km(a_deg, a_east_deg, b_deg, b_east_deg))


def rtt_ms(a: Region, b: Region) -> float | None:
    """Return the modelled round-trip time between two regions, in ms.

    None where a coordinate is missing.
    """
    if distance_km(a, b) is None:
        return None
    found, _ = rtts_ms([a, b], np.array([0]), np.array([1]))
    return float(found[0])


def rtts_ms(regions: Sequence[Region], src: Ints, dst: Ints) -> tuple[Floats, Floats]:
    """Return the modelled round-trip times of pairs of regions, in ms, and distances in km.

    What both regions take to reach the backbone, and the shortest path between; two regions of one
    area may also go straight overland, and two of one city never leave it. Zones of one region are
    :data:`ZONES_MS` apart. The model is symmetric. NaN where a coordinate is missing. `src` and
    `dst` are positions of both ends of each pair.
    """
    latitudes, longitudes = (
        np.array([(region.latitude_deg, region.longitude_deg) for region in regions], float)
        .reshape(-1, 2)
        .T
    )
    area = np.array([_AREA_NUMBERS.get(region.area, -1) for region in regions])
    models = [AREAS.get(region.area, _ANYWHERE) for region in regions]
    access_ms = np.array([model.access_ms for model in models])
    land = np.array([model.land_ms_per_km for model in models])
    to_hubs = _ms_to_hubs(models, land, latitudes, longitudes)
    through = (to_hubs[:, :, None] + _between_hubs_ms()).min(axis=1)
    distance = great_circle_km(latitudes[src], longitudes[src], latitudes[dst], longitudes[dst])
    shortest = np.full(len(src), inf)
    for hub in range(len(HUBS)):
        np.minimum(shortest, through[src, hub] + to_hubs[dst, hub], out=shortest)
    country = np.array([region.country for region in regions])
    overland = (area[src] == area[dst]) & (area[src] >= 0)
    overland &= (area[src] != _AREA_NUMBERS[SCATTERED_AREA]) | (country[src] == country[dst])
    shortest = np.where(overland, np.minimum(shortest, distance * land[src]), shortest)
    found: Floats = np.where(
        distance < METRO_KM,
        METRO_MS + _ANYWHERE.land_ms_per_km * distance,
        access_ms[src] + access_ms[dst] + shortest,
    )
    ids = np.array([region.id for region in regions])
    found[ids[src] == ids[dst]] = ZONES_MS
    rounded: Floats = np.round(found, _DECIMALS)
    return rounded, distance


@cache
def edges_ms() -> dict[tuple[str, str], float]:
    """Return the edges: both hubs, and the round-trip time in ms."""
    words = f"{LAND_EDGES_MS} {SEA_EDGES_MS}".split()
    edges = (word.partition("-") for word in words[::2])
    return {(a, b): float(ms) for (a, _, b), ms in zip(edges, words[1::2], strict=True)}


@cache
def _between_hubs_ms() -> Floats:
    """Return the shortest paths between all hubs (Floyd and Warshall)."""
    number = {hub: position for position, hub in enumerate(HUBS)}
    found = np.full((len(HUBS), len(HUBS)), inf)
    np.fill_diagonal(found, 0.0)
    for (a, b), ms in edges_ms().items():
        found[number[a], number[b]] = found[number[b], number[a]] = ms
    for hub in range(len(HUBS)):
        found = np.minimum(found, found[:, hub, None] + found[hub])
    return found


def _ms_to_hubs(
    areas: Sequence[Area], ms_per_km: Floats, latitudes: Floats, longitudes: Floats
) -> Floats:
    """Return the round-trip times from regions overland to the hubs, shape (n, hubs).

    Infinity for those that they do not reach: where scattered, all but the nearest.
    """
    hubs = np.array(list(HUBS.values()))
    reached = np.array([[hub in area.hubs for hub in HUBS] for area in areas])
    found = ms_per_km[:, None] * great_circle_km(
        latitudes[:, None], longitudes[:, None], hubs[:, 0], hubs[:, 1]
    )
    found = np.where(reached, found, inf)
    nearest = np.array([area in (AREAS[SCATTERED_AREA], _ANYWHERE) for area in areas])
    beyond = found > found.min(axis=1, keepdims=True)
    found[nearest[:, None] & beyond] = inf
    return found
