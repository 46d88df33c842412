"""The survey of February 2022 made into relay triples, and what predictions of it are worth.

45 hosts of AWS (t3.nano) and Google Cloud (e2-small); single connections of 10 s from a cold start.
A triple is a pair and a relay of which all three links were tested. What the relay gives follows
from the tests of its links, which those who predict do not know.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from statistics import mean, median
from typing import NamedTuple

from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices
from planner.model.throughput import steady_rates
from planner.model.units import MBPS_PER_GBPS
from planner.transfer.decision import decide
from planner.transfer.request import TransferRequest
from probes.estimation import Estimator
from probes.estimation.sites import with_bursts
from probes.samples import Sample, Samples
from relayd.catalogue.loading import load_catalogue
from tests.shared_data import shared

Pair = tuple[str, str]
Triple = tuple[str, str, str]

TEST_S = 10.0
AT_S = 1_644_796_800.0
VM_TYPES = {"aws": "t3.nano", "gcp": "e2-small"}
VOLUME_GB = 1000.0  # so much that getting up to speed does not matter
FOLDS = 20


class FlowTest(NamedTuple):
    """A direct test of one connection."""

    src: str
    dst: str
    throughput_mbps: float
    rtt_ms: float


@cache
def tests() -> dict[Pair, FlowTest]:
    """Return the direct tests by pair."""
    with shared("single_flow_2022-02.csv").open(newline="") as file:
        return {
            (row["src"], row["dst"]): FlowTest(
                row["src"], row["dst"], float(row["throughput_mbps"]), float(row["rtt_ms"])
            )
            for row in csv.DictReader(file)
        }


@cache
def steady_rates_mbps() -> dict[Pair, float]:
    """Return the steady rate that the test of each pair shows."""
    of = tests()
    mbps, rtts_ms = zip(*(test[2:] for test in of.values()), strict=True)
    return dict(zip(of, steady_rates(mbps, rtts_ms, TEST_S, one_flow=True).tolist(), strict=True))


def triples() -> list[Triple]:
    """Return every source, relay and destination whose three links were tested."""
    found = tests()
    hosts = dict.fromkeys(host for pair in found for host in pair)
    return [
        (src, relay, dst)
        for src, dst in sorted(found)
        for relay in hosts
        if (src, relay) in found and (relay, dst) in found
    ]


def folds(count: int = FOLDS) -> Iterator[list[Pair]]:
    """Yield parts of the pairs, each to be left out in turn."""
    pairs = sorted(tests())
    random.Random(1).shuffle(pairs)
    for first in range(count):
        yield pairs[first::count]


def without(pairs: Iterable[Pair]) -> list[FlowTest]:
    """Return the tests of all other pairs."""
    left_out = set(pairs)
    return [test for pair, test in tests().items() if pair not in left_out]


@dataclass
class Judged:
    """What predictions were worth.

    Attributes
    ----------
    held : list of bool
        Whether the bounds held the test.
    errors : list of float
    relayed : list of bool
        Whether a relay was taken.
    right : list of bool
        Whether a relay was taken just where the tests of its links show the gain that was asked
        for, the margin.
    fastest : list of bool
        The same where any gain counts, whatever the margin.
    kept : list of float
        Of the better way's throughput.
    """

    held: list[bool] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    relayed: list[bool] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    fastest: list[bool] = field(default_factory=list)
    kept: list[float] = field(default_factory=list)

    def add(self, found_mbps: float, low: float, expected: float, high: float) -> None:
        """Add a prediction and what was tested."""
        self.held.append(low <= found_mbps <= high)
        self.errors.append(abs(expected / found_mbps - 1))

    def decide(
        self, *, relayed: bool, direct_mbps: float, relay_mbps: float, margin: float
    ) -> None:
        """Add a decision and what both ways give."""
        self.relayed.append(relayed)
        self.right.append(relayed == (relay_mbps > direct_mbps * (1 + margin)))
        self.fastest.append(relayed == (relay_mbps > direct_mbps))
        most = max(relay_mbps, direct_mbps)
        self.kept.append((relay_mbps if relayed else direct_mbps) / most)

    @property
    def coverage(self) -> float:
        """How often bounds held."""
        return mean(self.held)

    def row(self) -> list[str]:
        """Return the figures: decisions right, both ways; throughput kept; errors; coverage."""
        ordered, decided = sorted(self.errors), ["", "", ""]
        if self.right:
            shares = mean(self.right), mean(self.fastest)
            decided = [*(f"{share:.1%}" for share in shares), f"{mean(self.kept):.2%}"]
        p90 = ordered[int(0.9 * len(ordered))]
        return [*decided, f"{median(ordered):.1%}", f"{p90:.1%}", f"{self.coverage:.1%}"]


def network_of(known: Iterable[FlowTest], *, typed: bool = True) -> Network:
    """Return the estimates from tests and all round-trip times, as an import makes them.

    Unless typed, tests name no VM types, and windows of further regions are their provider's.
    """
    samples = [Sample(*pair, "rtt_ms", test.rtt_ms, AT_S, "ping") for pair, test in tests().items()]
    samples += (
        Sample(
            test.src,
            test.dst,
            "per_flow_mbps",
            test.throughput_mbps,
            AT_S,
            "iperf2",
            1,
            TEST_S,
            src_vm=_vm_type(test.src) if typed else "",
            dst_vm=_vm_type(test.dst) if typed else "",
        )
        for test in known
    )
    catalogue = load_catalogue()
    network = Estimator(Samples.of(samples), catalogue).network(Snapshot("survey", "", ""))
    if not typed:
        return network
    # Tests of 10 s end before the network credits of these VMs do.
    return network.with_(sites=with_bursts(network.sites, catalogue))


def judged_flows() -> Judged:
    """Predict each part of the tests from the others as `relayd plan --connections 1` does."""
    judged, found_mbps = Judged(), steady_rates_mbps()
    for pairs in folds():
        network = network_of(without(pairs))
        for pair in pairs:
            flow = network.link(*pair).per_flow_mbps
            judged.add(found_mbps[pair], flow.low, flow.expected, flow.high)
    return judged


def judged_relays(chosen: Iterable[Triple], *, margin: float = 0.0) -> Judged:
    """Decide triples as `relayd plan --connections 1 --objective time` does, in steady rates."""
    judged, found_mbps = Judged(), steady_rates_mbps()
    for src, relay, dst in chosen:
        network = network_of(without([(src, relay), (relay, dst)]))
        request = TransferRequest(
            src,
            dst,
            volume_gb=VOLUME_GB,
            objective="time",
            connections=1,
            vms=1,
            relays=relay,
            margin=margin,
        )
        decision = decide(request, network, CataloguePrices(load_catalogue(), network))
        option = decision.best_relay
        assert option is not None
        rate = option.allocation.rate_gbps
        low = option.rate_at("low")
        high = option.rate_at("high")
        through = min(found_mbps[src, relay], found_mbps[relay, dst])
        judged.add(through, *(gbps * MBPS_PER_GBPS for gbps in (low, rate, high)))
        judged.decide(
            relayed=bool(decision.chosen.relays),
            direct_mbps=found_mbps[src, dst],
            relay_mbps=through,
            margin=margin,
        )
    return judged


def _vm_type(host: str) -> str:
    return VM_TYPES[host.partition(":")[0]]
