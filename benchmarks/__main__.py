"""Run every benchmark in turn, each in an interpreter of its own, and compare with goals.

All: one table of goals, each a ratio within the run, *met* or *missed*; times are in those that a
fixed loop takes (:func:`benchmarks.table.reference_ms`). Some by name: their own tables first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.table import JUDGED, show

NAMES = (
    "planning",
    "all_pairs",
    "many",
    "snapshots",
    "start_up",
    "shuffle",
    "broadcast",
    "service",
    "schedule",
    "dashboard",
    "backtest",
    "holds",
)


def main() -> int:
    """Run those that are named on the command line, or all; 1 if one misses a goal or fails."""
    named = sys.argv[1:]
    if unknown := [name for name in named if name not in NAMES]:
        print(f"There is no benchmark {unknown[0]!r}: choose from {', '.join(NAMES)}.")
        return 2
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        judged = Path(folder) / "judged"
        judged.touch()
        for name in named or NAMES:
            # Not from this interpreter: memory and imports of one must not count for the next.
            ended = subprocess.run(
                [sys.executable, "-m", f"benchmarks.{name}"],
                check=False,
                env={**os.environ, JUDGED: str(judged)},
                stdout=None if named else subprocess.DEVNULL,
            )
            if ended.returncode:
                rows.append((f"{name} ends", f"exit {ended.returncode}", "0", "missed"))
        rows += [tuple(json.loads(line)) for line in judged.read_text().splitlines()]
    show("Goals, as ratios within this run", ("", "ratio", "goal", ""), rows)
    return int(any(row[-1] == "missed" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
