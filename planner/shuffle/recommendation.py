"""Many transfers at once over shared VMs: rates, paths and VMs for all pairs of a shuffle.

Per-pair thinking gets a shuffle wrong: every VM's caps and connections are shared by all that
pass it. :func:`recommend_shuffle` routes all pairs together over direct and one-hop paths
(:mod:`planner.solvers.column_generation`), takes the cheapest of the fastest routings, then
speeds up pairs that no other pair holds back (:func:`planner.solvers.max_min_fill.fill`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.model.answer import Bottleneck, Cost, OneMoreVm, identified
from planner.model.errors import DataError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats, links_of
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE, S_PER_H
from planner.model.vm_limits import (
    SAME_COUNT,
    bottlenecks_of_rows,
    connections_by_region,
    links_that_take_turns,
    row_place,
    too_late,
    vms_by_region,
    widenings,
)
from planner.shuffle.plan import Comparison, PairPlan, ShufflePath, ShufflePlan, ShufflePoint
from planner.shuffle.problem import ShuffleProblem, shuffle_problem
from planner.shuffle.request import ShuffleRequest
from planner.solvers.column_generation import (
    GAP,
    PathColumns,
    Routing,
    least_fees,
    least_fees_at_leisure_usd,
    least_time,
    without_slivers,
)
from planner.solvers.max_min_fill import direct_paths, equal_share_finish_s, fill
from planner.transfer.allocation import whole_vms

# The least time is found to a part of the gap; the rest is room to choose the cheapest routing.
TIME_GAP = 0.4 * GAP
FEES_GAP = 5e-3
FEES_STEPS = 30
# Fees that may be this far from the least are worth a second round.
FAR_FROM_LEAST = 2e-2
FRONTIER_POINTS = 8
FEES_ROUNDS = 2
MORE_VMS_SHOWN = 3
MORE_VMS_GAP = 5e-3
BINDING = 1e-3
BOTTLENECKS_SHOWN = 5


@dataclass(frozen=True)
class ShuffleCandidate:
    """One way to run the shuffle.

    Attributes
    ----------
    paths_gbit : array, shape (n, n, n)
        By source, first hop and destination.
    transfer_s, ramp_up_s : float
        Until the last pair ends, without getting up to speed; and what the path that takes longest
        to get up to speed adds.
    rate_gbps, finish_s : arrays, shape (n, n)
        Of each pair.
    vms : array, length n
        The fewest that do it.
    """

    paths_gbit: Floats
    links_gbit: Floats
    transfer_s: float
    ramp_up_s: float
    rate_gbps: Floats
    finish_s: Floats
    vms: Floats
    cost: Cost

    @property
    def duration_s(self) -> float:
        """Until the last pair ends."""
        return self.transfer_s + self.ramp_up_s


def recommend_shuffle(
    request: ShuffleRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> ShufflePlan:
    """Return the recommended plan for many transfers that start together.

    Parameters
    ----------
    request, network, prices
    notes : tuple of str
        What was understood from the request's names; goes first among the warnings.

    Raises
    ------
    InfeasibleError
        If no plan meets the deadline; says what would do.
    DataError
        If nothing is known of any permitted path of a pair.
    """
    return _Shuffle(request, shuffle_problem(request, network, prices)).plan(network, notes)


class _Shuffle:
    """Decides one shuffle."""

    def __init__(self, request: ShuffleRequest, problem: ShuffleProblem) -> None:
        self.request, self.problem = request, problem
        self.resources = problem.resources
        self.volumes = problem.demands_gbit
        self.moved = self.volumes > 0
        self.columns = PathColumns(self.resources, self.volumes, problem.usd_per_gbit)
        all_direct = bool((self.resources.rate_gbps[self.moved] > 0).all())
        self.direct = self._candidate(direct_paths(self.volumes)) if all_direct else None
        self._fast: Routing | None = None
        self.relayed: ShuffleCandidate | None = None

    # ---- candidates ----------------------------------------------------------------------

    def _candidate(self, paths_gbit: Floats) -> ShuffleCandidate:
        """Return what a routing gives and costs, with the fewest VMs that keep its time."""
        problem, links = self.problem, links_of(paths_gbit)
        time_s = self.resources.time_s(links)
        needed = self.resources.vms_for(links, time_s)
        vms = problem.ends.astype(float)
        for site in np.nonzero(needed > 0)[0].tolist():
            vms[site] = max(vms[site], whole_vms(float(needed[site])))
        fewest = replace(self.resources, vms=np.maximum(vms, 1.0))
        speed = fill(fewest, paths_gbit, time_s)
        rate = self.volumes / time_s * speed
        finish = np.divide(time_s, speed, out=np.zeros_like(speed), where=speed > 0)
        ramps = self._ramps_s(paths_gbit)
        ramp_s = float(ramps.max())
        finish = np.where(self.moved, finish + ramps, 0.0)
        hours = (time_s + ramp_s + self.request.vm_start_s) / S_PER_H
        cost = Cost.of(
            float((links * problem.usd_per_gbit).sum()), float(vms @ problem.vm_usd_per_h) * hours
        )
        return ShuffleCandidate(paths_gbit, links, time_s, ramp_s, rate, finish, vms, cost)

    def _ramps_s(self, paths_gbit: Floats) -> Floats:
        """Return the time that each pair's longest path takes to get up to speed."""
        rtt = self.problem.rtt_ms
        longest = np.zeros_like(rtt)
        i, k, j = np.nonzero(paths_gbit)
        path_rtt = rtt[i, k] + np.where(k != j, rtt[k, j], 0.0)
        np.maximum.at(longest, (i, j), path_rtt)
        return np.asarray(ramp_up_s(1.0) * longest)

    def fast(self) -> Routing:
        """Return the fastest routing."""
        if self._fast is None:
            self._fast = least_time(self.columns, TIME_GAP)
        return self._fast

    def _fastest(self) -> ShuffleCandidate:
        """Return a candidate within the gap of the least time, cheap among those."""
        fast = self.fast()
        limit_s = max(fast.bound * (1 + GAP), fast.objective)
        cheap = least_fees(self.columns, limit_s, fast, FEES_GAP, most_steps=FEES_STEPS)
        for _ in range(1, FEES_ROUNDS):
            if cheap.gap <= FAR_FROM_LEAST:
                break
            # From the middle of all columns found so far, it often gets further.
            again = least_fees(self.columns, limit_s, fast, FEES_GAP, most_steps=FEES_STEPS)
            cheap = min(cheap, again, key=lambda routing: routing.objective)
        usd = cheap.objective * (1 + FEES_GAP)
        return self._candidate(without_slivers(self.columns, cheap, limit_s, usd))

    def _cheapest(self, transfer_s: float) -> tuple[ShuffleCandidate, float]:
        """Return the candidate of least fees in a time, and the bound on fees."""
        fast = self.fast()
        if transfer_s <= fast.objective:
            return self._candidate(fast.paths_gbit), least_fees_at_leisure_usd(self.columns)
        cheap = least_fees(self.columns, transfer_s, fast)
        usd = max(cheap.objective, cheap.bound * (1 + GAP))
        return self._candidate(without_slivers(self.columns, cheap, transfer_s, usd)), cheap.bound

    def _range_s(self, candidate: ShuffleCandidate) -> tuple[float, float]:
        """Return the candidate's duration where links are as fast, and as slow, as their bounds."""
        problem = self.problem
        fast_s, slow_s = problem.resources.bounds_s(
            candidate.links_gbit, problem.resources.vms, problem.low, problem.high
        )
        return (
            min(fast_s + candidate.ramp_up_s, candidate.duration_s),
            max(slow_s + candidate.ramp_up_s, candidate.duration_s),
        )

    # ---- decisions -----------------------------------------------------------------------

    def _decide(self) -> tuple[ShuffleCandidate, float | None, float]:
        """Return what is chosen, the low bound of the relays' gain, and the bound on fees."""
        if self.request.relays == "none" or not self.resources.may_relay.any():
            if self.direct is None:
                raise DataError("A pair has no direct link, and relays are not allowed.")
            self._refuse_late(self.direct)
            return self.direct, None, self.direct.cost.egress
        if self.request.objective == "cost":
            return self._decide_cost()
        relayed = self.relayed = self._fastest()
        chosen, low = relayed, None
        if self.direct:
            low = self._range_s(self.direct)[0] / self._range_s(relayed)[1]
            worth = 1 + self.request.margin
            keep = low < worth
            if self._as_fast(relayed):
                cheaper = self.direct.cost.total > relayed.cost.total * worth
                keep = not cheaper or relayed.duration_s > self.direct.duration_s * (1 + GAP)
            if keep or not _relays(relayed):
                chosen = self.direct
        deadline_s = self.request.deadline_s
        if deadline_s is not None and chosen.duration_s > deadline_s:
            chosen = min(chosen, relayed, key=lambda candidate: candidate.duration_s)
        self._refuse_late(chosen)
        return chosen, low, least_fees_at_leisure_usd(self.columns)

    def _as_fast(self, relayed: ShuffleCandidate) -> bool:
        """Whether direct rates are as fast as times are told apart: the cost decides then."""
        return bool(self.direct and self.direct.duration_s <= relayed.duration_s * (1 + GAP))

    def _decide_cost(self) -> tuple[ShuffleCandidate, float | None, float]:
        deadline_s = self.request.deadline_s
        if deadline_s is None:
            points = self._points()
            relayed = min(points, key=lambda point: point.cost.total)
            bound = self._cheapest(float("inf"))[1]
        else:
            relayed, bound = self._before(deadline_s)
        if self.direct and (deadline_s is None or self.direct.duration_s <= deadline_s):
            if self.direct.cost.total <= relayed.cost.total * (1 + self.request.margin):
                return self.direct, None, bound
            if relayed.duration_s > (deadline_s or float("inf")):
                return self.direct, None, bound
        self._refuse_late(relayed)
        return relayed, None, bound

    def _before(self, deadline_s: float) -> tuple[ShuffleCandidate, float]:
        """Return the cheapest candidate that ends before a deadline, getting up to speed too."""
        ramp_s = 0.0
        found: tuple[ShuffleCandidate, float] | None = None
        for _ in range(4):
            found = self._cheapest(deadline_s - ramp_s)
            over_s = found[0].duration_s - deadline_s
            if over_s <= 0:
                return found
            ramp_s += over_s * (1 + GAP)
        assert found
        return self._fastest(), found[1]

    def _refuse_late(self, candidate: ShuffleCandidate) -> None:
        deadline_s = self.request.deadline_s
        if deadline_s is None or candidate.duration_s <= deadline_s:
            return
        raise too_late(deadline_s, candidate.duration_s, *self._fullest_row(candidate))

    def _points(self) -> list[ShuffleCandidate]:
        """Return candidates from the fastest to the cheapest, none beaten in time and cost."""
        fastest = self._fastest()
        cheapest = self._cheapest(float("inf"))[0]
        found = [fastest, cheapest, *([self.direct] if self.direct else [])]
        slow, quick = cheapest.transfer_s, fastest.transfer_s
        if slow > quick * (1 + BINDING):
            shares = [step / (FRONTIER_POINTS - 1) for step in range(1, FRONTIER_POINTS - 1)]
            found += [self._cheapest(quick * (slow / quick) ** share)[0] for share in shares]
        kept: list[ShuffleCandidate] = []
        for candidate in sorted(found, key=lambda c: (c.duration_s, c.cost.total)):
            if not kept or candidate.cost.total < kept[-1].cost.total * (1 - BINDING):
                kept.append(candidate)
        return kept

    # ---- answer --------------------------------------------------------------------------

    def plan(self, network: Network, notes: tuple[str, ...]) -> ShufflePlan:
        chosen, gain_low, bound_usd = self._decide()
        relayed = _relays(chosen)
        low_s, high_s = self._range_s(chosen)
        equal = self._equal_share()
        bound_s = self._fast.bound if self._fast else chosen.transfer_s
        needed = self._connections(chosen)
        relayed_share = float(chosen.links_gbit.sum() / self.volumes.sum()) - 1
        plan = ShufflePlan(
            plan_id="",
            snapshot=network.snapshot,
            request=self.request.described(),
            verdict="relayed" if relayed else "direct",
            reason=self._reason(chosen, gain_low),
            duration_s=chosen.duration_s,
            duration_s_low=low_s,
            duration_s_high=high_s,
            bound_s=bound_s,
            bound_usd=bound_usd,
            volume_gb=self.request.volume_gb,
            relayed_share=max(0.0, relayed_share),
            cost_usd=chosen.cost,
            pairs=self._pairs(chosen),
            vms=vms_by_region(self.problem.regions, chosen.vms),
            gain=equal.duration_s / chosen.duration_s if equal.duration_s else None,
            gain_low=gain_low if relayed else 1.0 if self.direct else None,
            equal_share=equal,
            direct=Comparison(
                self.direct.duration_s if self.direct else None,
                self.direct.cost if self.direct else None,
            ),
            bottlenecks=self._bottlenecks(chosen),
            one_more_vm=self._one_more_vm(chosen),
            connections=needed,
            warnings=notes + links_that_take_turns(needed, self.request.connections),
            frontier=self._frontier() if self.request.frontier else (),
        )
        return identified(plan)

    def _connections(self, chosen: ShuffleCandidate) -> dict[str, int]:
        shares = np.divide(
            chosen.rate_gbps, self.volumes, out=np.zeros_like(self.volumes), where=self.moved
        )
        links_gbps = links_of(chosen.paths_gbit * shares[:, None, :])
        return connections_by_region(
            self.resources, self.problem.regions, links_gbps, chosen.vms, self.request.connections
        )

    def _reason(self, chosen: ShuffleCandidate, gain_low: float | None) -> str:
        kind, region = self._fullest_row(chosen)
        limit = f"The bottleneck is {kind} at {region}."
        if self.direct is None:
            return f"Some pairs have no direct link, so they are relayed. {limit}"
        if _relays(chosen):
            times = self.direct.duration_s / chosen.duration_s
            if self.request.objective == "cost":
                saved = self.direct.cost.total - chosen.cost.total
                what = f"costs {abs(saved):.2f} USD {'less' if saved >= 0 else 'more'} than"
                return f"Relaying a part {what} the best direct rates and meets the limit. {limit}"
            if self._as_fast(chosen):
                saved = self.direct.cost.total - chosen.cost.total
                return (
                    f"Relaying a part costs {saved:.2f} USD less than the best direct rates and "
                    f"takes no longer. {limit}"
                )
            sure = f" (at least {gain_low:.2f}x)" if gain_low else ""
            return (
                f"Relaying a part ends {times:.2f}x sooner{sure} than the best direct rates, for "
                f"{chosen.cost.total - self.direct.cost.total:+.2f} USD. {limit}"
            )
        if gain_low is None:
            return f"Direct is cheapest within the limits. {limit}"
        if not self.relayed or not _relays(self.relayed) or self._as_fast(self.relayed):
            return f"No relay makes it end sooner. {limit}"
        times = self.direct.duration_s / self.relayed.duration_s
        return (
            f"Relays may end it {times:.2f}x sooner than the best direct rates, but are certain to "
            f"gain only {gain_low:.2f}x, below the margin of {1 + self.request.margin:.2f}x. "
            f"{limit}"
        )

    def _equal_share(self) -> Comparison:
        """Return what starting everything at once, direct, would give."""
        if self.direct is None:
            return Comparison(None, None)
        finish = equal_share_finish_s(self.resources, self.volumes)
        duration_s = float(finish.max()) + self.direct.ramp_up_s
        hours = (duration_s + self.request.vm_start_s) / S_PER_H
        used = self.problem.ends * self.resources.vms
        vm_usd = float(used @ self.problem.vm_usd_per_h) * hours
        return Comparison(duration_s, Cost.of(self.direct.cost.egress, vm_usd))

    def _pairs(self, chosen: ShuffleCandidate) -> tuple[PairPlan, ...]:
        regions, carried_gbps = self.problem.regions, self.resources.connections_gbps
        i, k, j = np.nonzero(chosen.paths_gbit)
        relayed = k != j
        share = chosen.paths_gbit[i, k, j] / self.volumes[i, j]
        rank = np.argsort(np.argsort(regions))
        order = np.lexsort((rank[k], -share, relayed, j, i))
        i, k, j, relayed, share = i[order], k[order], j[order], relayed[order], share[order]
        rate = chosen.rate_gbps[i, j] * share
        slowest = np.minimum(carried_gbps[i, k], np.where(relayed, carried_gbps[k, j], np.inf))
        flows = self.request.connections * rate / slowest
        connections = np.maximum(1, np.ceil(flows * (1 - SAME_COUNT)))
        fees = self.problem.usd_per_gbit
        usd_per_gb = (fees[i, k] + np.where(relayed, fees[k, j], 0.0)) * BITS_PER_BYTE
        paths: dict[tuple[int, int], list[ShufflePath]] = {}
        columns = (i, k, j, relayed, rate, share, connections.astype(int), usd_per_gb)
        for a, via, b, is_relayed, *figures in zip(*(c.tolist() for c in columns), strict=True):
            hops = (
                (regions[a], regions[via], regions[b]) if is_relayed else (regions[a], regions[b])
            )
            paths.setdefault((a, b), []).append(ShufflePath(hops, *figures))
        volume_gb = (self.volumes / BITS_PER_BYTE).tolist()
        pair_gbps, finish_s = chosen.rate_gbps.tolist(), chosen.finish_s.tolist()
        return tuple(
            PairPlan(
                regions[a], regions[b], volume_gb[a][b], pair_gbps[a][b], finish_s[a][b], tuple(own)
            )
            for (a, b), own in paths.items()
        )

    def _fullest_row(self, chosen: ShuffleCandidate) -> tuple[str, str]:
        """Return the kind and the region of the most loaded row."""
        levels = self.resources.loads(chosen.links_gbit) / self.resources.row_vms
        row = self.resources.row(int(levels.argmax()))
        return row.kind, row_place(row, self.problem.regions)

    def _bottlenecks(self, chosen: ShuffleCandidate) -> tuple[Bottleneck, ...]:
        """Return the rows that decide the duration, the most valuable first."""
        worth = self._worth_s(chosen)
        least_s = BINDING * chosen.transfer_s / len(worth)
        found = bottlenecks_of_rows(self.resources, self.problem.regions, worth, least_s)
        return found[:BOTTLENECKS_SHOWN]

    def _worth_s(self, chosen: ShuffleCandidate) -> Floats:
        """Return what one more VM of each row saves, at the margin."""
        resources = self.resources
        levels = resources.loads(chosen.links_gbit) / resources.row_vms
        worth = np.zeros(len(levels))
        if _relays(chosen) and self.request.objective == "time":
            worth = self.fast().row_prices * chosen.transfer_s
        else:
            fullest = int(levels.argmax())
            worth[fullest] = levels[fullest] / resources.row_vms[fullest]
        return worth

    def _one_more_vm(self, chosen: ShuffleCandidate) -> tuple[OneMoreVm, ...]:
        """Return what one more VM at each of the tightest sites saves at least."""
        resources, overhead_s = self.resources, chosen.ramp_up_s
        worth = self._worth_s(chosen)
        places = widenings(
            resources, self.problem.regions, worth, BINDING * chosen.transfer_s / len(worth)
        )
        found = []
        for sites, place in list(places.items())[:MORE_VMS_SHOWN]:
            more = resources.with_vm_at(*sites)
            time_s = more.time_s(chosen.links_gbit)
            if _relays(chosen):
                start = self.fast().resumable
                columns = self.columns.with_resources(more, start)
                time_s = min(time_s, least_time(columns, MORE_VMS_GAP, start).objective)
            saved_s = chosen.transfer_s - time_s
            if saved_s > BINDING * chosen.transfer_s:
                found.append(OneMoreVm(place, time_s + overhead_s, saved_s))
        return tuple(sorted(found, key=lambda more: -more.saved_s))

    def _frontier(self) -> tuple[ShufflePoint, ...]:
        if self.request.relays == "none":
            points = [self.direct] if self.direct else []
        else:
            points = list(self._points())
        return tuple(
            ShufflePoint(
                point.duration_s,
                point.cost,
                max(0.0, float(point.links_gbit.sum() / self.volumes.sum()) - 1),
                vms_by_region(self.problem.regions, point.vms),
            )
            for point in points
        )


def _relays(candidate: ShuffleCandidate) -> bool:
    """Whether any volume takes more than one link."""
    paths = candidate.paths_gbit
    direct = np.einsum("ijj->ij", paths)
    return bool((paths.sum(axis=1) - direct).max() > 0)
