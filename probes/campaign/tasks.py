"""What one probe of a campaign is to do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

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
        For how much of ``duration_s`` UDP is offered, after TCP was measured.
    flow_s : float
        For how much of ``duration_s``, at most, one connection is measured by itself, before any
        other is opened.
    flow_gbps : float
        Rate to expect in that time, which ``expected_gbps`` is also the mean of.
    udp_rates : int
        At how many growing rates UDP is offered, each for its part of ``udp_s``.
    first_s : float
        For how much of ``duration_s``, warm-up included, many connections are measured first. The
        probe ends with that where its seconds agree and find what is expected; 0 to measure once.
    least_gbps, most_gbps : float
        Between which a first measurement is what was expected.
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
        """What it measures one after the other: one connection by itself, then many."""
        if not self.flow_s:
            return (self,)
        one = ProbeTask("per-flow", self.pairs, 1, self.flow_s, self.flow_gbps)
        many_s = self.duration_s - self.flow_s
        volume = self.expected_gbps * self.duration_s - self.flow_gbps * self.flow_s
        many = replace(
            self, duration_s=many_s, expected_gbps=volume / many_s, flow_s=0.0, flow_gbps=0.0
        )
        return one, many
