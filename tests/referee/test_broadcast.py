"""Broadcasts against a program over all trees of up to five regions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relayd
from tests.referee.checks import EXACT, seeds
from tests.referee.networks import VOLUMES_GB, random_network
from tests.referee.trees import fastest, ramp_of, trees_of

SHORT = 0.02  # trees of which each brings little may be left out
REFUSALS = (relayd.InfeasibleError, relayd.DataError)


@seeds(100)
def test_least_time(seed: int) -> None:
    rng = np.random.default_rng([seed, 7])
    net = random_network(seed, most=5)
    ends = [i for i in range(net.size) if i not in net.avoid]
    count = int(rng.integers(1, len(ends)))
    src, *rest = (int(i) for i in rng.permutation(ends)[: count + 1])
    destinations = tuple(rest)
    volume, vms = float(rng.choice(VOLUMES_GB)), int(rng.choice([1, 1, 2]))
    relays: Any = str(rng.choice(["any", "any", "ends", "none"]))
    trees = list(trees_of(net, src, destinations, relays))
    best = fastest(net, trees, volume, vms, 1024)

    def asked() -> relayd.BroadcastPlan:
        return net.wan.broadcast(
            net.regions[src],
            [net.regions[i] for i in destinations],
            volume_gb=volume,
            vms=vms,
            vms_running=True,
            relays=relays,
            objective="time",
            time_value_usd_per_h="inf",
            margin=0,
            risk="bold",
            avoid=net.avoided,
        )

    if best is None:
        with pytest.raises(REFUSALS):
            asked()
        return
    plan = asked()
    alone = [
        found.seconds + found.ramp
        for tree in trees
        if (found := fastest(net, [tree], volume, vms, 1024)) is not None
    ]
    least = min(best.seconds + best.ramp, *alone)
    quickest_start = min(ramp_of(net, tree) for tree in trees)
    assert plan.bound_s <= least * (1 + EXACT)
    assert plan.duration_s <= least * (1 + SHORT), plan.gap
    assert plan.duration_s >= (best.seconds + quickest_start) * (1 - EXACT)
    gap = plan.duration_s / least - 1
    assert gap <= plan.gap + 1e-4 or plan.optimum is not None
    # What the trees state is what they take.
    rows: dict[tuple[str, int, int], float] = {}
    for tree in plan.trees:
        for leg in tree.legs:
            i, j = net.regions.index(leg.src), net.regions.index(leg.dst)
            for key in (("sends", i, i), ("receives", j, j), ("path", i, j)):
                rows[key] = rows.get(key, 0.0) + tree.throughput_gbps
    for (kind, i, j), load in rows.items():
        limit = {"sends": net.send[i], "receives": net.receive[j], "path": net.sent(i, j, 64)}[kind]
        if kind == "path" and net.ends_in_path(i, j):
            limit = min(limit, net.aggregate[i, j])
        assert load <= limit * vms * (1 + 1e-5), (kind, i, j)
    longest = max(
        ramp_of(net, tuple((net.regions.index(x.src), net.regions.index(x.dst)) for x in t.legs))
        for t in plan.trees
    )
    sending = 8 * volume / plan.throughput_gbps
    assert plan.duration_s == pytest.approx(sending + longest, rel=1e-4)
