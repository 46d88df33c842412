"""What many connections of VM pairs carry together by the providers' laws, and by tests.

A law (:mod:`planner.model.throughput`) is what VMs of one provider reached towards another
provider's, by distance. Measured links show how links of their class lie about it
(:mod:`probes.estimation.combining`): the same providers and kind of address, at such a distance.
Where a class is wide, links between the same two parts of the world tell more: on the January 2022
grid, another pair of Azure and AWS regions within 40 ms at both ends tells a far link within 20 %
in the median, the law alone within 40 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, isfinite, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline import larger_than_law, origin_of_law, within_cap
from planner.model.columns.links import Origins
from planner.model.columns.table import EstimateArrays
from planner.model.estimate import AddressKind, Estimate, Origin
from planner.model.link import Site
from planner.model.throughput import (
    CLASSES_MS,
    UNKNOWN_MEMORY_YEARS,
    UNKNOWN_NOISE,
    UNKNOWN_SPREAD,
    AggregateLaw,
    LawSpread,
    law_of,
)
from probes.estimation.aggregates import AggregateTests
from probes.estimation.arrays.groups import Bools, Floats, Ints, each, powers
from probes.estimation.arrays.origins import changed, of_many, own_first
from probes.estimation.arrays.sites import Bounds, least_caps
from probes.estimation.bounds import MAD_TO_SIGMA
from probes.estimation.combining import (
    LEAST_LINKS,
    LEAST_RATIO,
    ClassLaw,
    class_law,
    combined,
    tests_of,
)
from probes.estimation.flows import Pairs

# Links between the same two parts of the world: they help where links of a class differ by half.
NEIGHBOUR_MS = 25.0
FARTHEST_NEIGHBOUR_MS = 80.0
NEIGHBOUR_FROM_SPREAD = 0.5
NEIGHBOUR_SHARE = 0.4
"""Of the spread, what neighbours take away at most."""
OTHER_SIZE = 2.0
"""A VM whose cap differs more from its type's is not of the size that a law is of."""
USUAL_RTT_MS = 100.0
"""Where no location is known: a law needs some distance."""
LEAST_GBPS = 1e-6
_CLASSES = len(CLASSES_MS) + 1
_VM_CAPS = Origin("baseline", "vm-caps")


class PriorArrays(NamedTuple):
    """What would be believed of measured links without their tests, as arrays of length m."""

    low: Floats
    expected: Floats
    high: Floats
    memory_years: Floats


class ProviderLaws:
    """The laws between the providers of n sites, and of which law and class each link is.

    Parameters
    ----------
    sites : mapping
        With caps measured where they were.
    typed : mapping
        The same sites with the caps of their VM types. Where a cap was found to be less than half
        of that, or more than twice, the VM is not of the size that the law is of, and the law
        holds in proportion.
    rtts_ms : EstimateArrays, shape (n, n)
    address : AddressKind
    origins : Origins
    """

    def __init__(
        self,
        sites: Mapping[str, Site],
        typed: Mapping[str, Site],
        rtts_ms: EstimateArrays,
        address: AddressKind,
        origins: Origins,
    ) -> None:
        self._sites, self._typed = list(sites.values()), list(typed.values())
        self._address, self._origins = address, origins
        names = [name.partition(":")[0] for name in sites]
        self.providers = list(dict.fromkeys(names))
        self.provider = np.array([self.providers.index(name) for name in names], np.int64)
        self.models = [[law_of(p, q, address) for q in self.providers] for p in self.providers]
        unknown = ~rtts_ms.known
        self.rtts_ms = np.where(unknown, USUAL_RTT_MS, rtts_ms.expected)
        highest_ms = np.where(unknown, USUAL_RTT_MS, rtts_ms.high)
        distance = np.searchsorted(CLASSES_MS, highest_ms, side="right")
        count = len(self.providers)
        self.kind = self.provider[:, None] * count + self.provider
        self.key = self.kind * _CLASSES + distance

    def model(self, key: int) -> AggregateLaw | None:
        """Return the law of a class of links, by its number."""
        return self.models[key // _CLASSES // len(self.providers)][
            key // _CLASSES % len(self.providers)
        ]

    def laws(self) -> EstimateArrays:
        """Return one VM pair's saturated throughput by law and caps, shape (n, n).

        As :func:`planner.model.baseline.aggregate_estimate` says of one pair.
        """
        caps = least_caps(self._sites, self._address)
        size = len(self._sites)
        found = EstimateArrays.none(size, size).with_bounds(
            caps.expected * exp(-UNKNOWN_SPREAD.below),
            caps.expected.copy(),
            caps.high.copy(),
            np.full((size, size), self._origins.number_of(_VM_CAPS), np.int32),
        )
        found.expected[np.isinf(caps.expected)] = np.nan
        for i, row in enumerate(self.models):
            for j, model in enumerate(row):
                if model is not None:
                    self._lay(model, i, j, caps, found)
        return found

    def _lay(
        self, model: AggregateLaw, sends: int, receives: int, caps: Bounds, found: EstimateArrays
    ) -> None:
        """Lay a law over the links from one provider to another."""
        of_larger: dict[float, list[int]] = {}
        for number in np.flatnonzero(self.provider == sends).tolist():
            larger = larger_than_law(self._sites[number], model, self._address)
            of_larger.setdefault(larger, []).append(number)
        to = np.flatnonzero(self.provider == receives)
        for larger, sources in of_larger.items():
            places = np.ix_(np.array(sources), to)
            rates = self._steady_gbps(model, self.rtts_ms[places])
            rates = rates * self._proportions(sources)[:, None] * larger
            classes = self.key[places] % _CLASSES
            spreads = [_wider(model.spread_of_class(one), larger) for one in range(_CLASSES)]
            pair = (self.providers[sends], self.providers[receives])
            origins = [
                self._origins.number_of(origin_of_law(pair, exp(max(spread)) - 1))
                for spread in spreads
            ]
            bounds = within_caps(rates, spreads, classes, Bounds(*(c[places] for c in caps)))
            number_of_class = np.array(origins, np.int32)
            laid: Sequence[NDArray[Any]] = (*bounds, number_of_class[classes])
            columns: Sequence[NDArray[Any]] = found[:4]
            for column, values in zip(columns, laid, strict=True):
                column[places] = values

    def _steady_gbps(self, model: AggregateLaw, rtts_ms: Floats) -> Floats:
        if model.exponent == 0:
            return np.full(rtts_ms.shape, model.limit_gbps)
        far_gbps = model.scale_gbps * powers(rtts_ms / 100.0, model.exponent)
        return np.minimum(model.limit_gbps, far_gbps)

    def _proportions(self, sources: Sequence[int]) -> Floats:
        found = [
            _proportion(
                self._sites[number].egress_gbps.expected, self._typed[number].egress_gbps.expected
            )
            for number in sources
        ]
        return np.array(found)


