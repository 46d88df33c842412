"""A site's caps and window: measured, or as measured on other VMs of its type.

Caps come from one-to-many and many-to-one probes, where the peers did not hold these back. Of
burstable VMs, the lasting rate counts: tests out of one, towards any destination, draw on one token
bucket. Short ones find its peak, which plans of long transfers can't have. Where tests that ran
until the bucket was empty show one (:mod:`probes.analysis.falls`), the VM's cap is
the rate after that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.model.baseline.flow_spreads import window_error
from planner.model.baseline.modelled_links import (
    CAP_ERROR,
    HOSTS_TUNED,
    WINDOW_ERROR,
    WINDOW_SPREAD_OF_TYPE,
    within,
)
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate, Figures, Method, Origin, RateCut
from planner.model.link import Site
from planner.model.link_array import Origins
from planner.model.throughput import MBIT_PER_MB, STOCK_RANGE_MB, TUNED_WINDOW_MB
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS, MS_PER_S
from probes.analysis.falls import FEWEST_TESTS, TokenBucket, burst_of, token_bucket
from probes.analysis.fleet_caps import MOST_OPEN_CAP
from probes.estimation.agreement import figures_with, is_own, still_told
from probes.estimation.current_samples import evaluated
from probes.estimation.estimates import are_own, estimate_at, flow_caps_mbps, no_surer_than
from probes.estimation.groups import Bools, Floats, Groups, Ints, median_bounds
from probes.estimation.link_samples import LinkSamples, ends_of
from probes.estimation.measurements import AggregateTests
from probes.metrics import CAP_NOISE, CAPS, METRICS, THROUGHPUT, Metric
from probes.samples import Rows, Sample, Samples

CAP_BELOW_MS = 20.0
"""Nearer tests meet a cap before the window fills (survey of February 2022)."""
SHARE_OF_CAP = 0.8
"""A flow above this share of a cap may be limited by it rather than by its window."""
HELD_BACK = 0.93
"""The sum of the peers' rates is the VM's limit if it stays this far below their capacity."""
OPEN_ABOVE = 2.0
"""A cap that was not reached may be anything above; its high bound is twice the value."""
FEWEST_DESTINATIONS = 2
"""With one, it may be the link that has a bucket."""

# ---- caps ----------------------------------------------------------------------------------------


def with_caps(
    sites: Mapping[str, Site],
    samples: LinkSamples,
    tests: AggregateTests,
    stated_gbps: Mapping[str, tuple[float | None, float | None]],
) -> dict[str, Site]:
    """Take over measured caps, and raise those that a link has exceeded.

    A VM without a measured cap has the one that was stated for it (egress and ingress cap, by
    region), else that of others of its type.
    """
    found, names, origins = dict(sites), list(sites), samples.origins
    held_back, reached_gbps = _held_back(with_windows(sites, samples, tests), samples), tests.alone
    for direction, metric in enumerate(CAPS):
        reached, at_least = _probed_caps(metric, samples, sites, held_back[direction])
        most, sure = _busiest_links(tests.pairs[direction], tests, origins, len(sites))
        for number, (name, site) in enumerate(sites.items()):
            cap = reached.get(name)
            held_gbps = stated_gbps.get(name, (None, None))[direction]
            if cap is None and held_gbps is not None:
                cap = within(held_gbps, CAP_ERROR, Origin("baseline", "fleet-file"))
            cap = cap or reached.get(site.vm_type) or _cap_of(site, metric)
            method = cap.origin.method
            if name in at_least and at_least[name].expected > cap.expected:
                cap = _raised(at_least[name], at_least[name].origin, method)
            if (link := sure[number]) >= 0 and reached_gbps["expected"][link] > cap.expected:
                alone = estimate_at(tests.alone, link, origins)
                src, dst = (names[ends[link]] for ends in tests.pairs)
                figures = still_told(alone.origin.figures, between=(src, dst))
                origin = alone.origin._replace(method="link-above-cap", figures=figures)
                cap = _raised(alone, origin, method)
            if (link := most[number]) >= 0 and reached_gbps["expected"][link] > cap.high:
                cap = replace(cap, high=reached_gbps["expected"][link].item())
            if mark := samples.counted(metric).waiting().get((number, number)):
                told = figures_with(cap.origin.figures, mark)
                cap = replace(cap, origin=cap.origin._replace(figures=told))
            if METRICS[metric].cap_of == "src":
                found[name] = replace(found[name], egress_gbps=cap)
            else:
                found[name] = replace(found[name], ingress_gbps=cap)
    return found


def _raised(cap: Estimate, origin: Origin, raised_from: Method) -> Estimate:
    figures = (origin.figures or Figures())._replace(raised_from=raised_from)
    return replace(cap, origin=origin._replace(figures=figures))


def _busiest_links(
    regions: Ints, tests: AggregateTests, origins: Origins, count: int
) -> tuple[Ints, Ints]:
    """Return each region's link that carried most, and the one that surely did; -1 for none.

    A link of which there is one short test alone is sure only if another carried as much. The most
    of many such tests would be the luckiest of them, and a cap is shared by all paths of a plan.
    """
    order = np.argsort(-tests.alone["expected"], kind="stable")
    own = are_own(origins, tests.alone["origin"])
    # A link that others alone report raises no cap of all.
    measured = np.zeros(count, np.bool_)
    measured[regions[own]] = True
    ranked = order[(own | ~measured[regions])[order]]

    def first_of_each(ranked: Ints) -> Ints:
        first = np.full(count, -1)
        first[regions[ranked[::-1]]] = ranked[::-1]  # the last to be written stays
        return first

    most = first_of_each(ranked)
    # The first is sure unless it is a lone test; after one, any other is.
    lone = most[most >= 0]
    lone = lone[tests.is_lone[lone]]
    return most, first_of_each(ranked[~np.isin(ranked, lone)])


def _held_back(sites: Mapping[str, Site], samples: LinkSamples) -> list[Bools]:
    """Mark the probes of egress and those of ingress caps whose peers were the limit.

    A VM that was loaded from or towards peers shows its cap only if the links could have carried
    more together. A link carries the rate of the peer's own probe of the other direction, and no
    more than its connections' windows (as flows have shown them) over its round-trip time. Where
    the sum came up to that, the peers were the limit, and the probe is a lower bound.
    """
    probes = {one: list(samples.samples[samples.counted(one).rows["place"]]) for one in CAPS}
    seen_mbps: list[dict[str, float]] = []
    for found in probes.values():
        values: dict[str, list[float]] = defaultdict(list)
        for probe in found:
            for name in {probe.src, sites[probe.src].vm_type or probe.src}:
                values[name].append(probe.value)
        seen_mbps.append({name: median(of_name) for name, of_name in values.items()})

    def is_held_back(probe: Sample, of_peers: Mapping[str, float]) -> bool:
        detail = probe.read_detail()
        high_mbps, peers = detail.get("high_mbps"), detail.get("together_mbps")
        # The probe itself may say that its VM was not fully loaded.
        if isinstance(high_mbps, int | float) and high_mbps > probe.value * MOST_OPEN_CAP:
            return True
        if not (isinstance(peers, dict) and peers and all(peer in sites for peer in peers)):
            return False
        could_gbps = _peers_could_gbps(probe, list(peers), of_peers, sites, samples)
        return probe.value / MBPS_PER_GBPS >= HELD_BACK * could_gbps

    masks = []
    for (metric, found), of_peers in zip(probes.items(), reversed(seen_mbps), strict=True):
        mask = []
        for place, probe in zip(samples.counted(metric).rows["place"], found, strict=True):
            with evaluated(samples.samples, place):
                mask.append(is_held_back(probe, of_peers))
        masks.append(np.array(mask, np.bool_))
    return masks


def _probed_caps(
    metric: Metric, samples: LinkSamples, sites: Mapping[str, Site], held_back: Bools
) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
    """Return the caps of one direction that probes show, and those that peers held back.

    The first are of regions, and of VM types for regions without one; the others the most that
    regions' VMs carried while their peers were the limit.
    """
    counted, at_least = samples.counted(metric), dict[str, Estimate]()
    rows, gbps = counted.rows, counted.rows["value"] / MBPS_PER_GBPS
    own = counted.groups.spread(are_own(samples.origins, counted.origins))[~held_back]
    of_types = ends_of(rows)[0][~held_back], own, rows[~held_back], gbps[~held_back], CAP_NOISE
    caps = _of_types("caps-of-vm-type", samples, sites, *of_types)
    for link, region, number in zip(counted.groups, counted.ends[0], counted.origins, strict=True):
        name, figures = samples.names[region], samples.origins.all[number].figures
        held = held_back[link]
        if held.any():
            most = gbps[link][held].max().item()
            bounds = most / (1 + CAP_NOISE), most, most * OPEN_ABOVE
            method: Method = "cap-probe-lower-bound"
            origin = samples.origin_of(rows[link][held], "inferred", method, figures)
            at_least[name] = Estimate(*bounds, origin)
        if not held.all():
            origin = samples.origin_of(rows[link][~held], "measured", "cap-probe", figures)
            caps[name] = Estimate(*median_bounds(gbps[link][~held], CAP_NOISE), origin)
    return caps, at_least


def _of_types(
    method: Method,
    samples: LinkSamples,
    sites: Mapping[str, Site],
    region: Ints,
    is_own: Bools,
    rows: Rows,
    values: Floats,
    noise: float,
) -> dict[str, Estimate]:
    """Return the median by VM type of what some samples show of the VMs in their regions."""
    found = {}
    for vm_type, used in _by_type(sites, region, is_own):
        of_vms = Figures(vm_type=vm_type)
        origin = samples.origin_of(rows[used], "inferred", method, of_vms)
        found[vm_type] = no_surer_than(Estimate(*median_bounds(values[used], noise), origin), noise)
    return found


def _by_type(sites: Mapping[str, Site], region: Ints, is_own: Bools) -> Iterator[tuple[str, Ints]]:
    """Yield each VM type with the places of samples in its regions; see :func:`_places_by`."""
    names, of_site = np.unique([site.vm_type for site in sites.values()], return_inverse=True)
    for number, used in _places_by(of_site[region], is_own).items():
        if names[number]:
            yield str(names[number]), used


def _places_by(keys: NDArray[Any], is_own: Bools) -> dict[int, Ints]:
    """Return the places of each key: the own prober's samples; where there are none, all."""
    order, found = np.argsort(keys, kind="stable"), {}
    for one in Groups.of(keys[order]):
        places = order[one]
        own = places[is_own[places]]
        found[int(keys[places[0]])] = own if len(own) else places
    return found


