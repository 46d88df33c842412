"""A site's caps and window: measured, or as measured on other VMs of its type.

Caps come from one-to-many and many-to-one probes, where the peers did not hold these back. Of
burstable VMs, the lasting rate counts: tests out of one, towards any destination, draw on one token
bucket. Short ones find its peak, which plans of long transfers can't have. Where tests that ran
until the bucket was empty show one (:mod:`probes.analysis.falls`), the VM's cap is
the rate after that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from statistics import median
from typing import Literal, TypeAlias

import numpy as np

from planner.model.baseline.modelled_links import (
    CAP_ERROR,
    HOSTS_TUNED,
    WINDOW_ERROR,
    WINDOW_SPREAD_OF_TYPE,
    flow_caps_gbps,
    within,
)
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate, Figures, Kind, Method, Origin, RateCut
from planner.model.link import Site
from planner.model.link_array import Origins, bounds_of
from planner.model.throughput import MBIT_PER_MB, STOCK_RANGE_MB, TUNED_WINDOW_MB
from planner.model.units import BITS_PER_BYTE, MBPS_PER_GBPS, MS_PER_S
from planner.single_flow.flow_tests import CAP_BELOW_MS, SHARE_OF_CAP
from planner.single_flow.spreads import window_error
from probes.analysis.falls import FEWEST_TESTS, BurstTest, TokenBucket, burst_of, token_bucket
from probes.analysis.fleet_caps import MOST_OPEN_CAP
from probes.estimation.agreement import figures_with, is_own, still_told
from probes.estimation.current_samples import evaluated
from probes.estimation.estimates import are_own, estimate_at, no_surer_than, of_rows
from probes.estimation.groups import Floats, Groups, Ints, median_bounds
from probes.estimation.link_samples import CAP_NOISE, LinkSamples, number_of
from probes.estimation.measurements import AggregateTests
from probes.samples import Rows, Sample, Samples

HELD_BACK = 0.93
"""The sum of the peers' rates is the VM's limit if it stays this far below their capacity."""
OPEN_ABOVE = 2.0
"""A cap that was not reached may be anything above; its high bound is twice the value."""
FEWEST_DESTINATIONS = 2
"""With one, it may be the link that has a bucket."""

CapMetric: TypeAlias = Literal["egress_cap_mbps", "ingress_cap_mbps"]
_CAPS: tuple[CapMetric, CapMetric] = ("egress_cap_mbps", "ingress_cap_mbps")


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
    origins, caps = samples.origins, _measured_caps(with_windows(sites, samples, tests), samples)
    busiest = [_busiest_links(ends, tests, origins, len(sites)) for ends in tests.pairs]
    names, capped = list(sites), {}
    for number, (name, site) in enumerate(sites.items()):
        usual = site.egress_gbps, site.ingress_gbps
        stated, raised = stated_gbps.get(name, (None, None)), []
        for direction, (most, sure) in enumerate(busiest):
            (reached, held_back), held_gbps = caps[direction], stated[direction]
            cap = reached.get(name)
            if cap is None and held_gbps is not None:
                cap = within(held_gbps, CAP_ERROR, Origin("baseline", "fleet-file"))
            cap = cap or reached.get(site.vm_type) or usual[direction]
            method = cap.origin.method
            at_least = held_back.get(name)
            if at_least and at_least.expected > cap.expected:
                cap = _raised(at_least, at_least.origin, method)
            if (link := sure[number]) >= 0 and tests.alone["expected"][link] > cap.expected:
                alone = estimate_at(tests.alone, link, origins)
                src, dst = (names[ends[link]] for ends in tests.pairs)
                figures = still_told(alone.origin.figures, between=(src, dst))
                origin = alone.origin._replace(method="link-above-cap", figures=figures)
                cap = _raised(alone, origin, method)
            if (link := most[number]) >= 0 and tests.alone["expected"][link] > cap.high:
                cap = replace(cap, high=tests.alone["expected"][link].item())
            if mark := samples.waiting(_CAPS[direction], number, number):
                told = figures_with(cap.origin.figures, mark)
                cap = replace(cap, origin=cap.origin._replace(figures=told))
            raised.append(cap)
        capped[name] = replace(site, egress_gbps=raised[0], ingress_gbps=raised[1])
    return capped


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


_Caps: TypeAlias = tuple[dict[str, Estimate], dict[str, Estimate]]
"""Caps of one direction, in Gbit/s: reached ones of regions, and of VM types for regions without
one; and the most that regions' VMs carried while their peers were the limit."""


