"""Round-trip times and loss: measured, or from what is nearest to a measurement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from planner.model.baseline import baseline_rtt_ms
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate, Figures, Origin
from probes.estimation.agreement import figures_with, own_first
from probes.estimation.bounds import (
    bounds_of,
    from_values,
    inferred_from,
    median,
    no_surer_than,
    origin_of_many,
)
from probes.estimation.series import RTT_NOISE, Pair, Samples, counted

# Relative error of inference from the opposite direction, and from other clouds in the same two
# cities. 90th percentiles.
OPPOSITE_DIRECTION_ERROR = 0.05
SAME_CITIES_ERROR = 0.16
# Of a measured link between regions whose places are not known: anywhere on Earth.
RTT_OF_NO_PLACE = Estimate(5.0, 100.0, 400.0, Origin("baseline", "location-unknown"))


def round_trips_ms(
    names: Sequence[str], samples: Samples, catalogue: Catalogue
) -> dict[Pair, Estimate]:
    """Return the round-trip time of each pair of regions of which anything is known."""
    own: dict[Pair, Estimate] = {}
    by_cities: dict[Pair, list[Estimate]] = defaultdict(list)
    region = catalogue.region
    for (src, dst), series in samples.of("rtt_ms").items():
        used = counted("rtt_ms", series, {})
        values = [(sample.value, sample) for sample in used.samples]
        figures = figures_with(None, used, mixed=samples.is_mixed)
        own[src, dst] = from_values(values, RTT_NOISE, figures=figures)
        cities = (region(src).city, region(dst).city)
        if all(cities):
            for ends in {cities, cities[::-1]}:
                by_cities[ends].append(own[src, dst])
    rtts: dict[Pair, Estimate] = {}
    for src in names:
        for dst in names:
            if src == dst:
                continue
            cities = (region(src).city, region(dst).city)
            found: Estimate | None
            if (src, dst) in own:
                found = own[src, dst]
            elif (dst, src) in own:
                found = inferred_from(own[dst, src], OPPOSITE_DIRECTION_ERROR, "opposite-direction")
            elif cities in by_cities:
                found = _of_cities(cities, by_cities[cities])
            else:
                found = baseline_rtt_ms(region(src), region(dst))
            if found is not None:
                rtts[src, dst] = found
    return rtts


def _of_cities(cities: Pair, measured: list[Estimate]) -> Estimate:
    """Return the round-trip time between two cities from other regions that are in them."""
    measured = own_first(measured, lambda found: found.origin)
    origins = [found.origin for found in measured]
    origin = origin_of_many("same-cities", origins, Figures(between=cities))
    bounds = bounds_of([found.expected for found in measured], RTT_NOISE)
    return no_surer_than(Estimate(*bounds, origin), SAME_CITIES_ERROR)


def loss_pct(pair: Pair, samples: Samples) -> float | None:
    """Return a link's packet loss, where measured."""
    series = samples.of("loss_pct").get(pair)
    answered = [s.value for s in counted("loss_pct", series, {}).samples] if series else []
    return median(answered) if answered else None
