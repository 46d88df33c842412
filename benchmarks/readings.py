"""Plans for time on January 2022's grid, carried out in November under both readings of slow links.

``python -m benchmarks.readings``. A link below every cap that no one ramped may be slow because its
path ends there, or because each of its connections is slow; both are acted out here with the rates
that November measured. If connections are slow, a split's paths carry what their connections can,
in shares that adapt, or in the shares of the plan, which the slowest path then holds up. With
`--inferred`, January is known without a third of the regions, whose links are not in the spreads of
laws either, and the pairs that touch these are judged. Needs the shared measurements.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from statistics import fmean
from typing import NamedTuple

from benchmarks.table import show
from planner.fields.shared import MOST_CONNECTIONS
from planner.model.network import Network
from planner.model.pricing import CataloguePrices
from planner.solvers.joint import RISK_WEIGHTS, Risk
from planner.transfer.plan import Plan
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from tests.probes.estimation.cross_validation import (
    CATALOGUE,
    JANUARY,
    NOVEMBER,
    NOVEMBER_S,
    estimated,
    grid,
    laws_without,
    same_addresses,
)

VOLUME_GB = 500.0
TESTED_CONNECTIONS = 64
STILL = 1.1
Pair = tuple[str, str]


class Truth(NamedTuple):
    """What November measured: one VM pair's rates, and the links that are below every cap."""

    network: Network
    gbps: dict[Pair, float]
    slow: frozenset[Pair]

    def carried(self, plan: Plan) -> tuple[float, float, float]:
        """Return the rates in Gbit/s that a plan of one VM a region has.

        If paths end, and if connections are slow, in shares that adapt and in those of the plan.
        """
        ends, slow, shares = [], [], []
        for path in plan.paths:
            pairs = list(pairwise(path.regions))
            opened = min(1.0, path.connections / TESTED_CONNECTIONS)
            ends.append(min(self.gbps[pair] for pair in pairs))
            slow.append(
                min(self.gbps[pair] * (opened if pair in self.slow else 1.0) for pair in pairs)
            )
            shares.append(slow[-1] / path.share)
        caps = self.caps(plan.paths[0].regions[0], plan.paths[0].regions[-1])
        return min(sum(ends), *caps), min(sum(slow), *caps), min(*shares, *caps)

    def best_single(self, src: str, dst: str) -> float:
        """Return the rate of the best single path, which is the same under both readings."""
        through = [
            min(self.gbps[src, via], self.gbps[via, dst])
            for via in self.network.sites
            if (src, via) in self.gbps and (via, dst) in self.gbps
        ]
        return min(max(self.gbps[src, dst], *through), *self.caps(src, dst))

    def caps(self, src: str, dst: str) -> tuple[float, float]:
        """Return the caps of one VM, egress and ingress."""
        sites = self.network.sites
        return sites[src].egress_gbps.expected, sites[dst].ingress_gbps.expected


@dataclass
class Found:
    """What plans brought, in the order of :meth:`Truth.carried`."""

    relayed: list[tuple[bool, ...]] = field(default_factory=list)
    achieved: list[tuple[float, ...]] = field(default_factory=list)
    held: list[tuple[bool, ...]] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    splits: int = 0

    def row(self, name: str) -> tuple[str, ...]:
        """Return the figures as a row of the table."""
        cells = [name, str(len(self.achieved)), str(len(self.relayed)), str(self.splits)]
        cells += [
            " / ".join(f"{fmean(of):.2f}" for of in zip(*figures, strict=True))
            for figures in (self.relayed, self.achieved, self.held)
        ]
        return (*cells, f"{fmean(self.widths):.2f}")


def truth_of_november() -> Truth:
    """Return the November grid."""
    pairs = [pair for pair in sorted(grid(NOVEMBER)) if same_addresses(pair)]
    network = estimated(pairs, NOVEMBER)
    network = network.with_(restricted_to={end for pair in pairs for end in pair})
    links = {pair: network.link(*pair) for pair in pairs}
    slow = frozenset(pair for pair, link in links.items() if link.limited_by == "unknown")
    return Truth(
        network, {pair: link.aggregate_gbps.expected for pair, link in links.items()}, slow
    )


def believed_in_november(truth: Truth, without: Collection[str] = ()) -> Network:
    """Return January's network of the links that November measured, without some regions."""
    january = [pair for pair in grid(JANUARY) if same_addresses(pair) and not {*pair} & {*without}]
    network = estimated(january)
    links = {
        src: {dst: link for dst, link in row.items() if (src, dst) in truth.gbps}
        for src, row in network.links.items()
    }
    return network.with_(links=links, restricted_to=truth.network.sites, aged_to_s=NOVEMBER_S)


def judged(truth: Truth, believed: Network, pairs: Collection[Pair], risk: Risk) -> Found:
    """Plan transfers between some pairs, and carry them out under both readings."""
    found = Found()
    prices = CataloguePrices(CATALOGUE, believed)
    for src, dst in pairs:
        request = TransferRequest(src, dst, volume_gb=VOLUME_GB, objective="time", vms=1, risk=risk)
        plan = recommend(request, believed, prices)
        carried = truth.carried(plan)
        best = truth.best_single(src, dst)
        found.achieved.append(tuple(min(1.0, gbps / best) for gbps in carried))
        if plan.verdict == "direct":
            continue
        found.splits += plan.verdict == "split"
        direct = min(truth.gbps[src, dst], *truth.caps(src, dst))
        ends, *slow = carried
        found.relayed.append((ends >= STILL * direct, *(gbps >= direct for gbps in slow)))
        low, high = plan.throughput_gbps_low, plan.throughput_gbps_high
        found.held.append(tuple(low <= gbps <= high for gbps in carried))
        found.widths.append(high / low if low else MOST_CONNECTIONS)
    return found


def main(*, inferred: bool = False) -> None:
    """Print a row for each attitude to risk."""
    truth, left_out = truth_of_november(), set[str]()
    pairs = [pair for pair in sorted(truth.gbps) if pair in grid(JANUARY)]
    if inferred:
        regions = sorted(truth.network.sites)
        left_out = {*Random(1).sample(regions, len(regions) // 3)}
        pairs = [pair for pair in pairs if {*pair} & left_out]
    with laws_without(left_out):
        believed = believed_in_november(truth, left_out)
    show(
        "if paths end / if connections are slow: shares that adapt / shares of the plan",
        (
            *("risk", "pairs", "relayed", "splits", "1.1x / not slower"),
            *("of best path", "in bounds", "high/low"),
        ),
        (judged(truth, believed, pairs, risk).row(risk) for risk in RISK_WEIGHTS),
    )


if __name__ == "__main__":
    main(inferred="--inferred" in sys.argv)