def _measured_caps(sites: Mapping[str, Site], samples: LinkSamples) -> list[_Caps]:
    """Return the egress and the ingress caps.

    A VM that was loaded from or towards peers shows its cap only if the links could have carried
    more together. A link carries the rate of the peer's own probe of the other direction, and no
    more than its connections' windows (as flows have shown them) over its round-trip time. Where
    the sum came up to that, the peers were the limit, and the probe is a lower bound.
    """
    probes = [list(samples.samples[samples.counted(one).places]) for one in _CAPS]
    seen_mbps: list[dict[str, float]] = []
    for found in probes:
        values: dict[str, list[float]] = defaultdict(list)
        for probe in found:
            for name in {probe.src, sites[probe.src].vm_type or probe.src}:
                values[name].append(probe.value)
        seen_mbps.append({name: median(of_name) for name, of_name in values.items()})
    caps = []
    for metric, found, of_peers in zip(_CAPS, probes, reversed(seen_mbps), strict=True):
        held_back = np.zeros(len(found), np.bool_)
        for place, probe in enumerate(found):
            with evaluated(samples.samples, samples.counted(metric).places[place]):
                detail = probe.read_detail()
                high_mbps, peers = detail.get("high_mbps"), detail.get("together_mbps")
                # The probe itself may say that its VM was not fully loaded.
                most_mbps = high_mbps if isinstance(high_mbps, int | float) else 0.0
                could_gbps = inf
                if isinstance(peers, dict) and peers and all(peer in sites for peer in peers):
                    could_gbps = _peers_could_gbps(probe, list(peers), of_peers, sites, samples)
                at_limit = probe.value / MBPS_PER_GBPS >= HELD_BACK * could_gbps
                held_back[place] = at_limit or most_mbps > probe.value * MOST_OPEN_CAP
        caps.append(_caps_of(metric, samples, sites, held_back))
    return caps


def _caps_of(
    metric: CapMetric, samples: LinkSamples, sites: Mapping[str, Site], held_back: np.ndarray
) -> _Caps:
    """Return the caps that probes of one direction show, and those that peers held back."""
    counted = samples.counted(metric)
    caps: dict[str, Estimate] = {}
    at_least: dict[str, Estimate] = {}
    rows, own = counted.rows, samples.are_own(counted)
    of_type: dict[str, list[tuple[bool, Rows]]] = defaultdict(list)
    each = zip(counted.groups, counted.ends[0], counted.marks, own, strict=True)
    for link, region, mark, trusted in each:
        name, figures = samples.names[region], figures_with(None, samples.marks[mark])
        held, reached = rows[link][held_back[link]], rows[link][~held_back[link]]
        if len(held):
            gbps = float(held["value"].max()) / MBPS_PER_GBPS
            origin = of_rows(samples, held, "inferred", "cap-probe-lower-bound", figures)
            bounds = gbps / (1 + CAP_NOISE), gbps, gbps * OPEN_ABOVE
            at_least[name] = Estimate(*bounds, origin)
        if len(reached):
            caps[name] = _cap(reached, "measured", "cap-probe", samples, figures)
            of_type[sites[name].vm_type].append((bool(trusted), reached))
    for vm_type, found in of_type.items():
        if vm_type:
            own_ones = [reached for its_own, reached in found if its_own]
            together = np.concatenate(own_ones or [reached for _, reached in found])
            of_vms = Figures(vm_type=vm_type)
            cap = _cap(together, "inferred", "caps-of-vm-type", samples, of_vms)
            caps[vm_type] = no_surer_than(cap, CAP_NOISE)
    return caps, at_least


