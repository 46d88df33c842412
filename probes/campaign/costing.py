"""The volume, duration and cost of a campaign, by region, before anything runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.pricing import average_usd_per_gb
from planner.model.units import BITS_PER_BYTE, S_PER_H
from probes.campaign.rounds import Round, schedule_s
from probes.campaign.tasks import ProbeTask

# An echo request of 64 bytes with IP and Ethernet headers, and as much for the reply.
PING_GB = 2 * 98e-9
PINGS_PER_S = 5.0
FORWARD, BACKWARD = 1.07, 0.03
"""Bytes on the wire over a test's payload: with headers (1,514 bytes for 1,448 of payload) and what
TCP sends again; and of the acknowledgements (66 bytes for two segments), which pay the other end's
price."""
TEST_GB, CONNECTION_GB = 5e-6, 0.5e-6
"""What a test and each of its connections take besides, each way: opening, parameters, results."""


@dataclass(frozen=True, slots=True)
class RegionCost:
    """What a campaign sends out of one region and into it.

    Attributes
    ----------
    sent_gb, received_gb : float
    egress_usd : float
        For what is sent.
    vm_hours, vm_usd : float
        0 without VM prices.
    """

    region: str
    sent_gb: float = 0.0
    received_gb: float = 0.0
    egress_usd: float = 0.0
    vm_hours: float = 0.0
    vm_usd: float = 0.0

    @property
    def total_usd(self) -> float:
        """Egress and VMs."""
        return self.egress_usd + self.vm_usd


@dataclass(frozen=True, slots=True)
class PhaseCost:
    """The cost of one phase of a campaign."""

    rounds: int
    duration_s: float
    volume_gb: float
    egress_usd: float


@dataclass(frozen=True, slots=True)
class CampaignCost:
    """What a campaign costs.

    Attributes
    ----------
    rounds : int
    duration_s, volume_gb, egress_usd, vm_usd : float
    by_region : dict
        Region to :class:`RegionCost`, dearest first.
    by_phase : dict
        Phase to :class:`PhaseCost`, in order.
    """

    rounds: int
    duration_s: float
    volume_gb: float
    egress_usd: float
    vm_usd: float
    by_region: dict[str, RegionCost]
    by_phase: dict[str, PhaseCost]

    @property
    def total_usd(self) -> float:
        """Egress and VMs."""
        return self.egress_usd + self.vm_usd


def task_volume_gb(task: ProbeTask) -> float:
    """Return the volume of a task, over all its pairs.

    Throughput probes send at their expected rate for their whole length: an upper estimate, as
    slow start sends less and a probe may stop early. RTT probes send small packets.
    """
    if task.phase == "rtt":
        return len(task.pairs) * PINGS_PER_S * task.duration_s * PING_GB
    return task.expected_gbps * task.duration_s / BITS_PER_BYTE


def on_wire(
    src: str, dst: str, payload_gb: float, connections: int, tests: int = 1
) -> tuple[tuple[str, str, float], tuple[str, str, float]]:
    """Return what throughput tests send on the wire, both ways, as source, destination and GB."""
    besides_gb = tests * (TEST_GB + CONNECTION_GB * connections)
    there_gb, back_gb = FORWARD * payload_gb, BACKWARD * payload_gb
    return (src, dst, there_gb + besides_gb), (dst, src, back_gb + besides_gb)


class Meter:
    """Prices bytes as they are sent, at the tier that each provider's month has reached.

    Serves both for costing before a campaign and for what was spent so far during one.

    Parameters
    ----------
    catalogue : Catalogue
    month_to_date_gb : mapping
        Provider (or ``*`` for any) to the volume billed this month before the campaign.
    usd_per_gb : mapping
        Source region to a flat price that overrides the catalogue's.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        month_to_date_gb: Mapping[str, float] = {},
        usd_per_gb: Mapping[str, float] = {},
    ) -> None:
        self._catalogue = catalogue
        self._before_gb = month_to_date_gb
        self._override = usd_per_gb
        self._sent_gb: dict[str, float] = defaultdict(float)

    def price(self, src: str, dst: str, volume_gb: float, ahead_gb: float = 0.0) -> float:
        """Return what a volume would cost in USD if it were sent next, or after another one.

        Raises
        ------
        DataError
            If neither the catalogue nor the overrides have a price for the pair.
        """
        if volume_gb <= 0:
            return 0.0
        if src in self._override:
            return self._override[src] * volume_gb
        provider = src.partition(":")[0]
        so_far = self._before_gb.get(provider, self._before_gb.get("*", 0.0))
        so_far += self._sent_gb[provider] + ahead_gb
        tiers = self._catalogue.egress_price(src, dst).tiers
        return average_usd_per_gb(tiers, volume_gb, so_far) * volume_gb

    def add(self, src: str, dst: str, volume_gb: float) -> float:
        """Count a volume sent between two regions; return what it costs in USD."""
        usd = self.price(src, dst, volume_gb)
        self._sent_gb[src.partition(":")[0]] += volume_gb
        return usd


