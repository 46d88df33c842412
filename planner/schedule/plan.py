"""A schedule: which transfers are admitted, and at what rate each sends when and over what."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from planner.model.answer import Cost, Recommendation
from planner.model.estimate import AddressKind

ScheduleVerdict: TypeAlias = Literal["admitted", "refused", "best effort"]
AdmissionObjective: TypeAlias = Literal["value", "number"]


@dataclass(frozen=True, slots=True)
class PathRate:
    """What one path carries in a period.

    Attributes
    ----------
    regions : tuple of str
        Two for direct, three through a relay. What is stored at a relay has two paths, at different
        times: from the source to the relay, and from the relay to the destination.
    connections : int
        TCP connections on each link, over all VMs.
    addresses : tuple of AddressKind
        Over which kind of address each link is.
    """

    regions: tuple[str, ...]
    throughput_gbps: float
    connections: int
    addresses: tuple[AddressKind, ...] = ()


@dataclass(frozen=True, slots=True)
class Period:
    """A time in which a transfer sends at constant rates."""

    start_s: float
    end_s: float
    throughput_gbps: float
    paths: tuple[PathRate, ...]

    def moved_gbit(self, src: str, dst: str) -> dict[str, float]:
        """Return the change of the volume at the destination and at each relay.

        Parameters
        ----------
        src, dst : str
            Of the transfer.
        """
        rates = defaultdict(float, {dst: self.throughput_gbps})
        for path in self.paths:
            first, last, rate = path.regions[0], path.regions[-1], path.throughput_gbps
            if last != dst:
                rates[dst] -= rate
                rates[last] += rate
            if first != src:
                rates[first] -= rate
        return {region: rate * (self.end_s - self.start_s) for region, rate in rates.items()}


@dataclass(frozen=True, slots=True)
class StoredVolume:
    """The volume of a transfer stored at a relay, and when.

    Attributes
    ----------
    most_gb : float
        The most stored at a time.
    usd : float
        The cost of this storage from `now_s` on.
    """

    region: str
    start_s: float
    end_s: float
    most_gb: float
    usd: float


@dataclass(frozen=True, slots=True)
class MoreVms:
    """VMs that would suffice.

    Attributes
    ----------
    vms : dict
        Region to how many more.
    at_least : int
        Proven: no fewer suffice.
    """

    vms: dict[str, int]
    at_least: int


@dataclass(frozen=True, slots=True)
class Remedies:
    """Changes that would each admit a refused transfer while admitted ones stay admitted.

    VMs are for this transfer alone: another refused one of higher priority would take them.

    Attributes
    ----------
    volume_gb : float
        The most of it that can be moved by the deadline; 0 if there is no time at all.
    deadline_s : float
        The earliest deadline that can be met for all of it.
    more_vms : MoreVms | None
        None where no number of VMs is enough, because the window is too short to begin.
    """

    volume_gb: float
    deadline_s: float
    more_vms: MoreVms | None


@dataclass(frozen=True, slots=True)
class TransferSchedule:
    """One transfer and its verdict.

    Attributes
    ----------
    verdict : ScheduleVerdict
        ``admitted``: it ends by its deadline; ``refused``: its deadline can't be promised; ``best
        effort``: it has no deadline and uses the capacity that the others leave.
    end_s : float | None
        When it ends, getting up to speed included; None if it is refused.
    slack_s : float | None
        From its end to its deadline.
    periods : tuple of Period
        In order of time, with pauses left out.
    remedies : Remedies | None
        For one that is refused.
    stored : tuple of StoredVolume
        Volumes stored at relays with disk, in order of time.
    """

    id: str
    src: str
    dst: str
    volume_gb: float
    start_s: float
    deadline_s: float | None
    priority: int
    value_usd: float | None
    verdict: ScheduleVerdict
    end_s: float | None
    slack_s: float | None
    egress_usd: float
    periods: tuple[Period, ...]
    remedies: Remedies | None
    stored: tuple[StoredVolume, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmissionClass:
    """Transfers with deadlines that were decided together, after those of higher classes.

    Attributes
    ----------
    objective : AdmissionObjective
        What was to be the greatest: the total value in USD, or the number of transfers, where none
        of them has a value.
    transfers, admitted : int
        How many there are, and how many are admitted.
    reached, bound : float
        Of the objective: the value reached, and the most possible next to the higher classes.
    """

    priority: int
    objective: AdmissionObjective
    transfers: int
    admitted: int
    reached: float
    bound: float


@dataclass(frozen=True, slots=True)
class Busy:
    """How full a region's VMs are until the schedule ends.

    Attributes
    ----------
    constraint : str
        Which of their limits is fullest at its peak.
    peak_share, mean_share : float
        Of that limit, at the fullest moment and over the whole time.
    """

    region: str
    constraint: str
    peak_share: float
    mean_share: float


@dataclass(frozen=True, slots=True)
class TariffUse:
    """The volume that a schedule sends under a tariff, and when its monthly cost pays off.

    Attributes
    ----------
    volume_gb : float
        Sent under it from `now_s` on.
    saved_usd : float
        The extra cost if the meter also counted this volume.
    break_even_gb : float | None
        Monthly volume at which it saves its monthly cost, if each GB saves as much as here.
        None if it costs nothing a month, or saves nothing.
    full_gb : float | None
        The most that can be sent under it in a month, 730 hours; None without a limit.
    """

    id: str
    src: str
    dst: str
    volume_gb: float
    saved_usd: float
    monthly_usd: float
    break_even_gb: float | None
    full_gb: float | None


@dataclass(frozen=True, slots=True)
class SchedulePlan(Recommendation):
    """Transfers admitted or refused, and when each sends.

    Attributes
    ----------
    now_s : float
        The time from which this was planned; everything before it has happened.
    end_s : float
        When the last transfer ends.
    admitted, refused, best_effort : int
        How many transfers have each verdict.
    bound_usd : float
        No schedule of the admitted transfers has lower egress fees from `now_s` on, proven.
    value_usd : float
        Total value of the admitted transfers.
    vms : dict
        Region to the most VMs that are in use at a time.
    admission : tuple of AdmissionClass
        In the order decided: what a schedule in progress promised, then by priority, and of equal
        priorities those that have a value first.
    connections : dict
        Region to the most TCP connections that a VM there needs at a time.
    tariffs : tuple of TariffUse
        In the order asked. What they cost a month is not part of `cost_usd`.
    storage_usd : float
        For volumes stored at relays from `now_s` on; part of the total of `cost_usd`.
    vm_start_s : float
        Time that VMs take to start, of which none sends.
    """

    request: dict[str, Any]
    reason: str
    now_s: float
    end_s: float
    admitted: int
    refused: int
    best_effort: int
    volume_gb: float
    relayed_share: float
    cost_usd: Cost
    bound_usd: float
    value_usd: float
    transfers: tuple[TransferSchedule, ...]
    vms: dict[str, int]
    busiest: tuple[Busy, ...] = ()
    admission: tuple[AdmissionClass, ...] = ()
    connections: dict[str, int] = field(default_factory=dict)
    tariffs: tuple[TariffUse, ...] = ()
    storage_usd: float = 0.0
    vm_start_s: float = 0.0

    def transfer(self, transfer_id: str) -> TransferSchedule:
        """Return one transfer by its id."""
        return {transfer.id: transfer for transfer in self.transfers}[transfer_id]

    def __repr__(self) -> str:
        """Describe the schedule in one line."""
        return (
            f"<SchedulePlan {self.plan_id}: {self.admitted} admitted, {self.refused} refused, "
            f"{self.best_effort} best effort, {self.volume_gb:.0f} GB, "
            f"${self.cost_usd.total:.2f}>"
        )
