"""Collects samples and builds the graph that they give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from math import inf
from typing import NamedTuple

from planner.model.baseline import baseline_site
from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind, Estimate
from planner.model.link import Link, Site, limit_of
from planner.model.network import Network, Snapshot
from planner.model.throughput import LAW_CONNECTIONS
from planner.model.units import MBPS_PER_GBPS
from probes.estimation.aggregates import MeasuredLaw, aggregate_tests, saturated_links
from probes.estimation.agreement import Agreed, Disputed
from probes.estimation.bounds import median
from probes.estimation.caps import with_buckets
from probes.estimation.flows import (
    aggregate_of_flow,
    flow_of_window,
    flow_spreads,
    inferred_flow,
    measured_flows,
)
from probes.estimation.kinds import caps_joined, joined, with_caps_of
from probes.estimation.round_trips import RTT_OF_NO_PLACE, loss_pct, round_trips_ms
from probes.estimation.series import Pair, Samples, counted
from probes.estimation.sites import with_caps, with_windows
from probes.samples import OWN, Metric, Sample

UNKNOWN = Estimate(inf, inf, inf)


class Dispute(NamedTuple):
    """Samples that contradict others, or a new level that the own prober has not found yet.

    Attributes
    ----------
    sources : tuple of str
        Who reported them.
    samples, of : int
        How many contradict, of how many that are recent.
    value : float
        Their median.
    level : float | None
        The median of what counts; None where nothing does.
    counts : bool
        Whether these samples count, because several sources agree.
    """

    src: str
    dst: str
    metric: Metric
    address: AddressKind
    sources: tuple[str, ...]
    samples: int
    of: int
    value: float
    level: float | None
    counts: bool

    @classmethod
    def of_samples(
        cls, metric: Metric, pair: Pair, address: AddressKind, one: Disputed, level: float | None
    ) -> Dispute:
        """Return what one source's samples contradict."""
        value = median(sample.value for sample in one.samples)
        count = len(one.samples)
        return cls(*pair, metric, address, (one.source,), count, one.of, value, level, counts=False)

    @classmethod
    def of_shift(cls, metric: Metric, pair: Pair, address: AddressKind, found: Agreed) -> Dispute:
        """Return a new level that several sources report."""
        value, count = median(sample.value for sample in found.samples), len(found.samples)
        return cls(
            *pair, metric, address, found.reported_by, count, count, value, value, counts=True
        )


