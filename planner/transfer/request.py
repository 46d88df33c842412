"""What is to be moved, under which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Literal, TypeAlias

from planner.model.errors import InputError
from planner.model.units import duration_s

Objective: TypeAlias = Literal["value", "time", "cost", "latency"]
OBJECTIVES: tuple[Objective, ...] = ("value", "time", "cost", "latency")

DEFAULT_VOLUME_GB = 100.0
DEFAULT_CONNECTIONS = 64
DEFAULT_TIME_VALUE_USD_PER_H = 20.0
DEFAULT_MARGIN = 0.1
DEFAULT_VM_START_S = 60.0
# An exabyte: more is a slip of the unit.
MOST_VOLUME_GB = 1e9
MOST_VMS = 1000
MOST_CONNECTIONS = 65_535
# Below this, a share of a VM's connections is too coarse to split a transfer over paths.
CONNECTIONS_TO_SPLIT = 8
# Single relays that an answer compares, the best of them included.
DEFAULT_CANDIDATES = 6
MOST_CANDIDATES = 1000


@dataclass(frozen=True, slots=True)
class TransferRequest:
    """One transfer and its limits; checked when made.

    Attributes
    ----------
    src, dst : str
        Region ids.
    volume_gb : float
        In GB (10^9 bytes).
    objective : Objective
        ``value``: least cost plus time at ``time_value_usd_per_h``; ``time``: least time;
        ``cost``: least cost; ``latency``: least round-trip time.
    time_value_usd_per_h : float
        What an hour is worth; 0 means least cost, infinity least time.
    margin : float
        How much a relay must surely gain before it is recommended (0.1 is ten percent).
    budget_usd, deadline_s, min_throughput_gbps : float | None
        Limits on cost, duration and rate.
    vms : int
        Greatest number of VMs in a region.
    vms_in : mapping
        Region to its own greatest number.
    connections : int
        TCP connections that one VM opens; 1 for an application that cannot open more.
    relays : str
        ``any`` (split over as many as pay), ``one``, ``none``, or a region's id.
    forbidden : frozenset of str
        Regions that must not relay.
    vm_start_s : float
        Time that each VM is paid for before the transfer begins.

    Raises
    ------
    InputError
        If a figure is not finite, not positive, or out of range.
    """

    src: str
    dst: str
    volume_gb: float = DEFAULT_VOLUME_GB
    objective: Objective = "value"
    time_value_usd_per_h: float = DEFAULT_TIME_VALUE_USD_PER_H
    margin: float = DEFAULT_MARGIN
    budget_usd: float | None = None
    deadline_s: float | None = None
    min_throughput_gbps: float | None = None
    vms: int = 1
    vms_in: Mapping[str, int] = field(default_factory=dict)
    connections: int = DEFAULT_CONNECTIONS
    relays: str = "any"
    forbidden: frozenset[str] = frozenset()
    vm_start_s: float = DEFAULT_VM_START_S

    def __post_init__(self) -> None:
        if self.src == self.dst:
            raise InputError(
                "dst", "is the source itself", value=self.dst, remedy="Name two different regions."
            )
        if self.objective not in OBJECTIVES:
            raise InputError(
                "objective", f"must be one of {', '.join(OBJECTIVES)}", value=self.objective
            )
        _check_positive("volume", self.volume_gb, MOST_VOLUME_GB, "GB")
        for name, figure in (
            ("budget", self.budget_usd),
            ("deadline", self.deadline_s),
            ("min_throughput", self.min_throughput_gbps),
        ):
            if figure is not None:
                _check_positive(name, figure, inf, "")
        if not self.time_value_usd_per_h >= 0:
            raise InputError(
                "time_value",
                "must be 0 or more",
                value=self.time_value_usd_per_h,
                remedy="0 asks for least cost, inf for least time.",
            )
        if not 0 <= self.margin < 100:
            raise InputError(
                "margin", "must be from 0 to 100", value=self.margin, remedy="0.1 is ten percent."
            )
        if not (isfinite(self.vm_start_s) and self.vm_start_s >= 0):
            raise InputError("vm_start", "must be 0 s or more", value=self.vm_start_s)
        for name, count in (
            ("vms", self.vms),
            *((f"vms in {r}", n) for r, n in self.vms_in.items()),
        ):
            _check_count(name, count, MOST_VMS)
        _check_count("connections", self.connections, MOST_CONNECTIONS)

    def quota(self, region: str) -> int:
        """Return the greatest number of VMs in a region."""
        return self.vms_in.get(region, self.vms)

    @property
    def may_split(self) -> bool:
        """Whether a VM has enough connections to divide them over paths."""
        return self.connections >= CONNECTIONS_TO_SPLIT

    @property
    def hour_usd(self) -> float:
        """What an hour is worth under the objective: infinity for time, 0 for cost."""
        if self.objective == "time":
            return inf
        return 0.0 if self.objective == "cost" else self.time_value_usd_per_h

    def least_rate_gbps(self, ramp_up_s: float = 0.0) -> float:
        """Return the rate that the limits demand; infinity if the deadline cannot be met."""
        least = self.min_throughput_gbps or 0.0
        if self.deadline_s is not None:
            left_s = self.deadline_s - ramp_up_s
            least = max(least, duration_s(self.volume_gb, 1.0) / left_s if left_s > 0 else inf)
        return least


def _check_positive(name: str, value: float, most: float, unit: str) -> None:
    if not _is(value, (int, float)):
        raise InputError(name, "must be a number", value=value)
    if not isfinite(value) or value <= 0:
        raise InputError(name, "must be a finite number above 0", value=value)
    if value > most:
        raise InputError(
            name,
            f"is more than {most:g} {unit}",
            value=value,
            remedy="Check the unit; split what is really larger.",
        )


def _check_count(name: str, value: int, most: int) -> None:
    if not _is(value, (int,)) or not 1 <= value <= most:
        raise InputError(name, f"must be a whole number from 1 to {most}", value=value)


def _is(value: object, kinds: tuple[type, ...]) -> bool:
    """Whether a value that may come from untyped code is a number (True is not)."""
    return isinstance(value, kinds) and not isinstance(value, bool)