def _wider(spread: LawSpread, larger: float) -> LawSpread:
    # That smaller VMs were held by their cap, not by the path, is not known of each link.
    return LawSpread(spread.below + log(larger), spread.above) if larger > 1 else spread


def within_caps(
    rates: Floats, spreads: Sequence[LawSpread], of_spread: Ints, caps: Bounds
) -> tuple[Floats, Floats, Floats]:
    """Return :func:`planner.model.baseline.within_cap` of many pairs.

    Parameters
    ----------
    rates : array
    spreads : sequence of LawSpread
    of_spread : array of int
        Which of these is of each pair.
    caps : Bounds
    """
    below = np.array([exp(-spread.below) for spread in spreads])[of_spread]
    above = np.array([exp(spread.above) for spread in spreads])[of_spread]
    expected = np.minimum(rates, caps.expected)
    return (
        np.minimum(np.minimum(rates * below, caps.low), expected),
        expected,
        np.maximum(expected, np.minimum(rates * above, caps.high)),
    )


def _proportion(found_gbps: float, of_type_gbps: float) -> float:
    if not isfinite(of_type_gbps):
        return 1.0
    share = found_gbps / of_type_gbps
    return share if not 1 / OTHER_SIZE <= share <= OTHER_SIZE else 1.0


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
        by_law = np.flatnonzero(has_law.ravel()[key // _CLASSES]) if len(key) else np.zeros(0, int)
        self._ratios = np.zeros(len(key))
        ratios = alone.expected[by_law] / self._laws.expected[pairs][by_law]
        self._ratios[by_law] = each(log, np.maximum(LEAST_RATIO, ratios))
        self._learned: dict[int, dict[int, Ints]] = {}
        """The measured links of each class that count, by providers; all in order."""
        keys, first = np.unique(key[by_law], return_index=True)
        for one in keys[np.argsort(first)].tolist():
            links = by_law[key[by_law] == one]
            links = links[own_first(origins, alone.origin[links])]
            self._learned.setdefault(one // _CLASSES, {})[one] = links
        self._class_laws: dict[int, ClassLaw] = {}
        self._behind: dict[int, EstimateArrays] = {}

    def links_of_class(self, key: int) -> Ints:
        """Return the links of a class of distance; where they are too few, of all classes."""
        classes = self._learned.get(key // _CLASSES, {})
        links = classes.get(key, np.zeros(0, np.int64))
        if len(links) >= LEAST_LINKS or not classes:
            return links
        return np.concatenate(list(classes.values()))

    def _class_law(self, key: int) -> ClassLaw:
        """Return how links of a class lie about their law."""
        if key not in self._class_laws:
            classes = self._learned.get(key // _CLASSES, {})
            others = [links for other, links in classes.items() if other != key]
            own = self._ratios[classes[key]].tolist() if key in classes else []
            model = self._of.model(key)
            self._class_laws[key] = class_law(
                own,
                self._ratios[np.concatenate([np.zeros(0, np.int64), *others])].tolist(),
                model.spread_of_class(key % _CLASSES) if model else UNKNOWN_SPREAD,
            )
        return self._class_laws[key]

    def _shifted(self, pairs: Pairs) -> tuple[Floats, Floats, Floats]:
        """Return the laws of links, shifted as their classes are."""
        keys, number = np.unique(self._of.key[pairs], return_inverse=True)
        laws = [self._class_law(key) for key in keys.tolist()]
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
        origins = [self._origin_of_class(key) for key in keys.tolist()]
        behind = EstimateArrays.of([Estimate(0.0, 0.0, 0.0, one) for one in origins], self._origins)
        behind = behind.take(number)
        low, expected, high = self._shifted(pairs)
        found = behind.with_bounds(low, expected, high, behind.origin)
        for place, key in enumerate(keys.tolist()):
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
