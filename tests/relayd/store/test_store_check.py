"""``relayd data store check``: what the engines find of damage, by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from relayd.store import open_store
from relayd.store.checking import check
from relayd.store.database import SCHEMA_VERSION
from relayd.store.samples.ingest import append
from tests.relayd.building import ping
from tests.relayd.conftest import Relayd
from tests.relayd.store.engines import ON_BOTH, PostgresqlSpot, Spot, SqliteSpot

_ROWS = [ping("aws:a", f"gcp:{n % 50}", 30.0 + n, 1.7e9) for n in range(2000)]


@pytest.fixture
def filled(spot: Spot) -> Spot:
    with open_store(spot.where, mode="create") as store:
        append(store, _ROWS)
    return spot


def _problems(spot: Spot) -> list[str]:
    with open_store(spot.where, mode="read") as store:
        return [" ".join(one) for one in check(store.database).damage]


@ON_BOTH
def test_references_to_nowhere_are_found(filled: Spot, relayd: Relayd) -> None:
    assert _problems(filled) == []
    table = "" if filled.engine == "sqlite" else " ON regions"
    filled.outsider(f"DROP TRIGGER regions_stay{table}")
    filled.outsider("DELETE FROM regions WHERE name = 'gcp:7'")
    found = _problems(filled)
    assert "samples  40 refer to rows of regions that are missing" in found
    done = relayd("data", "store", "check", "--db", filled.where)
    assert done.code == 2
    assert "samples: 40 refer to rows of regions that are missing" in done.out
    assert "is damaged in " in done.err


def test_pages_of_noise_and_a_missing_rule_are_found(tmp_path: Path) -> None:
    spot = SqliteSpot(tmp_path)
    with open_store(spot.where, mode="create") as store:
        append(store, _ROWS)
    spot.outsider("DROP TRIGGER samples_stay")
    assert _problems(spot) == ["sqlite_schema trigger samples_stay is missing"]
    path = Path(spot.where)
    content = bytearray(path.read_bytes())
    content[-3 * 4096 : -2 * 4096] = bytes(range(256)) * 16
    path.write_bytes(content)
    assert "malformed" in str(_problems(spot))


def test_a_server_checks_pages_and_indexes_where_it_can(postgresql_spot: PostgresqlSpot) -> None:
    with open_store(postgresql_spot.where, mode="create") as store:
        append(store, _ROWS)
        assert "amcheck" in check(store.database).notes[0]
        postgresql_spot.outsider("CREATE EXTENSION amcheck")
        assert check(store.database) == (SCHEMA_VERSION, [], [])
