"""From samples to a graph: what each leg carries, how surely, and from what it was inferred.

- Round-trip time: the median of a leg's pings; else of the opposite direction (routes are nearly
  symmetric); else of other clouds' pings between the same two cities; else the backbone model.
- One flow: the median of its steady values; else ``window / RTT`` with the receiver's window
  calibrated by whatever flows into it were measured, else into VMs of its type.
- VM caps: the median of one-to-many and many-to-one probes; else those of VMs of the same type.
- Aggregate: the median of steady values with enough connections; else the providers' law, shifted
  by what was measured between those providers, under the VMs' caps.

A measured leg always beats an inferred one, and that the baseline. Bounds come from errors seen
on real clouds (constants below) and from the spread of repeated samples.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import sqrt

from planner.baseline import (
    aggregate_estimate,
    baseline_rtt_ms,
    baseline_site,
    flow_cap_gbps,
    flow_estimate,
)
from planner.catalogue import Catalogue
from planner.network import Estimate, Leg, Network, Site, Snapshot, Source
from planner.throughput import (
    bundle_share_of_steady,
    flow_share_of_steady,
    window_from_flow_mb,
)
from planner.units import MBPS_PER_GBPS
from probes.samples import Sample

# Relative errors of one measurement, 90th percentile, seen when repeating it: single flows on
# the February 2022 survey; 64 connections on the January 2022 grid; pings.
FLOW_NOISE = 0.095
AGGREGATE_NOISE = 0.05
CAP_NOISE = 0.05
RTT_NOISE = 0.02
LEAST_NOISE = 0.01
MOST_OPEN_CAP = 1.25
"""A cap whose upper bound is further above its value was not reached."""
# Errors of inference, 90th percentile, on regions or pairs held out.
FLOW_INFERENCE_ERROR = 0.07
WINDOW_SPREAD_OF_TYPE = 0.15
OPPOSITE_DIRECTION_ERROR = 0.05
SAME_CITIES_ERROR = 0.16
# A flow calibrates the window only where the window limits it: far enough, and below the cap.
CALIBRATION_RTT_MS = 20.0
CALIBRATION_SHARE_OF_CAP = 0.8
# Older samples of a leg no longer count once there are newer ones.
MEMORY_S = 30 * 86400.0
# Nor do more than these: their median is known well, and memory stays bounded by the legs.
MOST_SAMPLES = 64
NORMAL_90 = 1.645
ALL_LOST_PCT = 100.0
# Of a measured leg between regions whose places are not known: anywhere on Earth.
RTT_OF_NO_PLACE = Estimate(5.0, 100.0, 400.0, basis="places not known")
MAD_TO_SIGMA = 1.4826


@dataclass(slots=True)
class _Series:
    """The newest samples of one metric on one leg."""

    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))

    def recent(self) -> list[Sample]:
        newest = max(sample.measured_at_s for sample in self.samples)
        return [s for s in self.samples if s.measured_at_s >= newest - MEMORY_S]


Pair = tuple[str, str]
THROUGHPUT = {"per_flow_mbps", "aggregate_mbps", "egress_cap_mbps", "ingress_cap_mbps"}


class Estimator:
    """Collects samples, then builds a network from them.

    Parameters
    ----------
    catalogue : Catalogue
    chosen : mapping, optional
        Region or provider to VM type. Without it, a region's VM type is the one that most of
        its throughput samples name, else the catalogue's default.
    """

    def __init__(self, catalogue: Catalogue, chosen: Mapping[str, str] = {}) -> None:
        self.catalogue = catalogue
        self.chosen = dict(chosen)
        self._series: dict[str, dict[Pair, _Series]] = defaultdict(lambda: defaultdict(_Series))
        self._vm_votes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._connections: dict[Pair, int] = {}

    def add(self, samples: Iterable[Sample]) -> None:
        """Take in samples; those of one leg and metric oldest first."""
        for sample in samples:
            self._series[sample.metric][sample.src, sample.dst].samples.append(sample)
            if sample.metric in THROUGHPUT:
                self._vm_votes[sample.src][sample.src_vm] += 1
                self._vm_votes[sample.dst][sample.dst_vm] += 1

    def add_votes(self, src: str, dst: str, src_vm: str, dst_vm: str, count: int) -> None:
        """Count throughput samples that are no longer there for the VM types that they name."""
        self._vm_votes[src][src_vm] += count
        self._vm_votes[dst][dst_vm] += count

    @property
    def newest_s(self) -> float:
        """Time of the newest sample, seconds since 1970; 0 where there is none."""
        return max(
            (
                sample.measured_at_s
                for pairs in self._series.values()
                for series in pairs.values()
                for sample in series.samples
            ),
            default=0.0,
        )

    def network(self, snapshot: Snapshot) -> Network:
        """Return the graph of all catalogue regions and all measured ones."""
        catalogue = self.catalogue
        names = [region.id for region in catalogue.regions.values() if region.baseline]
        measured = {end for pairs in self._series.values() for pair in pairs for end in pair}
        names += sorted(measured.difference(names))
        self._sites = {name: baseline_site(name, catalogue, self._vm_types(name)) for name in names}
        self._rtts = self._all_rtts(names)
        flows = {
            pair: estimate
            for pair, series in self._series["per_flow_mbps"].items()
            if (estimate := self._measured_flow(pair, series))
        }
        aggregates = {
            pair: estimate
            for pair, series in self._series["aggregate_mbps"].items()
            if (estimate := self._measured_aggregate(pair, series))
        }
        self._sites = self._with_windows(self._with_caps(aggregates))
        shifts = self._law_shifts(aggregates)
        legs: dict[str, dict[str, Leg]] = {}
        for src in names:
            row: dict[str, Leg] = {}
            for dst in names:
                rtt = self._rtts.get((src, dst))
                if rtt is None and ((src, dst) in aggregates or (src, dst) in flows):
                    rtt = RTT_OF_NO_PLACE
                if src == dst or rtt is None:
                    continue
                aggregate = aggregates.get((src, dst)) or self._inferred_aggregate(
                    src, dst, rtt, shifts
                )
                if aggregate is None:
                    continue  # no VM type, no law: nothing to go by
                flow = flows.get((src, dst)) or self._inferred_flow(src, dst, rtt, aggregate)
                row[dst] = Leg(src, dst, rtt, flow, aggregate, self._loss(src, dst))
            legs[src] = row
        return Network(self._sites, legs, snapshot)

    # ---- sites -----------------------------------------------------------------------------

    def _vm_types(self, region: str) -> dict[str, str]:
        """Return the VM type to assume in a region: told, or named by most samples."""
        provider = region.partition(":")[0]
        if region in self.chosen or provider in self.chosen:
            return self.chosen
        votes = self._vm_votes.get(region)
        if votes:
            known = {f"{provider}:{_plain(name)}": count for name, count in votes.items() if name}
            known = {name: n for name, n in known.items() if name in self.catalogue.vm_types}
            if known:
                return {region: max(known, key=lambda name: (known[name], name))}
        return self.chosen

    def _counts(self, sample: Sample) -> bool:
        """Whether a throughput sample was taken with the VM types assumed at both ends."""
        return _same_vm(sample.src_vm, self._sites[sample.src].vm_type) and _same_vm(
            sample.dst_vm, self._sites[sample.dst].vm_type
        )

    def _with_caps(self, aggregates: Mapping[Pair, Estimate]) -> dict[str, Site]:
        """Take over measured caps, and raise those that a leg has exceeded.

        A VM without a measured cap has that of others of its type.
        """
        egress: dict[str, Estimate] = {}
        ingress: dict[str, Estimate] = {}
        for (src, dst), estimate in aggregates.items():
            for region, most in ((src, egress), (dst, ingress)):
                if region not in most or estimate.expected > most[region].expected:
                    most[region] = estimate
        measured_out = self._measured_caps("egress_cap_mbps")
        measured_in = self._measured_caps("ingress_cap_mbps")
        sites = {}
        for name, site in self._sites.items():
            if cap := measured_out.get(name) or measured_out.get(site.vm_type):
                site = replace(site, egress_gbps=cap)
            if cap := measured_in.get(name) or measured_in.get(site.vm_type):
                site = replace(site, ingress_gbps=cap)
            out, into = egress.get(name), ingress.get(name)
            if out and out.expected > site.egress_gbps.expected:
                site = replace(site, egress_gbps=out)
            if into and into.expected > site.ingress_gbps.expected:
                site = replace(site, ingress_gbps=into)
            sites[name] = site
        return sites

    def _measured_caps(self, metric: str) -> dict[str, Estimate]:
        """Return caps in Gbit/s by region, and by VM type for the regions without one."""
        by_type: dict[str, list[tuple[float, float]]] = defaultdict(list)
        caps: dict[str, Estimate] = {}
        for (region, _), series in self._series[metric].items():
            values = [
                (s.value / MBPS_PER_GBPS, s.measured_at_s)
                for s in series.recent()
                if self._counts(s) and not _is_lower_bound(s)
            ]
            if values:
                caps[region] = _from_values(values, CAP_NOISE, "measured")
                by_type[self._sites[region].vm_type] += values
        for vm_type, values in by_type.items():
            if vm_type:
                estimate = _no_surer_than(_from_values(values, CAP_NOISE, "inferred"), CAP_NOISE)
                caps[vm_type] = replace(estimate, samples=0, basis=f"caps of other {vm_type}")
        return caps

    def _with_windows(self, sites: dict[str, Site]) -> dict[str, Site]:
        """Calibrate each receiver's window by the flows into it, else by others of its type."""
        by_region: dict[str, list[tuple[float, float]]] = defaultdict(list)
        by_type: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for (src, dst), series in self._series["per_flow_mbps"].items():
            rtt = self._rtts.get((src, dst))
            if rtt is None or rtt.expected < CALIBRATION_RTT_MS:
                continue
            cap_mbps = self._flow_cap_gbps(src) * MBPS_PER_GBPS
            for sample in series.recent():
                if not self._counts(sample) or sample.value > CALIBRATION_SHARE_OF_CAP * cap_mbps:
                    continue
                duration_s = None if sample.warmed_up else sample.duration_s
                window = window_from_flow_mb(sample.value, rtt.expected, duration_s)
                by_region[dst].append((window, sample.measured_at_s))
                by_type[sites[dst].vm_type].append((window, sample.measured_at_s))
        calibrated = {}
        for name, site in sites.items():
            if name in by_region:
                estimate = _from_values(by_region[name], FLOW_NOISE, "measured")
                estimate = replace(estimate, basis="flows into this region")
                site = replace(site, window_mb=estimate)
            elif site.vm_type in by_type:
                estimate = _from_values(by_type[site.vm_type], WINDOW_SPREAD_OF_TYPE, "inferred")
                estimate = _no_surer_than(estimate, WINDOW_SPREAD_OF_TYPE)
                site = replace(
                    site, window_mb=replace(estimate, basis=f"flows into other {site.vm_type}")
                )
            calibrated[name] = site
        return calibrated

    def _flow_cap_gbps(self, region: str) -> float:
        return flow_cap_gbps(self._sites[region], self.catalogue)

    # ---- legs ------------------------------------------------------------------------------

    def _all_rtts(self, names: list[str]) -> dict[Pair, Estimate]:
        own: dict[Pair, Estimate] = {}
        by_cities: dict[Pair, list[tuple[float, float]]] = defaultdict(list)
        region = self.catalogue.region
        for (src, dst), series in self._series["rtt_ms"].items():
            values = [(s.value, s.measured_at_s) for s in series.recent()]
            own[src, dst] = _from_values(values, RTT_NOISE, "measured")
            cities = (region(src).city, region(dst).city)
            if all(cities):
                by_cities[cities].append((own[src, dst].expected, values[-1][1]))
                by_cities[cities[::-1]].append((own[src, dst].expected, values[-1][1]))
        rtts: dict[Pair, Estimate] = {}
        for src in names:
            for dst in names:
                if src == dst:
                    continue
                cities = (region(src).city, region(dst).city)
                found: Estimate | None
                if (src, dst) in own:
                    found = own[src, dst]
                elif (dst, src) in own:
                    found = _inferred_from(
                        own[dst, src], OPPOSITE_DIRECTION_ERROR, "the opposite direction"
                    )
                elif cities in by_cities:
                    found = _inferred_from(
                        _from_values(by_cities[cities], RTT_NOISE, "inferred"),
                        SAME_CITIES_ERROR,
                        f"other regions in {cities[0]} and {cities[1]}",
                    )
                else:
                    found = baseline_rtt_ms(region(src), region(dst))
                if found is not None:
                    rtts[src, dst] = found
        return rtts

    def _measured_flow(self, pair: Pair, series: _Series) -> Estimate | None:
        rtt = self._rtts.get(pair)
        values = []
        for sample in series.recent():
            if not self._counts(sample):
                continue
            value = sample.value
            if rtt and not sample.warmed_up and sample.duration_s:
                window = window_from_flow_mb(value, rtt.expected, sample.duration_s)
                value /= flow_share_of_steady(window, rtt.expected, sample.duration_s)
            values.append((value, sample.measured_at_s))
        return _from_values(values, FLOW_NOISE, "measured") if values else None

    def _measured_aggregate(self, pair: Pair, series: _Series) -> Estimate | None:
        rtt = self._rtts.get(pair)
        counted = [s for s in series.recent() if self._counts(s)]
        if not counted:
            return None
        most = max(s.connections or 0 for s in counted)
        values = []
        for sample in counted:
            if (sample.connections or 0) < most:
                continue  # fewer connections may not have saturated the pair
            value = sample.value / MBPS_PER_GBPS
            if rtt and not sample.warmed_up and sample.duration_s:
                value /= bundle_share_of_steady(rtt.expected, sample.duration_s)
            values.append((value, sample.measured_at_s))
        estimate = _from_values(values, AGGREGATE_NOISE, "measured")
        self._connections[pair] = most
        return replace(estimate, basis=f"{most} connections" if most else "")

    def _law_shifts(self, aggregates: Mapping[Pair, Estimate]) -> dict[Pair, tuple[float, float]]:
        """Return, by pair of providers, the median of measured over law, and its spread."""
        ratios: dict[Pair, list[float]] = defaultdict(list)
        for (src, dst), estimate in aggregates.items():
            law = aggregate_estimate(
                self._sites[src], self._sites[dst], self._rtts_or_far(src, dst)
            )
            if law is None:
                continue
            providers = (src.partition(":")[0], dst.partition(":")[0])
            ratios[providers].append(estimate.expected / law.expected)
        shifts = {}
        for providers, values in ratios.items():
            middle = _median(values)
            errors = sorted(abs(value / middle - 1) for value in values)
            # Too few pairs say nothing of the spread between pairs: keep the law's own.
            spread = errors[int(0.9 * (len(errors) - 1))] if len(errors) >= 5 else -1.0
            shifts[providers] = (middle, spread)
        return shifts

    def _rtts_or_far(self, src: str, dst: str) -> Estimate:
        return self._rtts.get((src, dst)) or Estimate(100.0, 100.0, 100.0)

    def _inferred_aggregate(
        self, src: str, dst: str, rtt: Estimate, shifts: Mapping[Pair, tuple[float, float]]
    ) -> Estimate | None:
        source, destination = self._sites[src], self._sites[dst]
        law = aggregate_estimate(source, destination, rtt)
        shift = shifts.get((src.partition(":")[0], dst.partition(":")[0]))
        if law is None or shift is None:
            return law
        middle, spread = shift
        cap = min(source.egress_gbps.expected, destination.ingress_gbps.expected)
        expected = min(law.expected * middle, cap)
        error = spread if spread >= 0 else law.expected / law.low - 1
        error = max(error, AGGREGATE_NOISE)
        return Estimate(
            expected / (1 + error),
            expected,
            max(expected, min(expected * (1 + error), cap)),
            "inferred",
            basis="other pairs of these providers",
        )

    def _inferred_flow(self, src: str, dst: str, rtt: Estimate, aggregate: Estimate) -> Estimate:
        window = self._sites[dst].window_mb
        estimate = flow_estimate(window, rtt, self._flow_cap_gbps(src))
        if window.source != "baseline" or rtt.source == "measured":
            estimate = replace(_no_surer_than(estimate, FLOW_INFERENCE_ERROR), source="inferred")
        most_mbps = aggregate.expected * MBPS_PER_GBPS
        if aggregate.source == "measured" and estimate.expected > most_mbps:
            # One of the flows can't carry more than all of them together.
            estimate = replace(
                estimate, low=min(estimate.low, most_mbps), expected=most_mbps,
                high=max(most_mbps, aggregate.high * MBPS_PER_GBPS),
            )  # fmt: skip
        if aggregate.source == "measured" and (share := self._connections.get((src, dst))):
            # k connections together carried this much, so one alone carries at least a k-th.
            least = aggregate.expected * MBPS_PER_GBPS / share
            if least > estimate.expected:
                estimate = Estimate(
                    max(estimate.low, least * (1 - AGGREGATE_NOISE)),
                    least,
                    max(estimate.high, least * (1 + AGGREGATE_NOISE)),
                    "inferred",
                    aggregate.measured_at_s,
                    basis=f"a {share}th of the aggregate of {share} connections",
                )
        return estimate

    def _loss(self, src: str, dst: str) -> float | None:
        series = self._series["loss_pct"].get((src, dst))
        # All lost is what a filter for ICMP looks like: it says nothing of the path's loss.
        answered = [s.value for s in series.recent() if s.value < ALL_LOST_PCT] if series else []
        return _median(answered) if answered else None


