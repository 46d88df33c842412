"""Fills the disk of a store in every step: what is acknowledged is stored, and nothing else is.

``python -m benchmarks.full_disk [PLACES]`` makes a small file system in a mount namespace of its
own (Linux; needs user namespaces or root). It leaves a few bytes on it, from none to half a
megabyte in so many places, and imports files, makes a snapshot, plans and records a campaign, backs
up, writes an overlay of the catalogue, makes a first token, and sends samples to a service. After
each attempt it makes room and compares the store with what was said; then the same step must go
well. Exits with 1 otherwise.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from planner.model.errors import RelaydError
from probes.campaign.tasks import ProbeOutcome, ProbeTask
from probes.samples import Sample
from relayd.__main__ import main as relayd
from relayd.catalogue.loading import load_catalogue
from relayd.catalogue.overlays import add_overlay, overlays_in_force
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.backup import backup, restore
from relayd.store.campaigns.log import Campaigns
from relayd.store.checking import check
from relayd.store.samples.ingest import append
from relayd.store.tokens import Tokens, first_token

PLACES = 40
_MOST_LEFT_BYTES = 512 * 1024
_DISK_MB = 24
_ROWS = 300
_ENDS = ("aws:us-east-1", "aws:sa-east-1")
_NOT_ALLOWED = 77


class Disk:
    """A file system that can be filled.

    Attributes
    ----------
    folder : Path
        Its root.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    @contextmanager
    def leaving(self, left_bytes: int) -> Iterator[None]:
        """Leave no more than so many bytes free, in whole pages."""
        with self._filler.open("wb", buffering=0) as file:
            with suppress(OSError):  # it is full
                while True:
                    file.write(bytes(4096))
            file.truncate(max(0, file.tell() - left_bytes))
        try:
            yield
        finally:
            self._filler.unlink()

    def clear(self) -> None:
        """Remove everything."""
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@dataclass(frozen=True)
class Place:
    """Where a step is tried.

    Attributes
    ----------
    where : Path or str
        The store.
    disk : Disk
        That it is on.
    files : Path
        Folder for other files.
    said : tuple of str
        What errors for want of space say, one of these.
    come_back : callable
        Returns once the store can be used again, after there is space.
    """

    where: Path | str
    disk: Disk
    files: Path
    said: tuple[str, ...] = ("disk is full", "No space left")
    come_back: Callable[[], None] = lambda: None

    @contextmanager
    def leaving(self, left_bytes: int) -> Iterator[None]:
        """Leave no more than so many bytes free on the disk."""
        with self.disk.leaving(left_bytes):
            yield
        self.come_back()


def samples(count: int, begin_s: float) -> list[Sample]:
    """Return samples of one link that are unlike those of another time."""
    detail = json.dumps({"note": "x" * 60})
    return [
        Sample(*_ENDS, "rtt_ms", 114.0 + n % 7, begin_s + n, "ping", detail=detail)
        for n in range(count)
    ]


def refused(action: Callable[[], object], said: Sequence[str] = Place.said) -> str:
    """Return what an action that failed for want of space said; empty where it went well."""
    try:
        action()
    except RelaydError as error:
        found = str(error)
    else:
        return ""
    assert any(words in found for words in said), found
    return found


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
    command = ["import", "csv", *map(str, files), "--db", str(path)]
    with place.leaving(left_bytes):
        code, out, err = _run(command)
    added = [int(found.replace(",", "")) for found in re.findall(r": ([\d,]+) samples added", out)]
    assert code == (0 if "Snapshot " in out else 2), (code, out, err)
    with open_store(path, mode="create") as store:
        assert store.samples.counts().samples == sum(added), (out, err)
        assert bool(store.samples.counts().snapshots) == (code == 0), (out, err)
    if code:
        assert any(words in err for words in place.said), err
        claimed = re.search(r"Stored are ([\d,]+) new samples", err)
        assert int(claimed[1].replace(",", "")) == sum(added) if claimed else not added, err
        assert _run(command)[0] == 0
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
        failed = refused(lambda: make_snapshot(store, load_catalogue()), place.said)
    with open_store(path, mode="write") as store:
        latest = store.snapshots.latest()
        assert latest
        assert (latest.id == before.id) == bool(failed)
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
            tasks = [_task(n) for n in range(50)]
            failed = refused(lambda: campaign.plan("rtt", tasks), place.said)
            for probe in campaign.probes():
                outcome = ProbeOutcome(
                    probe, tuple(samples(20, 1.7e9 + 100 * probe.id)), 0.1, 0.2, 1
                )
                record = partial(campaign.record, [outcome])
                failed = refused(record, place.said) or failed
                recorded += not failed
        probes = campaign.probes()
        assert len([probe for probe in probes if probe.status == "done"]) >= recorded
        done = len([probe for probe in probes if probe.status == "done"])
        assert store.samples.counts().samples == 20 * done
        assert abs(campaign.spent()[1] - 0.2 * done) < 1e-9
    return not failed


def _task(number: int) -> ProbeTask:
    return ProbeTask("rtt", ((f"a{number}", "b"),), 0, 1.0)


