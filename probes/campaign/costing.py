"""What a campaign moves, takes and costs, by region, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.catalogue import Catalogue
from probes.campaign.rounds import Round
from probes.campaign.tasks import ProbeTask


@dataclass(frozen=True, slots=True)
class RegionCost:
    """What a campaign sends out of one region and into it.

    Attributes
    ----------
    sent_gb, received_gb : float
    egress_usd : float
        For what is sent.
    vm_hours, vm_usd : float
        0 unless VM prices were given.
    """

    region: str
    sent_gb: float
    received_gb: float
    egress_usd: float
    vm_hours: float = 0.0
    vm_usd: float = 0.0


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
        Phase to (rounds, seconds, GB).
    """

    rounds: int
    duration_s: float
    volume_gb: float
    egress_usd: float
    vm_usd: float
    by_region: dict[str, RegionCost]
    by_phase: dict[str, tuple[int, float, float]]

    @property
    def total_usd(self) -> float:
        """Egress and VMs."""
        return self.egress_usd + self.vm_usd


def task_volume_gb(task: ProbeTask) -> float:
    """Return the volume of a task, over all its pairs, at its expected rate."""
    raise NotImplementedError


class Meter:
    """Prices bytes as they are sent, at the tier that each provider's month has reached.

    Serves both for costing before a campaign and for what was spent so far during one.

    Parameters
    ----------
    catalogue : Catalogue
    month_to_date_gb : mapping
        Provider (or ``*``) to the volume billed this month before the campaign.
    usd_per_gb : mapping
        Source region to a flat price that overrides the catalogue's.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        month_to_date_gb: Mapping[str, float] = {},
        usd_per_gb: Mapping[str, float] = {},
    ) -> None:
        raise NotImplementedError

    def add(self, src: str, dst: str, volume_gb: float) -> float:
        """Count a volume sent between two regions; return what it costs in USD."""
        raise NotImplementedError


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
    """Return what rounds move, take and cost.

    Parameters
    ----------
    rounds : sequence of Round
    region_of : mapping
        Host to region.
    month_to_date_gb, usd_per_gb
        See :class:`Meter`.
    vm_usd_per_h : mapping, optional
        Host to price; given, each host is paid for the campaign's whole length.
    gap_s : float
        Time before each round.
    """
    raise NotImplementedError


def all_pairs_tasks(
    hosts: Sequence[str],
    expected_gbps: Callable[[str, str], float],
    *,
    connections: int = 64,
    duration_s: float = 5.0,
) -> list[ProbeTask]:
    """Return one aggregate task for every ordered pair (``--thorough``, and the yardstick)."""
    raise NotImplementedError
