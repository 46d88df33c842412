"""Opening: only our own files, nothing overwritten, and an error that says what to do."""

from __future__ import annotations

import os
import random
import shutil
import socket
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import relayd.store.samples.reading  # noqa: F401 - before this process gives up the right to read it
from planner.model.errors import StoreError
from probes.samples import Sample
from relayd.store import default_path, open_store
from relayd.store.opening import Mode
from relayd.store.samples.ingest import Batch, append, ingest
from relayd.store.sqlite import APPLICATION_ID
from tests.relayd.building import ping
from tests.relayd.store.engines import program

_MODES: tuple[Mode, ...] = ("read", "write", "create")
_WRITING: tuple[Mode, ...] = ("write", "create")

_NOBODY = 65534


def _rows(count: int) -> list[Sample]:
    return [
        ping("aws:a", f"gcp:{n % 9}", float(n), 1.6e9 + n, detail=f"{n:0200}") for n in range(count)
    ]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database with some samples, closed."""
    path = tmp_path / "store" / "relayd.db"
    with open_store(path, mode="create") as store:
        ingest(store, Batch("a.csv", "csv"), _rows(1000))
    return path


def _refusal(path: Path, mode: Mode) -> str:
    """Open and use a store that must be refused; return the error's text."""

    def use() -> None:
        with open_store(path, mode=mode) as store:
            list(store.samples.read())
            append(store, _rows(3))

    with pytest.raises(StoreError) as caught:
        use()
    error = caught.value
    assert error.field == "--db"
    assert error.value == str(path)
    assert error.remedy
    assert "\n" not in str(error)
    return str(error)


# --- What is not ours stays as it is ---


def _other_with_a_log(path: Path) -> None:
    """Another application's database as its crash left it: the newest rows are in the log."""
    source = path.with_suffix(".source")
    connection = sqlite3.connect(source)
    connection.executescript(
        "PRAGMA journal_mode = WAL; CREATE TABLE t (id); INSERT INTO t DEFAULT VALUES"
    )
    for suffix in ("", "-wal"):
        shutil.copy(f"{source}{suffix}", f"{path}{suffix}")
    connection.close()


_FOREIGN: dict[str, bytes | str] = {
    "text": b"src,dst,rtt_ms\naws:a,aws:b,3\n" * 100,
    "zeros": bytes(8192),
    "another application": "PRAGMA application_id = 252006674; CREATE TABLE samples (id);",
    "a nameless application": "PRAGMA user_version = 1; CREATE TABLE samples (id);",
    "no tables": "CREATE TABLE passing (id); DROP TABLE passing;",
}


