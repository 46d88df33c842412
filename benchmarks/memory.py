"""The memory of a running service over time, and how much it grew."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

PASSING_S = 30.0
"""A process seen for less time is passing: one that makes a snapshot ends within seconds."""

Seen = list[tuple[float, dict[int, float]]]
"""Times (monotonic), and the MB of each process then: the one watched, and its children."""


def memory_mb(pid: int) -> dict[int, float]:
    """Return the memory of a process and its children: shared pages count by their share."""
    pids, found = [pid], {}
    for number in pids:
        with suppress(OSError):
            children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
            pids += map(int, children)
            rollup = Path(f"/proc/{number}/smaps_rollup").read_text()
            found[number] = float(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1]) / 1e3  # type: ignore[index]
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


def passing(seen: Seen) -> dict[int, float]:
    """Return the processes that came and went within :data:`PASSING_S`, and the most MB of each."""
    first_s: dict[int, float] = {}
    last_s: dict[int, float] = {}
    most_mb: dict[int, float] = {}
    for at_s, processes in seen:
        for pid, mb in processes.items():
            first_s.setdefault(pid, at_s)
            last_s[pid] = at_s
            most_mb[pid] = max(mb, most_mb.get(pid, mb))
    end_s = seen[-1][0]
    return {
        pid: mb
        for pid, mb in most_mb.items()
        if last_s[pid] - first_s[pid] < PASSING_S and last_s[pid] < end_s
    }


def growth(seen: Seen, warm_up_s: float) -> float:
    """Return how much memory grew after the warm-up: last third over first, less 1.

    Of the processes that last: a larger share of the time in which a snapshot is made is no growth.
    """
    passed = passing(seen)
    steady_s = seen[0][0] + warm_up_s
    steady = [
        sum(mb for pid, mb in processes.items() if pid not in passed)
        for at_s, processes in seen
        if at_s >= steady_s
    ]
    third = max(1, len(steady) // 3)
    return median(steady[-third:]) / median(steady[:third]) - 1
