"""One way to send many volumes: its time, VMs and cost, and how it compares with another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import TypeVar

import numpy as np

from planner.broadcast.request import BroadcastRequest
from planner.fields.shared import VmRequest
from planner.model.answer import Cost
from planner.model.network import Network
from planner.model.shared_resources import Floats
from planner.model.units import S_PER_H
from planner.shared_vms.problem import SharedFigures
from planner.shuffle.request import ShuffleRequest
from planner.solvers.joint import Gain, compared

F = TypeVar("F", float, Floats)


@dataclass(frozen=True)
class Candidate:
    """One way to send everything.

    Attributes
    ----------
    figures : SharedFigures
        Those that its time rests on.
    links_gbit : array, shape (n, n)
    transfer_s, vm_start_s, ramp_s : float
        For moving all volumes; before that, until VMs have started, and until the slowest path is
        up to speed.
    vms : array, length n
    value : float
        Under the request's objective, the less the better: USD, or s where time alone counts.
    """

    figures: SharedFigures
    links_gbit: Floats
    transfer_s: float
    vm_start_s: float
    ramp_s: float
    vms: Floats
    cost: Cost
    value: float

    @property
    def lead_s(self) -> float:
        """Until VMs have started and the slowest path is up to speed."""
        return self.vm_start_s + self.ramp_s

    @property
    def duration_s(self) -> float:
        """Until the last volume has arrived."""
        return self.transfer_s + self.lead_s

    def gain(
        self, over: Candidate, request: ShuffleRequest | BroadcastRequest, network: Network
    ) -> Gain:
        """Return the gain over another candidate in the objective's terms, in shared draws."""
        worse, better = (one._drawn_values(request, network) for one in (over, self))
        ratios = np.divide(worse, better, out=np.ones_like(worse), where=better > 0)
        expected = over.value / self.value if self.value > 0 else 1.0
        return compared(expected, ratios, request.margin, request.risk)

    def _drawn_values(self, request: VmRequest, network: Network) -> Floats:
        """Return the value in each draw of the unknowns."""
        figures, of = self.figures, (self.links_gbit, self.vms)
        times_s = figures.drawn_times(network, request.connections).times_s(*of)
        busy_s = times_s * figures.rounding(*of, self.transfer_s) + self.ramp_s
        usd = self.cost.egress + figures.vm_usd(self.vms, busy_s)
        return value_of(request, usd, busy_s + self.vm_start_s)


C = TypeVar("C", bound=Candidate)


def value_of(request: VmRequest, usd: F, duration_s: F) -> F:
    """Value costs and durations by the objective of a request."""
    hour_usd = request.hour_usd
    return duration_s if hour_usd == inf else usd + hour_usd * duration_s / S_PER_H


def unbeaten(candidates: Iterable[C], least: float) -> list[C]:
    """Return those that none beats in time and cost, from the fastest to the cheapest.

    Each costs less than the one before, by at least a share of its cost.
    """
    kept: list[C] = []
    for candidate in sorted(candidates, key=lambda c: (c.duration_s, c.cost.total)):
        if not kept or candidate.cost.total < kept[-1].cost.total * (1 - least):
            kept.append(candidate)
    return kept