class Estimator:
    """Collects samples, then builds a network from them.

    Parameters
    ----------
    catalogue : Catalogue
    chosen : mapping, optional
        Region or provider to VM type. Without it, a region's VM type is the one that most of
        its throughput samples name, else the catalogue's default.
    stated_gbps : mapping, optional
        Region to the egress and ingress cap of its VM where that is not as its type has it; None
        where it is. They hold until caps are measured.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        chosen: Mapping[str, str] = {},
        stated_gbps: Mapping[str, tuple[float | None, float | None]] = {},
    ) -> None:
        self.catalogue = catalogue
        self.chosen = dict(chosen)
        self._stated_gbps = dict(stated_gbps)
        self._samples = Samples()
        self._private = Samples(self._samples)

    def add(self, samples: Iterable[Sample], source: str = OWN, first_id: int = 0) -> None:
        """Take in samples; those of one link, metric and source oldest first.

        Parameters
        ----------
        samples : iterable of Sample
        source : str
            Who reported them.
        first_id : int
            In the order of arrival, the first of these of a link and metric.
        """
        for (_, _, _, is_private), group in groupby(samples, _series_of):
            of_kind = self._private if is_private else self._samples
            of_kind.add(list(group), source, first_id)

    def add_votes(
        self, src: str, dst: str, src_vm: str, dst_vm: str, count: int, source: str = OWN
    ) -> None:
        """Count throughput samples that are no longer there for the VM types that they name."""
        self._samples.add_votes(src, dst, src_vm, dst_vm, count, source)

    @property
    def newest_s(self) -> float:
        """Time of the newest sample, seconds since 1970; 0 where there is none."""
        return max(self._samples.newest_s, self._private.newest_s)

    def network(self, snapshot: Snapshot) -> Network:
        """Return the graph of all catalogue regions and all measured ones."""
        catalogue = self.catalogue
        names = [region.id for region in catalogue.regions.values() if region.baseline]
        names += sorted((self._samples.regions() | self._private.regions()).difference(names))
        private = self._private.without(self._private_claims())
        typed = {name: baseline_site(name, catalogue, self._vm_types(name)) for name in names}
        rtts = round_trips_ms(names, self._samples, catalogue)
        sites, links = self._estimated(typed, self._samples, rtts, "public")
        measured = private.regions()
        if not measured:  # as most often
            return Network(sites, links, snapshot)
        ends = {name: site for name, site in sites.items() if name in measured}
        for (src, dst), rtt in round_trips_ms(list(ends), private, catalogue).items():
            if rtt.source != "baseline" or (src, dst) not in rtts:
                rtts[src, dst] = rtt
        own = private.pairs()
        rtts = {
            pair: rtt
            for pair, rtt in rtts.items()
            if pair in own or (measured.issuperset(pair) and _same_provider(*pair))
        }
        found, over_private = self._estimated(
            with_caps_of(ends, "private"), private, rtts, "private"
        )
        sites = caps_joined(sites, found)
        used, others = joined(links, over_private)
        return Network(sites, used, snapshot, others=others)

    def disputes(self, network: Network) -> list[Dispute]:
        """Return what does not count because it contradicts others, and unconfirmed new levels.

        Parameters
        ----------
        network : Network
            As :meth:`network` returned it.
        """
        claims = self._private_claims()
        found = []
        kinds: tuple[tuple[AddressKind, Samples], ...] = (
            ("public", self._samples),
            ("private", self._private),
        )
        for address, samples in kinds:
            for metric, (src, dst), series in samples:
                if address == "private" and (src, dst) in claims:
                    for one in series.recent():
                        held = Disputed(one.source, one.samples, len(one.samples))
                        found.append(Dispute.of_samples(metric, (src, dst), address, held, None))
                elif len(series.by_source) > 1:
                    link = network.usual.get(src, {}).get(dst)
                    rtt = link.rtt_ms if link else None
                    agreement = counted(metric, series, network.sites, rtt)
                    level = (
                        median(s.value for s in agreement.samples) if agreement.samples else None
                    )
                    key = (metric, (src, dst), address)
                    found += [Dispute.of_samples(*key, one, level) for one in agreement.disputed]
                    if agreement.is_shift:
                        found.append(Dispute.of_shift(*key, agreement))
        return sorted(found, key=lambda one: one[:6])

    def _private_claims(self) -> set[Pair]:
        """Return links that one source alone reported over private addresses, others over public.

        Taken as told, they would be used in place of what the others measured. Where the catalogue
        says that both ends share a private network, nobody needs to confirm that.
        """
        if not self._samples.is_mixed:
            return set()
        over_private, over_public = self._private.reporters(), self._samples.reporters()
        region = self.catalogue.region
        return {
            (src, dst)
            for (src, dst), by in over_private.items()
            if len(by) == 1
            and OWN not in by
            and over_public.get((src, dst), by) - by
            and not (
                region(src).private_network
                and region(src).private_network == region(dst).private_network
            )
        }

    def _estimated(
        self,
        typed: Mapping[str, Site],
        samples: Samples,
        rtts: Mapping[Pair, Estimate],
        address: AddressKind,
    ) -> tuple[dict[str, Site], dict[str, dict[str, Link]]]:
        """Return sites and links over one kind of address, from samples of that kind."""
        catalogue = self.catalogue
        flows = measured_flows(typed, samples, rtts)
        tests = aggregate_tests(typed, samples, rtts)
        alone = {pair: of_link.alone for pair, of_link in tests.items()}
        sites = with_caps(typed, samples, tests, self._stated_gbps, rtts, catalogue)
        sites = with_windows(sites, samples, rtts, catalogue)
        spreads = flow_spreads(flows, sites, rtts, catalogue)
        law = MeasuredLaw(sites, typed, rtts, alone, address)
        aggregates = law.measured(tests)
        saturated = saturated_links(typed, samples)
        tested = {end for pair in flows for end in pair}
        links: dict[str, dict[str, Link]] = {}
        for src in typed:
            row: dict[str, Link] = {}
            for dst in typed:
                pair = (src, dst)
                rtt: Estimate | None = rtts.get(pair)
                if rtt is None and (pair in aggregates or pair in flows):
                    rtt = RTT_OF_NO_PLACE
                if src == dst or rtt is None:
                    continue
                aggregate = aggregates.get(pair) or law.aggregate(src, dst, rtt)
                if aggregate is None and tested.isdisjoint(pair):
                    continue  # no VM type, no law: nothing to go by
                opened = tests[pair].connections if pair in tests else None
                flow = flows.get(pair)
                windows = flow or flow_of_window(sites[src], sites[dst], rtt, catalogue, spreads)
                flow = flow or inferred_flow(windows, aggregate or UNKNOWN, opened)
                together = None
                if aggregate is not None and opened != 0:
                    together = windows.scaled((opened or LAW_CONNECTIONS) / MBPS_PER_GBPS)
                aggregate = aggregate or aggregate_of_flow(flow)
                row[dst] = Link(
                    src,
                    dst,
                    rtt,
                    flow,
                    aggregate,
                    loss_pct(pair, samples),
                    limit_of(
                        aggregate, sites[src], sites[dst], together, saturated=pair in saturated
                    ),
                    address,
                )
            links[src] = row
        # Last: laws and limits of links are of what short tests show.
        return with_buckets(sites, tests), links

    def _vm_types(self, region: str) -> Mapping[str, str]:
        """Return the VM type to assume in a region: stated, or named by most samples."""
        if region in self.chosen or region.partition(":")[0] in self.chosen:
            return self.chosen
        voted = self._samples.vm_type(region, self.catalogue)
        return {region: voted} if voted else self.chosen


def _series_of(sample: Sample) -> tuple[str, str, Metric, bool]:
    return sample.src, sample.dst, sample.metric, sample.address == "private"


def _same_provider(src: str, dst: str) -> bool:
    return src.partition(":")[0] == dst.partition(":")[0]
