"""Tasks that measure everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

from probes.campaign.tasks import ProbeTask


def all_pairs_tasks(
    hosts: Sequence[str], expected_gbps: Callable[[str, str], float], connections: int = 64
) -> list[ProbeTask]:
    """Return a task of 5 s for each ordered pair of hosts, as Skyplane's profiler has them."""
    return [
        ProbeTask("aggregate", (pair,), connections, 5.0, expected_gbps(*pair))
        for pair in permutations(hosts, 2)
    ]
