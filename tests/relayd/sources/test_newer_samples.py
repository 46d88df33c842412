"""Answers say which samples of the store are not in them, and why."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from planner.model.document import document_of, network_of
from planner.model.network import NewerSamples
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.sources.stored import StoredWan
from relayd.sources.wan import Wan
from relayd.store import Store, open_store, parse_location
from relayd.store.samples.ingest import append
from relayd.store.samples.reading import BEGUN, BETWEEN_S, PATIENCE_S
from tests.relayd.building import catalogue_of, rate

SRC, DST = "aws:us-east-1", "aws:sa-east-1"
WHOLE, CATALOGUE = load_catalogue(), catalogue_of(SRC, DST)


def _tested(store: Store, mbps: float) -> None:
    append(store, [rate(SRC, DST, mbps, time.time())])


def _newer(store: Store, after_s: float) -> NewerSamples | None:
    latest = store.snapshots.latest()
    through, made_at_s = (latest.samples_through, latest.created_at_s) if latest else (0, 0.0)
    return store.samples.newer(through, made_at_s, time.time() + after_s)


def test_samples_without_a_snapshot_are_counted_after_a_while(tmp_path: Path) -> None:
    with open_store(f"{tmp_path}/s.db", mode="create") as store:

        def told(after_s: float) -> tuple[int, str] | None:
            found = _newer(store, after_s)
            return (found.samples, found.reason) if found else None

        assert told(2 * PATIENCE_S) is None
        _tested(store, 4000.0)
        assert told(0.0) is None
        assert told(2 * PATIENCE_S) == (1, "none")
        make_snapshot(store, CATALOGUE)
        assert told(2 * PATIENCE_S) is None
        _tested(store, 4100.0)
        _tested(store, 4200.0)
        assert told(2 * PATIENCE_S) is None
        assert told(2 * BETWEEN_S) == (2, "none")
        # As a program leaves it that is killed while it makes one.
        store.database.set_metadata(BEGUN, time.time())
        assert told(2 * PATIENCE_S) == (2, "begun")


def test_a_failure_is_said_at_once_in_the_same_words_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"{tmp_path}/s.db"
    with open_store(where, mode="create") as store:
        _tested(store, 4000.0)
        make_snapshot(store, CATALOGUE)
        _tested(store, 4100.0)
        with monkeypatch.context() as broken:
            broken.setattr("relayd.snapshots.building.snapshot_of", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                make_snapshot(store, CATALOGUE)
    wan = StoredWan(WHOLE, parse_location(where))
    said = wan.plan(SRC, DST, volume_gb=100)
    (warning,) = [text for text in said.warnings if "not in this answer" in text]
    assert warning.startswith("1 sample is not in this answer, stored since 20")
    assert "failed at 20" in warning
    assert "`relayd data store rebuild`" in warning
    copy = network_of(document_of(wan.as_read()))  # as a service sends it
    copied = Wan(WHOLE, copy).plan(SRC, DST, volume_gb=100)
    assert copied.warnings == said.warnings

    with open_store(where, mode="write") as store:
        make_snapshot(store, CATALOGUE)
    wan.refresh()
    assert not [text for text in wan.plan(SRC, DST).warnings if "not in this answer" in text]
