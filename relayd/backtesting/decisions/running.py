"""Compares planners on open measurements: who chose what, and what that came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from planner.transfer.all_pairs import DIRECT, Outcomes, best_relays_by_value, outcomes
from planner.transfer.allocation import EQUAL
from probes.estimation.coverage import Coverage
from relayd.backtesting.decisions.planners import Believed, believed, planners_named
from relayd.backtesting.decisions.request import DecisionsRequest
from relayd.backtesting.decisions.result import DecisionsBenchmark, PlannerResult, SplitResult
from relayd.backtesting.decisions.survey import Split, read_survey, splits
from relayd.backtesting.decisions.task import DecisionPlanner, RelayChoice, choices_of
from relayd.catalogue.loading import load_catalogue
from relayd.settings import load_settings


def compared(
    request: DecisionsRequest,
    files: Sequence[str | Path],
    later: str | Path | None = None,
    catalogues: Sequence[str | Path] = (),
) -> DecisionsBenchmark:
    """Compare planners on files of measurements.

    Parameters
    ----------
    request : DecisionsRequest
    files : sequence of str or Path
        One survey: throughput, and round-trip times where there are any.
    later : str or Path, optional
        Throughput of a later survey.
    catalogues : sequence of str or Path
        Catalogue files of one's own.

    Raises
    ------
    InputError
        If a file can't be read, or a planner can't be imported or answers wrongly.
    DataError
        If there is too little to judge by.
    """
    planners, warnings = planners_named(request.planners)
    settings = load_settings()
    catalogue = load_catalogue((*settings.catalogues, *(Path(name) for name in catalogues)))
    survey = read_survey([Path(name) for name in files], request.measured_at_s)
    after = read_survey([Path(later)], request.later_at_s) if later else None
    return DecisionsBenchmark(
        regions=len(survey.regions),
        volume_gb=request.volume_gb,
        connections=request.connections,
        objective=request.objective,
        time_value_usd_per_h=request.time_value_usd_per_h,
        margin=request.margin,
        risk=request.risk,
        splits=tuple(
            judged(split, planners) for split in splits(survey, after, catalogue, request)
        ),
        warnings=warnings,
    )


def judged(split: Split, planners: Mapping[str, DecisionPlanner]) -> SplitResult:
    """Let planners decide a split's transfers, and say what came of it."""
    task = split.task
    known = believed(task)
    judge = _Judge(split, known)
    found = [
        judge.result(name, choices_of(name, planner, task)) for name, planner in planners.items()
    ]
    found.append(judge.result("hindsight", judge.hindsight))
    return SplitResult(
        task.split,
        len(split.truth_gbps),
        len(task.measured_gbps.keys() & split.truth_gbps.keys()),
        len(task.transfers),
        tuple(found),
    )


class _Judge:
    """Knows what was measured afterwards."""

    def __init__(self, split: Split, known: Believed) -> None:
        self._index = index = split.task.network.index
        self._known = known
        self._truth = np.zeros_like(known.rtt_ms)
        for (src, dst), gbps in split.truth_gbps.items():
            self._truth[index[src], index[dst]] = gbps
        self._rows = np.array([index[transfer.src] for transfer in split.task.transfers])
        self._columns = np.array([index[transfer.dst] for transfer in split.task.transfers])
        relay, value = best_relays_by_value(known.terms, self._truth, known.rtt_ms)
        none = np.full_like(relay, DIRECT)
        alone = outcomes(known.terms, self._truth, known.rtt_ms, none).value
        best = np.where(value < alone * (1 - EQUAL), relay, DIRECT)
        chosen = best[self._rows, self._columns]
        self.hindsight = [
            RelayChoice(None if place == DIRECT else known.regions[place]) for place in chosen
        ]
        self._best = self._outcomes(self.hindsight)

    def _outcomes(self, choices: Sequence[RelayChoice]) -> Outcomes:
        """Return what choices come to, one by one."""
        relay = np.full(self._truth.shape, DIRECT, np.int32)
        relay[self._rows, self._columns] = self._places(choices)
        found = outcomes(self._known.terms, self._truth, self._known.rtt_ms, relay)
        return Outcomes(*(figures[self._rows, self._columns] for figures in found))

    def _places(self, choices: Sequence[RelayChoice]) -> list[int]:
        return [DIRECT if choice.relay is None else self._index[choice.relay] for choice in choices]

    def result(self, name: str, choices: Sequence[RelayChoice]) -> PlannerResult:
        found, best = self._outcomes(choices), self._best
        relayed = np.array(self._places(choices)) != DIRECT
        should = np.array(self._places(self.hindsight)) != DIRECT
        achieved = np.minimum(1.0, best.value / found.value)
        regret = np.maximum(0.0, found.value - best.value)
        held = [
            choice.low_gbps <= rate <= choice.high_gbps
            for choice, rate in zip(choices, found.rate_gbps, strict=True)
            if choice.low_gbps is not None and choice.high_gbps is not None
        ]
        return PlannerResult(
            name,
            float(relayed.mean()),
            float((relayed == should).mean()),
            float(achieved.mean()),
            float(np.quantile(achieved, 0.1, method="lower")),
            float(found.rate_gbps.mean()),
            float(found.time_s.mean()),
            float(found.cost_usd.mean()),
            float(found.value.mean()),
            float(regret.mean()),
            float(regret.sum() / found.cost_usd.sum()),
            Coverage.of(sum(held), len(held)) if held else None,
        )
