"""A relay that splits TCP helps one flow, and does not help many: both measured."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from benchmarks.lab_measuring import Transfer, goodputs_mbps, running
from probes.lab.controller import Lab
from probes.lab.topology import Site, Topology
from tests.lab.quiet import undisturbed

pytestmark = pytest.mark.alone

CAP_MBPS, WINDOW_BYTES = 40, 125_000
DIRECT_MS, FIRST_MS, SECOND_MS = 204.0, 84.0, 81.0
SOURCE, RELAY, DESTINATION = range(3)

HAPROXY = """
global
  maxconn 2000
defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen relay
  bind :5301
  server destination 10.77.0.3:5201
"""


@pytest.fixture(scope="module")
def lab(lab_of: Callable[..., Lab]) -> Lab:
    sites = tuple(
        Site(f"lab:{name}", CAP_MBPS, CAP_MBPS, WINDOW_BYTES)
        for name in ("source", "relay", "destination")
    )
    matrix = ((0.0, FIRST_MS, DIRECT_MS), (FIRST_MS, 0.0, SECOND_MS), (DIRECT_MS, SECOND_MS, 0.0))
    return lab_of(Topology(sites, matrix, profile="relay"), "relay")


@contextmanager
def splitting(lab: Lab, how: Any) -> Iterator[None]:
    if how == "socat":
        command = ["socat", "-d", "-d", "TCP-LISTEN:5301,fork,reuseaddr", "TCP:10.77.0.3:5201"]
        until = "listening"
    else:
        script = f"cat > /tmp/relay.cfg <<'E'{HAPROXY}E\n"
        # It has bound its port when the first process returns.
        script += "haproxy -f /tmp/relay.cfg -D -p /tmp/relay.pid >/dev/null 2>&1"
        script += " && echo started && sleep 600"
        command, until = ["sh", "-c", script], "started"
    with running(lab, "lab:relay", command, until=until):
        yield
    if how == "haproxy":
        end = lab.command("lab:relay", ["sh", "-c", "kill $(cat /tmp/relay.pid)"])
        subprocess.run(end, check=True)


def relayed_mbps(lab: Lab, how: Any, flows: int, seconds: float, omitted_s: int) -> float:
    """Goodput at the destination of flows that the relay passes on."""
    serve = ["iperf3", "-s", "-1", "-p", "5201", "--forceflush"]
    with splitting(lab, how), running(lab, "lab:destination", serve, until="listening"):
        ask = ["iperf3", "-c", "10.77.0.2", "-p", "5301", "-J", "-t", str(seconds)]
        ask += ["-O", str(omitted_s), "-P", str(flows)]
        with running(lab, "lab:source", ask) as client:
            text, _ = client.communicate(timeout=seconds + omitted_s + 60)
    return float(json.loads(text)["end"]["sum_received"]["bits_per_second"]) / 1e6


@pytest.fixture(scope="module")
def direct_mbps(lab: Lab) -> float:
    """Rate of one flow on the direct path."""
    return undisturbed(lab, lambda: goodputs_mbps(lab, [Transfer(SOURCE, DESTINATION)], 4.08, 3)[0])


@pytest.mark.parametrize("how", ["socat", "haproxy"])
def test_a_relay_gains_for_one_flow_what_the_shorter_links_allow(
    lab: Lab, direct_mbps: float, how: Any
) -> None:
    relayed = undisturbed(lab, lambda: relayed_mbps(lab, how, 1, 4.2, 3))
    topology = lab.topology()
    predicted = min(
        topology.expected_flow_mbps(SOURCE, RELAY), topology.expected_flow_mbps(RELAY, DESTINATION)
    )
    assert abs(direct_mbps / topology.expected_flow_mbps(SOURCE, DESTINATION) - 1) <= 0.05
    assert abs(relayed / predicted - 1) <= 0.05
    assert relayed / direct_mbps > 2


def test_a_relay_gains_nothing_once_flows_fill_the_cap(lab: Lab) -> None:
    # Flows enough: cap RTT / W = 40e6 * 0.204 / 8 / 125e3 = 8.2.
    direct = undisturbed(
        lab, lambda: goodputs_mbps(lab, [Transfer(SOURCE, DESTINATION, 24)], 5, 4)[0]
    )
    relayed = undisturbed(lab, lambda: relayed_mbps(lab, "haproxy", 24, 5, 4))
    assert 0.97 <= relayed / direct <= 1.02
