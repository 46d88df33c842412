"""Emitted relays and trials, run by three hosts of a lab."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
import pytest

from benchmarks.lab_measuring import running
from planner import FlatPrices, Network, TransferRequest, recommend
from planner.transfer.plan import Plan
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Site, Topology, private_address
from relayd.emitting.formats import emit

pytestmark = pytest.mark.alone

REGIONS = ("lab:source", "lab:relay", "lab:destination")
CAP_MBPS, SLOW_MBPS = 60, 15
RTT_MS = ((0.0, 20.0, 60.0), (20.0, 0.0, 30.0), (60.0, 30.0, 0.0))


@pytest.fixture(scope="module")
def lab(lab_of: Callable[..., Lab]) -> Lab:
    sites = tuple(Site(name, CAP_MBPS, CAP_MBPS, 250_000) for name in REGIONS)
    return lab_of(Topology(sites, RTT_MS, profile="emit"), "emit")


def planned() -> Plan:
    """Split over the relay and a slow direct path, as a network that has one would be."""
    gbps = np.full((3, 3), CAP_MBPS * GOODPUT_SHARE / 1000)
    gbps[0, 2] = SLOW_MBPS / 1000
    network = Network.from_matrices(REGIONS, gbps, rtt_ms=40.0)
    request = TransferRequest(
        "lab:source", "lab:destination", volume_gb=1, objective="time", connections=16, vms=1
    )
    return recommend(request, network, FlatPrices(REGIONS, 0.01, 0.1))


def write(lab: Lab, region: str, name: str, text: str) -> None:
    """Write a file on a host of the lab, which has a /tmp of its own."""
    keep = lab.command(region, ["sh", "-c", f"cat > {name}"])
    subprocess.run(keep, input=text, text=True, check=True, timeout=60)


def test_an_emitted_plan_reaches_what_it_predicts(lab: Lab) -> None:
    plan = planned()
    assert plan.verdict in {"relay", "split"}
    given = {name: private_address(i) for i, name in enumerate(REGIONS)}
    relay, trial = "/tmp/relay.haproxy", "/tmp/trial.sh"
    write(lab, "lab:relay", relay, emit(plan, "haproxy", endpoints=given))
    text = emit(plan, "iperf3", endpoints=given)
    write(lab, "lab:source", trial, text.replace("-O 5", "-O 2"))
    ports = sorted(set(re.findall(r"-p (\d+) ", text)))
    with ExitStack() as stack:
        for port in ports:
            serve = ["iperf3", "-s", "-1", "-p", port, "--forceflush"]
            stack.enter_context(running(lab, "lab:destination", serve, until="listening"))
        stack.enter_context(running(lab, "lab:relay", ["haproxy", "-V", "-f", relay]))
        wait = "until ss -Hltn | grep -q ':520'; do sleep 0.05; done"
        subprocess.run(lab.command("lab:relay", ["sh", "-c", wait]), check=True, timeout=60)
        # Only the source is let in.
        ask = ["iperf3", "-c", private_address(1), "-p", ports[-1], "-t", "1"]
        stranger = lab.command("lab:destination", ask)
        assert subprocess.run(stranger, capture_output=True, timeout=60).returncode != 0
        seconds = ["env", "SECONDS_OF_TEST=3", "sh", trial]
        done = subprocess.run(
            lab.command("lab:source", seconds), capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 0, done.stderr
    match = re.fullmatch(r"([\d.]+) Gbit/s, predicted ([\d.]+) \(\d+ %\)\n", done.stdout)
    assert match, done.stdout
    assert float(match[1]) == pytest.approx(float(match[2]), rel=0.1)
