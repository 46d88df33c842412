"""Small tables of times, and what is said of goals."""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
JUDGED = "RELAYD_BENCH_JUDGED"
"""Names the file for :func:`judge`."""
LOOPS = 10_000


def times_s(run: Callable[[T], object], inputs: Iterable[T]) -> list[float]:
    """Return the processor time that each call takes, of all threads."""
    found = []
    for item in inputs:
        start = time.process_time()
        run(item)
        found.append(time.process_time() - start)
    return found


def reference_ms(repeats: int = 20) -> float:
    """Measure the time, in ms, of work that takes 1 ms where goals were set."""

    def loop(_: object) -> None:
        found = {}
        for number in range(LOOPS):
            found[number & 63] = (number, number * 2.0)

    return statistics.median(times_s(loop, range(repeats))) * 1e3


def judge(what: str, ratio: float, goal: float, *, least: bool = False) -> None:
    """Note a ratio within this run and its goal, the most unless said, for ``make bench``."""
    is_met = ratio >= goal if least else ratio <= goal
    bound = f"{'at least' if least else 'at most'} {goal:.4g}"
    row = (what, f"{ratio:.3g}", bound, "met" if is_met else "missed")
    if JUDGED in os.environ:
        with Path(os.environ[JUDGED]).open("a") as file:
            file.write(json.dumps(row) + "\n")


def median_and_p95(seconds: Sequence[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile."""
    return statistics.median(seconds), sorted(seconds)[int(0.95 * (len(seconds) - 1))]


def with_worst(seconds: Sequence[float]) -> str:
    """Return the median and the worst of some times."""
    return f"{written(statistics.median(seconds))} (worst {written(max(seconds))})"


def written(seconds: float) -> str:
    """Return a time with the unit that fits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1.0:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s"


def peak_mb() -> float:
    """Return the greatest resident memory of this process so far, in MB."""
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib / 1e6 if sys.platform == "darwin" else kib * 1024 / 1e6


def show(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, numbers to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    print(f"\n{title}")
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  " + "  ".join(cells).rstrip())
