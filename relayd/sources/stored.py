"""What is known now: the newest snapshot of the store, else the baseline."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from planner.model.baseline import (
    baseline_link,
    baseline_network,
    baseline_site,
    baseline_sites,
    baseline_snapshot,
)
from planner.model.catalogue import Catalogue
from planner.model.estimate import Estimate, Figures, Kind, Origin
from planner.model.network import Link, Network, Site, Snapshot
from relayd.store.location import Place
from relayd.store.opening import Store, default_path, open_if_there, open_store
from relayd.store.snapshots import EstimateRow, LinkRow, SiteRow, SnapshotRow
from relayd.times import utc_text

if TYPE_CHECKING:
    from planner.model.link_states import LinkState
    from planner.model.verification import Verified


class Knowledge:
    """Reads graphs from a store, as much of them as a question needs.

    Parameters
    ----------
    catalogue : Catalogue
    db : Place | None
        A store that must exist; None for the per-user store, which need not.
    """

    def __init__(self, catalogue: Catalogue, db: Place | None) -> None:
        self._catalogue = catalogue
        self._named = db is not None
        self._place = db or default_path()
        self._store: Store | None = None
        self._latest: SnapshotRow | None = None
        self._sites: dict[str, Site] = {}
        self._snapshot: Snapshot | None = None
        self._states: Mapping[tuple[str, str], LinkState] | None = None
        self._verified: Mapping[tuple[str, str], Verified] | None = None

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot, or the baseline."""
        self._read()
        assert self._snapshot is not None
        return self._snapshot

    def regions(self) -> list[str]:
        """Return the ids of all regions of the graph."""
        self._read()
        return list(self._sites)

    def sites(self) -> dict[str, Site]:
        """Return the sites of the graph by region."""
        self._read()
        return self._sites

    def forget(self) -> None:
        """Read anew when next asked."""
        if self._store:
            self._store.close()
        self._store = self._latest = self._snapshot = self._states = None
        self._verified = None
        self._sites = {}

    def link_states(self, *, anew: bool = False) -> Mapping[tuple[str, str], LinkState]:
        """Return the links that are down or degraded, as they were when first asked."""
        self._read()
        if self._states is None or anew:
            self._states = {}
            # Usually there are none, and nothing more is loaded.
            if self._store and self._store.database.row("SELECT 1 FROM leg_states LIMIT 1"):
                from relayd.store.links.states import LinkStates

                self._states = LinkStates(self._store.database).now(time.time())
        return self._states

    def _verifications(self) -> Mapping[tuple[str, str], Verified]:
        """Return what runs of plans have shown, by pair of regions."""
        assert self._store is not None
        if self._verified is None:
            self._verified = {}
            # Usually there are none, and nothing more is loaded.
            if self._store.database.row("SELECT 1 FROM verifications LIMIT 1"):
                from relayd.store.verifications import Verifications

                self._verified = Verifications(self._store.database).by_pair()
        return self._verified

    def network(
        self, between: tuple[str, str] | None = None, further: Sequence[str] = ()
    ) -> Network:
        """Return the graph.

        Parameters
        ----------
        between : (src, dst), optional
            Only the links out of src and into dst: all that planning one transfer needs.
        further : sequence of str
            Regions of the catalogue to add that neither baseline nor store has.
        """
        self._read()
        if self._store is None or self._latest is None:
            wanted = dict.fromkeys((*(between or ()), *further))
            new = [name for name in wanted if name not in self._sites]
            return baseline_network(self._catalogue, ends=between, further=new)
        name = self._latest.id
        rows = (
            self._store.snapshots.links_between(name, *between)
            if between
            else self._store.snapshots.links(name)
        )
        links: dict[str, dict[str, Link]] = {region: {} for region in self._sites}
        for row in rows:
            links[row.src][row.dst] = _link(row)
        sites = dict(self._sites)
        self._add_missing(sites, links, between, further)
        return Network(sites, links, self.snapshot, verified=self._verifications())

    def _read(self) -> None:
        if self._snapshot is not None:
            return
        if self._named:
            self._store = open_store(self._place, mode="read")
        else:
            self._store = open_if_there(self._place)
        if self._store:
            self._latest = self._store.snapshots.latest()
        if self._store and self._latest:
            rows = self._store.snapshots.sites(self._latest.id)
            self._sites = {row.region: _site(row) for row in rows}
            self._snapshot = snapshot_of(self._latest)
        else:
            self._sites = baseline_sites(self._catalogue)
            self._snapshot = baseline_snapshot(self._catalogue)

    def _add_missing(
        self,
        sites: dict[str, Site],
        links: dict[str, dict[str, Link]],
        between: tuple[str, str] | None,
        further: Sequence[str],
    ) -> None:
        """Add baseline links of regions that came to the catalogue after the snapshot was made."""
        baseline = [r.id for r in self._catalogue.regions.values() if r.baseline]
        wanted = dict.fromkeys((*baseline, *(between or ()), *further))
        new = [name for name in wanted if name not in sites]
        for name in new:
            sites[name] = baseline_site(name, self._catalogue)
            links[name] = {}
        for name in new:
            for other in sites:
                for src, dst in ((name, other), (other, name)):
                    needed = between is None or src == between[0] or dst == between[1]
                    if src == dst or not needed or dst in links[src]:
                        continue
                    if link := baseline_link(sites[src], sites[dst], self._catalogue):
                        links[src][dst] = link


def snapshot_of(row: SnapshotRow) -> Snapshot:
    """Return a stored snapshot's name as plans carry it."""
    return Snapshot(row.id, utc_text(row.as_of_s), row.source)


def rows_of(network: Network) -> tuple[list[LinkRow], list[SiteRow]]:
    """Return a network as rows of the store."""
    links = [
        LinkRow(
            link.src,
            link.dst,
            _row(link.rtt_ms),
            _row(link.per_flow_mbps),
            _row(link.aggregate_gbps),
            link.loss_pct,
        )
        for link in network
    ]
    sites = [
        SiteRow(
            site.region,
            site.vm_type,
            _row(site.egress_gbps),
            _row(site.ingress_gbps),
            _row(site.window_mb),
        )
        for site in network.sites.values()
    ]
    return links, sites


def _row(e: Estimate) -> EstimateRow:
    return EstimateRow(e.low, e.expected, e.high, e.source, e.measured_at_s, e.samples, e.basis)


def estimate_of(row: EstimateRow) -> Estimate:
    """Return an estimate that was saved."""
    kind: Kind = row.source  # type: ignore[assignment]
    figures = Figures(note=row.basis) if row.basis else None
    origin = Origin(kind, "unknown", row.samples, newest_s=row.measured_at_s, figures=figures)
    return Estimate(row.low, row.expected, row.high, origin)


def _link(row: LinkRow) -> Link:
    return Link(
        row.src,
        row.dst,
        estimate_of(row.rtt_ms),
        estimate_of(row.per_flow_mbps),
        estimate_of(row.aggregate_gbps),
        row.loss_pct,
    )


def _site(row: SiteRow) -> Site:
    return Site(
        row.region,
        row.vm_type,
        estimate_of(row.egress_gbps),
        estimate_of(row.ingress_gbps),
        estimate_of(row.window_mb),
    )
