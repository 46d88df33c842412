"""Makes a new snapshot from the samples of a store."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from heapq import merge
from itertools import chain, groupby
from typing import NamedTuple

from planner.model.catalogue import Catalogue
from planner.model.columns.table import LinkArrays
from planner.model.errors import RelaydError
from planner.model.network import Network, Snapshot
from probes.estimation import THROUGHPUT, Estimator
from probes.estimation.current_samples import LinkShift, add_current
from probes.estimation.estimator import Dispute, Estimates
from probes.importers.physics import PhysicalGate
from probes.samples import OWN, Reported, Sample
from relayd.snapshots.gathering import FaultySeries, Gathered, gathered
from relayd.sources.stored import snapshot_of
from relayd.store import SnapshotRow, Store
from relayd.store.events import Events
from relayd.store.metadata import Metadata
from relayd.store.samples.decisions import HEEDED, Decision, all_heeded, last_decision
from relayd.store.samples.retention import vm_votes
from relayd.store.samples.series_states import SeriesStates
from relayd.store.samples.waiting import BEGUN, FAILED

_MOST_TOLD = 10
"""Series that were left out, in an event."""


def make_snapshot(
    store: Store,
    catalogue: Catalogue,
    *,
    on_shift: Callable[[LinkShift], None] = lambda _: None,
    on_left_out: Callable[[FaultySeries], None] = lambda _: None,
    anew: bool = False,
) -> Snapshot | None:
    """Estimate all links from the store's samples and save the graph.

    Returns None where there are no samples. If nothing has changed since the latest snapshot,
    that one is returned.

    Parameters
    ----------
    on_shift : callable
        Called with every change of level that is found on the way.
    on_left_out : callable
        Called with every series that could not be evaluated: the snapshot is made without it, and
        the next one tries again.
    anew : bool
        Make one from all samples, whatever is there.
    """
    samples_through = store.samples.last_id()
    if not samples_through:
        return None
    metadata, decisions_through = Metadata(store.database), last_decision(store.database)
    latest = store.snapshots.latest()
    if (
        latest
        and not anew
        and latest.samples_through == samples_through
        and all_heeded(store.database)
        and latest.catalogue_digest == catalogue.digest
    ):
        return snapshot_of(latest)
    metadata.set(BEGUN, time.time())
    try:
        found = gathered(store, catalogue, through=samples_through, anew=anew)
        for shift in found.shifts:
            on_shift(shift)
        for left_out in found.left_out:
            on_left_out(left_out)
        return _made(store, catalogue, found, decisions_through)
    except Exception:
        with suppress(RelaydError):  # the first error counts
            metadata.set(FAILED, time.time())
        raise


def _made(store: Store, catalogue: Catalogue, found: Gathered, decisions_through: int) -> Snapshot:
    samples_through = found.head.through
    estimator, estimates = found.estimator, _estimates(store, found.estimator)
    created_at_s = time.time()
    as_of_s = estimator.newest_s or created_at_s
    content = f"{samples_through} {decisions_through} {catalogue.digest} {created_at_s}"
    number = blake2b(content.encode(), digest_size=3).hexdigest()
    row = SnapshotRow(
        f"{time.strftime('%Y%m%d', time.gmtime(created_at_s))}-{number}",
        as_of_s,
        created_at_s,
        _source(estimates.links),
        catalogue.digest,
        samples_through,
    )
    saved = snapshot_of(row)
    event: dict[str, object] = {"as_of": saved.as_of, "source": saved.source}
    if found.impossible:
        event["impossible"] = found.impossible
    if found.left_out:
        event["left_out"] = [str(one) for one in found.left_out[:_MOST_TOLD]]
    # Before the snapshot: after a crash in between, the next attempt finds the same again.
    if unconfirmed := [one for one in estimator.disputes() if one.counts]:
        with store.database.transaction():
            for dispute in unconfirmed:
                _note_unconfirmed(Events(store.database), dispute)
    sites = list(estimates.sites.values())
    store.snapshots.save(row, estimates.links, sites, estimates.others, event)
    if decisions_through:  # after it: what is not noted yet is heeded once more
        with store.database.transaction():
            Metadata(store.database).set(HEEDED, decisions_through)
    SeriesStates(store.database).save(found.states, found.head, found.instead_of)
    return saved


def _note_unconfirmed(events: Events, shift: Dispute) -> None:
    """Record a new level that several sources report and the own prober has not found, once."""
    subject = f"{shift.src}>{shift.dst}"
    known = events.last("unconfirmed", subject)
    told = {"metric": shift.metric, "address": shift.address, "sources": list(shift.sources)}
    if known is None or any(known.detail.get(name) != value for name, value in told.items()):
        events.add("unconfirmed", subject, {**told, "level": shift.value})


class Estimation(NamedTuple):
    """What the samples of a store give.

    Attributes
    ----------
    estimator : Estimator
    network : Network
    impossible : int
        Samples that can't be measurements, stored before that was looked at: nothing rests on them.
    """

    estimator: Estimator
    network: Network
    impossible: int


def estimated(
    store: Store,
    catalogue: Catalogue,
    *,
    through: int,
    change: tuple[Decision, Collection[int]] | None = None,
    accepted: Sequence[Sample] = (),
) -> Estimation:
    """Estimate all links from all of the store's samples.

    Parameters
    ----------
    through : int
        Only samples with this id or a lower one.
    change : (decision, ids of samples), optional
        As if that had been decided about these samples.
    accepted : sequence of Sample, optional
        As if these, which are in quarantine, had been accepted.
    """
    estimator, gate, impossible = Estimator(catalogue), PhysicalGate(catalogue), 0

    def possible() -> Iterator[Reported]:
        nonlocal impossible
        rows = store.samples.reported(through=through, change=change)
        for row in _with_accepted(rows, accepted, through) if accepted else rows:
            if row.vouched or gate.fault(row.sample, row.arrived_at_s) is None:
                yield row
            else:
                impossible += 1

    add_current(estimator, possible())
    network = _estimates(store, estimator).network(Snapshot("", "", ""))
    return Estimation(estimator, network, impossible)


def _with_accepted(
    rows: Iterable[Reported], accepted: Sequence[Sample], through: int
) -> Iterator[Reported]:
    """Yield samples by series, each the oldest first, and in their places those accepted."""
    left: defaultdict[tuple[str, str, str], list[Reported]] = defaultdict(list)
    for number, sample in enumerate(sorted(accepted, key=lambda s: s.measured_at_s), through + 1):
        left[sample[:3]].append(Reported(sample, OWN, number, vouched=True))
    for series, group in groupby(rows, lambda row: row.sample[:3]):
        yield from merge(group, left.pop(series, ()), key=lambda row: row.sample.measured_at_s)
    yield from chain.from_iterable(left.values())


def _estimates(store: Store, estimator: Estimator) -> Estimates:
    """Return what the samples that an estimator has say; what was summarised votes, too."""
    for metric, src, dst, src_vm, dst_vm, count, source in vm_votes(store):
        if metric in THROUGHPUT:
            estimator.add_votes(src, dst, src_vm, dst_vm, count, source)
    return estimator.estimates()


def _source(links: LinkArrays) -> str:
    """Return ``measured`` if every aggregate was, else ``mixed``."""
    kinds = {origin.kind for origin in links.origins_of("aggregate_gbps")}
    return "measured" if kinds <= {"measured"} else "mixed"
