"""A shuffle as a question, and the figures that it comes down to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, Literal, TypeAlias

import numpy as np

from planner.model.errors import DataError, InputError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.model.shared_resources import Floats, SiteResources
from planner.model.units import BITS_PER_BYTE
from planner.transfer.request import (
    DEFAULT_CONNECTIONS,
    DEFAULT_MARGIN,
    DEFAULT_VM_START_S,
    MOST_CONNECTIONS,
    MOST_VMS,
)

ShuffleObjective: TypeAlias = Literal["time", "cost"]
SHUFFLE_OBJECTIVES: tuple[ShuffleObjective, ...] = ("time", "cost")


@dataclass(frozen=True, slots=True)
class ShuffleRequest:
    """Many transfers that start together, and their limits; checked when made.

    Attributes
    ----------
    demands_gb : mapping
        Source and destination to GB, above 0; see :func:`planner.model.demands.demands_gb`.
    objective : ShuffleObjective
        ``time``: the last pair ends as soon as possible; ``cost``: least cost before a deadline.
    deadline_s : float | None
        Latest end of the last pair.
    margin : float
        How much relays must surely gain before they are recommended (0.1 is ten percent).
    vms : int
        VMs in each region, of ends and of relays.
    vms_in : mapping
        Region to its own number.
    connections : int
        TCP connections that one VM opens, over all its transfers.
    relays : {"any", "none"}
    forbidden : frozenset of str
        Regions that must not relay.
    vm_start_s : float
        Time that each VM is paid for before the transfers begin.

    Raises
    ------
    InputError
        If a figure is out of range.
    """

    demands_gb: Mapping[tuple[str, str], float]
    objective: ShuffleObjective = "time"
    deadline_s: float | None = None
    margin: float = DEFAULT_MARGIN
    vms: int = 1
    vms_in: Mapping[str, int] = field(default_factory=dict)
    connections: int = DEFAULT_CONNECTIONS
    relays: str = "any"
    forbidden: frozenset[str] = frozenset()
    vm_start_s: float = DEFAULT_VM_START_S

    def __post_init__(self) -> None:
        if self.objective not in SHUFFLE_OBJECTIVES:
            raise InputError(
                "objective", f"must be one of {', '.join(SHUFFLE_OBJECTIVES)}", value=self.objective
            )
        if self.relays not in {"any", "none"}:
            raise InputError(
                "relays",
                "must be any or none for a shuffle",
                value=self.relays,
                remedy="Use --avoid and --allow to say which regions may relay.",
            )
        if not self.demands_gb:
            raise InputError("demands", "have nothing to move")
        if self.deadline_s is not None and not 0 < self.deadline_s < inf:
            raise InputError("deadline", "must be a finite time above 0", value=self.deadline_s)
        if not 0 <= self.margin < 100:
            raise InputError("margin", "must be from 0 to 100", value=self.margin)
        if not (isfinite(self.vm_start_s) and self.vm_start_s >= 0):
            raise InputError("vm_start", "must be 0 s or more", value=self.vm_start_s)
        counts = [("vms", self.vms), *((f"vms in {r}", n) for r, n in self.vms_in.items())]
        for name, count, most in (
            *((name, count, MOST_VMS) for name, count in counts),
            ("connections", self.connections, MOST_CONNECTIONS),
        ):
            if not _is_whole(count) or not 1 <= count <= most:
                raise InputError(name, f"must be a whole number from 1 to {most}", value=count)

    @property
    def ends(self) -> tuple[str, ...]:
        """Regions that send or receive, in the order of the demands."""
        return tuple(dict.fromkeys(region for pair in self.demands_gb for region in pair))

    @property
    def volume_gb(self) -> float:
        """All volumes together."""
        return sum(self.demands_gb.values())

    def described(self) -> dict[str, Any]:
        """Return what was asked, as plain values; the volumes are with the pairs of the plan."""
        return {
            "pairs": len(self.demands_gb),
            "volume_gb": self.volume_gb,
            "objective": self.objective,
            "deadline_s": self.deadline_s,
            "margin": self.margin,
            "vms": self.vms,
            "vms_in": dict(self.vms_in),
            "connections": self.connections,
            "relays": self.relays,
            "forbidden": sorted(self.forbidden),
            "vm_start_s": self.vm_start_s,
        }


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True)
class ShuffleProblem:
    """The figures of a shuffle on a network.

    Attributes
    ----------
    regions : tuple of str, length n
    ends : array of bool, length n
    demands_gbit, usd_per_gbit, rtt_ms : arrays, shape (n, n)
    low, high : SiteResources
        The resources at the bounds of the estimates.
    vm_usd_per_h : array, length n
    """

    regions: tuple[str, ...]
    ends: np.ndarray
    resources: SiteResources
    low: SiteResources
    high: SiteResources
    demands_gbit: Floats
    usd_per_gbit: Floats
    rtt_ms: Floats
    vm_usd_per_h: Floats


def shuffle_problem(request: ShuffleRequest, network: Network, prices: Prices) -> ShuffleProblem:
    """Return the figures of a shuffle.

    Fees are at the tier of the volume that the link's source sends of its own.

    Raises
    ------
    InputError
        If an end is not in the network.
    DataError
        If nothing is known of any permitted path of a pair, or no fee of its direct link.
    """
    for region in request.ends:
        if region not in network.sites:
            raise InputError(
                "demands",
                "name a region that is not part of the network",
                value=region,
                remedy="Measure it, import measurements, or add it to a catalogue file.",
            )
    ends = set(request.ends)
    may_relay = request.relays == "any"
    # Nothing else takes part, so nothing else is looked at.
    regions = tuple(
        r for r in network.sites if r in ends or (may_relay and r not in request.forbidden)
    )
    n = len(regions)
    index = {region: i for i, region in enumerate(regions)}
    demands = np.zeros((n, n))
    for (src, dst), volume_gb in request.demands_gb.items():
        demands[index[src], index[dst]] = volume_gb * BITS_PER_BYTE
    rate = {bound: np.zeros((n, n)) for bound in ("low", "expected", "high")}
    rtt = np.zeros((n, n))
    fees = np.zeros((n, n))
    sent_gb = demands.sum(axis=1) / BITS_PER_BYTE
    for src, i in index.items():
        for dst, link in network.links.get(src, {}).items():
            j = index.get(dst)
            if j is None or i == j:
                continue
            try:
                usd_per_gb = prices.egress_usd_per_gb(src, dst, float(sent_gb[i]) or 1.0)
            except DataError:
                if demands[i, j]:
                    raise
                continue  # what it would cost is not known, so nothing is relayed over it
            fees[i, j] = usd_per_gb / BITS_PER_BYTE
            rtt[i, j] = link.rtt_ms.expected
            rate["low"][i, j] = link.rate_gbps(request.connections, "low")
            rate["expected"][i, j] = link.rate_gbps(request.connections)
            rate["high"][i, j] = link.rate_gbps(request.connections, "high")
    vms = np.array([float(request.vms_in.get(r, request.vms)) for r in regions])
    relays = np.array([may_relay and r not in request.forbidden for r in regions])
    at = {}
    for bound in ("low", "expected", "high"):
        egress = np.array([getattr(network.sites[r].egress_gbps, bound) for r in regions])
        ingress = np.array([getattr(network.sites[r].ingress_gbps, bound) for r in regions])
        at[bound] = SiteResources(rate[bound], egress, ingress, vms, relays)
    _refuse_unreachable(request, index, rate["expected"], relays)
    return ShuffleProblem(
        regions,
        np.array([r in ends for r in regions]),
        at["expected"],
        at["low"],
        at["high"],
        demands,
        fees,
        rtt,
        np.array([prices.vm_usd_per_h(r) for r in regions]),
    )


def _refuse_unreachable(
    request: ShuffleRequest, index: Mapping[str, int], rate_gbps: Floats, relays: np.ndarray
) -> None:
    known = rate_gbps > 0
    one_hop = (known[:, relays].astype(float) @ known[relays].astype(float)) > 0
    for src, dst in request.demands_gb:
        i, j = index[src], index[dst]
        if not (known[i, j] or one_hop[i, j]):
            raise DataError(
                f"Nothing is known of any path from {src} to {dst} under these rules. Measure or "
                "import one of its links."
            )
