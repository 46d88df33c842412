"""The network as configured: distances, windows and caps, measured by ping and iperf3."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import fmean, median, pstdev
from typing import Any

import pytest

from benchmarks.lab_measuring import (
    Transfer,
    echo_rtts_ms,
    goodputs_mbps,
    iperf3_reports,
    rates_mbps,
)
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE
from tests.lab.quiet import rtt_error_at_best, undisturbed
from tests.lab.shapes import star

pytestmark = pytest.mark.alone

RTTS_MS = (1, 20, 60, 120, 200, 400)


@pytest.fixture(scope="module")
def lab(lab_of: Callable[..., Lab]) -> Lab:
    return lab_of(star(RTTS_MS, cap_mbps=80, window_bytes=300_000))


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def rtt_errors_ms(lab: Lab, pairs: list[tuple[int, int]], rounds: int) -> list[float]:
    topology = lab.topology()
    found = echo_rtts_ms(lab, pairs, rounds, interval_s=0.004)
    assert all(len(values) == rounds for values in found.values())
    return [abs(v - topology.rtt_ms[i][j]) for (i, j), values in found.items() for v in values]


def test_round_trip_times_are_as_configured(lab: Lab) -> None:
    pairs = [(i, j) for i in range(len(RTTS_MS) + 1) for j in range(len(RTTS_MS) + 1) if i != j]
    assert rtt_error_at_best(lab, lambda: p95(rtt_errors_ms(lab, pairs, 8)), 0.3) <= 0.3


def test_round_trip_times_hold_under_load(lab: Lab) -> None:
    # Measured between hosts that the load leaves alone: their own queues are not the lab's.
    load = [Transfer(1, 2, 4), Transfer(2, 3, 4), Transfer(3, 1, 4)]

    def measure() -> float:
        with ThreadPoolExecutor() as pool:
            rates = pool.submit(goodputs_mbps, lab, load, 4)
            errors = rtt_errors_ms(lab, [(0, 4), (4, 5), (5, 0), (6, 4)], 100)
            assert sum(rates.result()) > 150
        return p95(errors)

    assert rtt_error_at_best(lab, measure, 0.6) <= 0.6


def test_one_flow_carries_window_over_rtt_until_a_cap(lab: Lab) -> None:
    topology = lab.topology()
    pairs, got = [], []
    for first, omitted_s in ((0, 2), (1, 4)):  # no host is in two transfers at once
        some = [(i, i + 1) for i in range(first, len(RTTS_MS), 2)]
        transfers = [Transfer(*pair) for pair in some]
        got += undisturbed(lab, partial(goodputs_mbps, lab, transfers, 4, omitted_s))
        pairs += some
    expected = [topology.expected_flow_mbps(*pair) for pair in pairs]
    errors = [abs(g / e - 1) for g, e in zip(got, expected, strict=True)]
    assert max(got) / min(got) > 10  # one flow sees a very uneven network
    assert median(errors) <= 0.02
    assert max(errors) <= 0.05


def test_many_flows_reach_the_same_cap_everywhere(lab: Lab) -> None:
    cap = 80 * GOODPUT_SHARE
    # 1, 60 and 200 ms apart, and no host in two transfers.
    transfers = [Transfer(0, 1, 32), Transfer(2, 3, 32), Transfer(4, 5, 32)]
    got = undisturbed(lab, partial(goodputs_mbps, lab, transfers, 4, 3))
    assert all(abs(rate / cap - 1) <= 0.02 for rate in got)
    assert pstdev(got) / fmean(got) < 0.02


@pytest.mark.parametrize("inwards", [False, True])
def test_a_vm_is_held_to_its_cap_over_all_peers_together(lab: Lab, inwards: bool) -> None:
    peers = (1, 2, 3, 4)
    transfers = [Transfer(j, 0, 8) if inwards else Transfer(0, j, 8) for j in peers]

    def measure() -> Any:
        # iperf3 clients begin and end at different times: the middle is when all of them send.
        with ThreadPoolExecutor() as pool:
            reports = pool.submit(iperf3_reports, lab, transfers, 6)
            time.sleep(3)
            rates = rates_mbps(lab, 2)
            reports.result()
        return rates

    rates = undisturbed(lab, measure)
    assert abs(rates[0][inwards] / 80 - 1) <= 0.02
    shares = [rates[j][not inwards] for j in peers]
    assert min(shares) > 1  # no flow is shut out
