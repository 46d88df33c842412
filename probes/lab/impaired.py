"""What happens to the packets of a pair that does more than delay them."""

from __future__ import annotations

import math
from random import Random

from probes.lab.behaviours import BLACKHOLE, UP, Impairment
from probes.lab.counters import NAMES
from probes.lab.limits import DROPPED, FlowLimits, PathLimit
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
        self._flows = None if math.isinf(impairment.flow_rate) else FlowLimits(impairment.flow_rate)
        self._latest_s = -math.inf

    def pass_on(
        self, now_s: float, packet: bytes, size: int, totals: memoryview[int]
    ) -> list[tuple[float, bytes, bool]]:
        """Return what becomes of a packet.

        Parameters
        ----------
        now_s : float
        packet : bytes
        size : int
            Its length on the wire.
        totals : memoryview of int
            Counters of the worker.

        Returns
        -------
        list of (float, bytes, bool)
            Further waiting time in s, packet, and whether it goes back to the sender.
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
        if self._flows is not None:
            wait = self._flows.wait_s(now_s, packet[FLOW], size)
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
