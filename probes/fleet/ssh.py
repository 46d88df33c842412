"""asyncssh, which only the extra ``relayd[fleet]`` installs: all else goes without SSH."""

from __future__ import annotations

from planner.model.errors import not_installed

try:
    import asyncssh
except ModuleNotFoundError:
    raise not_installed("asyncssh", "fleet", "log in to hosts") from None

__all__ = ["asyncssh"]
