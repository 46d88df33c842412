"""Cost of long histories per sample: import, snapshots, Parquet and replays.

``python -m benchmarks.history [SAMPLES] [FOLDER]``: so many samples of 63 regions, 10 million if
not stated, one a link every half hour, in a folder that is removed at the end. Every step is run by
a process of its own, whose processor time and peak memory are the figures.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.processes import Cost, cost
from benchmarks.snapshots import NEW_SAMPLES, imported, write_samples
from benchmarks.table import show

SAMPLES = 10_000_000
REGIONS = 63
REPLAYED = ("--volume", "500GB", "--connections", "64", "--step", "2h")


def steps(folder: Path, samples: int) -> Iterator[tuple[str, Cost, int]]:
    """Yield each step, its cost, and the bytes that it wrote (0 if none)."""
    path, db, data, newest = (folder / name for name in ("a.csv", "a.db", "samples", "newest.db"))
    write_samples(path, REGIONS, samples)
    yield "import, and the first snapshot", imported(path, db), _bytes(db)
    write_samples(path, REGIONS, NEW_SAMPLES, samples)
    yield f"import of {NEW_SAMPLES} more, and a snapshot", imported(path, db), _bytes(db)
    commands: tuple[tuple[str, tuple[object, ...], Path | None], ...] = (
        ("all read again: relayd data store rebuild", ("data", "store", "rebuild"), None),
        ("export as Parquet", ("data", "export", "samples", "-o", data), data),
        ("backtest of the store", ("study", "backtest", *REPLAYED), None),
        ("backtest of Parquet", ("study", "backtest", *REPLAYED, "--db", data), None),
        ("report of Parquet", ("study", "report", "--section", "relays", "--db", data), None),
        (
            "import of what counts, and a snapshot",
            ("import", "parquet", data, "--trust", "--newest", "--db", newest),
            newest,
        ),
    )
    for what, words, made in commands:
        of = () if "--db" in words else ("--db", db)
        yield what, cost("-m", "relayd", *words, *of), _bytes(made) if made else 0


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else path.parent.glob(f"{path.name}*")
    return sum(file.stat().st_size for file in files if file.is_file())


def main(samples: int = SAMPLES, within: str | None = None) -> None:
    """Print a table."""
    rows = []
    with tempfile.TemporaryDirectory(dir=within) as name:
        for what, took, made in steps(Path(name), samples):
            a_sample = f"{took.cpu_s / samples * 1e6:.2f} us"
            size = f"{made / 1e6:,.0f} MB, {made / samples:.1f} B" if made else ""
            rows.append((what, str(took), a_sample, size))
            print(*rows[-1], sep="; ", file=sys.stderr, flush=True)
    show(f"{samples:,} samples", ("", "CPU, peak memory", "a sample", "made, a sample"), rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else SAMPLES, *sys.argv[2:])
