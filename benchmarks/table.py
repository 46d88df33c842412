"""Times, small tables of them, tables of pages, and what is said of goals."""

from __future__ import annotations

import json
import os
import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
JUDGED = "RELAYD_BENCH_JUDGED"
"""Names the file for :func:`judge`."""
LOOPS = 10_000


def timed(seconds: list[float], run: Callable[..., T], *inputs: object) -> T:
    """Add the processor time that a call takes, of all threads, to a list; return its value."""
    start = time.process_time()
    value = run(*inputs)
    seconds.append(time.process_time() - start)
    return value


def times_s(run: Callable[[T], object], inputs: Iterable[T]) -> list[float]:
    """Return the processor time that each call takes, of all threads."""
    found: list[float] = []
    for item in inputs:
        timed(found, run, item)
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


def quantile(values: Iterable[float], share: float) -> float:
    """Return a quantile of some values, the nearest rank."""
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1))]


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


def write_table(text: str, name: str, lines: Sequence[str]) -> str:
    """Return a page with the rows between the marks of a table replaced."""
    pattern = re.compile(rf"(<!-- {name} -->\n(?:\|.*\n){{2}})(?:\|.*\n)*(<!-- /{name} -->)")
    assert pattern.search(text), name
    return pattern.sub(lambda match: match[1] + "\n".join(lines) + "\n" + match[2], text)


def show(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table, numbers to the right."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    print(f"\n{title}")
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  " + "  ".join(cells).rstrip())