def _peers_could_gbps(
    probe: Sample,
    peers: Sequence[str],
    seen_mbps: Mapping[str, float],
    sites: Mapping[str, Site],
    samples: LinkSamples,
) -> float:
    """Return the throughput that the links of a probe could carry together."""
    outward = probe.metric == "egress_cap_mbps"
    could_gbps = 0.0
    for peer in peers:
        site = sites[peer]
        believed = site.ingress_gbps if outward else site.egress_gbps
        known_mbps = seen_mbps.get(peer, seen_mbps.get(site.vm_type))
        peer_gbps = believed.expected if known_mbps is None else known_mbps / MBPS_PER_GBPS
        pair = (probe.src, peer) if outward else (peer, probe.src)
        apart_ms = float(samples.rtts_ms[*map(samples.names.index, pair)])  # NaN: not known
        if probe.connections and apart_ms > 0:
            window_mb = sites[pair[1]].window_mb.expected
            flow_gbps = BITS_PER_BYTE * window_mb / apart_ms  # MB/ms is GB/s
            peer_gbps = min(peer_gbps, probe.connections / len(peers) * flow_gbps)
        could_gbps += peer_gbps
    return could_gbps


# ---- token buckets -------------------------------------------------------------------------------


def with_buckets(
    sites: Mapping[str, Site], samples: LinkSamples, fallen: Samples
) -> dict[str, Site]:
    """Return sites with the caps that last, where VMs have buckets that pauses fill.

    Tests that have fallen are of links whose rate falls.
    """
    found, listed = dict(sites), list(fallen)
    for region in dict.fromkeys(sample.src for sample in listed):
        places = [place for place, sample in enumerate(listed) if sample.src == region]
        if len({listed[place].dst for place in places}) < FEWEST_DESTINATIONS:
            continue
        with evaluated(fallen, places[0]):
            bursts = [burst for place in places if (burst := burst_of(listed[place]))]
            bucket = token_bucket(sorted(bursts)) if len(bursts) >= FEWEST_TESTS else None
        known = found[region].egress_gbps
        if bucket is None or bucket.refilling != "bucket":
            continue
        if bucket.sustained_mbps / MBPS_PER_GBPS < known.expected:
            figures = Figures(rate_cut=_cut_by(bucket))
            origin = samples.origin_of(fallen.rows[places], "measured", "token-bucket", figures)
            if is_own(origin.figures) or known.source != "measured":
                after = np.array([burst.sustained_mbps for burst in bursts]) / MBPS_PER_GBPS
                cap = Estimate(*median_bounds(after, CAP_NOISE), origin)
                found[region] = replace(found[region], egress_gbps=cap)
    return found