def backups(place: Place, left_bytes: int) -> bool:
    """Back up onto the disk: the file is whole, or there is none; and restore onto it."""
    path, disk = Path(place.where), place.disk
    copy = path.with_name("copy")
    with open_store(path, mode="create") as store:
        append(store, samples(_ROWS, 1.7e9))
        with disk.leaving(left_bytes):
            failed = refused(lambda: backup(store, copy))
        assert copy.exists() != bool(failed)
        assert not [one for one in path.parent.iterdir() if ".part" in one.name]
        if failed:
            backup(store, copy)
    restored = path.with_name("restored.db")
    with disk.leaving(left_bytes):
        failed = refused(lambda: restore(copy, restored)) or failed
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
        failed = refused(lambda: add_overlay(text, "test", date(2026, 11, 22)))
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
            failed = refused(lambda: made.append(first_token(tokens)))
        assert bool(tokens.list()) == bool(made) != bool(failed)
        again = first_token(tokens)
        valid = made[0] or again if made else again
        assert valid
        assert not kept.exists() or kept.read_text() == f"{valid.secret}\n"
    return not failed


STEPS = (importing, snapshots, campaigns, backups, overlays, first_tokens)


def posts(path: Path, disk: Disk, places: list[int]) -> Counter[bool]:
    """Send samples to a service: 200 says that they are stored, 503 that they are not."""
    went_well: Counter[bool] = Counter()
    command = [sys.executable, "-m", "relayd", "serve", "--port", "0", "--no-auth"]
    environment = {**os.environ, "RELAYD_SERVE_WORKERS": "1", "RELAYD_SERVE_ACCESS_LOG": "false"}
    service = subprocess.Popen(
        [*command, "--db", str(path)], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert service.stdout
        url = service.stdout.readline().split()[3]
        held = 0
        for number, left_bytes in enumerate(places):
            with disk.leaving(left_bytes):
                status, answer = _post(url, samples(_ROWS, 1.6e9 + 1000 * number))
                warned = _get(f"{url}/readyz")["warnings"]
            assert status in (200, 503), answer
            assert any("nearly full" in text for text in warned), warned
            held += answer["accepted"] if status == 200 else 0
            with open_store(path, mode="read") as store:
                assert store.samples.counts().samples == held, (status, answer)
            went_well[status == 200] += 1
        status, answer = _post(url, samples(_ROWS, 1.5e9))
        assert status == 200, answer
    finally:
        service.terminate()
        service.wait()
    return went_well


def _post(url: str, rows: list[Sample]) -> tuple[int, dict[str, Any]]:
    fields = ("src", "dst", "metric", "value", "measured_at_s", "tool")
    body = {"samples": [{name: getattr(row, name) for name in fields} for row in rows]}
    request = urllib.request.Request(
        f"{url}/v1/samples", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def _get(url: str) -> dict[str, list[str]]:
    with urllib.request.urlopen(url) as answer:
        found: dict[str, list[str]] = json.load(answer)
    return found


def _run(words: list[str]) -> tuple[int, str, str]:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = relayd(words)
    return code, out.getvalue(), err.getvalue()


def whole(path: Path | str) -> None:
    """Look for damage."""
    with open_store(path, mode="write") as store:
        damage = check(store.database).damage
    assert not damage, damage


def left_bytes_of(places: int) -> list[int]:
    """Return what so many attempts leave free."""
    return [_MOST_LEFT_BYTES * number // max(1, places - 1) for number in range(places)]


def report(step: str, went_well: Mapping[bool, int]) -> None:
    """Print how many attempts at a step went well."""
    print(f"{step}: {went_well[True]} went well, {went_well[False]} were refused", flush=True)


def sweep(folder: Path, places: int) -> None:
    """Run all steps on a file system, and print how many went well in spite of it."""
    disk = Disk(folder)
    left = left_bytes_of(places)
    for step in STEPS:
        went_well: Counter[bool] = Counter()
        for left_bytes in left:
            disk.clear()
            path = folder / "relayd.db"
            open_store(path, mode="create").close()
            went_well[step(Place(path, disk, folder), left_bytes)] += 1
            whole(path)
        report(step.__name__, went_well)
    disk.clear()
    went_well = posts(folder / "relayd.db", disk, left)
    whole(folder / "relayd.db")
    report("posts", went_well)


def main(arguments: list[str]) -> int:
    """Make the file system, and sweep on it; 77 where none may be made."""
    if arguments[:1] == ["--on"]:
        sweep(Path(arguments[1]), int(arguments[2]))
        return 0
    places = arguments[0] if arguments else str(PLACES)
    inside = (
        f'mount -t tmpfs -o size={_DISK_MB}m tmpfs "$1" || exit {_NOT_ALLOWED}; '
        'exec "$2" -m benchmarks.full_disk --on "$1" "$3"'
    )
    with TemporaryDirectory() as folder:
        command = ["unshare", "-rm", "sh", "-c", inside, "sh", folder, sys.executable, places]
        try:
            return subprocess.run(command, check=False).returncode
        except FileNotFoundError:
            return _NOT_ALLOWED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
