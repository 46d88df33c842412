"""Decides one shuffle: its fastest routings, the cheapest in a time, direct rates, and the choice.

Planning pair by pair gets a shuffle wrong: all traffic through a VM shares its caps and
connections. All pairs are routed together over direct and one-hop paths
(:mod:`planner.solvers.column_generation`); then pairs that no other pair holds back are sped up
(:func:`planner.solvers.max_min_fill.fill`). Relays are recommended where that has the least
expected regret at the margin and the attitude to risk (:mod:`planner.shared_vms.drawn_times`),
where direct rates are as fast and dearer, or where they miss the deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from planner.model.answer import Cost
from planner.model.errors import DataError
from planner.model.network import Network
from planner.model.shared_resources import Floats, links_of
from planner.model.throughput import ramp_up_s
from planner.model.vm_limits import BINDING, SAME_TIME, too_late
from planner.shared_vms.connections import Streams
from planner.shared_vms.fees import ROUNDS, same_fees
from planner.shuffle.problem import ShuffleProblem
from planner.shuffle.request import ShuffleRequest
from planner.solvers.column_generation import (
    GAP,
    PathColumns,
    Routing,
    least_fees,
    least_time,
    without_slivers,
)
from planner.solvers.joint import Gain, compared
from planner.solvers.max_min_fill import direct_paths, fill

# Part of the gap finds the least time; the rest is room to choose the cheapest routing.
TIME_GAP = 0.4 * GAP
FEES_GAP = 5e-3
FRONTIER_POINTS = 8
FEWER, TINY = (0.1, 0.2, 0.4, 0.6, 1.0), 1e-300
"""Parts of a pair's largest path that may not be worth whole connections of their own."""


@dataclass(frozen=True)
class ShuffleCandidate:
    """One way to run the shuffle.

    Attributes
    ----------
    paths_gbit : array, shape (n, n, n)
        By source, first hop and destination.
    transfer_s, vm_start_s, ramp_up_s : float
        For moving all volumes; before that, until VMs have started, and until the slowest path is
        up to speed.
    rate_gbps, finish_s : arrays, shape (n, n)
        Of each pair.
    vms : array, length n
        The fewest that keep the time.
    figures : ShuffleProblem
        With the connections that its paths take.
    """

    paths_gbit: Floats
    links_gbit: Floats
    transfer_s: float
    vm_start_s: float
    ramp_up_s: float
    rate_gbps: Floats
    finish_s: Floats
    vms: Floats
    cost: Cost
    figures: ShuffleProblem

    @property
    def lead_s(self) -> float:
        """Until VMs have started and the slowest path is up to speed."""
        return self.vm_start_s + self.ramp_up_s

    @property
    def duration_s(self) -> float:
        """Until the last pair ends."""
        return self.transfer_s + self.lead_s

    @cached_property
    def relays(self) -> bool:
        """Return whether any volume takes more than one link."""
        direct = np.einsum("ijj->ij", self.paths_gbit)
        return bool((self.paths_gbit.sum(axis=1) - direct).max() > 0)


@dataclass(frozen=True)
class ShuffleDecision:
    """The decision.

    Attributes
    ----------
    relayed : ShuffleCandidate | None
        The best with relays, if they are allowed.
    gain : Gain | None
        Of the relayed over direct, in the objective's terms; None where one of them is missing or
        nothing is relayed.
    bound_usd : float
        No plan that meets the deadline has lower egress fees.
    """

    search: ShuffleSearch
    chosen: ShuffleCandidate
    relayed: ShuffleCandidate | None
    gain: Gain | None
    bound_usd: float


