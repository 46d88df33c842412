"""The result of a replay."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner.model.answer import Answer
from planner.transfer.all_pairs import DIRECT, Floats, Outcomes
from probes.analysis.evidence import Coverage
from probes.samples import Rows

STRATEGIES = ("relayd", "direct", "relay", "hindsight")
DECISION = np.dtype(
    [
        ("pair", "i4"),  # n times the source, and the destination
        ("covered", "?"),  # by the bounds of the direct link
        ("decided", "?"),
        ("scored", "?"),  # all paths were measured in the step
        ("verdict_right", "?"),
        *((name, "f8", len(STRATEGIES)) for name in Outcomes._fields),
        ("choice", "i4", len(STRATEGIES)),
    ]
)
"""A pair in a step in which it was measured, having been measured before."""
FEWEST_DECISIONS = 30
"""With fewer there are no figures: one bad decision would be several percent of all."""
NEAR = 0.99
"""Share of hindsight's value from which a decision counts as near it."""
BINS = 1000
"""Percentiles of shares are rounded down to multiples of 1 / BINS."""


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """Results that transfers would have achieved with one strategy.

    Attributes
    ----------
    strategy : str
        ``relayd``, ``direct`` (always), ``relay`` (always the one that looked best) or
        ``hindsight``.
    achieved, achieved_p10 : float
        Share of hindsight's result in the objective's terms: mean and 10th percentile.
    throughput_gbps, time_s, cost_usd, value : float
        Means over decisions in which all four carried something. `value` is cost plus time in
        USD, or seconds where time alone counts.
    regret : float
        Value beyond that of hindsight.
    stalled : int
        Decisions whose path carried nothing.
    switches : int
        Decisions for another path of a pair than the time before.
    switches_a_day : float
        Of these, by pair and day.
    """

    strategy: str
    achieved: float
    achieved_p10: float
    throughput_gbps: float
    time_s: float
    cost_usd: float
    value: float
    regret: float
    stalled: int
    switches: int
    switches_a_day: float


@dataclass(frozen=True, slots=True)
class PairsResult:
    """The results over a group of pairs.

    Attributes
    ----------
    pairs : int
        With at least one decision that could be judged.
    decisions : int
        One for each pair and step in which the direct link was known before and measured.
    judged : int
        Those whose paths were all measured in the step too: all figures rest on these.
    concluded : bool
        False where `judged` is too few; figures are None then.
    relayed, hindsight_relayed : float | None
        Share that went, and should have gone, through a relay.
    right : float | None
        Share in which relaying or not was as in hindsight.
    near : float | None
        Share that got at least 99 % of hindsight's result.
    verdict_right : float | None
        Share in which the verdict was right about the relay that looked best: to take it where it
        was then measured to be better than direct by the margin, and direct elsewhere.
    strategies : tuple of StrategyResult
    coverage : Coverage | None
        Coverage of the step's measurements by the direct link's 90 % bounds; None where no pair
        was known before.
    """

    pairs: int
    decisions: int
    judged: int
    concluded: bool
    relayed: float | None = None
    hindsight_relayed: float | None = None
    right: float | None = None
    near: float | None = None
    verdict_right: float | None = None
    strategies: tuple[StrategyResult, ...] = ()
    coverage: Coverage | None = None

    def of(self, strategy: str) -> StrategyResult:
        """Return the result of one strategy."""
        return next(one for one in self.strategies if one.strategy == strategy)


@dataclass(frozen=True, slots=True)
class ProviderPairResult:
    """The results over the pairs from one provider to another."""

    src: str
    dst: str
    found: PairsResult


@dataclass(frozen=True, slots=True)
class Backtest(Answer):
    """A replay of stored history.

    Attributes
    ----------
    since, until : str
        Begin of the first and end of the last step, ISO 8601, UTC.
    step_s : float
    steps : int
        Those in which at least one decision could be made.
    samples : int
        Throughput samples in these steps.
    regions : int
    metric : str
        Of throughput: ``aggregate_mbps``, or ``per_flow_mbps`` for one connection.
    connections : int
    volume_gb : float
    objective : str
    time_value_usd_per_h : float
    margin : float
    risk : str
    total : PairsResult
    by_providers : tuple of ProviderPairResult
    warnings : tuple of str
    """

    since: str
    until: str
    step_s: float
    steps: int
    samples: int
    regions: int
    metric: str
    connections: int
    volume_gb: float
    objective: str
    time_value_usd_per_h: float
    margin: float
    risk: str
    total: PairsResult
    by_providers: tuple[ProviderPairResult, ...]
    warnings: tuple[str, ...]


def summed_up(rows: Rows, days: float) -> PairsResult:
    """Sum up the decisions on some pairs in order of time, of so many replayed days."""
    scored = rows[rows["scored"]]
    carried = scored[(scored["rate_gbps"] > 0).all(axis=1)]
    judged, pairs = len(scored), len(np.unique(scored["pair"]))
    found = PairsResult(
        pairs,
        int(rows["decided"].sum()),
        judged,
        concluded=min(judged, len(carried)) >= FEWEST_DECISIONS,
        coverage=Coverage.of(int(rows["covered"].sum()), len(rows)) if len(rows) else None,
    )
    if not found.concluded:
        return found
    shares = _shares(scored["value"])
    relayed = scored["choice"] != DIRECT
    by_pair = scored[np.argsort(scored["pair"], kind="stable")]
    later, before = by_pair[1:], by_pair[:-1]
    changed = later["choice"] != before["choice"]
    switches = changed[later["pair"] == before["pair"]].sum(axis=0)
    tenth = np.floor(np.sort(shares, axis=0)[int(0.1 * judged)] * BINS) / BINS
    means = np.array([carried[name].mean(axis=0) for name in Outcomes._fields])
    columns = [
        *(shares.mean(axis=0), tenth, *means, means[-1] - means[-1, -1]),
        (scored["rate_gbps"] <= 0).sum(axis=0),
        switches,
        switches / days / pairs,
    ]
    return replace(
        found,
        relayed=float(relayed[:, 0].mean()),
        hindsight_relayed=float(relayed[:, -1].mean()),
        right=float((relayed[:, 0] == relayed[:, -1]).mean()),
        near=float((shares[:, 0] >= NEAR).mean()),
        verdict_right=float(scored["verdict_right"].mean()),
        strategies=tuple(map(StrategyResult, STRATEGIES, *(column.tolist() for column in columns))),
    )


def _shares(values: Floats) -> Floats:
    """Return the shares of hindsight's result: values are losses, so they are ratios of losses."""
    paid = np.where((values > 0) & np.isfinite(values), values, np.inf)
    return np.minimum(1.0, np.where(values <= 0, 1.0, values[:, -1:] / paid))
