"""One link's series and events read alike from both engines."""

from __future__ import annotations

import pytest

from probes.estimation.current_samples import LinkShift
from probes.samples import Sample
from relayd.store import Store
from relayd.store.events import Events
from relayd.store.links import LevelShifts, link_events, link_series, metrics_seen
from relayd.store.samples.ingest import append
from relayd.store.samples.retention import compact

SRC, DST = "aws:us-east-1", "gcp:us-east1"
DAY_S = 86400.0


def test_a_link_is_read_whole(store: Store) -> None:
    database = store.database
    append(
        store,
        [Sample(SRC, DST, "rtt_ms", 10.0 + n % 7, 1e9 + n * 900.0, "ping") for n in range(600)]
        + [Sample(SRC, DST, "loss_pct", 0.0, 1e9, "ping")]
        + [Sample(DST, SRC, "rtt_ms", 99.0, 1e9, "ping")],
    )
    assert [seen[:2] for seen in metrics_seen(database, SRC, DST)] == [
        ("loss_pct", 1),
        ("rtt_ms", 600),
    ]
    before = link_series(database, SRC, DST, "rtt_ms")
    compact(store, DAY_S)
    after = link_series(database, SRC, DST, "rtt_ms")
    assert len(before.samples.median) == 600
    assert len(after.samples.median) + int(after.compacted.samples.sum()) == 600
    assert metrics_seen(database, SRC, DST)[1].samples == 600
    part = link_series(database, SRC, DST, "rtt_ms", since_s=1e9 + 599 * 900, until_s=1e9 + 1e6)
    assert part.samples.median.tolist() == [10.0 + 599 % 7]
    assert metrics_seen(database, "nowhere:at-all", DST) == []

    with database.transaction():
        LevelShifts(database).add(LinkShift(SRC, DST, "rtt_ms", 1e9, 1e9 + 9, 10.0, 20.0))
    for condition in ("down", "up"):
        Events(database).add("leg", f"{SRC}>{DST}", {"from": "up", "to": condition})
    found = link_events(database, SRC, DST, limit=9)
    assert [event.condition for event in found] == ["up", "down", None]
    assert found[2].before == pytest.approx(10.0)
    assert link_events(database, SRC, DST, after=found[0].position, limit=1) == found[1:2]
    assert link_events(database, SRC, DST, after=found[2].position, limit=9) == []
