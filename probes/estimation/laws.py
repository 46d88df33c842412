"""What many connections of VM pairs carry together by the providers' laws, and by tests.

A law (:mod:`planner.model.throughput`) is what VMs of one provider reached towards another
provider's, by distance. Measured links show how links of their class lie about it
(:mod:`probes.estimation.combining`): the same providers and kind of address, at such a distance.
Where a class is wide, links between the same two parts of the world tell more: on the January 2022
grid, another pair of Azure and AWS regions within 40 ms at both ends tells a far link within 20 %
in the median, the law alone within 40 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import NamedTuple

import numpy as np

from planner.model.baseline.graph import within_cap
from planner.model.estimate import Estimate, Origin
from planner.model.link import Site
from planner.model.link_array import EstimateArrays, Origins
from planner.model.throughput import UNKNOWN_MEMORY_YEARS, UNKNOWN_NOISE, UNKNOWN_SPREAD, LawSpread
from probes.estimation.aggregates import AggregateTests
from probes.estimation.combining import (
    LEAST_LINKS,
    LEAST_RATIO,
    ClassLaw,
    class_law,
    combined,
    tests_of,
)
from probes.estimation.flows import Pairs
from probes.estimation.groups import MAD_TO_SIGMA, Bools, Floats, Ints
from probes.estimation.origins import changed, of_many, own_first
from probes.estimation.provider_laws import CLASSES, ProviderLaws, within_caps
from probes.estimation.site_arrays import Bounds, least_caps

# Links between the same two parts of the world: they help where links of a class differ by half.
NEIGHBOUR_MS = 25.0
FARTHEST_NEIGHBOUR_MS = 80.0
NEIGHBOUR_FROM_SPREAD = 0.5
NEIGHBOUR_SHARE = 0.4
"""Of the spread, what neighbours take away at most."""
LEAST_GBPS = 1e-6
_NO_LINKS = np.zeros(0, np.int64)


class PriorArrays(NamedTuple):
    """What would be believed of measured links without their tests, as arrays of length m."""

    low: Floats
    expected: Floats
    high: Floats
    memory_years: Floats


class MeasuredLaw:
    """The providers' laws, as far as measured links bear them out.

    Parameters
    ----------
    laws : ProviderLaws
        Of n sites.
    sites : mapping
        These.
    pairs : (array, array)
        Sources and destinations of the m links that were measured.
    alone : EstimateArrays
        What was measured of these.
    origins : Origins
    """

    def __init__(
        self,
        laws: ProviderLaws,
        sites: Mapping[str, Site],
        pairs: Pairs,
        alone: EstimateArrays,
        origins: Origins,
    ) -> None:
        self._of, self._laws, self._origins = laws, laws.laws(), origins
        self._sites, self._pairs, self._alone = list(sites.values()), pairs, alone
        self._caps = least_caps(self._sites)
        key = laws.key[pairs]
        has_law = np.array([[model is not None for model in row] for row in laws.models])
        by_law = np.flatnonzero(has_law.ravel()[key // CLASSES]) if len(key) else np.zeros(0, int)
        self._ratios = np.zeros(len(key))
        ratios = alone.expected[by_law] / self._laws.expected[pairs][by_law]
        self._ratios[by_law] = np.log(np.maximum(LEAST_RATIO, ratios))
        self._learned: dict[int, dict[int, Ints]] = {}
        """The measured links of each class that count, by providers; all in order."""
        keys, number = np.unique(key[by_law], return_inverse=True)
        for one, links in sorted(
            ((one, by_law[number == place]) for place, one in enumerate(keys.tolist())),
            key=lambda of_class: of_class[1][0],
        ):
            own = links[own_first(origins, alone.origin[links])]
            self._learned.setdefault(one // CLASSES, {})[one] = own
        self._class_laws: dict[int, ClassLaw] = {}
        self._behind: dict[int, EstimateArrays] = {}

    def links_of_class(self, key: int) -> Ints:
        """Return the links of a class of distance; where they are too few, of all classes."""
        classes = self._learned.get(key // CLASSES, {})
        links = classes.get(key, _NO_LINKS)
        if len(links) >= LEAST_LINKS or not classes:
            return links
        return np.concatenate(list(classes.values()))

    def _class_law(self, key: int) -> ClassLaw:
        """Return how links of a class lie about their law."""
        if key not in self._class_laws:
            classes = self._learned.get(key // CLASSES, {})
            others = [links for other, links in classes.items() if other != key]
            own = self._ratios[classes.get(key, _NO_LINKS)]
            model = self._of.model(key)
            self._class_laws[key] = class_law(
                own,
                self._ratios[np.concatenate([_NO_LINKS, *others])],
                model.spread_of_class(key % CLASSES) if model else UNKNOWN_SPREAD,
            )
        return self._class_laws[key]

    def _shifted(self, pairs: Pairs) -> tuple[Floats, Floats, Floats]:
        """Return the laws of links, shifted as their classes are."""
        keys, number = np.unique(self._of.key[pairs], return_inverse=True)
        laws = [self._class_law(key) for key in keys]
        shifts = np.array([exp(law.shift) for law in laws])
        rates = self._laws.expected[pairs] * shifts[number]
        caps = Bounds(*(cap[pairs] for cap in self._caps))
        return within_caps(rates, [law.spread for law in laws], number, caps)

    def measured(self, tests: AggregateTests) -> tuple[EstimateArrays, PriorArrays]:
        """Return what tests of links and the laws of their classes say together, and the latter."""
        middles = tests.alone.expected
        priors, noise = self._priors(middles)
        deviations = MAD_TO_SIGMA * tests.groups.deviations(tests.values, middles)
        low, expected, high = np.log(np.stack(priors[:3], axis=1)).T
        repeated = tests_of(middles, deviations, tests.groups.counts, tests.is_lone, noise)
        found = combined(repeated, expected, expected - low, high - expected)
        low, expected, high = np.exp(
            [found.expected - found.below, found.expected, found.expected + found.above]
        )
        expected = np.where(found.expected == repeated.level, middles, expected)  # to the digit
        origin = tests.alone.origin.copy()
        origin[found.doubted] = changed(
            self._origins,
            origin[found.doubted],
            lambda one: one._replace(method="contradicted-sample"),
        )
        return tests.alone.with_bounds(low, expected, high, origin), priors

    def _priors(self, middles: Floats) -> tuple[PriorArrays, Floats]:
        """Return what would be believed of measured links without their tests, and their noise."""
        # Of nothing but caps: what was measured, and as little sure as where nothing is known.
        middles = np.maximum(middles, LEAST_GBPS)
        below, above = exp(-UNKNOWN_SPREAD.below), exp(UNKNOWN_SPREAD.above)
        unknown = (middles * below, middles, middles * above)
        with_law = self._with_law()
        low, expected, high = (
            np.where(with_law, shifted, other)
            for shifted, other in zip(self._shifted(self._pairs), unknown, strict=True)
        )
        models = [model for row in self._of.models for model in row]
        memory = np.array([one.memory_years if one else UNKNOWN_MEMORY_YEARS for one in models])
        noise = np.array([one.noise if one else UNKNOWN_NOISE for one in models])
        kind = self._of.kind[self._pairs]
        return PriorArrays(low, expected, high, memory[kind]), noise[kind]

    def _with_law(self) -> Bools:
        has_law = np.array([model is not None for row in self._of.models for model in row])
        found: Bools = has_law[self._of.kind[self._pairs]]
        return found

    def unmeasured(self, wanted: Bools) -> EstimateArrays:
        """Return the saturated throughput to expect of links; none where nothing is known.

        Parameters
        ----------
        wanted : array of bool, shape (n, n)
            Of which links; of others it is not said.
        """
        found = self._laws
        src, dst = np.nonzero(wanted & found.known)
        kinds = self._of.kind[src, dst]
        shown = np.isin(kinds, list(self._learned))
        src, dst = src[shown], dst[shown]
        if not len(src):
            return found
        found.put((src, dst), self._of_classes((src, dst)))
        return found

    def _of_classes(self, pairs: Pairs) -> EstimateArrays:
        """Return what links of their classes, and their neighbours, say of links."""
        law_gbps = self._laws.expected[pairs]
        keys, number = np.unique(self._of.key[pairs], return_inverse=True)
        origins = [self._origin_of_class(key) for key in keys]
        behind = EstimateArrays.of([Estimate(0.0, 0.0, 0.0, one) for one in origins], self._origins)
        behind = behind.take(number)
        low, expected, high = self._shifted(pairs)
        found = behind.with_bounds(low, expected, high, behind.origin)
        for place, key in enumerate(keys):
            if sum(self._class_law(key).spread) < NEIGHBOUR_FROM_SPREAD:
                continue
            links = self.links_of_class(key)
            for at in np.flatnonzero(number == place).tolist():
                ends = int(pairs[0][at]), int(pairs[1][at])
                if near := self._neighbours(*ends, links):
                    estimate = self._by_neighbours(ends, float(law_gbps[at]), key, near)
                    found.set(at, estimate, self._origins)
        return found

    def _origin_of_class(self, key: int) -> Origin:
        return of_many("shifted-law", self._alone.take(self.links_of_class(key)), self._origins)

    def _by_neighbours(
        self, ends: tuple[int, int], law_gbps: float, key: int, near: Mapping[int, float]
    ) -> Estimate:
        shift, spread = self._class_law(key)
        # The law counts as one link right beside.
        weight = sum(near.values())
        ratios = self._ratios[list(near)].tolist()
        moved = (w * (r - shift) for w, r in zip(near.values(), ratios, strict=True))
        shift += sum(moved) / (1 + weight)
        share = 1 - NEIGHBOUR_SHARE * weight / (1 + weight)
        spread = LawSpread(share * spread.below, share * spread.above)
        origin = of_many("neighbouring-links", self._alone.take(list(near)), self._origins)
        cap = Estimate(*(bound[ends].item() for bound in self._caps))
        return within_cap(law_gbps * exp(shift), spread, cap, origin)

    def _neighbours(self, src: int, dst: int, links: Ints) -> dict[int, float]:
        """Return measured links whose ends are both near this link's, with their weights."""
        out_ms = self._apart_ms(src)[self._pairs[0][links]]
        into_ms = self._apart_ms(dst)[self._pairs[1][links]]
        near = np.flatnonzero((out_ms < FARTHEST_NEIGHBOUR_MS) & (into_ms < FARTHEST_NEIGHBOUR_MS))
        apart = zip(out_ms[near].tolist(), into_ms[near].tolist(), strict=True)
        weights = (exp(-(a**2 + b**2) / (2 * NEIGHBOUR_MS**2)) for a, b in apart)
        return dict(zip(links[near].tolist(), weights, strict=True))

    def _apart_ms(self, region: int) -> Floats:
        """Return the round-trip times from a region to all, and to itself."""
        apart_ms: Floats = self._of.rtts_ms[region].copy()
        apart_ms[region] = 0.0
        return apart_ms

    def links_behind(self, src: int, dst: int, estimate: Estimate) -> list[tuple[int, int]]:
        """Return the measured links that shift the law for another, given what was made of it."""
        links = self.links_of_class(int(self._of.key[src, dst]))
        if estimate.origin.method == "neighbouring-links":
            links = np.array(list(self._neighbours(src, dst, links)), np.int64)
        elif estimate.origin.method != "shifted-law":
            return []
        return list(zip(*(ends[links].tolist() for ends in self._pairs), strict=True))
