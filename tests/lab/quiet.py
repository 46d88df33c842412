"""Measuring in tests: only what the emulator kept time for counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from probes.lab import measuring
from probes.lab.controller import Lab

T = TypeVar("T")


def undisturbed(lab: Lab, measure: Callable[[], T]) -> T:
    """Measure until nothing else on the machine disturbs it; skip where it never ceases to."""
    try:
        return measuring.undisturbed(lab, measure)
    except measuring.DisturbedError as error:
        pytest.skip(str(error))
