"""Decides whether forwarding beats sending direct, and forwarding by destinations alone.

The plan that the search prefers is recommended if it has the least expected regret at the margin
and the attitude to risk (:mod:`planner.shared_vms.drawn_times`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf

import numpy as np

from planner.broadcast.packing import Packing
from planner.broadcast.problem import BroadcastProblem, broadcast_problem
from planner.broadcast.request import BroadcastRequest
from planner.broadcast.search import BroadcastCandidate, Search, value_of
from planner.model.answer import Cost
from planner.model.errors import DataError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats
from planner.model.vm_limits import SAME_TIME, too_late
from planner.shared_vms.fees import ROUNDS, same_fees
from planner.solvers.joint import Gain, compared


class BroadcastDecision:
    """The decision on one broadcast with some numbers of VMs by region.

    Attributes
    ----------
    optimum : BroadcastCandidate
        The best by expected figures, chosen or not.
    gap : float
        Of the optimum over the proven bound.
    over_direct : Gain | None
        Of the optimum over direct; None if direct is missing or too late.

    Raises
    ------
    InfeasibleError
        If no plan meets the deadline.
    DataError
        If a destination can't be reached, or no region may forward to one without a direct link.
    """

    def __init__(
        self,
        request: BroadcastRequest,
        network: Network,
        prices: Prices,
        problem: BroadcastProblem,
        vms: Mapping[str, float],
    ) -> None:
        self.request, self.problem, self._vms = request, problem.with_vms(vms), vms
        self._network, self._prices = network, prices
        self.search = Search(request, self.problem)
        self._drawn = self.problem.drawn_times(network, request.connections)
        star = self.search.star
        if request.relays == "none":
            if star is None:
                raise DataError("A destination has no direct link, and no region may forward.")
            optimum, bound = star, star.value  # the only plan
        elif request.hour_usd == inf:
            optimum, bound = self.search.least_duration(), self.search.bound_s
        else:
            optimum, bound = self._least_value()
        if self._late(optimum) and request.relays != "none":
            in_time = (quick for quick in self._quickest() if not self._late(quick))
            optimum = next(in_time, optimum)
        if self._late(optimum):
            fastest = self.search.least_duration() if request.relays != "none" else optimum
            if self._late(fastest):
                limit = self.problem.fullest_row(fastest.links_gbit, fastest.vms)
                most_s, needed_s = self.search.most_s, fastest.duration_s
                raise too_late(most_s, needed_s, fastest.vm_start_s, *limit)
        own = self._without_relays(request) if self.relays(optimum) else None
        if own and own.value <= optimum.value:  # a separate search, which may get further
            optimum, own = own, None
        direct = star if star and not self._late(star) else None
        self.optimum, self.chosen = optimum, optimum
        self.gap = max(0.0, optimum.value / bound - 1) if bound > 0 else 0.0
        self.over_direct = self.gain(optimum, direct) if direct else None
        # The simplest that the optimum does not beat by enough: direct; then destinations that
        # forward; then relays, which need their own VMs.
        for plain in (direct, own):
            if plain and plain is not optimum and not self.gain(optimum, plain).worth:
                self.chosen = plain
                break

    def _least_value(self) -> tuple[BroadcastCandidate, float]:
        """Return the best candidate found, and a lower bound on the value of any plan.

        Fees depend on metered volumes, so the search is repeated at the fees of the plan found.
        """
        best: BroadcastCandidate | None = None
        searched, bound = self.search, 0.0
        for _ in range(ROUNDS):
            found, proven = searched.least_value()
            bound = max(bound, proven)
            candidate = found or searched.least_duration()
            if best is None or candidate.value < best.value:
                best, self.search = candidate, searched
            fees = self.problem.fees.usd_per_gbit(candidate.links_gbit, missing=inf)
            if same_fees(fees, searched.problem.usd_per_gbit):
                break
            searched = Search(self.request, replace(self.problem, usd_per_gbit=fees))
        assert best
        return best, bound

    def gain(self, candidate: BroadcastCandidate, over: BroadcastCandidate) -> Gain:
        """Return the gain of one candidate over another, in shared draws."""
        worse, better = self._values(over), self._values(candidate)
        ratios = np.divide(worse, better, out=np.ones_like(worse), where=better > 0)
        expected = over.value / candidate.value if candidate.value > 0 else 1.0
        return compared(expected, ratios, self.request.margin, self.request.risk)

    def _values(self, candidate: BroadcastCandidate) -> Floats:
        """Return a candidate's value in each draw."""
        of = candidate.links_gbit, candidate.vms
        longer = self.problem.rounding(*of, candidate.transfer_s)
        busy_s = self._drawn.times_s(*of) * longer + candidate.ramp_s
        vms_usd = self.problem.vm_usd(candidate.vms, busy_s).tolist()
        costs = [Cost.of(candidate.cost.egress, usd) for usd in vms_usd]
        times_s = (busy_s + candidate.vm_start_s).tolist()
        values = map(value_of, [self.request] * len(costs), costs, times_s)
        return np.array(list(values))

    def _quickest(self) -> Iterator[BroadcastCandidate]:
        """Yield candidates of least time, for a deadline that no others meet."""
        plain = replace(self.request, objective="time", deadline_s=None)
        # Trees already found steer the search, so search again without them.
        quick = Search(plain, self.problem).least_duration()
        yield self.search.candidate(Packing(quick.trees, quick.shares), quick.transfer_s)
        if own := self._without_relays(plain):
            yield own
        if self.search.star:
            yield self.search.star

    def _without_relays(self, request: BroadcastRequest) -> BroadcastCandidate | None:
        """Return the best candidate in which only destinations forward, if any keeps the limits."""
        own = replace(request, relays="ends")
        try:
            problem = broadcast_problem(own, self._network, self._prices).with_vms(self._vms)
        except DataError:
            return None
        search = Search(own, problem)
        quickest = request.hour_usd == inf
        found = search.least_duration() if quickest else search.least_value()[0]
        if found is None or self._late(found):
            return None
        sites = [self.problem.regions.index(region) for region in problem.regions]
        trees = tuple(tuple((sites[u], sites[v]) for u, v in arcs) for arcs in found.trees)
        return self.search.candidate(Packing(trees, found.shares), found.transfer_s)

    def _late(self, candidate: BroadcastCandidate) -> bool:
        return candidate.duration_s > self.search.most_s * (1 + SAME_TIME)

    def relays(self, candidate: BroadcastCandidate) -> tuple[str, ...]:
        """Return the regions that only forward."""
        entered = candidate.links_gbit.sum(axis=0) > 0
        return self._named(entered & self.problem.is_relay)

    def forwarding(self, candidate: BroadcastCandidate) -> tuple[str, ...]:
        """Return the regions that send on what they receive."""
        sends = candidate.links_gbit.sum(axis=1) > 0
        sends[self.problem.root] = False
        return self._named(sends)

    def _named(self, which: np.ndarray) -> tuple[str, ...]:
        return tuple(self.problem.regions[site] for site in np.nonzero(which)[0].tolist())
