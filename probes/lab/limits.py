"""Rate limits of the emulator as virtual clocks.

A clock says when the link will be free again. A packet that comes before waits for it (or is
dropped where it would wait too long), and moves it on by the time that the packet takes. A
clock that may lag behind the present by some bytes is a token bucket of that depth.
"""

from __future__ import annotations

import math

from probes.lab.behaviours import Impairment

_IDLE_BEGINS_A_RUN_S = 2.0
_FLOWS_KEPT = 4096
DROPPED = -1.0
"""In place of a waiting time: the packet is lost."""


class RateLimit:
    """A rate with a bucket and a bounded queue.

    Parameters
    ----------
    rate : float
        Bytes/s.
    queue_s : float
        Longest wait; what would wait longer is dropped.
    burst_bytes : float
        Depth of the bucket.
    """

    __slots__ = ("_depth_s", "_free_s", "_queue_s", "_seconds_per_byte")

    def __init__(self, rate: float, queue_s: float, burst_bytes: float = 0.0) -> None:
        self._seconds_per_byte = 1 / rate
        self._queue_s = queue_s
        self._depth_s = burst_bytes / rate
        self._free_s = -math.inf

    def wait_s(self, now_s: float, size: int) -> float:
        """Admit a packet; returns how long it has to wait, or :data:`DROPPED`."""
        free = max(self._free_s, now_s - self._depth_s)
        wait = free - now_s
        if wait > self._queue_s:
            return DROPPED
        self._free_s = free + size * self._seconds_per_byte
        return max(wait, 0.0)


class PathLimit:
    """The cap of a path: a rate, a burst before it, and a lower rate after a while."""

    def __init__(self, impairment: Impairment) -> None:
        rate, queue_s = impairment.rate, impairment.queue_s
        self._before = (
            None if math.isinf(rate) else RateLimit(rate, queue_s, impairment.burst_bytes)
        )
        cut_rate = impairment.cut_rate
        self._after = None if math.isinf(cut_rate) else RateLimit(cut_rate, queue_s)
        self._cut_after_s = impairment.cut_after_s
        self._cut_after_bytes = impairment.cut_after_bytes
        self._began_s = self._last_s = -math.inf
        self._bytes = 0

    def wait_s(self, now_s: float, size: int) -> float:
        """Admit a packet; returns how long it has to wait, or :data:`DROPPED`."""
        limit = self._before
        if self._after is not None:
            if now_s - self._last_s > _IDLE_BEGINS_A_RUN_S:
                self._began_s = now_s
                self._bytes = 0
            self._last_s = now_s
            self._bytes += size
            if self._bytes > self._cut_after_bytes or now_s - self._began_s > self._cut_after_s:
                limit = self._after
        return 0.0 if limit is None else limit.wait_s(now_s, size)


class FlowLimits:
    """The same rate for each TCP connection of a VM on its own.

    Nothing is dropped: a connection's window bounds its queue.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._limits: dict[bytes, RateLimit] = {}

    def wait_s(self, now_s: float, flow: bytes, size: int) -> float:
        """Admit a packet of a flow; returns how long it has to wait."""
        limit = self._limits.get(flow)
        if limit is None:
            if len(self._limits) >= _FLOWS_KEPT:
                self._limits.clear()
            limit = self._limits[flow] = RateLimit(self._rate, math.inf)
        return limit.wait_s(now_s, size)
