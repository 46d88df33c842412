"""The memory of a running service over time, and how much it grew."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

Seen = list[tuple[float, list[float]]]
"""Times (monotonic), and the MB of a process and of each of its children then."""


def memory_mb(pid: int) -> list[float]:
    """Return the memory of a process and its children: shared pages count by their share."""
    pids, found = [pid], []
    for number in pids:
        with suppress(OSError):
            children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
            pids += map(int, children)
            rollup = Path(f"/proc/{number}/smaps_rollup").read_text()
            found.append(float(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1]) / 1e3)  # type: ignore[index]
    return found


@contextmanager
def watched_memory(pid: int) -> Iterator[Seen]:
    """Note the memory of a process and its children once a second."""
    seen: Seen = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(1.0):
            seen.append((time.monotonic(), memory_mb(pid)))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def growth(memory_mb: Sequence[tuple[float, list[float]]], warm_up_s: float) -> float:
    """Return how much memory grew after the warm-up: last third over first, less 1.

    Medians, because a snapshot that is being made takes memory for a moment.
    """
    steady_s = memory_mb[0][0] + warm_up_s
    steady = [sum(mb) for at_s, mb in memory_mb if at_s >= steady_s]
    third = max(1, len(steady) // 3)
    return median(steady[-third:]) / median(steady[:third]) - 1
