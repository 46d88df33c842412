"""Decides whether forwarding beats sending direct, and forwarding by destinations alone.

The plan that the search prefers is recommended if it has the least expected regret at the margin
and the attitude to risk (:mod:`planner.shared_vms.drawn_times`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from planner.broadcast.packing import Packing
from planner.broadcast.problem import broadcast_problem
from planner.broadcast.request import BroadcastRequest
from planner.broadcast.search import BroadcastCandidate, Search
from planner.model.errors import DataError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats
from planner.model.vm_limits import SAME_TIME, too_late
from planner.shared_vms.fees import ROUNDS, same_fees
from planner.solvers.joint import Gain, compared


@dataclass(frozen=True)
class BroadcastDecision:
    """The decision.

    Attributes
    ----------
    chosen : BroadcastCandidate
    optimum : BroadcastCandidate
        The best by expected figures, chosen or not.
    gap : float
        Of the optimum over the proven bound.
    gain : Gain | None
        Of the optimum over direct; None if direct is missing or too late.
    """

    chosen: BroadcastCandidate
    optimum: BroadcastCandidate
    gap: float
    gain: Gain | None


class BroadcastDecider:
    """Decides one broadcast."""

    def __init__(self, request: BroadcastRequest, network: Network, prices: Prices) -> None:
        self.request, self.problem = request, broadcast_problem(request, network, prices)
        problem, self._network, self._prices = self.problem, network, prices
        self.search = Search(request, problem)
        self._drawn = problem.drawn_times(network, request.connections)

    def decide(self) -> BroadcastDecision:
        """Return the decision.

        Raises
        ------
        InfeasibleError
            If no plan meets the deadline.
        DataError
            If no region may forward and a destination has no direct link.
        """
        request, star = self.request, self.search.star
        if request.relays == "none":
            if star is None:
                raise DataError("A destination has no direct link, and no region may forward.")
            optimum, bound = star, star.value  # the only plan
        elif request.hour_usd == inf:
            optimum = self.search.least_duration()
            bound = self.search.bound_s
        else:
            optimum, bound = self._least_value()
        if self._late(optimum) and request.relays != "none":
            in_time = (quick for quick in self._quickest() if not self._late(quick))
            optimum = next(in_time, optimum)
        self._refuse_late(optimum)
        own = self._without_relays(self.request) if self.relays(optimum) else None
        if own and own.value <= optimum.value:  # a separate search, which may get further
            optimum, own = own, None
        gap = max(0.0, optimum.value / bound - 1) if bound > 0 else 0.0
        chosen = self._worth_it(optimum, own)
        gain = self.gain(optimum, star) if star and not self._late(star) else None
        return BroadcastDecision(chosen, optimum, gap, gain)

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
        times_s = self._drawn.times_s(candidate.links_gbit, candidate.vms) + candidate.ramp_s
        return np.array([self.search.value_of(candidate, time_s) for time_s in times_s.tolist()])

    def _quickest(self) -> Iterator[BroadcastCandidate]:
        """Yield candidates of least time, for a deadline that no others meet."""
        plain = replace(self.request, objective="time", deadline_s=None)
        # Trees already found steer the search, so search again without them.
        quick = Search(plain, self.problem).least_duration()
        packing = Packing(quick.trees, quick.shares)
        yield self.search.candidate(packing, quick.transfer_s)
        if own := self._without_relays(plain):
            yield own
        if self.search.star:
            yield self.search.star

    def _worth_it(
        self, optimum: BroadcastCandidate, own: BroadcastCandidate | None
    ) -> BroadcastCandidate:
        """Return the simplest candidate that the optimum does not beat by enough.

        Direct is simplest; then `own`, in which destinations forward; then relays, which need their
        own VMs.
        """
        star = self.search.star
        plainer = [star] if star and not self._late(star) and optimum is not star else []
        plainer += [own] if own else []
        for plain in plainer:
            if not self.gain(optimum, plain).worth:
                return plain
        return optimum

    def _without_relays(self, request: BroadcastRequest) -> BroadcastCandidate | None:
        """Return the best candidate in which only destinations forward, if any keeps the limits."""
        own = replace(request, relays="ends")
        try:
            problem = broadcast_problem(own, self._network, self._prices)
        except DataError:
            return None
        search = Search(own, problem)
        quickest = request.hour_usd == inf
        found = search.least_duration() if quickest else search.least_value()[0]
        if found is None or self._late(found):
            return None
        sites = [self.problem.regions.index(region) for region in problem.regions]
        trees = tuple(tuple((sites[u], sites[v]) for u, v in arcs) for arcs in found.trees)
        packing = Packing(trees, found.shares)
        return self.search.candidate(packing, found.transfer_s)

    def _late(self, candidate: BroadcastCandidate) -> bool:
        return candidate.duration_s > (self.request.deadline_s or inf) * (1 + SAME_TIME)

    def _refuse_late(self, optimum: BroadcastCandidate) -> None:
        if not self._late(optimum):
            return
        fastest = self.search.least_duration() if self.request.relays != "none" else optimum
        if not self._late(fastest):
            return
        limit = self.problem.fullest_row(fastest.links_gbit, fastest.vms)
        raise too_late(self.request.deadline_s or inf, fastest.duration_s, *limit)

    def relays(self, candidate: BroadcastCandidate) -> tuple[str, ...]:
        """Return the regions that only forward."""
        entered = candidate.links_gbit.sum(axis=0) > 0
        return tuple(self._named(entered & self.problem.is_relay))

    def forwarding(self, candidate: BroadcastCandidate) -> tuple[str, ...]:
        """Return the regions that send on what they receive."""
        sends = candidate.links_gbit.sum(axis=1) > 0
        sends[self.problem.root] = False
        return tuple(self._named(sends))

    def _named(self, which: np.ndarray) -> list[str]:
        return [self.problem.regions[site] for site in np.nonzero(which)[0].tolist()]
