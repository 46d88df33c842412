"""Links that are estimated all at once, on arrays, are to the last digit what one by one gives."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import permutations, product
from math import exp, log
from statistics import median

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from planner.model.baseline.graph import (
    CAP_ERROR,
    aggregate_estimate,
    baseline_network,
    baseline_site,
    flow_cap_gbps,
    flow_estimate,
    least_cap,
    within_cap,
)
from planner.model.estimate import Estimate
from planner.model.link import Link, Site, limit_of
from planner.model.network import Network, Snapshot
from planner.model.throughput import (
    LAW_CONNECTIONS,
    UNKNOWN_SPREAD,
    bundle_share_of_steady,
    distance_class,
    flow_share_of_steady,
    law_of,
    window_from_flow_mb,
)
from planner.single_flow.spreads import FlowSpreads, later_test_error, spread_by
from probes.estimation import Estimator
from probes.estimation.arrays.sample_table import MEMORY_S
from probes.estimation.bounds import MAD_TO_SIGMA, bounds_of, no_surer_than
from probes.estimation.combining import LEAST_RATIO, ClassLaw, class_law, combined
from probes.estimation.combining import tests_of as repeated_tests
from probes.estimation.round_trips import OPPOSITE_DIRECTION_ERROR
from probes.estimation.series import RTT_NOISE
from probes.samples import Metric, Sample
from relayd.catalogue.loading import load_catalogue
from tests.properties import examples

REGIONS = (
    *("aws:us-east-1", "aws:eu-west-1", "azure:eastus", "azure:japaneast", "azure:westeurope"),
    *("gcp:asia-east1", "gcp:us-east1", "gcp:europe-west1"),
)
NOWHERE = "aws:region-0007"
"""Its place is not known."""
_WHOLE = load_catalogue()
CATALOGUE = replace(_WHOLE, regions={name: _WHOLE.regions[name] for name in REGIONS})
WHEN_S = 1.7e9
METRICS: tuple[Metric, ...] = ("rtt_ms", "per_flow_mbps", "aggregate_mbps")
SERIES = [*product(permutations((*REGIONS, NOWHERE), 2), METRICS)]
QUICKLY = settings(
    max_examples=examples(25), deadline=None, phases=(Phase.explicit, Phase.generate)
)


@st.composite
def measured(draw: st.DrawFn) -> list[Sample]:
    """Return samples of some links; of each as many as chance has it, some of them old."""
    samples = []
    for (src, dst), metric in draw(st.lists(st.sampled_from(SERIES), max_size=60, unique=True)):
        top = {"rtt_ms": 300.0, "per_flow_mbps": 4e3}.get(metric, 2e4)
        count = draw(st.sampled_from([1, 1, 1, 2, 3, 6]))
        begin_s = WHEN_S - draw(st.sampled_from([0.0, MEMORY_S, 3 * MEMORY_S]))
        samples += [
            Sample(
                *(
                    src,
                    dst,
                    metric,
                    draw(st.floats(top / 50, top)),
                    begin_s + 600.0 * place,
                    "test",
                ),
                connections={"per_flow_mbps": 1, "aggregate_mbps": 64}.get(metric),
                duration_s=draw(st.sampled_from([None, 5.0, 60.0])),
                warmed_up=draw(st.booleans()),
            )
            for place in range(count)
        ]
    return samples


def estimated(samples: list[Sample]) -> Network:
    estimator = Estimator(CATALOGUE)
    estimator.add(samples)
    return estimator.network(Snapshot("t", "", "mixed"))


def test_without_samples_links_are_those_of_the_baseline() -> None:
    found, baseline = estimated([]), baseline_network(CATALOGUE)
    assert found.sites == baseline.sites
    for link, expected in zip(found, baseline, strict=True):
        assert link.rtt_ms == expected.rtt_ms
        assert link.aggregate_gbps == expected.aggregate_gbps


class OneByOne:
    """The figures of links, each worked out by itself from sites, round trips and samples."""

    def __init__(self, network: Network, samples: list[Sample]) -> None:
        self.sites = network.sites
        self.rtts = {(link.src, link.dst): link.rtt_ms for link in network}
        self.series: dict[tuple[Metric, str, str], list[Sample]] = defaultdict(list)
        for sample in samples:
            self.series[sample.metric, sample.src, sample.dst].append(sample)
        self.tests = {key[1:]: self.values(*key) for key in self.series if key[0] == METRICS[2]}
        flows = {key[1:]: self.values(*key) for key in self.series if key[0] == METRICS[1]}
        promised = {
            pair: self.by_window(*pair, FlowSpreads()).expected
            for pair in flows
            if self.rtts[pair].origin.method != "location-unknown"
        }
        self.spreads = FlowSpreads(
            (self.sites[pair[1]].vm_type, self.rtts[pair].expected, log(median(flows[pair]) / mbps))
            for pair, mbps in promised.items()
        )
        self.ratios: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for pair, values in self.tests.items():
            law = self.law(*pair)
            assert law is not None
            ratio = log(max(LEAST_RATIO, median(values) / law.expected))
            self.ratios[_providers(*pair)][self.distance(*pair)].append(ratio)

    def values(self, metric: Metric, src: str, dst: str) -> list[float]:
        """Return what the samples of a link say, without what slow start cost."""
        found, rtt = [], self.rtts[src, dst]
        is_known = rtt.origin.method != "location-unknown"
        for sample in self.series[metric, src, dst]:
            value = sample.value / (1000.0 if metric == "aggregate_mbps" else 1.0)
            if is_known and not sample.warmed_up and sample.duration_s and metric != "rtt_ms":
                window = window_from_flow_mb(sample.value, rtt.expected, sample.duration_s)
                value = (
                    value / bundle_share_of_steady(rtt.expected, sample.duration_s)
                    if metric == "aggregate_mbps"
                    else value / flow_share_of_steady(window, rtt.expected, sample.duration_s)
                )
            found.append(value)
        return found

    def by_window(self, src: str, dst: str, spreads: FlowSpreads) -> Estimate:
        sender, receiver, rtt = self.sites[src], self.sites[dst], self.rtts[src, dst]
        window = receiver.window_mb
        found = flow_estimate(window, rtt, flow_cap_gbps(sender, CATALOGUE))
        if window.source != "baseline":
            found = spread_by(found, spreads.of(receiver.vm_type, rtt.expected))
        cap = 1000.0 * min(sender.egress_gbps.expected, receiver.ingress_gbps.expected)
        if found.expected <= cap:
            return found
        low = min(found.low, cap * (1 - CAP_ERROR))
        return Estimate(low, cap, max(cap, min(found.high, cap * (1 + CAP_ERROR))))

    def flow(self, link: Link) -> tuple[float, float, float]:
        """Return one flow's throughput in Mbit/s."""
        pair = link.src, link.dst
        if (*METRICS[1:2], *pair) in self.series:
            values = self.values(METRICS[1], *pair)
            middle = median(values)
            deviation = 1.4826 * 1.645 * median(abs(value - middle) for value in values)
            error = later_test_error(len(values), deviation / middle)
            return middle / (1 + error), middle, middle * (1 + error)
        found, rate = self.by_window(*pair, self.spreads), link.aggregate_gbps
        low, expected, high = found.low, found.expected, found.high
        if rate.source != "measured":
            return low, expected, high
        most = rate.expected * 1000.0
        if expected > most:
            low, expected, high = min(low, most), most, max(most, rate.high * 1000.0)
        if most / 64 <= expected:
            return low, expected, high
        return max(low, rate.low * 1000.0 / 64), most / 64, max(high, rate.high * 1000.0 / 64)

    def law(self, src: str, dst: str) -> Estimate | None:
        sites, rtt = self.sites, self.rtts[src, dst]
        typed = baseline_site(src, CATALOGUE, {src: sites[src].vm_type})
        share = sites[src].egress_gbps.expected / typed.egress_gbps.expected
        share = share if not 0.5 <= share <= 2.0 else 1.0
        return aggregate_estimate(sites[src], sites[dst], rtt, share)

    def distance(self, src: str, dst: str) -> int:
        return distance_class(self.rtts[src, dst].high)

    def class_law(self, src: str, dst: str) -> ClassLaw:
        classes, number = self.ratios[_providers(src, dst)], self.distance(src, dst)
        model = law_of(src, dst)
        others = [ratio for other, found in classes.items() if other != number for ratio in found]
        ours = model.spread_of_class(number) if model else UNKNOWN_SPREAD
        return class_law(classes.get(number, []), others, ours)

    def aggregate(self, link: Link) -> tuple[float, float, float]:
        """Return what many connections carry, in Gbit/s."""
        pair = link.src, link.dst
        law, shift, spread = self.law(*pair), *self.class_law(*pair)
        assert law is not None
        cap = least_cap(self.sites[link.src], self.sites[link.dst])
        shifted = within_cap(law.expected * exp(shift), spread, cap, law.origin)
        if pair not in self.tests:
            shown = any(self.ratios[_providers(*pair)].values())
            of = shifted if shown else law
            return of.low, of.expected, of.high
        values, first = self.tests[pair], self.series[METRICS[2], *pair][0]
        lone = len(values) == 1 and not first.warmed_up and 0.0 < (first.duration_s or 0.0) <= 10.0
        middle = np.array([median(values)])
        deviation = MAD_TO_SIGMA * np.array([median(abs(v - middle[0]) for v in values)])
        model = law_of(*pair)
        assert model is not None
        tests = repeated_tests(
            *(middle, deviation, np.array([len(values)]), np.array([lone])), np.array([model.noise])
        )
        low, expected, high = np.log([[shifted.low, shifted.expected, shifted.high]]).T
        found = combined(tests, expected, expected - low, high - expected)
        bounds = np.exp(
            [found.expected - found.below, found.expected, found.expected + found.above]
        )
        is_level = found.expected[0] == tests.level[0]
        return bounds[0].item(), middle[0] if is_level else bounds[1].item(), bounds[2].item()


