"""Many transfers at once over shared VMs: rates, paths and VMs for all pairs of a shuffle.

:mod:`planner.shuffle.solve` decides; this module builds the answer.
"""

from __future__ import annotations

import numpy as np

from planner.model.answer import Cost, OneMoreVm, identified
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats, SiteResources
from planner.model.units import BITS_PER_BYTE, more_usd_text, usd_text
from planner.model.vm_limits import BINDING, SAME_COUNT, bottlenecks_of_rows, vms_by_region
from planner.shared_vms.connections import Streams
from planner.shared_vms.explanation import (
    OpenedConnections,
    one_more_vm,
    ramps,
    untested_text,
    vm_warnings,
)
from planner.shared_vms.vm_count import with_decided_vms
from planner.shuffle.plan import Comparison, PairPlan, ShufflePath, ShufflePlan, ShufflePoint
from planner.shuffle.problem import shuffle_problem
from planner.shuffle.request import ShuffleRequest
from planner.shuffle.solve import ShuffleCandidate, ShuffleDecision, ShuffleSearch
from planner.solvers.column_generation import least_time
from planner.solvers.max_min_fill import equal_share_finish_s
from planner.transfer.wording import not_worth, plain_copy

MORE_VMS_GAP = 5e-3


def recommend_shuffle(
    request: ShuffleRequest, network: Network, prices: Prices, *, notes: tuple[str, ...] = ()
) -> ShufflePlan:
    """Return the recommended plan for many transfers that start together.

    Parameters
    ----------
    notes : tuple of str
        How the request's names were understood; goes first among the warnings.

    Raises
    ------
    InfeasibleError
        If no plan meets the deadline; names one that can be met.
    DataError
        If nothing is known of any permitted path of a pair.
    """
    decision = _decided(request, network, prices)
    search, chosen = decision.search, decision.chosen
    builder = _ShufflePlanBuilder(search)
    gain = decision.gain if chosen.relays else None
    used = chosen.links_gbit, chosen.vms, chosen.duration_s
    low_s, high_s = chosen.figures.range_s(*used, chosen.lead_s)
    equal, direct = builder.equal_share(), search.direct
    opened = builder.opened(chosen, network)
    vms = vms_by_region(search.problem.regions, chosen.vms)
    more = builder.one_more_vm(chosen)
    certain = 1.0 if direct and not chosen.relays else None
    demands = request.demands_gb.items()
    links = [(network.links.get(src, {}).get(dst), gb) for (src, dst), gb in demands]
    copies = plain_copy(links, chosen.vm_start_s)
    plan = ShufflePlan(
        plan_id="",
        snapshot=network.snapshot,
        request=request.described(),
        fees=search.problem.fee_lines(*used),
        verdict="relayed" if chosen.relays else "direct",
        reason=_reason(search, decision),
        duration_s=chosen.duration_s,
        duration_s_low=low_s,
        duration_s_high=high_s,
        bound_s=search.routed.bound if search.routed else chosen.transfer_s,
        bound_usd=decision.bound_usd,
        volume_gb=request.volume_gb,
        relayed_share=builder.relayed_share(chosen),
        cost_usd=chosen.cost,
        pairs=builder.pairs(chosen, opened, network),
        vms=vms,
        gain=equal.duration_s / chosen.duration_s if equal.duration_s else None,
        gain_low=gain.low if gain else certain,
        equal_share=equal,
        direct=Comparison(*((direct.duration_s, direct.cost) if direct else (None, None))),
        gain_high=gain.high if gain else certain,
        probability=decision.gain.probability if decision.gain else None,
        bottlenecks=bottlenecks_of_rows(
            search.resources, search.problem.regions, builder.worth_s(chosen), chosen.transfer_s
        ),
        one_more_vm=more,
        connections=opened.by_region,
        warnings=(
            *notes,
            *([copies] if copies else []),
            *untested_text(search.problem, chosen.links_gbit),
            *vm_warnings(
                request, network, vms, request.ends, opened.by_region, more=more, opened=opened
            ),
        ),
        measure_first=ramps(network, prices, builder.relayed_pairs(chosen), request.connections),
        frontier=builder.frontier() if request.frontier else (),
        vm_start_s=chosen.vm_start_s,
    )
    return identified(plan)


def _decided(request: ShuffleRequest, network: Network, prices: Prices) -> ShuffleDecision:
    problem = shuffle_problem(request, network, prices, at_once=True)
    all_direct = bool((problem.resources.rate_gbps[problem.demands_gbit > 0] > 0).all())
    hour_usd = 0.0 if request.objective == "cost" else request.time_value_usd_per_h
    return with_decided_vms(
        request,
        problem,
        hour_usd,
        problem.demands_gbit if all_direct else None,
        lambda vms: ShuffleSearch(request, problem.with_vms(vms), network).decide(),
    )


def _reason(search: ShuffleSearch, decision: ShuffleDecision) -> str:
    """Explain the choice of this plan in plain sentences."""
    request, direct, chosen = search.request, search.direct, decision.chosen
    problem = search.problem
    kind, region = chosen.figures.fullest_row(chosen.links_gbit, problem.resources.vms)
    limit = f"The bottleneck is {kind} at {region}."
    relayed, gain = decision.relayed, decision.gain
    if direct is None:
        return f"Some pairs have no direct link, so they are relayed. {limit}"
    saved = direct.cost.total - chosen.cost.total
    if chosen.relays:
        if request.objective == "cost":
            what = f"costs {usd_text(abs(saved))} {'less' if saved >= 0 else 'more'} than"
            return f"Relaying a part {what} the best direct rates and meets the limit. {limit}"
        if search.as_fast(chosen):
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
    if gain is None or search.as_fast(relayed):
        return f"No relay makes it end sooner. {limit}"
    return f"{not_worth('Relaying a part', gain, 'time', request.margin, request.risk)} {limit}"


