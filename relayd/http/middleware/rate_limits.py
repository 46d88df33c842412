"""Rate limits: a token bucket for each caller, in memory that all processes of a service share."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from tempfile import TemporaryFile
from weakref import finalize

SETS = 8192
WAYS = 8
"""Callers that are kept: eight in each set, and which set is theirs depends on who they are."""
_ROUNDING_S = 1e-8
"""Of a time since the machine started, and more than that."""
_BUCKET = struct.Struct("Qd")
_SET_BYTES = WAYS * _BUCKET.size


class RateLimits:
    """Buckets by caller: each fills at a rate up to a burst, and a request takes one drop.

    A bucket is kept as the time at which it will be full again, one number, so a process that is
    killed leaves none half changed. In a full set, the bucket that is full first goes: forgetting
    it gives least. Processes that are forked off share the buckets. They take turns by record locks
    (:func:`fcntl.lockf`), which the system releases when their holder is killed.

    Parameters
    ----------
    per_s : float
        Of callers without a rate of their own; 0 for no limit.
    burst : float
        Of these callers. Others may send at once what is theirs in ten seconds, if that is less.

    Attributes
    ----------
    own_per_s : dict
        Callers to rates of their own; 0 for no limit.
    """

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self.own_per_s: Mapping[object, float] = {}
        self._buckets = mmap.mmap(-1, SETS * _SET_BYTES)
        with TemporaryFile() as file:  # stays empty
            self._locks = os.dup(file.fileno())
        finalize(self, os.close, self._locks)

    def wait_s(self, caller: object, now_s: float, cost: float = 1.0) -> float:
        """Take drops from a caller's bucket.

        Parameters
        ----------
        now_s : float
            By a clock that all processes share, such as :func:`time.perf_counter` on Linux.

        Returns
        -------
        float
            0 if the request may go on; else the time until it may, and nothing was taken.
        """
        own_per_s = self.own_per_s.get(caller)
        per_s = self._per_s if own_per_s is None else own_per_s
        if not per_s:
            return 0.0
        burst = self._burst if own_per_s is None else min(self._burst, max(1.0, 10 * per_s))
        number = int.from_bytes(blake2b(repr(caller).encode(), digest_size=8).digest())
        begin = number % SETS * _SET_BYTES
        with self._locked(begin):
            found = list(_BUCKET.iter_unpack(self._buckets[begin : begin + _SET_BYTES]))
            way = next((way for way in range(WAYS) if found[way][0] == number), None)
            if way is None:
                way = min(range(WAYS), key=lambda each: found[each][1])
                full_at_s = now_s
            else:
                full_at_s = max(now_s, found[way][1])
            level = burst - (full_at_s - now_s) * per_s
            needed = min(cost, burst)
            if level < needed - per_s * _ROUNDING_S:
                return (needed - level) / per_s
            taken = number, full_at_s + needed / per_s
            _BUCKET.pack_into(self._buckets, begin + way * _BUCKET.size, *taken)
            return 0.0

    @contextmanager
    def _locked(self, begin: int) -> Iterator[None]:
        """Keep other processes from a set."""
        fcntl.lockf(self._locks, fcntl.LOCK_EX, _SET_BYTES, begin)
        try:
            yield
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, _SET_BYTES, begin)
