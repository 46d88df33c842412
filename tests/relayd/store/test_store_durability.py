"""Durability: processes that write are killed at random moments, and nothing promised is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from planner.model.errors import StoreError
from relayd.store import open_store
from relayd.store.samples.ingest import append
from tests.relayd.building import pings
from tests.relayd.store.engines import ON_BOTH, ROOT, Spot, SqliteSpot, program, said

_FILE_ROWS = 6000

_HEAD = """\
import sys
from probes.samples import Sample
from relayd.store import open_store
from relayd.store.samples import ingest
from relayd.store import sqlite
from relayd.store.samples.ingest import Batch, append

def rows(file, count):
    for n in range(count):
        yield Sample(f"aws:{n % 13}", f"gcp:{n % 11}", "rtt_ms", float(n), float(file), "ping")

def say(*words):
    print(" ".join(map(str, words)) + "\\n", end="", flush=True)
"""

# Small chunks and a small cache, so that much of an unfinished file is on disk already.
_INGEST = (
    _HEAD
    + """
ingest._CHUNK, sqlite.CACHE_KIB = 500, 50
with open_store(sys.argv[1], mode="create") as store:
    for file in range(int(sys.argv[2]), 1_000_000):
        ingest.ingest(store, Batch(f"{file}", "csv"), rows(file, int(sys.argv[3])),
                      progress=lambda n: say("progress", file, n))
        say("stored", file)
"""
)

APPEND = (
    _HEAD
    + """
patience_s = float((*sys.argv, 5.0)[4])
with open_store(sys.argv[1], mode="create", busy_timeout_s=patience_s) as store:
    for group in range(int(sys.argv[2]), int(sys.argv[2]) + int(sys.argv[3])):
        append(store, list(rows(group, 7)), f"{group}")
        say("stored", group)
"""
)


def _killed(code: str, where: str, start: int, lines: int, delay_s: float) -> set[int]:
    """Run a writer, kill it after so many lines of output; return what it said was stored."""
    with program(code, where, start, _FILE_ROWS) as writer:
        output = [writer.stdout.readline() for _ in range(lines)]
        time.sleep(delay_s)
        writer.kill()
        output += writer.stdout.readlines()
        assert writer.wait() == -signal.SIGKILL
    # The last line may have been cut off by the kill; then nothing was promised by it.
    whole = [line for line in output if line.endswith("\n")]
    return {int(line.split()[1]) for line in whole if line.startswith("stored")}


def _groups(spot: Spot) -> dict[int, int]:
    """Return how many samples each file or group has, after checking the database."""
    spot.check()
    with open_store(spot.where, mode="read") as store:
        sizes = dict(store.database.rows("SELECT measured_at_s, count(*) FROM samples GROUP BY 1"))
        counts = store.samples.counts()
    assert counts.samples == sum(sizes.values())
    assert counts.batches == len(sizes)
    return sizes


@pytest.mark.parametrize(
    ("spot", "code", "rows"),
    [
        ("sqlite", _INGEST, _FILE_ROWS),
        ("sqlite", APPEND, 7),
        ("postgresql", _INGEST, _FILE_ROWS),
        ("postgresql", APPEND, 7),
    ],
    indirect=["spot"],
)
def test_a_kill_leaves_all_of_what_was_acknowledged_and_whole_files_or_nothing(
    spot: Spot, code: str, rows: int
) -> None:
    noise = random.Random(11)
    promised: set[int] = set()
    for kill in range(5):
        # A file takes 12 chunks: some kills hit the first, some the third file of a run.
        lines, delay_s = noise.randrange(1, 30), noise.uniform(0, 0.03)
        promised |= _killed(code, spot.where, 1000 * kill, lines, delay_s)
        stored = _groups(spot)
        assert promised <= set(stored)
        assert set(stored.values()) <= {rows}
    assert code == _INGEST or len(promised) >= 5


def test_a_kill_during_creation_of_a_file_leaves_nothing_that_hinders_the_next_start(
    tmp_path: Path,
) -> None:
    noise = random.Random(13)
    for kill in range(4):
        spot = SqliteSpot(tmp_path / f"{kill}")
        with program(APPEND, spot.where, 0, 1000) as writer:
            while not Path(spot.where).exists():
                assert writer.wait(0) is None
            time.sleep(noise.uniform(0, 0.02))
        _killed(APPEND, spot.where, 1000, 1, 0)
        assert set(_groups(spot).values()) == {7}


@ON_BOTH
def test_readers_see_whole_files_while_a_writer_works(spot: Spot) -> None:
    seen: list[int] = []
    with program(_INGEST, spot.where, 0, 1500) as writer:
        said(writer, "stored")
        with open_store(spot.where, mode="read") as lasting:
            while len(set(seen)) < 6:
                with open_store(spot.where, mode="read") as brief:
                    rows = list(brief.samples.read())
                assert len(set(rows)) == len(rows)
                seen += [len(rows), sum(1 for _ in lasting.samples.read())]
                said(writer, "progress")
            # A reader that stands in the middle of its rows neither stops the writer nor sees it.
            streaming = lasting.database.stream("SELECT id FROM samples")
            next(streaming)
            before = lasting.samples.last_id()
            said(writer, "stored")
            assert sum(1 for _ in streaming) + 1 <= before
    assert all(count % 1500 == 0 for count in seen)
    assert seen == sorted(seen)


@ON_BOTH
def test_many_processes_create_one_store_and_write_in_turn(spot: Spot) -> None:
    with ExitStack() as stack:
        writers = [
            stack.enter_context(program(APPEND, spot.where, 1000 * number, 30, 120))
            for number in range(4)
        ]
        assert [writer.wait() for writer in writers] == [0] * 4
    assert len(_groups(spot)) == 120
    assert spot.outsider("SELECT count(DISTINCT id) FROM samples") == [(120 * 7,)]


@ON_BOTH
def test_a_store_opened_for_reading_takes_nothing(spot: Spot) -> None:
    open_store(spot.where, mode="create").close()
    with open_store(spot.where, mode="read") as store:
        with pytest.raises(StoreError, match="read-only"):
            append(store, pings(1))
        with pytest.raises(StoreError, match="read-only"):
            store.database.rows("INSERT INTO regions (name) VALUES ('x') RETURNING id")
        assert store.samples.counts().samples == 0


@pytest.mark.thorough
def test_on_a_full_disk_what_is_said_is_stored_is_and_nothing_else() -> None:
    """The short form of ``python -m benchmarks.full_disk``."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.full_disk", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 77 and not os.environ.get("CI"):
        pytest.skip("may not make a small file system here")
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stdout.splitlines() if "were refused" in line]) == 7
