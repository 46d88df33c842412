"""Tasks of a campaign's probes, its limits, and its log.

The log is on disk, so that a campaign can resume after any interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, Protocol, TypeAlias

from probes.fleet.failures import Cause
from probes.samples import Sample

Status: TypeAlias = Literal["planned", "done", "failed"]
Phase: TypeAlias = Literal["rtt", "per-flow", "aggregate", "caps"]
PHASES: tuple[Phase, ...] = ("rtt", "per-flow", "aggregate", "caps")


@dataclass(frozen=True, slots=True)
class ProbeTask:
    """One probe: a set of pairs (source, destination) of hosts that are measured together.

    One pair, except for ``caps``: one source to many destinations measures an egress cap, many
    sources to one destination an ingress cap. Parts of ``duration_s`` come in the order one
    connection, first measurement, many connections, UDP.
    """

    phase: Phase
    pairs: tuple[tuple[str, str], ...]
    connections: int  # a pair; 1 for per-flow, 0 for rtt; for aggregate the most that are tried
    duration_s: float  # at its longest, warm-up included
    expected_gbps: float = 0.0  # over all pairs together and in the mean of the time, for costing
    ramp: bool = False  # whether 1, 2, 4, ... connections are tried
    udp_s: float = 0.0  # part in which UDP is offered
    flow_s: float = 0.0  # longest part of one connection by itself
    flow_gbps: float = 0.0  # rate to expect in it; expected_gbps is a mean over it, too
    udp_rates: int = 1  # growing rates of UDP, each for its part of udp_s
    first_s: float = 0.0  # part in which many are measured first; the end, if as expected
    least_gbps: float = 0.0  # range of rates that are as expected of a first measurement
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
    """The limits of a campaign."""

    budget_usd: float = inf
    deadline_s: float = inf  # by time.monotonic(); no probe starts that would end after it
    attempts: int = 3  # for one probe
    backoff_s: float = 1.0  # before the second attempt; four times as long before each further one
    # Each bandwidth probe starts up to this much later: some clouds dip at full and half minutes,
    # and tests that begin together meet in the same queues.
    jitter_s: float = 0.25
    at_once: int = 1_000  # bandwidth probes
    pings_at_once: int = 64
    pings_of_host: int = 4  # at once
    host_failures: int = 2  # in a row, after which a host is skipped until the end of the stage


@dataclass(frozen=True, slots=True)
class Probe:
    """A task in the log of a campaign, with the reason of its last failure.

    Tasks of one stage are chosen together: ``rtt``, ``per-flow``, ``caps``, ``aggregate 1``.
    """

    id: int
    stage: str
    task: ProbeTask
    status: Status = "planned"
    problem: str = ""


@dataclass(eq=False)
class ProbeOutcome:
    """The result of a probe, with notes on one that succeeded."""

    probe: Probe
    samples: tuple[Sample, ...] = ()
    sent_gb: float = 0.0  # by all its attempts
    usd: float = 0.0  # on the wire
    attempts: int = 1
    problem: str = ""  # the reason of its failure; "" without one
    cause: Cause | None = None
    host: str = ""  # at fault
    busy_s: float = 0.0  # time for which tools were at work on the attempt that counted
    notes: tuple[str, ...] = ()


class CampaignLog(Protocol):
    """The record of a campaign. Everything is on disk when a method returns."""

    def probes(self) -> Sequence[Probe]:
        """All probes so far, in the order in which they were planned."""

    def plan(self, stage: str, tasks: Sequence[ProbeTask]) -> Sequence[Probe]:
        """Keep the tasks of a stage."""

    def reserve(self, starting: Sequence[tuple[Probe, float, float]]) -> None:
        """Keep the most GB and USD of each probe until it is recorded, before it starts."""

    def record(self, outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep samples together with the fact that their probes are done: all or nothing."""

    def charge_lost(self) -> None:
        """Count reservations as spent: those of probes that an earlier run started and lost."""

    def spent(self) -> tuple[float, float]:
        """GB and USD so far, with reservations."""
