"""Fit the backbone of :mod:`planner.model.baseline.backbone` to pings, and print its errors.

    python -m scripts.fit_backbone ../shared/data

Prints the errors on regions left out of the fit, by survey and continent, then the figures as the
module holds them. Hubs, edges and areas are the module's own; what is fitted is the round-trip time
of each edge, what the regions of an area take to reach the backbone, and what a kilometre overland
takes there. Each stays near what distances say (ridge), so that what no ping crosses is plausible,
and none is faster than light in a fibre. Errors count relatively and absolutely: one wild ping
weighs little.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline import backbone
from planner.model.catalogue import Region
from planner.solvers.steiner import Closure, closure
from relayd.catalogue.loading import load_catalogue

SURVEYS = {"rtt_2022-04.csv": "rtt_clean_ms", "rtt_azure_2024-04.csv": "rtt_ms"}
FOLDS = 6
# Of a hub-to-hub edge, before anything is fitted: what 51 edges of 2022 had in common.
EDGE_MS, LAND_MS_PER_KM, SEA_MS_PER_KM = 3.3, 0.0180, 0.0114
ACCESS_MS, METRO_MS = 1.75, 2.35
# One standard deviation of what is fitted about what distances say.
EDGE_SPREAD, ACCESS_SPREAD_MS, LAND_SPREAD, METRO_SPREAD_MS = 0.21, 1.1, 0.0042, 1.0
ROUNDS, REWEIGHTINGS = 5, 4
LEAST_ERROR = 0.02  # below this, a ping agrees as well as pings do

Floats = NDArray[np.float64]


class Ping(NamedTuple):
    """A survey's round-trip time between two regions: the median of both directions."""

    survey: str
    a: str
    b: str
    rtt_ms: float


def pings_of(folder: Path, regions: Mapping[str, Region]) -> list[Ping]:
    """Read the surveys in a folder, as far as regions have coordinates."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for survey, column in SURVEYS.items():
        with (folder / survey).open(newline="") as file:
            for row in csv.DictReader(file):
                a, b = sorted((row["src"], row["dst"]))
                if a != b and a in regions and b in regions and row[column]:
                    found.setdefault((survey, a, b), []).append(float(row[column]))
    return [Ping(*key, float(np.median(values))) for key, values in found.items()]


class Backbone:
    """The paths that pings take, and the figures that give each its round-trip time.

    The figures in one array: access of each area, ms a kilometre of each area, each edge, and the
    metropolitan constant.
    """

    def __init__(self, pings: Sequence[Ping], regions: Mapping[str, Region]) -> None:
        self.rtt_ms = np.array([ping.rtt_ms for ping in pings])
        self.areas = list(backbone.AREAS)
        self.edges = list(backbone.edges_ms())
        self._hubs = list(backbone.HUBS)
        self._ends = [(regions[ping.a], regions[ping.b]) for ping in pings]
        sea = set(backbone.SEA_EDGES_MS.split())
        km = [backbone.great_circle_km(*backbone.HUBS[a], *backbone.HUBS[b]) for a, b in self.edges]
        edges_ms = [
            EDGE_MS + length * (SEA_MS_PER_KM if f"{a}-{b}" in sea else LAND_MS_PER_KM)
            for (a, b), length in zip(self.edges, km, strict=True)
        ]
        count = len(self.areas)
        self.usual = np.array(
            [*[ACCESS_MS] * count, *[LAND_MS_PER_KM] * count, *edges_ms, METRO_MS]
        )
        self.spread = np.array(
            [
                *[ACCESS_SPREAD_MS] * count,
                *[LAND_SPREAD] * count,
                *(EDGE_SPREAD * ms for ms in edges_ms),
                METRO_SPREAD_MS,
            ]
        )
        fibre = backbone.FIBRE_MS_PER_KM * 1.02
        self.least = np.array(
            [*[0.3] * count, *[fibre] * count, *(fibre * length for length in km), 0.4]
        )
        self._edge = {
            frozenset((self._hubs.index(a), self._hubs.index(b))): k
            for k, (a, b) in enumerate(self.edges)
        }
        ends = dict.fromkeys(end for pair in self._ends for end in pair)
        self._reached = {end: self._km_to_hubs(end) for end in ends}

    def fitted(self, weights: Floats) -> Floats:
        """Return the figures that fit the pings best, each by its weight."""
        figures = self.usual.copy()
        for _ in range(ROUNDS):
            paths = self.paths(figures)
            for _ in range(REWEIGHTINGS):
                error = np.abs(paths @ figures / self.rtt_ms - 1)
                each = weights / np.maximum(error, LEAST_ERROR) / self.rtt_ms**2
                matrix = (paths * each[:, None]).T @ paths + np.diag(self.spread**-2.0)
                right = (paths * each[:, None]).T @ self.rtt_ms + self.usual / self.spread**2
                figures = np.maximum(np.linalg.solve(matrix, right), self.least)
        return figures

    def errors(self, figures: Floats) -> Floats:
        """Return the relative error on each ping."""
        modelled: Floats = self.paths(figures) @ figures
        error: Floats = np.abs(modelled / self.rtt_ms - 1)
        return error

    def paths(self, figures: Floats) -> Floats:
        """Count the uses of each figure on each ping's path, shape (pings, figures)."""
        count = len(self.areas)
        rates = dict(zip(self.areas, figures[count : 2 * count], strict=True))
        shortest = self._shortest(figures[2 * count : -1])
        rows = np.zeros((len(self._ends), len(figures)))
        for row, (a, b) in zip(rows, self._ends, strict=True):
            km = backbone.distance_km(a, b) or 0.0
            if km < backbone.METRO_KM:
                # The kilometres of a city are charged as usual: nothing of an area is learned.
                row[-1] = 1 + km * LAND_MS_PER_KM / figures[-1]
                continue
            of_a, of_b = self.areas.index(a.area), self.areas.index(b.area)
            row[of_a] += 1
            row[of_b] += 1
            (hubs_a, km_a), (hubs_b, km_b) = self._reached[a], self._reached[b]
            through = shortest.distance[np.ix_(hubs_a, hubs_b)]
            through = (km_a * rates[a.area])[:, None] + through + km_b * rates[b.area]
            nearest_a, nearest_b = divmod(int(np.argmin(through)), len(hubs_b))
            scattered = a.area == backbone.SCATTERED_AREA and a.country != b.country
            straight_ms = km * rates[a.area] if a.area == b.area and not scattered else np.inf
            if straight_ms < through[nearest_a, nearest_b]:
                row[count + of_a] += km
                continue
            row[count + of_a] += km_a[nearest_a]
            row[count + of_b] += km_b[nearest_b]
            for edge in shortest.path(int(hubs_a[nearest_a]), int(hubs_b[nearest_b])):
                row[2 * count + self._edge[frozenset(edge)]] += 1
        return rows

    def _shortest(self, edges_ms: Floats) -> Closure:
        """Return the shortest paths between all hubs."""
        ms = np.full((len(self._hubs), len(self._hubs)), np.inf)
        for (a, b), value in zip(self.edges, edges_ms, strict=True):
            k, j = self._hubs.index(a), self._hubs.index(b)
            ms[k, j] = ms[j, k] = value
        return closure(ms)

    def _km_to_hubs(self, region: Region) -> tuple[NDArray[np.intp], Floats]:
        """Return the hubs that the region reaches overland, and km to each."""
        place = region.latitude_deg or 0.0, region.longitude_deg or 0.0
        names = backbone.AREAS[region.area].hubs
        km = np.array([backbone.great_circle_km(*place, *backbone.HUBS[hub]) for hub in names])
        hubs = np.array([self._hubs.index(hub) for hub in names])
        if region.area == backbone.SCATTERED_AREA:
            nearest = [int(km.argmin())]
            return hubs[nearest], km[nearest]
        return hubs, km