def campaign_cost(
    rounds: Sequence[Round],
    region_of: Mapping[str, str],
    catalogue: Catalogue,
    *,
    month_to_date_gb: Mapping[str, float] = {},
    usd_per_gb: Mapping[str, float] = {},
    vm_usd_per_h: Mapping[str, float] | None = None,
    gap_s: float = 0.0,
) -> CampaignCost:
    """Return the volume, duration and cost of rounds.

    Parameters
    ----------
    rounds : sequence of Round
        In the order in which they run, which decides who reaches a price tier first.
    region_of : mapping
        Host to region.
    month_to_date_gb, usd_per_gb
        See :class:`Meter`.
    vm_usd_per_h : mapping, optional
        Host to price; its hosts are paid for the whole campaign.
    gap_s : float
        Time before each round.

    Raises
    ------
    InputError
        If a task names a host that has no region.
    DataError
        If a price is missing.
    """
    meter = Meter(catalogue, month_to_date_gb, usd_per_gb)
    sent: dict[str, float] = defaultdict(float)
    received: dict[str, float] = defaultdict(float)
    egress_usd: dict[str, float] = defaultdict(float)
    by_phase: dict[str, PhaseCost] = {}
    for r in rounds:
        volume_gb = usd = 0.0
        for task in r.tasks:
            each_gb = task_volume_gb(task) / len(task.pairs)
            # Echo replies come back over the same fee; everything else flows one way.
            both_ways = task.phase == "rtt"
            for pair in task.pairs:
                src, dst = (_region(host, region_of) for host in pair)
                for a, b in ((src, dst), (dst, src)) if both_ways else ((src, dst),):
                    gb = each_gb / 2 if both_ways else each_gb
                    price = meter.add(a, b, gb)
                    sent[a] += gb
                    received[b] += gb
                    egress_usd[a] += price
                    usd += price
                    volume_gb += gb
        so_far = by_phase.get(r.phase, PhaseCost(0, 0.0, 0.0, 0.0))
        by_phase[r.phase] = PhaseCost(
            so_far.rounds + 1,
            so_far.duration_s + r.duration_s + gap_s,
            so_far.volume_gb + volume_gb,
            so_far.egress_usd + usd,
        )
    duration_s = schedule_s(rounds, gap_s=gap_s)
    vm_hours: dict[str, float] = defaultdict(float)
    vm_usd: dict[str, float] = defaultdict(float)
    for host, price in (vm_usd_per_h or {}).items():
        region = _region(host, region_of)
        vm_hours[region] += duration_s / S_PER_H
        vm_usd[region] += price * duration_s / S_PER_H
    costs = [
        RegionCost(
            region,
            sent[region],
            received[region],
            egress_usd[region],
            vm_hours[region],
            vm_usd[region],
        )
        for region in sorted({*sent, *received, *vm_hours})
    ]
    costs.sort(key=lambda cost: -cost.total_usd)
    return CampaignCost(
        len(rounds),
        duration_s,
        sum(sent.values()),
        sum(egress_usd.values()),
        sum(vm_usd.values()),
        {cost.region: cost for cost in costs},
        by_phase,
    )


def all_pairs_tasks(
    hosts: Sequence[str],
    expected_gbps: Callable[[str, str], float],
    *,
    connections: int = 64,
    duration_s: float = 5.0,
) -> list[ProbeTask]:
    """Return one aggregate task for every ordered pair: what measuring everything means.

    64 connections and 5 s are what Skyplane's profiler uses.
    """
    return [
        ProbeTask("aggregate", ((src, dst),), connections, duration_s, expected_gbps(src, dst))
        for src, dst in permutations(hosts, 2)
    ]


def _region(host: str, region_of: Mapping[str, str]) -> str:
    try:
        return region_of[host]
    except KeyError:
        raise InputError(
            "host", "is not in the fleet", value=host, remedy="Add it to the fleet file."
        ) from None
