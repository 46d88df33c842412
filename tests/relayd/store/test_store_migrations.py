"""Migrations: in order, all of the way or not at all, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner.model.errors import StoreError
from probes.samples import Sample
from relayd.store import open_store, schema
from relayd.store.samples.ingest import append

_ROOT = Path(__file__).parents[3]
_NOW = schema.SCHEMA_VERSION
_MIGRATIONS = Path(schema.MIGRATIONS)
_ROWS = [Sample("aws:a", f"gcp:{n}", "rtt_ms", float(n), 1.6e9 + n, "ping") for n in range(200)]
_SECOND = """\
-- A change such as a later version may bring.
CREATE TABLE later_rows (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
CREATE TRIGGER later_rows_stay BEFORE DELETE ON later_rows
BEGIN SELECT RAISE(ABORT, 'rows; stay'); END;
ALTER TABLE snapshots ADD COLUMN note TEXT NOT NULL DEFAULT ''
"""
_THIRD = "INSERT INTO later_rows (name) VALUES ('first');"
_ENDLESS = """\
CREATE TABLE filled AS
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)
SELECT i, hex(randomblob(100)) AS noise FROM n;
"""
_ESTIMATE = "1, 1, 1, 0, 1, 1, NULL, NULL"
_SITE = ", ".join([_ESTIMATE] * 3 + ["NULL"] * 17)
_ORPHAN = f"INSERT INTO sites VALUES (9, 0, 7, '', {_SITE});"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database of this program's schema version, closed."""
    path = tmp_path / "relayd.db"
    with open_store(path, mode="create") as store:
        append(store, _ROWS)
    return path


def _later_version(folder: Path, monkeypatch: pytest.MonkeyPatch, *scripts: str) -> None:
    """Make the program one that knows further migrations."""
    migrations = folder / "migrations"
    shutil.copytree(_MIGRATIONS, migrations, dirs_exist_ok=True)
    for number, script in enumerate(scripts, start=_NOW + 1):
        (migrations / f"{number:04}_later.sql").write_text(script)
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)
    target = _NOW + len(scripts)
    monkeypatch.setattr(schema, "SCHEMA_VERSION", target)
    monkeypatch.setattr("relayd.store.sqlite.opening.SCHEMA_VERSION", target)


def _state(path: Path) -> tuple[int, int, list[tuple[str]]]:
    connection = sqlite3.connect(path)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (samples,) = connection.execute("SELECT count(*) FROM samples").fetchone()
        return version, samples, connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()


def test_the_scripts_are_numbered_without_gaps_up_to_the_version_of_the_program() -> None:
    numbers = sorted(int(path.name[:4]) for path in _MIGRATIONS.glob("*.sql"))
    assert numbers == list(range(1, schema.SCHEMA_VERSION + 1))


def test_an_upgrade_keeps_everything(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _later_version(tmp_path, monkeypatch, _SECOND, _THIRD)
    with open_store(database, mode="write") as store:
        assert set(store.samples.read()) == set(_ROWS)
        assert store.database.rows("SELECT name FROM later_rows") == [("first",)]
        with pytest.raises(sqlite3.IntegrityError, match="rows; stay"):
            store.database.change("DELETE FROM later_rows")
        assert append(store, _ROWS).duplicates == len(_ROWS)
        assert store.database.row("PRAGMA foreign_keys")[0] == 1

    assert _state(database) == (_NOW + 2, 200, [("ok",)])
    with open_store(database, mode="read") as store:
        assert store.samples.counts().samples == 200


def test_a_new_database_gets_all_migrations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _later_version(tmp_path, monkeypatch, _SECOND, _THIRD)
    with open_store(tmp_path / "new.db", mode="create") as store:
        append(store, _ROWS)
    assert _state(tmp_path / "new.db") == (_NOW + 2, 200, [("ok",)])


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        ("INSERT INTO nowhere VALUES (1);", "no such table"),
        ("CREATE TABLE half (", "incomplete input"),
        (_ORPHAN, "refer to rows"),
    ],
)
def test_a_migration_that_fails_leaves_the_old_version(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str, problem: str
) -> None:
    with monkeypatch.context() as later:
        _later_version(tmp_path, later, _SECOND, last)
        with pytest.raises(StoreError, match=problem):
            open_store(database, mode="write")
    assert _state(database) == (_NOW, 200, [("ok",)])
    with open_store(database, mode="write") as store:
        assert append(store, [_ROWS[0]._replace(value=9.5)]).accepted == 1


def test_a_crash_inside_a_migration_leaves_the_old_version(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _later_version(tmp_path, monkeypatch, _SECOND, _ENDLESS)
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from relayd.store import open_store, schema\n"
        "from relayd.store.sqlite import opening as sqlite_opening\n"
        "schema.MIGRATIONS = Path(sys.argv[2])\n"
        f"schema.SCHEMA_VERSION = sqlite_opening.SCHEMA_VERSION = {_NOW + 2}\n"
        "open_store(sys.argv[1], mode='write')\n"
    )
    command = [sys.executable, "-c", code, str(database), str(tmp_path / "migrations")]
    child = subprocess.Popen(command, cwd=_ROOT)
    log = Path(f"{database}-wal")
    while not log.exists() or log.stat().st_size < 5_000_000:  # well into the last script
        assert child.poll() is None
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()

    assert _state(database) == (_NOW, 200, [("ok",)])
    _later_version(tmp_path, monkeypatch, _SECOND, _THIRD)
    with open_store(database, mode="write") as store:
        assert set(store.samples.read()) == set(_ROWS)
    assert _state(database) == (_NOW + 2, 200, [("ok",)])
