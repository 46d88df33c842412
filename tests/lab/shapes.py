"""Small topologies for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence

from probes.lab.topology import Site, Topology


def star(
    rtt_ms: Sequence[float],
    *,
    cap_mbps: float = 100,
    window_bytes: int = 250_000,
    flow_mbps: float = math.inf,
) -> Topology:
    """Sites ``lab:0``, ``lab:1``, ...; the first is ``rtt_ms[i]`` from site i + 1.

    Two others are as far apart as the farther of them is from the first.
    """
    ms = [0.0, *rtt_ms]
    count = len(ms)
    sites = tuple(
        Site(f"lab:{i}", cap_mbps, cap_mbps, window_bytes, flow_mbps) for i in range(count)
    )
    matrix = tuple(
        tuple(0.0 if i == j else float(max(ms[i], ms[j])) for j in range(count))
        for i in range(count)
    )
    return Topology(sites, matrix, profile="test")
