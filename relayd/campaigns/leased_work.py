"""Work that stops when the lease it is done under runs out, or when somebody asks for that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from relayd.store.failures import lapsed
from relayd.store.leases import CHECK_EVERY_S, Lease

T = TypeVar("T")
ASK_EVERY_S = 1.0


async def while_held(
    lease: Lease | None,
    work: Coroutine[Any, Any, T],
    is_to_stop: Callable[[], bool] = lambda: False,
) -> T:
    """Do some work for as long as a lease is held.

    Parameters
    ----------
    is_to_stop : callable, optional
        Asked each second; once it is true, the work is cancelled.

    Raises
    ------
    StoreError
        If the lease ran out before the work was done, which was cancelled then.
    asyncio.CancelledError
        If it was to stop.
    """
    task, asked_s = asyncio.create_task(work), time.monotonic()
    try:
        while not (await asyncio.wait([task], timeout=CHECK_EVERY_S))[0]:
            if lease is not None and not lease.is_held:
                break
            if time.monotonic() - asked_s >= ASK_EVERY_S:
                asked_s = time.monotonic()
                if is_to_stop():
                    raise asyncio.CancelledError
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        raise
    if lease is not None and not task.done():
        task.cancel()
        await asyncio.wait([task])
        if task.cancelled() or task.exception() is not None:
            raise lapsed(lease.fence.role)
    return task.result()
