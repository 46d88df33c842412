"""Processor time of ``relayd plan`` and of ``pip --version`` on the same interpreter.

Every round runs each command once, so that all meet the same machine.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.processes import cost
from benchmarks.table import judge, show
from tests.http.running import ROOT

REPEATS = 15
PLAN = ["-m", "relayd", "plan", "--src", "us-east", "--dst", "sa", "--volume", "500GB"]
COMMANDS = {"relayd plan": PLAN, "pip --version": ["-m", "pip", "--version"], "pass": ["-c", ""]}


def main() -> None:
    """Print the table."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RELAYD_", "PYTHON"))}
    with tempfile.TemporaryDirectory() as home:
        environment = {**kept, "HOME": home, "PYTHONPATH": str(ROOT)}
        rounds = [
            {
                name: cost(*words, environment=environment, folder=Path(home)).cpu_s
                for name, words in COMMANDS.items()
            }
            for _ in range(1 + REPEATS)
        ][1:]  # in the first, modules are compiled and the catalogue is checked
    lines = []
    for name in COMMANDS:
        ratio = median(one[name] / one["pip --version"] for one in rounds)
        if name == "relayd plan":
            judge("relayd plan, processor time of pip --version", ratio, 1.3)
        lines.append((name, f"{median(one[name] for one in rounds):.3f} s", f"{ratio:.2f}"))
    show(f"Processor time, median of {REPEATS}", ("", "CPU", "x pip --version"), lines)


if __name__ == "__main__":
    main()
