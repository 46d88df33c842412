"""Round-trip times and loss: measured, or from what is nearest to a measurement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from planner.model.baseline import baseline_rtt_ms
from planner.model.catalogue import Catalogue
from planner.model.network import Estimate
from probes.estimation.bounds import from_values, inferred_from, median
from probes.estimation.series import Pair, Samples, counted

# Relative error of a median of pings, seen when repeating it; and those of inference from the
# opposite direction and from other clouds in the same two cities. All 90th percentiles.
RTT_NOISE = 0.02
OPPOSITE_DIRECTION_ERROR = 0.05
SAME_CITIES_ERROR = 0.16
# Of a measured link between regions whose places are not known: anywhere on Earth.
RTT_OF_NO_PLACE = Estimate(5.0, 100.0, 400.0, basis="places not known")
OPPOSITE_DIRECTION = "the opposite direction"
SAME_CITIES = "other regions in"


def round_trips_ms(
    names: Sequence[str], samples: Samples, catalogue: Catalogue
) -> dict[Pair, Estimate]:
    """Return the round-trip time of each pair of regions of which anything is known."""
    own: dict[Pair, Estimate] = {}
    by_cities: dict[Pair, list[tuple[float, float]]] = defaultdict(list)
    region = catalogue.region
    for (src, dst), series in samples.of("rtt_ms").items():
        values = [(s.value, s.measured_at_s) for s in series.recent()]
        own[src, dst] = from_values(values, RTT_NOISE, "measured")
        cities = (region(src).city, region(dst).city)
        if all(cities):
            by_cities[cities].append((own[src, dst].expected, values[-1][1]))
            by_cities[cities[::-1]].append((own[src, dst].expected, values[-1][1]))
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
                found = inferred_from(own[dst, src], OPPOSITE_DIRECTION_ERROR, OPPOSITE_DIRECTION)
            elif cities in by_cities:
                found = inferred_from(
                    from_values(by_cities[cities], RTT_NOISE, "inferred"),
                    SAME_CITIES_ERROR,
                    f"{SAME_CITIES} {cities[0]} and {cities[1]}",
                )
            else:
                found = baseline_rtt_ms(region(src), region(dst))
            if found is not None:
                rtts[src, dst] = found
    return rtts


def loss_pct(pair: Pair, samples: Samples) -> float | None:
    """Return a link's packet loss, where measured."""
    series = samples.of("loss_pct").get(pair)
    answered = [s.value for s in counted("loss_pct", series, {})] if series else []
    return median(answered) if answered else None
