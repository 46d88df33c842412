"""The next snapshot reads series with new samples alone, and is what all samples would give."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.model.link import LINK_FIGURES, SITE_FIGURES
from planner.model.network import Network
from probes.metrics import Metric
from probes.samples import Sample
from relayd.snapshots.building import estimated, make_snapshot
from relayd.store import Store, open_store
from relayd.store.samples.decisions import decide
from relayd.store.samples.ingest import Batch, append, ingest
from relayd.store.samples.retention import compact
from tests.properties import examples
from tests.relayd.building import catalogue_of, ping, rate
from tests.relayd.store.engines import ON_BOTH

REGIONS = ("aws:us-east-1", "aws:sa-east-1", "gcp:us-east1", "azure:eastus", "aws:of-no-place")
CATALOGUE = catalogue_of(*REGIONS[:4], "azure:westeurope")  # the last is not measured
USUAL: dict[Metric, float] = {
    "rtt_ms": 80.0,
    "loss_pct": 0.1,
    "per_flow_mbps": 300.0,
    "aggregate_mbps": 4800.0,
    "egress_cap_mbps": 9000.0,
}
VMS = {"aws": ("m5.8xlarge", "m5.xlarge", ""), "gcp": ("n2-standard-32", ""), "azure": ("",)}
NOW_S, DAY_S = 1.79e9, 86400.0


def _samples(random: Random, count: int, since_s: float) -> list[Sample]:
    found = []
    for number in range(count):
        src, dst = random.sample(REGIONS, 2)
        metric = random.choice(list(USUAL))
        if metric == "egress_cap_mbps":
            dst = src
        level = 3.0 if random.random() < 0.2 else 1.0
        findings = {"findings": [{"kind": "cut", "at_s": 100.0}]} if random.random() < 0.1 else {}
        test = rate(
            *(src, dst, level * USUAL[metric] * random.lognormvariate(0.0, 0.05)),
            since_s + number * 300.0,
            random.choice([1, 64]),
            metric=metric,
            src_vm=random.choice(VMS[src.partition(":")[0]]),
            dst_vm=random.choice(VMS[dst.partition(":")[0]]),
            address=random.choice([None, "public", "private"]),
            detail=json.dumps(findings) if findings else "",
        )
        found.append(test)
    # Enough of one series for changes of level to be looked for, and found.
    for number in range(count // 3):
        mbps = 4800.0 if since_s < NOW_S + DAY_S else 2000.0
        at_s = since_s + number * 600.0 + 1.0
        found.append(rate(*REGIONS[:2], mbps * random.lognormvariate(0.0, 0.01), at_s))
    return found


def _figures(network: Network) -> tuple[list[object], list[float]]:
    """Return the figures of a network, with their origins, and their bounds."""
    rows: list[tuple[object, ...]] = [
        (link.src, link.dst, link.address, link.limited_by, name, getattr(link, name))
        for links in (network.usual, network.others)
        for link in links.all_links()
        for name in LINK_FIGURES
    ]
    for site in network.sites.values():
        rows += [(site.region, site.vm_type, name, getattr(site, name)) for name in SITE_FIGURES]
    told: list[object] = []
    bounds = []
    for *names, estimate in sorted(rows, key=lambda row: repr(row[:-1])):
        told.append((*names, estimate.origin))  # type: ignore[attr-defined]
        bounds += [estimate.low, estimate.expected, estimate.high]  # type: ignore[attr-defined]
    return told, bounds


def _assert_as_whole(store: Store) -> None:
    snapshot = make_snapshot(store, CATALOGUE)
    assert snapshot is not None
    whole = estimated(store, CATALOGUE, through=store.samples.last_id(), whole=True)
    told, bounds = _figures(store.snapshots.network(snapshot.id))
    expected = _figures(whole.network)
    assert told == expected[0]
    assert bounds == pytest.approx(expected[1], rel=1e-9)


@pytest.mark.thorough
@settings(max_examples=examples(12), deadline=None)
@given(seed=st.integers(0, 2**32), batches=st.lists(st.integers(1, 60), min_size=2, max_size=4))
def test_it_is_what_all_samples_give(seed: int, batches: list[int]) -> None:
    random = Random(seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(Path(folder) / "relayd.db", mode="create") as store,
    ):
        for number, count in enumerate(batches):
            samples = _samples(random, count, NOW_S + number * DAY_S)
            by = random.choice(["", "alice", "bob"])
            batch = Batch("live", "live", reporter=by, address="192.0.2.7" if by else "")
            ingest(store, batch, samples)
            _assert_as_whole(store)
        one = samples[0]
        selection = {"src": one.src, "dst": one.dst}
        decide(store.database, "retract", selection, who="test", reason="")
        _assert_as_whole(store)
        append(store, _samples(random, 30, NOW_S + 9 * DAY_S))
        _assert_as_whole(store)


@ON_BOTH
def test_series_without_new_samples_are_not_read(store: Store) -> None:
    old = [ping(*REGIONS[:2], 80.0, NOW_S), ping(*REGIONS[1:3], 90.0, NOW_S)]
    append(store, [old[0], rate(*REGIONS[:2], 4800.0, NOW_S), old[1]])
    assert make_snapshot(store, CATALOGUE) is not None
    through = store.samples.last_id()
    append(store, [old[0]._replace(value=82.0)])
    assert [one.value for one in store.samples.read(after=through)] == [80.0, 82.0]
    _assert_as_whole(store)
    latest = store.snapshots.latest()
    assert latest is not None
    kept = store.snapshots.current_samples(latest.id)
    assert kept is not None
    assert sorted(one.value for one in kept.samples) == [80.0, 82.0, 90.0, 4800.0]


@ON_BOTH
def test_damaged_bytes_make_it_read_all(store: Store) -> None:
    append(store, [ping(*REGIONS[:2], 80.0, NOW_S), rate(*REGIONS[:2], 4800.0, NOW_S)])
    assert make_snapshot(store, CATALOGUE) is not None
    store.database.change("UPDATE current_samples SET content = ?", (b"not by zlib",))
    append(store, [ping(*REGIONS[1:3], 90.0, NOW_S)])
    _assert_as_whole(store)
    compact(store, DAY_S, now_s=NOW_S + 90 * DAY_S)
    append(store, [ping(*REGIONS[2:4], 40.0, NOW_S + 90 * DAY_S)])
    _assert_as_whole(store)
