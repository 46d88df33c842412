"""Measuring in tests: what other work on the machine has spoilt does not count."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from benchmarks import lab_measuring
from probes.lab.controller import Lab, labs
from probes.lab.counters import lateness_quantile_ms

WAITING_SHARE = 0.1
"""A machine is busy when processes waited for a processor in more than this share of the time.

A lab that has two processors to itself stays below 0.07.
"""

SLEEP_LATE_MS = 0.2
"""A lab delays packets by sleeping: on a machine that wakes later it can't keep its times."""

ATTEMPTS = 2 if os.environ.get("CI") else 4
"""Attempts of a measurement until nothing disturbs it; CI has no time for more."""

FAULTS = (sqlite3.Error, AttributeError, ImportError, LookupError, NameError, TypeError)
"""Failures that no other work on the machine causes."""

_PRESSURE = Path("/proc/pressure/cpu")
T = TypeVar("T")


@contextmanager
def judged_if_quiet() -> Iterator[None]:
    """Skip, and say how busy the machine was, if what is in this block fails on a busy machine."""
    begun_s, waited_before_s, before = time.monotonic(), _waited_s(), _lateness()
    try:
        yield
    except FAULTS:
        raise
    except Exception as error:
        share = (_waited_s() - waited_before_s) / (time.monotonic() - begun_s)
        late_ms = max(
            (
                lateness_quantile_ms(before.get(name, [0] * len(counts)), counts, 0.95) or 0.0
                for name, counts in _lateness().items()
            ),
            default=0.0,
        )
        slept_late_ms = _sleep_lateness_ms()
        if (
            share <= WAITING_SHARE
            and late_ms <= lab_measuring.LATE_MS
            and slept_late_ms <= SLEEP_LATE_MS
        ):
            raise
        failure = " ".join(f"{type(error).__name__}: {error}".split())
        pytest.skip(
            f"the machine is too busy to judge: processes waited for a processor {share:.0%} of "
            f"the time (more than {WAITING_SHARE:.0%} is busy) and the lab passed packets on "
            f"{late_ms:.2f} ms late (more than {lab_measuring.LATE_MS:g} ms is busy), and sleeps "
            f"end {slept_late_ms:.2f} ms late (more than {SLEEP_LATE_MS:g} ms is slow); "
            f"{failure:.200}"
        )


def _sleep_lateness_ms() -> float:
    """Return the 95th percentile of how late a sleep of a millisecond ends."""
    late_ms = []
    for _ in range(200):
        begun_s = time.perf_counter()
        time.sleep(1e-3)
        late_ms.append((time.perf_counter() - begun_s) * 1e3 - 1)
    return sorted(late_ms)[190]


def _waited_s() -> float:
    """Return for how long a process has waited for a processor, since the machine started."""
    if not _PRESSURE.exists():  # a kernel without pressure stall information
        return 0.0
    some = _PRESSURE.read_text().splitlines()[0]
    return float(some.rpartition("total=")[2]) / 1e6


def _lateness() -> dict[str, list[int]]:
    """Return the histogram of lateness of each lab that is up."""
    return {lab.name: lab.status()["lateness"]["counts"] for lab in labs() if lab.is_up()}


_given_up: list[str] = []


def undisturbed(lab: Lab, measure: Callable[[], T], late_ms: float = lab_measuring.LATE_MS) -> T:
    """Measure until nothing else on the machine disturbs it; skip where it never ceases to.

    On a machine that has been too busy before, there are fewer attempts: who is disturbed for
    minutes is disturbed for hours.
    """
    try:
        attempts = max(1, ATTEMPTS - len(_given_up))
        return lab_measuring.undisturbed(lab, measure, attempts, late_ms)
    except lab_measuring.DisturbedError as error:
        _given_up.append(str(error))
        pytest.skip(str(error))


def rtt_error_at_best(
    lab: Lab, measure_ms: Callable[[], float], limit_ms: float, attempts: int = 5
) -> float:
    """Return the first error of round-trip times within a limit, else the least of all attempts.

    For tails of distributions, which other work on the machine can only make longer. A packet is
    passed on twice in a round trip: an attempt counts if the lab is late by half the limit at most.
    """
    least_ms = undisturbed(lab, measure_ms, limit_ms / 2)
    while least_ms > limit_ms and (attempts := attempts - 1):
        least_ms = min(least_ms, undisturbed(lab, measure_ms, limit_ms / 2))
    return least_ms
