"""Durability: processes that write are killed at random moments, and nothing promised is lost."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from planner.model.errors import StoreError
from probes.samples import Sample
from relayd.store import open_store
from relayd.store.samples.ingest import append
from tests.relayd.store.engines import ON_BOTH, Spot, SqliteSpot

_ROOT = Path(__file__).parents[3]
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

_APPEND = (
    _HEAD
    + """
with open_store(sys.argv[1], mode="create") as store:
    for group in range(int(sys.argv[2]), 1_000_000):
        append(store, list(rows(group, 7)), f"{group}")
        say("stored", group)
"""
)


def _killed(code: str, where: str, start: int, lines: int, delay_s: float) -> set[int]:
    """Run a writer, kill it after so many lines of output; return what it said was stored."""
    command = [sys.executable, "-c", code, where, str(start), str(_FILE_ROWS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as writer:
        assert writer.stdout is not None
        output = [writer.stdout.readline() for _ in range(lines)]
        time.sleep(delay_s)
        writer.send_signal(signal.SIGKILL)
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


@ON_BOTH
def test_a_killed_import_leaves_all_of_a_file_or_nothing(spot: Spot) -> None:
    noise = random.Random(11)
    promised: set[int] = set()
    for kill in range(5):
        # A file takes 12 chunks: some kills hit the first, some the third file of a run.
        lines = noise.randrange(1, 30)
        promised |= _killed(_INGEST, spot.where, 1000 * kill, lines, noise.uniform(0, 0.03))
        stored = _groups(spot)
        assert promised <= set(stored)
        assert set(stored.values()) <= {_FILE_ROWS}


@ON_BOTH
def test_an_acknowledged_sample_survives_a_kill(spot: Spot) -> None:
    noise = random.Random(12)
    promised: set[int] = set()
    for kill in range(5):
        lines = noise.randrange(1, 60)
        promised |= _killed(_APPEND, spot.where, 1000 * kill, lines, noise.uniform(0, 0.01))
        stored = _groups(spot)
        assert promised <= set(stored)
        assert set(stored.values()) <= {7}
    assert len(promised) >= 5


def test_a_kill_during_creation_of_a_file_leaves_nothing_that_hinders_the_next_start(
    tmp_path: Path,
) -> None:
    noise = random.Random(13)
    for kill in range(4):
        spot = SqliteSpot(tmp_path / f"{kill}")
        path = Path(spot.where)
        command = [sys.executable, "-c", _APPEND, str(path), "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT) as writer:
            while not path.exists():
                assert writer.poll() is None
            time.sleep(noise.uniform(0, 0.02))
            writer.send_signal(signal.SIGKILL)
        _killed(_APPEND, spot.where, 1000, 1, 0)
        assert set(_groups(spot).values()) == {7}


def _read_until(lines: IO[str], word: str) -> None:
    """Read until a line begins with a word."""
    assert any(line.startswith(word) for line in lines), f"it ended without saying {word!r}"


@ON_BOTH
def test_readers_see_whole_files_while_a_writer_works(spot: Spot) -> None:
    command = [sys.executable, "-c", _INGEST, spot.where, "0", "1500"]
    seen: list[int] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT) as writer:
        assert writer.stdout is not None
        _read_until(writer.stdout, "stored")
        with open_store(spot.where, mode="read") as lasting:
            while len(set(seen)) < 6:
                with open_store(spot.where, mode="read") as brief:
                    rows = list(brief.samples.read())
                assert len(set(rows)) == len(rows)
                seen += [len(rows), sum(1 for _ in lasting.samples.read())]
                _read_until(writer.stdout, "progress")
            # A reader that stands in the middle of its rows neither stops the writer nor sees it.
            streaming = lasting.database.stream("SELECT id FROM samples")
            next(streaming)
            before = lasting.samples.last_id()
            _read_until(writer.stdout, "stored")
            assert sum(1 for _ in streaming) + 1 <= before
        writer.send_signal(signal.SIGKILL)
    assert all(count % 1500 == 0 for count in seen)
    assert seen == sorted(seen)


@ON_BOTH
def test_another_writer_waits_for_its_turn(spot: Spot) -> None:
    code = _APPEND.replace("1_000_000", "int(sys.argv[2]) + 30").replace(
        'mode="create"', 'mode="create", busy_timeout_s=120'
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, spot.where, str(1000 * number)],
            cwd=_ROOT,
            stdout=subprocess.DEVNULL,
        )
        for number in range(4)
    ]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert len(_groups(spot)) == 120
    assert spot.outsider("SELECT count(DISTINCT id) FROM samples") == [(120 * 7,)]


@ON_BOTH
def test_many_processes_create_one_store(spot: Spot) -> None:
    code = (
        "import sys\n"
        "from probes.samples import Sample\n"
        "from relayd.store import open_store\n"
        "from relayd.store.samples.ingest import append\n"
        "sys.stdin.readline()\n"
        "with open_store(sys.argv[1], mode='create', busy_timeout_s=60) as store:\n"
        "    append(store, [Sample('a', 'b', 'rtt_ms', float(sys.argv[2]), 0.0, 'ping')])\n"
    )
    command = [sys.executable, "-c", code, spot.where]
    writers = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, cwd=_ROOT)
        for number in range(6)
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0] * 6
    with open_store(spot.where, mode="read") as store:
        assert store.samples.counts().samples == 6


@ON_BOTH
def test_a_store_opened_for_reading_takes_nothing(spot: Spot) -> None:
    open_store(spot.where, mode="create").close()
    with open_store(spot.where, mode="read") as store:
        with pytest.raises(StoreError, match="read-only"):
            append(store, [Sample("a", "b", "rtt_ms", 1.0, 0.0, "ping")])
        with pytest.raises(StoreError, match="read-only"):
            store.database.rows("INSERT INTO regions (name) VALUES ('x') RETURNING id")
        assert store.samples.counts().samples == 0
