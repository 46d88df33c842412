"""Ways to send many volumes, and the number of VMs where the request states none.

By the rule of one transfer: the fewest VMs a region that are within
:data:`~planner.transfer.decision.AS_GOOD` of the best by cost plus time, fees left out
(:mod:`planner.transfer.decision`). On a given routing that is a closed form: a plan is best where
some site's VMs are just full, so the times to compare are those at which a site needs a whole
number of VMs. As n VMs everywhere divide all times by n, the best routing hardly depends on n: it
is found for a first number, and again if another one is better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol, TypeVar

import numpy as np

from planner.fields.shared import RelayingRequest, VmRequest
from planner.model.answer import Cost
from planner.model.errors import InfeasibleError
from planner.model.network import Network
from planner.model.shared_resources import Floats
from planner.model.throughput import ramp_up_s
from planner.model.units import S_PER_H
from planner.model.vm_limits import SAME_TIME
from planner.shared_vms.problem import SharedFigures
from planner.solvers.joint import Gain, Risk, compared
from planner.transfer.allocation import ROUNDING
from planner.transfer.decision import slack

Vms = Mapping[str, float]
F = TypeVar("F", float, Floats)


@dataclass(frozen=True)
class Candidate:
    """One way to send everything."""

    figures: SharedFigures  # those that its time rests on
    links_gbit: Floats  # shape (n, n)
    transfer_s: float  # for moving all volumes
    vm_start_s: float  # before that, until VMs have started
    ramp_s: float  # before that, until the slowest path is up to speed
    vms: Floats  # length n
    cost: Cost
    # Under the request's objective, the less the better: USD, or s where time alone counts
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
        self, over: Candidate, request: VmRequest, network: Network, margin: float, risk: Risk
    ) -> Gain:
        """Return the gain over another candidate in the objective's terms, in shared draws."""
        worse, better = (one._drawn_values(request, network) for one in (over, self))
        ratios = np.divide(worse, better, out=np.ones_like(worse), where=better > 0)
        expected = over.value / self.value if self.value > 0 else 1.0
        return compared(expected, ratios, margin, risk)

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


class _Decision(Protocol):
    """A candidate was chosen: `links_gbit`, `transfer_s`, `duration_s`, `vms`."""

    @property
    def chosen(self) -> Any: ...


D = TypeVar("D", bound=_Decision)


def with_decided_vms(
    request: RelayingRequest,
    figures: SharedFigures,
    hour_usd: float,
    deadline_s: float | None,
    links_gbit: Floats | None,
    solve: Callable[[Vms], D],
) -> D:
    """Return the decision with the fewest VMs that are as good, of those that there may be.

    Where the request states how many that is, only those without which it is no worse are left out.

    Raises InfeasibleError if no plan meets the deadline.

    Parameters
    ----------
    figures : SharedFigures
        With the most VMs that there may be.
    hour_usd : float
        What an hour is worth.
    deadline_s : float, optional
        The latest end.
    links_gbit : array, shape (n, n), optional
        Volumes of a plausible routing, to begin with; else with the most VMs.
    solve : callable
        Returns the decision with some numbers of VMs by region.
    """
    most = dict(zip(figures.regions, figures.resources.vms.tolist(), strict=True))

    def fewest(links: Floats, lead_s: float) -> tuple[dict[str, float], int]:
        return fewest_vms(request, figures, links, lead_s, hour_usd, deadline_s or inf)

    def within(count: int) -> dict[str, float]:
        return {r: n if r in request.vms_in else min(n, count) for r, n in most.items()}

    begin = most
    if links_gbit is not None:
        longest_ms = float(figures.rtt_ms[links_gbit > 0].max(initial=0.0))
        start_s = figures.start_s(links_gbit.sum(axis=0) + links_gbit.sum(axis=1))
        begin = within(fewest(links_gbit, start_s + ramp_up_s(longest_ms))[1])
    try:
        found = solve(begin)
    except InfeasibleError:
        if begin == most:
            raise
        found = solve(most)
    chosen = found.chosen
    vms, count = fewest(chosen.links_gbit, chosen.duration_s - chosen.transfer_s)
    used = {r: n for r, n in zip(figures.regions, chosen.vms.tolist(), strict=True) if n}
    if all(vms.get(region, 1.0) == n for region, n in used.items()):
        return found
    try:
        return solve({**within(count), **vms})
    except InfeasibleError:  # by rounding: the first has the time
        return found


def fewest_vms(
    request: VmRequest,
    figures: SharedFigures,
    links_gbit: Floats,
    lead_s: float,
    hour_usd: float,
    deadline_s: float = inf,
) -> tuple[dict[str, float], int]:
    """Return the VMs of the sites that a routing uses, and the most at any one not stated.

    None are returned, and the most that there may be, where no number meets the deadline.
    """
    most, busy_s = figures.resources.vms, figures.resources.vms_for(links_gbit, 1.0)
    used, stated = busy_s > 0, request.vm_limits.vms_in
    undecided = used & np.array([region not in stated for region in figures.regions])
    counts = range(1, int(most[used].max(initial=1.0)) + 1)
    times_s = np.concatenate([busy_s[used] / count for count in counts])
    links_s = (links_gbit / figures.resources.link_gbps).max(initial=0.0)
    links_s = max(links_s, figures.resources.sites_s(links_gbit))
    times_s = np.unique(np.maximum(times_s, links_s))
    loads = busy_s / times_s[:, None]
    vms = np.where(used, np.maximum(1.0, np.ceil(loads - ROUNDING * (1 + loads))), 0.0)
    ends_s = times_s + lead_s
    may = (vms <= most).all(axis=1) & (ends_s <= deadline_s * (1 + SAME_TIME))
    if not may.any():
        return {}, int(most.max())
    vms, ends_s = vms[may], ends_s[may]
    vm_usd = vms @ figures.vm_usd_per_h * ends_s / S_PER_H
    value = ends_s if hour_usd == inf else vm_usd + hour_usd * ends_s / S_PER_H
    egress_usd = figures.fees.usd(links_gbit) if hour_usd < inf else 0.0
    worst = value.min() * (1 + SAME_TIME)
    if request.vm_limits.vms is None:  # what was stated may be used up
        worst = value.min() + slack(hour_usd, value.min() + egress_usd, egress_usd)
    widest = np.where(undecided, vms, 1.0).max(axis=1)
    order = np.lexsort((ends_s, value, widest, value > worst))
    best = int(order[0])
    regions = (region for region, is_used in zip(figures.regions, used, strict=True) if is_used)
    return dict(zip(regions, vms[best][used].tolist(), strict=True)), int(widest[best])
