"""What many connections of one VM pair carry together: measured, or from the providers' law.

A law (:mod:`planner.model.throughput`) is what VMs of one provider reached towards another
provider's, by distance. Measured links show how links of their class lie about it
(:mod:`.combining`): the same providers and kind of address, at such a distance. Where a class is
wide, links between the same two parts of the world tell more: on the January 2022 grid, another
pair of Azure and AWS regions within 40 ms at both ends tells a far link within 20 % in the median,
the law alone within 40 %.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log

import numpy as np

from planner.model.baseline import aggregate_estimate, least_cap, within_cap
from planner.model.estimate import AddressKind, Estimate, Figures, Method, Origin, Prior
from planner.model.link import Site
from planner.model.throughput import (
    UNKNOWN_MEMORY_YEARS,
    UNKNOWN_NOISE,
    UNKNOWN_SPREAD,
    LawSpread,
    bundle_share_of_steady,
    distance_class,
    law_of,
)
from planner.model.units import MBPS_PER_GBPS
from probes.analysis.ramp import ramp_steps, saturates
from probes.analysis.series.late_cuts import fall_of, lasting, rate_cut
from probes.estimation.agreement import figures_with, own_first, reference_of
from probes.estimation.bounds import (
    MAD_TO_SIGMA,
    from_values,
    median,
    origin_of_many,
    origin_of_samples,
)
from probes.estimation.combining import (
    LEAST_LINKS,
    LEAST_RATIO,
    SHORT_S,
    ClassLaw,
    class_law,
    combined,
    tests_of,
)
from probes.estimation.series import Pair, Samples, counted, taken_with
from probes.samples import Sample

# Links between the same two parts of the world: they help where links of a class differ by half.
NEIGHBOUR_MS = 25.0
FARTHEST_NEIGHBOUR_MS = 80.0
NEIGHBOUR_FROM_SPREAD = 0.5
NEIGHBOUR_SHARE = 0.4
"""Of the spread, what neighbours take away at most."""
OTHER_SIZE = 2.0
"""A VM whose cap differs more from its type's is not of the size that a law is of."""
USUAL_RTT_MS = Estimate(100.0, 100.0, 100.0)
"""Where no location is known: a law needs some distance."""
LEAST_GBPS = 1e-6


@dataclass(frozen=True, slots=True)
class AggregateTests:
    """The tests of one link that count, in Gbit/s without what slow start cost.

    Attributes
    ----------
    alone : Estimate
        What they say by themselves.
    values : list of float
    connections : int
        0 where they do not say.
    is_lone : bool
        Whether there is one test alone, and it is short and from a cold start.
    fallen : list of Sample
        Those whose rate fell, where the link's rate falls.
    """

    alone: Estimate
    values: list[float]
    connections: int
    is_lone: bool
    fallen: Sequence[Sample] = ()


def aggregate_tests(
    sites: Mapping[str, Site], samples: Samples, rtts_ms: Mapping[Pair, Estimate]
) -> dict[Pair, AggregateTests]:
    """Return the tests of each link that was measured."""
    found: dict[Pair, AggregateTests] = {}
    for pair, series in samples.of("aggregate_mbps").items():
        rtt = rtts_ms.get(pair)
        agreement = counted("aggregate_mbps", series, sites, rtt)
        used = agreement.samples
        if not used:
            continue
        most = used[0].connections or 0
        values = []
        cut, fallen = rate_cut(used), []
        if cut is not None:
            fallen = [sample for sample in used if fall_of(sample)]
            used = lasting(used, cut)
        for sample in used:
            value = sample.value / MBPS_PER_GBPS
            if rtt and not sample.warmed_up and sample.duration_s:
                value /= bundle_share_of_steady(rtt.expected, sample.duration_s)
            values.append((value, sample))
        origin = origin_of_samples(used, "measured", "median-of-samples")
        law = law_of(*pair, "private" if origin.address == "private" else "public")
        figures = figures_with(
            Figures(connections=most) if most else None, agreement, mixed=samples.is_mixed
        )
        if cut is not None:
            figures = (figures or Figures())._replace(rate_cut=cut)
        first = used[0]
        short = not first.warmed_up and 0.0 < (first.duration_s or 0.0) <= SHORT_S
        found[pair] = AggregateTests(
            from_values(values, law.noise if law else UNKNOWN_NOISE, figures=figures),
            [value for value, _ in values],
            most,
            # Two runs that agreed began a new level: what is left of them is no odd one.
            len(used) == 1 and short and not first.new_level,
            fallen,
        )
    return found