def _cap(
    rows: Rows, kind: Kind, method: Method, samples: LinkSamples, figures: Figures | None
) -> Estimate:
    gbps = rows["value"] / MBPS_PER_GBPS
    return Estimate(*median_bounds(gbps, CAP_NOISE), of_rows(samples, rows, kind, method, figures))


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
        site = found[region]
        if bucket is None:
            continue
        lasts_gbps = bucket.sustained_mbps / MBPS_PER_GBPS
        if bucket.refilling == "bucket" and lasts_gbps < site.egress_gbps.expected:
            cap = _bucket_cap(bucket, bursts, fallen.rows[places], samples)
            known = site.egress_gbps
            if is_own(cap.origin.figures) or known.source != "measured":
                found[region] = replace(site, egress_gbps=cap)
    return found


def _bucket_cap(
    bucket: TokenBucket, bursts: Sequence[BurstTest], rows: Rows, samples: LinkSamples
) -> Estimate:
    peak_gbps, lasts_gbps = bucket.peak_mbps / MBPS_PER_GBPS, bucket.sustained_mbps / MBPS_PER_GBPS
    refill_mbps = bucket.refill_mbps
    cut = RateCut(
        bucket.volume_gb * BITS_PER_BYTE / peak_gbps,
        bucket.volume_gb,
        peak_gbps,
        lasts_gbps,
        "burst",
        None if refill_mbps is None else refill_mbps / MBPS_PER_GBPS,
    )
    after_gbps = np.array([burst.sustained_mbps for burst in bursts]) / MBPS_PER_GBPS
    origin = of_rows(samples, rows, "measured", "token-bucket", Figures(rate_cut=cut))
    return Estimate(*median_bounds(after_gbps, CAP_NOISE), origin)


def with_bursts(sites: Mapping[str, Site], catalogue: Catalogue) -> dict[str, Site]:
    """Return sites as tests find them, which end before the network credits of their VMs do."""
    found = dict(sites)
    for name, site in sites.items():
        vm = catalogue.vm_types.get(site.vm_type)
        if vm and vm.wan_burst_gbps:
            cap = within(vm.wan_burst_gbps, CAP_ERROR, site.egress_gbps.origin)
            found[name] = replace(site, egress_gbps=cap, ingress_gbps=cap)
    return found


def with_lasting(
    sites: Mapping[str, Site], typed: Mapping[str, Site], catalogue: Catalogue
) -> dict[str, Site]:
    """Return sites with the lasting caps of types that burst, but for caps that were measured."""
    found = dict(sites)
    for name, site in sites.items():
        vm, caps = catalogue.vm_types.get(site.vm_type), {}
        if not vm or not vm.wan_burst_gbps:
            continue
        for cap in ("egress_gbps", "ingress_gbps"):
            origin = getattr(site, cap).origin
            raised_from = origin.figures.raised_from if origin.figures else None
            if "vm-type" in (origin.method, raised_from):
                caps[cap] = getattr(typed[name], cap)
        found[name] = replace(site, **caps)
    return found


# ---- windows -------------------------------------------------------------------------------------


def most_calibrating_mbps(
    sites: Mapping[str, Site], rtts_ms: Floats, catalogue: Catalogue
) -> Floats:
    """Return the highest throughput of flows that calibrate their receivers' windows.

    Shape (n, n); minus infinity where none does: too near, or of a round-trip time that is not
    known.
    """
    egress = bounds_of(site.egress_gbps for site in sites.values())["expected"]
    ingress = bounds_of(site.ingress_gbps for site in sites.values())["expected"]
    flows_out, flows_in = flow_caps_gbps(sites.values(), catalogue)
    sends, receives = np.minimum(flows_out, egress), np.minimum(flows_in, ingress)
    most = SHARE_OF_CAP * (MBPS_PER_GBPS * np.minimum(sends[:, None], receives))
    return np.where(rtts_ms >= CAP_BELOW_MS, most, -inf)


