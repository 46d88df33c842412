"""Many transfers at once over shared VMs: rates, paths and VMs for all pairs of a shuffle.

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

from planner.model.answer import Cost, OneMoreVm, identified
from planner.model.errors import DataError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats, SiteResources, links_of
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, more_usd_text, usd_text
from planner.model.vm_limits import (
    BINDING,
    SAME_COUNT,
    SAME_TIME,
    bottlenecks_of_rows,
    too_late,
    vms_by_region,
)
from planner.shared_vms.candidates import Candidate, unbeaten, value_of, with_decided_vms
from planner.shared_vms.connections import Streams
from planner.shared_vms.explanation import OpenedConnections, one_more_vm, ramps, sending_warnings
from planner.shared_vms.fees import ROUNDS, same_fees
from planner.shuffle.plan import Comparison, PairPlan, ShufflePath, ShufflePlan, ShufflePoint
from planner.shuffle.problem import ShuffleProblem, shuffle_problem
from planner.shuffle.request import ShuffleRequest
from planner.solvers.column_generation import (
    GAP,
    PathColumns,
    Routing,
    least_fees,
    least_time,
    without_slivers,
)
from planner.solvers.joint import Gain
from planner.solvers.max_min_fill import direct_paths, equal_share_finish_s, fill
from planner.transfer.wording import not_worth

# Part of the gap finds the least time; the rest is room to choose the cheapest routing.
TIME_GAP = 0.4 * GAP
FEES_GAP = 5e-3
MORE_VMS_GAP = 5e-3
FRONTIER_POINTS = 8
FEWER, TINY = (0.1, 0.2, 0.4, 0.6, 1.0), 1e-300
"""Parts of a pair's largest path that may not be worth whole connections of their own."""


@dataclass(frozen=True)
class ShuffleCandidate(Candidate):
    """One way to run the shuffle, with the fewest VMs that keep the time."""

    figures: ShuffleProblem  # with the connections that its paths take
    paths_gbit: Floats  # shape (n, n, n): by source, first hop and destination
    rate_gbps: Floats  # shape (n, n): of each pair
    finish_s: Floats  # shape (n, n): of each pair

    @cached_property
    def relays(self) -> bool:
        """Return whether any volume takes more than one link."""
        direct = np.einsum("ijj->ij", self.paths_gbit)
        return bool((self.paths_gbit.sum(axis=1) - direct).max() > 0)

    @property
    def relayed_share(self) -> float:
        """The share of the volume that takes a second link."""
        return max(0.0, float(self.links_gbit.sum() / self.figures.demands_gbit.sum()) - 1)