def _providers(src: str, dst: str) -> tuple[str, str]:
    return src.partition(":")[0], dst.partition(":")[0]


@QUICKLY
@given(samples=measured())
def test_each_link_is_what_it_is_alone(samples: list[Sample]) -> None:
    network = estimated(samples)
    alone = OneByOne(network, samples)
    for link in network:
        pair = link.src, link.dst
        rtt = link.rtt_ms
        if (METRICS[0], *pair) in alone.series:
            bounds = bounds_of(alone.values(METRICS[0], *pair), RTT_NOISE)
            assert (rtt.low, rtt.expected, rtt.high) == bounds
        elif (METRICS[0], *pair[::-1]) in alone.series:
            back = no_surer_than(alone.rtts[pair[::-1]], OPPOSITE_DIRECTION_ERROR)
            assert (rtt.low, rtt.expected, rtt.high) == (back.low, back.expected, back.high)
        flow, rate = link.per_flow_mbps, link.aggregate_gbps
        assert (flow.low, flow.expected, flow.high) == alone.flow(link), link
        if rate.origin.method != "neighbouring-links":
            assert (rate.low, rate.expected, rate.high) == alone.aggregate(link), link
        windows = flow
        if flow.source != "measured":
            windows = alone.by_window(*pair, alone.spreads)
        ends: tuple[Site, Site] = network.sites[link.src], network.sites[link.dst]
        assert link.limited_by == limit_of(rate, *ends, windows.scaled(LAW_CONNECTIONS / 1000.0))
