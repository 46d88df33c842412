"""Gain from exploring with many transfers: ``python -m benchmarks.exploring``.

Simulated networks whose paths keep their rates, jump, or wander; and, with ``--surveys THROUGHPUT
LATENCY``, measured ones: estimates are those of a split of ``benchmarks.decisions``, and what was
measured is the truth. The reference always takes the path that is predicted to be best by estimates
and by the same outcomes of the paths that were used.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp, log, sqrt
from pathlib import Path as FilePath
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.decisions.survey import JANUARY_2022_S, Split, read_survey, splits
from benchmarks.table import show
from planner.exploring.choice import Belief, Path, Sent, choose
from planner.exploring.outcome import DIRECT
from planner.transfer.recommendation import recommend
from planner.transfer.request import TransferRequest
from relayd.catalogue.loading import load_catalogue

PATHS = 6
GAP_S = 1800.0
# Of the logarithm: what estimates say they are off by, noise of one outcome, jumps, a day's walk.
ESTIMATES, NOISE, JUMP, WALK_A_DAY = 0.25, 0.05, 0.35, 0.3
JUMPS_A_TRANSFER = 0.01
SHARES = (0.0, 0.01, 0.05)

Kind = Literal["still", "jumping", "wandering"]
Floats = NDArray[np.float64]
NETWORKS: dict[str, tuple[Kind, float]] = {
    "still": ("still", ESTIMATES),
    "still, estimates off by 2 %": ("still", 0.02),
    "jumping": ("jumping", ESTIMATES),
    "wandering": ("wandering", ESTIMATES),
}


class Run(NamedTuple):
    """Costs of transfers at the true levels, by the policy and with the levels known.

    What trials cost more than was predicted of the best path when they were made: all together, and
    one at most.
    """

    cost: float
    least: float
    trials: int
    trials_cost: float
    worst_trial: float


def followed(
    paths: Sequence[Path],
    levels_at: Callable[[int], Floats],
    share: float,
    transfers: int,
    random: np.random.Generator,
) -> Run:
    """Return the costs of transfers in time, where only used paths show their rate.

    Parameters
    ----------
    paths : sequence of Path
    levels_at : callable
        The logarithms of all rates at a transfer.
    """
    sent: list[Sent] = []
    cost = least = trials_cost = worst = 0.0
    trials = 0
    for number in range(transfers):
        now_s, levels = number * GAP_S, levels_at(number)
        noise = random.normal(0.0, NOISE, len(paths))
        choice = choose(paths, sent, now_s, share)
        outcome = float(levels[choice.path] + noise[choice.path])
        if choice.path != choice.best:
            trials += 1
            more = max(0.0, exp(-outcome) - exp(-choice.beliefs[choice.best].mean))
            trials_cost += more
            worst = max(worst, more)
        sent.append(Sent(choice.path, outcome, now_s + GAP_S / 2))
        cost += exp(-float(levels[choice.path]))
        least += exp(-float(levels.max()))
    return Run(cost, least, trials, trials_cost, worst)


def run(seed: int, share: float, kind: Kind, transfers: int, off: float = ESTIMATES) -> Run:
    """Return a run on a simulated network, which depends on seed, kind and `off` alone.

    Parameters
    ----------
    off : float
        Spread of the logarithm by which estimates are off, independent of their bounds.
    """
    random = np.random.default_rng(seed)
    means = np.log(5.0) + random.normal(0.0, 0.2, PATHS)
    levels = np.empty((transfers, PATHS))
    now = means + random.normal(0.0, off, PATHS)
    for number in range(transfers):
        jumps = random.random(PATHS) < JUMPS_A_TRANSFER
        to, steps = random.normal(0.0, 1.0, (2, PATHS))
        if kind == "jumping":
            now = np.where(jumps, means + JUMP * to, now)
        elif kind == "wandering":
            now = now + WALK_A_DAY * sqrt(GAP_S / 86400.0) * steps
        levels[number] = now
    paths = [Path(Belief(float(mean), ESTIMATES**2), 0.0, 1.0) for mean in means]
    return followed(paths, levels.__getitem__, share, transfers, random)


def surveyed(split: Split, pairs: int, share: float, transfers: int) -> list[Run]:
    """Return runs between some pairs of a survey, whose rates are as measured and stay so."""
    random = np.random.default_rng(0)
    found = []
    task, truth = split.task, split.truth_gbps
    for at in random.choice(len(task.transfers), pairs, replace=False).tolist():
        request = replace(task.transfers[at], explore=0.01)
        plan = recommend(request, task.network, task.prices)
        assert plan.exploration
        paths, rates = [], []
        for known in plan.exploration.rates:
            hops = [request.src, *([known.via] if known.via != DIRECT else []), request.dst]
            links = list(pairwise(hops))
            if all(link in truth for link in links):
                belief = Belief.of_bounds(known.gbps_low, known.gbps, known.gbps_high)
                paths.append(Path(belief, 0.0, 1.0))
                rates.append(log(min(truth[link] for link in links)))
        levels = np.tile(rates, (transfers, 1))
        noise = np.random.default_rng(at)
        found.append(followed(paths, levels.__getitem__, share, transfers, noise))
    return found


def main() -> None:
    """Print the loss of each policy against knowing the rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--surveys", nargs=2, type=FilePath, metavar=("THROUGHPUT", "LATENCY"))
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--transfers", type=int, default=120)
    options = parser.parse_args()
    seeds, transfers = options.seeds, options.transfers
    runs = {
        (name, share): [run(seed, share, kind, transfers, off) for seed in range(seeds)]
        for name, (kind, off) in NETWORKS.items()
        for share in SHARES
    }
    if options.surveys:
        like = TransferRequest("from", "to", volume_gb=100.0, objective="time", vms=1)
        survey = read_survey(options.surveys, JANUARY_2022_S)
        for split in splits(survey, None, load_catalogue(()), like):
            for share in SHARES:
                name = f"survey, {split.task.split} known"
                runs[name, share] = surveyed(split, seeds, share, transfers)
    rows = []
    for (name, share), of_share in runs.items():
        lost = sum(one.cost for one in of_share) / sum(one.least for one in of_share) - 1
        trials = sum(one.trials for one in of_share) / len(of_share)
        policy = f"explore {share:.0%}" if share else "predicted best"
        rows.append((name, policy, f"{lost:.2%}", f"{trials:.1f}"))
    show(
        f"{transfers} transfers between each of {seeds} pairs of regions: time "
        "beyond that of who knows all rates, and trials a pair",
        ("network", "policy", "time lost", "trials"),
        rows,
    )


if __name__ == "__main__":
    main()
