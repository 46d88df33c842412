"""The measured grids of January and November 2022, and estimates cross-validated over regions.

Links among some regions are measured in January, as many as a campaign would; whole regions are
left out in turn. Estimates of links that touch those are held against January and, aged by ten
months, against November; so are measured links against November.
"""

from __future__ import annotations

import csv
import random
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from planner.model.estimate import Estimate
from planner.model.network import Network, Snapshot
from planner.model.throughput import bundle_share_of_steady
from probes.estimation import Estimator
from probes.estimation.coverage import Coverage
from probes.samples import Sample, Samples
from relayd.catalogue.loading import load_catalogue
from tests.shared_data import shared

Pair = tuple[str, str]

CATALOGUE = load_catalogue()
JANUARY, NOVEMBER = "aggregate_2022-01.csv", "aggregate_2022-11_part.csv"
JANUARY_S, NOVEMBER_S = 1_642_204_800.0, 1_668_470_400.0
TIMES_S = {JANUARY: JANUARY_S, NOVEMBER: NOVEMBER_S}
TEST_S = 5.0
FOLDS = 7
SEEDS = (1, 2)


@cache
def round_trips() -> dict[Pair, float]:
    """Return round-trip times, those of contaminated rows taken from the reverse direction."""
    with shared("rtt_2022-04.csv").open(newline="") as file:
        return {
            (row["src"], row["dst"]): float(row["rtt_clean_ms"])
            for row in csv.DictReader(file)
            if row["rtt_clean_ms"]
        }


@cache
def grid(name: str) -> dict[Pair, float]:
    """Return the rates of 64 connections over 5 s, in Gbit/s, without failures."""
    with shared(name).open(newline="") as file:
        return {
            (row["src"], row["dst"]): float(row["throughput_received_gbps"])
            for row in csv.DictReader(file)
            if float(row["throughput_received_gbps"] or 0) > 0 and _rtt(row["src"], row["dst"])
        }


def _rtt(src: str, dst: str) -> float | None:
    return round_trips().get((src, dst)) or round_trips().get((dst, src))


def steady(pair: Pair, received_gbps: float) -> float:
    rtt_ms = _rtt(*pair)
    assert rtt_ms is not None
    return received_gbps / bundle_share_of_steady(rtt_ms, TEST_S)


def providers(pair: Pair) -> str:
    return " > ".join(region.partition(":")[0] for region in pair)


def sample_of(pair: Pair, name: str) -> Sample:
    mbps = 1000 * grid(name)[pair]
    return Sample(*pair, "aggregate_mbps", mbps, TIMES_S[name], "skyplane", 64, TEST_S)


@cache
def regions() -> list[str]:
    return sorted({end for pair in grid(JANUARY) for end in pair})


def estimated(measured: list[Pair], name: str = JANUARY) -> Network:
    """Return the estimates from all round-trip times and what some links carried."""
    known = {end for pair in grid(name) for end in pair}
    samples = [
        Sample(src, dst, "rtt_ms", rtt_ms, JANUARY_S, "ping")
        for (src, dst), rtt_ms in round_trips().items()
        if src in known and dst in known
    ]
    samples += (sample_of(pair, name) for pair in measured)
    return Estimator(Samples.of(samples), CATALOGUE).network(Snapshot("t", "", ""))


def stratified(count: int, without: set[str], seed: int) -> list[Pair]:
    """Return links to measure, as many of every pair of providers."""
    draw = random.Random(seed)
    by_providers: dict[str, list[Pair]] = defaultdict(list)
    for pair in sorted(grid(JANUARY)):
        if without.isdisjoint(pair):
            by_providers[providers(pair)].append(pair)
    for pairs in by_providers.values():
        draw.shuffle(pairs)
    chosen: list[Pair] = []
    while len(chosen) < count:
        for name in sorted(by_providers):
            if by_providers[name] and len(chosen) < count:
                chosen.append(by_providers[name].pop())
    return chosen


@dataclass
class Judged:
    """Coverage of bounds by pair of providers, and errors of estimates."""

    held: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    errors: list[float] = field(default_factory=list)

    def add(self, pair: Pair, estimate: Estimate, found_gbps: float) -> None:
        self.held[providers(pair)].append(estimate.low <= found_gbps <= estimate.high)
        self.errors.append(abs(estimate.expected / found_gbps - 1))

    def coverage(self, name: str | None = None) -> Coverage:
        """Return the coverage of bounds of one pair of providers or of all."""
        found = [one for of, held in self.held.items() if name in {None, of} for one in held]
        return Coverage.of(sum(found), len(found))


class Judgements(NamedTuple):
    """Of inferred links against January and November, and of measured ones against November."""

    inferred: Judged
    inferred_later: Judged
    measured: Judged


@cache
def cross_validated(count: int) -> Judgements:
    """Judge estimates that rest on so many links."""
    january, november = grid(JANUARY), grid(NOVEMBER)
    found = Judgements(Judged(), Judged(), Judged())
    for seed in SEEDS:
        order = random.Random(seed).sample(regions(), len(regions()))
        for fold in range(FOLDS):
            out = set(order[fold::FOLDS])
            chosen = stratified(count, out, seed * 100 + fold)
            network = estimated(chosen)
            aged = network.with_(aged_to_s=NOVEMBER_S)
            for pair, received_gbps in january.items():
                if out.isdisjoint(pair):
                    continue
                link = network.link(*pair).aggregate_gbps
                assert link.source != "measured"
                found.inferred.add(pair, link, steady(pair, received_gbps))
                if same_addresses(pair) and pair in november:
                    later = aged.link(*pair).aggregate_gbps
                    found.inferred_later.add(pair, later, steady(pair, november[pair]))
            for pair in chosen:
                if same_addresses(pair) and pair in november:
                    link = aged.link(*pair).aggregate_gbps
                    assert link.source == "measured"
                    found.measured.add(pair, link, steady(pair, november[pair]))
    return found


def same_addresses(pair: Pair) -> bool:
    """Tell whether both grids tested a pair over the same kind of address."""
    return providers(pair) != "gcp > gcp"
