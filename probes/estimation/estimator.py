"""Estimates all links and VMs from samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from planner.model.baseline.graph import baseline_site
from planner.model.catalogue import Catalogue
from planner.model.estimate import AddressKind
from planner.model.link import Site
from planner.model.link_array import EstimateArrays, LinkArray, Origins
from planner.model.network import Network, Snapshot
from probes.estimation.aggregates import aggregate_tests, saturated_links
from probes.estimation.caps import with_buckets
from probes.estimation.current_samples import CurrentSamples, current_samples, with_first
from probes.estimation.flows import FlowModel, measured_flows
from probes.estimation.groups import Bools, Floats, Ints
from probes.estimation.kinds import caps_joined, joined, with_caps_of
from probes.estimation.laws import MeasuredLaw
from probes.estimation.link_samples import LinkSamples
from probes.estimation.links import MeasuredLinks, links_of
from probes.estimation.origins import are_baseline
from probes.estimation.provider_laws import ProviderLaws
from probes.estimation.round_trips import RTT_OF_NO_PLACE, losses_pct, round_trips_ms
from probes.estimation.sites import with_caps, with_windows
from probes.estimation.vm_types import VmVote, vm_type_of, votes_of
from probes.samples import OWN, Metric, Samples


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


class Estimates(NamedTuple):
    """What is believed of all links and VMs.

    Attributes
    ----------
    sites : dict
        Region id to site.
    links : LinkArray
        Those in use.
    others : LinkArray
        Over the kind of address that is not in use, where both are known.
    """

    sites: dict[str, Site]
    links: LinkArray
    others: LinkArray

    def network(self, snapshot: Snapshot) -> Network:
        """Return the graph of them."""
        return Network(self.sites, self.links, snapshot, others=self.others)


class Estimator:
    """Estimates all links and VMs from samples at once.

    Parameters
    ----------
    samples : Samples
        All that were reported, in any order.
    catalogue : Catalogue
    chosen : mapping, optional
        Region or provider to VM type. Without it, a region's VM type is the one that most of
        its throughput samples name, else the catalogue's default.
    stated_gbps : mapping, optional
        Region to the egress and ingress cap of its VM where that is not as its type has it; None
        where it is. They hold until caps are measured.
    votes : iterable of VmVote, optional
        Throughput samples that are no longer there, for the VM types that they name.

    Attributes
    ----------
    newest_s : float
        Time of the newest sample that counts, seconds since 1970; 0 where there is none.
    shifts : list of LinkShift
        Every change of level that was found.
    """

    def __init__(
        self,
        samples: Samples,
        catalogue: Catalogue,
        chosen: Mapping[str, str] = {},
        stated_gbps: Mapping[str, tuple[float | None, float | None]] = {},
        votes: Iterable[VmVote] = (),
    ) -> None:
        self.catalogue, self._chosen, self._stated_gbps = catalogue, chosen, stated_gbps
        self._votes = votes_of(samples, votes)
        regions = [region.id for region in catalogue.regions.values() if region.baseline]
        rows, names = samples.rows, list(samples.names)
        used = {names[n] for end in ("src", "dst") for n in np.unique(rows[end]).tolist()}
        self._regions = [*regions, *sorted((used | self._votes.keys()).difference(regions))]
        self._current = current_samples(with_first(samples, self._regions))
        self.shifts = self._current.shifts
        self._rows = self._current.samples.rows
        self._is_mixed = len(np.unique(self._rows["source"])) > 1
        self.newest_s = float(self._rows["measured_at_s"].max(initial=0.0))
        self._of_kind: dict[AddressKind, LinkSamples] = {}

    def network(self, snapshot: Snapshot) -> Network:
        """Return the graph of all catalogue regions and all measured ones."""
        return self.estimates().network(snapshot)

    def estimates(self) -> Estimates:
        """Return what is believed of all catalogue regions and all measured ones."""
        typed = {
            name: baseline_site(name, self.catalogue, self._vm_types(name))
            for name in self._regions
        }
        origins = Origins()
        over_public = self._current.of_kind(private=False)
        over_private = self._current.of_kind(private=True)
        public = LinkSamples(over_public, typed, is_mixed=self._is_mixed)
        self._of_kind = {"public": public}
        rtts = round_trips_ms(public, self.catalogue, origins)
        # Of public addresses; changed by what follows.
        between = EstimateArrays._make(column.copy() for column in rtts)
        sites, links = self._estimated(typed, public, rtts, "public", origins)
        private = over_private.where(~self._are_claims(over_public, over_private))
        if not len(private.samples):
            return Estimates(sites, links, LinkArray())
        return self._with_private(private, sites, links, between, origins)

    def _with_private(
        self,
        current: CurrentSamples,
        sites: Mapping[str, Site],
        links: LinkArray,
        between: EstimateArrays,
        origins: Origins,
    ) -> Estimates:
        """Return estimates with what was measured over private addresses.

        Parameters
        ----------
        current : CurrentSamples
            Over private addresses.
        sites, links
            As public addresses have them.
        between : EstimateArrays
            Round-trip times over public addresses.
        origins : Origins
        """
        rows = current.samples.rows
        places = np.union1d(rows["src"], rows["dst"]).astype(np.int64) - 1
        ends = {name: sites[name] for name in (self._regions[place] for place in places.tolist())}
        current = current._replace(samples=with_first(current.samples, list(ends)))
        sites_over = with_caps_of(ends, "private")
        private = LinkSamples(current, sites_over, is_mixed=self._is_mixed)
        self._of_kind["private"] = private
        rtts = between.take(np.ix_(places, places))
        own = round_trips_ms(private, self.catalogue, origins)
        better = own.known & (~are_baseline(origins, own.origin) | ~rtts.known)
        rtts.put(better, own.take(better))
        providers = np.array([name.partition(":")[0] for name in ends])
        rtts.expected[~(private.pairs() | (providers[:, None] == providers))] = np.nan
        found, over_private = self._estimated(sites_over, private, rtts, "private", origins)
        used, others = joined(links, over_private)
        return Estimates(caps_joined(sites, found), used, others)

    def _estimated(
        self,
        typed: Mapping[str, Site],
        samples: LinkSamples,
        rtts: EstimateArrays,
        address: AddressKind,
        origins: Origins,
    ) -> tuple[dict[str, Site], LinkArray]:
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
        return with_buckets(sites, tests.fallen), links

    def disputes(self) -> list[Dispute]:
        """Return what does not count because it contradicts others, and unconfirmed new levels.

        Of the samples as :meth:`estimates` has last judged them.
        """
        if not self._of_kind:
            self.estimates()
        found = []
        for address, of_kind in self._of_kind.items():
            for metric in of_kind.known_metrics():
                of_kind.counted(metric)
            value = of_kind.samples.rows["value"]

            for (metric, src, dst), judged in of_kind.agreements.items():
                key = of_kind.names[src], of_kind.names[dst], metric, address
                level = _median(value[judged.places])
                for source, places, of in judged.disputed:
                    middle = float(np.median(value[places]))
                    found.append(
                        Dispute(*key, (source,), len(places), of, middle, level, counts=False)
                    )
                if judged.is_shift and level is not None:
                    count, by = len(judged.places), judged.reported_by
                    found.append(Dispute(*key, by, count, count, level, level, counts=True))
        found += self._claimed_alone()
        return sorted(found, key=lambda one: one[:6])

    def _claimed_alone(self) -> list[Dispute]:
        """Return what does not count because one source alone says that an address is private."""
        over = [self._current.of_kind(private=private) for private in (False, True)]
        claimed = over[1].where(self._are_claims(*over))
        sites = {name: baseline_site(name, self.catalogue) for name in self._regions}
        samples, found = LinkSamples(claimed, sites, is_mixed=True), []
        for metric in samples.known_metrics():
            recent = samples.recent(metric)
            for link, src, dst in zip(recent.groups, recent.src, recent.dst, strict=True):
                for one in samples.from_sources(recent.places[link], recent.rows["value"][link]):
                    count, value = len(one.places), float(np.median(one.logs))
                    key = self._regions[src], self._regions[dst], metric
                    found.append(
                        Dispute(
                            *key, "private", (one.source,), count, count, value, None, counts=False
                        )
                    )
        return found

    def _are_claims(self, public: CurrentSamples, private: CurrentSamples) -> Bools:
        """Return samples of links that one source alone reported over private addresses.

        Where others reported them over public ones. Taken as told, they would be used in place of
        what the others measured. Where the catalogue says that both ends share a private network,
        nobody needs to confirm that.
        """
        claims = np.zeros(len(private.samples), np.bool_)
        if not self._is_mixed:
            return claims
        over_public, over_private = public.reporters(), private.reporters()
        rows = private.samples.rows
        for (src, dst), by in over_private.items():
            if len(by) != 1 or OWN in by or not over_public.get((src, dst), by) - by:
                continue
            network, other = (
                self.catalogue.region(self._regions[end - 1]).private_network for end in (src, dst)
            )
            if not network or network != other:
                claims |= (rows["src"] == src) & (rows["dst"] == dst)
        return claims

    def _vm_types(self, region: str) -> Mapping[str, str]:
        """Return the VM type to assume in a region: stated, or named by most samples."""
        if region in self._chosen or region.partition(":")[0] in self._chosen:
            return self._chosen
        voted = vm_type_of(region, self._votes, self.catalogue)
        return {region: voted} if voted else self._chosen


def _median(values: Floats) -> float | None:
    return float(np.median(values)) if len(values) else None


def _fill(rtts: EstimateArrays, pairs: tuple[Ints, Ints], origins: Origins) -> None:
    """Fill in the round-trip times of links that were measured and are between no known places."""
    missing = np.isnan(rtts.expected[pairs])
    places = tuple(ends[missing] for ends in pairs)
    one = EstimateArrays.of([RTT_OF_NO_PLACE], origins)
    rtts.put(places, one.take(np.zeros(missing.sum(), np.int64)))
