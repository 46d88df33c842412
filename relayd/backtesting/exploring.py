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
from planner.transfer.all_pairs import Terms
from relayd.backtesting.history import Step, Truths
from relayd.backtesting.result import ExploredHistory, ExploredPolicy

# As many as a plan lists, and so explores, by default.
MOST_RELAYS = 6
# Of pairs times the square of their transfers: some minutes on one core.
MOST_WORK = 30_000_000


@dataclass
class _Pair:
    """The paths of one pair, and their rates in the steps in which all were measured.

    Nodes are the sites on each path, by position; direct first. Transfers are the begin of each,
    seconds since 1970, and logarithms of the rates of all paths then.
    """

    nodes: list[list[int]]
    paths: list[Path]
    transfers: list[tuple[float, list[float]]] = field(default_factory=list)

    def followed(self, share: float, step_s: float) -> tuple[list[float], int]:
        """Return the value of each transfer if trials cost a share, and the number of trials."""
        sent: list[Sent] = []
        values, trials = [], 0
        for now_s, rates in self.transfers:
            choice = choose(self.paths, sent, now_s, share)
            had = rates[choice.path]
            trials += choice.path != choice.best
            values.append(self.paths[choice.path].value(had))
            sent.append(Sent(choice.path, had, now_s + step_s))
        return values, trials

    def best(self) -> list[float]:
        """Return the value of each transfer over the path that was best."""
        return [
            min(path.value(rate) for path, rate in zip(self.paths, rates, strict=True))
            for _, rates in self.transfers
        ]


def explored_history(
    steps: Iterable[Step], terms: Terms, judged: Truths, share: float, step_s: float
) -> ExploredHistory:
    """Replay transfers by exploring, by always the predicted best, and by hindsight.

    Steps come the oldest first; trials may cost `share` of what transfers cost. `judged` marks the
    pairs, shape (n, n).

    Raises
    ------
    InputError
        If that is more work than one process does in minutes.
    """
    pairs = [pair for pair in _pairs(steps, terms, judged) if pair.transfers]
    count = sum(len(pair.transfers) for pair in pairs)
    if sum(len(pair.transfers) ** 2 for pair in pairs) > MOST_WORK:
        problem = f"has {count:,} transfers of {len(pairs):,} pairs to choose one after the other"
        remedy = "Replay fewer pairs, a shorter span, or longer steps."
        raise InputError("explore", f"{problem}, which takes too long", value=share, remedy=remedy)
    ways = {
        "predicted": [pair.followed(0.0, step_s) for pair in pairs],
        "exploring": [pair.followed(share, step_s) for pair in pairs],
        "hindsight": [(pair.best(), 0) for pair in pairs],
    }
    policies = [
        ExploredPolicy(
            name,
            fsum(value for values, _ in found for value in values) / max(count, 1),
            sum(trials for _, trials in found),
        )
        for name, found in ways.items()
    ]
    return ExploredHistory(share, len(pairs), count, tuple(policies))


def _pairs(steps: Iterable[Step], terms: Terms, judged: Truths) -> list[_Pair]:
    pairs: dict[tuple[int, int], _Pair] = {}
    priced = np.isfinite(terms.egress_usd)
    for step in steps:
        usable = step.estimated & priced & (step.believed.expected > 0)
        for src, dst in np.argwhere(judged & usable).tolist():
            if (src, dst) in pairs:
                continue
            # The paths that look best when the pair is first estimated.
            relays = np.flatnonzero(usable[src] & usable[:, dst]).tolist()
            found = [(n, _path(terms, step, n)) for n in ([src, via, dst] for via in relays)]
            found.sort(key=lambda one: one[1].value(one[1].belief.mean))
            direct = [src, dst], _path(terms, step, [src, dst])
            nodes, paths = zip(direct, *found[:MOST_RELAYS], strict=True)
            pairs[src, dst] = _Pair(list(nodes), list(paths))
        for pair in pairs.values():
            rates = [_least(step.truth_gbps, nodes) for nodes in pair.nodes]
            if all(rate > 0 for rate in rates):  # neither unknown (NaN) nor down
                pair.transfers.append((step.begin_s, [log(rate) for rate in rates]))
    return list(pairs.values())


def _path(terms: Terms, step: Step, nodes: list[int]) -> Path:
    belief = Belief.of_bounds(*(_least(bound, nodes) for bound in step.believed))
    links = nodes[:-1], nodes[1:]
    ramp_s = RAMP_UP_ROUND_TRIPS / MS_PER_S * float(step.rtt_ms[links].sum())
    lead_s = terms.vm_start_h * S_PER_H + ramp_s
    if terms.hour_usd == inf:
        return Path(belief, lead_s, terms.gbps_h * S_PER_H)
    hour_usd = float(terms.vm_usd_per_h[nodes].sum()) + terms.hour_usd
    fixed = float(terms.egress_usd[links].sum()) + hour_usd * lead_s / S_PER_H
    return Path(belief, fixed, hour_usd * terms.gbps_h)


def _least(rates: np.ndarray, nodes: list[int]) -> float:
    """Return the lowest rate of a path's links; NaN where one is not known."""
    return float(rates[nodes[:-1], nodes[1:]].min())
