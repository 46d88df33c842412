"""Replays stored history by steps: relayd's estimates at the time, and the next measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline.modelled_links import baseline_site
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.estimate import BOUNDS
from planner.model.link import LinkFigure
from planner.model.link_array import KINDS, rates_gbps
from planner.model.network import UNSAVED
from planner.model.units import MBPS_PER_GBPS
from planner.transfer.all_pairs import Floats, RateBounds, within_caps
from probes.estimation import Estimator
from probes.estimation.current_samples import MOST_JUDGED, PRIVATE, series_order
from probes.estimation.groups import Groups
from probes.estimation.link_samples import ends_of, steady_values
from probes.estimation.vm_types import UNSTATED, fit_of_types, voted_types, votes_of
from probes.metrics import Metric, number_of, throughput_of
from probes.samples import NameTable, Samples

Truths = NDArray[np.bool_]
MOST_STEPS = 1_000_000


class StepSamples(NamedTuple):
    """Samples known when a step began (`begin_s`, seconds since 1970), and those measured in it.

    `known` are the newest of each series, on which estimates rest; `truth` are the tests by which a
    path is judged, and `rtts` the round trips of the step.
    """

    begin_s: float
    known: Samples
    truth: Samples
    rtts: Samples


class Step(NamedTuple):
    """A step in which something was measured; arrays of shape (n, n), from row to column."""

    begin_s: float  # seconds since 1970
    # As believed before the step: rates of one VM pair, 0 where a link was not measured; caps of
    # one VM that sends, and of one that receives
    factors: tuple[RateBounds, RateBounds, RateBounds]
    believed: RateBounds  # of one VM pair within the VMs' caps, before the step
    estimated: Truths  # pairs whose rate rests on their own measurements
    rtt_ms: Floats  # as it was believed
    truth_gbps: Floats  # as measured in the step; NaN where it was not
    true_rtt_ms: Floats  # as measured in the step; the believed one where it was not

    @property
    def covered(self) -> Truths:
        """Pairs whose measured rate lies within the bounds."""
        truth, believed = self.truth_gbps, self.believed
        within: Truths = (believed.low <= truth) & (truth <= believed.high)
        return within


@dataclass(frozen=True, slots=True)
class StepEstimator:
    """Estimates steps from their samples as relayd would have done at their begin.

    The catalogue is of these n regions alone, each with its VM type; one VM has so many TCP
    connections, of which 1 rests on single flows.
    """

    regions: tuple[str, ...]
    catalogue: Catalogue
    vm_types: Mapping[str, str]
    connections: int

    def __call__(self, samples: StepSamples) -> Step:
        """Estimate a step."""
        regions, connections = self.regions, self.connections
        estimator = Estimator(samples.known, self.catalogue, self.vm_types)
        network = estimator.network(UNSAVED).with_(aged_to_s=samples.begin_s)
        links = network.links.among(regions)
        cells = links.whole
        rate: LinkFigure = "per_flow_mbps" if connections == 1 else "aggregate_gbps"
        is_estimated = links.kinds(cells, rate) == KINDS.index("measured")
        rtt_ms = np.where(links.present, cells["rtt_ms"]["expected"], 1.0)
        rates = (rates_gbps(cells, connections, bound) for bound in BOUNDS)
        order = [network.index[name] for name in regions]
        caps = zip(*(np.array(network.caps(bound))[:, order] for bound in BOUNDS), strict=True)
        of_links = RateBounds(*(np.where(is_estimated, bound, 0.0) for bound in rates))
        egress, ingress = (RateBounds(*bounds) for bounds in caps)
        seen_ms = _medians(samples.rtts, samples.rtts.rows["value"], len(regions))
        either_ms = np.where(np.isnan(seen_ms), seen_ms.T, seen_ms)
        true_rtt_ms = np.where(np.isnan(either_ms), rtt_ms, either_ms)
        truth, is_private = samples.truth, cells["address"] == PRIVATE
        truth = truth[(truth.rows["address"] == PRIVATE) == is_private[ends_of(truth.rows)]]
        steady = steady_values(truth.rows, throughput_of(connections), true_rtt_ms)
        return Step(
            samples.begin_s,
            (of_links, egress, ingress),
            RateBounds(*map(within_caps, of_links, egress, ingress)),
            is_estimated,
            rtt_ms,
            _medians(truth, steady, len(regions)) / MBPS_PER_GBPS,
            true_rtt_ms,
        )


def _medians(samples: Samples, values: Floats, size: int) -> Floats:
    """Return the median of each pair's samples, shape (n, n); NaN where there is none."""
    medians, rows = np.full((size, size), np.nan), samples.rows
    order = np.lexsort((rows["dst"], rows["src"]))
    rows, values = rows[order], values[order]
    groups = Groups.of(rows["src"], rows["dst"])
    medians[ends_of(rows[groups.first])] = groups.medians(values)
    return medians


