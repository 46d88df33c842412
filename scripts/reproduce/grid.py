"""The paper's points on open measurements of 2022: 63 regions, and a survey of single flows."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from math import inf

import numpy as np

from planner.model.units import BITS_PER_BYTE, MS_PER_S, S_PER_H
from planner.transfer.all_pairs import DIRECT, Floats, RateBounds, Terms, choose, within_caps
from probes.analysis.comparisons import homogeneity
from probes.analysis.evidence import Record, spread
from scripts.reproduce.point import (
    PROVIDERS,
    Point,
    gains,
    latency_points,
    other_relays,
    relayed_flows,
    unlike_flows,
)
from tests.planner.grid import january_grid, vm_usd_per_h
from tests.probes.estimation.cross_validation import JANUARY, NOVEMBER, grid, steady
from tests.probes.estimation.cross_validation import round_trips as round_trips_of_pairs
from tests.shared_data import shared

VOLUME_GB = 500.0
HOUR_USD = 20.0
MARGIN = 0.1
# What a Linux receiver with default settings advertises at most: half of tcp_rmem's 6 MiB.
WINDOW_MB = 3.0
# Under 20 ms, other things than the window limit a flow (docs/estimates.md).
LEAST_MS = 20.0
GRID = "63 regions, 64 connections, January 2022"
NEAR = 1.1
"""Two tests that differ by less are taken for the same rate."""
ALIKE = 0.9
"""Of pairs: so many must be near for a claim of stability to agree."""
SURVEY = "single flows, February 2022"
EC2_2018 = (
    *("us-east-1", "us-west-1", "us-west-2", "sa-east-1", "eu-west-1", "eu-central-1"),
    *("ap-northeast-1", "ap-northeast-2", "ap-southeast-1", "ap-southeast-2", "ap-south-1"),
)


def grid_points() -> list[Point]:
    """Return every point that the grid and the survey can say something about."""
    return [
        *_single_flows(),
        *_single_flow_relays(),
        *(_one_cap(provider) for provider in PROVIDERS),
        *(_relayed_aggregates(provider) for provider in PROVIDERS),
        *(_later_rates(provider) for provider in PROVIDERS),
        _later_round_trips(),
        *latency_points(round_trips(), january_grid().regions, "round-trip times, April 2022"),
        *_fees(),
    ]


# ---- what was measured ------------------------------------------------------------------------


@cache
def survey() -> dict[tuple[str, str], tuple[float, float]]:
    """Return throughput in Mbit/s and round-trip time in ms of single flows."""
    with shared("single_flow_2022-02.csv").open() as file:
        return {
            (row["src"], row["dst"]): (float(row["throughput_mbps"]), float(row["rtt_ms"]))
            for row in csv.DictReader(file)
            if float(row["throughput_mbps"] or 0) > 0 and float(row["rtt_ms"] or 0) > 0
        }


def both_ways(figure: Callable[[float, float], float]) -> list[float]:
    """Return a figure of single flows inside one cloud, the greater over the lesser direction."""
    flows, found = survey(), []
    for (src, dst), flow in flows.items():
        if src < dst and (dst, src) in flows and src.partition(":")[0] == dst.partition(":")[0]:
            there, back = figure(*flow), figure(*flows[dst, src])
            found.append(max(there, back) / min(there, back))
    return found


def into(provider: str, figure: Callable[[float, float], float]) -> Record:
    """Return the distribution of a figure of single flows into a provider's regions."""
    return spread(
        [
            figure(mbps, rtt_ms)
            for (_, dst), (mbps, rtt_ms) in survey().items()
            if dst.startswith(f"{provider}:") and rtt_ms >= LEAST_MS
        ]
    )


def windows_mb(provider: str) -> Record:
    """Return the windows that explain the single flows into a provider's regions."""
    return into(provider, lambda mbps, rtt_ms: mbps * rtt_ms / BITS_PER_BYTE / MS_PER_S)


@cache
def aggregates() -> Floats:
    """Return steady rates of 64 connections in Gbit/s, NaN where not known."""
    grid = january_grid()
    rates = grid.matrix(grid.pair_gbps, np.nan)
    rates[rates <= 0] = np.nan
    np.fill_diagonal(rates, np.nan)
    return rates


@cache
def round_trips() -> Floats:
    """Return round-trip times in ms: of either direction, NaN where neither is known."""
    grid = january_grid()
    rtt_ms = grid.matrix(grid.rtt_ms, np.nan)
    both: Floats = np.where(np.isfinite(rtt_ms), rtt_ms, rtt_ms.T)
    np.fill_diagonal(both, np.nan)
    return both


