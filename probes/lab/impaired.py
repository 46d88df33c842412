"""The packets of pairs that do more than delay them: losses, caps, jitter, refusals."""

from __future__ import annotations

import math
from random import Random

from probes.lab.behaviours import BLACKHOLE, UP, Impairment
from probes.lab.counters import NAMES
from probes.lab.packets import (
    FLOW,
    ICMP,
    PROTOCOL,
    TCP,
    keep_segments,
    reset_of,
    segment_count,
    unreachable_of,
    wire_length,
)

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
        Longest wait; packets that would wait longer are dropped.
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
        """Admit a packet; return its wait in s, or :data:`DROPPED`."""
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
        """Admit a packet; return its wait in s, or :data:`DROPPED`."""
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


_DROPPED_PATH, _LOST, _REFUSED = map(NAMES.index, ("dropped_path", "lost", "refused"))


class ImpairedPair:
    """The state of one impaired pair, kept by the worker that reads its source.

    Parameters
    ----------
    impairment : Impairment
    seed : int
        Of its losses and its jitter, which repeat with it.
    """

    def __init__(self, impairment: Impairment, seed: int) -> None:
        self._settings = impairment
        self._random = Random(seed)  # noqa: S311 - an emulation, not a secret
        limited = min(impairment.rate, impairment.cut_rate) < math.inf
        self._path = PathLimit(impairment) if limited else None
        # Of each TCP connection; nothing is dropped: a connection's window bounds its queue.
        self._flows: dict[bytes, RateLimit] = {}
        self._latest_s = -math.inf

    def pass_on(
        self, now_s: float, packet: bytes, size: int, totals: memoryview[int]
    ) -> list[tuple[float, bytes, bool]]:
        """Pass a packet on: return the packets that it becomes.

        Each with further waiting time in s before it, and after it whether it goes back to the
        sender.

        Parameters
        ----------
        now_s : float
        packet : bytes
        size : int
            Its length on the wire.
        totals : memoryview of int
            Counters of the worker.
        """
        settings = self._settings
        protocol = packet[PROTOCOL]
        if settings.state != UP:
            totals[_REFUSED] += 1
            if settings.state == BLACKHOLE:
                return []
            answer = reset_of(packet) if protocol == TCP else unreachable_of(packet)
            return [] if answer is None else [(0.0, answer, True)]
        if settings.icmp_filtered and protocol == ICMP:
            totals[_REFUSED] += 1
            return []
        wait = 0.0
        if settings.flow_rate < math.inf:
            flow = packet[FLOW]
            if flow not in self._flows:
                if len(self._flows) >= _FLOWS_KEPT:
                    self._flows.clear()
                self._flows[flow] = RateLimit(settings.flow_rate, math.inf)
            wait = self._flows[flow].wait_s(now_s, size)
        pieces = [packet]
        if settings.loss:
            chance = self._random.random
            kept = [chance() >= settings.loss for _ in range(segment_count(packet))]
            if not all(kept):
                totals[_LOST] += kept.count(False)
                pieces = keep_segments(packet, kept)
        passed = []
        for piece in pieces:
            further = wait
            if self._path is not None:
                queued = self._path.wait_s(
                    now_s + wait, size if piece is packet else wire_length(piece)
                )
                if queued == DROPPED:
                    totals[_DROPPED_PATH] += 1
                    continue
                further += queued
            if settings.jitter_s:
                # A later packet of the pair never overtakes an earlier one.
                at = max(
                    now_s + further + settings.jitter_s * self._random.random(), self._latest_s
                )
                self._latest_s = at
                further = at - now_s
            passed.append((further, piece, False))
        return passed
