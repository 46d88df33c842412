"""How well planners decided."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.answer import Answer
from probes.estimation.coverage import Coverage


@dataclass(frozen=True, slots=True)
class PlannerResult:
    """What a planner's choices came to; all but shares are means.

    Attributes
    ----------
    planner : str
        ``direct``, ``relay``, ``expected``, ``skyplane``, ``relayd``, ``hindsight`` or one's own.
    relayed : float
        Share of the transfers that went through a relay.
    right : float
        Share in which relaying or not was as in hindsight.
    achieved, achieved_p10 : float
        Of what hindsight has, in the objective's terms: mean and 10th percentile.
    throughput_gbps, time_s, cost_usd, value : float
        `value` is cost plus time in USD, or seconds where time alone counts.
    regret : float
        Value beyond that of hindsight.
    regret_per_usd : float
        The sum of regrets over the sum of what was paid.
    coverage : Coverage | None
        How often the rate of the chosen path was within the planner's bounds of 90 %; None where it
        states none.
    """

    planner: str
    relayed: float
    right: float
    achieved: float
    achieved_p10: float
    throughput_gbps: float
    time_s: float
    cost_usd: float
    value: float
    regret: float
    regret_per_usd: float
    coverage: Coverage | None = None


@dataclass(frozen=True, slots=True)
class SplitResult:
    """The results of one split.

    Attributes
    ----------
    split : str
        ``tenth``, ``quarter``, ``half`` or ``later``.
    links, known, decisions : int
        Links that could be used, those of them that planners were told of, and transfers.
    planners : tuple of PlannerResult
    """

    split: str
    links: int
    known: int
    decisions: int
    planners: tuple[PlannerResult, ...]

    def of(self, planner: str) -> PlannerResult:
        """Return the result of one planner."""
        return next(found for found in self.planners if found.planner == planner)


@dataclass(frozen=True, slots=True)
class DecisionsBenchmark(Answer):
    """A comparison of planners on measured networks."""

    regions: int
    volume_gb: float
    connections: int
    objective: str
    time_value_usd_per_h: float
    margin: float
    risk: str
    splits: tuple[SplitResult, ...]
    warnings: tuple[str, ...]
