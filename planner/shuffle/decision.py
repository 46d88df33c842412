"""Whether relays are worth it in a shuffle: what is chosen of its candidates.

Relays are recommended where that has the least expected regret at the margin and the attitude to
risk (:mod:`planner.shared_vms.drawn_times`), where direct rates are as fast and dearer, or where
they miss the deadline.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from planner.model.errors import DataError
from planner.model.network import Network
from planner.model.shared_resources import Floats
from planner.model.units import S_PER_H
from planner.model.vm_limits import SAME_TIME, too_late
from planner.shared_vms.drawn_times import DrawnTimes
from planner.shuffle.problem import ShuffleProblem
from planner.shuffle.request import ShuffleRequest
from planner.shuffle.search import ShuffleCandidate, ShuffleSearch
from planner.solvers.column_generation import GAP
from planner.solvers.joint import Gain, compared


@dataclass(frozen=True)
class ShuffleDecision:
    """What was decided.

    Attributes
    ----------
    chosen : ShuffleCandidate
    relayed : ShuffleCandidate | None
        The best with relays, if they are allowed.
    gain : Gain | None
        Of the relayed over direct, in the objective's terms; None where one of them is missing or
        nothing is relayed.
    bound_usd : float
        No plan that meets the deadline has lower egress fees.
    """

    chosen: ShuffleCandidate
    relayed: ShuffleCandidate | None
    gain: Gain | None
    bound_usd: float


class ShuffleDecider:
    """Decides one shuffle."""

    def __init__(self, request: ShuffleRequest, problem: ShuffleProblem, network: Network) -> None:
        self.request, self.problem = request, problem
        self.search = ShuffleSearch(request, problem)
        self._drawn = DrawnTimes(
            network,
            problem.regions,
            problem.resources,
            problem.low,
            problem.high,
            request.connections,
        )

    def decide(self) -> ShuffleDecision:
        """Return the decision.

        Raises
        ------
        InfeasibleError
            If no plan meets the deadline.
        DataError
            If a pair has no direct link and relays are not allowed.
        """
        search, request = self.search, self.request
        if request.relays == "none" or not search.resources.may_relay.any():
            if search.direct is None:
                raise DataError("A pair has no direct link, and relays are not allowed.")
            self._refuse_late(search.direct)
            return ShuffleDecision(search.direct, None, None, search.direct.cost.egress)
        decision = self._by_cost() if request.objective == "cost" else self._by_time()
        self._refuse_late(decision.chosen)
        return decision

    def as_fast(self, relayed: ShuffleCandidate) -> bool:
        """Whether direct rates are as fast as times are told apart: the cost decides then."""
        direct = self.search.direct
        return bool(direct and direct.duration_s <= relayed.duration_s * (1 + GAP))

    def _by_time(self) -> ShuffleDecision:
        direct, relayed = self.search.direct, self.search.fastest()
        chosen, gain = relayed, self._gain(relayed)
        if direct:
            keep = gain is None or not gain.worth
            if self.as_fast(relayed):
                cheaper = direct.cost.total > relayed.cost.total * (1 + self.request.margin)
                keep = not cheaper or relayed.duration_s > direct.duration_s * (1 + GAP)
            if keep or not relayed.relays:
                chosen = direct
        if chosen.duration_s > (self.request.deadline_s or inf):
            chosen = min(chosen, relayed, key=lambda candidate: candidate.duration_s)
        return ShuffleDecision(chosen, relayed, gain, self.search.bound_at_leisure_usd)

    def _by_cost(self) -> ShuffleDecision:
        search, deadline_s = self.search, self.request.deadline_s
        if deadline_s is None:
            relayed = min(search.points(), key=lambda point: point.cost.total)
            bound = search.cheapest(inf)[1]
        else:
            relayed, bound = search.before(deadline_s)
        chosen, gain, direct = relayed, self._gain(relayed), search.direct
        if direct and direct.duration_s <= (deadline_s or inf):
            in_vain = gain is None or not gain.worth
            if in_vain or relayed.duration_s > (deadline_s or inf):
                chosen = direct
        return ShuffleDecision(chosen, relayed, gain, bound)

    def _gain(self, relayed: ShuffleCandidate) -> Gain | None:
        """Return how many times better relaying is than direct rates, over shared draws."""
        direct, request = self.search.direct, self.request
        if direct is None or not relayed.relays:
            return None
        over, of = self._values(direct), self._values(relayed)
        if request.objective == "cost":
            expected = direct.cost.total / relayed.cost.total if relayed.cost.total else 1.0
        else:
            expected = direct.duration_s / relayed.duration_s
        return compared(expected, over / of, request.margin, request.risk)

    def _values(self, candidate: ShuffleCandidate) -> Floats:
        """Return a candidate's duration, or its cost, in each draw."""
        times_s = self._drawn.times_s(candidate.links_gbit, candidate.vms) + candidate.ramp_up_s
        if self.request.objective == "time":
            return times_s
        vm_usd_per_s = float(candidate.vms @ self.problem.vm_usd_per_h) / S_PER_H
        return candidate.cost.egress + vm_usd_per_s * (times_s + self.request.vm_start_s)

    def _refuse_late(self, candidate: ShuffleCandidate) -> None:
        deadline_s = self.request.deadline_s
        if deadline_s is None or candidate.duration_s <= deadline_s * (1 + SAME_TIME):
            return
        raise too_late(deadline_s, candidate.duration_s, *self.search.fullest_row(candidate))
