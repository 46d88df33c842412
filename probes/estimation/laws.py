"""Throughput of many connections of VM pairs: providers' laws, tests, and both combined.

A law (:mod:`planner.model.throughput`) is the rate that VMs of one provider reached towards another
provider's, by distance. Measured links show the spread of their class about it: links of the same
providers and kind of address, at such a distance. A class has a law with a spread, both learned
from its links that were measured: the fewer these are, the more of ours. Where a class is wide,
links between the same two parts of the world tell more: on the January 2022 grid, another pair of
Azure and AWS regions within 40 ms at both ends tells a far link within 20 % in the median, the law
alone within 40 %.

A link's level lies about the law as its class is spread, and tests lie about the level as they
repeat; both weigh by their precision (a normal model's posterior). Where tests are far outside of
the class's spread, either the link is unlike its class or the test went wrong. One short test from
a cold start goes wrong now and then (on the 2022 grid, one in a hundred from AWS to Google Cloud
found a twentieth of the rate): alone it moves the bounds, and asks to be repeated. Several tests
that agree, or one of a steady rate, are believed wholly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import exp, isfinite
from typing import TypeAlias

import numpy as np

from planner.model.baseline.modelled_links import held_to_windows, set_rates, within_caps
from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind, Method
from planner.model.link import Site
from planner.model.link_array import FIGURE, Bools, Origins, Records
from planner.model.throughput import (
    CLASSES_MS,
    FAR,
    UNKNOWN_MEMORY_YEARS,
    UNKNOWN_NOISE,
    UNKNOWN_SPREAD,
    LawSpread,
    crosses_border,
    law_of,
    spread_of,
)
from probes.estimation.estimates import (
    EstimateArray,
    are_known,
    least_caps,
    no_estimates,
    of_many,
    own_first,
    with_bounds,
)
from probes.estimation.groups import MAD_TO_SIGMA, NORMAL_90, Floats, Ints
from probes.estimation.link_samples import LinkSamples
from probes.estimation.measurements import AggregateTests, Pairs

# Links between the same two parts of the world: they help where links of a class differ by half.
NEIGHBOUR_MS = 25.0
FARTHEST_NEIGHBOUR_MS = 80.0
NEIGHBOUR_FROM_SPREAD = 0.5
LEAST_LAW_GBPS = 1e-6
LAW_COUNTS_AS = 3
"""Links, in the median of a class: a few odd ones do not move it."""
NOISE_COUNTS_AS = 5
"""Tests, in the noise of a link's tests."""
LEAST_LINKS = 6
"""A class of distance with fewer is shifted by the other classes, too, and has our spread: the law
itself counts as half of these."""
ENDS_COUNT_AS = 4
"""Ends of a class's links that stand for one of later links: links of one survey share its time.
From all of January 2022, bounds then hold .90 instead of .88 of November's links of new regions."""
LEAST_NOISE = 0.01
LEAST_RATIO = 1e-3
OTHER_SIZE = 2.0
"""A VM whose cap differs more from its type's is not of the size that a law is of."""
USUAL_RTT_MS = 100.0
"""Where no location is known: a law needs some distance."""
CLASSES = len(CLASSES_MS) + 1
"""Of distance."""
NO_LINKS = np.zeros(0, np.int64)
Bounds: TypeAlias = tuple[Floats, Floats, Floats]


def class_law(
    own: Floats, others: Floats, ours: LawSpread, regions: int | None = None
) -> tuple[float, LawSpread]:
    """Return shift and spread of a class of links about their law.

    The shift is the median of measured over law, as a logarithm: so are ``own``, of links of the
    class, and ``others``, of the same providers in other classes of distance. ``ours`` is the
    spread of the class on the 2022 grids; regions are those at either end, whichever are fewer.
    """
    if len(own) < LEAST_LINKS:
        return _median_with_law(np.append(own, others)), ours
    shift = _median_with_law(own)
    widest = FAR * max(ours)
    errors = np.sort(np.clip(own - shift, -widest, widest))
    return shift, spread_of(errors.tolist(), ours, regions)


def _median_with_law(ratios: Floats) -> float:
    """Return the median of some links and the law itself, between two the nearer to the law."""
    ordered = np.sort(np.append(ratios, [0.0] * LAW_COUNTS_AS))
    below, above = ordered[(len(ordered) - 1) // 2].item(), ordered[len(ordered) // 2].item()
    return float(min(max(0.0, below), above))


def _weighted_median(ratios: Floats, weights: Floats) -> float:
    """Return the median of links, in which the law counts as one at the same place."""
    ratios, weights = np.append(ratios, 0.0), np.append(weights, 1.0)
    order = np.argsort(ratios)
    middles = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(weights.sum() / 2, middles, ratios[order]))


