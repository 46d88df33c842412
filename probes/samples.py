"""A sample: one measurement, with everything needed to judge it later."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Metric: TypeAlias = Literal[
    "rtt_ms",
    "per_flow_mbps",
    "aggregate_mbps",
    "loss_pct",
    "jitter_ms",
    "udp_mbps",
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
        JSON object with what else the tool said, or ``""``.
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


class Skipped(NamedTuple):
    """A row that an importer left out, and why."""

    row: int
    reason: str
