"""Counts and findings of a part of the fuzzing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.processes import Seen, growth, watched_memory
from tests.http.running import Served

WARM_UP_SHARE = 0.2
"""Of the time; until then caches fill and modules are loaded."""
MOST_GROWTH = 0.05
JUDGED_FROM = 300
"""Seconds: in less, memory is reported and not judged."""
_MOST_KEPT = 50
_MOST_SHOWN = 1500


@dataclass
class Findings:
    """Of one part."""

    part: str
    # How many answers had a status, or how often a file was read or refused
    outcomes: Counter[str] = field(default_factory=Counter)
    # What should not have happened, and how often
    problems: Counter[str] = field(default_factory=Counter)
    memory_mb: Seen = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answered(self, status: int, what: str) -> None:
        """Count an answer over HTTP; one of 5xx is a problem."""
        self.count(str(status))
        if status >= 500:
            self.problem(f"{status}: {what}")

    def count(self, outcome: str) -> None:
        """Count something that was as it should be."""
        with self._lock:
            self.outcomes[outcome] += 1

    def problem(self, what: str) -> None:
        """Note what should not have happened."""
        with self._lock:
            if len(self.problems) < _MOST_KEPT or what in self.problems:
                self.problems[what[:_MOST_SHOWN]] += 1

    @contextmanager
    def of_service(self, service: Served) -> Iterator[None]:
        """Watch a service's memory, then its health; stop it, and look into its log."""
        try:
            with watched_memory(service.process.pid) as self.memory_mb:
                yield
            if service.get("/healthz").status != 200:
                self.problem("it is not healthy at the end")
        finally:
            service.stop()
        for line in service.lines():
            if line["level"] == "error":
                # The end of a traceback names the fault; ids and times would make each one new.
                self.problem(f"fault at {line.get('route')}: {str(line.get('traceback'))[-700:]}")
        others = [row for row in service.log.read_text().split("\n") if row[:1] != "{"]
        if any("Traceback" in row for row in others):
            self.problem("traceback outside of the log's lines")

    def report(self) -> bool:
        """Print it; tell whether there are no problems and, after enough time, no growth."""
        seconds = self.memory_mb[-1][0] - self.memory_mb[0][0]
        grown = growth(self.memory_mb, WARM_UP_SHARE * seconds)
        held = not self.problems and (seconds < JUDGED_FROM or grown < MOST_GROWTH)
        print(f"{self.part}: {sum(self.outcomes.values()):,} sent")
        print(
            "  " + ", ".join(f"{what}: {count:,}" for what, count in sorted(self.outcomes.items()))
        )
        first, last = (sum(self.memory_mb[at][1].values()) for at in (0, -1))
        print(f"  memory {first:.0f} MB at start, {last:.0f} MB at end; ", end="")
        print(f"after the warm-up it grew by {grown:+.1%}")
        for what, count in self.problems.most_common():
            print(f"  PROBLEM ({count} times): {what}")
        print(f"  {'held' if held else 'NOT HELD'}", flush=True)
        return held