def of(provider: str) -> np.ndarray:
    """Return a mask of the grid's regions that are a provider's."""
    return np.array([region.startswith(f"{provider}:") for region in january_grid().regions])


@cache
def later_over_earlier() -> dict[tuple[str, str], list[float]]:
    """Return steady rates of November 2022 over those of January, by providers.

    Between regions of GCP they are left out: January used public addresses, November private ones.
    """
    january, november = grid(JANUARY), grid(NOVEMBER)
    found = defaultdict(list)
    for pair in sorted(january.keys() & november.keys()):
        src, dst = (region.partition(":")[0] for region in pair)
        if (src, dst) != ("gcp", "gcp"):
            found[src, dst].append(steady(pair, november[pair]) / steady(pair, january[pair]))
    return found


@cache
def repeats() -> dict[str, list[float]]:
    """Return, by the source's provider, the greater over the lesser of tests in one survey."""
    tests = defaultdict(list)
    ends = [f"{end}_{what}" for end in ("src", "dst") for what in ("region", "tier")]
    with shared("skyplane/throughput_2022-01.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if (received := float(row["throughput_received"] or 0)) > 0:
                tests[tuple(row[name] for name in ends)].append(received)
    found = defaultdict(list)
    for of_pair, rates in tests.items():
        if len(rates) > 1:
            found[of_pair[0].partition(":")[0]].append(max(rates) / min(rates))
    return found


def near(ratios: list[float]) -> float:
    """Return the share of ratios of two rates by which these are near each other."""
    return float(np.mean(np.abs(np.log(ratios)) <= np.log(NEAR)))


# ---- the points -------------------------------------------------------------------------------


def _single_flows() -> list[Point]:
    """Their rates inside AWS, both directions of a pair, and the product with the round trip."""
    inside = [
        mbps for pair, (mbps, _) in survey().items() if all(end.startswith("aws:") for end in pair)
    ]
    ratios = both_ways(lambda mbps, _: mbps)
    tenth = float(np.quantile(ratios, 0.9))
    found = [
        unlike_flows(spread(inside), " inside AWS", f"{len(inside)} pairs, {SURVEY}"),
        Point(
            f"median {np.median(ratios):.2f}x, 90th percentile {tenth:.2f}x, most "
            f"{max(ratios):.1f}x",
            tenth >= 1.5,
            "1.5x or more for a tenth of the pairs",
            f"{len(ratios)} pairs measured both ways, {SURVEY}",
        ),
    ]
    for provider in ("aws", "gcp"):
        speeds, products = into(provider, lambda mbps, _: mbps), windows_mb(provider)
        found.append(
            Point(
                f"varies by {products['cov']:.0%} around {products['median']:.1f} MB, throughput "
                f"by {speeds['cov']:.0%}",
                products["cov"] < 0.2,
                "by less than 20 %",
                f"{products['samples']} flows at {LEAST_MS:g} ms or more, {SURVEY}",
            )
        )
    return found


def _single_flow_relays() -> list[Point]:
    """Relays of EC2: of the paper's regions and of all; and of other clouds."""
    rtt_ms, regions, aws = round_trips(), january_grid().regions, of("aws")
    rates = BITS_PER_BYTE * WINDOW_MB / rtt_ms  # MB/ms is GB/s
    then = np.isin(np.array(regions), [f"aws:{name}" for name in EC2_2018])
    inside = [gains(rates, some[:, None] & some, some) for some in (then, aws)]
    # Each receiver has its own window: those that the survey saw, else the default.
    seen_mb = {provider: windows_mb(provider)["median"] for provider in ("aws", "gcp")}
    of_each = [seen_mb.get(region.partition(":")[0], WINDOW_MB) for region in regions]
    with_all = gains(BITS_PER_BYTE * np.array(of_each) / rtt_ms, aws[:, None] & aws)
    basis = f"window {WINDOW_MB:g} MB over measured round-trip times, April 2022"
    return [
        *(relayed_flows(some, f"{some['pairs']} pairs, {basis}") for some in inside),
        other_relays(
            with_all,
            f"{with_all['pairs']} pairs, windows of {seen_mb['aws']:.1f} MB into AWS, "
            f"{WINDOW_MB:g} into Azure and {seen_mb['gcp']:.1f} into GCP over round-trip times, "
            "April 2022",
        ),
    ]


def _one_cap(provider: str) -> Point:
    """Many flows meet the same VM cap towards every destination."""
    spreads = [homogeneity(row) for row in aggregates()[of(provider)]]
    alike = sum(one["homogeneous"] for one in spreads)
    return Point(
        f"median {np.median([one['cov'] for one in spreads]):.1%}; {alike} of {len(spreads)} "
        "sources under 10 %",
        alike >= 0.9 * len(spreads),
        "under 10 % for nine sources in ten",
        f"{sum(one['destinations'] for one in spreads)} pairs, {GRID}",
    )


def _relayed_aggregates(provider: str) -> Point:
    """With many flows, relaying gains little throughput."""
    some = gains(aggregates(), of(provider)[:, None] & np.ones(len(aggregates()), bool))
    return Point(
        f"{some['share_1_5']:.1%} of pairs gain 1.5x or more; median {some['median']:.2f}x, "
        f"most {some['maximum']:.1f}x",
        some["share_1_5"] <= 0.05,
        "1.5x for at most 5 % of pairs",
        f"{some['pairs']} pairs, {GRID}",
    )


def _later_rates(provider: str) -> Point:
    """Rates of many flows are stable over time."""
    ratios = [
        ratio
        for (src, _), some in later_over_earlier().items()
        if src == provider
        for ratio in some
    ]
    change = np.exp(np.median(np.abs(np.log(ratios)))) - 1
    return Point(
        f"{near(ratios):.0%} of pairs within {NEAR - 1:.0%} after ten months; median change "
        f"{change:.1%}",
        near(ratios) >= ALIKE,
        f"{ALIKE:.0%} of pairs within {NEAR - 1:.0%}",
        f"{len(ratios)} pairs, 64 connections, January and November 2022",
    )


def _later_round_trips() -> Point:
    earlier, ratios = round_trips_of_pairs(), []
    with shared("rtt_azure_2024-04.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            src, dst = row["src"], row["dst"]
            if before := earlier.get((src, dst)) or earlier.get((dst, src)):
                ratios.append(float(row["rtt_ms"]) / before)
    change = float(np.median(np.abs(np.array(ratios) - 1)))
    return Point(
        f"median change {change:.1%} in two years; {near(ratios):.0%} within {NEAR - 1:.0%}",
        change <= 0.05,
        "median change of 5 % at most",
        f"{len(ratios)} pairs of Azure, April 2022 and April 2024",
    )


def _fees() -> list[Point]:
    """Every relayed gigabyte is charged twice, and relaying is not cost-effective."""
    grid, rtt_ms = january_grid(), round_trips()
    fees = grid.matrix(grid.usd_per_gb, inf) * VOLUME_GB
    known = np.nan_to_num(aggregates())
    sends, receives = known.max(axis=1), known.max(axis=0)
    caps = within_caps(known, sends, receives)
    usual = np.where(np.isfinite(rtt_ms), rtt_ms, 100.0)
    pairs = (caps > 0) & np.isfinite(fees)
    links, egress, ingress = (RateBounds(rates, rates, rates) for rates in (caps, sends, receives))
    vm_usd = np.array([vm_usd_per_h(region) for region in grid.regions])
    relayed = {}
    for name, hour_usd in (("time", inf), ("value", HOUR_USD)):
        gbit_h = BITS_PER_BYTE * VOLUME_GB / S_PER_H
        terms = Terms(gbit_h, fees, vm_usd, 60 / S_PER_H, hour_usd, MARGIN)
        relayed[name] = choose(terms, links, egress, ingress, usual).chosen
    through = pairs & (relayed["time"] != DIRECT)
    src, dst = np.nonzero(through)
    relay = relayed["time"][src, dst]
    dearer = np.median((fees[src, relay] + fees[relay, dst]) / fees[src, dst])
    worth = np.count_nonzero(pairs & (relayed["value"] != DIRECT)) / np.count_nonzero(pairs)
    return [
        Point(
            f"egress fees {dearer:.2f}x in the median where a relay is faster",
            float(dearer) >= 1.5,
            "1.5x or more",
            f"{through.sum()} pairs where a relay gains 1.1x in time, {GRID}; fees of May 2022",
        ),
        Point(
            f"{worth:.1%} of pairs at {HOUR_USD:g} $/h ({through.sum() / pairs.sum():.0%} if only "
            "time counts)",
            bool(worth <= 0.05),
            "pays for at most 5 % of pairs",
            f"{pairs.sum()} pairs, {VOLUME_GB:g} GB each, one VM a region",
        ),
    ]
