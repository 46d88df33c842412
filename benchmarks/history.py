"""Cost of long histories per sample: import, snapshots, Parquet and replays.

``python -m benchmarks.history [SAMPLES] [FOLDER]``: so many samples of 63 regions, 10 million if
not stated, one a link every half hour, in a folder that is removed at the end. Every step is run by
a process of its own, whose processor time and peak memory are the figures. With ``--parquet``
the data set is written as such at once, and what reads it is measured: no store is made of it all.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path

from benchmarks.grid import synthetic
from benchmarks.importing import VMS
from benchmarks.processes import Cost, cost
from benchmarks.snapshots import EVERY_S, FIRST_S, NEW_SAMPLES, imported, write_samples
from benchmarks.table import show

SAMPLES = 10_000_000
REPLAYED = ("--volume", "500GB", "--connections", "64", "--step", "2h")


def steps(folder: Path, samples: int) -> Iterator[tuple[str, Cost, int]]:
    """Yield each step, its cost, and the bytes that it wrote (0 if none)."""
    path, db, data = folder / "samples.csv", folder / "samples.db", folder / "samples"
    write_samples(path, samples)
    whole = imported(path, db)
    yield "import, and the first snapshot", whole, _bytes(db)
    path.unlink()
    write_samples(path, NEW_SAMPLES, samples)
    yield f"import of {NEW_SAMPLES} more, and a snapshot", imported(path, db), _bytes(db)
    yield (
        "all read again: relayd data store rebuild",
        _relayd("data", "store", "rebuild", "--db", db),
        0,
    )
    yield (
        "export as Parquet",
        _relayd("data", "export", "samples", "-o", data, "--db", db),
        _bytes(data),
    )
    yield "backtest of the store", _relayd("study", "backtest", *REPLAYED, "--db", db), 0
    yield from reading(data)


def reading(data: Path) -> Iterator[tuple[str, Cost, int]]:
    """Yield the steps that read a data set of Parquet files."""
    yield "backtest of Parquet", _relayd("study", "backtest", *REPLAYED, "--db", data), 0
    yield "report of Parquet", _relayd("study", "report", "--section", "relays", "--db", data), 0
    newest = data.with_name("newest.db")
    words = ("import", "parquet", data, "--trust", "--newest", "--db", newest)
    yield "import of what counts, and a snapshot", _relayd(*words), _bytes(newest)


def write_data_set(folder: Path, samples: int) -> None:
    """Write the same samples as Parquet, a file for each day."""
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    grid, random = synthetic(), np.random.default_rng(1)
    pairs = list(permutations(grid.regions, 2))
    usual = np.array([grid.pair_gbps[pair] for pair in pairs]) * 1000.0
    ends = [pyarrow.array([pair[at] for pair in pairs]).dictionary_encode() for at in (0, 1)]
    vms = [
        pyarrow.array([VMS[pair[at].partition(":")[0]] for pair in pairs]).dictionary_encode()
        for at in (0, 1)
    ]
    a_day = int(86400 / EVERY_S)
    rounds, first = -(-samples // len(pairs)), 0
    while first < rounds:
        count = min(a_day, rounds - first)
        rows = np.tile(np.arange(len(pairs)), count)
        at_s = FIRST_S + EVERY_S * (first + np.repeat(np.arange(count), len(pairs)))
        values = np.round(usual[rows] * random.uniform(0.9, 1.0, len(rows)), 2)
        table = pyarrow.table(
            {
                "src": ends[0].take(pyarrow.array(rows)),
                "dst": ends[1].take(pyarrow.array(rows)),
                "metric": pyarrow.array(["aggregate_mbps"] * len(rows)).dictionary_encode(),
                "value": values,
                "measured_at_s": at_s.astype("f8"),
                "tool": pyarrow.array(["iperf3"] * len(rows)).dictionary_encode(),
                "connections": np.full(len(rows), 64),
                "duration_s": np.full(len(rows), 5.0),
                "src_vm": vms[0].take(pyarrow.array(rows)),
                "dst_vm": vms[1].take(pyarrow.array(rows)),
            }
        )
        month = datetime.fromtimestamp(float(at_s[0]), UTC).strftime("month=%Y-%m")
        (folder / month).mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(table, folder / month / f"{first}.parquet", compression="zstd")
        first += count


def _relayd(*words: object) -> Cost:
    return cost("-m", "relayd", *words)


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")
    return sum(file.stat().st_size for file in files if file.is_file())


def main() -> None:
    """Print a table."""
    words = [word for word in sys.argv[1:] if word != "--parquet"]
    samples = int(words[0]) if words else SAMPLES
    within = words[1] if len(words) > 1 else None
    rows = []
    with tempfile.TemporaryDirectory(dir=within) as name:
        if "--parquet" in sys.argv:
            data = Path(name) / "samples"
            write_data_set(data, samples)
            done = iter([("data set", Cost(0.0, 0.0), _bytes(data)), *reading(data)])
        else:
            done = steps(Path(name), samples)
        for what, took, made in done:
            a_sample = f"{took.cpu_s / samples * 1e6:.2f} us"
            size = f"{made / 1e6:,.0f} MB, {made / samples:.1f} B" if made else ""
            rows.append((what, str(took), a_sample, size))
            print(*rows[-1], sep="; ", file=sys.stderr, flush=True)
    show(f"{samples:,} samples", ("", "CPU, peak memory", "a sample", "made, a sample"), rows)


if __name__ == "__main__":
    main()
