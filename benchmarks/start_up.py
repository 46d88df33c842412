"""Wall time of ``relayd plan`` from a shell, beside interpreters that only import something."""

from __future__ import annotations

import csv
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.grid import grid
from benchmarks.table import median_and_p95, show, times_s, written

REPEATS = 10
ROOT = Path(__file__).resolve().parents[1]
PLAN = ("-m", "relayd", "plan", "--src", "us-east", "--dst", "sa", "--volume", "500GB")
REFERENCES = ("numpy", "pydantic", "networkx", "aiohttp", "ortools.linear_solver.pywraplp")


def environment(home: Path) -> dict[str, str]:
    """Return an environment of a user of one's own, with nothing stored."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RELAYD_")}
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
            "python -c pass": ["-c", "pass"],
        }
        for name in REFERENCES:
            if importlib.util.find_spec(name.partition(".")[0]):
                statement = (
                    "from pydantic import BaseModel" if name == "pydantic" else f"import {name}"
                )
                commands[f"import {name}"] = ["-c", statement]
        lines = []
        for name, command in commands.items():
            run(command, home)  # warm: files cached, catalogue checked
            seconds = times_s(lambda command: run(command, home), [command] * REPEATS)
            median, p95 = median_and_p95(seconds)
            target = "150 ms" if name.startswith("relayd plan") else ""
            lines.append((name, written(median), written(p95), target))
    show(f"Start-up, median of {REPEATS}", ("", "median", "p95", "target"), lines)


if __name__ == "__main__":
    main()
