"""Separate processes: their cost, and the growth of a running one's memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

PASSING_S = 30.0
"""A process seen for less time is passing: one that makes a snapshot ends within seconds."""

Seen = list[tuple[float, dict[int, float]]]
"""Times (monotonic), and the MB of each process then: the one watched, and its children."""


class Cost(NamedTuple):
    """Processor time and peak memory of one process, and what it printed."""

    cpu_s: float
    peak_mb: float
    said: str = ""

    def __str__(self) -> str:
        """Return both in words."""
        return f"{self.cpu_s:.2f} s, {self.peak_mb:.0f} MB"


def cost(
    *words: object, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> Cost:
    """Run Python with arguments to its end, and return its cost."""
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, *map(str, words)], stdout=said, cwd=folder, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, list(map(str, words)))
        said.seek(0)
        return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6, said.read())


def cpu_s(pids: Sequence[int]) -> float:
    """Return the processor time that processes have used (Linux)."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in stats) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> dict[int, float]:
    """Return the memory of a process and its children: shared pages count by their share."""
    pids, found = [pid], {}
    for number in pids:
        with suppress(OSError):
            children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
            pids += map(int, children)
            rollup = Path(f"/proc/{number}/smaps_rollup").read_text()
            kib = int(re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)[1])  # type: ignore[index]
            found[number] = kib * 1024 / 1e6
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
    of_each: dict[int, list[tuple[float, float]]] = {}
    for at_s, processes in seen:
        for pid, mb in processes.items():
            of_each.setdefault(pid, []).append((at_s, mb))
    return {
        pid: max(mb for _, mb in looks)
        for pid, looks in of_each.items()
        if looks[-1][0] - looks[0][0] < PASSING_S and looks[-1][0] < seen[-1][0]
    }


def growth(seen: Seen, warm_up_s: float) -> float:
    """Return the growth of memory after the warm-up: last third over first, less 1.

    Of the processes that last: a larger share of the time in which a snapshot is made is no growth.
    """
    passed, steady_s = passing(seen), seen[0][0] + warm_up_s
    steady = [
        sum(mb for pid, mb in processes.items() if pid not in passed)
        for at_s, processes in seen
        if at_s >= steady_s
    ]
    third = max(1, len(steady) // 3)
    return median(steady[-third:]) / median(steady[:third]) - 1
