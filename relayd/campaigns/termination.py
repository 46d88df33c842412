"""SIGTERM ends a campaign the way Ctrl-C does."""

from __future__ import annotations

import asyncio
import signal


def cancelled_by_sigterm() -> None:
    """Have SIGTERM cancel the current task, so that it cleans up as it does after Ctrl-C."""
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
