"""Time of one exact plan, against the same model through SciPy."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

import numpy as np

import relayd
from benchmarks.service import make_store
from benchmarks.table import judge, quantile, reference_ms, show, timed, times_s, written
from planner.transfer.allocation import greatest_rate_gbps
from planner.transfer.optimum import cost_time_frontier, fastest, least_cost, least_value
from planner.transfer.problem import TransferProblem
from relayd.sources.wan import Wan
from relayd.tables.figures import measured_regions
from tests.planner.grid import Grid, january_grid
from tests.planner.independent import least_cost_usd

REQUESTS = 2000
FEWER = 200
TIME_VALUE_USD_PER_H = 20.0
Asked = tuple[TransferProblem, float]
HEADER = ("", "plans", "median", "p95")
OWN_REGIONS = 50, 100, 300, 1000
MOST_MS = {300: 500, 1000: 3000}
"""Regions to the goal for opening a network with fees and asking for the first plan."""
LATER = 20


def requests(january: Grid, count: int, seed: int = 1) -> list[Asked]:
    """Return requests with 1 to 8 VMs a region, at 1, 1.25, 1.5 and 2 times direct."""
    random = Random(seed)
    asked = []
    for src, dst in january.random_pairs(count, seed):
        vms = random.randint(1, 8)
        transfer = january.transfer(src, dst, vms=vms, volume_gb=random.choice([10, 100, 1000]))
        direct = greatest_rate_gbps(transfer, transfer.direct) / random.choice([1, vms])
        asked.append((transfer, direct * random.choice([1.0, 1.25, 1.5, 2.0])))
    return asked


def row(what: str, seconds: Sequence[float]) -> tuple[str, ...]:
    """Return a row of a table."""
    return (what, str(len(seconds)), written(median(seconds)), written(quantile(seconds, 0.95)))


def optimiser(january: Grid) -> None:
    """Print the time of the optimiser, and of the same model in full."""
    asked = requests(january, REQUESTS)
    feasible = [(t, rate) for t, rate in asked if least_cost(t, rate)]
    above = [(t, r) for t, r in feasible if r > greatest_rate_gbps(t, t.direct) * (1 + 1e-9)]
    transfers = [transfer for transfer, _ in asked]
    gc.collect()
    gc.freeze()

    def value(transfer: TransferProblem) -> object:
        return least_value(transfer, time_value_usd_per_h=TIME_VALUE_USD_PER_H)

    searched, full = "  of these, above direct capacity", "the full model there, through SciPy"
    cases: tuple[tuple[str, Callable[[Any], object], Sequence[Any]], ...] = (
        ("least cost at 1x to 2x direct, feasible", lambda one: least_cost(*one), feasible),
        (searched, lambda one: least_cost(*one), above),
        ("least cost plus time (20 USD/h)", value, transfers),
        ("least time", fastest, transfers),
        ("frontier of 20 points", cost_time_frontier, transfers[:FEWER]),
        (full, lambda one: least_cost_usd(*one), above[:FEWER]),
    )
    seconds = {what: times_s(run, inputs) for what, run, inputs in cases}
    show("The optimiser; 1 to 8 VMs a region", HEADER, (row(*one) for one in seconds.items()))
    search_s, full_s = median(seconds[searched]), median(seconds[full])
    judge("plans that need a search: the full model's time", full_s / search_s, 29, least=True)
    judge("the same, ms", search_s * 1e3 / reference_ms(), 0.25)


def answers(folder: Path) -> None:
    """Print the time of the library's answers on a store, with and without measurements."""
    db, what = make_store(folder)
    wan, random, rows = relayd.open(db), Random(4), []
    known = sorted(measured_regions(wan.network))
    new = [r.id for r in wan.regions() if r.id not in known and not r.is_apart]

    def plan(pair: tuple[str, str]) -> object:
        return wan.plan(*pair, volume_gb=random.uniform(10, 5000))

    medians = []
    for name, ends in (("measured", known), ("one end was not", new)):
        pairs = [
            (random.choice([k for k in known if k != a]), a) for a in random.choices(ends, k=FEWER)
        ]
        times_s(plan, pairs)  # rates of a snapshot are laid out on first use
        rows.append(row(name, seconds := times_s(plan, pairs)))
        medians.append(median(seconds))
        if ends is known:
            judge("wan.plan between measured regions, ms", medians[0] * 1e3 / reference_ms(), 1.2)
            judge("the same, p95", quantile(seconds, 0.95) * 1e3 / reference_ms(), 3)
    judge("wan.plan with an end that nobody measured, times that", medians[1] / medians[0], 1.2)
    show(f"wan.plan on a store; {what}", HEADER, rows)


def _planned(wan: Wan, pair: tuple[str, str]) -> object:
    return wan.plan(*pair, volume_gb=500)


def own_networks(seed: int = 5) -> None:
    """Print the time to open matrices with a fee for each link, and of plans on them."""
    random, rows = np.random.default_rng(seed), []
    for count in OWN_REGIONS:
        names, shape = [f"site{k}" for k in range(count)], (count, count)
        free = {"regions": names, "aggregate_gbps": random.uniform(0.5, 10, shape)}
        fees = random.uniform(0.01, 0.12, shape).round(4)
        pairs = [(f"site{k}", f"site{k + LATER}") for k in range(1 + LATER)]
        later_s = []
        for figures in (free, {**free, "usd_per_gb": fees}):
            first: list[float] = []
            wan = timed(first, relayd.open, figures)
            seconds = times_s(partial(_planned, wan), pairs)
            first.append(seconds[0])
            later_s.append(median(seconds[1:]))
        rows.append((str(count), *map(written, (*first, later_s[1], later_s[0]))))
        if most_ms := MOST_MS.get(count):
            what = f"opening {count} regions with fees, and the first plan, ms"
            judge(what, sum(first) * 1e3 / reference_ms(), most_ms)
            judge("later plans there, times those without fees", later_s[1] / later_s[0], 1.5)
    header = ("regions", "opening", "first plan", "later plans", "these without fees")
    show("Matrices of one's own, with a fee for each link", header, rows)


def main() -> None:
    """Print the tables."""
    optimiser(january_grid())
    own_networks()
    with tempfile.TemporaryDirectory() as folder:
        answers(Path(folder))


if __name__ == "__main__":
    main()
