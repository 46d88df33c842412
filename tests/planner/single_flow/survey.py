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

from planner.model.network import Network, Snapshot
from planner.model.pricing import CataloguePrices
from planner.model.units import MBPS_PER_GBPS
from planner.single_flow.flow_tests import FlowEvidence
from planner.single_flow.prediction import FlowTest, predict
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
# One test at such a distance tells a window best: nearer ones meet caps, farther ones start slowly.
BEST_MS = (60.0, 250.0)


@cache
def tests() -> dict[Pair, FlowTest]:
    """Return the direct tests by pair."""
    with shared("single_flow_2022-02.csv").open(newline="") as file:
        return {
            (row["src"], row["dst"]): FlowTest(
                row["src"], row["dst"], float(row["throughput_mbps"]), float(row["rtt_ms"]), TEST_S
            )
            for row in csv.DictReader(file)
        }


@cache
def round_trips_ms() -> dict[Pair, float | None]:
    """Return the round-trip times, which cost nothing to measure."""
    return {pair: test.rtt_ms for pair, test in tests().items()}


@cache
def everything() -> FlowEvidence:
    """Return what all tests tell."""
    return FlowEvidence(tests().values())


def triples() -> list[Triple]:
    """Return every source, relay and destination whose three links were tested."""
    found = tests()
    return [
        (src, relay, dst)
        for src, dst in sorted(found)
        for relay in everything().hosts
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


def library_of_flows() -> Judged:
    """Predict each part of the tests from the others with the library."""
    judged = Judged()
    for pairs in folds():
        evidence = FlowEvidence(without(pairs), round_trips_ms())
        for pair in pairs:
            found = predict(evidence, *pair, relays=[], duration_s=TEST_S).direct
            assert found is not None
            judged.add(
                tests()[pair].throughput_mbps,
                found.throughput_mbps_low,
                found.throughput_mbps,
                found.throughput_mbps_high,
            )
    return judged


def library_of_relays(
    chosen: Iterable[Triple], *, one_into_relay: bool = False, margin: float = 0.0
) -> Judged:
    """Predict and decide triples with the library, in means over a test.

    Parameters
    ----------
    one_into_relay : bool
        Whether the relay was tested by one other host only, from where it tells a window best.
    """
    judged = Judged()
    for src, relay, dst in chosen:
        known = without([(src, relay), (relay, dst)])
        if one_into_relay:
            into = [test for test in known if test.dst == relay]
            into.sort(key=lambda test: not BEST_MS[0] <= (test.rtt_ms or 0.0) <= BEST_MS[1])
            known = [test for test in known if test.dst != relay] + into[:1]
        evidence = FlowEvidence(known, round_trips_ms())
        answer = predict(evidence, src, dst, relays=[relay], duration_s=TEST_S, margin=margin)
        through = predict(everything(), src, dst, relays=[relay], duration_s=TEST_S).relays[0]
        (found,) = answer.relays
        judged.add(
            through.throughput_mbps,
            found.throughput_mbps_low,
            found.throughput_mbps,
            found.throughput_mbps_high,
        )
        judged.decide(
            relayed=answer.verdict == "relay",
            direct_mbps=tests()[src, dst].throughput_mbps,
            relay_mbps=through.throughput_mbps,
            margin=margin,
        )
    return judged


def network_of(known: Iterable[FlowTest], *, typed: bool = True) -> Network:
    """Return the estimates from tests and all round-trip times, as an import makes them.

    Unless typed, tests name no VM types, and windows of further regions are their provider's.
    """
    samples = [
        Sample(*pair, "rtt_ms", rtt_ms, AT_S, "ping")
        for pair, rtt_ms in round_trips_ms().items()
        if rtt_ms is not None
    ]
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


def plan_of_flows() -> Judged:
    """Predict each part of the tests from the others as `relayd plan --connections 1` does."""
    judged = Judged()
    for pairs in folds():
        network = network_of(without(pairs))
        for pair in pairs:
            flow = network.link(*pair).per_flow_mbps
            judged.add(steady_mbps(*pair), flow.low, flow.expected, flow.high)
    return judged


def plan_of_relays(chosen: Iterable[Triple], *, margin: float = 0.0) -> Judged:
    """Decide triples as `relayd plan --connections 1 --objective time` does, in steady rates."""
    judged = Judged()
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
        through = min(steady_mbps(src, relay), steady_mbps(relay, dst))
        judged.add(through, *(gbps * MBPS_PER_GBPS for gbps in (low, rate, high)))
        judged.decide(
            relayed=bool(decision.chosen.relays),
            direct_mbps=steady_mbps(src, dst),
            relay_mbps=through,
            margin=margin,
        )
    return judged


def steady_mbps(src: str, dst: str) -> float:
    """Return the steady rate that the test of a pair shows, in Mbit/s."""
    found = everything().steady_mbps(src, dst)
    assert found is not None
    return found[0]


def _vm_type(host: str) -> str:
    return VM_TYPES[host.partition(":")[0]]
