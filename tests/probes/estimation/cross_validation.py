"""The measured grids of January and November 2022, and estimates cross-validated over regions.

Links among some regions are measured in January, as many as a campaign would; whole regions are
left out in turn. Estimates of links that touch those are held against January and, aged by ten
months, against November; so are measured links against November.
"""

from __future__ import annotations

import csv
import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp, log
from statistics import median
from typing import NamedTuple

import numpy as np

from planner.model.estimate import AddressKind, Estimate
from planner.model.network import Network, Snapshot
from planner.model.throughput import (
    AGGREGATE_LAWS,
    CLASSES_MS,
    PRIVATE_LAWS,
    AggregateLaw,
    Providers,
    law_of,
)
from probes.analysis.evidence import Coverage
from probes.estimation import Estimator
from probes.samples import Sample, Samples
from tests.shared_data import grid_catalogue, shared
from tests.slow_start import bundle_share_of_steady

Pair = tuple[str, str]

CATALOGUE = grid_catalogue()
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
    column = "received_gbps" if "untuned" in name else "throughput_received_gbps"
    with shared(name).open(newline="") as file:
        return {
            (row["src"], row["dst"]): float(row[column])
            for row in csv.DictReader(file)
            if float(row[column] or 0) > 0 and _rtt(row["src"], row["dst"])
        }


def _rtt(src: str, dst: str) -> float | None:
    return round_trips().get((src, dst)) or round_trips().get((dst, src))


def steady(pair: Pair, received_gbps: float) -> float:
    rtt_ms = _rtt(*pair)
    assert rtt_ms is not None
    return received_gbps / bundle_share_of_steady(rtt_ms, TEST_S)


def providers(pair: Pair) -> str:
    return " > ".join(region.partition(":")[0] for region in pair)


def sample_of(pair: Pair, name: str, *, stated: bool = True) -> Sample:
    """Return a test of the grid, which states that its hosts were tuned."""
    mbps = 1000 * grid(name)[pair]
    found = Sample(*pair, "aggregate_mbps", mbps, TIMES_S[name], "skyplane", 64, TEST_S)
    return found.with_detail(window_mb=512) if stated else found


@cache
def regions() -> list[str]:
    return sorted({end for pair in grid(JANUARY) for end in pair})


def estimated(measured: list[Pair], name: str = JANUARY, *, stated: bool = True) -> Network:
    """Return the estimates from all round-trip times and what some links carried."""
    known = {end for pair in grid(name) for end in pair}
    samples = [
        Sample(src, dst, "rtt_ms", rtt_ms, JANUARY_S, "ping")
        for (src, dst), rtt_ms in round_trips().items()
        if src in known and dst in known
    ]
    samples += (sample_of(pair, name, stated=stated) for pair in measured)
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


class Test(NamedTuple):
    """A later test of a link, held against its estimate.

    Attributes
    ----------
    is_far : bool
        Whether the round-trip time is beyond the last class of distance.
    width, off : float
        Of the bounds, and of the test from what was expected: logarithms of ratios.
    """

    providers: str
    is_far: bool
    held: bool
    width: float
    off: float


@dataclass
class Judged:
    """Later tests of many links."""

    tests: list[Test] = field(default_factory=list)

    def add(self, pair: Pair, estimate: Estimate, found_gbps: float) -> None:
        """Hold an estimate against a test."""
        held = estimate.low <= found_gbps <= estimate.high
        width, off = log(estimate.high / estimate.low), log(found_gbps / estimate.expected)
        far = (_rtt(*pair) or 0.0) > CLASSES_MS[-1]
        self.tests.append(Test(providers(pair), far, held, width, off))

    @property
    def errors(self) -> list[float]:
        """Relative errors of what was expected."""
        return [abs(exp(-test.off) - 1) for test in self.tests]

    def names(self) -> list[str]:
        """Return the pairs of providers."""
        return sorted({test.providers for test in self.tests})

    def coverage(self, name: str | None = None, *, far: bool = False) -> Coverage:
        """Return the coverage of bounds of one pair of providers or of all."""
        of = [test for test in self.tests if name in {None, test.providers}]
        held = [test.held for test in of if test.is_far or not far]
        return Coverage.of(sum(held), len(held))

    def width(self) -> float:
        """Return the width of bounds over the range of 90 % of tests, the median of providers."""
        ratios = []
        for name in self.names():
            of = [test for test in self.tests if test.providers == name]
            low, high = np.quantile([test.off for test in of], (0.05, 0.95))
            ratios.append(float(np.mean([test.width for test in of]) / (high - low)))
        return median(ratios)


