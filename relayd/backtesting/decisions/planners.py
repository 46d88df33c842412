"""The planners that are always compared, and those that a user names."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.model.errors import InputError
from planner.model.estimate import BOUNDS
from planner.transfer.all_pairs import (
    DIRECT,
    Floats,
    RateBounds,
    Terms,
    best_relays_by_value,
    choose,
    outcomes,
    path_rates,
    within_caps,
)
from planner.transfer.allocation import EQUAL
from relayd.backtesting.decisions.task import DecisionPlanner, DecisionTask, RelayChoice
from relayd.backtesting.terms import transfer_terms

PEER = "skyplane"
PEER_PLANNER = "relayd.backtesting.decisions.skyplane_ron:decide"


class Believed(NamedTuple):
    """A task as arrays over its regions, in the network's order.

    Attributes
    ----------
    rates : RateBounds
        Of one VM pair within the caps of its ends, shape (n, n).
    links, egress, ingress : RateBounds
        The same without the caps, shape (n, n); and these, length n.
    """

    regions: tuple[str, ...]
    terms: Terms
    rates: RateBounds
    links: RateBounds
    egress: RateBounds
    ingress: RateBounds
    rtt_ms: Floats


def believed(task: DecisionTask) -> Believed:
    """Return a task as arrays."""
    network, transfer = task.network, task.transfers[0]
    regions = tuple(network.sites)
    links = [
        np.array([network.rates(transfer.connections, bound).out_of(region) for region in regions])
        for bound in BOUNDS
    ]
    caps = [[np.array(cap) for cap in network.caps(bound)] for bound in BOUNDS]
    rtt_ms = np.zeros((len(regions), len(regions)))
    for link in network:
        rtt_ms[network.index[link.src], network.index[link.dst]] = link.rtt_ms.expected
    return Believed(
        regions,
        transfer_terms(transfer, regions, task.prices),
        RateBounds(*(within_caps(rate, *cap) for rate, cap in zip(links, caps, strict=True))),
        RateBounds(*links),
        RateBounds(*(egress for egress, _ in caps)),
        RateBounds(*(ingress for _, ingress in caps)),
        rtt_ms,
    )


def direct(task: DecisionTask) -> Sequence[None]:
    """Send everything direct."""
    return [None] * len(task.transfers)


def relay(task: DecisionTask) -> Sequence[str | None]:
    """Send everything through the relay that looks best."""
    known = believed(task)
    best, _ = best_relays_by_value(known.terms, known.rates.expected, known.rtt_ms)
    return _named(task, known, best)


def expected(task: DecisionTask) -> Sequence[str | None]:
    """Take whatever looks best on expected figures, however little it gains."""
    known = believed(task)
    best, value = best_relays_by_value(known.terms, known.rates.expected, known.rtt_ms)
    none = np.full_like(best, DIRECT)
    alone = outcomes(known.terms, known.rates.expected, known.rtt_ms, none).value
    return _named(task, known, np.where(value < alone * (1 - EQUAL), best, DIRECT))


def relayd(task: DecisionTask) -> Sequence[RelayChoice]:
    """Decide as ``relayd plan`` does: a relay only where that has the least expected regret."""
    known = believed(task)
    chosen = choose(known.terms, known.links, known.egress, known.ingress, known.rtt_ms).chosen
    low, high = (path_rates(rates, chosen) for rates in (known.rates.low, known.rates.high))
    index = task.network.index
    return [
        RelayChoice(
            via,
            float(low[index[transfer.src], index[transfer.dst]]),
            float(high[index[transfer.src], index[transfer.dst]]),
        )
        for transfer, via in zip(task.transfers, _named(task, known, chosen), strict=True)
    ]


def _named(task: DecisionTask, known: Believed, chosen: NDArray[np.int32]) -> list[str | None]:
    index = task.network.index
    places = (int(chosen[index[t.src], index[t.dst]]) for t in task.transfers)
    return [None if place == DIRECT else known.regions[place] for place in places]


def planners_named(named: Sequence[str]) -> tuple[dict[str, DecisionPlanner], tuple[str, ...]]:
    """Return the planners to compare, and why one is left out.

    They are the baselines, Skyplane's where it is installed, and a user's.

    Raises
    ------
    InputError
        If one of a user's can't be imported.
    """
    found: dict[str, DecisionPlanner] = {"direct": direct, "relay": relay, "expected": expected}
    warnings: tuple[str, ...] = ()
    try:
        found[PEER] = _imported(PEER_PLANNER)
    except InputError as error:
        warnings = (f"Skyplane's planner is left out: it {error.problem}",)
    found["relayd"] = relayd
    for name in named:
        if name in found:
            raise InputError("planners", "are given twice", value=name)
        found[name] = _imported(name)
    return found, warnings


def _imported(name: str) -> DecisionPlanner:
    module, colon, function = name.partition(":")
    if not module or not colon or not function.isidentifier():
        raise InputError(
            "planners", "is not MODULE:FUNCTION", value=name, remedy="Such as my_planner:decide."
        )
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)  # where people keep what they try out
    try:
        planner = getattr(import_module(module), function)
    except Exception as error:  # noqa: BLE001 - a module of others may do anything
        raise InputError(
            "planners",
            f"can't be imported ({error})",
            value=name,
            remedy="Run the command where the module is, or set PYTHONPATH to its folder.",
        ) from None
    if not callable(planner):
        raise InputError("planners", "can't be called", value=name)
    checked: DecisionPlanner = planner
    return checked