class LinkClasses:
    """The links between n regions by class: the same providers, at such a distance.

    Parameters
    ----------
    regions : collection of str
    catalogue : Catalogue
        It tells the domains of regions.
    address : {"public", "private"}
        The kind of address that laws are of.
    rtts_ms : EstimateArray, shape (n, n)
    pairs : (array, array)
        Sources and destinations of the m links that were measured, `alone` their estimates from
        measurements alone, and `origins` the origins of these.
    """

    def __init__(
        self,
        regions: Collection[str],
        catalogue: Catalogue,
        address: AddressKind,
        rtts_ms: EstimateArray,
        pairs: Pairs,
        alone: EstimateArray,
        origins: Origins,
    ) -> None:
        self._pairs, self._alone, self._origins = pairs, alone, origins
        self._domains = [catalogue.region(name).law_domain for name in regions]
        distinct = list(dict.fromkeys(self._domains))
        self._models = [law_of(src, dst, address) for src in distinct for dst in distinct]
        self._has_law = np.array([model is not None for model in self._models], np.bool_)
        number = np.array([distinct.index(name) for name in self._domains], np.int64)
        border = np.array([[crosses_border(src, dst) for dst in distinct] for src in distinct])
        self.at_border: Bools = border[number[:, None], number]  # (n, n): links that no model knows
        unknown = ~are_known(rtts_ms)
        self._rtts_ms = np.where(unknown, USUAL_RTT_MS, rtts_ms["expected"])
        self._highest_ms = np.where(unknown, USUAL_RTT_MS, rtts_ms["high"])
        kind = number[:, None] * len(distinct) + number
        self._key = kind * CLASSES + np.searchsorted(CLASSES_MS, self._highest_ms, side="right")
        """Of each link, its providers and class of distance."""
        # What held a transfer says nothing of other links.
        teaches = np.array([one.method != "median-of-transfers" for one in origins.all], np.bool_)
        key = self._key[pairs]
        by_law = np.flatnonzero(self._has_law[key // CLASSES] & teaches[alone["origin"]])
        self._learned: dict[int, dict[int, Ints]] = {}
        """The measured links of each class that count, by providers; all in order."""
        for one in dict.fromkeys(key[by_law].tolist()):
            links = by_law[key[by_law] == one]
            own = links[own_first(origins, alone["origin"][links])]
            self._learned.setdefault(one // CLASSES, {})[one] = own

    def links_of_class(self, key: int) -> Ints:
        """Return the links of a class of distance; where they are too few, of all classes."""
        classes = self._learned.get(key // CLASSES, {})
        links = classes.get(key, NO_LINKS)
        if len(links) >= LEAST_LINKS or not classes:
            return links
        return np.concatenate(list(classes.values()))

    def neighbours(self, src: int, dst: int, links: Ints) -> tuple[Ints, Floats]:
        """Return measured links whose ends are both near this link's, with their weights."""
        out_ms, into_ms = (
            np.where(ends[links] == own, 0.0, self._rtts_ms[own, ends[links]])
            for own, ends in zip((src, dst), self._pairs, strict=True)
        )
        near = (out_ms < FARTHEST_NEIGHBOUR_MS) & (into_ms < FARTHEST_NEIGHBOUR_MS)
        squares = out_ms[near] ** 2 + into_ms[near] ** 2
        return links[near], np.exp(-squares / (2 * NEIGHBOUR_MS**2))

    def links_behind(self, src: int, dst: int, method: Method) -> list[tuple[int, int]]:
        """Return the measured links that shift the law for another, given its method."""
        links = self.links_of_class(int(self._key[src, dst]))
        if method == "neighbouring-links":
            links, _ = self.neighbours(src, dst, links)
        return list(zip(*(ends[links].tolist() for ends in self._pairs), strict=True))


class MeasuredLaw(LinkClasses):
    """The laws between the providers of n sites, as far as measured links bear them out.

    Parameters
    ----------
    sites, typed : mapping
        With caps measured where they were, and with those of their VM types. Where a cap was found
        to be less than half of that, or more than twice, the VM is not of the size that the law is
        of, and the law holds in proportion.
    windows_gbps : array of FIGURE, shape (n, n)
        What the windows of a link's connections allow, 64 where none were counted.
    samples : LinkSamples
        They have a kind of address, a catalogue, and the origins of estimates.
    rtts_ms : EstimateArray, shape (n, n)
    tests : AggregateTests
        Those of the m links that were measured.
    """

    def __init__(
        self,
        sites: Mapping[str, Site],
        typed: Mapping[str, Site],
        windows_gbps: Records,
        rtts_ms: EstimateArray,
        samples: LinkSamples,
        tests: AggregateTests,
    ) -> None:
        address, links = samples.address, (tests.pairs, tests.alone, samples.origins)
        super().__init__(sites, samples.catalogue, address, rtts_ms, *links)
        self._tests = tests
        self._windows, self._caps = windows_gbps, least_caps(sites.values())
        self._laws = self._laid(list(sites.values()), list(typed.values()), address)
        with np.errstate(divide="ignore", invalid="ignore"):  # nothing got through, or is expected
            ratios = tests.alone["expected"] / self._laws["expected"][tests.pairs]
        self._ratios: Floats = np.log(np.maximum(LEAST_RATIO, ratios))

    def _laid(self, sites: list[Site], typed: list[Site], address: AddressKind) -> EstimateArray:
        """Return one VM pair's saturated throughput by law and caps, shape (n, n)."""
        ends = np.divmod(np.arange(len(sites) ** 2), len(sites))
        rates, rtts_ms = np.zeros((2, len(ends[0])), FIGURE)
        rtts_ms["expected"], rtts_ms["high"] = self._rtts_ms.ravel(), self._highest_ms.ravel()
        caps = least_caps(sites, address).ravel()
        shares = np.array([_proportion(a, b) for a, b in zip(sites, typed, strict=True)])
        domains, origins = self._domains, self._origins
        set_rates(rates, sites, domains, ends, rtts_ms, caps, address, origins, shares)
        expected = np.where(np.isinf(rates["expected"]), np.nan, rates["expected"])
        bounds = rates["low"], expected, rates["high"]
        found = with_bounds(no_estimates(len(rates)), *bounds, rates["evidence"])
        found = found.reshape(self._key.shape)
        held = held_to_windows(found, self._windows)
        found["origin"][held] = origins.held_to("windows", found["origin"][held])
        return found

    def _class_law(self, key: int) -> tuple[float, LawSpread]:
        """Return shift and spread of a class of links about their law."""
        classes = dict(self._learned.get(key // CLASSES, {}))
        own = classes.pop(key, NO_LINKS)
        others = np.concatenate([NO_LINKS, *classes.values()])
        model = self._models[key // CLASSES]
        ours = model.spread_of_class(key % CLASSES) if model else UNKNOWN_SPREAD
        regions = sum(len(np.unique(ends[own])) for ends in self._pairs) // ENDS_COUNT_AS
        return class_law(self._ratios[own], self._ratios[others], ours, regions)

    def _laws_of(self, pairs: Pairs) -> tuple[list[int], Ints, Floats]:
        """Return the classes of links, each link's class among them, and its shift and spread."""
        keys, number = np.unique(self._key[pairs], return_inverse=True)
        laws = [self._class_law(key) for key in keys.tolist()]
        figures = np.array([(shift, *spread) for shift, spread in laws]).reshape(-1, 3)
        return keys.tolist(), number, figures[number].T

    def _bounds(self, pairs: Pairs, shift: Floats, below: Floats, above: Floats) -> Bounds:
        rates = self._laws["expected"][pairs] * np.exp(shift)
        bounds = within_caps(rates, below, above, self._caps[pairs])
        held = with_bounds(no_estimates(len(rates)), *bounds)
        held_to_windows(held, self._windows[pairs])
        return held["low"], held["expected"], held["high"]

    def measured(self) -> tuple[EstimateArray, Floats]:
        """Combine tests of links with the laws of their classes.

        Also return the estimates without tests: the four numbers of a :class:`.Prior` by row.
        """
        tests, middles = self._tests, self._alone["expected"]
        kind = self._key[self._pairs] // CLASSES
        usual = UNKNOWN_MEMORY_YEARS, UNKNOWN_NOISE
        models = [(one.memory_years, one.noise) if one else usual for one in self._models]
        memory, of_class = np.array(models).reshape(-1, 2)[kind].T
        # With caps alone: the measured rates, with the bounds of links of which nothing is known.
        rates = np.maximum(middles, LEAST_LAW_GBPS)
        unknown = rates * exp(-UNKNOWN_SPREAD.below), rates, rates * exp(UNKNOWN_SPREAD.above)
        shifted = self._bounds(self._pairs, *self._laws_of(self._pairs)[2])
        prior = np.where(self._has_law[kind], shifted, unknown)
        # From here on all figures are logarithms. The law expects `expected`, and 90 % of its links
        # lie between `low` and `high`; 90 % of a link's tests lie within `noise` of their level,
        # which is minus infinity where nothing got through.
        low, expected, high = np.log(prior)
        deviations = MAD_TO_SIGMA * tests.groups.deviations(tests.values, middles)
        with np.errstate(divide="ignore", invalid="ignore"):
            seen = np.where(middles > 0, NORMAL_90 * deviations / middles, 0.0)
            level, counts = np.log(middles), tests.groups.counts
        squares = NOISE_COUNTS_AS * of_class**2 + counts * seen**2
        noise = np.maximum(LEAST_NOISE, np.sqrt(squares / (NOISE_COUNTS_AS + counts)))
        # Whatever the last digit, the median link is not below itself.
        lower = level < expected - 1e-9
        with np.errstate(invalid="ignore"):
            below, above = expected - low, high - expected
            far = np.abs(level - expected)
        spread = np.maximum(np.where(lower, below, above), noise)
        far = far > FAR * spread
        # The spread over links holds the noise of one test.
        of_level = np.maximum(spread**2 - noise**2, spread**2 / 4)
        of_median = noise**2 / np.maximum(counts, 1)
        weight = np.where(far, 1.0, of_level / (of_level + of_median))
        # For a link unlike its class, the class's noise means little.
        unlike = np.where(far, UNKNOWN_NOISE**2 / np.maximum(counts, 1), 0.0)
        error = np.sqrt(weight * of_median + noise**2 + unlike)
        with np.errstate(invalid="ignore"):
            away = np.abs(level - expected) + noise
            believed = np.where(weight == 1.0, level, expected + weight * (level - expected))
        # A lone test that contradicts its law so much moves the bounds, and is to be repeated.
        doubted = far & tests.is_lone
        below, above = (
            np.where(further, np.maximum(width, away), width)
            for further, width in ((lower, below), (~lower, above))
        )
        middle = np.where(doubted, expected, believed)
        bounds = (
            np.exp(middle - np.where(doubted, below, error)),
            np.where(middle == level, middles, np.exp(middle)),  # to the digit
            np.exp(middle + np.where(doubted, above, error)),
        )
        found = with_bounds(tests.alone, *bounds)
        found["origin"][doubted] = self._origins.changed(
            found["origin"][doubted], lambda one: one._replace(method="contradicted-sample")
        )
        return found, np.stack([*prior, memory])

    def unmeasured(self, wanted: np.ndarray) -> EstimateArray:
        """Return the saturated throughput to expect of links, by their classes and neighbours.

        Links that are not wanted get their law alone, or none.
        """
        found = self._laws
        is_learned = np.isin(self._key // CLASSES, list(self._learned))
        src, dst = np.nonzero(wanted & are_known(found) & is_learned)
        if not len(src):
            return found
        pairs = src, dst
        keys, number, (shift, below, above) = self._laws_of(pairs)
        behind = [self.links_of_class(key) for key in keys]
        made = [of_many("shifted-law", self._alone[links], self._origins) for links in behind]
        evidence = np.concatenate(made)[number]
        for at in np.flatnonzero(below + above >= NEIGHBOUR_FROM_SPREAD).tolist():
            links, weights = self.neighbours(src[at], dst[at], behind[number[at]])
            if len(links):
                shift[at] += _weighted_median(self._ratios[links] - shift[at], weights)
                evidence[at] = of_many("neighbouring-links", self._alone[links], self._origins)[0]
        found[pairs] = with_bounds(evidence, *self._bounds(pairs, shift, below, above))
        return found


def _proportion(site: Site, typed: Site) -> float:
    """Return the share of its type's cap that a VM of another size has; else 1.

    A link within the provider's network may have exceeded the cap over private addresses.
    """
    origin = site.egress_gbps.origin
    ends = origin.figures and origin.figures.between
    if origin.method == "link-above-cap" and ends and law_of(*ends) != law_of(*ends, "private"):
        return 1.0
    of_type_gbps = typed.egress_gbps.expected
    share = site.egress_gbps.expected / of_type_gbps if isfinite(of_type_gbps) else 1.0
    return share if not 1 / OTHER_SIZE <= share <= OTHER_SIZE else 1.0