class ShuffleSearch:
    """Finds candidates for one shuffle, and decides.

    Raises InfeasibleError if no plan meets the deadline; DataError if a pair has no direct link and
    relays are not allowed.

    Attributes
    ----------
    direct : ShuffleCandidate | None
        The best rates without relays; None where a pair has no direct link.
    routed : Routing | None
        The fastest routing, once it is computed.
    chosen, relayed : ShuffleCandidate | None
        The decision, and the best with relays, if they are allowed.
    gain : Gain | None
        Of the relayed over direct, in the objective's terms; None where one of them is missing or
        nothing is relayed.
    bound_usd : float
        No plan that meets the deadline has lower egress fees.
    """

    def __init__(self, request: ShuffleRequest, problem: ShuffleProblem, network: Network) -> None:
        self.request, self.problem, self.network = request, problem, network
        self.resources, self.regions = problem.resources, problem.regions
        self.volumes = problem.demands_gbit
        self.moved = self.volumes > 0
        self.columns = PathColumns(self.resources, self.volumes, problem.usd_per_gbit)
        self.direct: ShuffleCandidate | None = None
        if (self.resources.rate_gbps[self.moved] > 0).all():
            self.direct = self.candidate(direct_paths(self.volumes))
        self.routed: Routing | None = None
        self.relayed: ShuffleCandidate | None = None
        self.gain: Gain | None = None
        if request.relays == "none" or not self.resources.may_relay.any():
            if self.direct is None:
                raise DataError("A pair has no direct link, and relays are not allowed.")
            self.chosen, self.bound_usd = self.direct, self.direct.cost.egress
        else:
            self.chosen = self._by_cost() if request.objective == "cost" else self._by_time()
        deadline_s, found = request.deadline_s, self.chosen
        if deadline_s is not None and found.duration_s > deadline_s * (1 + SAME_TIME):
            limit = found.figures.fullest_row(found.links_gbit, self.resources.vms)
            raise too_late(deadline_s, found.duration_s, found.vm_start_s, *limit)

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
        out, into = streams.too_many(*opened, vms, faster)
        held = out[streams.src] | into[streams.dst]
        held |= (out | into)[streams.hop] & (streams.hop != streams.dst)
        speed[streams.src[held], streams.dst[held]] = 1.0
        rate = self.volumes / time_s * speed
        finish = np.divide(time_s, speed, out=np.zeros_like(speed), where=speed > 0)
        rtt, (i, k, j), longest = problem.rtt_ms, np.nonzero(paths_gbit), np.zeros_like(links)
        np.maximum.at(longest, (i, j), rtt[i, k] + np.where(k != j, rtt[k, j], 0.0))
        ramps = ramp_up_s(1.0) * longest  # of each pair's longest path
        ramp_s, start_s = float(ramps.max()), problem.start_s(vms)
        finish = np.where(self.moved, finish + (start_s + ramps), 0.0)
        cost = problem.cost(links, vms, time_s + ramp_s)
        value = value_of(self.request, cost.total, time_s + (start_s + ramp_s))
        of = links, time_s, start_s, ramp_s, vms, cost, value
        return ShuffleCandidate(problem, *of, paths_gbit, rate, finish)

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
        return unbeaten(found, BINDING)

    @cached_property
    def bound_at_leisure_usd(self) -> float:
        """A lower bound on the fees of any routing, however slow."""
        least = self.problem.fees.least_usd_per_gbit(self.problem.most_gbit)
        return self.columns.at_fees(least).cheapest_at_leisure()[0]

    # ---- the choice --------------------------------------------------------------------------

    def as_fast(self, relayed: ShuffleCandidate) -> bool:
        """Return whether direct rates are as fast, within the gap: then the cost decides."""
        direct = self.direct
        return bool(direct and direct.duration_s <= relayed.duration_s * (1 + GAP))

    def _by_time(self) -> ShuffleCandidate:
        direct, relayed = self.direct, self.fastest()
        self.bound_usd = self.bound_at_leisure_usd
        keep = self._is_in_vain(relayed)
        chosen = relayed
        if direct:
            if self.as_fast(relayed):
                cheaper = direct.cost.total > relayed.cost.total * (1 + self.request.margin)
                keep = not cheaper or relayed.duration_s > direct.duration_s * (1 + GAP)
            chosen = direct if keep or not relayed.relays else relayed
        if chosen.duration_s > (self.request.deadline_s or inf):
            chosen = min(chosen, relayed, key=lambda candidate: candidate.duration_s)
        return chosen

    def _by_cost(self) -> ShuffleCandidate:
        deadline_s, direct = self.request.deadline_s or inf, self.direct
        if deadline_s == inf:
            relayed = min(self.points(), key=lambda point: point.cost.total)
            self.bound_usd = self.cheapest(inf)[1]
        else:
            relayed, self.bound_usd = self.before(deadline_s)
        keep = self._is_in_vain(relayed) or relayed.duration_s > deadline_s
        return direct if direct and direct.duration_s <= deadline_s and keep else relayed

    def _is_in_vain(self, relayed: ShuffleCandidate) -> bool:
        """Return whether the best with relays is not worth it over direct rates."""
        self.relayed = relayed
        if self.direct and relayed.relays:
            of = self.request, self.network, self.request.margin, self.request.risk
            self.gain = relayed.gain(self.direct, *of)
        return self.gain is None or not self.gain.worth

    # ---- the answer --------------------------------------------------------------------------

    def reason(self) -> str:
        """Explain the choice of this plan in plain sentences."""
        request, direct, chosen = self.request, self.direct, self.chosen
        relayed, gain = self.relayed, self.gain
        kind, region = chosen.figures.fullest_row(chosen.links_gbit, self.resources.vms)
        limit = f"The bottleneck is {kind} at {region}."
        if direct is None:
            return f"Some pairs have no direct link, so they are relayed. {limit}"
        saved = direct.cost.total - chosen.cost.total
        if chosen.relays:
            if request.objective == "cost":
                what = f"costs {usd_text(abs(saved))} {'less' if saved >= 0 else 'more'} than"
                return f"Relaying a part {what} the best direct rates and meets the limit. {limit}"
            if self.as_fast(chosen):
                return (
                    f"Relaying a part costs {usd_text(saved)} less than the best direct rates and "
                    f"takes no longer. {limit}"
                )
            within = f" ({gain.low:.2f}x to {gain.high:.2f}x)" if gain else ""
            return (
                f"Relaying a part ends {direct.duration_s / chosen.duration_s:.2f}x sooner{within} "
                f"than the best direct rates, {more_usd_text(-saved)}. {limit}"
            )
        if relayed is None or request.objective == "cost":
            return f"Direct is cheapest within the limits. {limit}"
        if gain is None or self.as_fast(relayed):
            return f"No relay makes it end sooner. {limit}"
        return f"{not_worth('Relaying a part', gain, 'time', request.margin, request.risk)} {limit}"

    def opened(self) -> OpenedConnections:
        """Return the connections that the plan opens on links."""
        chosen, shares = self.chosen, np.zeros_like(self.volumes)
        np.divide(chosen.rate_gbps, self.volumes, out=shares, where=self.moved)
        streams = Streams.of(chosen.paths_gbit * shares[:, None, :])
        of = self.resources, self.regions, streams, chosen.vms, self.request.connections
        return OpenedConnections(self.network, *of)

    def relayed_pairs(self) -> list[tuple[str, str]]:
        """Return the pairs that use relays, those with the most relayed volume first."""
        relayed = self.volumes - np.einsum("ijj->ij", self.chosen.paths_gbit)
        count = np.count_nonzero(relayed > SAME_COUNT * self.volumes)
        order = np.argsort(-relayed, axis=None, kind="stable")[:count]
        ends = (at.tolist() for at in np.unravel_index(order, relayed.shape))
        return [(self.regions[a], self.regions[b]) for a, b in zip(*ends, strict=True)]

    def equal_share(self) -> Comparison:
        """Return the time and cost of starting everything at once, direct."""
        if self.direct is None:
            return Comparison(None, None)
        finish = equal_share_finish_s(self.resources, self.volumes, self.request.connections)
        time_s = float(finish.max()) + self.direct.ramp_s
        vms = self.problem.ends * self.resources.vms
        vm_usd, start_s = self.problem.vm_usd(vms, time_s), self.problem.start_s(vms)
        return Comparison(start_s + time_s, Cost.of(self.direct.cost.egress, float(vm_usd)))

    def pairs(self, counts: list[int]) -> tuple[PairPlan, ...]:
        """Return the plans of pairs, whose paths open these connections."""
        chosen, regions = self.chosen, self.regions
        i, k, j = np.nonzero(chosen.paths_gbit)
        share, rank = chosen.paths_gbit[i, k, j] / self.volumes[i, j], np.argsort(regions).argsort()
        order = np.lexsort((rank[k], -share, k != j, j, i))
        i, k, j, share = i[order], k[order], j[order], share[order]
        relayed, rate = k != j, chosen.rate_gbps[i, j] * share
        fees = self.problem.fees.usd_per_gbit(chosen.links_gbit)
        usd_per_gb = (fees[i, k] + np.where(relayed, fees[k, j], 0.0)) * BITS_PER_BYTE
        paths: dict[tuple[int, int], list[ShufflePath]] = {}
        columns = (i, k, j, relayed, rate, share, np.array(counts)[order], usd_per_gb)
        for a, via, b, is_relayed, *figures in zip(*(c.tolist() for c in columns), strict=True):
            hops = tuple(regions[at] for at in ((a, via, b) if is_relayed else (a, b)))
            addresses = self.network.addresses(hops)
            paths.setdefault((a, b), []).append(ShufflePath(hops, *figures, addresses=addresses))
        found = []
        for at, own in paths.items():
            src, dst = (regions[end] for end in at)
            gb, gbps = float(self.volumes[at]) / BITS_PER_BYTE, float(chosen.rate_gbps[at])
            found.append(PairPlan(src, dst, gb, gbps, float(chosen.finish_s[at]), tuple(own)))
        return tuple(found)

    def worth_s(self) -> Floats:
        """Return the marginal saving of one more VM of each row, in s."""
        chosen, resources = self.chosen, self.resources
        if chosen.relays and self.request.objective != "cost":
            return self.fast().row_prices * chosen.transfer_s
        levels = resources.loads(chosen.links_gbit) / resources.row_vms
        fullest = np.arange(len(levels)) == levels.argmax()
        return np.where(fullest, levels / resources.row_vms, 0.0)

    def one_more_vm(self) -> tuple[OneMoreVm, ...]:
        """Return the least saving of one more VM at each of the tightest sites."""
        chosen = self.chosen

        def saved_with(more: SiteResources) -> tuple[float, float]:
            time_s = more.paths_time_s(chosen.paths_gbit)
            if chosen.relays:
                columns = self.columns.with_resources(more)
                time_s = min(time_s, least_time(columns, MORE_VMS_GAP).objective)
            return time_s + chosen.lead_s, chosen.transfer_s - time_s

        least_s = BINDING * chosen.transfer_s
        return one_more_vm(self.resources, self.regions, self.worth_s(), least_s, saved_with)

    def frontier(self) -> tuple[ShufflePoint, ...]:
        """Return the points of the frontier, from the fastest to the cheapest."""
        points = [self.direct] if self.direct else []
        if self.request.relays != "none":
            points = self.points()
        return tuple(
            ShufflePoint(
                of.duration_s, of.cost, of.relayed_share, vms_by_region(self.regions, of.vms)
            )
            for of in points
        )


