"""A relay that splits TCP helps one flow, and does not help many: both measured."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from benchmarks.lab_measuring import running
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
  bind :{}
  server destination 10.77.0.3:{}
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
def splitting(lab: Lab, how: str, listens_on: int, port: int) -> Iterator[None]:
    """Let the relay pass on what comes to one port to another one of the destination."""
    if how == "socat":
        listen = f"TCP-LISTEN:{listens_on},fork,reuseaddr"
        command, until = ["socat", "-d", "-d", listen, f"TCP:10.77.0.3:{port}"], "listening"
    else:
        script = f"cat > /tmp/relay.cfg <<'E'{HAPROXY.format(listens_on, port)}E\n"
        # It has bound its port when the first process returns.
        script += "haproxy -f /tmp/relay.cfg -D -p /tmp/relay.pid >/dev/null 2>&1"
        script += " && echo started && sleep 600"
        command, until = ["sh", "-c", script], "started"
    with running(lab, "lab:relay", command, until=until):
        yield
    if how == "haproxy":
        end = lab.command("lab:relay", ["sh", "-c", "kill $(cat /tmp/relay.pid)"])
        subprocess.run(end, check=True)


def goodputs_mbps(lab: Lab, ways: tuple[str, ...], flows: int, seconds: float) -> list[float]:
    """Goodput at the destination of flows on each way at once: direct, or split by a program."""
    with ExitStack() as stack:
        clients = []
        for number, way in enumerate(ways):
            address, asked = "10.77.0.3", 5201 + number
            serve = ["iperf3", "-s", "-1", "-p", str(asked), "--forceflush"]
            stack.enter_context(running(lab, "lab:destination", serve, until="listening"))
            if way != "direct":
                stack.enter_context(splitting(lab, way, asked + 100, asked))
                address, asked = "10.77.0.2", asked + 100
            ask = ["iperf3", "-c", address, "-p", str(asked), "-J", "-t", str(seconds)]
            clients.append([*ask, "-O", "3", "-P", str(flows)])
        tests = [stack.enter_context(running(lab, "lab:source", client)) for client in clients]
        texts = [test.communicate(timeout=seconds + 60)[0] for test in tests]
    return [json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e6 for text in texts]


def test_a_relay_gains_for_one_flow_what_the_shorter_links_allow(lab: Lab) -> None:
    # All at once are within the caps. The time is that of whole windows on each way.
    ways = ("direct", "socat", "haproxy")
    direct, *relayed = undisturbed(lab, lambda: goodputs_mbps(lab, ways, 1, 4.08))
    topology = lab.topology()
    predicted = min(
        topology.expected_flow_mbps(SOURCE, RELAY), topology.expected_flow_mbps(RELAY, DESTINATION)
    )
    assert abs(direct / topology.expected_flow_mbps(SOURCE, DESTINATION) - 1) <= 0.05
    for mbps in relayed:
        assert abs(mbps / predicted - 1) <= 0.05
        assert mbps / direct > 2


def test_a_relay_gains_nothing_once_flows_fill_the_cap(lab: Lab) -> None:
    # Flows enough: cap RTT / W = 40e6 * 0.204 / 8 / 125e3 = 8.2.
    (direct,) = undisturbed(lab, lambda: goodputs_mbps(lab, ("direct",), 24, 5))
    (relayed,) = undisturbed(lab, lambda: goodputs_mbps(lab, ("haproxy",), 24, 5))
    assert 0.97 <= relayed / direct <= 1.02