def _plain(vm_name: str) -> str:
    """Return a VM type's name as catalogues write it (Azure prefixes its sizes)."""
    return vm_name.removeprefix("Standard_")


def _same_vm(sampled: str, assumed_id: str) -> bool:
    return not sampled or _plain(sampled) == assumed_id.partition(":")[2]


def _is_lower_bound(sample: Sample) -> bool:
    """Whether a cap probe did not load the VM fully, so that its cap may be much higher."""
    if not sample.detail:
        return False
    high_mbps = json.loads(sample.detail).get("high_mbps")
    return high_mbps is not None and high_mbps > sample.value * MOST_OPEN_CAP


def _median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def _from_values(values: list[tuple[float, float]], noise: float, source: Source) -> Estimate:
    """Return the median of (value, time) with bounds from one measurement's noise and spread."""
    figures = [value for value, _ in values]
    expected = _median(figures)
    sigma = MAD_TO_SIGMA * _median(abs(figure - expected) for figure in figures)
    spread = NORMAL_90 * sigma / expected if expected > 0 else 0.0
    error = max(LEAST_NOISE, sqrt(noise**2 / len(figures) + spread**2))
    return Estimate(
        expected / (1 + error),
        expected,
        expected * (1 + error),
        source,
        max(time for _, time in values),
        len(figures),
    )


def _no_surer_than(estimate: Estimate, error: float) -> Estimate:
    return replace(
        estimate,
        low=min(estimate.low, estimate.expected / (1 + error)),
        high=max(estimate.high, estimate.expected * (1 + error)),
    )


def _inferred_from(estimate: Estimate, error: float, basis: str) -> Estimate:
    return replace(_no_surer_than(estimate, error), source="inferred", samples=0, basis=basis)
