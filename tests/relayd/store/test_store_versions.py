"""From the first schema to this one with data in it, and back by one; on both engines."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from planner.model.errors import StoreError
from relayd.store import open_store, parse_location, schema
from relayd.store.upkeep.checking import check
from relayd.store.upkeep.verifying import verify
from relayd.store.upkeep.versions import downgrade, upgrade
from tests.relayd.conftest import Outcome
from tests.relayd.store.engines import PostgresqlSpot, Spot, SqliteSpot
from tests.relayd.store.test_store_checksums import _without_rules
from tests.relayd.store.test_store_links_migration import FILL_FIRST
from tests.relayd.store.test_store_snapshots import _head, _links, _sites

_NOW = schema.SCHEMA_VERSION
_LINKS_AS_COLUMNS = 19
_WITH_VERSION = ("schema", "sqlite.opening", "postgresql.schema", "postgresql.opening")
_ROOT = Path(__file__).parents[3]


def _filled(spot: Spot, version: int = 1) -> Spot:
    spot.lay_out(version)
    for statement in FILL_FIRST:
        spot.outsider(statement)
    return spot


def test_a_store_of_the_first_schema_comes_to_this_one_and_back_by_one(spot: Spot) -> None:
    where = parse_location(_filled(spot).where)
    assert upgrade(where) == _NOW
    with open_store(where, mode="read") as store:
        assert store.samples.counts() == (6, 1, 2)
        links = list(store.snapshots.links("s1"))
        found = verify(store.database)
        assert found.damage == check(store.database).damage == []
        assert found.unstamped["samples"] == 6
    before = spot.outsider("SELECT * FROM measurements ORDER BY id")

    assert downgrade(where) == _NOW - 1
    fresh = spot.another()
    fresh.lay_out(_NOW - 1)
    assert spot.columns() == fresh.columns()
    assert spot.outsider("SELECT * FROM measurements ORDER BY id") == before
    spot.check()

    upgrade(where)
    with open_store(where, mode="read") as store:
        assert list(store.snapshots.links("s1")) == links
        assert check(store.database).damage == []


def test_links_become_blocks_and_rows_again_as_they_were(
    spot: Spot, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A store goes back by one version, from the newest: here from that of the change.
    for module in _WITH_VERSION:
        monkeypatch.setattr(f"relayd.store.{module}.SCHEMA_VERSION", _LINKS_AS_COLUMNS)
    where = parse_location(spot.where)
    with open_store(where, mode="create") as store:
        for name in ("s1", "s2"):
            store.snapshots.save(_head(name), _links(), _sites(), _links(3.0)[3:])
        before = [list(store.snapshots.links("s1")), list(store.snapshots.others("s1"))]
    assert downgrade(where) == _LINKS_AS_COLUMNS - 1
    assert spot.outsider("SELECT count(*), count(checksum) FROM links") == [(40, 40)]
    rows = spot.outsider("SELECT * FROM other_links ORDER BY snapshot_key, src_id, dst_id")
    upgrade(where)
    with open_store(where, mode="read") as store:
        assert verify(store.database).damage == []
        assert [list(store.snapshots.links("s1")), list(store.snapshots.others("s1"))] == before
    downgrade(where)
    again = "SELECT * FROM other_links ORDER BY snapshot_key, src_id, dst_id"
    assert spot.outsider(again) == rows

    _without_rules(spot)
    spot.outsider("UPDATE links SET loss_pct = 7 WHERE snapshot_key = 1 AND src_id < dst_id")
    spot.outsider("UPDATE links SET checksum = NULL WHERE snapshot_key = 2")
    for _ in range(2):  # also back and forth once more
        upgrade(where)
        with open_store(where, mode="read") as store:
            found = verify(store.database)
            assert [damage.table for damage in found.damage] == ["link_blocks"]
            assert found.unstamped["link_blocks"] == 1
            assert list(store.snapshots.links("s2")) == before[0]
            with pytest.raises(StoreError, match="a block of links"):
                store.snapshots.links("s1")
        downgrade(where)

    # What no column can hold, and a block that lost its end, are damage as well and no faults.
    _without_rules(spot)
    spot.outsider("UPDATE links SET rtt_ms_samples = -1 WHERE snapshot_key = 2")
    upgrade(where)
    with (
        open_store(where, mode="read") as store,
        pytest.raises(StoreError, match="a block of links"),
    ):
        store.snapshots.links("s2")
    with pytest.raises(StoreError, match="a block of links"):
        downgrade(where)


def test_a_file_from_before_its_upgrade_is_kept_and_can_be_restored(
    tmp_path: Path, relayd: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy_of(spot: Spot) -> Path:
        return Path(f"{spot.where}-before-upgrade")

    spot = _filled(SqliteSpot(tmp_path))
    copy_of(spot).write_text("of the upgrade before")
    before = spot.dump()
    open_store(spot.where, mode="read").close()
    assert copy_of(spot).stat().st_mode & 0o777 == 0o600
    assert SqliteSpot(tmp_path, copy_of(spot).name).dump() == before

    restored = SqliteSpot(tmp_path, "restored.db")
    assert relayd("store", "restore", copy_of(spot), "--db", restored.where).code == 0
    with open_store(restored.where, mode="read") as store:
        assert store.samples.counts() == (6, 1, 2)

    hindered = _filled(SqliteSpot(tmp_path, "hindered.db"))
    Path(f"{copy_of(hindered)}.part").mkdir()
    with pytest.raises(StoreError, match=r"can't be copied before its upgrade.*--no-copy"):
        open_store(hindered.where, mode="write")
    assert hindered.dump() == before
    Path(f"{copy_of(hindered)}.part").rmdir()

    told, large = (_filled(SqliteSpot(tmp_path, name)) for name in ("told.db", "large.db"))
    assert relayd("store", "upgrade", "--no-copy", "--db", told.where).code == 0
    monkeypatch.setattr("relayd.store.sqlite.kept_copy.LARGEST_BYTES", 1)
    open_store(large.where, mode="write").close()
    open_store(tmp_path / "new.db", mode="create").close()
    assert sorted(path.name for path in tmp_path.iterdir() if "before" in path.name) == [
        copy_of(spot).name
    ]


def test_where_no_way_leads_back_nothing_changes(
    spot: Spot, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(spot.where, mode="create").close()
    before = spot.dump()
    monkeypatch.setattr(schema, "MIGRATIONS", Path(schema.MIGRATIONS, "nowhere"))
    with pytest.raises(StoreError, match="no way back"):
        downgrade(parse_location(spot.where))
    assert spot.dump() == before


def test_reading_brings_an_old_file_up_to_date_where_it_may_be_written(
    tmp_path: Path, relayd: Callable[..., Outcome]
) -> None:
    spot = _filled(SqliteSpot(tmp_path))
    assert relayd("samples", "list", "--db", spot.where).code == 0
    assert spot.outsider("PRAGMA user_version") == [(_NOW,)]


_KILLED = """\
import sys
from pathlib import Path
from relayd.store import open_store, schema
from relayd.store.postgresql import opening, schema as of_server
folder = Path(sys.argv[2])
schema.MIGRATIONS = folder
schema.SCHEMA_VERSION = of_server.SCHEMA_VERSION = opening.SCHEMA_VERSION = int(sys.argv[3])
open_store(sys.argv[1], mode="write")
"""


def test_a_kill_inside_a_migration_of_a_server_leaves_the_old_version(
    postgresql_spot: PostgresqlSpot, tmp_path: Path
) -> None:
    """On SQLite, tests of migrations do the same."""
    spot = _filled(postgresql_spot)
    folder = tmp_path / "migrations"
    shutil.copytree(schema.MIGRATIONS, folder)
    (folder / "postgresql" / f"{_NOW + 1:04}_later.sql").write_text(
        "CREATE TABLE later (id INTEGER); SELECT pg_advisory_lock(7)"
    )
    command = [sys.executable, "-c", _KILLED, spot.where, str(folder), str(_NOW + 1)]
    with psycopg.connect(spot.where) as holder:
        holder.execute("SELECT pg_advisory_lock(7)")
        with subprocess.Popen(command, cwd=_ROOT) as child:
            while not spot.outsider("SELECT 1 FROM pg_locks WHERE objid = 7 AND NOT granted"):
                assert child.poll() is None
                time.sleep(0.01)
            child.kill()
    assert spot.outsider("SELECT version FROM relayd_schema") == [(1,)]
    assert upgrade(parse_location(spot.where)) == _NOW
    with open_store(spot.where, mode="read") as store:
        assert verify(store.database).damage == []
    assert "later" not in {table for table, *_ in spot.columns()}
