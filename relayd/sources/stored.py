"""Networks from a store: its newest snapshot, else the baseline."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from planner.exploring.outcome import Outcome
from planner.model.baseline.graph import baseline_regions
from planner.model.baseline.modelled_links import baseline_network, with_regions
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError, RelaydError
from planner.model.link import Site
from planner.model.link_states import LinkState, Pair
from planner.model.network import Network, NewerSamples, Snapshot
from planner.model.units import parse_duration_s
from probes.fleet.file import load_fleet
from probes.fleet.sites import FleetSite, fleet_sites, with_fleet
from relayd.sources.memory import Source
from relayd.store.links import LinkStates
from relayd.store.location import Location, default_path
from relayd.store.opening import Store, open_if_there, open_store
from relayd.store.snapshots import SnapshotRow
from relayd.store.verifications import Verifications
from relayd.times import seconds_of, utc_text
from relayd.transfers.register import outcomes_of


class StoreSource(Source):
    """Reads networks from a store, as much of them as a question needs.

    It opens the store when first asked.

    Parameters
    ----------
    catalogue : Catalogue
    db : Location, str or None
        A store that must exist, or its name as a user wrote it; None for the per-user store,
        which need not.
    fleet : Path, optional
        Fleet file whose VMs stand at their regions' sites.
    """

    def __init__(
        self, catalogue: Catalogue, db: Location | str | None, fleet: Path | None = None
    ) -> None:
        self.catalogue = catalogue
        self._fleet = fleet
        self._location = db
        self._opened: _Opened | None = None

    @property
    def version(self) -> object:
        return self._open()

    @property
    def snapshot(self) -> Snapshot:
        return self._open().network.snapshot

    def sites(self) -> Mapping[str, Site]:
        return self._open().network.sites

    def network(self) -> Network:
        opened = self._open()
        return opened.network.with_(link_states=opened.states)

    def earlier(self, snapshot: str) -> Network:
        opened = self._open()
        if opened.store is None:
            raise InputError(
                "snapshot",
                "can't be looked up: there is no store yet",
                value=snapshot,
                remedy="`relayd import` and `relayd probe` make one.",
            )
        row = snapshot_named(opened.store, snapshot, time.time())
        return with_fleet(stored_network(opened.store, row.id), self.catalogue, opened.fleet)

    def outcomes(self, src: str, dst: str) -> Sequence[Outcome]:
        store = self._open().store
        return () if store is None else outcomes_of(store.database, src, dst)

    def link_states(self) -> Mapping[Pair, LinkState]:
        return self._open().states

    def refresh_link_states(self) -> None:
        self._open().read_states()

    def close(self) -> None:
        if self._opened and self._opened.store:
            self._opened.store.close()
        self._opened = None

    def _open(self) -> _Opened:
        if self._opened is None:
            named = self._location
            store = open_store(named, mode="read") if named else open_if_there(default_path())
            fleet = fleet_sites(load_fleet(self._fleet), self.catalogue) if self._fleet else {}
            self._opened = _Opened(store, self.catalogue, fleet)
        return self._opened


class _Opened:
    """An open store with what was read of its newest snapshot."""

    def __init__(
        self, store: Store | None, catalogue: Catalogue, fleet: Mapping[str, FleetSite]
    ) -> None:
        self.store = store
        row = store.snapshots.latest() if store else None
        stored = store.snapshots.network(row.id) if store and row else None
        known = stored.sites if stored else {}
        self.fleet = {
            region: vms
            for region, vms in fleet.items()
            if region in known or region in catalogue.regions
        }
        regions = (*baseline_regions(catalogue), *self.fleet)
        if stored:
            # The catalogue alone says of which private network a site is.
            named = {name: catalogue.region(name).private_network or "" for name in known}
            sites = {name: replace(known[name], private_network=named[name]) for name in known}
            # Regions that came to the catalogue after the snapshot was made.
            network = with_regions(stored.with_(sites=sites), catalogue, regions)
        else:
            network = baseline_network(catalogue, further=regions)
        self.network = with_fleet(network, catalogue, self.fleet).with_(
            verified=Verifications(store.database).by_pair() if store else {},
            newer_samples=newer_than(store, row) if store else None,
        )
        self.read_states()

    def read_states(self) -> None:
        """Read which links are down or degraded."""
        self.states: Mapping[Pair, LinkState] = (
            LinkStates(self.store.database).now(time.time()) if self.store else {}
        )


def newer_than(store: Store, snapshot: SnapshotRow | None) -> NewerSamples | None:
    """Return the samples of a store that its newest snapshot does not know."""
    made = (snapshot.samples_through, snapshot.created_at_s) if snapshot else (0, 0.0)
    return store.samples.newer(*made, time.time())


def stored_network(store: Store, snapshot_id: str) -> Network:
    """Return the network of any snapshot that is kept, with bounds as wide as when it was made.

    Raises
    ------
    InputError
        If there is none of that name, or it was pruned.
    """
    row = store.snapshots.get(snapshot_id)
    made = store.snapshots.network(row.id).with_(aged_to_s=row.created_at_s)
    return replace(made, aged_to_s=time.time())  # and not widened for what has passed since


def snapshot_named(store: Store, name: str, now_s: float) -> SnapshotRow:
    """Return a snapshot by its id, or the newest that was made before a time or so long ago.

    Raises
    ------
    InputError
        If there is none.
    """
    at_s = None
    for read in (seconds_of, lambda text: now_s - parse_duration_s(text)):
        with suppress(ValueError, RelaydError):
            at_s = read(name)
            break
    if at_s is None:
        return store.snapshots.get(name)
    found = store.snapshots.current_at(at_s)
    if found is None:
        oldest, kept = store.snapshots.oldest(), "none is kept"
        if oldest:
            kept = f"the oldest that is kept was made at {utc_text(oldest.created_at_s)}"
        remedy = "Give a later time, or leave it out."
        raise InputError("snapshot", f"is older than all: {kept}", value=name, remedy=remedy)
    return found


def snapshot_of(row: SnapshotRow) -> Snapshot:
    """Return a stored snapshot's name as plans carry it."""
    return Snapshot(row.id, utc_text(row.as_of_s), row.source)
