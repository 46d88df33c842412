"""Flipped bytes are found, and named; damaged snapshots are not served. On both engines."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from planner.model.errors import StoreError
from probes.samples import Quarantined, Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store, schema
from relayd.store.checksums import covered_columns
from relayd.store.samples.ingest import Batch, ingest
from relayd.store.upkeep.checking import check
from relayd.store.upkeep.verifying import verify
from relayd.store.verifications import VerificationRow, Verifications
from tests.relayd.conftest import Outcome
from tests.relayd.store.engines import PostgresqlSpot, Spot, SqliteSpot
from tests.relayd.store.test_store_snapshots import _head, _links, _sites

_REGIONS = ("aws:us-east-1", "azure:eastus", "gcp:us-central1")

_VERIFIED = VerificationRow(
    *("p", "x", *_REGIONS[:2], "plan", "direct", "", 64, 1, True, 4.5, 5.0, 5.5, 4.9, 1.7e9)
)


def _rows() -> Iterator[Sample | Quarantined]:
    pairs = [(src, dst) for src in _REGIONS for dst in _REGIONS if src != dst]
    for n, (src, dst) in enumerate(pairs):
        detail = f'{{"loss": "none of them, {n}"}}'
        yield Sample(src, dst, "rtt_ms", 30.5 + n, 1.7e9 + n, "ping", detail=detail)
        yield Sample(
            src, dst, "aggregate_mbps", 5000.5, 1.7e9, "iperf3", 64, 10.0, address="public"
        )
        whole_numbers = (5000, 1_700_000_001, "iperf3", 64, 10)
        yield Sample(src, dst, "aggregate_mbps", *whole_numbers, new_level=True, intervals=7)
        yield Sample(src, dst, "loss_pct", -0.0, 1.7e9, "ping")
        yield Quarantined(Sample(src, dst, "rtt_ms", 0.001, 1.7e9, "ping"), "faster than light")


@pytest.fixture
def filled(spot: Spot) -> Spot:
    with open_store(spot.where, mode="create") as store:
        ingest(store, Batch("a.csv", "csv", "d"), _rows())
        store.snapshots.save(_head(), _links(), _sites(), _links()[:2])
        Verifications(store.database).record([_VERIFIED], [])
    return spot


def _without_rules(spot: Spot) -> None:
    """Drop the triggers, which a disk that fails does not ask."""
    if spot.engine == "sqlite":
        found = spot.outsider("SELECT name, '' FROM sqlite_schema WHERE type = 'trigger'")
    else:
        found = spot.outsider(
            "SELECT tgname, ' ON ' || CAST(tgrelid AS regclass) FROM pg_trigger "
            "WHERE NOT tgisinternal"
        )
    for name, place in found:
        spot.outsider(f"DROP TRIGGER {name}{place}")


def test_what_was_just_stored_is_whole(filled: Spot) -> None:
    with open_store(filled.where, mode="read") as store:
        found, checked = verify(store.database), check(store.database)
    assert found.damage == checked.damage == []
    assert set(found.rows) == _TABLES
    assert all(found.rows[table] for table in _TABLES)
    assert not any(found.unstamped.values())


_TABLES = {"batches", "samples", "snapshots", "link_blocks", "sites", "origins", "verifications"}


def test_a_server_checks_pages_and_indices_where_it_can(postgresql_spot: PostgresqlSpot) -> None:
    with open_store(postgresql_spot.where, mode="create") as store:
        ingest(store, Batch("a.csv", "csv", "d"), _rows())
        assert "amcheck" in check(store.database).notes[0]
        postgresql_spot.outsider("CREATE EXTENSION amcheck")
        assert check(store.database) == (schema.SCHEMA_VERSION, [], [])


def test_a_changed_value_is_found_and_named(filled: Spot) -> None:
    _without_rules(filled)
    noise = random.Random(3)
    changed = 0
    with open_store(filled.where, mode="read") as store:
        for table in sorted(_TABLES):
            for column in noise.sample(covered_columns(store.database, table), 4):
                ((old,),) = filled.outsider(f"SELECT {column} FROM {table} ORDER BY 1 LIMIT 1")
                if old is None:
                    continue
                new = f"'{old}!'" if isinstance(old, str) else f"{column} + 1"
                if isinstance(old, bytes):
                    kind = {"sqlite": "BLOB", "postgresql": "BYTEA"}[filled.engine]
                    new = f"CAST({column} || {column} AS {kind})"
                try:
                    filled.outsider(f"UPDATE {table} SET {column} = {new}")
                except filled.integrity_error:
                    continue
                damage = [one for one in verify(store.database).damage if one.row]
                assert {one.table for one in damage} >= {table}, column
                changed += 1
    assert changed > 10


def test_a_lost_sample_and_a_lost_link_are_missed(filled: Spot) -> None:
    _without_rules(filled)
    filled.outsider("DELETE FROM samples WHERE id = 3")
    filled.outsider("DELETE FROM link_blocks WHERE in_use = 1")
    with open_store(filled.where, mode="read") as store:
        damage = verify(store.database).damage
    assert {(one.table, one.row) for one in damage} == {
        ("batches", "id 1"),
        ("samples", ""),
        ("snapshots", "key 1"),
    }


def test_a_damaged_snapshot_is_not_served(filled: Spot, relayd: Callable[..., Outcome]) -> None:
    with open_store(filled.where, mode="write") as store:
        make_snapshot(store, load_catalogue())
    asked = ("plan", "--src", _REGIONS[0], "--dst", _REGIONS[1], "--db", filled.where)
    assert relayd(*asked).code == 0
    _without_rules(filled)
    one_less = {
        "sqlite": "substr(content, 1, length(content) - 1)",
        "postgresql": "substring(content FROM 1 FOR length(content) - 1)",
    }
    shorter = f"UPDATE link_blocks SET content = {one_less[filled.engine]} WHERE snapshot_key = 2"
    filled.outsider(shorter)
    done = relayd(*asked)
    assert done.code == 2
    assert "is damaged: a block of links of a snapshot" in done.err
    assert "relayd store verify" in done.err

    listed = relayd("store", "verify", "--db", filled.where)
    assert listed.code == 2
    assert (
        "link_blocks (snapshot_key 2, in_use 1, src_block 0, dst_block 0): is not what was stored"
        in listed.out
    )
    assert "is damaged in " in listed.err


def test_a_flipped_bit_anywhere_in_a_file_is_found_or_harmless(tmp_path: Path) -> None:
    spot = SqliteSpot(tmp_path)
    with open_store(spot.where, mode="create") as store:
        ingest(store, Batch("a.csv", "csv", "d"), _rows())
        store.snapshots.save(_head(), _links(), _sites())
    path = Path(spot.where)
    assert not Path(f"{path}-wal").exists()
    whole, content = path.read_bytes(), _covered(spot)
    noise = random.Random(7)
    found = 0
    for _ in range(40):
        damaged = bytearray(whole)
        place = noise.randrange(len(whole))
        damaged[place] ^= 1 << noise.randrange(8)
        path.write_bytes(damaged)
        try:
            with open_store(path, mode="read") as store:
                seen = bool(verify(store.database).damage or check(store.database).damage)
        except StoreError:
            seen = True
        found += seen
        assert seen or _covered(spot) == content, f"byte {place}"
    assert found > 3


def _covered(spot: Spot) -> list[str]:
    """Return everything but rows of tables without checksums of their own."""
    return [line for line in spot.dump() if not line.startswith('INSERT INTO "events"')]
