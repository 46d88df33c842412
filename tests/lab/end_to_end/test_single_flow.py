"""One flow through relays that never ran before: predicted from direct tests, then measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from itertools import permutations
from statistics import median

import pytest

from benchmarks.lab_measuring import Transfer, echo_rtts_ms, goodputs_mbps, running
from planner.single_flow.flow_tests import FlowEvidence
from planner.single_flow.prediction import FlowTest, predict
from probes.lab.controller import Lab
from probes.lab.topology import Site, Topology, private_address
from tests.lab.quiet import undisturbed

pytestmark = pytest.mark.alone

SECONDS = 5.0
WINDOWS_KB = (50, 80, 120, 40, 65)
RTT_MS = (
    (0, 210, 90, 130, 60),
    (210, 0, 120, 70, 150),
    (90, 120, 0, 50, 180),
    (130, 70, 50, 0, 230),
    (60, 150, 180, 230, 0),
)
CAP_MBPS = 200
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
    """Cold tests of one flow over all paths at once, each through a socat of its own."""
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
            clients.append((f"lab:{src}", [*ask, "-t", str(SECONDS)]))
        reports = [stack.enter_context(running(lab, *client)) for client in clients]
        texts = [client.communicate(timeout=SECONDS + 60)[0] for client in reports]
    return [json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e6 for text in texts]


def test_relays_are_told_from_direct_tests_of_other_links(lab: Lab) -> None:
    pairs = list(permutations(range(len(WINDOWS_KB)), 2))
    rtts = {pair: median(times) for pair, times in echo_rtts_ms(lab, pairs, rounds=3).items()}
    transfers = [Transfer(a, b) for a, b in TESTED]
    direct = undisturbed(lab, lambda: goodputs_mbps(lab, transfers, SECONDS))
    achieved = undisturbed(lab, lambda: relayed_mbps(lab))
    tests = {
        (a, b): FlowTest(str(a), str(b), rate, rtts[a, b], SECONDS)
        for (a, b), rate in zip(TESTED, direct, strict=True)
    }
    times = {(str(a), str(b)): ms for (a, b), ms in rtts.items()}
    errors, kept, right = [], 0.0, 0
    for (src, relay, dst), rate in zip(PATHS, achieved, strict=True):
        # Of the relay's links only the round-trip times are known.
        known = [test for pair, test in tests.items() if pair not in {(src, relay), (relay, dst)}]
        answer = predict(
            FlowEvidence(known, times), str(src), str(dst), relays=[str(relay)], duration_s=SECONDS
        )
        errors.append(abs(answer.relays[0].throughput_mbps / rate - 1))
        alone = tests[src, dst].throughput_mbps
        got = rate if answer.verdict == "relay" else alone
        right += got == max(rate, alone)
        kept += got / max(rate, alone)
    print(f"errors {sorted(errors)}, {right} right, {kept:.3f} kept")
    assert len(PATHS) >= 12
    assert median(errors) <= 0.05
    assert right >= 0.93 * len(PATHS)
    assert kept >= 0.99 * len(PATHS)
