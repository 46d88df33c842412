"""Reads a plan in progress: its request, the volume moved, and the volume left.

Transfers, shuffles and broadcasts all come down to volumes on links that share the VMs of their
sites (:mod:`planner.model.shared_resources`), so the same calculation (:class:`Workload`) serves an
old plan on new estimates and a new plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Any, TypeAlias

import numpy as np

from planner.broadcast.request import BroadcastRequest
from planner.fields.demands import Demands, Pair
from planner.fields.kinds import LEAST_FIGURE
from planner.fields.specified import fields_of
from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import Prices, hourly_usd, metered_usd_per_gb
from planner.model.throughput import ramp_up_s
from planner.model.units import BITS_PER_BYTE
from planner.replanning.plan import PlanKind
from planner.replanning.request import Moved, ReplanRequest
from planner.shared_vms.drawn_times import with_further_vms
from planner.shared_vms.problem import resources_at_bounds
from planner.shuffle.request import ShuffleRequest
from planner.transfer.request import TransferRequest

AnyRequest: TypeAlias = TransferRequest | ShuffleRequest | BroadcastRequest
Left: TypeAlias = float | Mapping[Pair, float]
"""GB that every destination still lacks; for a shuffle, that each pair lacks."""

# Each kind's plan has one of these, and no other kind's.
KINDS: dict[PlanKind, tuple[str, type[AnyRequest]]] = {
    "transfer": ("paths", TransferRequest),
    "shuffle": ("pairs", ShuffleRequest),
    "broadcast": ("trees", BroadcastRequest),
}
# Options that are dropped when a plan's request is asked again.
_SHOWN = {"frontier", "candidates", "max_age_s", "max_price_age_s", "month_to_date_gb", "vm_types"}
_SHOWN |= {"label"}
REMEDY = "Give a plan as it was answered: the object, or its JSON."
ALL = 1 - 1e-9


@dataclass(frozen=True)
class Workload:
    """The remaining volume of each link, with routes and VMs."""

    # Source and destination of a link to the volume that it still carries
    links_gb: Mapping[Pair, float]
    # The regions of each path, or of each branch of a tree from its root
    routes: frozenset[tuple[str, ...]]
    vms: Mapping[str, int]  # region to number of VMs
    # The regions of a transfer's paths over a relay; no two share a link
    relayed: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, plan: Mapping[str, Any], left_gb: Left) -> Workload:
        """Divide the remaining volume among a plan's paths or trees, by their shares.

        Parameters
        ----------
        plan : mapping
            Of a transfer, a shuffle or a broadcast, as :meth:`Answer.model_dump` gives it.
        """
        by_pair, whole_gb = (left_gb, 0.0) if isinstance(left_gb, Mapping) else ({}, left_gb)
        paths = [(path["regions"], path["share"], whole_gb) for path in plan.get("paths") or ()]
        relayed = tuple(tuple(regions) for regions, *_ in paths if len(regions) > 2)
        for pair in plan.get("pairs") or ():
            gb = by_pair.get((pair["src"], pair["dst"]), 0.0)
            paths += [(path["regions"], path["share"], gb) for path in pair["paths"] if gb > 0]
        links_gb: dict[Pair, float] = defaultdict(float)
        routes = {tuple(regions) for regions, *_ in paths}
        for regions, share, gb in paths:
            for link in pairwise(regions):
                links_gb[link] += gb * share
        for tree in plan.get("trees") or ():
            reached: dict[str, tuple[str, ...]] = {}
            for link in tree["legs"]:
                before = reached.setdefault(link["src"], (link["src"],))
                reached[link["dst"]] = (*before, link["dst"])
                links_gb[link["src"], link["dst"]] += whole_gb * tree["share"]
            routes |= {route for route in reached.values() if len(route) > 1}
        return cls(dict(links_gb), frozenset(routes), dict(plan["vms"]), relayed)

    @property
    def regions(self) -> tuple[str, ...]:
        """All regions that take part."""
        ends = [region for link in self.links_gb for region in link]
        return tuple(dict.fromkeys([*ends, *self.vms]))

    def transfer_s(
        self, network: Network, prices: Prices, connections: int, pair_connections: int
    ) -> list[float]:
        """Return the time that the VMs need: with links at their best, as expected, at their worst.

        Parameters
        ----------
        connections, pair_connections : int
            Of a VM, in all; and of a VM to one other, at most.
        """
        index = {region: i for i, region in enumerate(self.regions)}
        gbit = np.zeros((len(index), len(index)))
        for (src, dst), gb in self.links_gb.items():
            if gb > 0:
                network.link(src, dst)  # known, or a DataError
                gbit[index[src], index[dst]] = gb * BITS_PER_BYTE
        changed = []
        for hops in map(list, map(pairwise, self.relayed)):
            # A relay opens as many connections as it accepts: the slowest link sets their count.
            links = [network.link(*hop) for hop in hops]
            flow = min((link.per_flow_mbps for link in links), key=lambda one: one.expected)
            changed += [replace(link, per_flow_mbps=flow) for link in links]
        if changed:
            network = network.with_(links=network.usual.with_links(changed))
        vms = np.array([float(max(1, self.vms.get(region, 1))) for region in index])
        may = np.ones(len(index), dtype=bool)
        of_vms = vms, may, connections, pair_connections
        at_bounds = resources_at_bounds(network, list(index), gbit > 0, *of_vms, prices)
        expected = at_bounds["expected"]
        if (expected.rate_gbps[gbit > 0] <= 0).any():
            return [inf, inf, inf]
        low = with_further_vms(at_bounds["low"], gbit, vms)
        fast_s, slow_s = expected.bounds_s(gbit, vms, low, at_bounds["high"])
        time_s = expected.time_s(gbit)
        return [min(fast_s, time_s), time_s, max(slow_s, time_s)]

    def ramp_up_s(self, network: Network, known: frozenset[tuple[str, ...]]) -> float:
        """Return the time to get up to speed on routes that are new."""
        rtts_ms = [
            sum(network.link(a, b).rtt_ms.expected for a, b in pairwise(route))
            for route in self.routes - known
        ]
        return ramp_up_s(max(rtts_ms, default=0.0))

    def egress_usd(self, prices: Prices) -> float:
        """Return the fees of the remaining volumes."""
        left_gb = {link: gb for link, gb in self.links_gb.items() if gb > 0}
        usd_per_gb = metered_usd_per_gb(prices, left_gb)
        return sum(gb * usd_per_gb[link] for link, gb in left_gb.items())

    def vm_usd_per_h(self, prices: Prices) -> float:
        """Return the hourly price of all its VMs together, with the fees by the hour."""
        usd_per_h = sum(n * prices.vm_usd_per_h(region) for region, n in self.vms.items())
        return usd_per_h + hourly_usd(prices, self.vms)

    def is_like(self, other: Workload) -> bool:
        """Return whether another has the same VMs and, within 0.1 %, the same volumes on links."""
        most = max(other.links_gb.values())
        return dict(self.vms) == dict(other.vms) and all(
            abs(self.links_gb.get(link, 0.0) - other.links_gb.get(link, 0.0)) <= 1e-3 * most
            for link in {*self.links_gb, *other.links_gb}
        )


class InProgress:
    """A plan in progress, read from its document and what has moved.

    For a shuffle, the volume moved is that of all pairs together (divided by the plan's rates) or
    of each pair; otherwise, the volume that every destination has.

    Raises InputError if the document is no plan, the figures are out of range, or nothing is left.

    Attributes
    ----------
    plan : mapping
        As :meth:`planner.transfer.plan.Answer.model_dump` gives it.
    request : AnyRequest
        For the remaining volume, with the limits as they were at the start.
    workload, started : Workload
        The remaining volume and the whole one, as the plan moves them.
    planned_gbps, planned_s : float
        Mean rate of the plan until now, and the time of all its volume once up to speed.
    observed_gbps : float | None
        The mean rate so far.
    rate_gbps : float | None
        Of the moment, where it is known.
    since_asked_s : float
        Since its VMs began to start, from which deadlines count.
    """

    def __init__(self, asked: ReplanRequest) -> None:
        plan = self.plan = asked.document
        self.elapsed_s, self.rate_gbps = asked.elapsed_s, asked.rate_gbps
        kinds = [of for of, (key, _) in KINDS.items() if isinstance(plan.get(key), list | tuple)]
        if not kinds or not {"plan_id", "snapshot", "request", "vms"} <= set(plan):
            problem = "is not a plan of a transfer, a shuffle or a broadcast"
            raise InputError("plan", problem, remedy=REMEDY)
        self.kind = kinds[0]
        try:
            self._read(asked.moved_gb)
        except (KeyError, TypeError, AttributeError) as fault:
            problem = f"is not a {self.kind}'s plan: {type(fault).__name__} {fault}"
            raise InputError("plan", problem, remedy=REMEDY) from None

    def _read(self, moved_gb: Moved) -> None:
        """Read volumes and rates; those of a transfer or a broadcast are of one pair."""
        plan, is_shuffle = self.plan, self.kind == "shuffle"
        if not is_shuffle and isinstance(moved_gb, Mapping):
            problem, remedy = f"must be one volume for a {self.kind}", "Only a shuffle has pairs."
            raise InputError("moved_gb", problem, value=dict(moved_gb), remedy=remedy)
        if is_shuffle:
            volumes, rates = (
                {(row["src"], row["dst"]): float(row[name]) for row in plan["pairs"]}
                for name in ("volume_gb", "throughput_gbps")
            )
        else:
            volumes = {("", ""): float(plan["request"]["volume_gb"])}
            rates = {("", ""): float(plan["throughput_gbps"])}

        def reached_gb(time_s: float) -> dict[Pair, float]:
            return {pair: min(gb, rates[pair] * time_s / 8) for pair, gb in volumes.items()}

        whole_gb = sum(volumes.values())
        times_s = [8 * gb / rates[of] for of, gb in volumes.items()]
        if isinstance(moved_gb, Mapping):
            moved = {
                pair: _checked(gb, volumes.get(pair, 0.0), f"moved_gb {pair[0]} -> {pair[1]}")
                for pair, gb in moved_gb.items()
            }
        elif len(volumes) == 1:
            moved = dict.fromkeys(volumes, _checked(moved_gb, whole_gb, "moved_gb"))
        else:  # each pair's part, at the rates of the plan
            ends_s = [0.0, *sorted(times_s)]
            until_gb = [sum(reached_gb(end_s).values()) for end_s in ends_s]
            gb = _checked(moved_gb, whole_gb, "moved_gb")
            moved = reached_gb(float(np.interp(gb, until_gb, ends_s)))
        left = {pair: gb - moved.get(pair, 0.0) for pair, gb in volumes.items()}
        left = {pair: gb for pair, gb in left.items() if gb > volumes[pair] * (1 - ALL)}
        self.moved_gb, self.remaining_gb = sum(moved.values()), sum(left.values())
        if self.remaining_gb <= max(whole_gb * (1 - ALL), LEAST_FIGURE):
            raise InputError("moved_gb", "leaves nothing to move", value=whole_gb)
        self.planned_gbps, self.planned_s = sum(rates.values()), max(times_s)
        if is_shuffle and self.elapsed_s > 0:
            self.planned_gbps = 8 * sum(reached_gb(self.elapsed_s).values()) / self.elapsed_s
        self.observed_gbps = None
        if self.elapsed_s > 0:
            self.observed_gbps = 8 * self.moved_gb / self.elapsed_s
        self.since_asked_s = float(plan.get("vm_start_s") or 0.0) + self.elapsed_s
        self.request = _asked(plan, self.kind, left if is_shuffle else self.remaining_gb)
        self.workload = Workload.of(plan, left if is_shuffle else self.remaining_gb)
        self.started = Workload.of(plan, volumes if is_shuffle else whole_gb)


def _asked(plan: Mapping[str, Any], kind: PlanKind, left_gb: Left) -> AnyRequest:
    """Return a plan's request, changed to the remaining volume."""
    asked, made = plan["request"], KINDS[kind][1]
    known = fields_of(made).keys() - _SHOWN
    found = {name: value for name, value in asked.items() if name in known}
    left: dict[str, Any] = {"volume_gb": left_gb}
    if isinstance(left_gb, Mapping):
        left = {"demands_gb": Demands(left_gb)}
    try:
        return made(**found | left, avoid=asked.get("forbidden", ()))
    except InputError as fault:
        raise InputError("plan", f"was asked for what can't be: {fault}", remedy=REMEDY) from None


def without_limits(request: AnyRequest) -> AnyRequest:
    """Return a request for least time at any cost."""
    limits = {"deadline_s", "budget_usd", "min_throughput_gbps"} & fields_of(type(request)).keys()
    return request.with_(objective="time", **dict.fromkeys(limits))


def _checked(value: float, most: float, field: str) -> float:
    if value > most * (2 - ALL):
        remedy = "Give what has arrived, not what was sent over all links."
        problem = f"is more than the {most:g} GB of the plan"
        raise InputError(field, problem, value=value, remedy=remedy)
    return min(value, most)
