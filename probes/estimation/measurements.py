"""Measurements of links by themselves: round-trip times, single flows, aggregates and losses.

Links without tests get a round-trip time from the nearest measurement, and one flow by the
receiver's window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple, TypeAlias

import numpy as np

from planner.model.baseline import backbone
from planner.model.baseline.flow_spreads import (
    DEVIATION_TO_90,
    FLOW_CLASSES_MS,
    FlowSpreads,
    later_test_error,
)
from planner.model.baseline.modelled_links import (
    BY_BACKBONE,
    CAP_ERROR,
    origin_of_flow,
    set_flows,
    windows_of,
)
from planner.model.estimate import ADDRESS_KINDS, Figures, Kind, Origin, RateCut
from planner.model.link import AT_LIMIT, Site
from planner.model.link_array import KINDS, Origins, Records
from planner.model.throughput import UNKNOWN_NOISE, law_of
from planner.model.units import MBPS_PER_GBPS
from probes.analysis.falls import fall_of, rate_cut, shows_lasting
from probes.analysis.ramp import fit_ramp, ramp_steps, saturates
from probes.estimation.agreement import figures_with
from probes.estimation.current_samples import PRIVATE, evaluated
from probes.estimation.estimates import (
    EstimateArray,
    are_known,
    changed_by,
    flow_caps_mbps,
    inferred_by,
    no_estimates,
    of_many,
    own_first,
    with_bounds,
)
from probes.estimation.groups import Bools, Floats, Groups, Ints, median_bounds
from probes.estimation.link_samples import CountedSamples, LinkSamples
from probes.metrics import RTT_NOISE
from probes.samples import NameTable, Samples

Pairs: TypeAlias = tuple[Ints, Ints]
"""Numbers of the sources and of the destinations of links."""

# Relative error of inference from the opposite direction, and from other clouds in the same two
# cities. 90th percentiles.
OPPOSITE_DIRECTION_ERROR = 0.05
SAME_CITIES_ERROR = 0.16


def round_trips_ms(samples: LinkSamples) -> EstimateArray:
    """Return the round-trip times of n regions, shape (n, n)."""
    size = len(samples.names)
    counted = samples.counted("rtt_ms")
    bounds = counted.groups.bounds(counted.rows["value"], RTT_NOISE)
    own = samples.measured(counted, bounds)
    found = no_estimates(size, size)
    src, dst = counted.ends
    # Of two directions that were both measured, each has its own.
    error, expected = 1 + OPPOSITE_DIRECTION_ERROR, own["expected"]
    found[dst, src] = with_bounds(
        own,
        np.minimum(own["low"], expected / error),
        expected,
        np.maximum(own["high"], expected * error),
        inferred_by("opposite-direction", samples.origins, own["origin"]),
    )
    found[src, dst] = own
    missing = ~are_known(found) & ~np.eye(size, dtype=bool)
    _by_cities(samples, (src, dst), own, found, missing)
    _by_models(samples, found, missing & ~are_known(found))
    return found


def _by_cities(
    samples: LinkSamples, ends: Pairs, own: EstimateArray, found: EstimateArray, missing: Bools
) -> None:
    """Fill in round-trip times that others have measured between the same two cities."""
    cities = [samples.catalogue.region(name).city for name in samples.names]
    city, error = NameTable().numbers(cities).astype(np.int64), 1 + SAME_CITIES_ERROR
    least, most = np.minimum(city[:, None], city), np.maximum(city[:, None], city)
    key = np.where(least > 0, least * (len(cities) + 1) + most, 0)
    known, wanted = key[ends], np.where(missing, key, 0)
    for one in np.unique(wanted[np.isin(wanted, known[known > 0])]).tolist():
        behind = own[known == one]
        behind = behind[own_first(samples.origins, behind["origin"])]
        low, middle, high = median_bounds(behind["expected"], RTT_NOISE)
        bounds = min(low, middle / error), middle, max(high, middle * error)
        for i, j in np.argwhere(wanted == one).tolist():
            figures = Figures(between=(cities[i], cities[j]))
            inferred = of_many("same-cities", behind, samples.origins, figures)
            found[i, j] = with_bounds(inferred, *bounds)[0]


def _by_models(samples: LinkSamples, found: EstimateArray, missing: Bools) -> None:
    """Fill in round-trip times by the backbone between regions whose places are known."""
    regions = [samples.catalogue.region(name) for name in samples.names]
    placed = np.array([one.is_placed for one in regions])
    src, dst = np.nonzero(missing & placed[:, None] & placed)
    expected, distance_km = backbone.rtts_ms(regions, src, dst)
    error = 1 + backbone.P90_ERROR
    least = np.maximum(backbone.FIBRE_MS_PER_KM * distance_km, expected / error)
    bounds = np.minimum(expected, least), expected, expected * error
    number = samples.origins.number_of(BY_BACKBONE)
    found[src, dst] = with_bounds(no_estimates(len(src)), *bounds, number)


def losses_pct(samples: LinkSamples) -> Floats:
    """Return the packet loss of n regions' links, shape (n, n); NaN where not measured."""
    found = np.full((len(samples.names), len(samples.names)), np.nan)
    counted = samples.counted("loss_pct")
    found[counted.ends] = counted.groups.medians(counted.rows["value"])
    return found


