"""Wait for what another process or task is about to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

TIMEOUT_S = 60.0


def eventually(
    found: Callable[..., Any],
    timeout_s: float = TIMEOUT_S,
    *,
    otherwise: Callable[[], object] = lambda: "it did not happen",
    every_s: float = 0.05,
) -> Any:
    """Return what a function finds as soon as it is something, or fail and say something else."""
    deadline_s = time.monotonic() + timeout_s
    while not (value := found()):
        assert time.monotonic() < deadline_s, otherwise()
        time.sleep(every_s)
    return value


async def soon(
    found: Callable[..., Any], timeout_s: float = TIMEOUT_S, *, every_s: float = 0.02
) -> Any:
    """Return what a function finds as soon as it is something, while other tasks go on."""
    async with asyncio.timeout(timeout_s):
        while not (value := found()):
            await asyncio.sleep(every_s)
    return value
