"""A plan: what to do, why, and what each alternative would give and cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from planner.model.answer import Advice, Bottleneck, Cost, PathShare, Recommendation

Verdict: TypeAlias = Literal["direct", "relay", "split"]


@dataclass(frozen=True, slots=True)
class PathPlan(PathShare):
    """One path of a plan and what it carries.

    Attributes
    ----------
    bottleneck : str
        The constraint that binds the path.
    """

    rtt_ms: float
    egress_usd_per_gb: float
    bottleneck: str


@dataclass(frozen=True, slots=True)
class DirectOption:
    """The direct path, whatever the verdict.

    Attributes
    ----------
    feasible : bool
        Whether it meets the request's limits. If not, the figures are those of the fastest
        direct transfer there is; None where nothing is known of the path.
    reason : str
        Why it is not feasible.
    throughput_gbps_low, throughput_gbps_high : float | None
        Bounds with the same VMs.
    connections : int | None
        TCP connections, over all VMs.
    vms : dict of str to int
        VMs by region.
    vm_start_s : float
        Part of the duration, until the VMs have started.
    """

    feasible: bool
    throughput_gbps: float | None
    duration_s: float | None
    cost_usd: Cost | None
    rtt_ms: float | None
    reason: str = ""
    throughput_gbps_low: float | None = None
    throughput_gbps_high: float | None = None
    connections: int | None = None
    vms: dict[str, int] = field(default_factory=dict)
    vm_start_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RelayOption:
    """A single relay carrying everything.

    Attributes
    ----------
    gain : float | None
        Throughput over that of direct; None where there is no direct path.
    gain_low, gain_high : float | None
        Its 90 % range, where errors that both paths share cancel.
    probability : float | None
        That it is better than direct by the margin, in the objective's terms.
    cost_ratio : float | None
        Cost over that of direct.
    throughput_gbps_low, throughput_gbps_high : float | None
        Bounds with the same VMs.
    connections : int | None
        TCP connections on each link, over all VMs.
    vms : dict of str to int
        VMs by region.
    vm_start_s : float
        Part of the duration, until the VMs have started.
    """

    relay: str
    throughput_gbps: float
    gain: float | None
    gain_low: float | None
    duration_s: float
    cost_usd: Cost
    cost_ratio: float | None
    rtt_ms: float
    throughput_gbps_low: float | None = None
    throughput_gbps_high: float | None = None
    connections: int | None = None
    vms: dict[str, int] = field(default_factory=dict)
    gain_high: float | None = None
    probability: float | None = None
    vm_start_s: float = 0.0


@dataclass(frozen=True, slots=True)
class OneVmOption:
    """The recommendation with one VM in each region for which no number was stated."""

    verdict: Verdict
    relays: tuple[str, ...]
    throughput_gbps: float
    duration_s: float
    cost_usd: Cost


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One point of the cost-time frontier."""

    throughput_gbps: float
    duration_s: float
    cost_usd: Cost
    verdict: Verdict
    relays: tuple[str, ...]
    vms: dict[str, int]


@dataclass(frozen=True, slots=True)
class MeasureFirst:
    """A measurement that would settle what the plan leaves open.

    Attributes
    ----------
    kind : str
        ``aggregate``: with as many connections as a VM opens; ``flow``: with one; ``ramp``: with
        more and more.
    volume_gb : float
        What is sent, at the rate that is expected.
    """

    src: str
    dst: str
    kind: Literal["aggregate", "flow", "ramp"]
    duration_s: float
    volume_gb: float
    cost_usd: float
    reason: str


@dataclass(frozen=True, slots=True)
class KnownRate:
    """The rate of a path now, by estimates and outcomes.

    Attributes
    ----------
    via : str
        A relay, or ``direct``.
    outcomes : int
        How many of the path there are.
    """

    via: str
    gbps_low: float
    gbps: float
    gbps_high: float
    outcomes: int


@dataclass(frozen=True, slots=True)
class Exploration:
    """The path to take, and estimates from past transfers.

    Attributes
    ----------
    via, best : str
        The path to take, and the one that is predicted to be best; they differ where one is tried.
        Empty where only several paths together meet the limits.
    spent, allowed : float
        What trials have cost more than was predicted, and what they may have: in USD, in seconds
        where time alone counts.
    rates : tuple of KnownRate
        Of all paths that were considered.
    """

    via: str
    best: str
    spent: float
    allowed: float
    rates: tuple[KnownRate, ...]


@dataclass(frozen=True, slots=True)
class CopyService:
    """A service that copies between buckets without VMs of one's own.

    Attributes
    ----------
    name, emit : str
        What people call it, and ``--emit``.
    usd_per_gb : float
        Its own fee.
    cost_usd : float
        With egress and requests of the direct path, for the whole volume.
    source, as_of : str
        Page and month of the fee.
    unconfirmed : bool
        Whether the page itself was not read.
    """

    name: str
    emit: str
    usd_per_gb: float
    cost_usd: float
    source: str
    as_of: str
    unconfirmed: bool


@dataclass(frozen=True, slots=True)
class Plan(Recommendation):
    """A recommendation for one transfer.

    Attributes
    ----------
    throughput_gbps_least : float | None
        The least of its draws: of 64 links that were not measured, one is far below its class.
    exploration : Exploration | None
        With `explore`.
    vm_start_s : float
        Part of the duration, until the VMs have started.
    vcpus : dict of str to int
        Of all its VMs by region, where their type is known; as a catalogue states them.
    vm_types : dict of str to str
        By region.
    services : tuple of CopyService
        Where both ends are buckets: what copies them instead, the cheapest first.
    """

    request: dict[str, Any]
    verdict: Verdict
    reason: str
    throughput_gbps: float
    throughput_gbps_low: float
    throughput_gbps_high: float
    duration_s: float
    cost_usd: Cost
    paths: tuple[PathPlan, ...]
    vms: dict[str, int]
    direct: DirectOption
    best_relay: RelayOption | None
    alternatives: tuple[RelayOption, ...] = ()
    bottlenecks: tuple[Bottleneck, ...] = ()
    advice: tuple[Advice, ...] = ()
    confidence: str = ""
    frontier: tuple[FrontierPoint, ...] = ()
    measure_first: tuple[MeasureFirst, ...] = ()
    one_vm: OneVmOption | None = None
    """None where numbers of VMs were stated, or where one can't meet the limits."""
    exploration: Exploration | None = None
    vm_start_s: float = 0.0
    vcpus: dict[str, int] = field(default_factory=dict)
    vm_types: dict[str, str] = field(default_factory=dict)
    throughput_gbps_least: float | None = None
    services: tuple[CopyService, ...] = ()

    def __repr__(self) -> str:
        """Describe the plan in one line."""
        return (
            f"<Plan {self.plan_id}: {self.verdict}, {self.throughput_gbps:.2f} Gbit/s, "
            f"{self.duration_s:.0f} s, ${self.cost_usd.total:.2f}>"
        )
