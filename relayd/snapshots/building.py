"""Makes a new snapshot from the samples of a store."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from planner.model.catalogue import Catalogue
from planner.model.errors import RelaydError
from planner.model.network import Network, Snapshot
from probes.estimation import Estimator
from probes.estimation.current_samples import CurrentSamples, LinkShift, SeriesError
from probes.estimation.estimator import Dispute
from probes.importers.limits import PhysicalGate
from probes.samples import Sample, Samples
from relayd.sources.stored import snapshot_of
from relayd.store import SnapshotRow, Store
from relayd.store.events import Events
from relayd.store.samples.decisions import HEEDED, all_heeded, last_decision
from relayd.store.samples.reading import BEGUN, FAILED, Decision

LOG = logging.getLogger(__name__)
MOST_NAMED = 20
"""Series that were left out, in an event."""


def make_snapshot(
    store: Store,
    catalogue: Catalogue,
    *,
    on_shift: Callable[[LinkShift], None] = lambda _: None,
    always: bool = False,
) -> Snapshot | None:
    """Estimate all links from the store's samples and save the graph.

    Series without new samples are not read again: what counts of them is kept with the latest
    snapshot. `on_shift` is called with every change of level that is found on the way. Returns None
    where there are no samples, and the latest snapshot if nothing has changed since; with `always`
    it makes one all the same, from all samples.
    """
    samples_through = store.samples.last_id()
    if not samples_through:
        return None
    database, decisions_through = store.database, last_decision(store.database)
    latest = store.snapshots.latest()
    if (
        latest
        and not always
        and latest.samples_through == samples_through
        and all_heeded(store.database)
        and latest.catalogue_digest == catalogue.digest
    ):
        return snapshot_of(latest)
    database.set_metadata(BEGUN, time.time())
    try:
        found = estimated(store, catalogue, through=samples_through, whole=always)
        estimator = found.estimator
        for shift in estimator.current.shifts:
            on_shift(shift)
        created_at_s = time.time()
        content = f"{samples_through} {decisions_through} {catalogue.digest} {created_at_s}"
        number = blake2b(content.encode(), digest_size=3).hexdigest()
        kinds = {origin.kind for origin in estimator.links.origins_of("aggregate_gbps")}
        row = SnapshotRow(
            f"{time.strftime('%Y%m%d', time.gmtime(created_at_s))}-{number}",
            estimator.newest_s or created_at_s,
            created_at_s,
            "measured" if kinds <= {"measured"} else "mixed",
            catalogue.digest,
            samples_through,
        )
        saved = snapshot_of(row)
        faults = {
            "impossible": found.impossible,
            "vm_types": estimator.other_vm_types()[:MOST_NAMED],
            "left_out": found.left_out[:MOST_NAMED],
        }
        event: dict[str, object] = {"as_of": saved.as_of, "source": saved.source}
        event |= {name: fault for name, fault in faults.items() if fault}
        # Before the snapshot: after a crash in between, the next attempt finds the same again.
        if unconfirmed := [one for one in estimator.disputes() if one.counts]:
            with database.transaction():
                _note_unconfirmed(Events(database), unconfirmed)
        # What has faults is looked at again, whole, the next time.
        current = None if found.impossible or found.left_out else estimator.current
        store.snapshots.save(row, estimator.network(saved), event, current)
        if decisions_through:  # after it: what is not noted yet is heeded once more
            database.set_metadata(HEEDED, decisions_through)
        return saved
    except Exception:
        with suppress(RelaydError):  # the first error counts
            database.set_metadata(FAILED, time.time())
        raise


def _note_unconfirmed(events: Events, disputes: Sequence[Dispute]) -> None:
    """Record new levels that several sources report and the own prober has not found, once."""
    for shift in disputes:
        subject = f"{shift.src}>{shift.dst}"
        known = events.last("unconfirmed", subject)
        told = {"metric": shift.metric, "address": shift.address, "sources": list(shift.sources)}
        if known is None or any(known.detail.get(name) != value for name, value in told.items()):
            events.add("unconfirmed", subject, {**told, "level": shift.value})


def vm_type_notes(store: Store, snapshot_id: str) -> list[str]:
    """Return a snapshot's notes on samples of other VM types than those in use."""
    event = Events(store.database).last("snapshot", snapshot_id)
    return list(event.detail.get("vm_types", ())) if event else []


class Estimation(NamedTuple):
    """Estimates from the samples of a store.

    Nothing rests on samples that can't be measurements, stored before that was looked at, whose
    number is ``impossible``; nor on series that can't be evaluated, which are ``left_out``.
    """

    estimator: Estimator
    impossible: int
    left_out: list[str]

    @property
    def network(self) -> Network:
        """The graph of all links."""
        return self.estimator.network(Snapshot("", "", ""))


def estimated(
    store: Store,
    catalogue: Catalogue,
    *,
    through: int,
    chosen: Mapping[str, str] = {},
    stated_gbps: Mapping[str, tuple[float | None, float | None]] = {},
    change: tuple[Decision, Collection[int]] | None = None,
    accepted: Sequence[Sample] = (),
    whole: bool = False,
) -> Estimation:
    """Estimate all links from the store's samples with ids up to `through`.

    `chosen` and `stated_gbps` are VM types and their caps, see :class:`.Estimator`. `change` is a
    decision with the ids of samples, estimated as if it had been made; so are `accepted` samples of
    the quarantine. `whole` reads all series, also those without new samples since the latest
    snapshot.
    """
    kept, after = None, None
    if not (whole or change or accepted):
        kept, after = _kept(store, catalogue, through)
    samples = store.samples.read(through=through, after=after, change=change)
    # An operator may have said of some that they are right.
    possible = PhysicalGate(catalogue).are_possible(samples) | samples.rows["vouched"]
    impossible = len(samples) - int(possible.sum())
    samples = samples if possible.all() else samples[possible]
    if accepted:
        more = Samples.of(accepted)
        more.rows["id"] = np.arange(through + 1, through + 1 + len(more))
        samples = Samples.concat([samples, more])
    left_out: list[str] = []
    while True:
        try:
            estimator = Estimator(samples, catalogue, chosen, stated_gbps, kept)
        except SeriesError as error:
            LOG.warning("the snapshot leaves out %s", error)
            left_out.append(str(error))
            samples = samples[~error.concerns(samples)]
            kept = kept and kept.where(~error.concerns(kept.samples))
        else:
            return Estimation(estimator, impossible, left_out)


def _kept(
    store: Store, catalogue: Catalogue, through: int
) -> tuple[CurrentSamples | None, int | None]:
    """Return the samples that still count by the latest snapshot, and the last that it knew.

    None where they may not be what a look at all samples would find.
    """
    latest = store.snapshots.latest()
    if (
        latest is None
        or latest.samples_through > through
        or latest.catalogue_digest != catalogue.digest
        or not all_heeded(store.database)
        or (kept := store.snapshots.current_samples(latest.id)) is None
    ):
        return None, None
    return kept, latest.samples_through