class _ShufflePlanBuilder:
    """Builds the parts of a plan: turns positions and volumes into names and rates."""

    def __init__(self, search: ShuffleSearch) -> None:
        self.search, self.request, self.problem = search, search.request, search.problem
        self.resources, self.volumes = search.resources, search.volumes

    def opened(self, chosen: ShuffleCandidate, network: Network) -> OpenedConnections:
        """Return the connections that the plan opens on links."""
        shares = np.zeros_like(self.volumes)
        np.divide(chosen.rate_gbps, self.volumes, out=shares, where=self.search.moved)
        streams, most = Streams.of(chosen.paths_gbit * shares[:, None, :]), self.request.connections
        of = self.resources, self.problem.regions, streams, chosen.vms, most
        return OpenedConnections(network, *of)

    def relayed_share(self, candidate: ShuffleCandidate) -> float:
        """Return the share of the volume that takes a second link."""
        return max(0.0, float(candidate.links_gbit.sum() / self.volumes.sum()) - 1)

    def relayed_pairs(self, chosen: ShuffleCandidate) -> list[tuple[str, str]]:
        """Return the pairs that use relays, those with the most relayed volume first."""
        regions = self.problem.regions
        relayed = self.volumes - np.einsum("ijj->ij", chosen.paths_gbit)
        count = np.count_nonzero(relayed > SAME_COUNT * self.volumes)
        order = np.argsort(-relayed, axis=None, kind="stable")[:count]
        i, j = np.unravel_index(order, relayed.shape)
        return [(regions[a], regions[b]) for a, b in zip(i.tolist(), j.tolist(), strict=True)]

    def equal_share(self) -> Comparison:
        """Return the time and cost of starting everything at once, direct."""
        if self.search.direct is None:
            return Comparison(None, None)
        finish = equal_share_finish_s(self.resources, self.volumes, self.request.connections)
        time_s = float(finish.max()) + self.search.direct.ramp_up_s
        vms = self.problem.ends * self.resources.vms
        vm_usd, start_s = self.problem.vm_usd(vms, time_s), self.problem.start_s(vms)
        return Comparison(start_s + time_s, Cost.of(self.search.direct.cost.egress, float(vm_usd)))

    def pairs(
        self, chosen: ShuffleCandidate, opened: OpenedConnections, network: Network
    ) -> tuple[PairPlan, ...]:
        regions = self.problem.regions
        i, k, j = np.nonzero(chosen.paths_gbit)
        share, rank = chosen.paths_gbit[i, k, j] / self.volumes[i, j], np.argsort(regions).argsort()
        order = np.lexsort((rank[k], -share, k != j, j, i))
        i, k, j, share = i[order], k[order], j[order], share[order]
        relayed, rate = k != j, chosen.rate_gbps[i, j] * share
        connections = np.array(opened.counts)[order]
        fees = self.problem.fees.usd_per_gbit(chosen.links_gbit)
        usd_per_gb = (fees[i, k] + np.where(relayed, fees[k, j], 0.0)) * BITS_PER_BYTE
        paths: dict[tuple[int, int], list[ShufflePath]] = {}
        columns = (i, k, j, relayed, rate, share, connections, usd_per_gb)
        for a, via, b, is_relayed, *figures in zip(*(c.tolist() for c in columns), strict=True):
            hops = tuple(regions[at] for at in ((a, via, b) if is_relayed else (a, b)))
            addresses = network.addresses(hops)
            paths.setdefault((a, b), []).append(ShufflePath(hops, *figures, addresses=addresses))
        found = []
        for at, own in paths.items():
            src, dst = (regions[end] for end in at)
            gb, gbps = float(self.volumes[at]) / BITS_PER_BYTE, float(chosen.rate_gbps[at])
            found.append(PairPlan(src, dst, gb, gbps, float(chosen.finish_s[at]), tuple(own)))
        return tuple(found)

    def worth_s(self, chosen: ShuffleCandidate) -> Floats:
        """Return the marginal saving of one more VM of each row, in s."""
        if chosen.relays and self.request.objective == "time":
            return self.search.fast().row_prices * chosen.transfer_s
        resources = self.resources
        levels = resources.loads(chosen.links_gbit) / resources.row_vms
        fullest = np.arange(len(levels)) == levels.argmax()
        return np.where(fullest, levels / resources.row_vms, 0.0)

    def one_more_vm(self, chosen: ShuffleCandidate) -> tuple[OneMoreVm, ...]:
        """Return the least saving of one more VM at each of the tightest sites."""

        def saved_with(more: SiteResources) -> tuple[float, float]:
            time_s = more.paths_time_s(chosen.paths_gbit)
            if chosen.relays:
                columns = self.search.columns.with_resources(more)
                time_s = min(time_s, least_time(columns, MORE_VMS_GAP).objective)
            return time_s + chosen.lead_s, chosen.transfer_s - time_s

        least_s = BINDING * chosen.transfer_s
        worth_s = self.worth_s(chosen)
        return one_more_vm(self.resources, self.problem.regions, worth_s, least_s, saved_with)

    def frontier(self) -> tuple[ShufflePoint, ...]:
        points = [self.search.direct] if self.search.direct else []
        if self.request.relays != "none":
            points = self.search.points()
        regions, share = self.problem.regions, self.relayed_share
        return tuple(
            ShufflePoint(one.duration_s, one.cost, share(one), vms_by_region(regions, one.vms))
            for one in points
        )
