"""Tests of what many connections of one VM pair carry together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from planner.model.columns.links import Origins
from planner.model.columns.table import EstimateArrays
from planner.model.estimate import Figures, RateCut
from planner.model.throughput import LEAST_SHARE, RAMP_UP_ROUND_TRIPS, UNKNOWN_NOISE, law_of
from planner.model.units import MBPS_PER_GBPS
from probes.analysis.ramp import ramp_steps, saturates
from probes.analysis.series.late_cuts import fall_of, lasting, rate_cut
from probes.estimation.agreement import reference_of
from probes.estimation.arrays.groups import Bools, Floats, Groups, Ints, distinct
from probes.estimation.arrays.origins import measured
from probes.estimation.arrays.sample_table import Rows
from probes.estimation.combining import SHORT_S
from probes.estimation.flows import Pairs, from_cold
from probes.estimation.series import Counted, LinkSamples
from probes.medians import median
from probes.samples import Sample


@dataclass(frozen=True, slots=True)
class AggregateTests:
    """The tests of m links that count, in Gbit/s without what slow start cost.

    Attributes
    ----------
    src, dst : array of int
    alone : EstimateArrays
        What they say by themselves.
    values : array
        Of all tests.
    groups : Groups
        Which of these are of each link.
    connections : array of int
        0 where they do not say.
    is_lone : array of bool
        Whether there is one test alone, and it is short and from a cold start.
    fallen : list of Sample
        Those whose rate fell, of links whose rate falls.
    """

    src: Ints
    dst: Ints
    alone: EstimateArrays
    values: Floats
    groups: Groups
    connections: Ints
    is_lone: Bools
    fallen: list[Sample]


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
    rows, groups, _ = counted
    first = {name: rows[name][groups.first] for name in _OF_FIRST}
    values = rows["value"] / MBPS_PER_GBPS
    of_rows = rtts_ms[rows["src"], rows["dst"]]
    cold = from_cold(rows, of_rows)
    ramp_up_s = RAMP_UP_ROUND_TRIPS * of_rows[cold] / 1000.0
    values[cold] /= np.maximum(LEAST_SHARE, 1.0 - ramp_up_s / rows["duration_s"][cold])
    connections = first["connections"].astype(np.int64)
    # Those with a cut have figures of their own.
    extra = connections.copy()
    width = int(connections.max(initial=0)) + 1
    listed = list(cuts)
    for number, pair in enumerate(listed, 1):
        extra[(first["src"] == pair[0]) & (first["dst"] == pair[1])] += number * width

    def figures_of(more: int) -> Figures | None:
        number, opened = divmod(more, width)
        figures = Figures(connections=opened) if opened else None
        if number:
            figures = (figures or Figures())._replace(rate_cut=cuts[listed[number - 1]])
        return figures

    bounds = groups.bounds(values, _noises(samples, counted))
    alone = measured(counted, samples.marks, bounds, origins, extra, figures_of)
    short = ~first["warmed_up"] & (first["duration_s"] > 0) & (first["duration_s"] <= SHORT_S)
    # Two runs that agreed began a new level: what is left of them is no odd one.
    is_lone = (groups.counts == 1) & short & ~first["new_level"]
    ends = counted.src, counted.dst
    return AggregateTests(*ends, alone, values, groups, connections, is_lone, fallen)


_OF_FIRST = ("src", "dst", "connections", "duration_s", "warmed_up", "new_level")


def _with_cuts(
    samples: LinkSamples, counted: Counted
) -> tuple[dict[tuple[int, int], RateCut], list[Sample], Counted]:
    """Return how rates of links fall, the tests that show it, and the tests of what lasts."""
    cuts: dict[tuple[int, int], RateCut] = {}
    fallen: list[Sample] = []
    kept = np.ones(len(counted.rows), np.bool_)
    details = samples.table.details
    for within in _slices_with(counted.rows, counted.groups, details, '"findings"'):
        used = samples.samples(counted.rows[within])
        cut = rate_cut(used)
        if cut is not None:
            cuts[int(counted.rows["src"][within.start]), int(counted.rows["dst"][within.start])] = (
                cut
            )
            fallen += [sample for sample in used if fall_of(sample)]
            lasts = {id(sample) for sample in lasting(used, cut)}
            kept[within] = [id(sample) in lasts for sample in used]
    return cuts, fallen, counted.where(kept)


def _slices_with(rows: Rows, groups: Groups, details: list[str], word: str) -> list[slice]:
    """Return where the groups are of which a detail has some word."""
    places = np.flatnonzero(rows["detail"] >= 0)
    has = [at for at in places.tolist() if word in details[rows["detail"][at]]]
    if not has:
        return []
    numbers = distinct(np.searchsorted(groups.begins, has, side="right") - 1)
    begins = groups.begins.tolist()
    return [slice(begins[number], begins[number + 1]) for number in numbers.tolist()]


def _noises(samples: LinkSamples, counted: Counted) -> Floats:
    """Return how far one test of each link lies from its level."""
    providers = list(dict.fromkeys(name.partition(":")[0] for name in samples.names))
    of_region = np.array([providers.index(name.partition(":")[0]) for name in samples.names])
    noises = np.full((2, len(providers), len(providers)), UNKNOWN_NOISE)
    for i, address in enumerate(("public", "private")):
        for j, src in enumerate(providers):
            for k, dst in enumerate(providers):
                if law := law_of(src, dst, address):
                    noises[i, j, k] = law.noise
    private = counted.groups.reduced(np.minimum, counted.rows["address"]) == 2
    found: Floats = noises[private.astype(np.int64), of_region[counted.src], of_region[counted.dst]]
    return found


def saturated_links(samples: LinkSamples) -> Pairs:
    """Return the links of which a ramp has shown that more connections bring nothing.

    The steps of a ramp are in the detail of its sample; samples with different numbers of
    connections are steps, too.
    """
    rows, groups = samples.recent("aggregate_mbps")
    connections = rows["connections"]
    # Most links were tested with one number of connections, which shows nothing.
    steps = np.flatnonzero(
        groups.reduced(np.minimum, connections) != groups.reduced(np.maximum, connections)
    )
    begins = groups.begins.tolist()
    shown = {begins[number]: begins[number + 1] for number in steps.tolist()}
    for within in _slices_with(rows, groups, samples.table.details, "ramp"):
        shown[within.start] = within.stop
    found = [
        (int(rows["src"][begin]), int(rows["dst"][begin]))
        for begin, end in sorted(shown.items())
        if _is_saturated(samples, rows[begin:end])
    ]
    src, dst = np.array(found, np.int64).reshape(-1, 2).T
    return src, dst


def _is_saturated(samples: LinkSamples, rows: Rows) -> bool:
    reference = reference_of(samples.from_sources(rows)).source
    rows = rows[rows["source"] == samples.table.sources[reference]]
    steps: dict[int, list[float]] = defaultdict(list)
    for sample in samples.samples(rows[samples.taken_with(rows)]):
        if sample.connections:
            steps[sample.connections].append(sample.value)
        if "ramp" in sample.detail:
            for count, mbps in ramp_steps(sample.read_detail()).items():
                steps[count].append(mbps)
    return saturates({count: median(values) for count, values in steps.items()})
