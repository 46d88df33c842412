"""Networks from a store: its newest snapshot, else the baseline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import time as clock
from typing import Any

from planner.model.baseline.modelled_links import baseline_network, baseline_regions, with_regions
from planner.model.catalogue import Catalogue
from planner.model.errors import InputError, RelaydError
from planner.model.link_states import LinkState, Pair
from planner.model.network import Network, NewerSamples, Snapshot
from planner.model.units import parse_duration_s
from probes.fleet.file import FleetSite, fleet_sites, load_fleet, with_fleet
from relayd.questions.holds import Holds, holds_of
from relayd.sources.wan import Wan
from relayd.store.events import this_user
from relayd.store.links import LinkStates
from relayd.store.location import Location, default_path
from relayd.store.opening import Store, open_if_there, open_store
from relayd.store.snapshots import SnapshotRow
from relayd.store.verifications import Verifications
from relayd.times import seconds_of, utc_text
from relayd.transfers.register import TransferRegister, achieved_shares
from relayd.transfers.reporting import Tell


class StoredWan(Wan):
    """A network in a store: its newest snapshot, else the baseline.

    It opens the store when first asked; its connection is for the thread that did.

    Parameters
    ----------
    catalogue : Catalogue
    db : Location, str or None
        A store that must exist, or its name as a user wrote it; None for the per-user store,
        which need not.
    fleet : Path, optional
        Fleet file whose VMs stand at their regions' sites, as do those of the catalogue's pools.
    """

    def __init__(
        self, catalogue: Catalogue, db: Location | str | None, fleet: Path | None = None
    ) -> None:
        self.catalogue = catalogue
        self._fleet_file = fleet
        self._fleet: Mapping[str, FleetSite] = {}
        self._location = db
        self._store: Store | None = None
        self._is_read = False

    def at(self, snapshot: str) -> Wan:
        self.as_read()
        if self._store is None:
            problem = "can't be looked up: there is no store yet"
            remedy = "`relayd import` and `relayd probe` make one."
            raise InputError("snapshot", problem, value=snapshot, remedy=remedy)
        row = snapshot_named(self._store, snapshot, clock())
        network = stored_network(self._store, row.id)
        return Wan(self.catalogue, with_fleet(network, self.catalogue, self._fleet))

    def _teller(self) -> Tell:
        names = Wan(self.catalogue, self.as_read())
        names._cache = self._current_cache()

        def told(call: Callable[[Any], Any]) -> Any:  # in a thread with a connection of its own
            with open_store(self._location or default_path(), mode="create") as store:
                return call(TransferRegister(store.database, names, this_user()))

        return lambda call: asyncio.to_thread(told, call)

    def link_states(self) -> Mapping[Pair, LinkState]:
        self.as_read()
        return self._states

    def refresh_link_states(self) -> Mapping[Pair, LinkState]:
        self.as_read()
        self._states = _states_now(self._store)
        return self._states

    def holds(self) -> Holds:
        self.as_read()
        if self._store and self._store.database.last_id("events") != (*self._holds.version, -1)[0]:
            self._holds = holds_of(self._store.database, clock())
        return super().holds()

    def close(self) -> None:
        if self._store:
            self._store.close()
        self._store, self._is_read = None, False

    def as_read(self) -> Network:
        if self._is_read:
            return self._network
        named, catalogue = self._location, self.catalogue
        self._store = store = (
            open_store(named, mode="read") if named else open_if_there(default_path())
        )
        row = store.snapshots.latest() if store else None
        stored = store.snapshots.network(row.id) if store and row else None
        known = stored.sites if stored else {}
        pools = {region: FleetSite(*pool) for region, pool in catalogue.pools.items()}
        fleet = fleet_sites(load_fleet(self._fleet_file), catalogue) if self._fleet_file else {}
        self._fleet = {
            region: vms
            for region, vms in {**pools, **fleet}.items()
            if region in known or region in catalogue.regions
        }
        regions = (*baseline_regions(catalogue), *self._fleet)
        if stored:
            # The catalogue alone says of which private network a site is.
            sites = {
                name: replace(site, private_network=catalogue.region(name).private_network or "")
                for name, site in known.items()
            }
            # Regions that came to the catalogue after the snapshot was made.
            network = with_regions(stored.with_(sites=sites), catalogue, regions)
        else:
            network = baseline_network(catalogue, further=regions)
        self._states = _states_now(store)
        self._network = with_fleet(network, catalogue, self._fleet).with_(
            link_states=self._states,
            verified=Verifications(store.database).by_pair() if store else {},
            achieved=achieved_shares(store.database) if store else (),
            newer_samples=newer_than(store, row) if store else None,
        )
        self._is_read = True
        return self._network


def _states_now(store: Store | None) -> Mapping[Pair, LinkState]:
    return LinkStates(store.database).now(clock()) if store else {}


def newer_than(store: Store, snapshot: SnapshotRow | None) -> NewerSamples | None:
    """Return the samples of a store that its newest snapshot does not know."""
    made = (snapshot.samples_through, snapshot.created_at_s) if snapshot else (0, 0.0)
    return store.samples.newer(*made, clock())


def stored_network(store: Store, snapshot_id: str) -> Network:
    """Return the network of any snapshot that is kept, with bounds as wide as when it was made.

    Raises
    ------
    InputError
        If there is none of that name, or it was pruned.
    """
    row = store.snapshots.get(snapshot_id)
    made = store.snapshots.network(row.id).with_(aged_to_s=row.created_at_s)
    return replace(made, aged_to_s=clock())  # and not widened for what has passed since


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
