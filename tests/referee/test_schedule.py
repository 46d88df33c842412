"""Schedules against a program over slots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import relayd
from tests.referee.checks import EXACT, numbers, seeds
from tests.referee.flows import fee_of, rows_of_routes, rtt_of
from tests.referee.networks import random_network
from tests.referee.schedule import Setting, Transfer, least_fees, most_admitted, routes_in
from tests.referee.transfer import ROUND_TRIPS, Question, quickest

SPARE = 0.01


def _setting(seed: int) -> Setting:
    rng = np.random.default_rng([seed, 3])
    net = random_network(seed, most=6)
    return Setting(
        net,
        vms=int(rng.choice([1, 1, 2])),
        connections=int(rng.choice([64, 1024])),
        vm_start=0.0 if rng.random() < 0.3 else 60.0,
        relays=bool(rng.random() < 0.8),
    )


def _transfers(seed: int, setting: Setting, count: int) -> list[Transfer]:
    """Return transfers with deadlines that a few of them can meet."""
    rng = np.random.default_rng([seed, 4])
    allowed = [i for i in range(setting.net.size) if i not in setting.net.avoid]
    made = []
    for number in range(count):
        src, dst = (int(i) for i in rng.choice(allowed, 2, replace=False))
        volume = float(rng.choice([1.0, 100.0, 1000.0, 2e4]))
        start = float(rng.choice([0.0, 0.0, 900.0, 3600.0]))
        q = Question(setting.net, src, dst, volume, setting.vms, setting.connections)
        alone = quickest(replace(q, relays="any" if setting.relays else "none", start=0.0))
        takes = alone.duration if alone else 600.0
        room = float(rng.choice([0.9, 1.05, 1.5, 2.5]))
        deadline = max(start, setting.vm_start) + takes * room
        made.append(
            Transfer(f"t{number}", src, dst, volume, start, deadline, int(rng.integers(0, 2)))
        )
    return made


def _asked(setting: Setting, transfers: list[Transfer]) -> Any:
    net = setting.net
    rows = [
        {
            "id": t.name,
            "src": net.regions[t.src],
            "dst": net.regions[t.dst],
            "volume": t.volume,
            "start": t.start,
            "deadline": t.deadline,
            "priority": t.priority,
        }
        for t in transfers
    ]
    return net.wan.schedule(
        rows,
        vms=setting.vms,
        connections=setting.connections,
        vms_running=setting.vm_start == 0,
        relays="any" if setting.relays else "none",
        avoid=net.avoided,
        explain=0,
    )


def _tightened(transfers: list[Transfer]) -> list[Transfer]:
    """Return transfers of one percent more, with deadlines one percent sooner."""
    return [
        replace(
            t, volume=t.volume * (1 + SPARE), deadline=t.deadline - SPARE * (t.deadline - t.start)
        )
        for t in transfers
    ]


def _check(setting: Setting, transfers: list[Transfer], plan: Any) -> None:
    """Hold rates at every moment to the rows, and what is admitted to its volume and window."""
    net = setting.net
    running: list[tuple[float, float, tuple[int, ...], float]] = []
    for t, answer in zip(transfers, plan.transfers, strict=True):
        if answer.verdict != "admitted":
            assert not answer.periods
            continue
        moved = fees = 0.0
        for period in answer.periods:
            seconds = period.end_s - period.start_s
            for path in period.paths:
                route = numbers(net, path.regions)
                running.append((period.start_s, period.end_s, route, path.throughput_gbps))
                moved += path.throughput_gbps * seconds / 8
                fees += path.throughput_gbps * seconds / 8 * fee_of(net, route)
                ready = max(t.start, setting.vm_start) + ROUND_TRIPS * rtt_of(net, route)
                assert period.start_s >= ready - 1e-6, (t, path)
            assert period.end_s <= t.deadline * (1 + 1e-9) + 1e-6
        assert moved == pytest.approx(t.volume, rel=1e-5)
        assert answer.egress_usd == pytest.approx(fees, rel=1e-4, abs=1e-6)
    for moment in sorted({start for start, *_ in running}):
        now = [(r, x) for low, high, r, x in running if low <= moment < high]
        rows = rows_of_routes(net, [r for r, _ in now], setting.vms, setting.connections)
        assert rows.hold(np.array([x for _, x in now]), 1e-5), moment


@seeds(100)
def test_one_transfer_and_its_deadline(seed: int) -> None:
    """One transfer is admitted where the program finds it time, and refused where it does not."""
    setting = _setting(seed)
    (t,) = _transfers(seed, setting, 1)
    try:
        plan = _asked(setting, [t])
    except relayd.DataError:
        assert not routes_in(setting, t, careful=False)
        return
    _check(setting, [t], plan)
    careful = least_fees(setting, _tightened([t]), careful=True)
    if careful is not None:
        assert plan.admitted == 1, (t, careful)
        assert plan.cost_usd.egress <= careful * (1 + EXACT) + 1e-6
        assert plan.bound_usd <= careful * (1 + EXACT) + 1e-6
    if least_fees(setting, [t], careful=False) is None:
        assert plan.refused == 1, t


@seeds(60, 100_000)
def test_several_transfers(seed: int) -> None:
    """As many are admitted of each priority as the best choice admits, at the least fees."""
    setting = _setting(seed)
    transfers = _transfers(seed, setting, 2 + seed % 3)
    try:
        plan = _asked(setting, transfers)
    except relayd.DataError:
        assert not any(routes_in(setting, t, careful=False) for t in transfers)
        return
    _check(setting, transfers, plan)
    priorities = sorted({t.priority for t in transfers}, reverse=True)
    admitted = [
        t for t, a in zip(transfers, plan.transfers, strict=True) if a.verdict == "admitted"
    ]
    counts = tuple(sum(t.priority == p for t in admitted) for p in priorities)
    assert counts >= most_admitted(setting, _tightened(transfers), careful=True)
    assert counts <= most_admitted(setting, transfers, careful=False)
    fees = least_fees(setting, _tightened(admitted), careful=True)
    if fees is not None:
        assert plan.cost_usd.egress <= fees * (1 + EXACT) + 1e-6
        assert plan.bound_usd <= fees * (1 + EXACT) + 1e-6
