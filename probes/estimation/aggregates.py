"""What many connections of one VM pair carry: measured, or from the providers' law.

A law (:data:`planner.model.baseline.AGGREGATE_LAWS`) is what VMs of one provider reached towards
another provider's, by distance. Measured links shift it, those in the same class of distance, and
most of all those between the same two parts of the world: on the January 2022 grid, another pair of
Azure and AWS regions within 40 ms at both ends tells a far link within 20 % in the median, the law
alone within 40 %.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

from planner.model.baseline import aggregate_estimate, distance_class
from planner.model.estimate import Estimate, Figures, Method, Origin
from planner.model.link import Site
from planner.model.throughput import bundle_share_of_steady
from planner.model.units import MBPS_PER_GBPS
from probes.analysis.ramp import ramp_steps, saturates
from probes.estimation.bounds import from_values, median, origin_of_many
from probes.estimation.series import Pair, Samples, counted, taken_with

# Relative error of one measurement with 64 connections, 90th percentile on the January 2022 grid.
AGGREGATE_NOISE = 0.05
# With fewer measured links, a class of distance has no median or no spread of its own.
LEAST_LINKS_TO_SHIFT = 3
LEAST_LINKS_FOR_SPREAD = 8
# Links between the same two parts of the world: both ends this near. They help where the law is far
# off (Azure's egress to other clouds) and nowhere else, and leave so much of its error.
NEIGHBOUR_MS = 40.0
NEIGHBOUR_FROM_ERROR = 0.5
NEIGHBOUR_SHARE_OF_ERROR = 0.6
OTHER_SIZE = 2.0
"""A VM whose cap differs more from its type's is not of the size that a law is of."""
USUAL_RTT_MS = Estimate(100.0, 100.0, 100.0)
"""Where no location is known: a law needs some distance."""


def measured_aggregates(
    sites: Mapping[str, Site], samples: Samples, rtts_ms: Mapping[Pair, Estimate]
) -> tuple[dict[Pair, Estimate], dict[Pair, int]]:
    """Return saturated throughput in Gbit/s, where measured, and with how many connections."""
    found: dict[Pair, Estimate] = {}
    connections: dict[Pair, int] = {}
    for pair, series in samples.of("aggregate_mbps").items():
        rtt = rtts_ms.get(pair)
        used = counted("aggregate_mbps", series, sites)
        if not used:
            continue
        most = used[0].connections or 0
        values = []
        for sample in used:
            value = sample.value / MBPS_PER_GBPS
            if rtt and not sample.warmed_up and sample.duration_s:
                value /= bundle_share_of_steady(rtt.expected, sample.duration_s)
            values.append((value, sample))
        connections[pair] = most
        figures = Figures(connections=most) if most else None
        found[pair] = from_values(values, AGGREGATE_NOISE, figures=figures)
    return found, connections


def saturated_links(sites: Mapping[str, Site], samples: Samples) -> set[Pair]:
    """Return the links of which a ramp has shown that more connections bring nothing.

    The steps of a ramp are in the detail of its sample; samples with different numbers of
    connections are steps, too.
    """
    found = set()
    for pair, series in samples.of("aggregate_mbps").items():
        steps: dict[int, list[float]] = defaultdict(list)
        for sample in series.recent():
            if taken_with(sample, sites):
                if sample.connections:
                    steps[sample.connections].append(sample.value)
                if "ramp" in sample.detail:
                    for count, mbps in ramp_steps(sample.read_detail()).items():
                        steps[count].append(mbps)
        if saturates({count: median(values) for count, values in steps.items()}):
            found.add(pair)
    return found


@dataclass(frozen=True, slots=True)
class _Shift:
    """How measured links of one kind differ from the law.

    Attributes
    ----------
    ratio : float
        Median of measured over law.
    spread : float | None
        90th percentile of the relative difference from that; None where links are too few.
    origin : Origin
        Of what is inferred from the law and this.
    """

    ratio: float
    spread: float | None
    origin: Origin


