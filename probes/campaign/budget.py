"""What a campaign may spend, and what it has spent.

Choosing links never ends by itself: where paths differ from pair to pair, each further link is
worth a little. Without a budget, a campaign therefore stops at a thirtieth of the bytes and the
dollars of measuring all pairs with the most connections, warm-ups included. For fleets of under 28
regions this would be too little to distinguish providers; they may spend what 24 pairs take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf

from planner.model.errors import DataError
from planner.model.pricing import Prices
from probes.campaign.costing import Meter, task_volume_gb
from probes.campaign.tasks import ProbeTask

SHARE_OF_ALL_PAIRS = 1 / 30
LEAST_LINKS = 24
HEADROOMS = (3.0, 1.5)
"""How much more than expected a probe may send; the less where a budget nears its end."""
ON_WIRE = 1.08
"""Bytes on the wire over the payload that tools count: 1.04 for headers (1,500 bytes for 1,448 of
payload), 0.02 for acknowledgements, the rest for what is sent again."""
LEAST_GB = 1e-3
"""What the smallest probe may send."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What may still be spent.

    Attributes
    ----------
    usd, gb : float
        Infinite where there is no limit.
    name : str
        The limit as a noun phrase, for the message that it was reached.
    """

    usd: float = inf
    gb: float = inf
    name: str = "the budget"

    def after(self, usd: float, gb: float) -> Allowance:
        """Return what is left after something was spent."""
        return Allowance(max(0.0, self.usd - usd), max(0.0, self.gb - gb), self.name)


UNLIMITED = Allowance()


def frugal_allowance(
    all_pairs: Iterable[ProbeTask], region_of: Mapping[str, str], prices: Prices
) -> Allowance:
    """Return what a campaign without a budget may spend.

    Parameters
    ----------
    all_pairs : iterable of ProbeTask
        The tasks that would measure everything.
    region_of : dict
        Host to region.
    prices : Prices
        A pair without a price counts by its bytes alone.
    """
    links, usd, gb = 0, 0.0, 0.0
    for task in all_pairs:
        ((src, dst),) = task.pairs
        volume_gb = task_volume_gb(task)
        links, gb = links + 1, gb + volume_gb
        if volume_gb:
            try:
                usd += volume_gb * prices.egress_usd_per_gb(
                    region_of[src], region_of[dst], volume_gb
                )
            except DataError:
                continue
    share = max(SHARE_OF_ALL_PAIRS, min(1.0, LEAST_LINKS / links)) if links else 1.0
    name = f"the limit of 1/{1 / share:.3g} of what all pairs take (--budget sets another)"
    return Allowance(share * usd, share * gb, name)


class Ledger:
    """What a campaign has spent, and the most that its running probes may spend.

    Parameters
    ----------
    meter : Meter
        Prices what is sent, on top of what was before.
    region_of : mapping
        Host to region.
    budget_usd : float
    spent : (float, float)
        GB and USD of earlier runs of the campaign.
    """

    def __init__(
        self,
        meter: Meter,
        region_of: Mapping[str, str],
        budget_usd: float,
        spent: tuple[float, float],
    ) -> None:
        self._meter = meter
        self._region_of = region_of
        self._budget_usd = budget_usd
        self._reserved: dict[int, tuple[float, float]] = {}  # GB and USD
        self.sent_gb, self.usd = spent

    def reserve(self, task: ProbeTask, times: float = 1.0) -> float | None:
        """Reserve the price of the most that a probe may send.

        Parameters
        ----------
        times : float
            How much more than was expected of the task is to be expected.

        Returns
        -------
        float or None
            What it may send, in GB; infinite without a budget, None where the budget does not
            allow it.
        """
        if self._budget_usd == inf:
            self._reserved[id(task)] = 0.0, 0.0
            return inf
        left_usd = self._budget_usd / ON_WIRE - self.usd
        left_usd -= sum(usd for _, usd in self._reserved.values())
        for headroom in HEADROOMS:
            gb = max(LEAST_GB, task_volume_gb(task)) * times * headroom
            usd = self._price_usd(task, gb)
            if usd <= left_usd:
                self._reserved[id(task)] = gb, usd
                return gb
        return None

    def release(self, task: ProbeTask) -> None:
        """Give back what was reserved for a task."""
        del self._reserved[id(task)]

    def charge(self, sent: Iterable[tuple[str, str, float]]) -> tuple[float, float]:
        """Count what was sent (source host, destination host, GB); return its GB and USD."""
        sent_gb = usd = 0.0
        for src, dst, gb in sent:
            sent_gb += gb
            usd += self._meter.add(self._region_of[src], self._region_of[dst], gb)
        self.sent_gb += sent_gb
        self.usd += usd
        return sent_gb, usd

    def _price_usd(self, task: ProbeTask, volume_gb: float) -> float:
        """Return the price of a task's volume, before or after all that is reserved.

        Where an allowance is free, later is dearer; where there are tiers, earlier is.
        """
        each_gb = volume_gb / len(task.pairs)
        ends = [(self._region_of[src], self._region_of[dst]) for src, dst in task.pairs]
        if task.phase == "rtt":  # replies pay as well
            ends += [(dst, src) for src, dst in ends]
        reserved_gb = sum(gb for gb, _ in self._reserved.values())
        others_gb = 0.0
        usd = 0.0
        for src, dst in ends:
            usd += max(
                self._meter.price(src, dst, each_gb, ahead_gb)
                for ahead_gb in (0.0, reserved_gb + others_gb)
            )
            others_gb += each_gb
        return usd
