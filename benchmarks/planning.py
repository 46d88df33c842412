"""Time of one exact plan, against the same model through SciPy."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from random import Random

import relayd
from benchmarks.grid import grid
from benchmarks.service import make_store
from benchmarks.table import judge, median_and_p95, reference_ms, show, times_s, written
from planner.transfer.allocation import greatest_rate_gbps
from planner.transfer.optimum import cost_time_frontier, fastest, least_cost, least_value
from planner.transfer.problem import TransferProblem
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from relayd.tables.figures import measured_regions
from tests.planner.grid import Grid
from tests.planner.independent import least_cost_usd

REQUESTS = 2000
FEWER = 200
TIME_VALUE_USD_PER_H = 20.0
Asked = tuple[TransferProblem, float]


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


def main() -> None:
    """Print the tables."""
    january, name = grid()
    print(f"Planning one transfer on the {name}; 1 to 8 VMs a region")
    asked = requests(january, REQUESTS)
    feasible = [(t, rate) for t, rate in asked if least_cost(t, rate)]
    above = [(t, r) for t, r in feasible if r > greatest_rate_gbps(t, t.direct) * (1 + 1e-9)]
    transfers = [transfer for transfer, _ in asked]
    gc.collect()
    gc.freeze()

    def at_rate(item: Asked) -> object:
        return least_cost(*item)

    def reference(item: Asked) -> object:
        return least_cost_usd(*item)

    def value(transfer: TransferProblem) -> object:
        return least_value(transfer, time_value_usd_per_h=TIME_VALUE_USD_PER_H)

    runs = [
        ("least cost at 1x to 2x direct, feasible", times_s(at_rate, feasible), "150 us, 1 ms"),
        ("  of these, above direct capacity", times_s(at_rate, above), "250 us"),
        ("least cost plus time (20 USD/h)", times_s(value, transfers), ""),
        ("least time", times_s(fastest, transfers), ""),
        ("frontier of 20 points", times_s(cost_time_frontier, transfers[:FEWER]), "10 ms"),
        ("the full model through SciPy", times_s(reference, feasible[:FEWER]), ""),
        ("  of these, above direct capacity", times_s(reference, above[:FEWER]), ""),
    ]
    rows = []
    for what, seconds, target in runs:
        median, p95 = median_and_p95(seconds)
        rows.append((what, str(len(seconds)), written(median), written(p95), target))
    show("The optimiser", ("", "plans", "median", "p95", "target"), rows)
    search_s, full_s = (median_and_p95(runs[at][1])[0] for at in (1, 6))
    print(
        f"  Where a search is needed, the full model takes {full_s / search_s:.0f} times as long."
    )
    judge("plans that need a search: the full model's time", full_s / search_s, 29, least=True)
    judge("the same, ms", search_s * 1e3 / reference_ms(), 0.25)
    recommendations(january)
    with tempfile.TemporaryDirectory() as folder:
        answers(Path(folder))


def answers(folder: Path) -> None:
    """Print the time of the library's answers on a store, with and without measurements."""
    db, what = make_store(folder)
    wan, random, rows = relayd.open(db), Random(4), []
    known = sorted(measured_regions(wan.network))
    new = [r.id for r in wan.regions() if r.id not in known and not r.is_apart]
    medians = []
    for name, ends in (("measured", known), ("one end was not", new)):
        pairs = [
            (random.choice([k for k in known if k != a]), a) for a in random.choices(ends, k=FEWER)
        ]

        def plan(pair: tuple[str, str]) -> object:
            return wan.plan(*pair, volume_gb=random.uniform(10, 5000))

        times_s(plan, pairs)  # rates of a snapshot are laid out on first use
        median, p95 = median_and_p95(times_s(plan, pairs))
        rows.append((name, str(FEWER), written(median), written(p95)))
        medians.append(median)
        if ends is known:
            judge("wan.plan between measured regions, ms", median * 1e3 / reference_ms(), 1.2)
            judge("the same, p95", p95 * 1e3 / reference_ms(), 3)
    judge("wan.plan with an end that nobody measured, times that", medians[1] / medians[0], 1.2)
    show(f"wan.plan on a store; {what}", ("", "plans", "median", "p95"), rows)


def recommendations(january: Grid) -> None:
    """Print the time of a whole recommendation: decision, bounds, reason, advice."""
    network, prices = january.network(), january.prices()
    pairs = january.random_pairs(REQUESTS, seed=2)
    rows = []
    for objective in ("value", "time", "cost"):
        for vms in (1, 4):
            asked = [
                TransferRequest(src, dst, volume_gb=500.0, vms=vms, objective=objective)
                for src, dst in pairs
            ]
            for request in asked[:FEWER]:  # rates of a snapshot are laid out on first use
                recommend(request, network, prices)
            seconds = times_s(lambda request: recommend(request, network, prices), asked)
            median, p95 = median_and_p95(seconds)
            each_s = sum(seconds) / len(seconds)
            rows.append(
                (
                    f"{objective}, {vms} VM{'s' * (vms > 1)}",
                    str(len(asked)),
                    written(median),
                    written(p95),
                    f"{1 / each_s:.0f}",
                )
            )
    header = ("objective", "plans", "median", "p95", "plans/s")
    show("A whole recommendation, with bounds, reason and advice", header, rows)


if __name__ == "__main__":
    main()
