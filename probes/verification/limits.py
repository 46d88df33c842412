"""What verifying a plan may send and cost: runs are shortened and held to it before they start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

from planner.model.errors import InputError
from probes.fleet.hosts import Fleet
from probes.verification.predictions import PlanPrediction
from probes.verification.runs import LEAST_MEASURED_S, MOST_MEASURED_S, ROOM, Run, run_of

MOST_ROOM, ROOM_STEP = 1e6, 1.02
"""Rates this far above their prediction are no limit, and how closely the most is found."""

Price = Callable[[str, str, float, float | None], float]
"""Source and destination region, GB, and GB of its plan that are sent before it (None where nothing
of any plan is), to USD."""


@dataclass(frozen=True, slots=True)
class VerificationLimits:
    """The limits of verifying one plan.

    Attributes
    ----------
    measured_s : int
        Longest measured time of each run.
    most_gb : float
        Of all links together.
    budget_usd : float
    """

    measured_s: int = 10
    most_gb: float = inf
    budget_usd: float = inf

    def __post_init__(self) -> None:
        if not LEAST_MEASURED_S <= self.measured_s <= MOST_MEASURED_S:
            raise InputError(
                "--seconds",
                f"must be from {LEAST_MEASURED_S} to {MOST_MEASURED_S}",
                value=self.measured_s,
            )
        if not self.most_gb > 0:
            raise InputError("--max-gb", "must be above 0", value=self.most_gb)
        if not self.budget_usd >= 0:
            raise InputError("--budget", "is negative", value=self.budget_usd)


def runs_of(
    predictions: Mapping[str, PlanPrediction],
    fleet: Fleet,
    limits: VerificationLimits,
    price: Price,
) -> list[Run]:
    """Return the runs that verify a plan, one after the other, within the limits.

    Parameters
    ----------
    predictions : mapping
        Kind of run to its prediction, for the available VMs.
    fleet : Fleet
    limits : VerificationLimits
    price : Price

    Raises
    ------
    InputError
        If even the shortest runs would exceed a limit; states what they need.
    """
    runs = [
        run_of(kind, prediction, fleet, limits.measured_s)
        for kind, prediction in predictions.items()
    ]
    scale = _most_s(runs, limits, price)
    if scale is None:
        shortest = [_held(replace(run, measured_s=LEAST_MEASURED_S), ROOM) for run in runs]
        gb, usd = volume_gb(shortest, at_most=True), cost_usd(shortest, price, at_most=True)
        field, value = (
            ("--max-gb", limits.most_gb) if gb > limits.most_gb else ("--budget", limits.budget_usd)
        )
        raise InputError(
            field,
            f"is too little: at least {_short(gb)} GB and {_short(usd)} USD are needed",
            value=value,
        )
    runs = [replace(run, measured_s=scale) for run in runs]
    room = _most_room(runs, limits, price)
    return [_held(run, room) for run in runs]


def volume_gb(runs: Sequence[Run], *, at_most: bool = False) -> float:
    """Return what runs send on the wire over all links, both ways."""
    return sum(gb for run in runs for _, _, gb in run.sent(at_most=at_most))


def cost_usd(runs: Sequence[Run], price: Price, *, at_most: bool = False) -> float:
    """Return the egress fees of runs."""
    return links_usd([link for run in runs for link in run.sent(at_most=at_most)], price)


def links_usd(sent: Iterable[tuple[str, str, float]], price: Price) -> float:
    """Return the fees of what is sent on the wire.

    What is sent in which order is not known. Where an allowance is free, later is dearer; where
    there are tiers, earlier is.
    """
    links = list(sent)
    all_gb = sum(gb for _, _, gb in links)
    return sum(max(price(*link, None), price(*link, all_gb)) for link in links)


# ---- inside ------------------------------------------------------------------------------------


def _most_s(runs: Sequence[Run], limits: VerificationLimits, price: Price) -> int | None:
    """Return the longest measured time within the limits, with headroom; None if there is none."""
    for measured_s in range(limits.measured_s, LEAST_MEASURED_S - 1, -1):
        if _fit([replace(run, measured_s=measured_s) for run in runs], ROOM, limits, price):
            return measured_s
    return None


def _most_room(runs: Sequence[Run], limits: VerificationLimits, price: Price) -> float:
    """Return up to which multiple of the predictions the limits allow rates; infinite for any."""
    low, high = ROOM, MOST_ROOM
    if _fit(runs, high, limits, price):
        return inf
    while high > low * ROOM_STEP:
        middle = sqrt(low * high)
        low, high = (middle, high) if _fit(runs, middle, limits, price) else (low, middle)
    return low


def _fit(runs: Sequence[Run], room: float, limits: VerificationLimits, price: Price) -> bool:
    """Whether the most that runs may send with such rates is within the limits."""
    held = [_held(run, room) for run in runs]
    return (
        volume_gb(held, at_most=True) <= limits.most_gb
        and cost_usd(held, price, at_most=True) <= limits.budget_usd
    )


def _held(run: Run, room: float) -> Run:
    """Limit a run's rates to a multiple of the prediction, even if more should be possible."""
    if room == inf:
        return run
    paths = tuple(
        replace(p, most_gbps=min(p.most_gbps, p.path.rate.expected_gbps * room)) for p in run.paths
    )
    return replace(run, paths=paths)


def _short(value: float) -> str:
    return f"{value:.3g}"
