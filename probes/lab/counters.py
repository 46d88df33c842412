"""Memory that the workers of a lab share with its keeper: clocks, caps and counters.

One block of anonymous shared memory, made before the workers are forked. Every worker has
its own counters; the clocks of ingress caps are common to all. Two workers may race for a
clock: one of two updates is then lost, which lets a single packet through too early.
"""

from __future__ import annotations

import mmap
from typing import Literal, TypeAlias

import numpy as np

BIN_S = 20e-6
"""Width of a bin of the lateness histogram."""

BINS = 256
"""Bins of that histogram; the last takes everything that is later."""

NAMES = ("packets", "bytes", "dropped_ingress", "dropped_path", "lost", "refused")
"""Counters of a worker. A packet may hold many segments; bytes are on the wire."""

Count: TypeAlias = Literal["totals", "lateness", "sent", "received"]
"""Counters in the order of :data:`NAMES`; lateness in passing packets on, in bins of
:data:`BIN_S`; bytes on the wire that were taken from each site, and passed on to each."""


class Counters:
    """Shared memory of a lab.

    Attributes
    ----------
    free_s : memoryview of float, shape (sites,)
        Time at which the ingress of a site is free again (monotonic clock).
    """

    def __init__(self, sites: int, workers: int) -> None:
        lengths = {"totals": len(NAMES), "lateness": BINS, "sent": sites, "received": sites}
        kind = np.dtype([(name, np.uint64, (length,)) for name, length in lengths.items()])
        memory = memoryview(mmap.mmap(-1, 8 * sites + kind.itemsize * workers))
        self.free_s = memory[: 8 * sites].cast("d")
        self._counts = np.frombuffer(memory[8 * sites :], kind)

    def of(self, worker: int, name: Count) -> memoryview[int]:
        """Counters of one worker."""
        found: memoryview[int] = self._counts[name][worker].data
        return found

    def sums(self, name: Count) -> list[int]:
        """Return the sums over all workers since the lab came up."""
        found: list[int] = self._counts[name].sum(axis=0).tolist()
        return found


def lateness_quantile_ms(before: list[int], after: list[int], share: float) -> float | None:
    """Quantile of the lateness between two readings of the histogram, in ms.

    Returns
    -------
    float | None
        Upper edge of the bin; None where no packet passed. ``BINS * BIN_S`` or more reads as
        exactly that.
    """
    passed = np.cumsum(np.subtract(after, before))
    if not passed[-1]:
        return None
    return float(np.searchsorted(passed, share * passed[-1]) + 1) * BIN_S * 1e3
