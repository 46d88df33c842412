"""Links that processes map from one file are those of the store; unused files go."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from planner.model.columns.links import LinkColumns
from relayd.sources.shared_columns import MappedColumns, SharedColumns
from relayd.store import open_store
from tests.dashboard.fleets import store_with_history

SPAWN = get_context("spawn")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_with_history(tmp_path_factory.mktemp("history"))


def stored(db: Path) -> Callable[[], LinkColumns]:
    def read() -> LinkColumns:
        with open_store(db, mode="read") as store:
            row = store.snapshots.latest()
            assert row
            return store.snapshots.links(row.id)

    return read


def refused() -> LinkColumns:
    raise AssertionError("What is there is not read again.")


def files(folder: Path) -> list[Path]:
    return list(folder.glob("*.columns"))


def test_mapped_links_are_those_of_the_store(store: Path, tmp_path: Path) -> None:
    read, shared = stored(store), SharedColumns(tmp_path)
    links = list(read())
    assert links
    mapped = shared.get("a", read)
    assert list(mapped) == links
    assert list(shared.get("a", refused)) == links
    # A worker gets the path, not the figures.
    assert len(pickle.dumps(mapped)) < len(pickle.dumps(read())) / 2
    again = pickle.loads(pickle.dumps(mapped))
    assert isinstance(again, MappedColumns)
    assert list(again) == links
    assert [path.stat().st_mode & 0o777 for path in files(tmp_path)] == [0o600]
    # None of a name needs no file.
    assert len(shared.get("none", lambda: LinkColumns({}, {}, {}))) == 0
    assert len(files(tmp_path)) == 1


def _get(folder: Path, db: Path, counted: SimpleQueue[int], begin: Event) -> None:
    """Map the columns when told to, say how many were read and how many there are, and stay."""
    reads = 0

    def read() -> LinkColumns:
        nonlocal reads
        reads += 1
        return stored(db)()

    begin.wait()
    found = SharedColumns(folder).get("a", read)
    counted.put(reads)
    counted.put(len(found))
    signal.pause()


def test_of_those_that_ask_at_once_one_reads_and_unused_files_go(
    store: Path, tmp_path: Path
) -> None:
    links = len(stored(store)())
    counted, begin = SPAWN.SimpleQueue(), SPAWN.Event()
    others = [SPAWN.Process(target=_get, args=(tmp_path, store, counted, begin)) for _ in range(2)]
    for process in others:
        process.start()
    begin.set()
    assert sorted(counted.get() for _ in range(4)) == [0, 1, links, links]
    shared = SharedColumns(tmp_path)
    kept = shared.get("a", refused)
    shared.get("b", stored(store))  # and let go at once
    assert len(files(tmp_path)) == 2
    shared.remove_unused()
    assert len(files(tmp_path)) == 1
    del kept
    for process in others:  # each has it until it is killed
        shared.remove_unused()
        assert len(files(tmp_path)) == 1
        process.kill()
        process.join()
    shared.remove_unused()
    assert not files(tmp_path)


def test_where_no_file_can_be_made_each_has_its_own(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = list(stored(store)())
    assert list(SharedColumns(tmp_path / "missing").get("a", stored(store))) == links

    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pickle, "dumps", full)  # the blocks are written by then
    assert list(SharedColumns(tmp_path).get("a", stored(store))) == links
    assert [path.name for path in tmp_path.iterdir() if path.name != "turn"] == []
