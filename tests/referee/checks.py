"""Whether an answer of relayd holds by the rows of the model, whatever its optimum is."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.referee.networks import Network
from tests.referee.transfer import ROUND_TRIPS, Question, paths_of, rows_of

# Cases of the gate and of a thorough run, in relation to what each test states.
SCALE = float(os.environ.get("REFEREE_SCALE", "1"))
EXACT = 1e-6


def seeds(count: int, first: int = 0) -> pytest.MarkDecorator:
    """Parametrize a test by seeds: so many in the gate, and nine times as many when thorough."""
    gate = max(1, round(count * SCALE))
    chosen: list[Any] = list(range(first, first + gate))
    chosen += [
        pytest.param(seed, marks=pytest.mark.thorough)
        for seed in range(first + gate, first + 10 * gate)
    ]
    return pytest.mark.parametrize("seed", chosen)


def numbers(net: Network, regions: tuple[str, ...]) -> tuple[int, ...]:
    """Return regions of a path as numbers."""
    return tuple(net.regions.index(name) for name in regions)


def check_plan(q: Question, plan: Any) -> None:
    """Hold a plan of one transfer to every row, and its figures to the formulas."""
    net = q.net
    vms = {net.regions.index(name): count for name, count in plan.vms.items()}
    assert all(1 <= count <= q.vms for count in vms.values()), plan.vms
    known = {path.regions: path for path in paths_of(q)}
    paths = [known[numbers(net, p.regions)] for p in plan.paths]
    rates = [p.throughput_gbps for p in plan.paths]
    rate = plan.throughput_gbps
    assert sum(rates) == pytest.approx(rate, rel=1e-4)
    for row, region, limit in rows_of(q, paths):
        load = sum(c * x for c, x in zip(row, rates, strict=True))
        assert load <= limit * vms[region] * (1 + EXACT), (
            net.regions[region],
            load,
            limit,
            plan.vms,
        )
    opened = 0
    for path, part in zip(paths, plan.paths, strict=True):
        assert part.throughput_gbps <= part.connections * path.one * (1 + EXACT), part
        opened += part.connections
        for relay in path.regions[1:-1]:
            assert part.connections <= q.connections * vms[relay], part
    assert opened <= q.connections * vms[q.src], plan.paths
    sending = 8 * q.volume / rate
    ramp = ROUND_TRIPS * max(path.rtt for path in paths)
    assert plan.duration_s == pytest.approx(q.start + sending + ramp, rel=EXACT)
    fees = sum(x / rate * p.fee for x, p in zip(rates, paths, strict=True)) * q.volume
    assert plan.cost_usd.egress == pytest.approx(fees, rel=1e-5, abs=1e-9)
    hourly = sum(net.hourly[region] * count for region, count in vms.items())
    assert plan.cost_usd.vm == pytest.approx(hourly * plan.duration_s / 3600, rel=EXACT)
