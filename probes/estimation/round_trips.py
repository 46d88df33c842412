"""Round-trip times and loss: measured, or inferred from the nearest measurement."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.model.baseline import backbone
from planner.model.baseline.modelled_links import BY_BACKBONE
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate, Figures, Origin
from planner.model.link_array import Origins
from probes.estimation.estimates import (
    EstimateArray,
    are_known,
    changed,
    estimates_of,
    measured,
    no_estimates,
    no_surer_than,
    of_many,
    own_first,
    with_bounds,
)
from probes.estimation.groups import Bools, Floats, Ints, median_bounds
from probes.estimation.link_samples import RTT_NOISE, LinkSamples

# Relative error of inference from the opposite direction, and from other clouds in the same two
# cities. 90th percentiles.
OPPOSITE_DIRECTION_ERROR = 0.05
SAME_CITIES_ERROR = 0.16
# Of a measured link between regions whose places are not known: anywhere on Earth.
RTT_OF_NO_PLACE = Estimate(5.0, 100.0, 400.0, Origin("baseline", "location-unknown"))


def round_trips_ms(samples: LinkSamples, catalogue: Catalogue, origins: Origins) -> EstimateArray:
    """Return the round-trip times of n regions, shape (n, n)."""
    size = len(samples.names)
    counted = samples.counted("rtt_ms")
    bounds = counted.groups.bounds(counted.rows["value"], RTT_NOISE)
    own = measured(counted, samples.marks, bounds, origins)
    found = no_estimates(size, size)
    src, dst = counted.ends
    # Of two directions that were both measured, each has its own.
    found[dst, src] = _opposite(own, origins)
    found[src, dst] = own
    missing = ~are_known(found) & ~np.eye(size, dtype=bool)
    _by_cities(samples.names, (src, dst), own, found, missing, catalogue, origins)
    _by_models(samples.names, found, missing, catalogue, origins)
    return found


def _opposite(own: EstimateArray, origins: Origins) -> EstimateArray:
    """Return estimates of the opposite direction from round trips."""
    error, expected = 1 + OPPOSITE_DIRECTION_ERROR, own["expected"]
    return with_bounds(
        own,
        np.minimum(own["low"], expected / error),
        expected,
        np.maximum(own["high"], expected * error),
        changed(
            origins,
            own["origin"],
            lambda one: one._replace(kind="inferred", method="opposite-direction", figures=None),
        ),
    )


def _by_cities(
    names: Sequence[str],
    ends: tuple[Ints, Ints],
    own: EstimateArray,
    found: EstimateArray,
    missing: Bools,
    catalogue: Catalogue,
    origins: Origins,
) -> None:
    """Fill in round-trip times that others have measured between the same two cities."""
    cities = [catalogue.region(name).city for name in names]
    order = list(dict.fromkeys(filter(None, cities)))
    city = np.array([order.index(name) if name else -1 for name in cities])

    def keys(src: Ints, dst: Ints) -> Ints:
        a, b = np.minimum(city[src], city[dst]), np.maximum(city[src], city[dst])
        return np.where(a < 0, -1, a * len(order) + b)

    known = keys(*ends)
    src, dst = np.nonzero(missing)
    wanted = keys(src, dst)
    for key in np.unique(wanted[np.isin(wanted, known[known >= 0])]).tolist():
        behind = own[known == key]
        behind = behind[own_first(origins, behind["origin"])]
        bounds = median_bounds(behind["expected"], RTT_NOISE)
        at = wanted == key
        for i, j in zip(src[at].tolist(), dst[at].tolist(), strict=True):
            figures = Figures(between=(order[city[i]], order[city[j]]))
            origin = of_many("same-cities", behind, origins, figures)
            one = no_surer_than(Estimate(*bounds, origin), SAME_CITIES_ERROR)
            found[i, j] = estimates_of([one], origins)[0]
            missing[i, j] = False


def _by_models(
    names: Sequence[str],
    found: EstimateArray,
    missing: Bools,
    catalogue: Catalogue,
    origins: Origins,
) -> None:
    """Fill in round-trip times by the backbone between regions whose places are known."""
    regions = [catalogue.region(name) for name in names]
    placed = np.array([one.is_placed for one in regions])
    src, dst = np.nonzero(missing & placed[:, None] & placed)
    expected, distance_km = backbone.rtts_ms(regions, src, dst)
    error = 1 + backbone.P90_ERROR
    least = np.maximum(backbone.FIBRE_MS_PER_KM * distance_km, expected / error)
    bounds = np.minimum(expected, least), expected, expected * error
    number = origins.number_of(BY_BACKBONE)
    found[src, dst] = with_bounds(no_estimates(len(src)), *bounds, number)


def losses_pct(samples: LinkSamples) -> Floats:
    """Return the packet loss of n regions' links, shape (n, n); NaN where not measured."""
    found = np.full((len(samples.names), len(samples.names)), np.nan)
    counted = samples.counted("loss_pct")
    found[counted.ends] = counted.groups.medians(counted.rows["value"])
    return found
