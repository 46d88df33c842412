"""``kill -9`` at random moments of what builds snapshots and exports samples.

Whatever the moment: the snapshot of before is there, or the whole new one; all samples are; an
export is whole or not there; and the next try succeeds, with the figures of all samples.
"""

from __future__ import annotations

import random
import subprocess
import time
from itertools import permutations
from pathlib import Path

import pyarrow.dataset

from benchmarks.chaos.kills import Outcome, begun, kill
from benchmarks.snapshots import MAKE_SNAPSHOT
from probes.samples import Sample
from relayd.catalogue.loading import load_catalogue
from relayd.snapshots.building import estimated, make_snapshot
from relayd.store import Store, open_store
from relayd.store.samples.ingest import append

REGIONS = 12
ROUNDS = 40
"""Samples of each pair at first: more than are read again from a kept state."""
_PAIRS = list(permutations([f"{'aws' if n % 2 else 'gcp'}:r-{n}" for n in range(REGIONS)], 2))
_BEGIN_S, _EVERY_S = 1.7e9, 1800.0


def kill_builds(where: str, folder: Path, kills: int) -> Outcome:
    """Kill builds of snapshots, rebuilds and exports in turn, each at any time of its run."""
    chance, seen = random.Random(4), Outcome()
    samples = [sample for round_ in range(ROUNDS) for sample in _samples(round_, chance)]
    with open_store(where, mode="create") as store:
        append(store, samples, "first")
        make_snapshot(store, load_catalogue())
    took_s: dict[str, float] = {}
    for number in range(-3, kills):
        what = ("build", "rebuild", "export")[number % 3]
        exported = folder / f"samples-{number}"
        with open_store(where, mode="write") as store:
            if what == "build":
                samples += (new := _samples(ROUNDS + number + 3, chance))
                append(store, new, str(number))
            before = store.snapshots.latest()
        begun_s = time.monotonic()
        process = _begun(what, where, exported)
        if number >= 0:
            time.sleep(took_s[what] * chance.uniform(0.0, 1.1))
            kill(process, seen)
            _look(seen, what, where, exported, samples, before.id if before else "")
            again = folder / f"again-{number}" if exported.exists() else exported
            process = _begun(what, where, again)
        if process.wait():
            seen.wrong.append(f"{what}: the next try ended with {process.returncode}")
        took_s.setdefault(what, time.monotonic() - begun_s)
        _look(seen, what, where, exported, samples, "")
        if what == "export" and not exported.exists():
            seen.wrong.append("the next export left no folder")
        seen.acknowledged += 1
    with open_store(where, mode="read") as store:
        if not _is_of_all_samples(store):
            seen.wrong.append("the last snapshot is not that of all samples")
    return seen


def _begun(what: str, where: str, exported: Path) -> subprocess.Popen[str]:
    command = {
        "build": ("-c", MAKE_SNAPSHOT, where),
        "rebuild": ("-m", "relayd", "data", "store", "rebuild", "--db", where),
        "export": ("-m", "relayd", "data", "export", "samples", "-o", str(exported), "--db", where),
    }
    return begun(command[what])


def _look(
    seen: Outcome, what: str, where: str, exported: Path, samples: list[Sample], before: str
) -> None:
    """Check that the store, its snapshots and an export are whole and have all samples."""
    with open_store(where, mode="read") as store:
        if sorted(store.samples.read()) != sorted(samples):
            seen.wrong.append(f"{what}: samples are not what they were")
        latest = store.snapshots.latest()
        for name in filter(None, (latest and latest.id, before)):
            # Counts and checksums are compared as it is read.
            links = {(link.src, link.dst) for link in store.snapshots.network(name)}
            if not links.issuperset(_PAIRS):
                seen.wrong.append(f"{what}: snapshot {name} is not whole")
    if exported.exists():
        rows = pyarrow.dataset.dataset(exported, partitioning="hive").count_rows()
        if rows != len(samples):
            seen.wrong.append(f"{what}: {rows} of {len(samples)} samples exported")


def _is_of_all_samples(store: Store) -> bool:
    """Return whether the newest snapshot has the figures that all samples give."""
    latest = store.snapshots.latest()
    if latest is None:
        return False
    found = estimated(store, load_catalogue(), through=latest.samples_through)
    links = {(link.src, link.dst): link for link in store.snapshots.network(latest.id)}
    return repr([links[link.src, link.dst] for link in found.network]) == repr(list(found.network))


def _samples(round_: int, chance: random.Random) -> list[Sample]:
    at_s = _BEGIN_S + round_ * _EVERY_S
    return [
        Sample(*pair, "aggregate_mbps", 4000.0 * chance.uniform(0.9, 1.0), at_s, "iperf3", 64, 9.5)
        for pair in _PAIRS
    ]
