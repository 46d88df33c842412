"""Links that models say, made when asked for: of further regions, and with other VMs.

A network of measurements is extended by regions that nobody measured, or asked for as it would be
with VMs of another type. What models say is that of :mod:`planner.model.baseline.graph`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from planner.model.baseline.graph import baseline_link, baseline_site, link_by_models
from planner.model.catalogue import Catalogue
from planner.model.columns.rows import Ageing, Asked, Joined, LinkRow, Maker, maker_of
from planner.model.link import Expected, Link, Site
from planner.model.link_states import Pair
from planner.model.network import Links, Network
from planner.model.verification import Verified

MOST_EXPECTED_KEPT = 20_000


def with_regions(
    network: Network,
    catalogue: Catalogue,
    regions: Iterable[str],
    ends: tuple[str, str] | None = None,
) -> Network:
    """Return a network with the regions that it lacks, and their links, from models.

    Parameters
    ----------
    network : Network
    catalogue : Catalogue
    regions : iterable of str
    ends : (src, dst), optional
        Add only the links out of src and into dst: all that one transfer's plan needs.
    """
    new = [name for name in dict.fromkeys(regions) if name not in network.sites]
    if not new:
        return network
    sites = {**network.sites, **{name: baseline_site(name, catalogue) for name in new}}
    if ends is None:
        # With the catalogue, so that its identity stays taken.
        _, known = network.kept.setdefault(("modelled", id(catalogue)), (catalogue, {}))
        modelled = _with_models(network.usual, sites, new, catalogue, known)
        return network.with_(sites=sites, links=modelled)
    links = {src: dict(network.usual.get(src, {})) for src in sites}
    for name in new:
        for other in sites:
            for src, dst in ((name, other), (other, name)):
                needed = src == ends[0] or dst == ends[1]
                if src == dst or not needed or dst in links[src]:
                    continue
                if link := baseline_link(sites[src], sites[dst], catalogue):
                    links[src][dst] = link
    return network.with_(sites=sites, links=links)


def _with_models(
    links: Links,
    sites: Mapping[str, Site],
    new: Sequence[str],
    catalogue: Catalogue,
    known: dict[Hashable, Expected],
) -> Links:
    """Return links, and those into and out of new regions, made from models when asked for."""
    found: dict[str, Mapping[str, Link]] = {}
    to_new = dict.fromkeys(new)
    for src in sites:
        to = dict.fromkeys((*new[: new.index(src)], *sites)) if src in to_new else to_new
        modelled = Modelled(src, to, sites, catalogue, known)
        found[src] = LinkRow(Joined(maker_of(links[src]), modelled) if src in links else modelled)
    return found


class Modelled(Maker):
    """Makes the links from one region to others from models.

    Parameters
    ----------
    src : str
    to : mapping
        Whose keys are the others, in order; the region itself is left out.
    sites : mapping
        Of all of them.
    catalogue : Catalogue
    known : dict
        What is expected of links between such sites, as far as it was asked for: networks that
        have further regions of the same catalogue share it.
    """

    def __init__(
        self,
        src: str,
        to: Mapping[str, object],
        sites: Mapping[str, Site],
        catalogue: Catalogue,
        known: dict[Hashable, Expected],
    ) -> None:
        self._src, self._to, self._sites, self._catalogue = src, to, sites, catalogue
        self._known = known

    def names(self) -> Iterable[str]:
        """Return the others, but for those whose coordinates are not known."""
        if not self._has_place(self._src):
            return []
        return [dst for dst in self._to if dst != self._src and self._has_place(dst)]

    def make(self, dst: str) -> Link | None:
        """Return what models say of a link."""
        if dst == self._src or dst not in self._to:
            return None
        return baseline_link(self._sites[self._src], self._sites[dst], self._catalogue)

    def kind(self) -> Hashable:
        """Return this class, and where what was asked before is kept."""
        return Modelled, id(self._known)

    def expected_of(self, asked: Asked, aged: Sequence[Ageing] = ()) -> list[Expected | None]:
        """Return what models expect of links."""
        known, ages = self._known, tuple(aged)
        keys = [(maker._src, dst, ages) for maker, dst in asked]
        found = [known.get(key) for key in keys]
        new = [
            at for at, one in enumerate(found) if one is None and asked[at][1] in asked[at][0]._to
        ]
        made = super().expected_of([asked[at] for at in new], aged)
        if len(known) + len(new) > MOST_EXPECTED_KEPT:
            known.clear()
        for at, one in zip(new, made, strict=True):
            if one is not None:
                found[at] = known[keys[at]] = one
        return found

    def _has_place(self, name: str) -> bool:
        region = self._catalogue.regions.get(name)
        return region is not None and region.is_placed

    def may_be_private(self) -> bool:
        """Return False: without measurements, links are over public addresses."""
        return False

    def may_be_measured(self) -> bool:
        """Return False: models say what is not measured."""
        return False


def with_vm_types(network: Network, catalogue: Catalogue, chosen: Mapping[str, str]) -> Network:
    """Return a network as it would be with other VM types in some regions.

    Round-trip times stay; throughput of the links concerned comes from models, because what was
    measured was measured with other VMs.

    Parameters
    ----------
    network : Network
    catalogue : Catalogue
    chosen : mapping
        Region or provider to the id of a VM type.
    """
    sites = dict(network.sites)
    for name, site in network.sites.items():
        wanted = chosen.get(name) or chosen.get(name.partition(":")[0])
        if wanted and wanted != site.vm_type:
            sites[name] = replace(
                baseline_site(name, catalogue, chosen),
                vms=site.vms,
                private_network=site.private_network,
            )
    changed = {name for name in sites if sites[name] is not network.sites[name]}

    def of_vms(links: Links) -> Links:
        """Return links with those of changed VMs from models."""
        return {
            src: LinkRow(WithVms(src, maker_of(row), changed, sites, catalogue))
            for src, row in links.items()
        }

    return network.with_(
        sites=sites,
        links=of_vms(network.usual),
        others=of_vms(network.others),
        verified=_still_shown(network.verified, changed),
    )


class WithVms(Maker):
    """Makes the links from one region as they would be with other VMs in some regions.

    Parameters
    ----------
    src : str
    links : Maker
        As they are with the VMs of now.
    changed : set of str
        The regions with other VMs.
    sites : mapping
        Of all regions, with those VMs.
    catalogue : Catalogue
    """

    def __init__(
        self,
        src: str,
        links: Maker,
        changed: set[str],
        sites: Mapping[str, Site],
        catalogue: Catalogue,
    ) -> None:
        self._src, self._links, self._changed = src, links, changed
        self._sites, self._catalogue = sites, catalogue

    def names(self) -> Iterable[str]:
        """Return the same destinations."""
        return self._links.names()

    def make(self, dst: str) -> Link | None:
        """Return a link, from models where a VM at its ends is another one."""
        link = self._links.make(dst)
        if link is None or not self._changed.intersection((self._src, dst)):
            return link
        ends = self._sites[self._src], self._sites[dst]
        return link_by_models(*ends, link.rtt_ms, self._catalogue, link.address, link.loss_pct)

    def may_be_private(self) -> bool:
        """Ask for those with the VMs of now: addresses stay."""
        return self._links.may_be_private()


def _still_shown(verified: Mapping[Pair, Verified], changed: set[str]) -> dict[Pair, Verified]:
    """Return what runs of plans have shown that none of the changed VMs took part in."""
    return {
        pair: replace(
            found,
            paths=tuple(path for path in found.paths if not changed.intersection(path.regions)),
        )
        for pair, found in verified.items()
        if not changed.intersection(pair)
    }
