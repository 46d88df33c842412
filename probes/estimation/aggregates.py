"""Tests of the aggregate throughput of many connections of one VM pair."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

import numpy as np

from planner.model.estimate import ADDRESS_KINDS, Figures, RateCut
from planner.model.link_array import Origins
from planner.model.throughput import UNKNOWN_NOISE, law_of
from planner.model.units import MBPS_PER_GBPS
from probes.analysis.falls import fall_of, rate_cut, shows_lasting
from probes.analysis.ramp import ramp_steps, saturates
from probes.estimation.current_samples import PRIVATE, evaluated
from probes.estimation.estimates import EstimateArray, measured
from probes.estimation.flows import Pairs
from probes.estimation.groups import Bools, Floats, Groups, Ints
from probes.estimation.link_samples import CountedSamples, LinkSamples, number_of, steady_values
from probes.samples import Samples

SHORT_S = 10.0
"""A test from a cold start that is no longer than this may go wrong."""


@dataclass(frozen=True, slots=True)
class AggregateTests:
    """The tests of m links that count, in Gbit/s, corrected for slow start.

    Attributes
    ----------
    pairs : (array, array)
        Numbers of the ends of each link.
    alone : EstimateArray
        Estimates from the tests alone.
    values : array
        Of all tests.
    groups : Groups
        Those of each link.
    connections : array of int
        0 where they are not known.
    is_lone : array of bool
        Whether there is one test alone, and it is short and from a cold start.
    fallen : Samples
        Those whose rate fell, of links whose rate falls.
    """

    pairs: Pairs
    alone: EstimateArray
    values: Floats
    groups: Groups
    connections: Ints
    is_lone: Bools
    fallen: Samples


def aggregate_tests(samples: LinkSamples, rtts_ms: Floats, origins: Origins) -> AggregateTests:
    """Return the tests of each link that was measured.

    Parameters
    ----------
    samples : LinkSamples
        Of n regions.
    rtts_ms : array, shape (n, n)
    origins : Origins
    """
    counted = samples.counted("aggregate_mbps", rtts_ms)
    cuts, fallen, counted = _with_cuts(samples, counted)
    groups, first = counted.groups, counted.rows[counted.groups.first]
    values = steady_values(counted.rows, "aggregate_mbps", rtts_ms) / MBPS_PER_GBPS
    connections = first["connections"].astype(np.int64)
    ends = counted.ends
    # Those with a cut have figures of their own.
    extra = connections.copy()
    width = int(connections.max(initial=0)) + 1
    listed = list(cuts)
    for number, pair in enumerate(listed, 1):
        extra[(ends[0] == pair[0]) & (ends[1] == pair[1])] += number * width

    def figures_of(more: int) -> Figures | None:
        number, opened = divmod(more, width)
        figures = Figures(connections=opened) if opened else None
        if number:
            figures = (figures or Figures())._replace(rate_cut=cuts[listed[number - 1]])
        return figures

    bounds = groups.bounds(values, _noises(samples, counted))
    alone = measured(counted, samples.marks, bounds, origins, extra, figures_of)
    short = ~first["warmed_up"] & (first["duration_s"] > 0) & (first["duration_s"] <= SHORT_S)
    # Two runs that agreed began a new level: a test that remains of them is no odd one.
    is_lone = (groups.counts == 1) & short & ~first["new_level"]
    return AggregateTests(ends, alone, values, groups, connections, is_lone, fallen)


def _with_cuts(
    samples: LinkSamples, counted: CountedSamples
) -> tuple[dict[tuple[int, int], RateCut], Samples, CountedSamples]:
    """Return the falls of links' rates, the tests that show them, and those of lasting rates."""
    cuts: dict[tuple[int, int], RateCut] = {}
    fallen: list[int] = []
    kept = np.ones(len(counted.rows), np.bool_)
    for link in _links_with(samples, counted, '"findings"'):
        places = counted.places[link].tolist()
        used = list(samples.samples[places])
        with evaluated(samples.samples, places[0]):
            if cut := rate_cut(used):
                row = counted.rows[link.start]
                cuts[int(number_of(row["src"])), int(number_of(row["dst"]))] = cut
                fallen += [at for at, sample in zip(places, used, strict=True) if fall_of(sample)]
                kept[link] = [shows_lasting(sample, cut) for sample in used]
    return cuts, samples.samples[fallen], counted.where(kept) if cuts else counted


def _links_with(samples: LinkSamples, counted: CountedSamples, word: str) -> list[slice]:
    """Return the places of links with a word in a detail."""
    has = np.array([word in detail for detail in samples.samples.details], np.bool_)
    shown = counted.groups.reduced(np.logical_or, has[counted.rows["detail"]])
    begins = counted.groups.begins.tolist()
    return [slice(begins[at], begins[at + 1]) for at in np.flatnonzero(shown).tolist()]


def _noises(samples: LinkSamples, counted: CountedSamples) -> Floats:
    """Return the noise of one test about the level of its link."""
    providers = np.array([name.partition(":")[0] for name in samples.names])
    src, dst = counted.ends
    private = counted.groups.reduced(np.minimum, counted.rows["address"]) == PRIVATE
    noises = np.full(len(src), UNKNOWN_NOISE)
    for pair in {*zip(providers[src].tolist(), providers[dst].tolist(), strict=True)}:
        between = (providers[src] == pair[0]) & (providers[dst] == pair[1])
        for address in ADDRESS_KINDS:
            if law := law_of(*pair, address):
                noises[between & (private == (address == "private"))] = law.noise
    return noises


def saturated_links(samples: LinkSamples) -> Pairs:
    """Return the links whose ramp has shown that more connections bring nothing.

    The steps of a ramp are in the detail of its sample; samples with different numbers of
    connections are steps, too.
    """
    recent = samples.recent("aggregate_mbps")
    # Most links were tested with one number of connections, which shows nothing.
    steps = np.flatnonzero(recent.groups.differ(recent.rows["connections"])).tolist()
    begins = recent.groups.begins.tolist()
    shown = {begins[number]: begins[number + 1] for number in steps}
    shown |= {link.start: link.stop for link in _links_with(samples, recent, "ramp")}
    found = []
    for begin, end in sorted(shown.items()):
        with evaluated(samples.samples, recent.places[begin]):
            if _is_saturated(samples.samples[samples.of_reference(recent, slice(begin, end))]):
                found.append(begin)
    rows = recent.rows[found]
    return number_of(rows["src"]), number_of(rows["dst"])


def _is_saturated(tests: Samples) -> bool:
    steps: dict[int, list[float]] = defaultdict(list)
    for sample in tests:
        if sample.connections:
            steps[sample.connections].append(sample.value)
        if "ramp" in sample.detail:
            for count, mbps in ramp_steps(sample.read_detail()).items():
                steps[count].append(mbps)
    return saturates({count: median(values) for count, values in steps.items()})
