"""Rate limits: a token bucket for each caller, in bounded memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

MOST_CALLERS = 50_000


class RateLimits:
    """Buckets by caller: each fills at a rate up to a burst, and a request takes one drop.

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
        self._buckets: OrderedDict[object, tuple[float, float]] = OrderedDict()

    def wait_s(self, caller: object, now_s: float, cost: float = 1.0) -> float:
        """Take drops from a caller's bucket.

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
        level, at_s = self._buckets.get(caller, (burst, now_s))
        level = min(burst, level + (now_s - at_s) * per_s)
        needed = min(cost, burst)
        if level < needed:
            return (needed - level) / per_s
        self._buckets[caller] = (level - needed, now_s)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MOST_CALLERS:
            # The one that was quiet longest has the fullest bucket: forgetting it gives least.
            self._buckets.popitem(last=False)
        return 0.0