class ReplayHistory:
    """The samples that a replay rests on.

    Of VM types of a region, samples of the type that most name are taken, as estimates do.

    Attributes
    ----------
    regions : tuple of str
        Those at either end of a throughput sample.
    sites : dict of str to Site
        With the caps of their VM types.
    measured : array of bool, shape (n, n)
        Between which throughput was measured.
    most_connections : int
        Of any throughput sample; 0 if no sample states them.
    samples_read : int
        Throughput samples within the steps that were yielded so far.
    """

    def __init__(self, samples: Samples, catalogue: Catalogue, metric: Metric) -> None:
        of_metric, names = samples.of_metric(metric).rows, list(samples.names)
        ends = np.union1d(of_metric["src"], of_metric["dst"]).tolist()
        self.regions = tuple(sorted(names[end] for end in ends))
        count = len(self.regions)
        rows = samples.rows
        among = np.flatnonzero(np.isin(rows["src"], ends) & np.isin(rows["dst"], ends))
        by_time = among[np.argsort(rows["measured_at_s"][among], kind="stable")]
        self._samples = samples[by_time].with_names(NameTable(self.regions))
        self._catalogue = replace(
            catalogue,
            regions={name: replace(catalogue.region(name), baseline=True) for name in self.regions},
        )
        self._vm_types = voted_types(votes_of(self._samples), catalogue)
        self.sites = {name: baseline_site(name, catalogue, self._vm_types) for name in self.regions}
        rows = self._samples.rows
        fits = fit_of_types(self._samples, self.sites, catalogue)
        is_test = (rows["metric"] == number_of(metric)) & (fits >= UNSTATED)
        tests = rows[is_test]
        self.most_connections = int(tests["connections"].max(initial=0))
        self._first_s = float(tests["measured_at_s"].min(initial=np.inf))
        self._last_s = float(tests["measured_at_s"].max(initial=-np.inf))
        self.measured = np.zeros((count, count), np.bool_)
        self.measured[ends_of(tests)] = True
        # Tests with fewer connections than before do not show the pair's capacity.
        places = np.flatnonzero(is_test)
        places = places[np.lexsort((places, tests["dst"], tests["src"]))]
        pair = rows["src"][places].astype(np.int64) * (count + 1) + rows["dst"][places]
        opened = pair * 2**20 + rows["connections"][places]
        self._is_truth = np.zeros(len(rows), np.bool_)
        self._is_truth[places[opened >= np.maximum.accumulate(opened)]] = True
        self.samples_read = 0

    def estimator(self, connections: int) -> StepEstimator:
        """Return the estimator of steps for a number of connections."""
        return StepEstimator(self.regions, self._catalogue, self._vm_types, connections)

    def edges_s(self, step_s: float, since_s: float | None, until_s: float | None) -> Floats:
        """Return the begin of each step from the first to the last sample, and the last one's end.

        Within limits, all in seconds since 1970; a single 0 where there is no step.

        Raises an InputError if there are more than :data:`MOST_STEPS` steps.
        """
        first_s = self._first_s if since_s is None else max(since_s, self._first_s)
        last_s = self._last_s if until_s is None else min(until_s, self._last_s)
        if not first_s <= last_s:
            return np.zeros(1)
        begin_s = float(np.floor(first_s / step_s) * step_s)
        if (steps := int((last_s - begin_s) // step_s) + 1) > MOST_STEPS:
            problem = f"makes {steps:,} steps of the history, and {MOST_STEPS:,} are the most"
            remedy = "Take longer steps, or a shorter span."
            raise InputError("step_s", problem, value=f"{step_s:g} s", remedy=remedy)
        edges_s: Floats = begin_s + step_s * np.arange(steps + 1, dtype=np.float64)
        return edges_s

    def steps(self, edges_s: Floats) -> Iterator[StepSamples]:
        """Yield the steps in which throughput was measured, the oldest first."""
        samples, is_rtt = self._samples, self._samples.rows["metric"] == number_of("rtt_ms")
        edges = np.searchsorted(samples.rows["measured_at_s"], edges_s).tolist()
        order, parts = series_order(samples)
        for number, (begin, end) in enumerate(pairwise(edges)):
            truth = np.flatnonzero(self._is_truth[begin:end]) + begin
            if not len(truth):
                continue
            counts = parts.reduced(np.add, (order < begin).astype(np.int64))
            after_newest = np.arange(len(order)) - parts.spread(parts.first + counts)
            known = samples[order[(after_newest < 0) & (after_newest >= -MOST_JUDGED)]]
            self.samples_read += len(truth)
            rtts = samples[np.flatnonzero(is_rtt[begin:end]) + begin]
            yield StepSamples(float(edges_s[number]), known, samples[truth], rtts)
