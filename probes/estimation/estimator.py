"""Estimates all links and VMs from samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from planner.model.baseline.modelled_links import baseline_site
from planner.model.catalogue import DEFAULT_NETWORK, Catalogue
from planner.model.estimate import AddressKind
from planner.model.link import Site
from planner.model.link_array import LinkArray, Origins
from planner.model.network import Network, Snapshot
from probes.estimation.current_samples import CurrentSamples, current_samples
from probes.estimation.estimates import EstimateArray, are_known, are_of
from probes.estimation.groups import Bools, Groups
from probes.estimation.link_samples import LinkSamples
from probes.estimation.links import caps_joined, joined, links_of, with_caps_of
from probes.estimation.measurements import aggregate_tests, measured_flows, round_trips_ms
from probes.estimation.sites import with_buckets, with_bursts, with_caps, with_lasting, with_windows
from probes.estimation.vm_types import plain_name, unknown_types, usual_types, voted_types, votes_of
from probes.metrics import NAMES, Metric
from probes.samples import OWN, NameTable, Samples

_OTHER = "{what}, which is not the VM type in use there, and do not count"
_UNKNOWN = (
    "{what}, which the catalogue does not have: they count where nothing else was measured, with "
    "caps and price of the VM type in use; a [[vm_type]] in a catalogue file of your own names it"
)


class Dispute(NamedTuple):
    """Samples that contradict others, or a new level that the own prober has not found yet."""

    src: str
    dst: str
    metric: Metric
    address: AddressKind
    sources: tuple[str, ...]  # their reporters
    samples: int  # number of those that contradict
    of: int  # number of those that are recent
    value: float  # their median
    level: float | None  # the median of the samples that count; None without any
    counts: bool  # whether these samples count, because several sources agree


class _OfKind(NamedTuple):
    """Sites and links over one kind of address, and the samples that they rest on."""

    sites: dict[str, Site]
    links: LinkArray
    samples: LinkSamples


class Estimator:
    """Estimates all links and VMs from samples at once.

    Parameters
    ----------
    samples : Samples
        All that were reported, in any order.
    catalogue : Catalogue
    chosen : mapping, optional
        Region or provider to VM type. Without it, a region's VM type is the one that most of
        its throughput samples that still count name, else the catalogue's default.
    stated_gbps : mapping, optional
        Region to the egress and ingress cap of its VM where it differs from its type's; None where
        not. They hold until caps are measured.
    kept : CurrentSamples, optional
        Samples of further series that still count, as an earlier estimator had them.

    Attributes
    ----------
    sites : dict
        Region id to site.
    links, others : LinkArray
        Those in use; and those over the other kind of address, where both are known.
    newest_s : float
        Time of the newest sample that counts, seconds since 1970; 0 where there is none.
    current : CurrentSamples
        Those that still count, with every change of level that was found.
    """

    def __init__(
        self,
        samples: Samples,
        catalogue: Catalogue,
        chosen: Mapping[str, str] = {},
        stated_gbps: Mapping[str, tuple[float | None, float | None]] = {},
        kept: CurrentSamples | None = None,
    ) -> None:
        self.catalogue, self._chosen, self._stated_gbps = catalogue, chosen, stated_gbps
        regions = [region.id for region in catalogue.regions.values() if region.baseline]
        used = samples.regions() | (kept.samples.regions() if kept else set())
        self._regions = [*regions, *sorted(used.difference(regions))]
        names = NameTable(self._regions)
        current = current_samples(samples.with_names(names))
        if kept:
            kept = kept._replace(samples=kept.samples.with_names(names))
            current = kept.updated(current)
        self.current, self._votes = current, votes_of(current.samples)
        self._voted = voted_types(self._votes, catalogue)
        self._usual_types = usual_types(self._voted)
        self.newest_s = float(current.samples.rows["measured_at_s"].max(initial=0.0))
        self._over_public, self._over_private = current.over("public"), current.over("private")
        self._of_kind = self._estimated()
        public, *private = self._of_kind
        self.sites, self.links, self.others = public.sites, public.links, LinkArray()
        for over_private in private:
            self.sites = caps_joined(public.sites, over_private.sites)
            self.links, self.others = joined(public.links, over_private.links)

    def network(self, snapshot: Snapshot) -> Network:
        """Return the graph of all catalogue regions and all measured ones."""
        return Network(self.sites, self.links, snapshot, others=self.others)

    def _estimated(self) -> list[_OfKind]:
        """Return estimates over public addresses, and over private ones where these have samples.

        The former are of all catalogue regions and all measured ones.
        """
        typed = {
            name: baseline_site(name, self.catalogue, self._vm_types(name))
            for name in self._regions
        }
        origins = Origins()
        public = LinkSamples(self._over_public, typed, self.catalogue, "public", origins)
        between = round_trips_ms(public)
        over_public = self._estimated_over(typed, public, between)
        current = self._over_private.where(~self._are_claims)
        if not len(current.samples):
            return [over_public]
        rows = current.samples.rows
        places = np.union1d(rows["src"], rows["dst"]).astype(np.int64) - 1
        sites = over_public.sites
        ends = {name: sites[name] for name in (self._regions[place] for place in places.tolist())}
        current = current._replace(samples=current.samples.with_names(NameTable(ends)))
        over = with_caps_of(ends, "private")
        private = LinkSamples(current, over, self.catalogue, "private", origins)
        rtts = between[np.ix_(places, places)]
        own = round_trips_ms(private)
        better = are_known(own)
        better &= ~are_of("baseline", origins, own["origin"]) | ~are_known(rtts)
        rtts[better] = own[better]
        parts = np.array([self.catalogue.region(name).partition for name in ends])
        rtts["expected"][~(private.pairs() | (parts[:, None] == parts))] = np.nan
        return [over_public, self._estimated_over(over, private, rtts)]

    def _estimated_over(
        self, typed: Mapping[str, Site], samples: LinkSamples, rtts: EstimateArray
    ) -> _OfKind:
        """Return sites and links over one kind of address, from samples of that kind."""
        samples = samples.with_rtts_ms(rtts["expected"])
        lasting, typed = typed, with_bursts(typed, self.catalogue)
        flows, tests = measured_flows(samples), aggregate_tests(samples)
        sites = with_caps(typed, samples, tests, self._stated_gbps)
        sites = with_windows(sites, samples, tests)
        links = links_of(sites, typed, samples, rtts, flows, tests)
        # Last: laws and limits of links follow from short tests.
        sites = with_buckets(sites, samples, tests.fallen)
        return _OfKind(with_lasting(sites, lasting, self.catalogue), links, samples)

    def disputes(self) -> list[Dispute]:
        """Return samples that contradict others and do not count, and unconfirmed new levels."""
        found = []
        of_metrics = [
            (of_kind.samples, NAMES[number])
            for of_kind in self._of_kind
            for number in np.unique(of_kind.samples.samples.rows["metric"]).tolist()
        ]
        for samples, metric in of_metrics:
            for (src, dst), judged in samples.counted(metric).judged.items():
                key = samples.names[src], samples.names[dst], metric, samples.address
                count, by = len(judged.rows), judged.reported_by
                level = float(np.median(judged.rows["value"])) if count else None
                for source, rows, of in judged.disputed:
                    middle = float(np.median(rows["value"]))
                    this = len(rows), of, middle, level
                    found.append(Dispute(*key, (source,), *this, counts=False))
                if judged.is_shift and level is not None:
                    found.append(Dispute(*key, by, count, count, level, level, counts=True))
        found += self._claimed_alone()
        return sorted(found, key=lambda one: one[:6])

    def other_vm_types(self) -> list[str]:
        """Say of which VM types throughput samples are that do not count, or not as of their VMs.

        One sentence for each region and type, those of most samples first.
        """
        found, names = [], self.current.samples.names
        unlisted = frozenset(unknown_types(names, self.catalogue))
        for region, of_region in self._votes.items():
            used = plain_name(self.sites[region].vm_type)
            counts: Counter[str] = Counter()
            for of_source in of_region.values():
                counts.update(of_source)
            unknown = unlisted.intersection(counts)
            for name, count in counts.items():
                if name and plain_name(name) != used:
                    what = f"{count:,} throughput samples at {region} were taken with {name}"
                    found.append((-count, what, _UNKNOWN if name in unknown else _OTHER))
        return [why.format(what=what) for _, what, why in sorted(found)]

    def _claimed_alone(self) -> list[Dispute]:
        """Return samples that do not count because one source alone says that they are private."""
        samples, found = self._over_private.where(self._are_claims).samples, []
        rows, names = samples.rows, list(samples.names)
        for part in Groups.of(*(rows[one] for one in ("src", "dst", "metric", "source"))):
            key, count = samples[int(part.start)][:3], part.stop - part.start
            by, value = names[rows["source"][part.start]], float(np.median(rows["value"][part]))
            found.append(Dispute(*key, "private", (by,), count, count, value, None, counts=False))
        return found

    @cached_property
    def _are_claims(self) -> Bools:
        """Mask of samples over private addresses that one source alone has reported of their link.

        These are only links that others reported over public ones: such samples would replace the
        measurements of the others. Between ends that share a private network in the catalogue that
        is no assumption, no confirmation is needed.
        """
        rows = self._over_private.samples.rows
        claims = np.zeros(len(rows), np.bool_)
        over_public = self._over_public.reporters() if len(rows) else {}
        for (src, dst), by in self._over_private.reporters().items():
            if len(by) != 1 or OWN in by or not over_public.get((src, dst), by) - by:
                continue
            network, other = (
                self.catalogue.region(self._regions[end - 1]).private_network for end in (src, dst)
            )
            if network in {"", DEFAULT_NETWORK} or network != other:
                claims |= (rows["src"] == src) & (rows["dst"] == dst)
        return claims

    def _vm_types(self, region: str) -> Mapping[str, str]:
        """Return the VM type to assume in a region: stated, or named by most samples."""
        if region in self._chosen or region.partition(":")[0] in self._chosen:
            return self._chosen
        voted = self._voted.get(region)
        return {region: voted} if voted else {**self._usual_types, **self._chosen}
