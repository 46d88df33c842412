"""Compare planners on open measurements: ``python -m benchmarks.decisions``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.decisions.planners import (
    PLANNERS,
    DecisionPlanner,
    RelayChoice,
    choices_of,
    planner_named,
)
from benchmarks.decisions.survey import JANUARY_2022_S, NOVEMBER_2022_S, Split, read_survey, splits
from benchmarks.table import show
from planner.model.errors import RelaydError
from planner.model.units import duration_text, gbps_text, usd_text
from planner.transfer.all_pairs import DIRECT, outcomes
from planner.transfer.request import TransferRequest
from probes.analysis.evidence import Coverage
from relayd.catalogue.loading import load_catalogue
from relayd.times import seconds_of

Record: TypeAlias = dict[str, Any]


def judged(split: Split, planners: Mapping[str, DecisionPlanner]) -> Record:
    """Let planners decide a split's transfers, and return the results.

    Those of a planner are shares and means, as docs/bench-decisions.md counts them; ``value`` is
    cost plus time in USD, or seconds where time alone counts, and ``coverage`` None where a planner
    states no bounds.
    """
    task, index = split.task, split.task.network.index
    truth = np.zeros_like(task.rtt_ms)
    for (src, dst), gbps in split.truth_gbps.items():
        truth[index[src], index[dst]] = gbps
    hindsight = task.best(truth)
    best = outcomes(task.terms, truth, task.rtt_ms, hindsight).value[task.ends]

    def result(name: str, choices: Sequence[RelayChoice]) -> Record:
        chosen = np.full(truth.shape, DIRECT, np.int32)
        chosen[task.ends] = [DIRECT if one.relay is None else index[one.relay] for one in choices]
        rate, time_s, cost_usd, value = (
            figures[task.ends] for figures in outcomes(task.terms, truth, task.rtt_ms, chosen)
        )
        relayed, achieved = chosen[task.ends] != DIRECT, np.minimum(1.0, best / value)
        regret = np.maximum(0.0, value - best)
        held = [
            one.low_gbps <= gbps <= one.high_gbps
            for one, gbps in zip(choices, rate.tolist(), strict=True)
            if one.low_gbps is not None and one.high_gbps is not None
        ]
        figures = {
            "relayed": relayed.mean(),
            "right": (relayed == (hindsight[task.ends] != DIRECT)).mean(),
            "achieved": achieved.mean(),
            "achieved_p10": np.quantile(achieved, 0.1, method="lower"),
            "throughput_gbps": rate.mean(),
            "time_s": time_s.mean(),
            "cost_usd": cost_usd.mean(),
            "value": value.mean(),
            "regret": regret.mean(),
            "regret_per_usd": regret.sum() / cost_usd.sum(),
        }
        coverage = asdict(Coverage.of(sum(held), len(held))) if held else None
        shares = {what: float(figure) for what, figure in figures.items()}
        return {"planner": name, "coverage": coverage, **shares}

    found = []
    for name, planner in planners.items():
        try:
            found.append(result(name, choices_of(name, planner, task)))
        except ImportError as error:
            print(f"{name} is left out: it can't be imported ({error})", file=sys.stderr)
    found.append(result("hindsight", list(map(RelayChoice, task.relays_of(hindsight)))))
    return {
        "split": task.split,
        "links": len(split.truth_gbps),
        "known": len(task.measured_gbps.keys() & split.truth_gbps.keys()),
        "decisions": len(task.transfers),
        "planners": found,
    }


def _show(split: Record, *, by_time: bool) -> None:
    rows = []
    for one in split["planners"]:
        shares = (one[name] for name in ("relayed", "right", "achieved", "achieved_p10"))
        per_usd = one["regret_per_usd"]
        rows.append(
            (
                one["planner"],
                *(f"{share:.1%}" for share in shares),
                gbps_text(one["throughput_gbps"]),
                usd_text(one["cost_usd"]),
                duration_text(one["regret"]) if by_time else usd_text(one["regret"]),
                f"{per_usd:.2f} s" if by_time else f"{per_usd:.4f}",
                f"{one['coverage']['share']:.1%}" if one["coverage"] else "-",
            )
        )
    head = "relayed", "right", "achieved", "p10", "Gbit/s", "$", "regret", "per $", "in bounds"
    told = f"{split['known']:,} of {split['links']:,} links are known"
    show(f"{split['split']}: {told}, {split['decisions']:,} decisions", ("planner", *head), rows)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="one survey")
    parser.add_argument("--later", type=Path, metavar="FILE", help="throughput of a later survey")
    parser.add_argument("--planner", action="append", default=[], metavar="MODULE:FUNCTION")
    parser.add_argument("--volume-gb", type=float, default=100.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--objective", choices=("value", "time", "cost"), default="value")
    parser.add_argument("--measured-at", type=seconds_of, default=JANUARY_2022_S, metavar="TIME")
    parser.add_argument("--later-at", type=seconds_of, default=NOVEMBER_2022_S, metavar="TIME")
    parser.add_argument("--catalogue", action="append", default=[], type=Path, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="all figures as JSON")
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Compare planners and print a table for each split."""
    options = _options().parse_args(words)
    like = TransferRequest(
        "from",
        "to",
        volume_gb=options.volume_gb,
        connections=options.connections,
        objective=options.objective,
        vms=1,
    )
    try:
        planners = PLANNERS | {name: planner_named(name) for name in options.planner}
        survey = read_survey(options.files, options.measured_at)
        later = read_survey([options.later], options.later_at) if options.later else None
        found = [
            judged(split, planners)
            for split in splits(survey, later, load_catalogue(options.catalogue), like)
        ]
    except (RelaydError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for split in found:
            _show(split, by_time=options.objective == "time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
