"""What a frugal campaign may spend: a small part of what measuring all pairs takes.

Of choosing links there is no end of itself: where paths differ from pair to pair, each further link
is worth a little. Unless told a budget, a campaign therefore stops at a thirtieth of the bytes
and the dollars of measuring all pairs with the most connections, warm-ups included. Fleets of
under 28 regions have so few pairs that this would be less than it takes to tell providers apart;
they may spend what 24 pairs take.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from planner.model.errors import DataError
from planner.model.pricing import Prices
from probes.campaign.costing import task_volume_gb
from probes.campaign.tasks import ProbeTask

SHARE_OF_ALL_PAIRS = 1 / 30
LEAST_LINKS = 24


@dataclass(frozen=True, slots=True)
class Allowance:
    """What may still be spent.

    Attributes
    ----------
    usd, gb : float
        Infinite where there is no limit.
    name : str
        The limit, in words, to say that it was reached.
    """

    usd: float = inf
    gb: float = inf
    name: str = "the budget"

    def after(self, usd: float, gb: float) -> Allowance:
        """Return what is left after something was spent."""
        return Allowance(max(0.0, self.usd - usd), max(0.0, self.gb - gb), self.name)


UNLIMITED = Allowance()


def frugal_allowance(
    all_pairs: Iterable[ProbeTask], region_of: dict[str, str], prices: Prices
) -> Allowance:
    """Return what a campaign may spend that was told no budget.

    Parameters
    ----------
    all_pairs : iterable of ProbeTask
        What measuring everything would be.
    region_of : dict
        Host to region.
    prices : Prices
        A pair without a price counts with its bytes alone.
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
