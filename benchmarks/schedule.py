"""Speed of schedules on the January 2022 grid: ``python -m benchmarks.schedule``.

Transfers over a day between sites, each with a window of half an hour to six hours that starts and
ends on a quarter of an hour, and one in ten without a deadline, at three levels of demand. The time
to admit and schedule is compared with the linear program of the same transfers over direct paths
alone in OR-Tools GLOP, built and solved once: no admission, no relays. Times are those of one core,
as all of it runs on one. Needs the measured grid (tests/shared_data.py).
"""

from __future__ import annotations

import argparse
from statistics import median

import numpy as np

from benchmarks.table import judge, reference_ms, show, timed, with_worst
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.schedule.problem import PendingTransfer, as_shuffle, schedule_problem
from planner.schedule.program import ScheduleProgram
from planner.schedule.recommendation import recommend_schedule
from planner.schedule.request import ScheduleRequest, TimedTransfer
from tests.planner.grid import january_grid

DAY_S = 86_400.0
LEVELS = {"5 %": 0.05, "10 %": 0.1, "20 %": 0.2}
NO_DEADLINE = 10
STEP_S = 900.0


def instance(seed: int, count: int, sites: int, fill: float) -> tuple[Network, ScheduleRequest]:
    """Return transfers that ask for a share of what all sites together can send in a day."""
    random = np.random.default_rng(seed)
    grid = january_grid()
    names = sorted(random.choice(grid.regions, sites, replace=False).tolist())
    network = grid.network().with_(restricted_to=names)
    sizes = random.pareto(1.8, count) + 0.2
    sizes *= fill * DAY_S / 8 * sum(network.caps()[0]) / sizes.sum()
    found: list[TimedTransfer] = []
    while len(found) < count:
        src, dst = random.choice(names, 2, replace=False).tolist()
        link = network.links[src].get(dst)
        if not (rate := link.rate_gbps(64) if link else 0.0):
            continue
        start = STEP_S * int(random.uniform(0, 0.8 * DAY_S) / STEP_S)
        window = STEP_S * int(random.uniform(1800, 6 * 3600) / STEP_S)
        number = len(found)
        found.append(
            TimedTransfer(
                *(str(number), src, dst, float(min(sizes[number], 0.9 * window * rate / 8))),
                *(float(start), float(start + window) if number % NO_DEADLINE else None),
                int(random.integers(0, 3)),
            )
        )
    return network, ScheduleRequest(tuple(found), explain=0, vms=1)


def direct_program(request: ScheduleRequest, network: Network, prices: Prices) -> None:
    """Build and solve the linear program of the transfers over direct paths alone."""
    pending = [PendingTransfer(t, t.volume_gb) for t in request.transfers]
    direct = ScheduleRequest(request.transfers, relays="none", vms=1)
    problem = as_shuffle(direct, pending, network, prices)
    figures = schedule_problem(direct, problem, pending, 0.0)
    program = ScheduleProgram(figures)
    program.put(list(program.shares), "wanted")
    program.most_worth(dict.fromkeys(program.shares, 1.0))


def main() -> None:
    """Print a table: seconds of one core, medians and worst over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--transfers", type=int, default=200)
    parser.add_argument("--sites", type=int, default=20)
    options = parser.parse_args()
    prices = january_grid().prices()
    rows = []
    for name, fill in LEVELS.items():
        plain: list[float] = []
        whole: list[float] = []
        refused = []
        for seed in range(options.seeds):
            network, request = instance(seed, options.transfers, options.sites, fill)
            timed(plain, direct_program, request, network, prices)
            plan = timed(whole, recommend_schedule, request, network, prices)
            refused.append(plan.refused)
        what = f"schedule of {options.transfers} transfers, {name}, s"
        judge(what, median(whole) / reference_ms(), 1)
        rows.append((name, with_worst(whole), f"{median(refused):.0f}", with_worst(plain)))
    show(
        f"{options.transfers} transfers over a day between {options.sites} sites, {options.seeds} "
        "draws: seconds of one core, median (worst)",
        ("demand", "schedule", "refused", "one direct program"),
        rows,
    )


if __name__ == "__main__":
    main()
