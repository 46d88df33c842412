"""The paper's points on open measurements of 2022: 63 regions, and a survey of single flows."""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import cache
from math import inf

import numpy as np

from planner.model.units import BITS_PER_BYTE, MS_PER_S, S_PER_H
from planner.transfer.all_pairs import DIRECT, Floats, RateBounds, Terms, choose, within_caps
from probes.analysis.comparisons import distribution, homogeneity
from probes.analysis.evidence import Record, spread
from scripts.reproduce.point import (
    PROVIDERS,
    Point,
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
    "aws:us-east-1",
    "aws:us-west-1",
    "aws:us-west-2",
    "aws:sa-east-1",
    "aws:eu-west-1",
    "aws:eu-central-1",
    "aws:ap-northeast-1",
    "aws:ap-northeast-2",
    "aws:ap-southeast-1",
    "aws:ap-southeast-2",
    "aws:ap-south-1",
)


def grid_points() -> list[Point]:
    """Return every point that the grid and the survey can say something about."""
    return [
        *_single_flows(),
        *_single_flow_relays(),
        *_aggregates(),
        *_aggregate_relays(),
        *_later_rates(),
        _later_round_trips(),
        *_latency(),
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


def survey_windows(provider: str) -> Record:
    """Return the windows, in MB, that explain the single flows into a provider's regions."""
    return spread(
        [
            mbps * rtt_ms / BITS_PER_BYTE / MS_PER_S
            for (_, dst), (mbps, rtt_ms) in survey().items()
            if dst.startswith(f"{provider}:") and rtt_ms >= LEAST_MS
        ]
    )


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


def gains(rates: Floats, pairs: np.ndarray, relays: np.ndarray | None = None) -> Record:
    """Return the gains of some pairs from the best of some relays, of all by default.

    The caps of VMs are the largest rates in and out of their regions.
    """
    known = np.nan_to_num(rates)
    np.fill_diagonal(known, 0.0)
    forward = np.minimum(known.max(axis=0), known.max(axis=1))
    if relays is not None:
        forward = np.where(relays, forward, 0.0)
    found = np.full(known.shape, np.nan)
    for src, dst in np.argwhere(pairs & (known > 0)):
        through = np.minimum(np.minimum(known[src], known[:, dst]), forward)
        found[src, dst] = max(1.0, through.max() / known[src, dst])
    return distribution(found)


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
    with shared("skyplane/throughput_2022-01.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            ends = tuple(
                row[f"{end}_{what}"] for end in ("src", "dst") for what in ("region", "tier")
            )
            if (received := float(row["throughput_received"] or 0)) > 0:
                tests[ends].append(received)
    found = defaultdict(list)
    for ends, rates in tests.items():
        if len(rates) > 1:
            found[ends[0].partition(":")[0]].append(max(rates) / min(rates))
    return found


def near(ratios: list[float]) -> float:
    """Return the share of ratios of two rates by which these are near each other."""
    return float(np.mean(np.abs(np.log(ratios)) <= np.log(NEAR)))


# ---- the points -------------------------------------------------------------------------------


def _single_flows() -> list[Point]:
    flows = survey()
    inside = {pair: flow for pair, flow in flows.items() if _both(pair, "aws")}
    rates = spread([mbps for mbps, _ in inside.values()])
    both_ways = [
        max(mbps, flows[dst, src][0]) / min(mbps, flows[dst, src][0])
        for (src, dst), (mbps, _) in flows.items()
        if src < dst and (dst, src) in flows and src.partition(":")[0] == dst.partition(":")[0]
    ]
    found = [
        unlike_flows(rates, " inside AWS", f"{len(inside)} pairs, {SURVEY}"),
        Point(
            "Both directions of a pair are not alike (3.2.1), inside one cloud",
            "146 and 56 Mbit/s, 2.6x",
            f"median {np.median(both_ways):.2f}x, 90th percentile "
            f"{np.quantile(both_ways, 0.9):.2f}x, most {max(both_ways):.1f}x",
            float(np.quantile(both_ways, 0.9)) >= 1.5,
            "1.5x or more for a tenth of the pairs",
            f"{len(both_ways)} pairs measured both ways, {SURVEY}",
        ),
    ]
    for provider in ("aws", "gcp"):
        speeds = spread(
            [
                mbps
                for (_, dst), (mbps, rtt_ms) in flows.items()
                if dst.startswith(f"{provider}:") and rtt_ms >= LEAST_MS
            ]
        )
        products = survey_windows(provider)
        found.append(
            Point(
                "The bandwidth-delay product of single flows is nearly the same for all pairs "
                f"(3.2.2), into {PROVIDERS[provider]}",
                "nearly identical",
                f"varies by {products['cov']:.0%} around {products['median']:.1f} MB, throughput "
                f"by {speeds['cov']:.0%}",
                products["cov"] < 0.2,
                "by less than 20 %",
                f"{products['samples']} flows at {LEAST_MS:g} ms or more, {SURVEY}",
            )
        )
    return found


def _single_flow_relays() -> list[Point]:
    rtt_ms = round_trips()
    rates = BITS_PER_BYTE * WINDOW_MB / rtt_ms  # MB/ms is GB/s
    aws = of("aws")
    pairs = aws[:, None] & aws
    then = np.isin(np.array(january_grid().regions), EC2_2018)
    alone_then, alone = gains(rates, then[:, None] & then, then), gains(rates, pairs, aws)
    # Each receiver has its own window: those that the survey saw, else the default.
    windows_mb = {provider: survey_windows(provider)["median"] for provider in ("aws", "gcp")}
    into = [
        windows_mb.get(region.partition(":")[0], WINDOW_MB) for region in january_grid().regions
    ]
    with_all = gains(BITS_PER_BYTE * np.array(into) / rtt_ms, pairs)
    basis = f"window {WINDOW_MB:g} MB over measured round-trip times, April 2022"
    return [
        *(
            relayed_flows(some, f": {regions} regions", f"{some['pairs']} pairs, {basis}")
            for regions, some in (("11", alone_then), (f"all {aws.sum()}", alone))
        ),
        other_relays(
            with_all,
            ")",
            f"{with_all['pairs']} pairs, windows of {windows_mb['aws']:.1f} MB into AWS, "
            f"{WINDOW_MB:g} into Azure and {windows_mb['gcp']:.1f} into GCP over round-trip times, "
            "April 2022",
        ),
    ]


def _aggregates() -> list[Point]:
    rates, regions = aggregates(), january_grid().regions
    found = []
    for provider, name in PROVIDERS.items():
        spreads = [
            homogeneity(row)
            for region, row in zip(regions, rates, strict=True)
            if region.startswith(f"{provider}:")
        ]
        covs = [one["cov"] for one in spreads]
        alike = sum(one["homogeneous"] for one in spreads)
        found.append(
            Point(
                "Many flows meet the same VM cap towards every destination (3.2.2, Table 3: "
                f"coefficient of variation over destinations), from {name}",
                "2.5 % (t2.micro), 0.8 % (m4.16xlarge)",
                f"median {np.median(covs):.1%}; {alike} of {len(spreads)} sources under 10 %",
                alike >= 0.9 * len(spreads),
                "under 10 % for nine sources in ten",
                f"{sum(one['destinations'] for one in spreads)} pairs, {GRID}",
            )
        )
    return found


def _aggregate_relays() -> list[Point]:
    rates = aggregates()
    found = []
    for provider, name in PROVIDERS.items():
        pairs = of(provider)[:, None] & np.ones(len(rates), bool)
        some = gains(rates, pairs)
        found.append(
            Point(
                f"With many flows, relaying gains little throughput (4), from {name}",
                "little scope",
                f"{some['share_1_5']:.1%} of pairs gain 1.5x or more; "
                f"median {some['median']:.2f}x, most {some['maximum']:.1f}x",
                some["share_1_5"] <= 0.05,
                "1.5x for at most 5 % of pairs",
                f"{some['pairs']} pairs, {GRID}",
            )
        )
    return found


def _later_rates() -> list[Point]:
    found = []
    for provider, name in PROVIDERS.items():
        ratios = [
            ratio
            for (src, _), some in later_over_earlier().items()
            if src == provider
            for ratio in some
        ]
        change = np.exp(np.median(np.abs(np.log(ratios)))) - 1
        found.append(
            Point(
                f"Many flows' rates are stable over time (3.2.2, Figure 2b), from {name}",
                "over 500 s, and several days",
                f"{near(ratios):.0%} of pairs within {NEAR - 1:.0%} after ten months; median "
                f"change {change:.1%}",
                near(ratios) >= ALIKE,
                f"{ALIKE:.0%} of pairs within {NEAR - 1:.0%}",
                f"{len(ratios)} pairs, 64 connections, January and November 2022",
            )
        )
    return found


def _later_round_trips() -> Point:
    earlier = round_trips_of_pairs()
    ratios = []
    with shared("rtt_azure_2024-04.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            src, dst = row["src"], row["dst"]
            if before := earlier.get((src, dst)) or earlier.get((dst, src)):
                ratios.append(float(row["rtt_ms"]) / before)
    change = float(np.median(np.abs(np.array(ratios) - 1)))
    return Point(
        "Round-trip times are the same months later (3.3: August 2017 and January 2018)",
        "quantitatively similar",
        f"median change {change:.1%} in two years; {near(ratios):.0%} within {NEAR - 1:.0%}",
        change <= 0.05,
        "median change of 5 % at most",
        f"{len(ratios)} pairs of Azure, April 2022 and April 2024",
    )


def _latency() -> list[Point]:
    rtt_ms, regions = round_trips(), january_grid().regions
    return latency_points(rtt_ms, regions, "round-trip times, April 2022")


def _exactly(rates: Floats) -> RateBounds:
    return RateBounds(rates, rates, rates)


def _fees() -> list[Point]:
    grid, rates, rtt_ms = january_grid(), aggregates(), round_trips()
    fees = grid.matrix(grid.usd_per_gb, inf) * VOLUME_GB
    known = np.nan_to_num(rates)
    sends, receives = known.max(axis=1), known.max(axis=0)
    caps = within_caps(known, sends, receives)
    usual = np.where(np.isfinite(rtt_ms), rtt_ms, 100.0)
    pairs = (caps > 0) & np.isfinite(fees)
    relayed = {}
    for name, hour_usd in (("time", inf), ("value", HOUR_USD)):
        terms = Terms(
            BITS_PER_BYTE * VOLUME_GB / S_PER_H,
            fees,
            np.array([vm_usd_per_h(region) for region in grid.regions]),
            60 / S_PER_H,
            hour_usd,
            MARGIN,
        )
        relayed[name] = choose(
            terms, _exactly(caps), _exactly(sends), _exactly(receives), usual
        ).chosen
    through = pairs & (relayed["time"] != DIRECT)
    src, dst = np.nonzero(through)
    relay = relayed["time"][src, dst]
    dearer = (fees[src, relay] + fees[relay, dst]) / fees[src, dst]
    worth = np.count_nonzero(pairs & (relayed["value"] != DIRECT)) / np.count_nonzero(pairs)
    return [
        Point(
            "Connections are free and a relay is not: every relayed gigabyte is charged twice (4)",
            "pay extra",
            f"egress fees {np.median(dearer):.2f}x in the median where a relay is faster",
            float(np.median(dearer)) >= 1.5,
            "1.5x or more",
            f"{through.sum()} pairs where a relay gains 1.1x in time, {GRID}; fees of May 2022",
        ),
        Point(
            "Relaying is not cost-effective for bandwidth (abstract)",
            "little scope",
            f"{worth:.1%} of pairs at {HOUR_USD:g} $/h ({through.sum() / pairs.sum():.0%} if only "
            "time counts)",
            bool(worth <= 0.05),
            "pays for at most 5 % of pairs",
            f"{pairs.sum()} pairs, {VOLUME_GB:g} GB each, one VM a region",
        ),
    ]


def _both(pair: tuple[str, str], provider: str) -> bool:
    return all(end.startswith(f"{provider}:") for end in pair)
