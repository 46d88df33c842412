"""Cost of a campaign before it runs, its allowance, and its spending.

Choosing links never ends by itself: where paths differ from pair to pair, each further link is
worth a little. Without a budget, a campaign therefore stops at a thirtieth of the bytes and the
dollars of measuring all pairs with the most connections, warm-ups included. For fleets of under 28
regions this would be too little to distinguish providers; they may spend the cost of 24 pairs.

Why it is so: docs/decisions/06-budgets-on-the-wire.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

from planner.model.catalogue import Catalogue
from planner.model.errors import DataError
from planner.model.pricing import average_usd_per_gb
from planner.model.units import BITS_PER_BYTE
from probes.campaign.rounds import Round
from probes.campaign.tasks import ProbeTask
from probes.tools.round_trips import INTERVAL_S, PACKET_GB

Price: TypeAlias = Callable[[str, str, float], float]
"""Source region, destination region and GB to USD; raises DataError where no price is known."""
Sent: TypeAlias = tuple[str, str, float]  # source, destination and GB

FORWARD, BACKWARD = 1.07, 0.03
"""Bytes on the wire over a test's payload: with headers (1,514 bytes for 1,448 of payload) and
retransmissions; and of the acknowledgements (66 bytes for two segments), which pay the other end's
price."""
TEST_GB, CONNECTION_GB = 5e-6, 0.5e-6
"""Overhead of a test and of each of its connections, each way: opening, parameters, results."""


def task_volume_gb(task: ProbeTask) -> float:
    """Return the volume of a task, over all its pairs: an upper estimate.

    Throughput probes send at their expected rate for their whole length; slow start sends less, and
    a probe may stop early.
    """
    if task.phase == "rtt":
        return len(task.pairs) * task.duration_s / INTERVAL_S * PACKET_GB
    return task.expected_gbps * task.duration_s / BITS_PER_BYTE


def on_wire(
    src: str, dst: str, payload_gb: float, connections: int, tests: int = 1
) -> tuple[Sent, Sent]:
    """Return the volumes on the wire of throughput tests, both ways."""
    besides_gb = tests * (TEST_GB + CONNECTION_GB * connections)
    there_gb, back_gb = FORWARD * payload_gb, BACKWARD * payload_gb
    return (src, dst, there_gb + besides_gb), (dst, src, back_gb + besides_gb)


def worst_usd(
    sent: Iterable[Sent], price: Callable[[str, str, float, float], float], all_gb: float
) -> float:
    """Return the highest cost of some of the volumes that may be sent, in any order.

    Where an allowance is free, later is dearer; where there are tiers, earlier is.
    """
    return sum(max(price(*link, 0.0), price(*link, all_gb)) for link in sent)


class Meter:
    """Prices bytes as they are sent, at the tier that each provider's month has reached.

    It serves for costing before a campaign, and for the spending during one. `usd_per_gb` has flat
    prices by source region, which override the catalogue's.
    """

    def __init__(self, catalogue: Catalogue, usd_per_gb: Mapping[str, float] = {}) -> None:
        self._catalogue = catalogue
        self._override = usd_per_gb
        self._sent_gb: dict[str, float] = defaultdict(float)

    def price(self, src: str, dst: str, volume_gb: float, ahead_gb: float = 0.0) -> float:
        """Return the price in USD of a volume if it were sent next, or after another one.

        Raises DataError if neither the catalogue nor the overrides have a price for the pair.
        """
        if volume_gb <= 0:
            return 0.0
        if src in self._override:
            return self._override[src] * volume_gb
        provider = src.partition(":")[0]
        so_far = self._sent_gb[provider] + ahead_gb
        tiers = self._catalogue.egress_price(src, dst).tiers
        return float(average_usd_per_gb(tiers, volume_gb, so_far)) * volume_gb

    def add(self, src: str, dst: str, volume_gb: float) -> float:
        """Count a volume sent between two regions; return its price in USD."""
        usd = self.price(src, dst, volume_gb)
        self._sent_gb[src.partition(":")[0]] += volume_gb
        return usd


def campaign_cost(
    rounds: Sequence[Round], region_of: Mapping[str, str], meter: Meter
) -> dict[str, Any]:
    """Return the volume and cost of rounds in the order in which they run; the meter counts on.

    Raises DataError if a price is missing.

    Returns
    -------
    dict
        JSON types: ``rounds``, ``volume_gb`` and ``egress_usd``, also for each of the ``phases`` in
        order; ``sent_gb``, ``received_gb`` and ``egress_usd`` of ``regions``, dearest first.
    """
    whole: dict[str, Any] = {"rounds": len(rounds), "volume_gb": 0.0, "egress_usd": 0.0}
    phases = {r.phase: dict.fromkeys(whole, 0.0) | {"rounds": 0} for r in rounds}
    regions = {
        region: {"sent_gb": 0.0, "received_gb": 0.0, "egress_usd": 0.0}
        for region in dict.fromkeys(region_of[h] for r in rounds for t in r.tasks for h in t.hosts)
    }
    for r in rounds:
        phases[r.phase]["rounds"] += 1
        for task in r.tasks:
            ways = [(region_of[src], region_of[dst]) for src, dst in task.pairs]
            if task.phase == "rtt":  # echo replies come back over the same fee
                ways = [way for src, dst in ways for way in ((src, dst), (dst, src))]
            gb = task_volume_gb(task) / len(ways)
            for src, dst in ways:
                usd = meter.add(src, dst, gb)
                regions[src]["sent_gb"] += gb
                regions[dst]["received_gb"] += gb
                for sums in (whole, phases[r.phase]):
                    sums["volume_gb"] += gb
                for sums in (whole, phases[r.phase], regions[src]):
                    sums["egress_usd"] += usd
    dearest = sorted(regions.items(), key=lambda item: (-item[1]["egress_usd"], item[0]))
    return whole | {"phases": phases, "regions": dict(dearest)}


SHARE_OF_ALL_PAIRS = 1 / 30
LEAST_LINKS = 24
HEADROOMS = (3.0, 1.5)
"""Factors of the expected volume that a probe may send; the last where a budget nears its end."""
LEAST_PROBE_GB = 1e-3  # allowance of the smallest throughput probe
LEAST_RTT_GB = 3e-5
"""Allowance of any round-trip probe, over all tools that it may take and both ways."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The rest that may be spent."""

    usd: float = inf  # infinite where there is no limit
    gb: float = inf
    name: str = "the budget"  # the limit as a noun phrase, for the message that it was reached

    def after(self, usd: float, gb: float) -> Allowance:
        """Return the rest after further spending."""
        return Allowance(max(0.0, self.usd - usd), max(0.0, self.gb - gb), self.name)