def saturated_links(sites: Mapping[str, Site], samples: Samples) -> set[Pair]:
    """Return the links of which a ramp has shown that more connections bring nothing.

    The steps of a ramp are in the detail of its sample; samples with different numbers of
    connections are steps, too.
    """
    found = set()
    for pair, series in samples.of("aggregate_mbps").items():
        steps: dict[int, list[float]] = defaultdict(list)
        for sample in taken_with(reference_of(series.recent()).samples, sites):
            if sample.connections:
                steps[sample.connections].append(sample.value)
            if "ramp" in sample.detail:
                for count, mbps in ramp_steps(sample.read_detail()).items():
                    steps[count].append(mbps)
        if saturates({count: median(values) for count, values in steps.items()}):
            found.add(pair)
    return found


class MeasuredLaw:
    """The providers' laws, as far as measured links bear them out.

    Parameters
    ----------
    sites : mapping
        With caps measured where they were.
    typed : mapping
        The same sites with the caps of their VM types. Where a cap was found to be less than half
        of that, or more than twice, the VM is not of the size that the law is of, and the law
        holds in proportion.
    rtts_ms : mapping
    aggregates : mapping
        Measured, by link.
    address : AddressKind
        Over which all of these are.
    """

    def __init__(
        self,
        sites: Mapping[str, Site],
        typed: Mapping[str, Site],
        rtts_ms: Mapping[Pair, Estimate],
        aggregates: Mapping[Pair, Estimate],
        address: AddressKind = "public",
    ) -> None:
        self._address = address
        self._sites = sites
        self._typed = typed
        self._rtts_ms = rtts_ms
        self._aggregates = aggregates
        self._ratios: dict[Pair, dict[int, dict[Pair, float]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._laws: dict[Pair, Estimate | None] = {}
        learned: dict[tuple[Pair, int], list[tuple[Pair, float]]] = defaultdict(list)
        for (src, dst), estimate in aggregates.items():
            law = self._laws[src, dst] = self._law(src, dst, self._rtt(src, dst))
            if law is not None and law.origin.method == "provider-pair-law":
                ratio = log(max(LEAST_RATIO, estimate.expected / law.expected))
                kind = (_providers(src, dst), self._class(src, dst))
                learned[kind].append(((src, dst), ratio))
        for (providers, number), links in learned.items():
            own = own_first(links, lambda link: aggregates[link[0]].origin)
            self._ratios[providers][number].update(own)
        self._classes: dict[tuple[Pair, int], ClassLaw] = {}
        self._origins: dict[tuple[Pair, int], Origin] = {}
        self._near: dict[str, Mapping[str, float]] = {}

    def aggregate(self, src: str, dst: str, rtt_ms: Estimate) -> Estimate | None:
        """Return the saturated throughput to expect of a link, or None where nothing is known."""
        law = self._law(src, dst, rtt_ms)
        links = self._links_of_class(src, dst)
        if law is None or not links:
            return law
        shift, spread = self._class_law(src, dst)
        if sum(spread) >= NEIGHBOUR_FROM_SPREAD and (near := self._neighbours(src, dst)):
            # The law counts as one link right beside.
            weight = sum(near.values())
            shift += sum(w * (links[pair] - shift) for pair, w in near.items()) / (1 + weight)
            share = 1 - NEIGHBOUR_SHARE * weight / (1 + weight)
            spread = LawSpread(share * spread.below, share * spread.above)
            origin = self._origin("neighbouring-links", near)
        else:
            key = (_providers(src, dst), self._class(src, dst))
            if key not in self._origins:
                self._origins[key] = self._origin("shifted-law", links)
            origin = self._origins[key]
        return self._shifted(src, dst, law, ClassLaw(shift, spread), origin)

    def measured(self, tests: Mapping[Pair, AggregateTests]) -> dict[Pair, Estimate]:
        """Return what tests of links and the laws of their classes say together."""
        if not tests:
            return {}
        priors = [self._prior(pair, of_link.alone) for pair, of_link in tests.items()]
        middles = np.array([of_link.alone.expected for of_link in tests.values()])
        deviations = [
            MAD_TO_SIGMA * median(abs(value - middle) for value in of_link.values)
            for of_link, middle in zip(tests.values(), middles.tolist(), strict=True)
        ]
        count = np.array([len(of_link.values) for of_link in tests.values()])
        lone = np.array([of_link.is_lone for of_link in tests.values()])
        noise = np.array([noise for _, noise in priors])
        low, expected, high = np.log([prior[:3] for prior, _ in priors]).T
        repeated = tests_of(middles, np.array(deviations), count, lone, noise)
        found = combined(repeated, expected, expected - low, high - expected)
        bounds = np.exp(
            [found.expected - found.below, found.expected, found.expected + found.above]
        )
        bounds[1] = np.where(found.expected == repeated.level, middles, bounds[1])  # to the digit
        estimates = {}
        for number, (pair, of_link) in enumerate(tests.items()):
            origin = of_link.alone.origin
            if found.doubted[number]:
                origin = origin._replace(method="contradicted-sample")
            low, middle, high = bounds[:, number].tolist()
            estimates[pair] = Estimate(low, middle, high, origin, priors[number][0])
        return estimates

    def _prior(self, pair: Pair, alone: Estimate) -> tuple[Prior, float]:
        """Return what would be believed of a measured link without its tests, and their noise."""
        model = law_of(*pair, self._address)
        law = self._laws[pair]
        if model is None or law is None:
            # Nothing but caps: what was measured, and as little sure as where nothing is known.
            middle = max(alone.expected, LEAST_GBPS)
            below, above = (exp(-UNKNOWN_SPREAD.below), exp(UNKNOWN_SPREAD.above))
            prior = Prior(middle * below, middle, middle * above, UNKNOWN_MEMORY_YEARS)
            return prior, UNKNOWN_NOISE
        shifted = self._shifted(*pair, law, self._class_law(*pair), law.origin)
        bounds = (shifted.low, shifted.expected, shifted.high)
        return Prior(*bounds, model.memory_years), model.noise

    def _shifted(self, src: str, dst: str, law: Estimate, by: ClassLaw, origin: Origin) -> Estimate:
        cap = least_cap(self._sites[src], self._sites[dst])
        return within_cap(law.expected * exp(by.shift), by.spread, cap, origin)

    def _law(self, src: str, dst: str, rtt_ms: Estimate) -> Estimate | None:
        source, destination = self._sites[src], self._sites[dst]
        proportion = _proportion(source.egress_gbps.expected, self._typed[src].egress_gbps.expected)
        return aggregate_estimate(source, destination, rtt_ms, proportion, self._address)

    def links_behind(self, src: str, dst: str, estimate: Estimate) -> list[Pair]:
        """Return the measured links that shift the law for another, given what was made of it."""
        if estimate.origin.method == "neighbouring-links":
            return list(self._neighbours(src, dst))
        if estimate.origin.method != "shifted-law":
            return []
        return list(self._links_of_class(src, dst))

    def _links_of_class(self, src: str, dst: str) -> Mapping[Pair, float]:
        """Return the links of a class of distance; where they are too few, of all classes."""
        classes = self._ratios.get(_providers(src, dst), {})
        links = classes.get(self._class(src, dst), {})
        if len(links) >= LEAST_LINKS:
            return links
        return {pair: ratio for links in classes.values() for pair, ratio in links.items()}

    def _origin(self, method: Method, links: Iterable[Pair]) -> Origin:
        return origin_of_many(method, [self._aggregates[pair].origin for pair in links])

    def _class_law(self, src: str, dst: str) -> ClassLaw:
        """Return how links of the class of a link lie about their law."""
        key = (_providers(src, dst), self._class(src, dst))
        if key not in self._classes:
            kind, number = key
            model = law_of(src, dst, self._address)
            classes = self._ratios.get(kind, {})
            others = [
                r for other, links in classes.items() if other != number for r in links.values()
            ]
            self._classes[key] = class_law(
                list(classes.get(number, {}).values()),
                others,
                model.spread_of_class(number) if model else UNKNOWN_SPREAD,
            )
        return self._classes[key]

    def _neighbours(self, src: str, dst: str) -> dict[Pair, float]:
        """Return measured links whose ends are both near this link's, with their weights."""
        links = self._links_of_class(src, dst)
        near_src, near_dst = self._nearby(src), self._nearby(dst)
        found = {}
        for pair in links:
            if (out_ms := near_src.get(pair[0])) is not None and pair[1] in near_dst:
                squares = out_ms**2 + near_dst[pair[1]] ** 2
                found[pair] = exp(-squares / (2 * NEIGHBOUR_MS**2))
        return found

    def _nearby(self, region: str) -> Mapping[str, float]:
        """Return the round-trip times to regions in the same part of the world, and to itself."""
        if region not in self._near:
            apart_ms = {other: self._rtt(region, other).expected for other in self._sites}
            apart_ms[region] = 0.0
            self._near[region] = {
                other: ms for other, ms in apart_ms.items() if ms < FARTHEST_NEIGHBOUR_MS
            }
        return self._near[region]

    def _class(self, src: str, dst: str) -> int:
        return distance_class(self._rtt(src, dst).high)

    def _rtt(self, src: str, dst: str) -> Estimate:
        return self._rtts_ms.get((src, dst)) or USUAL_RTT_MS


def _proportion(found_gbps: float, of_type_gbps: float) -> float:
    if not isfinite(of_type_gbps):
        return 1.0
    share = found_gbps / of_type_gbps
    return share if not 1 / OTHER_SIZE <= share <= OTHER_SIZE else 1.0


def _providers(src: str, dst: str) -> Pair:
    return src.partition(":")[0], dst.partition(":")[0]
