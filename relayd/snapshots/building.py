"""Makes a new snapshot from the samples of a store."""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import blake2b

from planner.model.catalogue import Catalogue
from planner.model.network import Network, Snapshot
from probes.estimation import THROUGHPUT, Estimator
from probes.estimation.current_samples import LinkShift, add_current
from relayd.sources.stored import snapshot_of
from relayd.store import SnapshotRow, Store
from relayd.store.events import Events
from relayd.store.samples.retention import vm_votes


def make_snapshot(
    store: Store, catalogue: Catalogue, *, on_shift: Callable[[LinkShift], None] = lambda _: None
) -> Snapshot | None:
    """Estimate all links from the store's samples and save the graph.

    Returns None where there are no samples. If nothing has changed since the latest snapshot,
    that one is returned.

    Parameters
    ----------
    on_shift : callable
        Called with every change of level that is found on the way.
    """
    samples_through = store.samples.last_id()
    if not samples_through:
        return None
    latest = store.snapshots.latest()
    if (
        latest
        and latest.samples_through == samples_through
        and latest.catalogue_digest == catalogue.digest
    ):
        return snapshot_of(latest)
    estimator = Estimator(catalogue)
    samples = store.samples.samples_for_estimates(through=samples_through)
    add_current(estimator, samples, on_shift)
    for metric, src, dst, src_vm, dst_vm, count in vm_votes(store):
        if metric in THROUGHPUT:
            estimator.add_votes(src, dst, src_vm, dst_vm, count)
    network = estimator.network(Snapshot("", "", ""))
    created_at_s = time.time()
    as_of_s = estimator.newest_s
    content = f"{samples_through} {catalogue.digest} {created_at_s}"
    number = blake2b(content.encode(), digest_size=3).hexdigest()
    row = SnapshotRow(
        f"{time.strftime('%Y%m%d', time.gmtime(created_at_s))}-{number}",
        as_of_s,
        created_at_s,
        _source(network),
        catalogue.digest,
        samples_through,
    )
    others = [link for of_source in network.others.values() for link in of_source.values()]
    saved = snapshot_of(
        store.snapshots.save(row, list(network), list(network.sites.values()), others)
    )
    Events(store.database).add("snapshot", saved.id, {"as_of": saved.as_of, "source": saved.source})
    return saved


def _source(network: Network) -> str:
    """Return ``measured`` if every aggregate was, else ``mixed``."""
    measured = all(link.aggregate_gbps.source == "measured" for link in network)
    return "measured" if measured else "mixed"
