"""Collects samples and builds the graph that they give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf

from planner.model.baseline import baseline_site
from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind, Estimate
from planner.model.link import Link, Site, limit_of
from planner.model.network import Network, Snapshot
from planner.model.throughput import LAW_CONNECTIONS
from planner.model.units import MBPS_PER_GBPS
from probes.estimation.aggregates import MeasuredLaw, aggregate_tests, saturated_links
from probes.estimation.flows import (
    aggregate_of_flow,
    flow_of_window,
    flow_spreads,
    inferred_flow,
    measured_flows,
)
from probes.estimation.kinds import caps_joined, joined, with_caps_of
from probes.estimation.round_trips import RTT_OF_NO_PLACE, loss_pct, round_trips_ms
from probes.estimation.series import Pair, Samples
from probes.estimation.sites import with_caps, with_windows
from probes.samples import Sample

UNKNOWN = Estimate(inf, inf, inf)


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

    def add(self, samples: Iterable[Sample]) -> None:
        """Take in samples; those of one link and metric oldest first."""
        for sample in samples:
            (self._private if sample.address == "private" else self._samples).add(sample)

    def add_votes(self, src: str, dst: str, src_vm: str, dst_vm: str, count: int) -> None:
        """Count throughput samples that are no longer there for the VM types that they name."""
        self._samples.add_votes(src, dst, src_vm, dst_vm, count)

    @property
    def newest_s(self) -> float:
        """Time of the newest sample, seconds since 1970; 0 where there is none."""
        return max(self._samples.newest_s, self._private.newest_s)

    def network(self, snapshot: Snapshot) -> Network:
        """Return the graph of all catalogue regions and all measured ones."""
        catalogue = self.catalogue
        names = [region.id for region in catalogue.regions.values() if region.baseline]
        names += sorted((self._samples.regions() | self._private.regions()).difference(names))
        typed = {name: baseline_site(name, catalogue, self._vm_types(name)) for name in names}
        rtts = round_trips_ms(names, self._samples, catalogue)
        sites, links = self._estimated(typed, self._samples, rtts, "public")
        measured = self._private.regions()
        if not measured:  # as most often
            return Network(sites, links, snapshot)
        ends = {name: site for name, site in sites.items() if name in measured}
        for (src, dst), rtt in round_trips_ms(list(ends), self._private, catalogue).items():
            if rtt.source != "baseline" or (src, dst) not in rtts:
                rtts[src, dst] = rtt
        own = self._private.pairs()
        rtts = {
            pair: rtt
            for pair, rtt in rtts.items()
            if pair in own or (measured.issuperset(pair) and _same_provider(*pair))
        }
        found, private = self._estimated(
            with_caps_of(ends, "private"), self._private, rtts, "private"
        )
        sites = caps_joined(sites, found)
        used, others = joined(links, private)
        return Network(sites, used, snapshot, others=others)

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
        return sites, links

    def _vm_types(self, region: str) -> Mapping[str, str]:
        """Return the VM type to assume in a region: stated, or named by most samples."""
        if region in self.chosen or region.partition(":")[0] in self.chosen:
            return self.chosen
        voted = self._samples.vm_type(region, self.catalogue)
        return {region: voted} if voted else self.chosen


def _same_provider(src: str, dst: str) -> bool:
    return src.partition(":")[0] == dst.partition(":")[0]
