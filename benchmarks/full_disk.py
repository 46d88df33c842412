"""Fills the disk of a store in every step: what is acknowledged is stored, and nothing else is.

``python -m benchmarks.full_disk [PLACES]`` makes a small file system in a mount namespace of its
own (Linux; needs user namespaces or root). It leaves a few bytes on it, from none to half a
megabyte in so many places, and imports files, makes a snapshot, plans and records a campaign, backs
up, writes an overlay of the catalogue, makes a first token, and sends samples to a service. After
each attempt it makes room and compares the store with what was said; then the same step must go
well. Exits with 1 otherwise.

``--server`` does the first steps in a store on a PostgreSQL server whose data folder is the file
system (needs root). It also imports files that are larger than what the server has laid out for its
log: it then ends its sessions or itself, and is started again once there is room.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from planner.model.errors import RelaydError, StoreError
from probes.campaign.tasks import ProbeOutcome, ProbeTask
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.catalogue.overlays import add_overlay, overlays_in_force
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.backup import backup, restore
from relayd.store.campaigns import Campaigns
from relayd.store.checking import check
from relayd.store.samples.ingest import append
from relayd.store.tokens import Tokens, first_token
from tests.http.running import Answer, Served, run
from tests.postgresql import PostgresqlServer, server_on
from tests.waiting import eventually

_MOST_LEFT_BYTES = 512 * 1024
_ROWS = 300
_ENDS = ("aws:us-east-1", "aws:sa-east-1")
_NOT_ALLOWED = 77
_MANY_ROWS = 40_000
_LARGE_LEFT_BYTES = tuple(n * 2**20 for n in (0, 4, 12, 20, 28, 36))
_SETTINGS = "autovacuum = off\nmax_wal_size = 32MB\nmin_wal_size = 32MB\nshared_buffers = 8MB\n"
_SAID = (
    *("the disk of the server is full", "No space left"),
    *("has closed the connection", "can't be connected to"),
)


@dataclass(frozen=True)
class Place:
    """Where a step is tried: a store, on a file system that can be filled."""

    where: Path | str  # the store
    disk: Path  # root of the file system
    files: Path  # folder for other files
    # What errors for want of space say, one of these
    said: tuple[str, ...] = ("disk is full", "No space left")
    # Returns once the store can be used again, after there is space
    come_back: Callable[[], None] = lambda: None

    @contextmanager
    def leaving(self, left_bytes: int) -> Iterator[None]:
        """Leave no more than so many bytes free on the disk, in whole pages."""
        filler = self.disk / "filler"
        with filler.open("wb", buffering=0) as file:
            with suppress(OSError):  # it is full
                while True:
                    file.write(bytes(4096))
            file.truncate(max(0, file.tell() - left_bytes))
        try:
            yield
        finally:
            filler.unlink()
        self.come_back()

    def refused(self, action: Callable[[], object]) -> bool:
        """Tell whether an action failed, which must be for want of space."""
        try:
            action()
        except RelaydError as error:
            if not any(words in str(error) for words in self.said):
                raise
            return True
        return False

    def clear(self) -> None:
        """Remove everything from the disk."""
        for path in self.disk.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def samples(count: int, begin_s: float) -> list[Sample]:
    """Return samples of one link that are unlike those of another time."""
    detail = json.dumps({"note": "x" * 60})
    return [
        Sample(*_ENDS, "rtt_ms", 114.0 + n % 7, begin_s + n, "ping", detail=detail)
        for n in range(count)
    ]


def importing(place: Place, left_bytes: int, count: int = _ROWS) -> bool:
    """Import three files; what the command says is what the store holds."""
    path, files = place.where, []
    for number in (1, 2, 3):
        files.append(place.files / f"{number}.csv")
        rows = (
            f"{_ENDS[0]},{_ENDS[1]},{114 + n % 99 / 8},{1.7e9 + 1e6 * number + n}"
            for n in range(count)
        )
        files[-1].write_text("\n".join(["src,dst,rtt_ms,measured_at", *rows, ""]))
    command = ("import", "csv", *map(str, files))
    with place.leaving(left_bytes):
        done = run(*command, db=path)
    code, out, err = done.returncode, done.stdout, done.stderr
    added = [int(found.replace(",", "")) for found in re.findall(r": ([\d,]+) samples added", out)]
    assert code == (0 if "Snapshot " in out else 2), (code, out, err)
    with open_store(path, mode="create") as store:
        assert store.samples.counts().samples == sum(added), (out, err)
        assert bool(store.samples.counts().snapshots) == (code == 0), (out, err)
    if code:
        assert any(words in err for words in place.said), err
        claimed = re.search(r"Stored are ([\d,]+) new samples", err)
        assert int(claimed[1].replace(",", "")) == sum(added) if claimed else not added, err
        assert run(*command, db=path).returncode == 0
    return code == 0


def snapshots(place: Place, left_bytes: int) -> bool:
    """Make a snapshot: it is there as a whole, or the one before it is the newest."""
    path = place.where
    with open_store(path, mode="create") as store:
        append(store, samples(_ROWS, 1.7e9))
        before = make_snapshot(store, load_catalogue())
        append(store, samples(_ROWS, 1.71e9))
    assert before
    with open_store(path, mode="write") as store, place.leaving(left_bytes):
        failed = place.refused(lambda: make_snapshot(store, load_catalogue()))
    with open_store(path, mode="write") as store:
        latest = store.snapshots.latest()
        assert latest
        assert (latest.id == before.id) == failed
        assert store.snapshots.network(latest.id).usual.count == latest.links
        made = make_snapshot(store, load_catalogue())
        assert made
        assert made.id != before.id
    return not failed


def campaigns(place: Place, left_bytes: int) -> bool:
    """Plan a campaign and record its probes: each probe that was recorded is, with its samples."""
    with open_store(place.where, mode="create") as store:
        campaign = Campaigns(store).begin({})
        recorded = 0
        with place.leaving(left_bytes):
            tasks = [ProbeTask("rtt", ((f"a{n}", "b"),), 0, 1.0) for n in range(50)]
            failed = place.refused(lambda: campaign.plan("rtt", tasks))
            for probe in campaign.probes():
                outcome = ProbeOutcome(
                    probe, tuple(samples(20, 1.7e9 + 100 * probe.id)), 0.1, 0.2, 1
                )
                failed = place.refused(partial(campaign.record, [outcome])) or failed
                recorded += not failed
        done = sum(probe.status == "done" for probe in campaign.probes())
        assert done >= recorded
        assert store.samples.counts().samples == 20 * done
        assert abs(campaign.spent()[1] - 0.2 * done) < 1e-9
    return not failed


def backups(place: Place, left_bytes: int) -> bool:
    """Back up onto the disk: the file is whole, or there is none; and restore onto it."""
    path = Path(place.where)
    copy = path.with_name("copy")
    with open_store(path, mode="create") as store:
        append(store, samples(_ROWS, 1.7e9))
        with place.leaving(left_bytes):
            failed = place.refused(lambda: backup(store, copy))
        assert copy.exists() != failed
        assert not [one for one in path.parent.iterdir() if ".part" in one.name]
        if failed:
            backup(store, copy)
    restored = path.with_name("restored.db")
    with place.leaving(left_bytes):
        failed = place.refused(lambda: restore(copy, restored)) or failed
    if failed and not restored.exists():
        restore(copy, restored)
    whole(restored)
    with open_store(restored, mode="read") as store:
        assert store.samples.counts().samples == _ROWS
    return not failed


def overlays(place: Place, left_bytes: int) -> bool:
    """Write an overlay of the catalogue: it is in force as a whole, or not at all."""
    os.environ["RELAYD_CATALOGUE_DIR"] = str(place.files / "catalogue")
    text = "# x\n" * 20_000
    with place.leaving(left_bytes):
        failed = place.refused(lambda: add_overlay(text, "test", date(2026, 11, 22)))
    assert [one.read_text() for one in overlays_in_force()] == ([] if failed else [text])
    add_overlay(text, "test", date(2026, 11, 22))
    del os.environ["RELAYD_CATALOGUE_DIR"]
    return not failed


def first_tokens(place: Place, left_bytes: int) -> bool:
    """Make a first token: it is kept whole or not at all, and valid once it was shown."""
    os.environ["XDG_DATA_HOME"] = str(place.files / "home")
    kept = place.files / "home" / "relayd" / "token"
    made = []
    with open_store(place.where, mode="create") as store:
        tokens = Tokens(store.database)
        with place.leaving(left_bytes):
            failed = place.refused(lambda: made.append(first_token(tokens)))
        assert bool(tokens.list()) == bool(made) != failed
        again = first_token(tokens)
        valid = made[0] or again if made else again
        assert valid
        assert not kept.exists() or kept.read_text() == f"{valid.secret}\n"
    return not failed


Step = Callable[[Place, int], bool]
STEPS: tuple[Step, ...] = (importing, snapshots, campaigns, backups, overlays, first_tokens)


def posts(place: Place, places: Sequence[int]) -> Iterator[bool]:
    """Send samples to a service: 200 says that they are stored, 503 that they are not."""
    with TemporaryDirectory() as elsewhere:
        environment, log = {"RELAYD_SERVE_ACCESS_LOG": "false"}, Path(elsewhere) / "service.log"
        service = Served(place.where, environment=environment, log=log)

        def send(begin_s: float) -> Answer:
            fields = ("src", "dst", "metric", "value", "measured_at_s", "tool")
            rows = [{name: getattr(s, name) for name in fields} for s in samples(_ROWS, begin_s)]
            return service.ask("POST", "/v1/samples", {"samples": rows})

        try:
            held = 0
            for number, left_bytes in enumerate(places):
                with place.leaving(left_bytes):
                    answer = send(1.6e9 + 1000 * number)
                    warned = service.get("/readyz").json["warnings"]
                assert answer.status in (200, 503), answer
                assert any("nearly full" in text for text in warned), warned
                held += answer.json["accepted"] if answer.status == 200 else 0
                with open_store(place.where, mode="read") as store:
                    assert store.samples.counts().samples == held, answer
                yield answer.status == 200
            answer = send(1.5e9)
            assert answer.status == 200, answer
        finally:
            service.stop()


def whole(path: Path | str) -> None:
    """Look for damage."""
    with open_store(path, mode="write") as store:
        damage = check(store.database).damage
    assert not damage, damage


def tried(name: str, attempts: Iterable[bool]) -> None:
    """Print the number of attempts at a step that succeeded in spite of the full disk."""
    went_well = Counter(attempts)
    print(f"{name}: {went_well[True]} went well, {went_well[False]} were refused", flush=True)


def sweep(folder: Path, left: Sequence[int]) -> None:
    """Run all steps in files on a file system."""
    place = Place(folder / "relayd.db", folder, folder)

    def attempt(step: Step, left_bytes: int) -> bool:
        place.clear()
        open_store(place.where, mode="create").close()
        went_well = step(place, left_bytes)
        whole(place.where)
        return went_well

    for step in STEPS:
        tried(step.__name__, (attempt(step, left_bytes) for left_bytes in left))
    place.clear()
    tried("posts", posts(place, left))
    whole(place.where)


def sweep_server(folder: Path, left: Sequence[int]) -> None:
    """Run the first steps on a server whose data are on a file system."""
    with server_on(folder / "server", _SETTINGS) as server, TemporaryDirectory() as files:

        def attempt(step: Step, left_bytes: int) -> bool:
            where = server.new_store()
            again = partial(come_back, server, where)
            went_well = step(Place(where, folder, Path(files), _SAID, again), left_bytes)
            whole(where)
            server.drop_store(where)
            return went_well

        for step in STEPS[:3]:
            tried(step.__name__, (attempt(step, left_bytes) for left_bytes in left))
        large = partial(importing, count=_MANY_ROWS)
        tried("large imports", (attempt(large, left_bytes) for left_bytes in _LARGE_LEFT_BYTES))


def come_back(server: PostgresqlServer, where: str) -> None:
    """Wait until the store can be used, and start the server if it has ended itself."""

    def usable() -> bool:
        try:
            with open_store(where, mode="write") as store:
                store.samples.counts()
        except StoreError:
            if not (server.folder / "data" / "postmaster.pid").exists():
                server.start()
            return False
        return True

    eventually(usable)


def main() -> int:
    """Make the file system, and sweep on it; 77 where none may be made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("places", type=int, nargs="?", help="40, or 10 on a server")
    parser.add_argument("--server", action="store_true", help="PostgreSQL in place of SQLite")
    parser.add_argument("--on", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    places = options.places or (10 if options.server else 40)
    if options.on:
        left = [_MOST_LEFT_BYTES * number // max(1, places - 1) for number in range(places)]
        (sweep_server if options.server else sweep)(options.on, left)
        return 0
    size_mb, alone = (220, "--mount") if options.server else (24, "-rm")
    inside = (
        f'mount -t tmpfs -o size={size_mb}m,mode=755 tmpfs "$1" || exit {_NOT_ALLOWED}; '
        f'exec "$2" -m benchmarks.full_disk --on "$1" "$3" {"--server" * options.server}'
    )
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server is another user
        command = ["unshare", alone, "sh", "-c", inside, "sh", folder, sys.executable, str(places)]
        try:
            return subprocess.run(command, check=False).returncode
        except FileNotFoundError:
            return _NOT_ALLOWED


if __name__ == "__main__":
    sys.exit(main())
