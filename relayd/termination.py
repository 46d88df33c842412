"""Being told to stop by whoever manages the process."""

from __future__ import annotations

import asyncio
import signal


def cancelled_by_sigterm() -> None:
    """Have SIGTERM cancel the current task: a service manager's stop leaves as little as Ctrl-C."""
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
