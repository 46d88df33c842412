"""Memory that the workers of a lab share with its keeper: clocks, caps and counters.

One block of anonymous shared memory, made before the workers are forked. Every worker has
its own counters; the clocks of ingress caps are common to all. Two workers may race for a
clock: one of two updates is then lost, which lets a single packet through too early.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable

BIN_S = 20e-6
"""Width of a bin of the lateness histogram."""

BINS = 256
"""Bins of that histogram; the last takes everything that is later."""

NAMES = ("packets", "bytes", "dropped_ingress", "dropped_path", "lost", "refused")
"""Counters of a worker. A packet may hold many segments; bytes are on the wire."""


class Counters:
    """Shared memory of a lab.

    Parameters
    ----------
    sites, workers : int

    Attributes
    ----------
    free_s : memoryview of float, shape (sites,)
        Time at which the ingress of a site is free again (monotonic clock).
    """

    def __init__(self, sites: int, workers: int) -> None:
        self._workers = workers
        self._sites = sites
        clocks = 8 * sites
        self._size = 8 * (len(NAMES) + BINS + 2 * sites)
        memory = memoryview(mmap.mmap(-1, clocks + self._size * workers))
        self.free_s = memory[:clocks].cast("d")
        self._blocks = [
            memory[clocks + self._size * i : clocks + self._size * (i + 1)].cast("Q")
            for i in range(workers)
        ]

    def totals_of(self, worker: int) -> memoryview[int]:
        """Counters of a worker, in the order of :data:`NAMES`."""
        return self._blocks[worker][: len(NAMES)]

    def lateness_of(self, worker: int) -> memoryview[int]:
        """Histogram of a worker's lateness in passing packets on, in bins of :data:`BIN_S`."""
        return self._blocks[worker][len(NAMES) : len(NAMES) + BINS]

    def sent_of(self, worker: int) -> memoryview[int]:
        """Bytes on the wire that a worker took from each site."""
        return self._blocks[worker][len(NAMES) + BINS : len(NAMES) + BINS + self._sites]

    def received_of(self, worker: int) -> memoryview[int]:
        """Bytes on the wire that a worker passed on to each site."""
        return self._blocks[worker][len(NAMES) + BINS + self._sites :]

    def totals(self) -> dict[str, int]:
        """Return the sum of every counter over all workers, since the lab came up."""
        return dict(zip(NAMES, self._sums(self.totals_of), strict=True))

    def lateness(self) -> list[int]:
        """Return the histogram of all workers together, since the lab came up."""
        return self._sums(self.lateness_of)

    def sent(self) -> list[int]:
        """Return the bytes on the wire that each site has sent since the lab came up."""
        return self._sums(self.sent_of)

    def received(self) -> list[int]:
        """Return the bytes on the wire that each site has received since the lab came up."""
        return self._sums(self.received_of)

    def _sums(self, of_worker: Callable[[int], memoryview[int]]) -> list[int]:
        parts = map(of_worker, range(self._workers))
        return [sum(column) for column in zip(*parts, strict=True)]


def lateness_quantile_ms(before: list[int], after: list[int], share: float) -> float | None:
    """Quantile of the lateness between two readings of the histogram, in ms.

    Returns
    -------
    float | None
        Upper edge of the bin; None where no packet passed. ``BINS * BIN_S`` or more reads as
        exactly that.
    """
    counts = [new - old for old, new in zip(before, after, strict=True)]
    total = sum(counts)
    if not total:
        return None
    passed = 0
    for index, count in enumerate(counts):
        passed += count
        if passed >= share * total:
            return (index + 1) * BIN_S * 1e3
    raise AssertionError("the bins add up to the total")