def recommend_shuffle(
    request: ShuffleRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> ShufflePlan:
    """Return the recommended plan for many transfers that start together.

    Raises InfeasibleError if no plan meets the deadline; names one that can be met. Raises
    DataError if nothing is known of any permitted path of a pair.

    Parameters
    ----------
    notes : tuple of str
        How the request's names were understood; goes first among the warnings.
    """
    problem = shuffle_problem(request, network, prices, at_once=True)
    all_direct = bool((problem.resources.rate_gbps[problem.demands_gbit > 0] > 0).all())
    search = with_decided_vms(
        request,
        problem,
        request.vm_hour_usd,
        request.deadline_s,
        problem.demands_gbit if all_direct else None,
        lambda vms: ShuffleSearch(request, problem.with_vms(vms), network),
    )
    chosen, direct, equal = search.chosen, search.direct, search.equal_share()
    used, opened = (chosen.links_gbit, chosen.vms, chosen.duration_s), search.opened()
    low_s, high_s = chosen.figures.range_s(*used, chosen.lead_s)
    more, worth_s = search.one_more_vm(), search.worth_s()
    gain = search.gain if chosen.relays else None
    certain = 1.0 if direct and not chosen.relays else None
    plan = ShufflePlan(
        plan_id="",
        snapshot=network.snapshot,
        request=request.described(),
        fees=search.problem.fee_lines(*used),
        verdict="relayed" if chosen.relays else "direct",
        reason=search.reason(),
        duration_s=chosen.duration_s,
        duration_s_low=low_s,
        duration_s_high=high_s,
        bound_s=search.routed.bound if search.routed else chosen.transfer_s,
        bound_usd=search.bound_usd,
        volume_gb=request.volume_gb,
        relayed_share=chosen.relayed_share,
        cost_usd=chosen.cost,
        pairs=search.pairs(opened.counts),
        vms=vms_by_region(search.regions, chosen.vms),
        gain=equal.duration_s / chosen.duration_s if equal.duration_s else None,
        gain_low=gain.low if gain else certain,
        equal_share=equal,
        direct=Comparison(*((direct.duration_s, direct.cost) if direct else (None, None))),
        gain_high=gain.high if gain else certain,
        probability=search.gain.probability if search.gain else None,
        bottlenecks=bottlenecks_of_rows(
            search.resources, search.regions, worth_s, chosen.transfer_s
        ),
        one_more_vm=more,
        connections=opened.by_region,
        warnings=notes
        + sending_warnings(request, network, request.demands_gb, chosen, opened, more=more),
        measure_first=ramps(network, prices, search.relayed_pairs(), request.connections),
        frontier=search.frontier() if request.frontier else (),
        vm_start_s=chosen.vm_start_s,
    )
    return identified(plan)
