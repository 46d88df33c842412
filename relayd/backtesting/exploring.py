"""Replays transfers that learn from each other: exploring, against always the predicted best.

Both know the estimates of the step at which a pair was first estimated, and from then on only the
rates of their own transfers: those measured in a step on the path that was taken. Every step is
one transfer of a pair. Hindsight takes the best of the same paths by the rates of the step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import fsum, inf, log

import numpy as np

from planner.exploring.choice import Belief, Path, Sent, choose
from planner.model.errors import InputError
from planner.model.throughput import RAMP_UP_ROUND_TRIPS
from planner.model.units import MS_PER_S, S_PER_H
from planner.transfer.all_pairs import DIRECT, Terms
from relayd.backtesting.history import Step
from relayd.backtesting.replay import Scene
from relayd.backtesting.result import ExploredHistory, ExploredPolicy

# As many as a plan lists, and so explores, by default.
MOST_RELAYS = 6
# Of pairs times the square of their transfers: some minutes on one core.
MOST_WORK = 30_000_000


@dataclass
class _Pair:
    """The paths of one pair, and their rates in the steps in which all were measured.

    Attributes
    ----------
    relays : list of int
        Positions, with :data:`DIRECT` first.
    paths : list of Path
    at_s : list of float
        Begin of each transfer, seconds since 1970.
    log_gbps : list of list of float
        Logarithms of the rates of all paths, by transfer.
    """

    relays: list[int]
    paths: list[Path]
    at_s: list[float] = field(default_factory=list)
    log_gbps: list[list[float]] = field(default_factory=list)


def explored_history(
    steps: Iterable[Step], scene: Scene, share: float, step_s: float
) -> ExploredHistory:
    """Replay transfers by exploring, by always the predicted best, and by hindsight.

    Parameters
    ----------
    steps : iterable of Step
        The oldest first.
    scene : Scene
    share : float
        Share of the cost of transfers that trials may cost.
    step_s : float

    Raises
    ------
    InputError
        If that is more work than one process does in minutes.
    """
    pairs = [pair for pair in _pairs(steps, scene) if pair.at_s]
    work = sum(len(pair.at_s) ** 2 for pair in pairs)
    if work > MOST_WORK:
        raise InputError(
            "explore",
            f"has {sum(len(pair.at_s) for pair in pairs):,} transfers of {len(pairs):,} pairs to "
            "choose one after the other, which takes too long",
            value=share,
            remedy="Replay fewer pairs, a shorter span, or longer steps.",
        )
    policies = []
    for name, most in (("predicted", 0.0), ("exploring", share)):
        values, trials = [], 0
        for pair in pairs:
            of_pair, tried = _followed(pair, most, step_s)
            values += of_pair
            trials += tried
        policies.append(ExploredPolicy(name, _mean(values), trials))
    best = [
        min(path.value(rate) for path, rate in zip(pair.paths, rates, strict=True))
        for pair in pairs
        for rates in pair.log_gbps
    ]
    policies.append(ExploredPolicy("hindsight", _mean(best), 0))
    return ExploredHistory(share, len(pairs), len(best), tuple(policies))


def _mean(values: list[float]) -> float:
    return fsum(values) / len(values) if values else 0.0


def _followed(pair: _Pair, share: float, step_s: float) -> tuple[list[float], int]:
    """Return the value of each transfer of a pair, and the number of trials among them."""
    sent: list[Sent] = []
    values, trials = [], 0
    for now_s, rates in zip(pair.at_s, pair.log_gbps, strict=True):
        choice = choose(pair.paths, sent, now_s, share)
        had = rates[choice.path]
        trials += choice.path != choice.best
        values.append(pair.paths[choice.path].value(had))
        sent.append(Sent(choice.path, had, now_s + step_s))
    return values, trials


def _pairs(steps: Iterable[Step], scene: Scene) -> list[_Pair]:
    pairs: dict[tuple[int, int], _Pair] = {}
    priced = np.isfinite(scene.terms.egress_usd)
    for step in steps:
        usable = step.estimated & priced & (step.believed.expected > 0)
        for src, dst in np.argwhere(scene.judged & usable).tolist():
            if (src, dst) not in pairs:
                pairs[src, dst] = _first(scene.terms, step, usable, src, dst)
        for (src, dst), pair in pairs.items():
            rates = [_least(step.truth_gbps, src, via, dst) for via in pair.relays]
            if all(rate > 0 for rate in rates):  # neither unknown (NaN) nor down
                pair.at_s.append(step.begin_s)
                pair.log_gbps.append([log(rate) for rate in rates])
    return list(pairs.values())


def _first(terms: Terms, step: Step, usable: np.ndarray, src: int, dst: int) -> _Pair:
    """Return a pair with the paths that look best when it is first estimated."""
    relays = np.flatnonzero(usable[src] & usable[:, dst]).tolist()
    paths = {via: _path(terms, step, src, via, dst) for via in relays}
    relays.sort(key=lambda via: paths[via].value(paths[via].belief.mean))
    taken = [DIRECT, *relays[:MOST_RELAYS]]
    paths[DIRECT] = _path(terms, step, src, DIRECT, dst)
    return _Pair(taken, [paths[via] for via in taken])


def _path(terms: Terms, step: Step, src: int, via: int, dst: int) -> Path:
    low, expected, high = (_least(bound, src, via, dst) for bound in step.believed)
    nodes = [src, dst] if via == DIRECT else [src, via, dst]
    links = [(src, dst)] if via == DIRECT else [(src, via), (via, dst)]
    ramp_s = RAMP_UP_ROUND_TRIPS / MS_PER_S * sum(float(step.rtt_ms[link]) for link in links)
    belief = Belief.of_bounds(low, expected, high)
    if terms.hour_usd == inf:
        return Path(belief, ramp_s, terms.gbps_h * S_PER_H)
    vms_usd_per_h = float(terms.vm_usd_per_h[nodes].sum())
    fixed = sum(float(terms.egress_usd[link]) for link in links)
    fixed += vms_usd_per_h * terms.vm_start_h + terms.hour_usd * ramp_s / S_PER_H
    return Path(belief, fixed, (vms_usd_per_h + terms.hour_usd) * terms.gbps_h)


def _least(rates: np.ndarray, src: int, via: int, dst: int) -> float:
    """Return the lowest rate of a path's links; NaN where one is not known."""
    if via == DIRECT:
        return float(rates[src, dst])
    return float(np.minimum(rates[src, via], rates[via, dst]))
