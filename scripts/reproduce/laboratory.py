"""The paper's points in the lab: real TCP, iperf3 and socat between emulated datacenters.

Distances, windows and caps are given, those of the paper's VMs; what follows is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from probes.analysis.comparisons import distribution
from probes.analysis.evidence import Record, spread
from probes.lab.controller import Lab
from probes.lab.topology import GOODPUT_SHARE, Topology
from scripts.reproduce.point import Point, latency_points, other_relays, relayed_flows, unlike_flows

ECHOES = 5
FLOWS = 50
"""As many connections as the paper opens."""
SINK = "aws:us-east-1"
TO_SINK = (
    "aws:ap-northeast-1",
    "aws:ap-southeast-2",
    "aws:sa-east-1",
    "aws:eu-central-1",
    "aws:us-west-2",
)
"""The five regions of the paper's Table 3."""
OTHERS = ("azure:eastus", "azure:westeurope", "gcp:us-central1", "gcp:asia-east1")
"""Relays of other clouds, one for each end of the Earth."""
GOOGLE = "gcp:us-central1"
GOOGLE_SINKS = ("gcp:us-east1", "gcp:europe-west1", "gcp:asia-east1")


def flow_points() -> list[Point]:
    """Measure single flows over all distances (needs root, takes three minutes)."""
    with laboratory("t2.micro") as lab:
        return measured(lab, _distances, _single_flows)


def cap_points() -> list[Point]:
    """Measure many flows, and the effect of a relay (needs root, takes four minutes)."""
    towards_sink = []
    with laboratory("t2.micro") as lab:
        points = measured(lab, _sharing, _relay)
        towards_sink.append(_towards_sink(lab))
    with laboratory("m4.16xlarge") as lab:
        towards_sink.append(_towards_sink(lab))
    return [*points, _homogeneity(*towards_sink)]


def measured(lab: Lab, *measures: Callable[[Lab], list[Point]]) -> list[Point]:
    """Measure, and report the lateness of the lab meanwhile."""
    points = []
    for measure in measures:
        with lateness_of(lab) as lateness:
            points += measure(lab)
        what = measure.__name__.strip("_").replace("_", " ")
        print(f"{what}: up to {lateness.p95_ms:.2g} ms late (p95)")
    return points


@contextmanager
def laboratory(aws_vm: str) -> Iterator[Lab]:
    """Bring up the forty regions of the paper with a VM type for EC2, for a ``with`` block."""
    with lab_of(topology_like("paper", aws=aws_vm)) as lab:
        yield lab


def _distances(lab: Lab) -> list[Point]:
    topology = lab.topology()
    count = len(topology.sites)
    pairs = list(permutations(range(count), 2))
    rtt_ms = np.full((count, count), np.nan)
    for (i, j), values in echo_rtts_ms(lab, pairs, ECHOES, 0.003).items():
        if values:
            rtt_ms[i, j] = median(values)
    regions = [site.region for site in topology.sites]
    return latency_points(rtt_ms, regions, f"pairs of {count} regions, {ECHOES} ICMP echoes each")


def _single_flows(lab: Lab) -> list[Point]:
    """Measure one flow of every pair among EC2 and four regions of other clouds."""
    names, rates = flow_matrix(lab)
    ec2 = len(names) - len(OTHERS)
    inside = rates[:ec2, :ec2]
    over = spread(inside)
    there = rates[names.index("aws:us-west-2"), names.index("aws:us-east-1")]
    back = rates[names.index("aws:us-east-1"), names.index("aws:us-west-2")]
    basis = f"{over['samples']} pairs, iperf3, one connection for 5 s"
    return [
        unlike_flows(over, "", basis),
        Point(
            "Oregon to Virginia, one flow (3.2.1)",
            "146 Mbit/s",
            f"{there:.0f} Mbit/s",
            bool(abs(there / 146 - 1) <= 0.1),
            "within 10 % (its window is from this very figure)",
            "1 pair",
        ),
        Point(
            "and back: both directions are not alike (3.2.1)",
            "56 Mbit/s",
            f"{back:.0f} Mbit/s",
            bool(abs(back / 56 - 1) <= 0.25),
            "within 25 %",
            "1 pair",
        ),
        relayed_flows(best_gains(inside, ec2), "", basis),
        other_relays(best_gains(rates, ec2), ")", f"{basis}, {len(OTHERS)} relays of other clouds"),
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


def best_gains(rates: Floats, ec2: int) -> Record:
    """Return the gains from the best relay of any cloud between the first regions, EC2's."""
    best = np.where(np.eye(ec2, dtype=bool), np.nan, 1.0)
    for i, j in permutations(range(ec2), 2):
        through = np.fmin(rates[i], rates[:, j])
        best[i, j] = max(1.0, np.nanmax(np.delete(through, [i, j])) / rates[i, j])
    return distribution(best)


def _towards_sink(lab: Lab) -> dict[str, float]:
    """Measure many flows into one region, one source after the other, in Mbit/s of the cloud."""
    topology = lab.topology()
    sink = topology.index(SINK)
    return {
        source: goodputs_mbps(lab, [Transfer(topology.index(source), sink, FLOWS)], 4, 3)[0]
        / topology.scale
        for source in TO_SINK
    }


def _homogeneity(small: dict[str, float], large: dict[str, float]) -> Point:
    found = [spread(list(rates.values())) for rates in (small, large)]
    covs = [one["cov"] for one in found]
    means = [one["mean"] for one in found]
    return Point(
        f"{FLOWS} flows into one region: the same from everywhere (Table 3, t2.micro and "
        "m4.16xlarge)",
        "426 and 4775 Mbit/s, varying by 2.5 % and 0.8 %",
        f"{means[0]:.0f} and {means[1]:.0f} Mbit/s, varying by {covs[0]:.1%} and {covs[1]:.1%}",
        max(covs) <= 0.05,
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
    return [
        Point(
            "Flows towards several regions share the VM's cap (3.2.2, Figure 2b: n1-standard-1, "
            f"{FLOWS} connections a destination)",
            "always about 2 Gbit/s",
            f"{', '.join(f'{rate / 1000:.2f}' for rate in together)} Gbit/s to 1, 2 and 3 regions",
            max(together) / min(together) <= 1.05,
            "within 5 % of each other",
            "3 runs of 3 s",
        )
    ]


def _relay(lab: Lab) -> list[Point]:
    """Relay the EC2 pair that gains most, by socat: with one flow and with many."""
    topology = lab.topology()
    src, relay, dst, gain = _best_relayed(topology)
    names = [topology.sites[i].region.partition(":")[2] for i in (src, relay, dst)]
    found = {}
    for flows in (1, FLOWS):
        direct = goodputs_mbps(lab, [Transfer(src, dst, flows)], 6, 3)[0]
        found[flows] = relayed_mbps(lab, (src, relay, dst), flows) / direct
    path = f"{names[0]} to {names[2]} through {names[1]}"
    return [
        Point(
            f"A relay that splits TCP carries one flow at min(W/RTT1, W/RTT2): {path}",
            "significantly more",
            f"{found[1]:.2f}x over direct, predicted {gain:.2f}x",
            abs(found[1] / gain - 1) <= 0.05,
            "within 5 % of the prediction",
            "1 pair, iperf3 through socat, 6 s",
        ),
        Point(
            f"With {FLOWS} flows, the same relay gains nothing (4)",
            "little scope",
            f"{found[FLOWS]:.2f}x over direct",
            found[FLOWS] <= 1.05,
            "1.05x at most",
            "1 pair, iperf3 through socat, 6 s",
        ),
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