class MeasuredFlows(NamedTuple):
    """The ends of links whose single flows were measured, and the steady throughput of one flow."""

    pairs: Pairs
    mbps: EstimateArray


def measured_flows(samples: LinkSamples) -> MeasuredFlows:
    """Return the links whose single flows were measured."""
    counted = samples.counted("per_flow_mbps")
    groups = counted.groups
    values: Floats = counted.rows["steady"]
    middles = groups.medians(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviations = DEVIATION_TO_90 * groups.deviations(values, middles)
        relative = np.where(middles > 0, deviations / middles, 0.0)
    errors = 1 + later_test_error(groups.counts, relative)
    bounds = _with_stalls((middles / errors, middles, middles * errors), samples, counted)
    return MeasuredFlows(counted.ends, samples.measured(counted, bounds))


def _with_stalls(
    bounds: tuple[Floats, Floats, Floats], samples: LinkSamples, counted: CountedSamples
) -> tuple[Floats, Floats, Floats]:
    """Lower the low bounds of links that stalled: others of their hours may hold more stalls.

    Tests state the error of their bytes over time (:class:`.SteadyState`); a link's largest counts.
    """
    low, middle, high = bounds
    stated = np.nan_to_num(samples.stated("mean_error"))[counted.rows["detail"]]
    error = DEVIATION_TO_90 * counted.groups.reduced(np.maximum, stated)
    with np.errstate(divide="ignore", invalid="ignore"):
        lowered = middle * np.exp(-np.hypot(np.log(middle / low), error))
    return np.where(error > 0, lowered, low), middle, high


def flows_of_windows(
    sites: Mapping[str, Site],
    samples: LinkSamples,
    rtts_ms: EstimateArray,
    flows: MeasuredFlows,
    teaches: Bools,
) -> EstimateArray:
    """Return one flow's throughput on all links by windows and caps, in Mbit/s, shape (n, n).

    Windows are calibrated. Measured flows show the spread of tests about the rates that windows
    promise, on the links that teach, which have shape (n, n).
    """
    listed, origins = list(sites.values()), samples.origins
    caps_mbps, vm_caps_mbps = flow_caps_mbps(listed, samples.catalogue)
    rtt, found = rtts_ms["expected"], no_estimates(*rtts_ms.shape)
    src, dst = np.indices(rtt.shape).reshape(2, *rtt.shape)
    at_cap = set_flows(found, windows_of(listed, (src, dst)), rtts_ms, caps_mbps)
    capped = found["expected"] > vm_caps_mbps
    promised = np.where(teaches, np.minimum(found["expected"], vm_caps_mbps), np.nan)
    spreads = _spreads(listed, rtt, promised, flows, origins)
    for number, site in enumerate(listed):
        # The bounds of a window that was not seen hold all tests.
        if site.window_mb.source != "baseline":
            _widen(found[:, number], spreads, site.vm_type, rtt[:, number])
    # The VMs' caps hold for one flow as for many.
    cap, of_capped = vm_caps_mbps[capped], found[capped]
    of_capped["low"] = np.minimum(of_capped["low"], cap * (1 - CAP_ERROR))
    of_capped["high"] = np.maximum(cap, np.minimum(of_capped["high"], cap * (1 + CAP_ERROR)))
    of_capped["expected"] = cap
    found[capped] = of_capped
    found["origin"] = _origins_of_flows(listed, rtts_ms, origins)
    found["origin"][at_cap] = origins.held_to("flow-cap", found["origin"][at_cap])
    found["origin"][capped] = origins.held_to("vm-caps", found["origin"][capped])
    return found


def _spreads(
    sites: list[Site], rtts_ms: Floats, promised: Floats, flows: MeasuredFlows, origins: Origins
) -> FlowSpreads:
    """Return the spreads of measured flows about the rates that windows promise."""
    pairs, mbps = flows
    chosen = own_first(origins, mbps["origin"]) if len(mbps) else np.zeros(0, np.bool_)
    chosen &= ~np.isnan(promised[pairs]) & (mbps["expected"] > 0)
    ratios = np.log(mbps["expected"][chosen] / promised[pairs][chosen])
    types = [sites[number].vm_type for number in pairs[1][chosen].tolist()]
    return FlowSpreads(zip(types, rtts_ms[pairs][chosen].tolist(), ratios.tolist(), strict=True))


def _widen(flows: Records, spreads: FlowSpreads, vm_type: str, rtts_ms: Floats) -> None:
    """Widen the bounds of flows into a site by the spread of tests about windows."""
    classes = np.searchsorted(FLOW_CLASSES_MS, rtts_ms, side="right")
    for place in range(len(FLOW_CLASSES_MS) + 1):
        at = np.flatnonzero((classes == place) & ~np.isnan(rtts_ms))
        if not len(at):
            continue
        spread, expected = spreads.of(vm_type, float(rtts_ms[at[0]])), flows["expected"][at]
        below = np.hypot(np.log(expected / flows["low"][at]), spread.below)
        above = np.hypot(np.log(flows["high"][at] / expected), spread.above)
        flows["low"][at], flows["high"][at] = expected * np.exp(-below), expected * np.exp(above)


def _origins_of_flows(sites: list[Site], rtts_ms: EstimateArray, origins: Origins) -> Ints:
    """Return the origin of each flow by the sources of its window and its round-trip time."""
    of_window = np.array([KINDS.index(site.window_mb.source) for site in sites])
    of_rtt = np.array([KINDS.index(one.kind) for one in origins.all])[rtts_ms["origin"]]

    def number_of(window: Kind, rtt: Kind) -> int:
        modelled = window == "baseline" and rtt != "measured"
        origin = origin_of_flow("baseline" if modelled else "inferred", window, rtt)
        return origins.number_of(origin)

    made = np.array([[number_of(window, rtt) for rtt in KINDS] for window in KINDS])
    found: Ints = made[of_window, of_rtt]
    return found


SHORT_S = 10.0
"""A test from a cold start that is no longer than this may go wrong."""


@dataclass(frozen=True, slots=True)
class AggregateTests:
    """The tests of m links that count, in Gbit/s, corrected for slow start."""

    pairs: Pairs  # numbers of the ends of each link
    alone: EstimateArray  # estimates from the tests alone
    values: Floats  # of all tests
    groups: Groups  # those of each link
    connections: Ints  # 0 where they are not known
    is_lone: Bools  # whether there is one test alone, and it is short and from a cold start
    fallen: Samples  # those whose rate fell, of links whose rate falls


def aggregate_tests(samples: LinkSamples) -> AggregateTests:
    """Return the tests of each link that was measured."""
    counted = samples.counted("aggregate_mbps")
    cuts, fallen, kept = _cuts(samples, counted)
    counted = counted.where(kept)
    groups, first = counted.groups, counted.rows[counted.groups.first]
    values: Floats = counted.rows["steady"] / MBPS_PER_GBPS
    connections = first["connections"].astype(np.int64)
    bounds = groups.bounds(values, _noises(samples, counted))
    alone = samples.measured(counted, _with_stalls(bounds, samples, counted))
    together = np.nan_to_num(samples.stated("vms"), nan=1.0)[counted.rows["detail"]]
    kept_rate = values >= AT_LIMIT * groups.spread(bounds[1])
    vms = groups.reduced(np.maximum, np.where(kept_rate, together, 1.0)).astype(np.int64)
    achieved = groups.reduced(np.logical_and, samples.are_transfers(counted.rows))
    falls = [None, *cuts.values()]
    fall = np.zeros(len(first), np.int64)
    fall[list(cuts)] = np.arange(1, len(falls))
    told = np.stack((connections, vms, fall, achieved), axis=1)
    cases, number = np.unique(told, axis=0, return_inverse=True)

    def origin_of(one: Origin, case: int) -> Origin:
        count, tried, fall, by_transfers = cases[case].tolist()
        figures = Figures(count or None, vms=tried if tried > 1 else None, rate_cut=falls[fall])
        return one._replace(
            method="median-of-transfers" if by_transfers else one.method,
            figures=figures_with(figures, one.figures) if any(figures) else one.figures,
        )

    alone["origin"] = changed_by(samples.origins, alone["origin"], number.ravel(), origin_of)
    short = ~first["warmed_up"] & (first["duration_s"] > 0) & (first["duration_s"] <= SHORT_S)
    # Two runs that agreed began a new level: a test that remains of them is no odd one.
    is_lone = (groups.counts == 1) & short & ~first["new_level"]
    return AggregateTests(counted.ends, alone, values, groups, connections, is_lone, fallen)


def _cuts(
    samples: LinkSamples, counted: CountedSamples
) -> tuple[dict[int, RateCut], Samples, Bools]:
    """Return the falls of links' rates, the tests that show them, and a mask of lasting rates."""
    cuts: dict[int, RateCut] = {}
    fallen: list[int] = []
    kept = np.ones(len(counted.rows), np.bool_)
    for number in _links_with(samples, counted, '"findings"').tolist():
        link = counted.groups.part(number)
        places = counted.rows["place"][link].tolist()
        used = list(samples.samples[places])
        with evaluated(samples.samples, places[0]):
            if cut := rate_cut(used):
                cuts[number] = cut
                fallen += [at for at, sample in zip(places, used, strict=True) if fall_of(sample)]
                kept[link] = [shows_lasting(sample, cut) for sample in used]
    return cuts, samples.samples[fallen], kept


def _links_with(samples: LinkSamples, counted: CountedSamples, word: str) -> Ints:
    """Return the numbers of links with a word in a detail."""
    has = np.array([word in detail for detail in samples.samples.details], np.bool_)
    shown = counted.groups.reduced(np.logical_or, has[counted.rows["detail"]])
    found: Ints = np.flatnonzero(shown)
    return found


def _noises(samples: LinkSamples, counted: CountedSamples) -> Floats:
    """Return the noise of one test about the level of its link."""
    providers = NameTable()
    number = providers.numbers(name.partition(":")[0] for name in samples.names)
    src, dst = counted.ends
    private = counted.groups.reduced(np.minimum, counted.rows["address"]) == PRIVATE
    laws = [[[law_of(a, b, kind) for kind in ADDRESS_KINDS] for b in providers] for a in providers]
    noises = [[[law.noise if law else UNKNOWN_NOISE for law in c] for c in b] for b in laws]
    found: Floats = np.array(noises)[number[src], number[dst], private.astype(np.int64)]
    return found


def ramped_links(samples: LinkSamples) -> tuple[Pairs, Pairs]:
    """Return the links whose ramp has shown what limits them.

    On the first, more connections brought nothing; on the others the rate grew with the connections
    to the end: each of them is slow. The steps of a ramp are in the detail of its sample; samples
    with different numbers of connections are steps, too, such as those of plans that were run.
    """
    recent = samples.recent("aggregate_mbps")
    recent = recent.where(~samples.are_transfers(recent.rows))
    # Most links were tested with one number of connections, which shows nothing.
    steps = np.flatnonzero(recent.groups.differ(recent.rows["connections"]))
    found: dict[bool | None, list[int]] = {True: [], False: [], None: []}
    for number in np.union1d(steps, _links_with(samples, recent, "ramp")).tolist():
        link = recent.groups.part(number)
        with evaluated(samples.samples, recent.rows["place"][link.start]):
            found[_is_saturated(samples.of_reference(recent.rows[link]))].append(number)
    src, dst = recent.ends
    saturated, growing = ((src[links], dst[links]) for links in (found[True], found[False]))
    return saturated, growing


def _is_saturated(tests: Samples) -> bool | None:
    """Return whether more connections brought nothing; None where they brought something."""
    steps: dict[int, list[float]] = defaultdict(list)
    for sample in tests:
        if sample.connections:
            steps[sample.connections].append(sample.value)
        if "ramp" in sample.detail:
            for count, mbps in ramp_steps(sample.read_detail()).items():
                steps[count].append(mbps)
    rates = {count: median(values) for count, values in steps.items()}
    if saturates(rates):
        return True
    return False if len(rates) > 1 and not fit_ramp(rates).saturated else None
