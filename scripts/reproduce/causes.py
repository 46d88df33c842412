"""Causes of differences between grid and paper: the measurement that shows each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import median

import numpy as np

from planner.model.units import BITS_PER_BYTE
from planner.transfer.all_pairs import Floats
from probes.analysis.comparisons import HOMOGENEOUS_COV, NOTEWORTHY, latency_gains
from probes.analysis.evidence import finite, ranks, spread
from scripts.reproduce.grid import (
    NEAR,
    WINDOW_MB,
    aggregates,
    both_ways,
    later_over_earlier,
    near,
    of,
    repeats,
    round_trips,
)
from scripts.reproduce.point import PROVIDERS, gains
from tests.probes.estimation.cross_validation import JANUARY, NOVEMBER, Pair, grid, steady

DRAWS, REGIONS = 200, 11
"""Choices of EC2 regions, and how many the paper has."""
CAP_GBPS = 0.43
"""Of t2.micro (Table 3)."""
BAD = 0.5
"""Of its source's median: a slower test is taken for a bad one."""


def causes() -> list[str]:
    """Return what was measured, or at what other setting, in the order of the table."""
    return [
        _directions(),
        _single_flow_relays(),
        _relays_of_other_clouds(),
        _caps_of_aws(),
        _caps_by_destination("azure"),
        f"{_caps_by_destination('gcp')}; inside GCP over private addresses, in November 2022, "
        f"{_alike(_later_inside_gcp())}",
        _relays("azure"),
        _relays("gcp"),
        _time(),
        _latency(),
    ]


def _directions() -> str:
    ratios = both_ways(lambda mbps, rtt_ms: mbps * rtt_ms)
    return (
        "Throughput times round-trip time, which is the window, differs between both directions "
        f"by {np.median(ratios):.2f}x in the median of {len(ratios)} pairs (90th percentile "
        f"{np.quantile(ratios, 0.9):.2f}x)"
    )


def _single_flow_relays() -> str:
    rates, within = BITS_PER_BYTE * WINDOW_MB / round_trips(), of("aws")
    aws = np.flatnonzero(within)
    random = np.random.default_rng(2018)
    shares = []
    for _ in range(DRAWS):
        chosen = np.zeros(len(rates), bool)
        chosen[random.choice(aws, REGIONS, replace=False)] = True
        shares.append(gains(rates, chosen[:, None] & chosen, chosen)["share_1_5"])
    low, middle, high = np.quantile(shares, (0.05, 0.5, 0.95))
    capped = gains(np.minimum(rates, CAP_GBPS), within[:, None] & within, within)
    return (
        f"{DRAWS} draws of {REGIONS} of the {len(aws)} regions: {middle:.0%} of pairs in the "
        f"median, {low:.0%} to {high:.0%} in nine draws of ten. All regions, flows capped at "
        f"{1000 * CAP_GBPS:.0f} Mbit/s: {capped['share_1_5']:.0%} of {capped['pairs']} pairs"
    )


def _relays_of_other_clouds() -> str:
    """Where it agrees, that hangs on a setting."""
    alike = gains(BITS_PER_BYTE * WINDOW_MB / round_trips(), of("aws")[:, None] & of("aws"))
    return f"With windows of {WINDOW_MB:g} MB everywhere: up to {alike['maximum']:.1f}x"


def _caps_of_aws() -> str:
    rates = [finite(row) for row in aggregates()[of("aws")]]
    good = [row[row >= BAD * np.median(row)] for row in rates]
    left_out = sum(map(len, rates)) - sum(map(len, good))
    bad = {name: _bad_from_aws(name) for name in (JANUARY, NOVEMBER)}
    other = {JANUARY: NOVEMBER, NOVEMBER: JANUARY}
    again = [
        pair in bad[other[name]] for name in bad for pair in bad[name] & grid(other[name]).keys()
    ]
    return (
        f"Without {left_out} tests below half of their source's median, {_alike(good)} sources "
        f"vary by under 10 %. {len(again)} pairs were that slow in January or in November 2022 "
        f"and tested in both: {sum(again)} were slow in both"
    )


def _bad_from_aws(survey_name: str) -> set[Pair]:
    """Return the pairs whose test is far below the others of its source in AWS."""
    by_source: dict[str, dict[Pair, float]] = defaultdict(dict)
    for pair, gbps in grid(survey_name).items():
        if pair[0].startswith("aws:"):
            by_source[pair[0]][pair] = steady(pair, gbps)
    return {
        pair
        for rates in by_source.values()
        for pair, gbps in rates.items()
        if gbps < BAD * median(rates.values())
    }


def _caps_by_destination(provider: str) -> str:
    rates, rtt_ms = aggregates()[of(provider)], round_trips()[of(provider)]
    found = []
    for other, name in PROVIDERS.items():
        sources = [finite(row[of(other)]) for row in rates]
        with_distance = [
            _rank_correlation(row[of(other)], rtt[of(other)])
            for row, rtt in zip(rates, rtt_ms, strict=True)
        ]
        found.append(
            f"to {name} {_alike(sources)} sources vary by under 10 %, the median by "
            f"{median(spread(row)['cov'] for row in sources):.0%} (rank correlation with distance "
            f"{np.nanmedian(with_distance):.2f})"
        )
    return "; ".join(found)


def _later_inside_gcp() -> list[list[float]]:
    """Return the rates of each source to others in GCP, which this survey reached privately."""
    found = defaultdict(list)
    for pair, gbps in grid(NOVEMBER).items():
        if all(region.startswith("gcp:") for region in pair):
            found[pair[0]].append(steady(pair, gbps))
    return list(found.values())


def _relays(provider: str) -> str:
    found = []
    for other, name in PROVIDERS.items():
        some = gains(aggregates(), of(provider)[:, None] & of(other))
        found.append(f"{some['share_1_5']:.1%} of {some['pairs']} pairs to {name}")
    return f"{NOTEWORTHY}x or more: {', '.join(found)}"


def _time() -> str:
    by_pair = "; ".join(
        f"{PROVIDERS[src]} to {PROVIDERS[dst]} {near(ratios):.0%} of {len(ratios)}"
        for (src, dst), ratios in sorted(later_over_earlier().items())
        if src != "aws"
    )
    again = ", ".join(
        f"{PROVIDERS[provider]} {near(ratios):.0%} of {len(ratios)}"
        for provider, ratios in sorted(repeats().items())
    )
    return f"Within {NEAR - 1:.0%} after ten months: {by_pair}. Twice in January alone: {again}"


def _latency() -> str:
    same = sum(of(provider)[:, None] & of(provider) for provider in PROVIDERS) > 0
    inside, between = (latency_gains(round_trips(), pairs) for pairs in (same, ~same))
    return (
        f"Gain 10 % or more: {inside['share_1_1']:.1%} of {inside['pairs']} pairs inside a cloud, "
        f"{between['share_1_1']:.1%} of {between['pairs']} between clouds"
    )


def _alike(sources: Iterable[Iterable[float]]) -> str:
    """Count the sources that have one rate to all destinations, as text."""
    covs = [spread(list(rates))["cov"] for rates in sources]
    return f"{sum(cov < HOMOGENEOUS_COV for cov in covs)} of {len(covs)}"


def _rank_correlation(rates: Floats, rtt_ms: Floats) -> float:
    known = np.isfinite(rates) & np.isfinite(rtt_ms)
    if known.sum() < 3:
        return np.nan
    return float(np.corrcoef(ranks(rates[known]), ranks(rtt_ms[known]))[0, 1])