def left_out_errors(pings: Sequence[Ping], regions: Mapping[str, Region]) -> Floats:
    """Return each ping's relative error where a fit knows no ping of one of its regions.

    Regions are left out by sixths, drawn once. A ping whose ends are left out at different times
    counts with the mean of both errors.
    """
    model = Backbone(pings, regions)
    names = sorted({end for ping in pings for end in (ping.a, ping.b)})
    folds = dict(zip(names, np.random.default_rng(0).integers(0, FOLDS, len(names)), strict=True))
    total, times = np.zeros(len(pings)), np.zeros(len(pings))
    for fold in range(FOLDS):
        out = np.array([fold in {folds[ping.a], folds[ping.b]} for ping in pings])
        figures = model.fitted((~out).astype(float))
        total[out] += model.errors(figures)[out]
        times[out] += 1
    return total / times


def by_continent(
    pings: Sequence[Ping], errors: Iterable[float], regions: Mapping[str, Region]
) -> dict[tuple[str, str], tuple[int, float, float]]:
    """Return pings, median and 90th percentile of errors, by survey and continent of either end."""
    groups: dict[tuple[str, str], list[float]] = {}
    for ping, error in zip(pings, errors, strict=True):
        for continent in {"all", regions[ping.a].continent, regions[ping.b].continent}:
            groups.setdefault((ping.survey, continent), []).append(error)
    return {
        key: (len(values), float(np.median(values)), float(np.quantile(values, 0.9)))
        for key, values in sorted(groups.items())
    }


def main() -> None:
    """Print errors and figures."""
    regions = load_catalogue().regions
    pings = pings_of(Path(sys.argv[1]), regions)
    print("survey                 continent  pings  median   p90   (relative, regions left out)")
    found = by_continent(pings, left_out_errors(pings, regions), regions)
    for (survey, continent), (count, median, p90) in found.items():
        print(f"{survey:22} {continent:10} {count:5}  {median:6.1%} {p90:6.1%}")
    model = Backbone(pings, regions)
    figures = model.fitted(np.ones(len(pings)))
    count = len(model.areas)
    print("\nACCESS_MS =", dict(zip(model.areas, figures[:count].round(2).tolist(), strict=True)))
    rates = figures[count : 2 * count].round(4).tolist()
    print("LAND_MS_PER_KM =", dict(zip(model.areas, rates, strict=True)))
    print("METRO_MS =", round(float(figures[-1]), 2))
    edges = zip(model.edges, figures[2 * count : -1], strict=True)
    print(" ".join(f"{a}-{b} {ms:.1f}" for (a, b), ms in edges))


if __name__ == "__main__":
    main()
