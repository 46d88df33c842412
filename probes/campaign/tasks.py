"""Tasks of a campaign's probes, its limits, and its log.

The log is on disk, so that a campaign can resume after any interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

from probes.fleet.failures import Cause
from probes.samples import Sample

Status: TypeAlias = Literal["planned", "done", "failed"]
Phase: TypeAlias = Literal["rtt", "per-flow", "aggregate", "caps"]
PHASES: tuple[Phase, ...] = ("rtt", "per-flow", "aggregate", "caps")


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """One probe: a set of host pairs that are measured together.

    Attributes
    ----------
    phase : Phase
    pairs : tuple of (source host, destination host)
        Names of fleet hosts. One pair, except for ``caps``: one source to many destinations
        measures an egress cap, many sources to one destination an ingress cap.
    connections : int
        Parallel TCP connections a pair; 1 for per-flow, 0 for rtt. For ``aggregate`` the largest
        number that is tried.
    duration_s : float
        Of the measurement at its longest, warm-up included.
    expected_gbps : float
        Rate to expect over all pairs together and in the mean of the time, for costing.
    ramp : bool
        Whether 1, 2, 4, ... connections are tried (:mod:`probes.campaign.ramping`).
    udp_s : float
        Part of ``duration_s`` in which UDP is offered, after TCP was measured.
    flow_s : float
        Part of ``duration_s``, at most, in which one connection is measured by itself, before any
        other is opened.
    flow_gbps : float
        Rate to expect in that time; ``expected_gbps`` is a mean over it, too.
    udp_rates : int
        Number of growing rates at which UDP is offered, each for its part of ``udp_s``.
    first_s : float
        Part of ``duration_s``, warm-up included, in which many connections are measured first. The
        probe ends with it where its seconds agree and are as expected; 0 to measure once.
    least_gbps, most_gbps : float
        Range of rates that are as expected of a first measurement.
    """

    phase: Phase
    pairs: tuple[tuple[str, str], ...]
    connections: int
    duration_s: float
    expected_gbps: float = 0.0
    ramp: bool = False
    udp_s: float = 0.0
    flow_s: float = 0.0
    flow_gbps: float = 0.0
    udp_rates: int = 1
    first_s: float = 0.0
    least_gbps: float = 0.0
    most_gbps: float = 0.0

    @property
    def hosts(self) -> frozenset[str]:
        """All hosts that take part."""
        return frozenset(host for pair in self.pairs for host in pair)

    @property
    def in_turn(self) -> tuple[ProbeTask, ...]:
        """Its parts one after the other: one connection by itself, then many."""
        if not self.flow_s:
            return (self,)
        one = ProbeTask("per-flow", self.pairs, 1, self.flow_s, self.flow_gbps)
        many_s = self.duration_s - self.flow_s
        volume = self.expected_gbps * self.duration_s - self.flow_gbps * self.flow_s
        many = replace(
            self, duration_s=many_s, expected_gbps=volume / many_s, flow_s=0.0, flow_gbps=0.0
        )
        return one, many


@dataclass(frozen=True, slots=True)
class CampaignLimits:
    """The limits of a campaign.

    Attributes
    ----------
    budget_usd : float
    deadline_s : float
        By ``time.monotonic()``; no probe starts that would end after it.
    attempts : int
        For one probe.
    backoff_s : float
        Before the second attempt; four times as long before each further one.
    jitter_s : float
        Each bandwidth probe starts up to this much later: some clouds dip at full and half
        minutes, and tests that begin together meet in the same queues.
    at_once : int
        Bandwidth probes at a time.
    pings_at_once, pings_of_host : int
        Round-trip probes at a time, in all and from one host.
    host_failures : int
        Failures in a row after which a host is skipped until the end of the stage.
    """

    budget_usd: float = float("inf")
    deadline_s: float = float("inf")
    attempts: int = 3
    backoff_s: float = 1.0
    jitter_s: float = 0.25
    at_once: int = 1_000
    pings_at_once: int = 64
    pings_of_host: int = 4
    host_failures: int = 2


@dataclass(frozen=True, slots=True)
class Probe:
    """A task of a campaign.

    Attributes
    ----------
    id : int
        Of the log.
    stage : str
        Tasks of one stage are chosen together: ``rtt``, ``per-flow``, ``caps``, ``aggregate 1``.
    status : Status
    problem : str
        The reason of its last failure, or ``""``.
    """

    id: int
    stage: str
    task: ProbeTask
    status: Status = "planned"
    problem: str = ""


@dataclass(eq=False)
class ProbeOutcome:
    """The result of a probe.

    Attributes
    ----------
    probe : Probe
    samples : tuple of Sample
    sent_gb, usd : float
        Volume of all its attempts, and its cost on the wire.
    attempts : int
    problem : str
        The reason of its failure; ``""`` without one.
    cause, host : Cause | None, str
        Of the failure.
    busy_s : float
        Time for which tools were at work on the attempt that counted.
    notes : tuple of str
        Remarks on a probe that succeeded.
    """

    probe: Probe
    samples: tuple[Sample, ...] = ()
    sent_gb: float = 0.0
    usd: float = 0.0
    attempts: int = 1
    problem: str = ""
    cause: Cause | None = None
    host: str = ""
    busy_s: float = 0.0
    notes: tuple[str, ...] = ()


class CampaignLog(Protocol):
    """The record of a campaign. Everything is on disk when a method returns."""

    def probes(self) -> Sequence[Probe]:
        """Return all probes so far, in the order in which they were planned."""

    def plan(self, stage: str, tasks: Sequence[ProbeTask]) -> Sequence[Probe]:
        """Keep the tasks of a stage."""

    def reserve(self, starting: Sequence[tuple[Probe, float, float]]) -> None:
        """Keep the most GB and USD of each probe until it is recorded, before it starts."""

    def record(self, outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep samples together with the fact that their probes are done: all or nothing."""

    def charge_lost(self) -> None:
        """Count reservations as spent: those of probes that an earlier run started and lost."""

    def spent(self) -> tuple[float, float]:
        """Return GB and USD so far, with reservations."""