def _cut_by(bucket: TokenBucket) -> RateCut:
    """Return the fall of a rate once a bucket is empty."""
    peak, lasts = bucket.peak_mbps / MBPS_PER_GBPS, bucket.sustained_mbps / MBPS_PER_GBPS
    refill = bucket.refill_mbps and bucket.refill_mbps / MBPS_PER_GBPS
    after_s = bucket.volume_gb * BITS_PER_BYTE / peak
    return RateCut(after_s, bucket.volume_gb, peak, lasts, "burst", refill)


def with_bursts(sites: Mapping[str, Site], catalogue: Catalogue) -> dict[str, Site]:
    """Return sites as tests find them, which end before the network credits of their VMs do."""
    found = dict(sites)
    for name, site in sites.items():
        vm = catalogue.vm_types.get(site.vm_type)
        if vm and vm.wan_burst_gbps:
            cap = within(vm.wan_burst_gbps, CAP_ERROR, site.egress_gbps.origin)
            found[name] = replace(site, egress_gbps=cap, ingress_gbps=cap)
    return found


def _cap_of(site: Site, metric: Metric) -> Estimate:
    """Return the cap of a site that a metric of :data:`~probes.metrics.CAPS` tells."""
    return site.egress_gbps if METRICS[metric].cap_of == "src" else site.ingress_gbps