class MeasuredLaw:
    """The providers' law, as far as measured links bear it out.

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
    """

    def __init__(
        self,
        sites: Mapping[str, Site],
        typed: Mapping[str, Site],
        rtts_ms: Mapping[Pair, Estimate],
        aggregates: Mapping[Pair, Estimate],
    ) -> None:
        self._sites = sites
        self._typed = typed
        self._rtts_ms = rtts_ms
        self._aggregates = aggregates
        self._ratios: dict[Pair, dict[int, dict[Pair, float]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        for (src, dst), estimate in aggregates.items():
            law = self._law(src, dst, self._rtt(src, dst))
            if law is not None:
                of_class = self._ratios[_providers(src, dst)][self._class(src, dst)]
                of_class[src, dst] = estimate.expected / law.expected
        self._shifts = {
            (providers, number): self._shift_of(classes, number)
            for providers, classes in self._ratios.items()
            for number in range(max(classes) + 1)
        }

    def aggregate(self, src: str, dst: str, rtt_ms: Estimate) -> Estimate | None:
        """Return the saturated throughput to expect of a link, or None where nothing is known."""
        law = self._law(src, dst, rtt_ms)
        shift = self._shifts.get((_providers(src, dst), self._class(src, dst)))
        if law is None or shift is None:
            return law
        cap = self._cap_gbps(src, dst)
        law_error = law.expected / law.low - 1
        ratio = shift.ratio
        error = law_error if shift.spread is None else shift.spread
        origin = shift.origin
        if law_error >= NEIGHBOUR_FROM_ERROR and (near := self._neighbours(src, dst)):
            ratio, error = median(near.values()), law_error * NEIGHBOUR_SHARE_OF_ERROR
            origin = self._origin("neighbouring-links", near)
        error = max(error, AGGREGATE_NOISE)
        expected = min(law.expected * ratio, cap)
        return Estimate(
            expected / (1 + error),
            expected,
            max(expected, min(expected * (1 + error), cap)),
            origin,
        )

    def _law(self, src: str, dst: str, rtt_ms: Estimate) -> Estimate | None:
        source, destination = self._sites[src], self._sites[dst]
        proportion = _proportion(source.egress_gbps.expected, self._typed[src].egress_gbps.expected)
        return aggregate_estimate(source, destination, rtt_ms, proportion)

    def links_behind(self, src: str, dst: str, estimate: Estimate) -> list[Pair]:
        """Return the measured links that shift the law for another, given what was made of it."""
        if estimate.origin.method == "neighbouring-links":
            return list(self._neighbours(src, dst))
        if estimate.origin.method != "shifted-law":
            return []
        classes = self._ratios.get(_providers(src, dst), {})
        return list(_links_of_class(classes, self._class(src, dst)))

    def _neighbours(self, src: str, dst: str) -> dict[Pair, float]:
        """Return the ratios of measured links whose ends are both near this link's."""
        links = self._ratios[_providers(src, dst)][self._class(src, dst)]
        return {
            (other_src, other_dst): ratio
            for (other_src, other_dst), ratio in links.items()
            if self._near(src, other_src) and self._near(dst, other_dst)
        }

    def _shift_of(self, classes: Mapping[int, Mapping[Pair, float]], number: int) -> _Shift:
        """Return the shift of a class of distance; where it has few links, of all classes."""
        links = _links_of_class(classes, number)
        ratios = list(links.values())
        middle = median(ratios)
        origin = self._origin("shifted-law", links)
        if len(classes.get(number, {})) < LEAST_LINKS_FOR_SPREAD:
            return _Shift(middle, None, origin)
        errors = sorted(max(ratio / middle, middle / ratio) - 1 for ratio in ratios)
        return _Shift(middle, errors[int(0.9 * (len(errors) - 1))], origin)

    def _origin(self, method: Method, links: Iterable[Pair]) -> Origin:
        return origin_of_many(method, [self._aggregates[pair].origin for pair in links])

    def _near(self, region: str, other: str) -> bool:
        return region == other or self._rtt(region, other).expected < NEIGHBOUR_MS

    def _class(self, src: str, dst: str) -> int:
        return distance_class(self._rtt(src, dst))

    def _rtt(self, src: str, dst: str) -> Estimate:
        return self._rtts_ms.get((src, dst)) or USUAL_RTT_MS

    def _cap_gbps(self, src: str, dst: str) -> float:
        return min(self._sites[src].egress_gbps.expected, self._sites[dst].ingress_gbps.expected)


def _links_of_class(
    classes: Mapping[int, Mapping[Pair, float]], number: int
) -> Mapping[Pair, float]:
    """Return the links of a class of distance; where they are too few, of all classes."""
    links = classes.get(number, {})
    if len(links) >= LEAST_LINKS_TO_SHIFT:
        return links
    return {pair: ratio for links in classes.values() for pair, ratio in links.items()}


def _proportion(found_gbps: float, of_type_gbps: float) -> float:
    if not isfinite(of_type_gbps):
        return 1.0
    share = found_gbps / of_type_gbps
    return share if not 1 / OTHER_SIZE <= share <= OTHER_SIZE else 1.0


def _providers(src: str, dst: str) -> Pair:
    return src.partition(":")[0], dst.partition(":")[0]
