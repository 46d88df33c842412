"""Run every benchmark in turn, each in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys

NAMES = (
    "planning",
    "all_pairs",
    "importing",
    "snapshots",
    "start_up",
    "shuffle",
    "broadcast",
    "service",
    "schedule",
    "dashboard",
    "backtest",
)


def main() -> int:
    """Run those that are named on the command line, or all."""
    for name in sys.argv[1:] or NAMES:
        if name not in NAMES:
            print(f"There is no benchmark {name!r}: choose from {', '.join(NAMES)}.")
            return 2
        # Not from this interpreter: memory and imports of one must not count for the next.
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
