"""The paper's points in the lab: real TCP, iperf3 and socat between emulated datacenters.

Distances, windows and caps are given, those of the paper's VMs; what follows is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import permutations
from statistics import median

import numpy as np

from benchmarks.lab_measuring import (
    Transfer,
    echo_rtts_ms,
    goodputs_mbps,
    iperf3_reports,
    lateness_of,
    rates_mbps,
)
from benchmarks.labs import lab_of, relayed_mbps, topology_like
from planner.transfer.all_pairs import Floats
from probes.analysis.evidence import Record, spread
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Topology
from scripts.reproduce.point import (
    Point,
    gains,
    latency_points,
    other_relays,
    relayed_flows,
    unlike_flows,
)

ECHOES = 5
FLOWS = 50
"""As many connections as the paper opens."""
SINK = "aws:us-east-1"
TO_SINK = (
    *("aws:ap-northeast-1", "aws:ap-southeast-2", "aws:sa-east-1", "aws:eu-central-1"),
    "aws:us-west-2",
)
"""The five regions of the paper's Table 3."""
OTHERS = ("azure:eastus", "azure:westeurope", "gcp:us-central1", "gcp:asia-east1")
"""Relays of other clouds, one for each end of the Earth."""
EC2_PAIRS = (
    ("aws:us-east-1", "aws:us-west-2"),
    ("aws:eu-central-1", "aws:ap-northeast-1"),
    ("aws:sa-east-1", "aws:ap-south-1"),
)
GOOGLE = "gcp:us-central1"
GOOGLE_SINKS = ("gcp:us-east1", "gcp:europe-west1", "gcp:asia-east1")


def flow_points() -> list[Point]:
    """Measure single flows over all distances (needs root, takes three minutes)."""
    with laboratory("t2.micro") as lab:
        return measured(lab, _distances, _single_flows)


def cap_points() -> list[Point]:
    """Measure many flows, and the effect of a relay (needs root, takes four minutes)."""
    with laboratory("t2.micro") as lab:
        points = measured(lab, _sharing, _relay)
        small = _towards_sink(lab)
    with laboratory("m4.16xlarge") as lab:
        large = _towards_sink(lab)
    return [*points, _homogeneity(small, large)]


def measured(lab: Lab, *measures: Callable[[Lab], list[Point]]) -> list[Point]:
    """Measure, and report the lateness of the lab meanwhile."""
    points = []
    for measure in measures:
        with lateness_of(lab) as lateness:
            points += measure(lab)
        what = measure.__name__.strip("_").replace("_", " ")
        print(f"{what}: up to {lateness.p95_ms:.2g} ms late (p95)")
    return points


def laboratory(aws_vm: str) -> AbstractContextManager[Lab]:
    """Bring up the forty regions of the paper with a VM type for EC2, for a ``with`` block."""
    return lab_of(topology_like("paper", aws=aws_vm))


def one_after_the_other(
    lab: Lab, sources: list[str], sink: str, flows: int, seconds: float, omitted_s: int
) -> list[float]:
    """Measure from each source alone, in Mbit/s of the cloud."""
    topology = lab.topology()
    to = topology.index(sink)
    return [
        goodputs_mbps(lab, [Transfer(topology.index(src), to, flows)], seconds, omitted_s)[0]
        / topology.scale
        for src in sources
    ]


def _distances(lab: Lab) -> list[Point]:
    regions = [site.region for site in lab.topology().sites]
    count = len(regions)
    rtt_ms = np.full((count, count), np.nan)
    pairs = list(permutations(range(count), 2))
    for (i, j), values in echo_rtts_ms(lab, pairs, ECHOES, 0.003).items():
        if values:
            rtt_ms[i, j] = median(values)
    return latency_points(rtt_ms, regions, f"pairs of {count} regions, {ECHOES} ICMP echoes each")


def _single_flows(lab: Lab) -> list[Point]:
    """One flow of every pair among EC2 and four regions of other clouds."""
    names, rates = flow_matrix(lab)
    ec2 = len(names) - len(OTHERS)
    inside = rates[:ec2, :ec2]
    over = spread(inside)
    west, east = names.index("aws:us-west-2"), names.index("aws:us-east-1")
    there, back = rates[west, east], rates[east, west]
    basis = f"{over['samples']} pairs, iperf3, one connection for 5 s"
    of_this = "within 10 % (its window is from this very figure)"
    return [
        unlike_flows(over, "", basis),
        Point(f"{there:.0f} Mbit/s", bool(abs(there / 146 - 1) <= 0.1), of_this, "1 pair"),
        Point(f"{back:.0f} Mbit/s", bool(abs(back / 56 - 1) <= 0.25), "within 25 %", "1 pair"),
        relayed_flows(ec2_gains(inside, ec2), basis),
        other_relays(ec2_gains(rates, ec2), f"{basis}, {len(OTHERS)} relays of other clouds"),
    ]


