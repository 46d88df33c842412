"""What a campaign may spend, and what it has spent.

Choosing links never ends by itself: where paths differ from pair to pair, each further link is
worth a little. Without a budget, a campaign therefore stops at a thirtieth of the bytes and the
dollars of measuring all pairs with the most connections, warm-ups included. For fleets of under 28
regions this would be too little to distinguish providers; they may spend what 24 pairs take.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from planner.model.errors import DataError
from probes.campaign.costing import Meter, Price, on_wire, task_volume_gb
from probes.campaign.tasks import ProbeTask

SHARE_OF_ALL_PAIRS = 1 / 30
LEAST_LINKS = 24
HEADROOMS = (3.0, 1.5)
"""How much more than expected a probe may send; the less where a budget nears its end."""
LEAST_GB = 1e-3
"""What the smallest throughput probe may send."""
LEAST_RTT_GB = 3e-5
"""What any round-trip probe may send, over all tools that it may take and both ways."""


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
    all_pairs: Iterable[ProbeTask], region_of: Mapping[str, str], price: Price
) -> Allowance:
    """Return what a campaign without a budget may spend.

    Parameters
    ----------
    all_pairs : iterable of ProbeTask
        The tasks that would measure everything.
    region_of : dict
        Host to region.
    price : Price
        A pair without a price counts by its bytes alone.
    """
    links, usd, gb = 0, 0.0, 0.0
    for task in all_pairs:
        ((src, dst),) = task.pairs
        volume_gb = task_volume_gb(task)
        links, gb = links + 1, gb + volume_gb
        with suppress(DataError):
            usd += price(region_of[src], region_of[dst], volume_gb)
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
        self._reserved: dict[int, tuple[float, list[tuple[str, str, float]]]] = {}
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
            What it may send, in GB of payload; infinite without a budget, None where the budget
            does not allow it.
        """
        least_gb = LEAST_RTT_GB if task.phase == "rtt" else LEAST_GB
        expected_gb = max(least_gb, task_volume_gb(task)) * times
        for headroom in HEADROOMS if self._budget_usd < inf else (1.0,):
            gb = expected_gb * headroom
            self._reserved[id(task)] = gb, self._links(task, gb)
            if self._budget_usd == inf:
                return inf
            worst_usd = sum(self._worst_usd(links) for _, links in self._reserved.values())
            if self.usd + worst_usd <= self._budget_usd:
                return gb
            self.release(task)
        return None

    def reserved(self, task: ProbeTask) -> tuple[float, float]:
        """Return GB and USD that are reserved for a task; without a budget, those expected."""
        gb, links = self._reserved[id(task)]
        return gb, self._worst_usd(links)

    def release(self, task: ProbeTask) -> None:
        """Give back what was reserved for a task."""
        del self._reserved[id(task)]

    def charge(
        self, task: ProbeTask, sent: Iterable[tuple[str, str, float]]
    ) -> tuple[float, float]:
        """Count what a task has sent, as source host, destination host and GB that tools count.

        Returns its GB, and its USD on the wire.
        """
        sent_gb = usd = 0.0
        for src, dst, gb in sent:
            sent_gb += gb
            for link in self._on_wire(task, src, dst, gb):
                usd += self._meter.add(*link)
        self.sent_gb += sent_gb
        self.usd += usd
        return sent_gb, usd

    def _links(self, task: ProbeTask, volume_gb: float) -> list[tuple[str, str, float]]:
        """Return a task's volume as what is sent on the wire."""
        tests = 2 * len(task.in_turn) + (task.connections.bit_length() if task.ramp else 0)
        answered = [(dst, src) for src, dst in task.pairs] if task.phase == "rtt" else []
        return [
            link
            for pair in [*task.pairs, *answered]
            for link in self._on_wire(task, *pair, volume_gb / len(task.pairs), tests)
        ]

    def _worst_usd(self, links: Iterable[tuple[str, str, float]]) -> float:
        """Return the price of what is sent on the wire, before or after all that is reserved.

        Where an allowance is free, later is dearer; where there are tiers, earlier is.
        """
        ahead_gb = sum(gb for _, others in self._reserved.values() for _, _, gb in others)
        return sum(
            max(self._meter.price(*link), self._meter.price(*link, ahead_gb)) for link in links
        )

    def _on_wire(
        self, task: ProbeTask, src: str, dst: str, gb: float, tests: int = 1
    ) -> Sequence[tuple[str, str, float]]:
        """Return a volume that tools count as what is sent on the wire, by regions."""
        ends = self._region_of[src], self._region_of[dst]
        if task.phase == "rtt":  # whole packets are counted, and replies apart
            return ((*ends, gb),)
        return on_wire(*ends, gb, task.connections, tests)
