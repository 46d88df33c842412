"""Snapshots: what was saved is what is read, for ever, or until it is pruned on purpose."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import replace

import pytest

from planner.model.errors import InputError
from planner.model.estimate import Estimate, Figures, Kind, Origin, Prior
from planner.model.link import Link, Site
from planner.model.link_array import LinkArray
from planner.model.network import Network
from probes.samples import Sample
from relayd.sources.stored import snapshot_of, stored_network
from relayd.store import SnapshotRow, Store
from relayd.store.samples.ingest import append
from tests.relayd.store.engines import Spot

MEASURED = Origin("measured")
_REGIONS = ["aws:a", "aws:b", "azure:c", "gcp:d", "own:e"]


_FIGURES = Figures(
    connections=64,
    peers=3,
    window_kind="inferred",
    rtt_kind="measured",
    held_to="vm-caps",
    error=1 / 3,
    between=("aws", "gcp"),
    vm_type="aws:m5.8xlarge",
    note="seen",
)


_PRIOR = Prior(0.5, 2.5, 4.5, 1.5)


def _estimate(middle: float, kind: Kind = "measured") -> Estimate:
    origin = Origin(kind, "window-over-rtt", 3, 2, 1.6e9, 1.5e9, "private", _FIGURES)
    return Estimate(middle / 2, middle, math.inf, origin)


def _links(scale: float = 1.0) -> list[Link]:
    return [
        Link(
            src,
            dst,
            _estimate(scale * (10 * i + j)),
            _estimate(scale * (100 + i - j), "inferred"),
            Estimate(1.0, 2.0, 3.0, Origin("baseline", "backbone"), _PRIOR if i > j else None),
            0.25 if i < j else None,
            "path" if i < j else "unknown",
        )
        for i, src in enumerate(_REGIONS)
        for j, dst in enumerate(_REGIONS)
        if i != j
    ]


def _sites() -> list[Site]:
    # Not in the order of the names: the order is part of what is saved.
    return [
        Site(name, "m5.8xlarge", _estimate(5), _estimate(9, "inferred"), _estimate(3))
        for name in reversed(_REGIONS)
    ]


def _network(links: Iterable[Link] | None = None) -> Network:
    links = _links() if links is None else links
    sites = {site.region: site for site in _sites()}
    return Network(sites, LinkArray.of(links), snapshot_of(_head()), others=LinkArray.of(_links(2)))


def _head(name: str = "s1") -> SnapshotRow:
    return SnapshotRow(name, 1.64e9, 1.7e9, "mixed", "c0ffee", 42)


def test_an_older_snapshot_stands_as_when_it_was_made(store: Store) -> None:
    head, (first, *others) = _head(), _links()
    # Today it would have faded towards five times as much.
    rate = Estimate(
        0.9,
        1.0,
        1.1,
        Origin("measured", "median-of-samples", newest_s=head.created_at_s),
        Prior(4.0, 5.0, 6.0, 0.5),
    )
    link = replace(first, aggregate_gbps=rate)
    store.snapshots.save(head, _network([link, *others]))
    network = stored_network(store, head.id).with_(aged_to_s=time.time())
    assert network.link(link.src, link.dst).aggregate_gbps == rate
    assert rate.aged(time.time()).expected > 2


def test_the_snapshot_of_a_time_is_the_newest_made_until_then(store: Store) -> None:
    assert store.snapshots.oldest() is None
    for day in (1, 2, 3):
        head = _head(f"s{day}")._replace(created_at_s=86400.0 * day)
        store.snapshots.save(head, _network())
    found = [store.snapshots.current_at(86400.0 * days) for days in (0.5, 1.0, 2.9, 9.0)]
    assert [row and row.id for row in found] == [None, "s1", "s2", "s3"]
    oldest = store.snapshots.oldest()
    assert oldest
    assert oldest.id == "s1"


def test_what_was_saved_is_what_is_read(store: Store) -> None:
    assert store.snapshots.latest() is None
    saved = store.snapshots.save(_head(), _network())

    assert saved == _head()._replace(links=20, sites=5)
    assert store.snapshots.latest() == store.snapshots.get("s1") == saved
    found = store.snapshots.network("s1")
    assert found == _network()
    assert list(found.sites.values()) == _sites()


@pytest.mark.parametrize(
    "wrong",
    [
        replace(_links()[0], rtt_ms=Estimate(3.0, 2.0, 4.0, MEASURED)),
        replace(_links()[0], rtt_ms=Estimate(1.0, math.nan, 4.0, MEASURED)),
        replace(_links()[0], rtt_ms=Estimate(1.0, 2.0, math.nan, MEASURED)),
        _links()[1],  # twice
    ],
)
def test_a_snapshot_with_a_wrong_link_is_not_saved_at_all(store: Store, wrong: Link) -> None:
    with pytest.raises(InputError):
        store.snapshots.save(_head(), _network([*_links()[1:], wrong]))
    assert store.snapshots.list() == []
    assert store.snapshots.save(_head(), _network()).links == 20


def test_nobody_can_change_a_snapshot(store: Store, spot: Spot) -> None:
    store.snapshots.save(_head(), _network())
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
        store.snapshots.save(_head(name), _network())
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
    links = [(src, dst) for src, dst in (("aws:a", "gcp:d"), ("gcp:d", "aws:a"))]
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
