"""Snapshots: what was saved is what is read, for ever, or until it is pruned on purpose.

That bytes hold all of a network is for tests/planner/model.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from planner.model.errors import InputError
from planner.model.estimate import Estimate, Origin, Prior
from planner.model.network import Network
from probes.samples import Sample
from relayd.sources.stored import snapshot_of, stored_network
from relayd.store import SnapshotRow, Store
from relayd.store.samples.ingest import append
from tests.planner.networks import with_link
from tests.relayd.store.engines import Spot

_REGIONS = ["aws:a", "aws:b", "azure:c", "gcp:d", "own:e"]
_LINK = ("aws:a", "gcp:d")


def _head(name: str = "s1") -> SnapshotRow:
    return SnapshotRow(name, 1.64e9, 1.7e9, "mixed", "c0ffee", 42)


_STATED = Network.from_matrices(_REGIONS, np.arange(1.0, 26.0).reshape(5, 5), rtt_ms=50.0)
_NETWORK = _STATED.with_(
    snapshot=snapshot_of(_head()), others={src: _STATED.usual[src] for src in _REGIONS[:2]}
)


def test_an_older_snapshot_stands_as_when_it_was_made(store: Store) -> None:
    head = _head()
    # Today it would have faded towards five times as much.
    rate = Estimate(
        0.9,
        1.0,
        1.1,
        Origin("measured", "median-of-samples", newest_s=head.created_at_s),
        Prior(4.0, 5.0, 6.0, 0.5),
    )
    store.snapshots.save(head, with_link(_NETWORK, *_LINK, aggregate_gbps=rate))
    network = stored_network(store, head.id).with_(aged_to_s=time.time())
    assert network.link(*_LINK).aggregate_gbps == rate
    assert rate.aged(time.time()).expected > 2


def test_the_snapshot_of_a_time_is_the_newest_made_until_then(store: Store) -> None:
    assert store.snapshots.oldest() is None
    for day in (1, 2, 3):
        head = _head(f"s{day}")._replace(created_at_s=86400.0 * day)
        store.snapshots.save(head, _NETWORK)
    found = [store.snapshots.current_at(86400.0 * days) for days in (0.5, 1.0, 2.9, 9.0)]
    assert [row and row.id for row in found] == [None, "s1", "s2", "s3"]
    oldest = store.snapshots.oldest()
    assert oldest
    assert oldest.id == "s1"


def test_what_was_saved_is_what_is_read(store: Store) -> None:
    assert store.snapshots.latest() is None
    saved = store.snapshots.save(_head(), _NETWORK)

    assert saved == _head()._replace(links=20, sites=5)
    assert store.snapshots.latest() == store.snapshots.get("s1") == saved
    assert store.snapshots.network("s1") == _NETWORK


def test_a_snapshot_with_a_wrong_link_is_not_saved_at_all(store: Store) -> None:
    wrong = Estimate(3.0, 2.0, 4.0, Origin("measured"))
    with pytest.raises(InputError, match="rtt_ms"):
        store.snapshots.save(_head(), with_link(_NETWORK, *_LINK, rtt_ms=wrong))
    assert store.snapshots.list() == []
    assert store.snapshots.save(_head(), _NETWORK).links == 20


def test_nobody_can_change_a_snapshot(store: Store, spot: Spot) -> None:
    store.snapshots.save(_head(), _NETWORK)
    statements = [
        "UPDATE snapshots SET source = 'measured'",
        "UPDATE snapshots SET content = NULL",
        "DELETE FROM snapshots",
    ]
    if spot.engine == "postgresql":
        statements.append("TRUNCATE snapshots")
    for statement in statements:
        with pytest.raises(spot.integrity_error, match="immutable"):
            spot.outsider(statement)


def test_pruning_removes_the_oldest_and_remembers_their_names(store: Store) -> None:
    for name in ("d", "a", "c", "b"):
        store.snapshots.save(_head(name), _NETWORK)
    with pytest.raises(InputError, match="never changes"):
        store.snapshots.save(_head("b"), Network({}, {}))

    assert store.snapshots.prune(keep=2) == ["a", "d"]

    assert [row.id for row in store.snapshots.list()] == ["b", "c"]
    newest = store.snapshots.latest()
    assert newest is not None
    assert (newest.id, newest.links) == ("b", 20)
    assert store.snapshots.network("c").usual.count == 20
    assert store.database.row("SELECT count(content) FROM snapshots")[0] == 2
    for ask in (store.snapshots.get, store.snapshots.network):
        with pytest.raises(InputError, match="was pruned on 2"):
            ask("a")
    with pytest.raises(InputError, match="never changes"):
        store.snapshots.save(_head("a"), Network({}, {}))
    with pytest.raises(InputError, match="at least 1"):
        store.snapshots.prune(keep=0)
    with pytest.raises(InputError, match="not in this store"):
        store.snapshots.get("e")


def test_what_was_measured_last_of_each_link(store: Store) -> None:
    links = [_LINK, _LINK[::-1]]
    sent = [
        Sample(src, dst, metric, 100.0 * at_s + number, at_s, "ping", 8)
        for number, (src, dst) in enumerate(links)
        for metric in ("rtt_ms", "aggregate_mbps", "loss_pct")
        for at_s in (10.0, 20.0, 30.0, 40.0)
    ]
    append(store, [*sent, Sample("aws:a", "far:away", "rtt_ms", 1.0, 35.0, "ping")])
    found = store.samples.newest(10.0, 30.0)
    columns = map(found.column, ("src", "dst", "metric", "value", "connections"))
    assert sorted(zip(*columns, strict=True)) == sorted(
        (src, dst, metric, 3000.0 + number, 8)
        for number, (src, dst) in enumerate(links)
        for metric in ("rtt_ms", "aggregate_mbps")
    )
    assert not len(store.samples.newest(40.0, 50.0))
