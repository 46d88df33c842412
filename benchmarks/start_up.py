"""Wall time of ``relayd plan`` from a shell, beside interpreters that only import something.

Every round runs each command once, so that all meet the same machine; ratios are to the bare
interpreter of the same round.
"""

from __future__ import annotations

import csv
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.grid import grid
from benchmarks.table import median_and_p95, show, times_s, written

REPEATS = 15
BARE = "python -c pass"
MOST = {
    "relayd plan (baseline)": "5",
    "relayd plan (stored snapshot)": "5",
    "relayd --version": "2",
}
ROOT = Path(__file__).resolve().parents[1]
PLAN = ("-m", "relayd", "plan", "--src", "us-east", "--dst", "sa", "--volume", "500GB")
REFERENCES = ("numpy", "pydantic", "networkx", "aiohttp", "ortools.linear_solver.pywraplp")


def environment(home: Path) -> dict[str, str]:
    """Return an environment of a user of one's own, with nothing stored."""
    # Without PYTHONDONTWRITEBYTECODE, too: an installed package is compiled.
    own = ("RELAYD_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    folders = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    return {**kept, **dict.fromkeys(folders, str(home)), "PYTHONPATH": str(ROOT)}


def make_store(home: Path) -> Path:
    """Import the whole grid, so that a snapshot is there."""
    table, db = home / "grid.csv", home / "grid.db"
    measured, _ = grid()
    with table.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["src", "dst", "aggregate_mbps", "connections", "duration_s", "measured_at"])
        rows.writerows(
            [src, dst, gbps * 1000, 64, 60, "2022-01-15"]
            for (src, dst), gbps in measured.pair_gbps.items()
            if gbps > 0
        )
    run(["-m", "relayd", "import", "csv", str(table), "--db", str(db)], home)
    return db


def run(arguments: list[str], home: Path) -> None:
    """Run Python to its end, output discarded."""
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        cwd=home,
        env=environment(home),
        stdout=subprocess.DEVNULL,
    )


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        db = make_store(home)
        commands = {
            "relayd plan (baseline)": [*PLAN],
            "relayd plan (stored snapshot)": [*PLAN, "--db", str(db)],
            "relayd --version": ["-m", "relayd", "--version"],
            BARE: ["-c", "pass"],
        }
        for name in REFERENCES:
            if importlib.util.find_spec(name.partition(".")[0]):
                statement = (
                    "from pydantic import BaseModel" if name == "pydantic" else f"import {name}"
                )
                commands[f"import {name}"] = ["-c", statement]
        for command in commands.values():
            run(command, home)  # warm: files cached, catalogue checked
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(REPEATS):
            for name, command in commands.items():
                seconds[name] += times_s(lambda command: run(command, home), [command])
        lines = []
        for name, taken in seconds.items():
            ratio = median(one / bare for one, bare in zip(taken, seconds[BARE], strict=True))
            middle, p95 = median_and_p95(taken)
            lines.append((name, written(middle), written(p95), f"{ratio:.1f}", MOST.get(name, "")))
    show(f"Start-up, median of {REPEATS}", ("", "median", "p95", "x bare", "at most"), lines)


if __name__ == "__main__":
    main()
