"""Processor time of ``relayd plan`` and of ``pip --version`` on the same interpreter.

Every round runs each command once, so that all meet the same machine.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.table import judge, show

REPEATS = 15
ROOT = Path(__file__).resolve().parents[1]
PLAN = ["-m", "relayd", "plan", "--src", "us-east", "--dst", "sa", "--volume", "500GB"]
COMMANDS = {"relayd plan": PLAN, "pip --version": ["-m", "pip", "--version"], "pass": ["-c", ""]}


def cpu_s(arguments: list[str], home: Path) -> float:
    """Run Python to its end, output discarded; return the processor time that it took."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RELAYD_", "PYTHON"))}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        cwd=home,
        env={**kept, "HOME": str(home), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for arguments in COMMANDS.values():
            cpu_s(arguments, home)  # modules compiled, catalogue checked
        rounds = [{k: cpu_s(v, home) for k, v in COMMANDS.items()} for _ in range(REPEATS)]
    lines = []
    for name in COMMANDS:
        ratio = median(one[name] / one["pip --version"] for one in rounds)
        if name == "relayd plan":
            judge("relayd plan, processor time of pip --version", ratio, 1.3)
        lines.append((name, f"{median(one[name] for one in rounds):.3f} s", f"{ratio:.2f}"))
    show(f"Processor time, median of {REPEATS}", ("", "CPU", "x pip --version"), lines)


if __name__ == "__main__":
    main()
