"""The samples of each metric and link that count, and their sources."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from functools import cached_property
from math import log
from typing import NamedTuple

import numpy as np

from planner.model.baseline.flow_spreads import REPEAT_ERROR
from planner.model.baseline.modelled_links import baseline_links, least_cap
from planner.model.catalogue import Catalogue
from planner.model.estimate import BOUNDS, Achieved, AddressKind, Figures, Kind, Method, Origin
from planner.model.link import AT_LIMIT, Site
from planner.model.link_array import LinkArray, Origins, bounds_of
from planner.model.throughput import UNKNOWN_NOISE, law_of, steady_rates
from planner.model.units import MBPS_PER_GBPS
from probes.estimation.agreement import (
    LEAST_TOLERANCE,
    NOISES,
    Agreement,
    DisputedSamples,
    agreed,
    figures_with,
    mark_of,
    reference_of,
    trusted,
)
from probes.estimation.current_samples import CurrentSamples, evaluated
from probes.estimation.estimates import (
    ADDRESS_OF,
    EstimateArray,
    addresses_of,
    are_own,
    changed_by,
    no_estimates,
    with_bounds,
)
from probes.estimation.groups import Bools, Floats, Groups, Ints
from probes.estimation.transfers import Learnt, learnt, readings_of
from probes.estimation.vm_types import (
    OTHER,
    UNKNOWN,
    UNSTATED,
    fit_of_types,
    unknown_types,
    within_cards,
)
from probes.metrics import CAPS, METRICS, THROUGHPUT, Metric, number_of
from probes.samples import ADDRESSES, FILES, OWN, ROW, NameTable, Rows, Samples

ALL_LOST_PCT = 100.0
_STATED = r'"%s": ?(\d{1,6}(?:\.\d{1,9})?)[,}]'
MEMORY_S = 30 * 86400.0
"""Older samples of a link no longer count once there are newer ones."""
LEAST_VALUE = 1e-3
"""Least value with a logarithm, for tests in which nothing got through."""
FAR = 2.0
"""Times the distance of the bounds that hold 90 % of links."""
LEAST_FAR = log(2.0)
"""VMs of the next size. One in twenty links of the 2022 grids is off by this and :data:`FAR`."""


CANDIDATE = np.dtype(
    [
        *ROW.descr,
        ("place", "i8"),  # among the samples of LinkSamples
        ("first_id", "i8"),  # by arrival: of its source, since the last change
        ("fit", "i1"),  # of its VM types, such as UNKNOWN
        ("steady", "f8"),  # its value, corrected for slow start
        # Logarithm of that, by which samples are compared; of one percent more, for loss.
        ("log", "f8"),
    ]
)
"""A sample that may count."""


class CountedSamples(NamedTuple):
    """The samples of one metric that count, by link."""

    rows: Rows  # of :data:`CANDIDATE`, the oldest of each link first
    groups: Groups  # one for each link
    # For each link, that of an estimate from its samples, without their kind of address
    origins: Ints
    # Source and destination, as numbers, to the samples that count and those that contradict them,
    # where several sources have reported or one reports what models hardly allow
    judged: Mapping[tuple[int, int], Agreement] = {}
    # Source and destination, as numbers, to how transfers of the link were read
    achieved: Mapping[tuple[int, int], Achieved] = {}

    def waiting(self) -> dict[tuple[int, int], Figures]:
        """Return the marks of links, or caps, that their estimates do not have yet.

        These are the sources of samples of which none counts, and what transfers achieved.
        """
        found = {
            pair: mark
            for pair, judged in self.judged.items()
            if not len(judged.rows) and (mark := mark_of(judged))
        }
        for pair, achieved in self.achieved.items():
            found[pair] = found.get(pair, Figures())._replace(transfers=achieved)
        return found

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """Numbers of the source and the destination of each link."""
        return ends_of(self.rows[self.groups.first])

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Numbers of the ends of each link."""
        src, dst = self.ends
        return list(zip(src.tolist(), dst.tolist(), strict=True))

    def where(self, chosen: Bools | Ints) -> CountedSamples:
        """Return the samples that are chosen; a link without one is left out."""
        if chosen.dtype == np.bool_ and chosen.all():  # as nearly always: no copy
            return CountedSamples(self.rows, self.groups, self.origins)
        numbers = self.groups.numbers()[chosen]
        groups = Groups.of(numbers)
        return CountedSamples(self.rows[chosen], groups, self.origins[numbers[groups.first]])