class Judgements(NamedTuple):
    """Of inferred links against January and November, and of measured ones against November."""

    inferred: Judged
    inferred_later: Judged
    measured: Judged


# ---- spreads of laws -----------------------------------------------------------------------------

LEAST_SPREAD = 0.02
NEXT_CLASS, FURTHER_CLASS = 0.1, 0.025
"""Weight of a link in the spread of the next class of distance, and of others."""
OUTLIERS = 1.06
"""Times the range of 90 % of links: of both grids together, it is somewhat wider than of each; the
rest is for one link in fifty that is an outlier."""
LawKey = tuple[Providers, AddressKind]


def fitted_laws(without: Collection[str] = ()) -> dict[LawKey, AggregateLaw]:
    """Return laws with the spreads of both grids' links about them, some regions left out."""
    laws, ratios = dict[LawKey, AggregateLaw](), defaultdict[LawKey, list[tuple[int, float]]](list)
    for name in (JANUARY, NOVEMBER):
        for pair, received_gbps in grid(name).items():
            private = name == NOVEMBER and not same_addresses(pair)
            address: AddressKind = "private" if private else "public"
            law, rtt_ms = law_of(*pair, address), _rtt(*pair)
            assert law
            assert rtt_ms
            if not {*pair}.intersection(without):
                key = (pair[0].partition(":")[0], pair[1].partition(":")[0]), address
                laws[key] = law
                ratio = log(steady(pair, received_gbps) / float(law.steady_gbps(rtt_ms)))
                ratios[key].append((bisect_right(CLASSES_MS, rtt_ms), ratio))
    return {key: _with_spreads(laws[key], found) for key, found in sorted(ratios.items())}


def _with_spreads(law: AggregateLaw, ratios: list[tuple[int, float]]) -> AggregateLaw:
    found = []
    values = np.array(sorted(ratios, key=lambda one: one[1]))
    for number in range(len(CLASSES_MS) + 1):
        apart = np.abs(values[:, 0] - number)
        weights = np.where(apart == 0, 1.0, np.where(apart == 1, NEXT_CLASS, FURTHER_CLASS))
        shares = (np.cumsum(weights) - weights / 2) / weights.sum()
        low, high = np.interp((0.05, 0.95), shares, values[:, 1]) * OUTLIERS
        found.append([round(max(LEAST_SPREAD, bound), 2) for bound in (-low, high)])
    below, above = map(tuple, zip(*found, strict=True))
    return replace(law, below=below, above=above)


@contextmanager
def laws_without(regions: Collection[str]) -> Iterator[None]:
    """Put laws in force whose spreads were fitted without some regions."""
    tables: tuple[dict[Providers, AggregateLaw], ...] = (AGGREGATE_LAWS, PRIVATE_LAWS)
    usual = [dict(table) for table in tables]
    for (providers_of, address), law in fitted_laws(regions).items():
        tables[address == "private"][providers_of] = law
    try:
        yield
    finally:
        for table, laws in zip(tables, usual, strict=True):
            table.update(laws)


# ---- judging -------------------------------------------------------------------------------------


@cache
def cross_validated(count: int) -> Judgements:
    """Judge estimates that rest on so many links, and on laws that regions left out are not in."""
    january, november = grid(JANUARY), grid(NOVEMBER)
    found = Judgements(Judged(), Judged(), Judged())
    for seed in SEEDS:
        order = random.Random(seed).sample(regions(), len(regions()))
        for fold in range(FOLDS):
            out = set(order[fold::FOLDS])
            chosen = stratified(count, out, seed * 100 + fold)
            with laws_without(out):
                network = estimated(chosen)
                assert network.links
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
