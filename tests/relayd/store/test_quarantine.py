"""What is kept apart: each sample once, read a page at a time, counted by the kind of fault."""

from __future__ import annotations

from probes.importers.physics import PhysicalGate
from probes.samples import Quarantined, Sample
from relayd.catalogue.loading import load_catalogue
from relayd.store import open_store
from relayd.store.samples.ingest import Batch, ingest
from relayd.store.samples.quarantine import quarantine_reasons, quarantined
from tests.relayd.store.engines import Spot


def test_pages_tell_who_sent_what_and_reasons_are_counted(spot: Spot) -> None:
    gate = PhysicalGate(load_catalogue())
    fast = Sample("aws:us-east-1", "aws:sa-east-1", "rtt_ms", 0.001, 1e9, "ping")
    wrong = [
        fast,
        fast._replace(metric="egress_cap_mbps", dst=fast.src, value=1e6),
        *[fast._replace(value=100.0, measured_at_s=9e9 + n) for n in range(3)],
    ]
    rows = [Quarantined(sample, str(gate.fault(sample))) for sample in wrong]
    batch = Batch("service", "live", reporter="mallory", address="192.0.2.7")
    with open_store(spot.where, mode="create") as store:
        assert ingest(store, batch, [*rows, *rows]).quarantined == 5
        assert ingest(store, batch, rows).quarantined == 0
        first = quarantined(store.database, limit=3)
        rest = quarantined(store.database, limit=3, before_id=first[-1].id)
        assert [row.sample for row in (*first, *rest)] == wrong[::-1]
        assert {row[4:7] for row in (*first, *rest)} == {("service", "mallory", "192.0.2.7")}
        assert [tuple(count) for count in quarantine_reasons(store.database)] == [
            ("in the future", 3),
            ("faster than light", 1),
            ("network card", 1),
        ]