def ends_of(rows: Rows) -> tuple[Ints, Ints]:
    """Return the numbers of samples' regions among sites; they are the first of their names."""
    return rows["src"].astype(np.int64) - 1, rows["dst"].astype(np.int64) - 1


def steady_values(rows: Rows, metric: Metric, rtts_ms: Floats) -> Floats:
    """Return values of samples of a metric, corrected for slow start.

    Round-trip times have shape (n, n); NaN where not known: samples stay as they are.
    """
    values: Floats = rows["value"]
    if metric not in THROUGHPUT:
        return values
    cold_s = np.where(rows["warmed_up"], 0.0, rows["duration_s"])
    return steady_rates(values, rtts_ms[ends_of(rows)], cold_s, one_flow=metric == "per_flow_mbps")


class LinkSamples:
    """The samples over one kind of address between some regions, by metric and link.

    Parameters
    ----------
    current : CurrentSamples
        The regions are the first of their names.
    sites : mapping
        The regions, with the VM types assumed: a throughput sample that was taken with another
        that the catalogue knows does not count. One with VMs of a type that is not known counts
        where a link has no others.
    catalogue : Catalogue
    address : AddressKind
        Kind of address of the samples.
    origins : Origins
        Where origins of estimates from these samples are kept.
    finished : Samples, optional
        Samples with the durations of all transfers, by which theirs are read; these unless given.

    Attributes
    ----------
    rtts_ms : array, shape (n, n)
        Round-trip times, to compare tests from a cold start with others; NaN where not known.
    names : list of str
    samples : Samples
    sources : list of str
        Names of reporters, by their numbers.
    """

    def __init__(
        self,
        current: CurrentSamples,
        sites: Mapping[str, Site],
        catalogue: Catalogue,
        address: AddressKind,
        origins: Origins,
        finished: Samples | None = None,
    ) -> None:
        self.rtts_ms = np.full((len(sites), len(sites)), np.nan)
        self.catalogue, self.address, self.origins = catalogue, address, origins
        fits = fit_of_types(current.samples, sites, catalogue)
        self.samples = within_cards(current.samples, fits, sites, catalogue)
        self.readings = readings_of(self.samples, finished or self.samples)
        self._rows = np.zeros(len(self.samples), CANDIDATE)
        for name in ROW.names or ():
            self._rows[name] = self.samples.rows[name]
        self._rows["place"], self._rows["fit"] = np.arange(len(fits)), fits
        self._rows["first_id"], self.is_mixed = current.first_id, current.is_mixed
        self.names = list(sites)
        self.sources = list(self.samples.names)
        self._counted: dict[Metric, CountedSamples] = {}
        self._stated: dict[str, Floats] = {}
        self._typed = list(sites.values())

    def with_rtts_ms(self, rtts_ms: Floats) -> LinkSamples:
        """Return the same samples, rates among which are compared by these round-trip times."""
        found = copy(self)
        found.rtts_ms = rtts_ms
        found._counted = {one: c for one, c in self._counted.items() if one not in THROUGHPUT}
        return found

    def stated(self, name: str) -> Floats:
        """Return the figure of a name that each detail states; NaN where it states none."""
        if name not in self._stated:
            found = map(re.compile(_STATED % name).search, self.samples.details)
            self._stated[name] = np.array([float(one[1]) if one else np.nan for one in found])
        return self._stated[name]

    def recent(self, metric: Metric) -> CountedSamples:
        """Return the samples that are not much older than the newest of their link.

        A transfer makes no test old: it may tell less.
        """
        rows = self._rows[self._rows["metric"] == number_of(metric)]
        rows["steady"] = steady_values(rows, metric, self.rtts_ms)
        if metric == "loss_pct":
            rows["log"] = np.log1p(rows["steady"])
        else:
            rows["log"] = np.log(np.maximum(rows["steady"], LEAST_VALUE))
        groups = Groups.of(rows["src"], rows["dst"])
        found = CountedSamples(rows, groups, np.full(len(groups.first), self._origin()))
        at_s = rows["measured_at_s"]
        newest_s = groups.reduced(np.maximum, at_s)
        of_tests_s = groups.reduced(np.maximum, np.where(self.are_transfers(rows), -np.inf, at_s))
        recent = at_s >= groups.spread(newest_s) - MEMORY_S
        recent |= ~self.are_transfers(rows) & (at_s >= groups.spread(of_tests_s) - MEMORY_S)
        return found.where(recent)

    def pairs(self) -> Bools:
        """Mark the links that have samples, shape (n, n)."""
        pairs = np.zeros(self.rtts_ms.shape, np.bool_)
        pairs[ends_of(self.samples.rows)] = True
        return pairs

    def of_reference(self, rows: Rows) -> Samples:
        """Return a link's samples of its reference that were taken with its VM types."""
        found = self.from_sources(rows)
        taken = found[reference_of(found)]
        return self.samples[taken["place"][taken["fit"] > OTHER]]

    def counted(self, metric: Metric) -> CountedSamples:
        """Return the samples on which estimates of a metric rest."""
        if metric not in self._counted:
            self._counted[metric] = self._count(metric)
        return self._counted[metric]

    def _count(self, metric: Metric) -> CountedSamples:
        found = self.recent(metric)
        if metric == "loss_pct":
            # A filter for ICMP looks like total loss, which does not show the path's loss.
            found = found.where(found.rows["value"] < ALL_LOST_PCT)
        elif metric in THROUGHPUT:
            fits, achieved = found.rows["fit"], self.are_transfers(found.rows)
            best = np.maximum(found.groups.reduced(np.maximum, fits), UNKNOWN)
            is_best = fits == found.groups.spread(best)
            found = found.where(is_best | (achieved & (fits == UNSTATED)))
        elif metric in CAPS:
            found = found.where(found.rows["fit"] >= UNSTATED)
        transfers = found
        if metric == "aggregate_mbps":
            achieved = self.are_transfers(found.rows)
            transfers, found = found.where(achieved), found.where(~achieved)
            # Tests with fewer connections may not have saturated the pair.
            parts, opened = found.groups.numbers(), found.rows["connections"]
            of_source = Groups.of(parts, found.rows["source"])
            most = of_source.spread(of_source.reduced(np.maximum, opened))
            found = found.where(opened == most)
        if self.is_mixed:
            found = self._judged(metric, found)
        if metric == "aggregate_mbps" and len(transfers.rows):
            found = self._with_transfers(found, transfers)
        return self._with_types(found) if metric in THROUGHPUT else found

    def are_transfers(self, rows: Rows) -> Bools:
        """Mark the samples of transfers and paced tests, which anything may have held."""
        found: Bools = self.readings.achieved[rows["place"]]
        return found

    def transfers(self) -> CountedSamples:
        """Collect the rates that paths gave transfers with a known number of connections."""
        found = self.recent("aggregate_mbps")
        counts = self.readings.of_path[found.rows["place"]] & (found.rows["connections"] > 0)
        return found.where(counts & (found.rows["fit"] > OTHER))

    def _with_transfers(self, tests: CountedSamples, transfers: CountedSamples) -> CountedSamples:
        """Put what transfers teach in place of tests, where it is another rate or there are none.

        The same rule holds whoever reports; that no test has confirmed a rate is told.
        """
        of_link = {pair: number for number, pair in enumerate(tests.pairs)}
        stays, parts, origins = np.ones(len(tests.rows), np.bool_), [tests.rows], {}
        achieved = {}
        for number, pair in enumerate(transfers.pairs):
            rows = transfers.rows[transfers.groups.part(number)]
            link = tests.groups.part(of_link[pair]) if pair in of_link else slice(0, 0)
            with evaluated(self.samples, rows["place"][0]):
                found = self._learnt_of(pair, rows, tests.rows[link])
            achieved[pair] = found.achieved
            if found.rows is not None:
                stays[link], who = False, self.readings.who
                sources, places = found.rows["source"].tolist(), found.rows["place"].tolist()
                by = (self.sources[n] or who[at] for n, at in zip(sources, places, strict=True))
                named = set(filter(None, by))
                mark = Figures(
                    reported_by=tuple(sorted(named)) or None,
                    unconfirmed=found.is_unconfirmed or None,
                )
                parts.append(found.rows)
                origins[pair] = self._origin(mark)
        rows = np.concatenate([tests.rows[stays], *parts[1:]])
        rows = rows[np.lexsort((rows["measured_at_s"], rows["dst"], rows["src"]))]
        groups = Groups.of(rows["src"], rows["dst"])
        counted = tests._replace(rows=rows, groups=groups, achieved=achieved)
        numbers = [
            origins[pair] if pair in origins else tests.origins[of_link[pair]]
            for pair in counted.pairs
        ]
        return counted._replace(origins=np.array(numbers, np.int64))

    def _learnt_of(self, pair: tuple[int, int], rows: Rows, tested: Rows) -> Learnt:
        src, dst = (self._typed[end] for end in pair)
        slow_below = log(AT_LIMIT * least_cap(src, dst).expected * MBPS_PER_GBPS)
        if len(tested):
            level = float(np.median(tested["log"]))
        else:
            modelled = self._modelled.whole["aggregate_gbps"]["expected"][pair] * MBPS_PER_GBPS
            level = log(modelled) if modelled > 0 else slow_below
        law = law_of(src.region, dst.region, ADDRESSES[max(1, rows["address"][0])])
        tolerance = max(LEAST_TOLERANCE, NOISES * (law.noise if law else UNKNOWN_NOISE))
        read = self.readings.at(rows["place"])
        return learnt(rows, read, tested, level, slow_below, tolerance)

    def _with_types(self, found: CountedSamples) -> CountedSamples:
        """Mark the links whose samples were taken with a VM type that is not known."""
        rows, names = found.rows[found.groups.first], self.sources
        unknown = rows["fit"] == UNKNOWN

        def with_types(one: Origin, key: int) -> Origin:
            types = unknown_types([names[vm] for vm in divmod(key, len(names))], self.catalogue)
            figures = figures_with(Figures(vm_type=" and ".join(types)), one.figures)
            return one._replace(figures=figures)

        origins = found.origins.copy()
        keys = rows["src_vm"].astype(np.int64) * len(names) + rows["dst_vm"]
        origins[unknown] = changed_by(self.origins, origins[unknown], keys[unknown], with_types)
        return found._replace(origins=origins)

    def _judged(self, metric: Metric, found: CountedSamples) -> CountedSamples:
        """Return the samples that count where several sources have reported, the oldest first."""
        rows, groups = found.rows, found.groups
        source, within = rows["source"], self._within_limits(metric, found)
        used, place = np.unique(source[groups.first], return_inverse=True)
        alone = [mark_of(Agreement(rows[:0], trusted(self.sources[one]))) for one in used]
        origins = np.array([self._origin(mark) for mark in alone], np.int64)[place]
        several = groups.differ(source) | ~groups.reduced(np.logical_and, within)
        counts, ends = np.zeros(len(self.samples), np.bool_), [end.tolist() for end in found.ends]
        counts[rows["place"]] = ~groups.spread(several)
        judged = {}
        for number in np.flatnonzero(several).tolist():
            link = groups.part(number)
            with evaluated(self.samples, rows["place"][link.start]):
                of_link = self._agreed_of(metric, rows[link], within[link])
            judged[ends[0][number], ends[1][number]] = of_link
            origins[number] = self._origin(mark_of(of_link))
            counts[of_link.rows["place"]] = True
        chosen = np.flatnonzero(counts[rows["place"]])
        by_time = np.lexsort((rows["measured_at_s"][chosen], groups.numbers()[chosen]))
        return found._replace(origins=origins).where(chosen[by_time])._replace(judged=judged)

    @cached_property
    def _modelled(self) -> LinkArray:
        """The links that have samples, by models alone."""
        address = ADDRESSES[max(1, self.samples.rows["address"].max(initial=0))]
        found = baseline_links(self._typed, self.catalogue, self.pairs(), address)
        return found.among(self.names)

    def _limits(self, metric: Metric) -> tuple[Floats, Floats]:
        """Return the logarithms of the least and the most that one source may claim, shape (n, n).

        That is how far one source alone may move a figure from what models say of it. Caps of VMs
        are on the diagonal; NaN without a model of a link.
        """
        facts = METRICS[metric]
        factor = facts.per_estimate
        if facts.cap_of == "src":
            figures = np.diag(bounds_of(site.egress_gbps for site in self._typed))
        elif facts.cap_of == "dst":
            figures = np.diag(bounds_of(site.ingress_gbps for site in self._typed))
        else:
            figures = self._modelled.whole[facts.estimate]
        with np.errstate(divide="ignore", invalid="ignore"):
            low, level, high = (np.log(factor * figures[bound]) for bound in BOUNDS)
            far = np.maximum(LEAST_FAR, FAR * np.maximum(level - low, high - level))
            return level - far, level + far

    def _within_limits(self, metric: Metric, found: CountedSamples) -> Bools:
        """Mark all samples but those of one source alone that models hardly allow: they wait.

        Nor are flows marked that contradict an aggregate which the own prober has measured.
        """
        numbers = found.groups.numbers()
        if METRICS[metric].estimate is None or not len(numbers):
            return np.ones(len(numbers), np.bool_)
        parts = Groups.of(numbers, found.rows["source"])
        rows, links = found.rows[parts.first], numbers[parts.first]
        ends = ends_of(rows)
        middles = np.log(np.maximum(parts.medians(found.rows["steady"]), LEAST_VALUE))
        least, most = (bound[ends] for bound in self._limits(metric))
        # A few connections fill no link.
        if metric == "aggregate_mbps":
            of_one = self._limits("per_flow_mbps")[0][ends]
            least = np.minimum(least, of_one + np.log(np.maximum(rows["connections"], 1)))
        far = (middles < least) | (middles > most)
        vouched = [self.samples.names.get(one, -1) for one in (OWN, FILES)]
        far &= ~np.isin(rows["source"], vouched)
        for part in np.flatnonzero(far).tolist():
            same = np.abs(middles[links == links[part]] - middles[part]) <= LEAST_TOLERANCE
            far[part] = np.count_nonzero(same) == 1
        if metric == "per_flow_mbps":
            least, most = self._of_own_aggregates()[:, *ends]
            others = rows["source"] != NameTable()[OWN]
            far |= others & ((middles < least) | (middles > most))
        return ~parts.spread(far)

    def _of_own_aggregates(self) -> Floats:
        """Return the logarithms of the least and the most of one flow, shape (2, n, n).

        One of *k* connections carries a *k*-th of what all do at least, and all of that at most:
        what the own prober has measured binds what others say. NaN where it has not.
        """
        many, off = self.counted("aggregate_mbps"), 1 + 2 * REPEAT_ERROR
        opened = many.rows["connections"][many.groups.first].astype(np.float64)
        rates = many.groups.medians(many.rows["steady"]).copy()
        own = are_own(self.origins, many.origins)
        rates[~own], opened[opened == 0] = np.nan, np.inf
        found = np.full((2, *self.rtts_ms.shape), np.nan)
        with np.errstate(divide="ignore"):
            found[:, *many.ends] = np.log(rates / opened / off), np.log(rates * off)
        return found

    def _agreed_of(self, metric: Metric, rows: Rows, within: Bools) -> Agreement:
        """Return the samples of one link that count; of each source with the most connections."""
        waiting = self.from_sources(rows[~within])
        disputed = [DisputedSamples(*one, len(one[1])) for one in waiting.items()]
        judged = Agreement(rows[:0])
        if within.any():
            judged = self._agreed_within(metric, self.from_sources(rows[within]))
        return judged._replace(disputed=(*judged.disputed, *disputed))

    def _agreed_within(self, metric: Metric, found: Mapping[str, Rows]) -> Agreement:
        if metric != "aggregate_mbps":
            noise = METRICS[metric].noise
            return agreed(found, UNKNOWN_NOISE if noise is None else noise)
        first = found[reference_of(found)][0]
        least, (src, dst) = first["connections"], (self.names[end] for end in ends_of(first))
        enough = {one: rows for one, rows in found.items() if rows["connections"][0] >= least}
        law = law_of(src, dst, ADDRESSES[first["address"]])
        judged = agreed(enough, law.noise if law else UNKNOWN_NOISE)
        # One number of connections: that of the reference, or of a new level.
        opened = judged.rows["connections"]
        comparable = judged.rows[opened == (opened.max() if judged.is_shift else least)]
        return judged._replace(rows=comparable if len(comparable) else judged.rows)

    def from_sources(self, rows: Rows) -> dict[str, Rows]:
        """Return the samples of one link by source."""
        parts = Groups.of(rows["source"])
        return {self.sources[rows["source"][part.start]]: rows[part] for part in parts}

    def _origin(self, figures: Figures | None = None) -> int:
        """Return the number of the origin of estimates from a link's samples."""
        return self.origins.number_of(Origin("measured", "median-of-samples", figures=figures))

    def measured(
        self, counted: CountedSamples, bounds: tuple[Floats, Floats, Floats]
    ) -> EstimateArray:
        """Return estimates of links, each from its own samples: low, expected and high bounds."""
        rows, groups = counted.rows, counted.groups
        least = groups.reduced(np.minimum, rows["address"]).astype(np.int64)
        most = groups.reduced(np.maximum, rows["address"])
        address = np.where((least == 0) | (least == most), least, ADDRESS_OF.index("both"))
        found = with_bounds(no_estimates(len(counted.origins)), *bounds)
        found["origin"] = changed_by(
            self.origins,
            counted.origins,
            address,
            lambda one, place: one._replace(address=ADDRESS_OF[place]),
        )
        found["samples"], found["links"] = groups.counts, 1
        found["newest_s"] = groups.reduced(np.maximum, rows["measured_at_s"])
        found["oldest_s"] = groups.reduced(np.minimum, rows["measured_at_s"])
        return found

    def origin_of(
        self, rows: Rows, kind: Kind, method: Method, figures: Figures | None = None
    ) -> Origin:
        """Return the origin of an estimate made from some of the samples, of any links."""
        by = trusted(*(self.sources[number] for number in np.unique(rows["source"]).tolist()))
        if by and self.is_mixed:
            figures = figures_with(figures, Figures(reported_by=by))
        pairs = len(np.unique(rows["src"].astype(np.int64) << 32 | rows["dst"]))
        at_s = rows["measured_at_s"]
        address = addresses_of({ADDRESS_OF[place] for place in np.unique(rows["address"]).tolist()})
        return Origin(
            kind, method, len(rows), pairs, float(at_s.max()), float(at_s.min()), address, figures
        )
