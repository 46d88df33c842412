"""Backups while a store is in use, and stores made of them: the same to the last row and answer."""

from __future__ import annotations

import stat
from collections.abc import MutableMapping
from pathlib import Path
from random import Random

import pytest

import relayd as library
from planner.model.errors import InputError, StoreError
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store, parse_location
from relayd.store.backup import backup, restore
from relayd.store.checking import check
from relayd.store.samples.ingest import Batch, ingest
from tests.relayd.building import catalogue_of, rate
from tests.relayd.conftest import Relayd
from tests.relayd.store.engines import ON_BOTH, PostgresqlSpot, Spot, SqliteSpot, program, said
from tests.relayd.store.test_store_durability import APPEND

_ENDS = ("aws:us-east-1", "aws:sa-east-1")
_ROWS = [rate(*_ENDS, 4000.0 + n, 1.7e9 + n) for n in range(9)]


def _fill(spot: Spot) -> None:
    with open_store(spot.where, mode="create") as store:
        ingest(store, Batch("a.csv", "csv", "d"), _ROWS)
        make_snapshot(store, catalogue_of(*_ENDS))


def _plan_id(spot: Spot) -> str:
    return library.open(spot.where).plan(*_ENDS, volume_gb=500).plan_id


@ON_BOTH
def test_a_store_backed_up_under_load_and_destroyed_is_the_same_when_restored(
    spot: Spot, tmp_path: Path, relayd: Relayd
) -> None:
    _fill(spot)
    plan_id = _plan_id(spot)
    copy = tmp_path / "copy"
    with program(APPEND, spot.where, 5, 1_000_000) as writer:
        said(writer, "stored")
        done = relayd("data", "store", "backup", copy, "--db", spot.where)
        assert (done.code, done.err) == (0, "")
        said(writer, "stored")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if "part" in path.name] == []
    with open_store(spot.where, mode="read") as store:
        later = store.samples.counts().samples
    _destroy(spot)

    restored = spot.another()
    done = relayd("data", "store", "restore", copy, "--db", restored.where)
    assert (done.code, done.err) == (0, "")
    with open_store(restored.where, mode="read") as store:
        held = store.samples.counts().samples
        assert len(_ROWS) + 7 <= held < later
        assert (held - len(_ROWS)) % 7 == 0
        assert check(store.database).damage == []
    assert _plan_id(restored) == plan_id
    with open_store(restored.where, mode="write") as store:  # ids go on after those restored
        assert ingest(store, Batch("b", "live"), [_ROWS[0]._replace(value=1.0)]).accepted == 1
    restored.check()


def _destroy(spot: Spot) -> None:
    if isinstance(spot, PostgresqlSpot):
        spot.server.sql(f"DROP DATABASE {spot.database} WITH (FORCE)")
    else:
        for path in Path(spot.where).parent.glob("relayd.db*"):
            path.unlink()


@ON_BOTH
def test_a_backup_and_its_restoration_replace_nothing(spot: Spot, tmp_path: Path) -> None:
    _fill(spot)
    copy = tmp_path / "copy"
    with open_store(spot.where, mode="read") as store:
        backup(store, copy)
        before = copy.read_bytes()
        with pytest.raises(InputError, match="is there already"):
            backup(store, copy)
        with pytest.raises(InputError, match="can't be"):
            backup(store, tmp_path / "no" / "folder")
    assert copy.read_bytes() == before
    with pytest.raises(InputError, match="holds batches already"):
        restore(copy, parse_location(spot.where))

    empty = spot.another()
    open_store(empty.where, mode="create").close()
    restore(copy, parse_location(empty.where))
    with open_store(empty.where, mode="read") as store:
        assert list(store.samples.read()) == _ROWS
        assert store.snapshots.latest() is not None


@ON_BOTH
def test_a_damaged_backup_is_refused_and_leaves_nothing(spot: Spot, tmp_path: Path) -> None:
    _fill(spot)
    copy = tmp_path / "copy"
    with open_store(spot.where, mode="read") as store:
        backup(store, copy)
    whole = copy.read_bytes()
    target = spot.another()
    for damaged in (b"", b"no backup", whole[: len(whole) // 2], whole[:-1000]):
        copy.write_bytes(damaged)
        with pytest.raises(InputError):
            restore(copy, parse_location(target.where))
        if spot.engine == "sqlite":
            assert not Path(target.where).exists()
        else:
            assert [line for line in target.dump() if line.startswith("samples ")] == []
    for bit in Random(1).sample(range(8 * len(whole)), 250):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        copy.write_bytes(flipped)
        with pytest.raises(StoreError, match="not what its digest says"):
            restore(copy, parse_location(target.where))
    copy.write_bytes(whole)
    restore(copy, parse_location(target.where))


def test_a_backup_is_checked_to_the_last_bit_and_stays_as_it_is(
    tmp_path: Path, relayd: Relayd
) -> None:
    spot = SqliteSpot(tmp_path)
    _fill(spot)
    copy = tmp_path / "copy"
    relayd("data", "store", "backup", copy, "--db", spot.where)
    whole = copy.read_bytes()
    assert "No damage found." in relayd("data", "store", "check", "--db", copy).out
    assert copy.read_bytes() == whole
    for place in (5000, len(whole) // 2, len(whole) - 3):
        copy.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused = relayd("data", "store", "check", "--db", copy)
        assert refused.code == 2
        assert "not what its digest says" in refused.err


_KILLED_BACKUP = """\
import sys, time
from pathlib import Path
from relayd.store.backup import _new_file

with _new_file(Path(sys.argv[1])) as part:
    part.write_bytes(b"half")
    print("begun", flush=True)
    time.sleep(60)
"""


def test_a_backup_removes_what_killed_ones_left_and_nothing_of_running_ones(tmp_path: Path) -> None:
    spot = SqliteSpot(tmp_path)
    _fill(spot)
    folder = tmp_path / "backups"
    folder.mkdir()
    with program(_KILLED_BACKUP, folder / "killed") as killed:
        said(killed, "begun")
    assert len(list(folder.iterdir())) == 1
    with open_store(spot.where, mode="read") as store:
        with program(_KILLED_BACKUP, folder / "running") as running:
            said(running, "begun")
            assert len(list(folder.iterdir())) == 1
            backup(store, folder / "whole")
            assert len(list(folder.iterdir())) == 2
        backup(store, folder / "last")
    assert {path.name for path in folder.iterdir()} == {"whole", "last"}


def test_programs_that_are_missing_or_too_old_are_named(
    postgresql_spot: PostgresqlSpot, tmp_path: Path, environment: MutableMapping[str, str]
) -> None:
    _fill(postgresql_spot)
    environment["PATH"] = str(tmp_path)
    with open_store(postgresql_spot.where, mode="read") as store:
        with pytest.raises(InputError, match="needs the program pg_dump"):
            backup(store, tmp_path / "copy")
        old = tmp_path / "pg_dump"
        old.write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 9.6.1'\n")
        old.chmod(0o700)
        with pytest.raises(InputError, match="pg_dump here is of 9"):
            backup(store, tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir() if "copy" in path.name] == []
