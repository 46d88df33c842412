"""The January 2022 grid of 63 regions if it is here, else a synthetic one of the same shape."""

from __future__ import annotations

import os
from itertools import permutations
from pathlib import Path
from random import Random

from tests.planner.grid import Grid, read_grid

BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[2] / "shared" / "data"
REGIONS = {"aws": 21, "azure": 15, "gcp": 27}
# Medians and spreads of the real grid by pair of providers, Gbit/s.
USUAL_GBPS = {
    ("aws", "aws"): (4.84, 0.05),
    ("aws", "azure"): (4.86, 0.05),
    ("aws", "gcp"): (5.02, 0.05),
    ("azure", "aws"): (4.3, 0.6),
    ("azure", "azure"): (15.65, 0.1),
    ("azure", "gcp"): (7.9, 0.5),
    ("gcp", "aws"): (6.51, 0.25),
    ("gcp", "azure"): (6.87, 0.1),
    ("gcp", "gcp"): (6.84, 0.1),
}
MOST_GBPS = 16.0
FEE_USD_PER_GB = {True: (0.02, 0.05, 0.08), False: (0.087, 0.09, 0.11, 0.12, 0.147)}


def grid() -> tuple[Grid, str]:
    """Return a grid and what to call it."""
    folder = Path(os.environ.get("RELAYD_SHARED_DATA", BESIDE_THE_REPOSITORY))
    if (folder / "aggregate_2022-01.csv").exists():
        return read_grid(folder), "grid of 63 regions, measured in January 2022"
    return synthetic(), "synthetic grid of 63 regions (the measured one is not here)"


def synthetic(seed: int = 63) -> Grid:
    """Return a grid whose rates spread as on the real one."""
    random = Random(seed)
    regions = tuple(
        f"{provider}:region-{i:02d}" for provider, count in REGIONS.items() for i in range(count)
    )
    pair_gbps, rtt_ms, usd_per_gb = {}, {}, {}
    fees = {
        (region, inside): random.choice(FEE_USD_PER_GB[inside])
        for region in regions
        for inside in (True, False)
    }
    for pair in permutations(regions, 2):
        providers = pair[0].partition(":")[0], pair[1].partition(":")[0]
        usual, spread = USUAL_GBPS[providers]
        pair_gbps[pair] = min(MOST_GBPS, usual * random.lognormvariate(0.0, spread))
        rtt_ms[pair] = random.uniform(5.0, 300.0)
        usd_per_gb[pair] = fees[pair[0], providers[0] == providers[1]]
    return Grid(regions, pair_gbps, rtt_ms, usd_per_gb)
