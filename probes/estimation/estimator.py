"""Collects samples and builds the graph that they give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from planner.model.baseline.graph import baseline_site
from planner.model.catalogue import Catalogue
from planner.model.columns.links import Origins
from planner.model.columns.table import EstimateArrays, LinkArrays
from planner.model.estimate import AddressKind
from planner.model.link import Site
from planner.model.network import Network, Snapshot
from probes.estimation.aggregates import aggregate_tests, saturated_links
from probes.estimation.agreement import Agreed, Disputed
from probes.estimation.arrays.groups import Bools, Ints
from probes.estimation.arrays.laws import MeasuredLaw
from probes.estimation.arrays.links import MeasuredLinks, links_of
from probes.estimation.arrays.origins import are_baseline
from probes.estimation.arrays.provider_laws import ProviderLaws
from probes.estimation.arrays.sample_table import ADDRESSES, Pair, Rows, SampleTable
from probes.estimation.arrays.vm_types import vm_type_of
from probes.estimation.caps import with_buckets
from probes.estimation.flows import FlowModel, measured_flows
from probes.estimation.kinds import caps_joined, joined, with_caps_of
from probes.estimation.round_trips import RTT_OF_NO_PLACE, losses_pct, round_trips_ms
from probes.estimation.series import LinkSamples
from probes.estimation.sites import with_caps, with_windows
from probes.medians import median
from probes.samples import OWN, Metric, Sample

_PRIVATE = ADDRESSES.index("private")


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


class Estimates(NamedTuple):
    """What is believed of all links and VMs.

    Attributes
    ----------
    sites : dict
        Region id to site.
    links : LinkArrays
        Those in use.
    others : LinkArrays
        Over the kind of address that is not in use, where both are known.
    """

    sites: dict[str, Site]
    links: LinkArrays
    others: LinkArrays

    def network(self, snapshot: Snapshot) -> Network:
        """Return the graph of them, as views."""
        links, others = self.links.as_columns(), self.others.as_columns()
        return Network(
            self.sites,
            {region: links.row(region) for region in self.sites},
            snapshot,
            others={region: others.row(region) for region in others.sources()},
        )


class Estimator:
    """Collects samples, then estimates all links and VMs from them at once.

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
        self.samples = SampleTable()
        self._stated_gbps = dict(stated_gbps)
        self._of_kind: dict[AddressKind, LinkSamples] = {}

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
        self.samples.add(samples, source, first_id)

    def add_votes(
        self, src: str, dst: str, src_vm: str, dst_vm: str, count: int, source: str = OWN
    ) -> None:
        """Count throughput samples that are no longer there for the VM types that they name."""
        self.samples.add_votes(src, dst, src_vm, dst_vm, count, source)

    @property
    def newest_s(self) -> float:
        """Time of the newest sample, seconds since 1970; 0 where there is none."""
        return self.samples.newest_s

    def network(self, snapshot: Snapshot) -> Network:
        """Return the graph of all catalogue regions and all measured ones."""
        return self.estimates().network(snapshot)

    def estimates(self) -> Estimates:
        """Return what is believed of all catalogue regions and all measured ones."""
        catalogue, table = self.catalogue, self.samples
        votes = table.votes()
        names = [region.id for region in catalogue.regions.values() if region.baseline]
        names += sorted(set(table.regions).difference(names))
        table.number(names)
        typed = {
            name: baseline_site(name, catalogue, self._vm_types(name, votes)) for name in names
        }
        origins = Origins()
        private = table.rows["address"] == _PRIVATE
        public = LinkSamples(table, table.rows[~private] if private.any() else table.rows, typed)
        self._of_kind = {"public": public}
        rtts = round_trips_ms(public, catalogue, origins)
        between = rtts if private.any() else None  # of public addresses; changed by what follows
        if between:
            between = EstimateArrays._make(column.copy() for column in between)
        sites, links = self._estimated(typed, public, rtts, "public", origins)
        rows = table.rows[private & ~self._are_claims(private)]
        if between is None or not len(rows):  # as most often
            return Estimates(sites, links, links.take(slice(0, 0)))
        return self._with_private(rows, sites, links, between, origins)

    def _with_private(
        self,
        rows: Rows,
        sites: Mapping[str, Site],
        links: LinkArrays,
        between: EstimateArrays,
        origins: Origins,
    ) -> Estimates:
        """Return estimates with what was measured over private addresses.

        Parameters
        ----------
        rows : Rows
            Samples over private addresses.
        sites, links
            As public addresses have them.
        between : EstimateArrays
            Round-trip times over public addresses.
        origins : Origins
        """
        places = np.union1d(rows["src"], rows["dst"])
        measured = set(places.tolist())
        ends = {name: site for n, (name, site) in enumerate(sites.items()) if n in measured}
        place = np.full(len(sites), -1, np.int32)
        place[places] = np.arange(len(places))
        for end in ("src", "dst"):
            rows[end] = place[rows[end]]
        private = LinkSamples(self.samples, rows, with_caps_of(ends, "private"))
        self._of_kind["private"] = private
        rtts = between.take(np.ix_(places, places))
        own = round_trips_ms(private, self.catalogue, origins)
        better = own.known & (~are_baseline(origins, own.origin) | ~rtts.known)
        rtts.put(better, own.take(better))
        providers = np.array([name.partition(":")[0] for name in ends])
        rtts.expected[~(private.pairs() | (providers[:, None] == providers))] = np.nan
        found, over_private = self._estimated(
            with_caps_of(ends, "private"), private, rtts, "private", origins
        )
        used, others = joined(links, over_private.placed(places, links.names), origins)
        return Estimates(caps_joined(sites, found), used, others)

    def _estimated(
        self,
        typed: Mapping[str, Site],
        samples: LinkSamples,
        rtts: EstimateArrays,
        address: AddressKind,
        origins: Origins,
    ) -> tuple[dict[str, Site], LinkArrays]:
        """Return sites and links over one kind of address, from samples of that kind."""
        catalogue = self.catalogue
        flows = measured_flows(samples, rtts.expected, origins)
        tests = aggregate_tests(samples, rtts.expected, origins)
        pairs = tests.src, tests.dst
        sites = with_caps(typed, samples, tests, self._stated_gbps, rtts, catalogue, origins)
        sites = with_windows(sites, samples, rtts.expected, catalogue)
        model = FlowModel(sites.values(), rtts, catalogue, origins)
        spreads = model.spreads(flows)
        laws = ProviderLaws(sites, typed, rtts, address, origins)
        law = MeasuredLaw(laws, sites, pairs, tests.alone, origins)
        aggregates, priors = law.measured(tests)
        _fill(rtts, pairs, origins)
        _fill(rtts, (flows.src, flows.dst), origins)
        inferred = rtts.known
        inferred[pairs] = False
        measured = MeasuredLinks(
            *(flows, pairs, aggregates, priors, tests.connections, saturated_links(samples))
        )
        links = links_of(
            sites.values(),
            rtts,
            model.of_windows(spreads),
            law.unmeasured(inferred),
            measured,
            losses_pct(samples),
            address,
            origins,
        )
        # Last: laws and limits of links are of what short tests show.
        return with_buckets(sites, tests), links

    def disputes(self) -> list[Dispute]:
        """Return what does not count because it contradicts others, and unconfirmed new levels.

        Of the samples as :meth:`estimates` has last judged them.
        """
        found = []
        for address, samples in self._of_kind.items():
            for metric in self.samples.known_metrics():
                samples.counted(metric)
            for (metric, src, dst), agreement in samples.agreements.items():
                key = (metric, (samples.names[src], samples.names[dst]), address)
                level = median(s.value for s in agreement.samples) if agreement.samples else None
                found += [Dispute.of_samples(*key, one, level) for one in agreement.disputed]
                if agreement.is_shift:
                    found.append(Dispute.of_shift(*key, agreement))
        found += self._claimed_alone()
        return sorted(found, key=lambda one: one[:6])

    def _claimed_alone(self) -> list[Dispute]:
        """Return what does not count because one source alone says that an address is private."""
        rows = self.samples.rows
        private = rows["address"] == _PRIVATE
        claimed = rows[private & self._are_claims(private)]
        if not len(claimed):
            return []
        sites = {name: baseline_site(name, self.catalogue) for name in self.samples.regions}
        samples, found = LinkSamples(self.samples, claimed, sites), []
        for metric in self.samples.known_metrics():
            recent, groups = samples.recent(metric)
            for within in groups:
                for one in samples.from_sources(recent[within]):
                    first, held = (
                        one.samples[0],
                        Disputed(one.source, one.samples, len(one.samples)),
                    )
                    pair = first.src, first.dst
                    found.append(Dispute.of_samples(metric, pair, "private", held, None))
        return found

    def _are_claims(self, private: Bools) -> Bools:
        """Return samples of links that one source alone reported over private addresses.

        Where others reported them over public ones. Taken as told, they would be used in place of
        what the others measured. Where the catalogue says that both ends share a private network,
        nobody needs to confirm that.
        """
        table = self.samples
        claims = np.zeros(len(private), np.bool_)
        if not (table.is_mixed and private.any()):
            return claims
        rows, regions = table.rows, list(table.regions)
        over_private, over_public = (table.reporters(rows[kind]) for kind in (private, ~private))
        for (src, dst), by in over_private.items():
            if len(by) != 1 or OWN in by or not over_public.get((src, dst), by) - by:
                continue
            network, other = (
                self.catalogue.region(regions[end]).private_network for end in (src, dst)
            )
            if not network or network != other:
                claims |= (rows["src"] == src) & (rows["dst"] == dst)
        return claims

    def _vm_types(
        self, region: str, votes: Mapping[str, Mapping[str, Mapping[str, int]]]
    ) -> Mapping[str, str]:
        """Return the VM type to assume in a region: stated, or named by most samples."""
        if region in self.chosen or region.partition(":")[0] in self.chosen:
            return self.chosen
        voted = vm_type_of(region, votes, self.catalogue)
        return {region: voted} if voted else self.chosen


def _fill(rtts: EstimateArrays, pairs: tuple[Ints, Ints], origins: Origins) -> None:
    """Fill in the round-trip times of links that were measured and are between no known places."""
    missing = np.isnan(rtts.expected[pairs])
    places = tuple(ends[missing] for ends in pairs)
    one = EstimateArrays.of([RTT_OF_NO_PLACE], origins)
    rtts.put(places, one.take(np.zeros(missing.sum(), np.int64)))
