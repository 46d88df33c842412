"""A shuffle among six sites by real iperf3: planned rates and relays against all at once."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from planner.model.network import Network
from planner.model.pricing import FlatPrices
from planner.shuffle.plan import ShufflePlan
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from probes.lab.controller import Lab
from probes.lab.measuring import lateness_of, running
from probes.lab.topology import Site, Topology, private_address

pytestmark = pytest.mark.alone

CAP_MBPS, WINDOW_BYTES, CONNECTIONS = 20, 30_408, 15
# Two continents of two sites each, far apart; the last two lie between them and have time.
RTT_MS = np.array(
    [
        [0, 30, 240, 260, 110, 120],
        [30, 0, 250, 240, 120, 115],
        [240, 250, 0, 40, 115, 125],
        [260, 240, 40, 0, 130, 120],
        [110, 120, 115, 130, 0, 60],
        [120, 115, 125, 120, 60, 0],
    ]
)
VOLUME_MB = np.array(
    [
        [0, 4, 24, 14, 2, 2],
        [4, 0, 10, 24, 2, 2],
        [10, 4, 0, 2, 2, 2],
        [4, 10, 4, 0, 2, 2],
        [2, 2, 2, 2, 0, 2],
        [2, 2, 2, 2, 2, 0],
    ]
)
NAMES = [f"lab:{i}" for i in range(len(RTT_MS))]
FIRST_PORT = 5300
# 3 % of the least distance over which much goes.
LATE_MS = 3.0
# Acknowledgements of what a site receives share its egress cap: 52 bytes for two segments.
FOR_DATA = 0.97


@dataclass(frozen=True)
class Stream:
    """One iperf3: where it goes, how much, over how many connections, at which rate."""

    regions: tuple[str, ...]
    volume_bytes: int
    flows: int
    mbps: float | None = None


@pytest.fixture(scope="module")
def lab(lab_of: Callable[..., Lab]) -> Lab:
    sites = tuple(Site(name, CAP_MBPS, CAP_MBPS, WINDOW_BYTES) for name in NAMES)
    matrix = tuple(tuple(row) for row in RTT_MS.astype(float).tolist())
    return lab_of(Topology(sites, matrix, profile="shuffle"), "shuffle")


def planned(topology: Topology) -> ShufflePlan:
    """Plan with the rates that the lab is made to have."""
    n = len(NAMES)
    flow, pair = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                flow[i, j] = topology.expected_flow_mbps(i, j)
                pair[i, j] = FOR_DATA * topology.expected_aggregate_mbps(i, j) / 1000
    demands = {
        (NAMES[i], NAMES[j]): VOLUME_MB[i, j] / 1000
        for i, j in zip(*np.nonzero(VOLUME_MB), strict=True)
    }
    network = Network.from_matrices(NAMES, pair, rtt_ms=RTT_MS, per_flow_mbps=flow)
    request = ShuffleRequest(demands, connections=CONNECTIONS)
    return recommend_shuffle(request, network, FlatPrices(NAMES, 0.02, 1.0))


def run_s(lab: Lab, streams: Sequence[Stream], within_s: float = 90.0) -> float:
    """Run all streams at once; return when the last has arrived, setting up included.

    Without rates, when the last was sent, which is a little sooner; infinity if that is not within
    so many seconds.
    """
    forwards: dict[str, dict[int, str]] = defaultdict(dict)
    for port, stream in enumerate(streams, FIRST_PORT):
        if len(stream.regions) == 3:
            forwards[stream.regions[1]][port] = address(stream.regions[2])
    with ExitStack() as stack:
        for relay, targets in forwards.items():
            stack.enter_context(relaying(lab, relay, targets))
        for port, stream in enumerate(streams, FIRST_PORT):
            serve = ["iperf3", "-s", "-1", "-p", str(port), "--forceflush"]
            stack.enter_context(running(lab, stream.regions[-1], serve, until="listening"))
        begun_s = time.monotonic()
        clients = []
        for port, stream in enumerate(streams, FIRST_PORT):
            ask = ["iperf3", "-c", address(stream.regions[1]), "-p", str(port), "-J"]
            ask += ["-n", str(stream.volume_bytes), "-P", str(stream.flows), "-l", "4K"]
            if stream.mbps is not None:
                ask += ["-b", f"{stream.mbps / stream.flows * 1e6:.0f}"]
                # Otherwise every one of many iperf3 would wake up a thousand times a second.
                ask += ["--pacing-timer", "20000"]
            clients.append(stack.enter_context(running(lab, stream.regions[0], ask)))
        reports = []
        for client in clients:
            left_s = max(begun_s + within_s - time.monotonic(), 0.01)
            try:
                reports.append(json.loads(client.communicate(timeout=left_s)[0]))
            except subprocess.TimeoutExpired:
                return math.inf
        took_s = time.monotonic() - begun_s
    still_s = 0.0
    for stream, report in zip(streams, reports, strict=True):
        assert "error" not in report, report["error"]
        # iperf3 ends when all is handed to TCP: what had not arrived by then needs its time too.
        missing = stream.volume_bytes - report["end"]["sum_received"]["bytes"]
        assert missing <= 0.2 * stream.volume_bytes + stream.flows * WINDOW_BYTES, (stream, missing)
        if stream.mbps is not None:
            still_s = max(still_s, 8e-6 * missing / stream.mbps)
    return took_s + still_s


@contextmanager
def relaying(lab: Lab, relay: str, targets: Mapping[int, str]) -> Iterator[None]:
    """Pass on what comes in on some ports, by haproxy, which splits TCP."""
    text = "global\n  maxconn 2000\ndefaults\n  mode tcp\n"
    text += "".join(f"  timeout {what} 90s\n" for what in ("connect", "client", "server"))
    for port, target in targets.items():
        text += f"listen p{port}\n  bind :{port}\n  server s {target}:{port}\n"
    script = f"cat > /tmp/shuffle.cfg <<'E'\n{text}E\n"
    # It has bound its ports when the first process returns.
    script += "haproxy -f /tmp/shuffle.cfg -D -p /tmp/shuffle.pid >/dev/null 2>&1"
    script += " && echo started && sleep 600"
    with running(lab, relay, ["sh", "-c", script], until="started"):
        try:
            yield
        finally:
            end = lab.command(relay, ["sh", "-c", "kill $(cat /tmp/shuffle.pid)"])
            subprocess.run(end, check=True)


def address(region: str) -> str:
    return private_address(NAMES.index(region))


def test_a_planned_shuffle_ends_when_predicted_and_before_all_at_once(lab: Lab) -> None:
    plan = planned(lab.topology())
    assert plan.verdict == "relayed"
    # Shares of connections are whole numbers here: one more makes up for rounding, and the rate
    # is kept to by iperf3.
    as_planned = [
        Stream(
            path.regions,
            round(pair.volume_gb * path.share * 1e9),
            path.connections + 1,
            path.throughput_gbps * 1000,
        )
        for pair in plan.pairs
        for path in pair.paths
    ]
    each = CONNECTIONS // (len(NAMES) - 1)
    at_once = [
        Stream((pair.src, pair.dst), round(pair.volume_gb * 1e9), each) for pair in plan.pairs
    ]
    planned_s = in_time(lab, lambda: run_s(lab, as_planned))
    assert abs(planned_s / plan.duration_s - 1) <= 0.10, (planned_s, plan.duration_s)
    # What goes at once, without a plan, is not done a tenth later.
    assert run_s(lab, at_once, within_s=1.1 * planned_s) == math.inf


def in_time(lab: Lab, measure: Callable[[], float], attempts: int = 2) -> float:
    """Measure while the emulator is late by little next to the distances that matter here."""
    for _ in range(attempts):
        with lateness_of(lab) as lateness:
            found = measure()
        if (lateness.p95_ms or 0.0) <= LATE_MS:
            return found
    pytest.skip(f"the machine is too busy: packets were up to {lateness.p95_ms:.1f} ms late")
