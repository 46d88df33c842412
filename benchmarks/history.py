"""Cost of long histories per sample: import, snapshots, reports, Parquet and replays.

``python -m benchmarks.history [SAMPLES] [FOLDER]``: so many samples of 63 regions, 10 million if
not stated, one a link every half hour, in a folder that is removed at the end. Every step is run by
a process of its own, whose processor time and peak memory are the figures. Of a million
samples, some have goals.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.processes import Cost, cost
from benchmarks.snapshots import NEW_SAMPLES, imported, write_samples
from benchmarks.table import judge, reference_ms, show

SAMPLES = 10_000_000
REGIONS = 63
GOALS = {
    "import, and the first snapshot": (15.0, 300.0),
    "import of 1 more, and a snapshot": (0.7, 150.0),
    "report of the store": (25.0, 400.0),
}
GOALS_AT = 1_000_000
"""Samples. Goals are seconds where the fixed loop takes 1 ms, and MB."""
REPLAYED = ("--volume", "500GB", "--connections", "64", "--step", "2h")


def steps(folder: Path, samples: int) -> Iterator[tuple[str, Cost, int]]:
    """Yield each step, its cost, and the bytes that it wrote (0 if none)."""
    path, db, data, newest = (folder / name for name in ("a.csv", "a.db", "samples", "newest.db"))
    write_samples(path, REGIONS, samples)
    yield "import, and the first snapshot", imported(path, db), _bytes(db)
    for begin, more in ((samples, 1), (samples + 1, NEW_SAMPLES)):
        write_samples(path, REGIONS, more, begin)
        yield f"import of {more} more, and a snapshot", imported(path, db), _bytes(db)
    commands: tuple[tuple[str, tuple[object, ...], Path | None], ...] = (
        ("all read again: relayd data store rebuild", ("data", "store", "rebuild"), None),
        ("export as Parquet", ("data", "export", "samples", "-o", data), data),
        ("report of the store", ("study", "report", "-o", folder / "r.md"), None),
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
    rows, loop_ms = [], reference_ms()
    with tempfile.TemporaryDirectory(dir=within) as name:
        for what, took, made in steps(Path(name), samples):
            a_sample = f"{took.cpu_s / samples * 1e6:.2f} us"
            size = f"{made / 1e6:,.0f} MB, {made / samples:.1f} B" if made else ""
            goals = ""
            if samples == GOALS_AT and what in GOALS:
                most_s, most_mb = GOALS[what]
                judge(f"{what}, s", took.cpu_s / loop_ms, most_s)
                judge(f"{what}, MB", took.peak_mb, most_mb)
                goals = f"{most_s:g} s, {most_mb:g} MB"
            rows.append((what, str(took), a_sample, size, goals))
            print(*rows[-1], sep="; ", file=sys.stderr, flush=True)
    goals = f"goals, at a loop of 1 ms ({loop_ms:.2g} ms here)"
    header = "", "CPU, peak memory", "a sample", "made, a sample", goals
    show(f"{samples:,} samples", header, rows)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else SAMPLES, *sys.argv[2:])