UNLIMITED = Allowance()


def frugal_allowance(
    all_pairs: Iterable[ProbeTask], region_of: Mapping[str, str], price: Price
) -> Allowance:
    """Return the limit of a campaign without a budget.

    `all_pairs` are the tasks that would measure everything, `region_of` is host to region. A pair
    without a price counts by its bytes alone.
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
    """The spending of a campaign, and the most that its running probes may spend.

    The meter prices volumes on top of earlier ones; `region_of` is host to region, and `spent` GB
    and USD of earlier runs of the campaign.
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
        self._reserved: dict[int, tuple[float, list[Sent]]] = {}
        self.sent_gb, self.usd = spent

    def reserve(self, task: ProbeTask, times: float = 1.0) -> float | None:
        """Reserve the price of the most that a probe may send: so many times what is expected.

        Returns its allowance in GB of payload; infinite without a budget, None where the budget
        does not allow the probe.
        """
        least_gb = LEAST_RTT_GB if task.phase == "rtt" else LEAST_PROBE_GB
        expected_gb = max(least_gb, task_volume_gb(task)) * times
        for headroom in HEADROOMS if self._budget_usd < inf else (1.0,):
            gb = expected_gb * headroom
            self._reserved[id(task)] = gb, self._links(task, gb)
            if self._budget_usd == inf:
                return inf
            at_most = sum(self._worst_usd(links) for _, links in self._reserved.values())
            if self.usd + at_most <= self._budget_usd:
                return gb
            self.release(task)
        return None

    def reserved(self, task: ProbeTask) -> tuple[float, float]:
        """Return GB and USD that are reserved for a task; without a budget, those expected."""
        gb, links = self._reserved[id(task)]
        return gb, self._worst_usd(links)

    def release(self, task: ProbeTask) -> None:
        """Give back the reservation of a task."""
        del self._reserved[id(task)]

    def charge(self, task: ProbeTask, sent: Iterable[Sent]) -> tuple[float, float]:
        """Count volumes of a task as tools count them; return their GB, and USD on the wire."""
        sent_gb = usd = 0.0
        for src, dst, gb in sent:
            sent_gb += gb
            for link in self._on_wire(task, src, dst, gb):
                usd += self._meter.add(*link)
        self.sent_gb += sent_gb
        self.usd += usd
        return sent_gb, usd

    def _links(self, task: ProbeTask, volume_gb: float) -> list[Sent]:
        """Return a task's volume on the wire, by link."""
        tests = 2 * len(task.in_turn) + (task.connections.bit_length() if task.ramp else 0)
        answered = [(dst, src) for src, dst in task.pairs] if task.phase == "rtt" else []
        return [
            link
            for pair in [*task.pairs, *answered]
            for link in self._on_wire(task, *pair, volume_gb / len(task.pairs), tests)
        ]

    def _worst_usd(self, links: Iterable[Sent]) -> float:
        """Return the price of volumes on the wire, before or after all reservations."""
        ahead_gb = sum(gb for _, others in self._reserved.values() for _, _, gb in others)
        return worst_usd(links, self._meter.price, ahead_gb)

    def _on_wire(
        self, task: ProbeTask, src: str, dst: str, gb: float, tests: int = 1
    ) -> Sequence[Sent]:
        """Return the volume on the wire for one that tools count, by regions."""
        ends = self._region_of[src], self._region_of[dst]
        if task.phase == "rtt":  # whole packets are counted, and replies on their own
            return ((*ends, gb),)
        return on_wire(*ends, gb, task.connections, tests)