def with_windows(
    sites: Mapping[str, Site], samples: LinkSamples, tests: AggregateTests
) -> dict[str, Site]:
    """Calibrate each receiver's window by the flows into it, else by others of its type.

    Where there are none, a type's window is what its tests state, or the least that their
    connections must have had.
    """
    counted, rtts_ms = samples.counted("per_flow_mbps"), samples.rtts_ms
    ends = number_of(counted.rows["src"]), number_of(counted.rows["dst"])
    most_mbps = most_calibrating_mbps(sites, rtts_ms, samples.catalogue)
    shows = counted.rows["value"] <= most_mbps[ends]
    is_own = counted.groups.spread(samples.are_own(counted))[shows]
    steady = samples.steady(counted.rows, "per_flow_mbps")[shows]
    rows, distances, dst = counted.rows[shows], rtts_ms[ends][shows], ends[1][shows]
    windows = steady * distances / MS_PER_S / MBIT_PER_MB
    types, of_site = _numbered_types(sites)
    into, of_types = _places_by(dst, is_own), _places_by(of_site[dst], is_own)
    by_type = _windows_of_tests(sites, samples, tests)
    for vm_type, number in types.items():
        if vm_type and number in of_types:
            used = of_types[number]
            of_vms = Figures(vm_type=vm_type)
            origin = of_rows(samples, rows[used], "inferred", "flows-into-vm-type", of_vms)
            bounds = median_bounds(windows[used], WINDOW_SPREAD_OF_TYPE)
            by_type[vm_type] = no_surer_than(Estimate(*bounds, origin), WINDOW_SPREAD_OF_TYPE)
    calibrated = {}
    for number, (name, site) in enumerate(sites.items()):
        window_mb = by_type.get(site.vm_type, site.window_mb)
        if number in into:
            used = into[number]
            # Tests spread about it by their own noise, too.
            error = 1 + window_error(distances[used].tolist())
            expected = median(windows[used].tolist())
            origin = of_rows(samples, rows[used], "measured", "flows-into-region")
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
    types, of_site = _numbered_types(sites)
    vm_types = {site.vm_type: site.window_mb for site in sites.values() if site.vm_type}
    counted = [samples.counted(metric) for metric in ("per_flow_mbps", "aggregate_mbps")]
    rows = np.concatenate([one.rows for one in counted])
    own = np.concatenate([one.groups.spread(samples.are_own(one)) for one in counted])
    is_raised = samples.stated("window_mb")[rows["detail"]] > STOCK_RANGE_MB[1]
    of_tests, of_links = of_site[number_of(rows["dst"])], of_site[tests.pairs[1]]
    # Gbit/s are Mbit/ms.
    carried_mb = tests.alone["expected"] * samples.rtts_ms[tests.pairs] / MBIT_PER_MB
    known = (tests.connections > 0) & ~np.isnan(carried_mb)
    least = np.where(known, carried_mb / np.maximum(tests.connections, 1), 0.0)
    found, beyond = {}, 1 + WINDOW_SPREAD_OF_TYPE
    for vm_type, assumed in vm_types.items():
        into = of_tests == types[vm_type]
        if not into.any():
            continue
        into &= own | ~(own & into).any()
        of_vms = Figures(vm_type=vm_type)
        origin = of_rows(samples, rows[into], "inferred", "windows-of-tests", of_vms)
        if 2 * np.count_nonzero(is_raised[into]) >= np.count_nonzero(into):
            found[vm_type] = replace(HOSTS_TUNED, origin=origin)
            continue
        over = of_links == types[vm_type]
        shown, lone = least[over], tests.is_lone[over]
        # One short test from a cold start may err.
        mb = float(max(shown[~lone].max(initial=0.0), *np.sort(shown)[-2:-1], 0.0))
        if mb > beyond * assumed.expected:
            high = TUNED_WINDOW_MB[2] if mb > STOCK_RANGE_MB[1] else mb * (1 + WINDOW_ERROR)
            low, high = mb / beyond, max(assumed.high, high)
            found[vm_type] = Estimate(low, mb, high, origin)
    return found


def _numbered_types(sites: Mapping[str, Site]) -> tuple[dict[str, int], Ints]:
    """Give each VM type a number; the second is that of each site."""
    names = [site.vm_type for site in sites.values()]
    types = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return types, np.array([types[name] for name in names], np.int64)


def _places_by(keys: Ints, is_own: np.ndarray) -> dict[int, Ints]:
    """Return the places of each key: the own prober's samples; where there are none, all."""
    order, found = np.argsort(keys, kind="stable"), {}
    for one in Groups.of(keys[order]):
        places = order[one]
        own = places[is_own[places]]
        found[int(keys[places[0]])] = own if len(own) else places
    return found
