"""Shuffles against linear programs; relays need no margin (``margin=0``, ``risk="bold"``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relayd
from tests.referee.checks import EXACT, numbers, seeds
from tests.referee.flows import Pair, fee_of, links_of, route_all, routes_of, rows_of_routes, rtt_of
from tests.referee.networks import Network, random_network
from tests.referee.transfer import ROUND_TRIPS, Question, quickest, quickest_as_promised

PROVEN = 1e-3  # "to within a proven 0.1 %"
CHEAPER = 1e-3  # "within 0.1 % of that, a cheap routing is taken"
REFUSALS = (relayd.InfeasibleError, relayd.DataError)


def _case(seed: int) -> tuple[Network, dict[Pair, float], int, float, bool]:
    rng = np.random.default_rng([seed, 5])
    net = random_network(seed, most=6)
    ends = [i for i in range(net.size) if i not in net.avoid]
    pairs = [(i, j) for i in ends for j in ends if i != j]
    count = int(rng.integers(1, min(len(pairs), 8) + 1))
    chosen = [pairs[k] for k in rng.permutation(len(pairs))[:count]]
    size = float(rng.choice([0.1, 10.0, 100.0, 1e4, 1e6]))
    demands = {
        pair: float(np.round(size * min(rng.pareto(1.2), 100.0) + size * 0.01, 6))
        for pair in chosen
    }
    start = 0.0 if rng.random() < 0.3 else 60.0
    return net, demands, int(rng.choice([1, 1, 2])), start, bool(rng.random() < 0.75)


def _asked(
    net: Network, demands: dict[Pair, float], vms: int, start: float, relays: bool, **more: Any
) -> Any:
    named = {(net.regions[i], net.regions[j]): gb for (i, j), gb in demands.items()}
    return net.wan.shuffle(
        named,
        vms=vms,
        vms_running=start == 0,
        relays="any" if relays else "none",
        margin=0,
        risk="bold",
        time_value_usd_per_h="inf",  # as many VMs as are stated
        avoid=net.avoided,
        **more,
    )


def _longest(net: Network, demands: dict[Pair, float], relays: bool) -> float:
    """Return what slow start takes at most, in seconds."""
    routes = [r for d in demands for r in routes_of(net, d, relays=relays)]
    return ROUND_TRIPS * max(rtt_of(net, r) for r in routes)


def _check(net: Network, demands: dict[Pair, float], vms: int, start: float, plan: Any) -> None:
    """Hold all rates together to the rows, and volumes, times and fees to the formulas."""
    routes, rates, fees = [], [], 0.0
    for pair in plan.pairs:
        ends = numbers(net, (pair.src, pair.dst))
        assert pair.volume_gb == pytest.approx(demands[ends[0], ends[1]])
        used = [numbers(net, path.regions) for path in pair.paths]
        parts = [path.throughput_gbps for path in pair.paths]
        assert sum(parts) == pytest.approx(pair.throughput_gbps, rel=1e-5)
        for route, path in zip(used, pair.paths, strict=True):
            one = min(float(net.one[link]) for link in links_of(route))
            assert path.throughput_gbps <= path.connections * one * (1 + 1e-5)
            fees += pair.volume_gb * path.share * fee_of(net, route)
        takes = 8 * pair.volume_gb / pair.throughput_gbps
        ramp = ROUND_TRIPS * max(rtt_of(net, route) for route in used)
        assert pair.duration_s == pytest.approx(start + takes + ramp, rel=1e-4)
        routes += used
        rates += parts
    assert rows_of_routes(net, routes, vms, 1024).hold(np.array(rates), 1e-5)
    # "until the last pair ends"; relayd adds the longest slow start to the longest sending.
    assert plan.duration_s >= max(p.duration_s for p in plan.pairs) * (1 - EXACT)
    sending = max(8 * p.volume_gb / p.throughput_gbps for p in plan.pairs)
    longest = ROUND_TRIPS * max(rtt_of(net, route) for route in routes)
    assert plan.duration_s <= (start + sending + longest) * (1 + EXACT)
    assert plan.cost_usd.egress == pytest.approx(fees, rel=1e-4, abs=1e-6)


@seeds(120)
def test_least_time(seed: int) -> None:
    net, demands, vms, start, relays = _case(seed)
    best = route_all(net, demands, vms=vms, connections=1024, relays=relays)
    if best is None:
        with pytest.raises(REFUSALS):
            _asked(net, demands, vms, start, relays)
        return
    plan = _asked(net, demands, vms, start, relays)
    _check(net, demands, vms, start, plan)
    ramp = ROUND_TRIPS * max(rtt_of(net, route) for _, route in best.volumes)
    assert plan.bound_s <= (start + best.seconds + ramp) * (1 + EXACT)
    assert plan.bound_usd <= best.usd + plan.cost_usd.vm * (1 + EXACT) + 1e-6
    assert plan.duration_s >= (start + best.seconds) * (1 - EXACT)
    longest = _longest(net, demands, relays)
    assert plan.duration_s <= (start + best.seconds + longest) * (1 + PROVEN + CHEAPER)
    direct = route_all(net, demands, vms=vms, connections=1024, relays=False)
    if direct is not None:
        ramp = _longest(net, demands, relays=False)
        found = plan.direct.duration_s
        assert found >= (start + direct.seconds) * (1 - EXACT)
        assert found <= start + direct.seconds * (1 + PROVEN + CHEAPER) + ramp
        assert plan.duration_s <= found * (1 + CHEAPER)


@seeds(60, 100_000)
def test_least_cost_before_a_deadline(seed: int) -> None:
    net, demands, vms, start, relays = _case(seed)
    fastest = route_all(net, demands, vms=vms, connections=1024, relays=relays)
    if fastest is None:
        return
    factor = (0.5, 0.97, 1.03, 1.5, 4.0)[seed % 5]
    longest = _longest(net, demands, relays)
    deadline = start + fastest.seconds * factor + longest
    sure = deadline * 0.99 - start - longest
    best = route_all(net, demands, vms=vms, connections=1024, relays=relays, within=max(sure, 0.0))
    try:
        plan = _asked(net, demands, vms, start, relays, objective="cost", deadline_s=deadline)
    except relayd.InfeasibleError:
        assert best is None
        return
    _check(net, demands, vms, start, plan)
    assert plan.duration_s <= deadline * (1 + EXACT)
    if best is not None:
        # Least fees by the docs, but VMs count as well: either will do.
        regions = {region for _, route in best.volumes for region in route}
        hourly = vms * sum(float(net.hourly[region]) for region in regions)
        most = best.usd + hourly * deadline / 3600
        cheap = plan.cost_usd.egress <= best.usd * (1 + PROVEN) + 1e-6
        assert cheap or plan.cost_usd.total <= most * (1 + PROVEN)


@seeds(60, 200_000)
def test_one_transfer_in_every_question(seed: int) -> None:
    """Direct, one transfer takes as long as a plan, a shuffle, a broadcast and a schedule say."""
    rng = np.random.default_rng([seed, 6])
    net = random_network(seed, most=5)
    if not net.link(0, 1):
        return
    q = Question(
        net, 0, 1, float(rng.choice([0.1, 10.0, 1e3, 1e6])), vms=int(rng.choice([1, 2, 4]))
    )
    q = Question(net, 0, 1, q.volume, q.vms, int(rng.choice([4, 16, 64])), relays="none")
    best = quickest(q)
    assert best is not None
    if best.duration > 3e9:
        return  # beyond the latest deadline of a schedule
    src, dst = net.regions[:2]
    shared: dict[str, Any] = {"vms": q.vms, "connections": q.connections, "relays": "none"}
    wan, timed = net.wan, {"objective": "time", "time_value_usd_per_h": "inf", **shared}
    row = {
        "id": "x",
        "src": src,
        "dst": dst,
        "volume": q.volume,
        "deadline": min(best.duration * 10, 3e9),
    }
    times = {
        "plan": wan.plan(src, dst, volume_gb=q.volume, **timed).duration_s,
        "shuffle": wan.shuffle({(src, dst): q.volume}, **timed).duration_s,
        "broadcast": wan.broadcast(src, [dst], volume_gb=q.volume, **timed).duration_s,
        "schedule": wan.schedule([row], **shared).transfers[0].end_s,
    }
    assert times == pytest.approx(dict.fromkeys(times, best.duration), rel=1e-3)


@seeds(60, 300_000)
def test_one_relayed_transfer_in_every_question(seed: int) -> None:
    """Over relays, questions agree where volumes are large, but for what a plan leaves out."""
    net = random_network(seed, most=5, stated_flow=False)
    q = Question(net, 0, 1, 1e6, vms=1)
    best = quickest(q)
    if best is None:
        return
    src, dst = net.regions[:2]
    shared: dict[str, Any] = {"vms": 1, "connections": 64, "avoid": net.avoided}
    sure: dict[str, Any] = {
        "objective": "time",
        "time_value_usd_per_h": "inf",
        "margin": 0,
        "risk": "bold",
        **shared,
    }
    row = {"id": "x", "src": src, "dst": dst, "volume": 1e6, "deadline": best.duration * 1.01}
    times = {
        "plan": net.wan.plan(src, dst, volume_gb=1e6, **sure).duration_s,
        "shuffle": net.wan.shuffle({(src, dst): 1e6}, **sure).duration_s,
        "broadcast": net.wan.broadcast(src, [dst], volume_gb=1e6, **sure).duration_s,
    }
    promised = quickest_as_promised(q, whole=False)
    assert promised is not None
    assert times["plan"] <= promised.duration * 1.02
    assert times["shuffle"] <= best.duration * (1 + PROVEN + CHEAPER)
    assert times["broadcast"] <= best.duration * (1 + PROVEN + CHEAPER)
    # A broadcast may forward over several relays in a row, and so be faster.
    assert min(times["plan"], times["shuffle"]) >= best.duration * (1 - EXACT)
    assert net.wan.schedule([row], **shared).admitted == 1
    late = {**row, "deadline": best.duration * 0.99}
    assert net.wan.schedule([late], explain=0, **shared).refused == 1
