"""Rate limits: a token bucket for each caller, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict

MOST_CALLERS = 50_000


class RateLimits:
    """Buckets by caller: each fills at a rate up to a burst, and a request takes one drop.

    Parameters
    ----------
    per_s : float
        0 for no limit.
    burst : float
    """

    def __init__(self, per_s: float, burst: float) -> None:
        self._per_s = per_s
        self._burst = burst
        self._buckets: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def wait_s(self, caller: object, now_s: float, cost: float = 1.0) -> float:
        """Take drops from a caller's bucket.

        Returns
        -------
        float
            0 if the request may go on; else the time until it may, and nothing was taken.
        """
        if not self._per_s:
            return 0.0
        level, at_s = self._buckets.get(caller, (self._burst, now_s))
        level = min(self._burst, level + (now_s - at_s) * self._per_s)
        needed = min(cost, self._burst)
        if level < needed:
            return (needed - level) / self._per_s
        self._buckets[caller] = (level - needed, now_s)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MOST_CALLERS:
            # The one that was quiet longest has the fullest bucket: forgetting it gives least.
            self._buckets.popitem(last=False)
        return 0.0
