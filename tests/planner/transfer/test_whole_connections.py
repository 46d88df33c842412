"""Few connections: no division of whole ones over at most three paths is faster or worth more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

import relayd
from tests.properties import examples

HOUR_USD, VM_USD, GB = 20.0, 1.0, 1000.0
SPLIT_GAIN = 0.02
"""Least gain of a further path, docs/planning.md."""


def divisions(total: int, count: int) -> Iterator[tuple[int, ...]]:
    for marks in combinations(range(1, total), count - 1):
        yield tuple(end - start for start, end in pairwise((0, *marks, total)))


@pytest.mark.parametrize("objective", ["time", "value"])
@pytest.mark.parametrize("seed", range(examples(24)))
def test_no_division_of_whole_connections_is_better(seed: int, objective: Any) -> None:
    random = np.random.default_rng(seed)
    n, connections = 6, int(random.choice([8, 10, 13, 16]))
    names = [f"r{i}" for i in range(n)]
    flow_gbps = random.uniform(0.2, 1.5, (n, n)).round(3)
    rate_gbps = np.maximum(random.uniform(1, 8, (n, n)).round(2), flow_gbps)
    np.fill_diagonal(rate_gbps, 0.0)
    fees = random.choice([0.01, 0.02, 0.05], (n, n))
    wan = relayd.open(
        {
            "regions": names,
            "aggregate_gbps": rate_gbps.tolist(),
            "per_flow_mbps": (1e3 * flow_gbps).tolist(),
            "rtt_ms": 50,
            "usd_per_gb": fees.tolist(),
            "vm_usd_per_h": VM_USD,
        }
    )
    plan = wan.plan(
        *names[:2],
        volume_gb=GB,
        vms=1,
        vms_running=True,
        connections=connections,
        objective=objective,
        time_value_usd_per_h=HOUR_USD,
        margin=0,
        risk="neutral",
    )
    caps = rate_gbps.max(axis=1), rate_gbps.max(axis=0)
    paths = [(0, 1), *((0, relay, 1) for relay in range(2, n))]

    def limits(path: tuple[int, ...]) -> tuple[float, float, float, int]:
        """One connection's rate, the most that the path carries, its fee, and its relays."""
        links, relays = list(pairwise(path)), path[1:-1]
        most = min(min(rate_gbps[link], connections * flow_gbps[link]) for link in links)
        most = min([most, *(min(caps[0][relay], caps[1][relay]) for relay in relays)])
        return min(flow_gbps[k] for k in links), most, sum(fees[k] for k in links), len(relays)

    best = np.inf
    for count in (1, 2, 3):
        for chosen in combinations([*map(limits, paths)], count):
            vm_usd = VM_USD * (2 + sum(relays for *_, relays in chosen))
            for divided in divisions(connections, count):
                gbps = [min(k * of[0], of[1]) for k, of in zip(divided, chosen, strict=True)]
                rate = min(sum(gbps), caps[0][0], caps[1][1])
                if min(gbps) >= 0.05 * rate:
                    hours = 8 * GB / rate / 3600
                    fee = sum(g * of[2] for g, of in zip(gbps, chosen, strict=True)) / sum(gbps)
                    value = GB * fee + (vm_usd + HOUR_USD) * hours
                    best = min(best, hours if objective == "time" else value)
    hours = 8 * GB / plan.throughput_gbps / 3600
    reached = hours if objective == "time" else plan.cost_usd.total + HOUR_USD * hours
    assert reached <= best * (1 + SPLIT_GAIN)
