"""A sample: one measurement, with everything needed to judge it later."""

from __future__ import annotations

import json
from math import inf
from typing import Any, Literal, NamedTuple, Self, TypeAlias

from planner.model.estimate import AddressKind

Metric: TypeAlias = Literal[
    "rtt_ms",
    "per_flow_mbps",
    "aggregate_mbps",
    "loss_pct",
    "jitter_ms",
    "udp_mbps",
    "transfer_s",  # of one file; its volume is in the detail
    "route_hops",  # routers on the way and the destination itself
    "egress_cap_mbps",  # of one VM over all destinations together; src and dst are its region
    "ingress_cap_mbps",
]


class Sample(NamedTuple):
    """One measurement of one metric from one region to another.

    Attributes
    ----------
    src, dst : str
        Region ids (``provider:region``), without a zone.
    metric : Metric
        What was measured; the name ends in the unit of ``value``.
    value : float
        As the tool gave it at the receiving side, not corrected.
    measured_at_s : float
        Start of the measurement, seconds since 1970 (UTC).
    tool : str
        ``iperf3``, ``ping``, ``nuttcp``, ``skyplane``, ... with its version where known.
    connections : int | None
        Parallel TCP connections; None where the notion does not apply.
    duration_s : float | None
        Length of the measured interval, without omitted seconds.
    warmed_up : bool
        Whether slow start was left out (for instance by ``iperf3 -O``).
    src_zone, dst_zone : str
        Zone suffix (``a``), or ``""``.
    src_vm, dst_vm : str
        VM type name, or ``""``.
    detail : str
        JSON object with what else the tool said, or ``""``: see :meth:`read_detail`.
    address : AddressKind | None
        Over which kind of address it was measured, where that is known.
    new_level : bool
        Whether a verification measured twice and found that the link has changed its level.
    intervals : int | None
        How many intervals of the test its value is the median of; None where they were not kept.
    """

    src: str
    dst: str
    metric: Metric
    value: float
    measured_at_s: float
    tool: str
    connections: int | None = None
    duration_s: float | None = None
    warmed_up: bool = False
    src_zone: str = ""
    dst_zone: str = ""
    src_vm: str = ""
    dst_vm: str = ""
    detail: str = ""
    address: AddressKind | None = None
    new_level: bool = False
    intervals: int | None = None

    def read_detail(self) -> dict[str, Any]:
        """Return what else the tool said; see :func:`read_detail`."""
        return read_detail(self.detail)

    def with_detail(self, **more: object) -> Self:
        """Return the sample with more in its detail."""
        return self._replace(detail=json.dumps(self.read_detail() | more))


def read_detail(text: str) -> dict[str, Any]:
    """Return a sample's detail as an object; empty where there is none, or it is none.

    What clients have sent may hold anything.
    """
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


OWN = ""
"""The source that is this store's own prober, or what its operator vouches for: it is trusted."""


class Reported(NamedTuple):
    """A sample with who reported it.

    Attributes
    ----------
    source : str
        Such as ``token ci``, ``address 192.0.2.7`` or ``files``; :data:`OWN` is trusted.
    id : int
        Ascending in the order of arrival.
    arrived_at_s : float
        Seconds since 1970 (UTC).
    vouched : bool
        Whether an operator said that it is right, whatever physics say.
    """

    sample: Sample
    source: str = OWN
    id: int = 0
    arrived_at_s: float = inf
    vouched: bool = False


class Quarantined(NamedTuple):
    """A sample that can't be a measurement, and why: kept apart, and nothing rests on it."""

    sample: Sample
    reason: str


class Skipped(NamedTuple):
    """A row that an importer left out, and why."""

    row: int
    reason: str
