"""The paper's points on stability: what was measured again ten months, and two years, later."""

from __future__ import annotations

import csv
from collections import defaultdict
from functools import cache

import numpy as np

from scripts.reproduce.point import PROVIDERS, Point
from tests.probes.estimation.cross_validation import JANUARY, NOVEMBER, grid, round_trips, steady
from tests.shared_data import shared

NEAR = 1.1
"""Two tests that differ by less are taken for the same rate."""
ALIKE = 0.9
"""Of pairs: so many must be near for a claim of stability to agree."""


def time_points() -> list[Point]:
    """Return what the open measurements say about stability over months."""
    return [*_rates(), _round_trips()]


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


def _rates() -> list[Point]:
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


def _round_trips() -> Point:
    earlier = round_trips()
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