def _is_of_vm_type(cap: Estimate) -> bool:
    """Return whether a cap is that of the VM type, perhaps raised by faster links."""
    raised_from = cap.origin.figures and cap.origin.figures.raised_from
    return "vm-type" in (cap.origin.method, raised_from)


def with_lasting(
    sites: Mapping[str, Site], typed: Mapping[str, Site], catalogue: Catalogue
) -> dict[str, Site]:
    """Return sites with the lasting caps of types that burst, but for caps that were measured."""
    found = dict(sites)
    for name, site in sites.items():
        vm, lasting = catalogue.vm_types.get(site.vm_type), typed[name]
        if vm is None or not vm.wan_burst_gbps:
            continue
        if _is_of_vm_type(site.egress_gbps):
            found[name] = replace(found[name], egress_gbps=lasting.egress_gbps)
        if _is_of_vm_type(site.ingress_gbps):
            found[name] = replace(found[name], ingress_gbps=lasting.ingress_gbps)
    return found


# ---- windows -------------------------------------------------------------------------------------


def most_calibrating_mbps(
    sites: Mapping[str, Site], rtts_ms: Floats, catalogue: Catalogue
) -> Floats:
    """Return the highest throughput of flows that calibrate their receivers' windows.

    Shape (n, n); minus infinity where none does: too near, or of a round-trip time that is not
    known.
    """
    most = SHARE_OF_CAP * np.minimum(*flow_caps_mbps(sites.values(), catalogue))
    return np.where(rtts_ms >= CAP_BELOW_MS, most, -inf)


