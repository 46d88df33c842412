"""Round-trip times and loss: measured, or from what is nearest to a measurement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.model.baseline.graph import BY_BACKBONE, baseline_rtt_ms
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate, Figures, Origin
from planner.model.link_array import EstimateArrays, Origins
from probes.estimation.groups import Bools, Floats, bounds_of
from probes.estimation.link_samples import RTT_NOISE, LinkSamples
from probes.estimation.origins import changed, measured, no_surer_than, of_many, own_first

# Relative error of inference from the opposite direction, and from other clouds in the same two
# cities. 90th percentiles.
OPPOSITE_DIRECTION_ERROR = 0.05
SAME_CITIES_ERROR = 0.16
# Of a measured link between regions whose places are not known: anywhere on Earth.
RTT_OF_NO_PLACE = Estimate(5.0, 100.0, 400.0, Origin("baseline", "location-unknown"))


def round_trips_ms(samples: LinkSamples, catalogue: Catalogue, origins: Origins) -> EstimateArrays:
    """Return the round-trip times of n regions, as arrays of shape (n, n)."""
    size = len(samples.names)
    counted = samples.counted("rtt_ms")
    bounds = counted.groups.bounds(counted.rows["value"], RTT_NOISE)
    own = measured(counted, samples.marks, bounds, origins)
    found = EstimateArrays.none(size, size)
    # Of two directions that were both measured, each has its own.
    found.put((counted.dst, counted.src), _opposite(own, origins))
    found.put((counted.src, counted.dst), own)
    missing = ~found.known
    np.fill_diagonal(missing, val=False)
    _by_cities(samples.names, (counted.src, counted.dst), own, found, missing, catalogue, origins)
    _by_models(samples.names, found, missing, catalogue, origins)
    return found


def _opposite(own: EstimateArrays, origins: Origins) -> EstimateArrays:
    """Return what round trips say of the opposite direction."""

    def inferred(origin: Origin) -> Origin:
        return origin._replace(kind="inferred", method="opposite-direction", figures=None)

    error = 1 + OPPOSITE_DIRECTION_ERROR
    return own.with_bounds(
        np.minimum(own.low, own.expected / error),
        own.expected,
        np.maximum(own.high, own.expected * error),
        changed(origins, own.origin, inferred),
    )


def _by_cities(
    names: Sequence[str],
    ends: tuple[np.ndarray, np.ndarray],
    own: EstimateArrays,
    found: EstimateArrays,
    missing: Bools,
    catalogue: Catalogue,
    origins: Origins,
) -> None:
    """Fill in round-trip times that others have measured between the same two cities."""
    cities = [catalogue.region(name).city for name in names]
    numbers = {city: number for number, city in enumerate(dict.fromkeys(filter(None, cities)))}
    if not numbers or not len(own.low):
        return
    city = np.array([numbers.get(name, -1) for name in cities])

    def keys(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        a, b = np.minimum(city[src], city[dst]), np.maximum(city[src], city[dst])
        return np.where(a < 0, -1, a * len(numbers) + b)

    known = keys(*ends)
    src, dst = np.nonzero(missing)
    wanted = keys(src, dst)
    wanted[~np.isin(wanted, known[known >= 0])] = -1
    order = list(numbers)
    for key in np.unique(wanted[wanted >= 0]).tolist():
        behind = own.take(np.flatnonzero(known == key))
        behind = behind.take(own_first(origins, behind.origin))
        for i in np.flatnonzero(wanted == key).tolist():
            between = order[city[src[i]]], order[city[dst[i]]]
            found.set((src[i], dst[i]), _of_cities(between, behind, origins), origins)
            missing[src[i], dst[i]] = False


def _of_cities(between: tuple[str, str], behind: EstimateArrays, origins: Origins) -> Estimate:
    """Return the round-trip time between two cities from other regions that are in them."""
    origin = of_many("same-cities", behind, origins, Figures(between=between))
    bounds = bounds_of(behind.expected.tolist(), RTT_NOISE)
    return no_surer_than(Estimate(*bounds, origin), SAME_CITIES_ERROR)


def _by_models(
    names: Sequence[str],
    found: EstimateArrays,
    missing: Bools,
    catalogue: Catalogue,
    origins: Origins,
) -> None:
    """Fill in round-trip times by the backbone between regions whose places are known."""
    regions = [catalogue.region(name) for name in names]
    placed = np.array([one.is_placed for one in regions])
    src, dst = np.nonzero(missing & placed[:, None] & placed)
    modelled: dict[tuple[int, int], tuple[float, float, float]] = {}
    for i, j in zip(src.tolist(), dst.tolist(), strict=True):
        if (j, i) in modelled:  # the model is symmetric
            modelled[i, j] = modelled[j, i]
        elif rtt := baseline_rtt_ms(regions[i], regions[j]):
            modelled[i, j] = rtt.low, rtt.expected, rtt.high
    if modelled:
        src, dst = np.array(list(modelled)).T
        low, expected, high = np.array(list(modelled.values())).T
        there = EstimateArrays.none(len(src))
        number = np.full(len(src), origins.number_of(BY_BACKBONE), np.int32)
        found.put((src, dst), there.with_bounds(low, expected, high, number))


def losses_pct(samples: LinkSamples) -> Floats:
    """Return the packet loss of n regions' links, shape (n, n); NaN where not measured."""
    found = np.full((len(samples.names), len(samples.names)), np.nan)
    counted = samples.counted("loss_pct")
    found[counted.src, counted.dst] = counted.groups.medians(counted.rows["value"])
    return found
