"""Makes every number and figure of docs/shuffle-study.md: ``python -m scripts.shuffle_study``.

Random sites of the January 2022 grid shuffle in two views: measured caps and paths with as many
connections as it takes, and two TCP flows for each transfer. Needs the shared measurements
(tests/shared_data.py) and matplotlib (the ``study`` group).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby
from typing import NamedTuple

import numpy as np

from benchmarks.table import write_table
from planner.fields.shared import DEFAULT_CONNECTIONS_OF_MANY
from planner.model.network import Network
from planner.model.shared_resources import Floats
from planner.shuffle.recommendation import recommend_shuffle
from planner.shuffle.request import ShuffleRequest
from scripts.console_blocks import ROOT
from tests.planner.grid import january_grid

PAGE = ROOT / "docs" / "shuffle-study.md"
SIZES = (6, 12, 24, 40)
SHOWN = (6, 40)  # in the table; the figures have all
SEEDS = 20
# What a Linux receiver with default settings advertises at most: half of tcp_rmem's 6 MiB.
WINDOW_MB = 3.0
PROVIDERS = ("aws", "azure", "gcp")
NAMES = {"aws": "AWS", "azure": "Azure", "gcp": "GCP", "": "all three"}
VIEWS = {"caps": "measured caps and paths", "flow": "two TCP flows a transfer"}
Demands = Callable[[np.random.Generator, int], Floats]


def _hot(random: np.random.Generator, n: int) -> Floats:
    volumes = np.full((n, n), 10.0)
    volumes[:, random.integers(n)] = 300.0
    return volumes


DEMANDS: dict[str, Demands] = {
    "uniform": lambda _, n: np.full((n, n), 10.0),
    "skewed": lambda random, n: 10 * (random.pareto(1.2, (n, n)) + 0.1),
    "hot destination": _hot,
}


class Case(NamedTuple):
    """One shuffle, planned."""

    view: str
    demands: str
    provider: str
    sites: int
    planning: float  # time without a plan over that of the best direct rates
    relaying: float  # time of the best direct rates over that with relays
    fees: float  # egress fees with relays over those without


@cache
def network(view: str) -> Network:
    """Return the grid as one of the two views sees it."""
    grid = january_grid()
    if view == "caps":
        return grid.network()
    rtt_ms = np.maximum(grid.matrix(grid.rtt_ms, 100.0), 0.5)
    return Network.from_matrices(
        grid.regions,
        grid.matrix(grid.pair_gbps, 0.0),
        rtt_ms=rtt_ms,
        per_flow_mbps=WINDOW_MB * 8 / rtt_ms * 1000,
    )


def shuffle_of(
    view: str, demands: str, sites: int, seed: int, provider: str = ""
) -> tuple[ShuffleRequest, Network]:
    """Return a shuffle among random sites, of one provider or of all."""
    random = np.random.default_rng(seed)
    of = [region for region in january_grid().regions if region.startswith(provider)]
    regions = [of[i] for i in np.sort(random.choice(len(of), sites, replace=False))]
    volumes, part = DEMANDS[demands](random, sites), network(view).with_(restricted_to=regions)
    volume_gb = {
        (a, b): float(volumes[i, j])
        for i, a in enumerate(regions)
        for j, b in enumerate(regions)
        if i != j and b in part.links.get(a, {})
    }
    # Two flows a transfer without a plan; a plan may give some one, and others several.
    connections = DEFAULT_CONNECTIONS_OF_MANY if view == "caps" else 2 * (sites - 1)
    return ShuffleRequest(volume_gb, margin=0.0, vms=1, connections=connections), part


def case(view: str, demands: str, sites: int, seed: int, provider: str = "") -> Case:
    """Plan one shuffle."""
    request, part = shuffle_of(view, demands, sites, seed, provider)
    plan = recommend_shuffle(request, part, january_grid().prices())
    direct, without_s = plan.direct, plan.equal_share.duration_s
    assert direct.duration_s
    assert direct.cost_usd
    assert without_s
    return Case(
        *(view, demands, provider, sites),
        planning=without_s / direct.duration_s,
        relaying=direct.duration_s / plan.duration_s,
        fees=plan.cost_usd.egress / direct.cost_usd.egress,
    )


def by_size() -> list[Case]:
    """Return the cases of the first table."""
    return [
        case(view, demands, sites, seed)
        for view in VIEWS
        for demands in DEMANDS
        for sites in SIZES
        for seed in range(SEEDS)
    ]


def by_provider() -> list[Case]:
    """Return the cases of the second table: uniform demands among 12 sites."""
    return [
        case(view, "uniform", 12, seed, provider)
        for view in VIEWS
        for provider in ("", *PROVIDERS)
        for seed in range(SEEDS)
    ]


def rows(cases: Iterable[Case], key: Callable[[Case], tuple[object, ...]]) -> list[str]:
    """Return rows of a table: medians, and the lowest and highest decile of relaying."""
    found = []
    for names, group in groupby(cases, key):
        some = list(group)
        planning, relaying, fees = (
            np.array([getattr(one, what) for one in some])
            for what in ("planning", "relaying", "fees")
        )
        low, middle, high = np.quantile(relaying, [0.1, 0.5, 0.9])
        worth = np.mean(relaying >= 1.1)
        found.append(
            f"| {' | '.join(map(str, names))} | {np.median(planning):.2f} | {middle:.2f} | "
            f"{low:.2f} to {high:.2f} | {worth:.0%} | {np.median(planning * relaying):.2f} | "
            f"{np.median(fees):.2f} |"
        )
    return found


def size_rows(cases: Iterable[Case]) -> list[str]:
    """Return the rows of the table by number of sites."""
    return rows(cases, lambda one: (VIEWS[one.view], one.demands, one.sites))


def provider_rows(cases: Iterable[Case]) -> list[str]:
    """Return the rows of the table by provider."""
    return rows(cases, lambda one: (VIEWS[one.view], NAMES[one.provider]))


def main() -> None:
    """Write the tables and the figures."""
    sizes, providers = by_size(), by_provider()
    text = PAGE.read_text()
    text = write_table(text, "sizes", size_rows(c for c in sizes if c.sites in SHOWN))
    text = write_table(text, "providers", provider_rows(providers))
    PAGE.write_text(text)
    # Only here: the numbers need no matplotlib.
    from scripts.figures import draw_fees, draw_gains

    draw_gains(sizes, PAGE.with_name("shuffle-study-gains.svg"))
    draw_fees(sizes, PAGE.with_name("shuffle-study-fees.svg"))
    print("\n".join([*size_rows(sizes), *provider_rows(providers)]), file=sys.stderr)


if __name__ == "__main__":
    main()