class ShuffleSearch:
    """Finds candidates for one shuffle, and decides.

    Attributes
    ----------
    direct : ShuffleCandidate | None
        The best rates without relays; None where a pair has no direct link.
    """

    def __init__(self, request: ShuffleRequest, problem: ShuffleProblem, network: Network) -> None:
        self.request, self.problem = request, problem
        self._network = network
        self.resources = problem.resources
        self.volumes = problem.demands_gbit
        self.moved = self.volumes > 0
        self.columns = PathColumns(self.resources, self.volumes, problem.usd_per_gbit)
        self.direct: ShuffleCandidate | None = None
        if (self.resources.rate_gbps[self.moved] > 0).all():
            self.direct = self.candidate(direct_paths(self.volumes))
        self.routed: Routing | None = None
        """The fastest routing, once it is computed."""

    def candidate(self, paths_gbit: Floats) -> ShuffleCandidate:
        """Return the candidate of a routing with whole connections, and its fewest VMs."""
        paths_gbit = self._with_whole_connections(paths_gbit)
        problem, links = self.problem.as_opened(paths_gbit), links_of(paths_gbit)
        time_s = problem.resources.time_s(links)
        streams, opened = Streams.of(paths_gbit), (self.resources, self.request.connections)
        for_each = np.ceil(streams.opened(*opened, 0.0)[1] / self.request.connections)
        vms = np.maximum(problem.fewest_vms(links, time_s), problem.ends)
        vms = np.maximum(vms, np.minimum(for_each, problem.resources.vms))
        time_s = streams.time_s(*opened, vms, time_s)
        fewest = replace(problem.resources, vms=np.maximum(vms, 1.0))
        speed = fill(fewest, paths_gbit, time_s)
        faster = speed[streams.src, streams.dst] / time_s
        full = streams.opened(*opened, faster)[1] > self.request.connections * vms
        held = full[streams.src] | (full[streams.hop] & (streams.hop != streams.dst))
        speed[streams.src[held], streams.dst[held]] = 1.0
        rate = self.volumes / time_s * speed
        finish = np.divide(time_s, speed, out=np.zeros_like(speed), where=speed > 0)
        ramps = self._ramps_s(paths_gbit)
        ramp_s, start_s = float(ramps.max()), problem.start_s(vms)
        finish = np.where(self.moved, finish + (start_s + ramps), 0.0)
        cost = problem.cost(links, vms, time_s + ramp_s)
        return ShuffleCandidate(
            paths_gbit, links, time_s, start_s, ramp_s, rate, finish, vms, cost, problem
        )

    def _with_whole_connections(self, paths_gbit: Floats) -> Floats:
        """Return paths, or the larger ones alone where whole connections make that faster."""

        def whole_s(paths: Floats, least_s: float = 0.0) -> float:
            at, least_s = self.resources, least_s or self.resources.paths_time_s(paths)
            return Streams.of(paths).whole_s(at, self.request.connections, at.vms, least_s)

        exact_s = self.resources.paths_time_s(paths_gbit)
        if whole_s(paths_gbit, exact_s) == exact_s:
            return paths_gbit
        options = [paths_gbit, *([self.direct.paths_gbit] if self.direct else [])]
        for least in FEWER:
            kept = np.where(paths_gbit >= least * paths_gbit.max(axis=1)[:, None], paths_gbit, 0.0)
            whole = np.maximum(kept.sum(axis=1), TINY)[:, None]
            options.append(kept * (self.volumes[:, None] / whole))
        return min(options[::-1], key=whole_s)

    def _ramps_s(self, paths_gbit: Floats) -> Floats:
        """Return the time that each pair's longest path takes to get up to speed."""
        rtt, (i, k, j) = self.problem.rtt_ms, np.nonzero(paths_gbit)
        longest = np.zeros_like(rtt)
        np.maximum.at(longest, (i, j), rtt[i, k] + np.where(k != j, rtt[k, j], 0.0))
        return np.asarray(ramp_up_s(1.0) * longest)

    def fast(self) -> Routing:
        """Return the fastest routing."""
        if self.routed is None:
            self.routed = least_time(self.columns, TIME_GAP)
        return self.routed

    def fastest(self) -> ShuffleCandidate:
        """Return a candidate within the gap of the least time, cheap among those."""
        fast = self.fast()
        limit_s = max(fast.bound * (1 + GAP), fast.objective)

        def cheap_in_time(columns: PathColumns) -> Floats:
            cheap = least_fees(columns, limit_s, fast, FEES_GAP)
            return without_slivers(columns, cheap, limit_s, cheap.objective * (1 + FEES_GAP))

        return self._at_metered_fees(cheap_in_time)

    def cheapest(self, transfer_s: float) -> tuple[ShuffleCandidate, float]:
        """Return the candidate of least fees in a time, and the bound on fees."""
        fast, least_usd = self.fast(), self.bound_at_leisure_usd
        if transfer_s <= fast.objective:
            return self.candidate(fast.paths_gbit), least_usd
        bounds = [least_usd]

        def cheap_in_time(columns: PathColumns) -> Floats:
            cheap = least_fees(columns, transfer_s, fast)
            charged = self.problem.fees.least_part(columns.usd_per_gbit, self.problem.most_gbit)
            bounds.append(charged * cheap.bound)
            usd = max(cheap.objective, cheap.bound * (1 + GAP))
            return without_slivers(columns, cheap, transfer_s, usd)

        return self._at_metered_fees(cheap_in_time), max(bounds)

    def _at_metered_fees(self, route: Callable[[PathColumns], Floats]) -> ShuffleCandidate:
        """Return the cheapest candidate of some rounds, each at the fees of the one before.

        `route` returns paths, shape (n, n, n), at the fees of its columns.
        """
        columns, found = self.columns, []
        for _ in range(ROUNDS):
            found.append(self.candidate(route(columns)))
            fees = self.problem.fees.usd_per_gbit(found[-1].links_gbit)
            if same_fees(fees, columns.usd_per_gbit):
                break
            columns = columns.at_fees(fees)
        return min(found, key=lambda candidate: candidate.cost.total)

    def before(self, deadline_s: float) -> tuple[ShuffleCandidate, float]:
        """Return the cheapest candidate that ends before a deadline, VM start and ramp-up too."""
        lead_s = self.problem.start_s(self.problem.ends)
        found: tuple[ShuffleCandidate, float] | None = None
        for _ in range(4):
            found = self.cheapest(deadline_s - lead_s)
            over_s = found[0].duration_s - deadline_s
            if over_s <= 0:
                return found
            lead_s += over_s * (1 + GAP)
        assert found
        return self.fastest(), found[1]

    def points(self) -> list[ShuffleCandidate]:
        """Return candidates from the fastest to the cheapest, none beaten in time and cost."""
        fastest = self.fastest()
        cheapest = self.cheapest(float("inf"))[0]
        found = [fastest, cheapest, *([self.direct] if self.direct else [])]
        slow, quick = cheapest.transfer_s, fastest.transfer_s
        if slow > quick * (1 + BINDING):
            shares = [step / (FRONTIER_POINTS - 1) for step in range(1, FRONTIER_POINTS - 1)]
            found += [self.cheapest(quick * (slow / quick) ** share)[0] for share in shares]
        kept: list[ShuffleCandidate] = []
        for candidate in sorted(found, key=lambda c: (c.duration_s, c.cost.total)):
            if not kept or candidate.cost.total < kept[-1].cost.total * (1 - BINDING):
                kept.append(candidate)
        return kept

    @cached_property
    def bound_at_leisure_usd(self) -> float:
        """A lower bound on the fees of any routing, however slow."""
        least = self.problem.fees.least_usd_per_gbit(self.problem.most_gbit)
        return self.columns.at_fees(least).cheapest_at_leisure()[0]

    # ---- the choice --------------------------------------------------------------------------

    def decide(self) -> ShuffleDecision:
        """Return the decision.

        Raises
        ------
        InfeasibleError
            If no plan meets the deadline.
        DataError
            If a pair has no direct link and relays are not allowed.
        """
        request = self.request
        if request.relays == "none" or not self.resources.may_relay.any():
            if self.direct is None:
                raise DataError("A pair has no direct link, and relays are not allowed.")
            self._refuse_late(self.direct)
            return ShuffleDecision(self, self.direct, None, None, self.direct.cost.egress)
        decision = self._by_cost() if request.objective == "cost" else self._by_time()
        self._refuse_late(decision.chosen)
        return decision

    def as_fast(self, relayed: ShuffleCandidate) -> bool:
        """Return whether direct rates are as fast, within the gap: then the cost decides."""
        direct = self.direct
        return bool(direct and direct.duration_s <= relayed.duration_s * (1 + GAP))

    def _by_time(self) -> ShuffleDecision:
        direct, relayed = self.direct, self.fastest()
        chosen, gain = relayed, self._gain(relayed)
        if direct:
            keep = gain is None or not gain.worth
            if self.as_fast(relayed):
                cheaper = direct.cost.total > relayed.cost.total * (1 + self.request.margin)
                keep = not cheaper or relayed.duration_s > direct.duration_s * (1 + GAP)
            chosen = direct if keep or not relayed.relays else relayed
        if chosen.duration_s > (self.request.deadline_s or inf):
            chosen = min(chosen, relayed, key=lambda candidate: candidate.duration_s)
        return ShuffleDecision(self, chosen, relayed, gain, self.bound_at_leisure_usd)

    def _by_cost(self) -> ShuffleDecision:
        deadline_s, direct = self.request.deadline_s or inf, self.direct
        if deadline_s == inf:
            relayed = min(self.points(), key=lambda point: point.cost.total)
            bound = self.cheapest(inf)[1]
        else:
            relayed, bound = self.before(deadline_s)
        chosen, gain = relayed, self._gain(relayed)
        if direct and direct.duration_s <= deadline_s:
            in_vain = gain is None or not gain.worth
            chosen = direct if in_vain or relayed.duration_s > deadline_s else relayed
        return ShuffleDecision(self, chosen, relayed, gain, bound)

    def _gain(self, relayed: ShuffleCandidate) -> Gain | None:
        """Return the gain of relaying over direct rates, in shared draws."""
        direct, request = self.direct, self.request
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
        figures, of = candidate.figures, (candidate.links_gbit, candidate.vms)
        times_s = figures.drawn_times(self._network, self.request.connections).times_s(*of)
        times_s = times_s * figures.rounding(*of, candidate.transfer_s) + candidate.ramp_up_s
        if self.request.objective == "time":
            return times_s + candidate.vm_start_s
        return candidate.cost.egress + self.problem.vm_usd(candidate.vms, times_s)

    def _refuse_late(self, candidate: ShuffleCandidate) -> None:
        deadline_s = self.request.deadline_s
        if deadline_s is None or candidate.duration_s <= deadline_s * (1 + SAME_TIME):
            return
        limit = candidate.figures.fullest_row(candidate.links_gbit, self.problem.resources.vms)
        raise too_late(deadline_s, candidate.duration_s, candidate.vm_start_s, *limit)