def with_windows(
    sites: Mapping[str, Site], samples: LinkSamples, tests: AggregateTests
) -> dict[str, Site]:
    """Calibrate each receiver's window by the flows into it, else by others of its type.

    Where there are none, a type's window is what its tests state, or the least that their
    connections must have had.
    """
    counted, rtts_ms = samples.counted("per_flow_mbps"), samples.rtts_ms
    most_mbps = most_calibrating_mbps(sites, rtts_ms, samples.catalogue)
    counted = counted.where(counted.rows["value"] <= most_mbps[ends_of(counted.rows)])
    rows, distances, dst = counted.rows, rtts_ms[ends_of(counted.rows)], ends_of(counted.rows)[1]
    is_own = counted.groups.spread(are_own(samples.origins, counted.origins))
    windows = rows["steady"] * distances / MS_PER_S / MBIT_PER_MB
    into, of_types = _places_by(dst, is_own), (rows, windows, WINDOW_SPREAD_OF_TYPE)
    by_type = _windows_of_tests(sites, samples, tests)
    by_type |= _of_types("flows-into-vm-type", samples, sites, dst, is_own, *of_types)
    calibrated = {}
    for number, (name, site) in enumerate(sites.items()):
        window_mb = by_type.get(site.vm_type, site.window_mb)
        if number in into:
            used = into[number]
            # Tests spread about it by their own noise, too.
            error = 1 + window_error(distances[used].tolist())
            expected = median(windows[used].tolist())
            origin = samples.origin_of(rows[used], "measured", "flows-into-region")
            window_mb = Estimate(expected / error, expected, expected * error, origin)
        calibrated[name] = replace(site, window_mb=window_mb)
    return calibrated


def _windows_of_tests(
    sites: Mapping[str, Site], samples: LinkSamples, tests: AggregateTests
) -> dict[str, Estimate]:
    """Return the windows of VM types of which tests show that they exceed those assumed.

    Hosts of a type are tuned where most of its tests state a window that no host has as it comes.
    Else k connections that carried A together had at least ``A RTT / k`` each.
    """
    assumed = {site.vm_type: site.window_mb for site in sites.values()}
    counted = [samples.counted(metric) for metric in THROUGHPUT]
    rows = np.concatenate([one.rows for one in counted])
    own = np.concatenate(
        [one.groups.spread(are_own(samples.origins, one.origins)) for one in counted]
    )
    is_raised = samples.stated("window_mb")[rows["detail"]] > STOCK_RANGE_MB[1]
    of_links = np.array([site.vm_type for site in sites.values()])[tests.pairs[1]]
    # Gbit/s are Mbit/ms.
    carried_mb = tests.alone["expected"] * samples.rtts_ms[tests.pairs] / MBIT_PER_MB
    known = (tests.connections > 0) & ~np.isnan(carried_mb)
    least = np.where(known, carried_mb / np.maximum(tests.connections, 1), 0.0)
    found, beyond = {}, 1 + WINDOW_SPREAD_OF_TYPE
    for vm_type, used in _by_type(sites, ends_of(rows)[1], own):
        of_vms = Figures(vm_type=vm_type)
        origin = samples.origin_of(rows[used], "inferred", "windows-of-tests", of_vms)
        if 2 * np.count_nonzero(is_raised[used]) >= len(used):
            found[vm_type] = replace(HOSTS_TUNED, origin=origin)
            continue
        over = of_links == vm_type
        shown, lone = least[over], tests.is_lone[over]
        # One short test from a cold start may err.
        mb = float(max(shown[~lone].max(initial=0.0), *np.sort(shown)[-2:-1], 0.0))
        if mb > beyond * assumed[vm_type].expected:
            high = TUNED_WINDOW_MB[2] if mb > STOCK_RANGE_MB[1] else mb * (1 + WINDOW_ERROR)
            bounds = mb / beyond, mb, max(assumed[vm_type].high, high)
            found[vm_type] = Estimate(*bounds, origin)
    return found
