"""Work that stops when the lease it is done under runs out."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from relayd.store.failures import lapsed
from relayd.store.leases import CHECK_EVERY_S, Lease

T = TypeVar("T")


async def while_held(lease: Lease | None, work: Coroutine[Any, Any, T]) -> T:
    """Do some work for as long as a lease is held.

    Raises
    ------
    StoreError
        If it ran out before the work was done, which was cancelled then.
    """
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait([task], timeout=CHECK_EVERY_S))[0]:
            if lease is not None and not lease.is_held:
                break
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