def flow_matrix(lab: Lab) -> tuple[list[str], Floats]:
    """Return regions, those of EC2 first and then others, and one flow's Mbit/s between them."""
    topology = lab.topology()
    chosen = [i for i, site in enumerate(topology.sites) if site.region.startswith("aws:")]
    chosen += [topology.index(region) for region in OTHERS]
    count = len(chosen)
    rates: Floats = np.full((count, count), np.nan)
    for shift in range(1, count):  # each sends to one and receives from one
        transfers = [Transfer(chosen[i], chosen[(i + shift) % count]) for i in range(count)]
        for i, rate in enumerate(goodputs_mbps(lab, transfers, 5, 2)):
            rates[i, (i + shift) % count] = rate / topology.scale
    return [topology.sites[i].region for i in chosen], rates


def ec2_gains(rates: Floats, ec2: int) -> Record:
    """Return the gains from the best relay of any cloud between the first regions, EC2's."""
    first = np.arange(len(rates)) < ec2
    return gains(rates, first[:, None] & first)


def _towards_sink(lab: Lab) -> Record:
    return spread(one_after_the_other(lab, [*TO_SINK], SINK, FLOWS, 4, 3))


def _homogeneity(small: Record, large: Record) -> Point:
    """Many flows into one region: the same from everywhere."""
    return Point(
        f"{small['mean']:.0f} and {large['mean']:.0f} Mbit/s, varying by {small['cov']:.1%} and "
        f"{large['cov']:.1%}",
        max(small["cov"], large["cov"]) <= 0.05,
        "varies by at most 5 % (the caps are from this very table)",
        f"5 sources for each, iperf3 with {FLOWS} connections for 4 s",
    )


def _sharing(lab: Lab) -> list[Point]:
    """Let one VM send to one, two and three others: together always the same."""
    topology = lab.topology()
    source = topology.index(GOOGLE)
    cap = topology.sites[source].egress_mbps
    together = []
    for count in range(1, len(GOOGLE_SINKS) + 1):
        transfers = [Transfer(source, topology.index(sink), FLOWS) for sink in GOOGLE_SINKS[:count]]
        with ThreadPoolExecutor() as pool:
            reports = pool.submit(iperf3_reports, lab, transfers, 8)
            while not reports.done() and rates_mbps(lab, 0.5)[source][0] < 0.5 * cap:
                pass
            rates_mbps(lab, 2)
            together.append(rates_mbps(lab, 3)[source][0] * GOODPUT_SHARE / topology.scale)
            reports.result()
    here = f"{', '.join(f'{rate / 1000:.2f}' for rate in together)} Gbit/s to 1, 2 and 3 regions"
    alike = max(together) / min(together) <= 1.05
    return [Point(here, alike, "within 5 % of each other", "3 runs of 3 s")]


def _relay(lab: Lab) -> list[Point]:
    """Relay the EC2 pair that gains most, by socat: with one flow and with many."""
    src, relay, dst, gain = _best_relayed(lab.topology())
    found = {}
    for flows in (1, FLOWS):
        direct = goodputs_mbps(lab, [Transfer(src, dst, flows)], 6, 3)[0]
        found[flows] = relayed_mbps(lab, (src, relay, dst), flows) / direct
    names = [lab.topology().sites[i].region.partition(":")[2] for i in (src, dst, relay)]
    basis = f"{names[0]} to {names[1]} through {names[2]}, iperf3 through socat, 6 s"
    return [
        Point(
            f"{found[1]:.2f}x over direct, predicted {gain:.2f}x",
            abs(found[1] / gain - 1) <= 0.05,
            "within 5 % of the prediction",
            basis,
        ),
        Point(f"{found[FLOWS]:.2f}x over direct", found[FLOWS] <= 1.05, "1.05x at most", basis),
    ]


def _best_relayed(topology: Topology) -> tuple[int, int, int, float]:
    """Return the EC2 pair and relay of greatest gain for one flow, and that gain."""
    ec2 = [i for i, site in enumerate(topology.sites) if site.region.startswith("aws:")]
    flow = topology.expected_flow_mbps
    return max(
        (
            (src, relay, dst, min(flow(src, relay), flow(relay, dst)) / flow(src, dst))
            for src, dst, relay in permutations(ec2, 3)
        ),
        key=lambda found: found[3],
    )