@pytest.mark.parametrize("mode", _MODES)
@pytest.mark.parametrize("kind", [*_FOREIGN, "with a log"])
def test_a_file_that_is_not_ours(tmp_path: Path, kind: str, mode: Mode) -> None:
    path = tmp_path / "notes.db"
    content = _FOREIGN.get(kind)
    if content is None:
        _other_with_a_log(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(content)
    before = _contents(tmp_path)
    assert "is not a relayd database" in _refusal(path, mode)
    assert _contents(tmp_path) == before


def test_a_truncated_database(database: Path) -> None:
    whole = database.read_bytes()
    for size in (50, 100, 1000, 4096, len(whole) // 2, len(whole) - 1):
        database.write_bytes(whole[:size])
        for mode in _MODES:
            text = _refusal(database, mode)
            assert "damaged" in text or "not a relayd database" in text
        assert database.read_bytes() == whole[:size]


def test_damage_anywhere_is_an_error_or_harmless_but_never_a_traceback(database: Path) -> None:
    whole = database.read_bytes()
    noise = random.Random(5)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        at = noise.randrange(0, len(whole) - 512)
        damaged[at : at + 512] = noise.randbytes(512)
        database.write_bytes(damaged)
        for side in ("-wal", "-shm"):
            Path(f"{database}{side}").unlink(missing_ok=True)
        try:
            with open_store(database, mode="write") as store:
                list(store.samples.read())
                append(store, _rows(3))
        except StoreError:
            refused += 1
    assert refused > 30


@pytest.mark.parametrize("mode", _MODES)
def test_things_that_are_not_files(tmp_path: Path, mode: Mode) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "is a folder" in _refusal(folder, mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "not a regular file" in _refusal(pipe, mode)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        assert "not a regular file" in _refusal(tmp_path / "socket", mode)
    (tmp_path / "file").write_text("")
    assert "can't be used" in _refusal(tmp_path / "file" / "relayd.db", mode)
    assert "can't be used" in _refusal(tmp_path / "nul\0", mode)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "can't be used" in _refusal(tmp_path / "loop", mode)


def test_a_file_is_made_only_on_request_and_made_private(tmp_path: Path) -> None:
    path, empty = tmp_path / "new" / "relayd.db", tmp_path / "empty.db"
    for mode in _MODES[:2]:
        assert "does not exist" in _refusal(path, mode)
    assert not path.parent.exists()
    empty.touch()
    open_store(empty, mode="create").close()
    assert stat.S_IMODE(empty.stat().st_mode) == 0o600


# --- Creation ---


def test_a_new_store_is_private(tmp_path: Path) -> None:
    path = tmp_path / "one" / "two" / "relayd.db"
    previous = os.umask(0)
    try:
        with open_store(path, mode="create") as store:
            append(store, _rows(3))
            with open_store(path, mode="read") as reader:
                reader.samples.counts()
                kept = sorted(path.parent.iterdir())
                assert [file.name for file in kept] == [
                    "relayd.db",
                    "relayd.db-shm",
                    "relayd.db-wal",
                ]
                assert {stat.S_IMODE(file.stat().st_mode) for file in kept} == {0o600}
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "name", ["a?mode=memory", "100%25.db", "#1", "ünï.db", os.fsdecode(b"\xff"), "link.db"]
)
def test_any_name_of_a_file_is_a_name(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = "real.db" if name == "link.db" else name
    if file != name:
        Path(name).symlink_to(file)
    for mode in reversed(_WRITING):
        with open_store(name, mode=mode) as store:
            append(store, _rows(3))
    with open_store(tmp_path / file, mode="read") as store:
        assert store.samples.counts().samples == 3
    made = {path.name.removesuffix("-wal").removesuffix("-shm") for path in tmp_path.iterdir()}
    assert made == {name, file}


def test_the_default_is_in_the_data_folder_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if sys.platform != "linux":
        pytest.skip("the place is the system's own elsewhere")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "relayd" / "relayd.db"
    assert list(tmp_path.iterdir()) == []


def test_an_old_sqlite_is_named(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.36.0")
    assert "needs SQLite 3.37" in _refusal(database, "read")


# --- Permissions, as a user whom they bind ---


@contextmanager
def _ordinary_user() -> Iterator[None]:
    """Give up root's rights for a while; nothing to give up for others."""
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(_NOBODY, _NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def own_database() -> Iterator[Path]:
    """A closed database, with its folder, of a user without special rights."""
    folder = Path(tempfile.mkdtemp())  # the test's own folders are closed to others
    path = folder / "store" / "relayd.db"
    with open_store(path, mode="create") as store:
        ingest(store, Batch("a.csv", "csv"), _rows(1000))
    if os.geteuid() == 0:
        for owned in (folder, path.parent, path):
            os.chown(owned, _NOBODY, -1)
    yield path
    path.parent.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.parametrize("folder_mode", [0o500, 0o700])
def test_reading_needs_no_right_to_write(own_database: Path, folder_mode: int) -> None:
    folder = own_database.parent
    before = _contents(folder)
    own_database.chmod(0o400)
    folder.chmod(folder_mode)
    with _ordinary_user():
        with open_store(own_database, mode="read") as store:
            assert store.samples.counts().samples == 1000
            assert len(list(store.samples.read())) == 1000
            assert store.snapshots.latest() is None
        for mode in _WRITING:
            assert "read-only" in _refusal(own_database, mode)
    if folder_mode == 0o500:
        assert _contents(folder) == before
    assert own_database.read_bytes() == before[own_database.name]


def test_no_permission(own_database: Path) -> None:
    for forbidden in (own_database, own_database.parent):
        forbidden.chmod(0)
        with _ordinary_user():
            for mode in _MODES:
                assert "permission" in _refusal(own_database, mode)


_LEFT_OPEN = """\
import os, sys
from relayd.store import open_store
from relayd.store.samples.ingest import append
from tests.relayd.building import pings

append(open_store(sys.argv[1], mode="write"), pings(1))
os._exit(0)
"""


def test_changes_that_are_out_of_reach_are_not_passed_over(own_database: Path) -> None:
    """A crash left changes in the log, and the log can't be used in a read-only folder."""
    folder = own_database.parent
    with program(_LEFT_OPEN, own_database) as writer:
        assert writer.wait() == 0
    assert Path(f"{own_database}-wal").stat().st_size > 0
    Path(f"{own_database}-shm").unlink()
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    with _ordinary_user():
        assert "-wal" in _refusal(own_database, "read")
    folder.chmod(0o700)
    with open_store(own_database, mode="read") as store:
        assert store.samples.counts().samples == 1001


# --- While in use ---


def test_looking_at_a_store_does_not_release_the_locks_of_a_writer(database: Path) -> None:
    """POSIX drops all locks of a process on a file when it closes any descriptor of it."""
    before = _locks(database)
    with open_store(database, mode="write") as writer, writer.database.transaction():
        held = _locks(database)
        assert len(held) > len(before)
        open_store(database, mode="read").close()
        with pytest.raises(StoreError):
            open_store(database.with_name("missing.db"), mode="read")
        assert _locks(database) >= held


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def _locks(path: Path) -> set[str]:
    """Return the locks that the kernel knows on a file and its companions."""
    table = Path("/proc/locks")
    if not table.exists():
        pytest.skip("needs /proc/locks")
    inodes = {
        str(file.stat().st_ino)
        for file in (path, Path(f"{path}-shm"), Path(f"{path}-wal"))
        if file.exists()
    }
    return {
        line.partition(": ")[2]
        for line in table.read_text().splitlines()
        if line.split()[5].rpartition(":")[2] in inodes
    }


def test_a_creation_killed_while_it_marks_the_file_is_taken_up_again(tmp_path: Path) -> None:
    """The mark is in the file, and the journal that takes it back still lies beside it."""
    marked, path = tmp_path / "marked.db", tmp_path / "relayd.db"
    connection = sqlite3.connect(marked, isolation_level=None)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.close()
    # A journal of a first transaction: it says that the database was empty before.
    growing = tmp_path / "growing.db"
    connection = sqlite3.connect(growing, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE t (x)")
    for _ in range(200):
        connection.execute("INSERT INTO t VALUES (zeroblob(3000))")
    journal = Path(f"{growing}-journal").read_bytes()
    connection.execute("ROLLBACK")
    connection.close()
    path.write_bytes(marked.read_bytes())
    Path(f"{path}-journal").write_bytes(journal)
    with open_store(path, mode="create") as store:
        assert store.samples.counts().samples == 0
