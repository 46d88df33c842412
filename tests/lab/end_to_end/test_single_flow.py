"""One flow through relays that never ran before: predicted from direct tests, then measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from itertools import permutations
from statistics import median

import pytest

from benchmarks.lab_measuring import Transfer, echo_rtts_ms, goodputs_mbps, running
from planner.model.network import Snapshot
from planner.model.pricing import FlatPrices
from planner.model.units import MBPS_PER_GBPS
from planner.transfer.decision import decide
from planner.transfer.request import TransferRequest
from probes.estimation import Estimator
from probes.lab.controller import Lab
from probes.lab.topology import Site, Topology, private_address
from probes.samples import Sample, Samples
from tests.lab.quiet import undisturbed
from tests.shared_data import grid_catalogue

pytestmark = pytest.mark.alone

SECONDS = 5.0
OMITTED_S = 1
"""Longer than slow start takes."""
WINDOWS_KB = (50, 80, 120, 40, 65)
RTT_MS = (
    (0, 210, 90, 130, 60),
    (210, 0, 120, 70, 150),
    (90, 120, 0, 50, 180),
    (130, 70, 50, 0, 230),
    (60, 150, 180, 230, 0),
)
CAP_MBPS = 200
AT_S = 1_700_000_000.0
# Site 0 and 1 are far apart, and so are 3 and 4; all others relay between them, both ways.
ENDS = ((0, 1), (1, 0), (3, 4), (4, 3))
# Direct tests: of the ends, and into the site that is no end; of no relay's links but two.
TESTED = [*ENDS, (0, 2), (4, 2)]
PATHS = [(a, relay, b) for a, b in ENDS for relay in range(5) if relay not in {a, b}]


@pytest.fixture(scope="module")
def lab(lab_of: Callable[..., Lab]) -> Lab:
    sites = tuple(
        Site(f"lab:{i}", CAP_MBPS, CAP_MBPS, kb * 1000) for i, kb in enumerate(WINDOWS_KB)
    )
    matrix = tuple(tuple(map(float, row)) for row in RTT_MS)
    return lab_of(Topology(sites, matrix, profile="single-flow"), "single-flow")


def relayed_mbps(lab: Lab) -> list[float]:
    """Tests of one flow over all paths at once, each through a socat of its own."""
    with ExitStack() as stack:
        clients = []
        for number, (src, relay, dst) in enumerate(PATHS):
            port = 5301 + number
            serve = ["iperf3", "-s", "-1", "-p", str(port), "--forceflush"]
            stack.enter_context(running(lab, f"lab:{dst}", serve, until="listening"))
            target = f"TCP:{private_address(dst)}:{port}"
            split = ["socat", "-d", "-d", f"TCP-LISTEN:{port + 100},fork,reuseaddr", target]
            stack.enter_context(running(lab, f"lab:{relay}", split, until="listening"))
            ask = ["iperf3", "-c", private_address(relay), "-p", str(port + 100), "-J"]
            clients.append((f"lab:{src}", [*ask, "-t", str(SECONDS), "-O", str(OMITTED_S)]))
        reports = [stack.enter_context(running(lab, *client)) for client in clients]
        texts = [client.communicate(timeout=SECONDS + OMITTED_S + 60)[0] for client in reports]
    return [json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e6 for text in texts]


def host(number: int) -> str:
    return f"lab:{number}"


def test_relays_are_told_from_direct_tests_of_other_links(lab: Lab) -> None:
    pairs = list(permutations(range(len(WINDOWS_KB)), 2))
    rtts = {pair: median(times) for pair, times in echo_rtts_ms(lab, pairs, rounds=3).items()}
    transfers = [Transfer(a, b) for a, b in TESTED]
    direct = undisturbed(lab, lambda: goodputs_mbps(lab, transfers, SECONDS, OMITTED_S))
    achieved = undisturbed(lab, lambda: relayed_mbps(lab))
    tests = {
        (a, b): Sample(host(a), host(b), "per_flow_mbps", mbps, AT_S, "iperf3", 1)
        for (a, b), mbps in zip(TESTED, direct, strict=True)
    }
    pings = [Sample(host(a), host(b), "rtt_ms", ms, AT_S, "ping") for (a, b), ms in rtts.items()]
    errors, kept, right = [], 0.0, 0
    for (src, relay, dst), rate in zip(PATHS, achieved, strict=True):
        # Of the relay's links only the round-trip times are known.
        known = [test for pair, test in tests.items() if pair not in {(src, relay), (relay, dst)}]
        estimator = Estimator(Samples.of([*pings, *known]), grid_catalogue())
        request = TransferRequest(
            host(src),
            host(dst),
            volume_gb=1000.0,
            objective="time",
            connections=1,
            vms=1,
            relays=host(relay),
            margin=0.0,
        )
        network = estimator.network(Snapshot("lab", "", ""))
        decision = decide(request, network, FlatPrices(tuple(network.sites)))
        assert decision.best_relay
        errors.append(abs(decision.best_relay.allocation.rate_gbps * MBPS_PER_GBPS / rate - 1))
        alone = tests[src, dst].value
        got = rate if decision.chosen.relays else alone
        right += got == max(rate, alone)
        kept += got / max(rate, alone)
    print(f"errors {sorted(errors)}, {right} right, {kept:.3f} kept")
    assert len(PATHS) >= 12
    assert median(errors) <= 0.05
    assert right >= 0.93 * len(PATHS)
    assert kept >= 0.99 * len(PATHS)
