"""Inputs and answers of planners, and the planners that are always compared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from planner.model.errors import InputError
from planner.model.estimate import BOUNDS
from planner.model.link_array import rates_gbps
from planner.model.network import Network
from planner.model.pricing import Prices
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
from planner.transfer.request import TransferRequest
from relayd.backtesting.replay import transfer_terms

Pair: TypeAlias = tuple[str, str]
Places: TypeAlias = NDArray[np.int32]


class RelayChoice(NamedTuple):
    """The path chosen for one transfer."""

    relay: str | None  # a region, or None for direct
    # Between which the planner expects the rate of that path with a probability of 90 %
    low_gbps: float | None = None
    high_gbps: float | None = None


@dataclass(frozen=True)
class DecisionTask:
    """A network as it was known, and transfers to decide."""

    split: str  # ``tenth``, ``quarter``, ``half`` or ``later``
    # Estimates of all links with bounds, their round-trip times, and the caps of VMs. A link that
    # was not measured afterwards is left out: no choice of it could be judged
    network: Network
    # Source and destination to the steady rate (64 connections, one VM pair) of each link that was
    # measured before. The other links of the network were not
    measured_gbps: Mapping[Pair, float]
    prices: Prices  # ``egress_usd_per_gb(src, dst, volume_gb)`` and ``vm_usd_per_h(region)``
    transfers: tuple[TransferRequest, ...]  # one VM a region; each direct, or through one relay

    def relays(self, src: str, dst: str) -> tuple[str, ...]:
        """Return the regions that a transfer may go through."""
        links = self.network.links
        return tuple(via for via in links.get(src, {}) if dst in links.get(via, {}))

    @cached_property
    def terms(self) -> Terms:
        """The prices of a transfer between all pairs of regions."""
        return transfer_terms(self.transfers[0], list(self.network.sites), self.prices)

    @cached_property
    def rtt_ms(self) -> Floats:
        """Expected round-trip times, shape (n, n); 0 where there is no link."""
        found, index = np.zeros((len(self.network.sites),) * 2), self.network.index
        for link in self.network:
            found[index[link.src], index[link.dst]] = link.rtt_ms.expected
        return found

    @cached_property
    def factors(self) -> tuple[RateBounds, RateBounds, RateBounds]:
        """Rates of links without caps, shape (n, n), and egress and ingress caps, length n."""
        network, connections = self.network, self.transfers[0].connections
        links = [rates_gbps(network.links.whole, connections, bound) for bound in BOUNDS]
        egress, ingress = zip(
            *(map(np.array, network.caps(bound)) for bound in BOUNDS), strict=True
        )
        return RateBounds(*links), RateBounds(*egress), RateBounds(*ingress)

    @cached_property
    def rates(self) -> RateBounds:
        """Rates of one VM pair within the caps of its ends, shape (n, n)."""
        return RateBounds(*(within_caps(*of_bound) for of_bound in zip(*self.factors, strict=True)))

    @cached_property
    def ends(self) -> tuple[list[int], list[int]]:
        """Numbers of the transfers' sources and destinations in the network."""
        index = self.network.index
        return [index[one.src] for one in self.transfers], [
            index[one.dst] for one in self.transfers
        ]

    def best(self, rates: Floats, *, only_relays: bool = False, margin: float = EQUAL) -> Places:
        """Return the path of least value for every pair at some rates.

        A relay must be better than direct by a margin.
        """
        relay, value = best_relays_by_value(self.terms, rates, self.rtt_ms)
        if only_relays:
            return relay
        alone = outcomes(self.terms, rates, self.rtt_ms, np.full_like(relay, DIRECT)).value
        return np.where(value * (1 + margin) < alone, relay, DIRECT).astype(np.int32)

    def relays_of(self, chosen: Places) -> list[str | None]:
        """Return the relay of each transfer from those of all pairs."""
        names = list(self.network.sites)
        return [None if at == DIRECT else names[at] for at in chosen[self.ends].tolist()]


DecisionPlanner: TypeAlias = Callable[[DecisionTask], Sequence[RelayChoice | str | None]]
"""Answers with one choice for each transfer, in their order; a bare region is a relay."""


def relayd(task: DecisionTask) -> Sequence[RelayChoice]:
    """Decide as ``relayd plan`` does: a relay only where that has the least expected regret."""
    index, odd = task.network.index, np.ones_like(task.rtt_ms, np.bool_)
    for link in task.network:
        odd[index[link.src], index[link.dst]] = link.aggregate_gbps.source != "measured"
    chosen = choose(task.terms, *task.factors, task.rtt_ms, odd).chosen
    low, high = (path_rates(of, chosen)[task.ends] for of in (task.rates.low, task.rates.high))
    named = zip(task.relays_of(chosen), low.tolist(), high.tolist(), strict=True)
    return [RelayChoice(*one) for one in named]


def skyplane(task: DecisionTask) -> Sequence[str | None]:
    """Take the relay with the greatest throughput, by the RON solver of the installed Skyplane.

    Fees play no part in it. (Skyplane's other solver, an integer program, needs a throughput to
    aim at, which transfers here have not.) Only its tables of throughput and fees are replaced.
    """
    from skyplane.planner.solver import ThroughputProblem
    from skyplane.planner.solver_ron import ThroughputSolverRON

    regions, links = list(task.network.sites), task.network.links

    class OnTask(ThroughputSolverRON):  # type: ignore[misc]
        def __init__(self) -> None: ...

        def get_regions(self) -> list[str]:
            return regions

        def get_path_throughput(self, src: str, dst: str) -> float:
            link = links.get(src, {}).get(dst)
            if link is None:
                return 0.0
            return task.measured_gbps.get((src, dst), link.aggregate_gbps.expected)

        def get_path_cost(self, src: str, dst: str) -> float:
            return task.prices.egress_usd_per_gb(src, dst, task.transfers[0].volume_gb)

    solver = OnTask()
    found: list[str | None] = []
    for transfer in task.transfers:
        problem = ThroughputProblem(transfer.src, transfer.dst, 1.0, transfer.volume_gb, 1)
        used = solver.solve(problem).var_edge_flow_gigabits[regions.index(transfer.src)]
        [hop] = used.nonzero()[0]
        found.append(None if regions[hop] == transfer.dst else regions[hop])
    return found


PLANNERS: dict[str, DecisionPlanner] = {
    "direct": lambda task: [None] * len(task.transfers),
    "relay": lambda task: task.relays_of(task.best(task.rates.expected, only_relays=True)),
    "expected": lambda task: task.relays_of(task.best(task.rates.expected)),
    "at-margin": lambda task: task.relays_of(
        task.best(task.rates.expected, margin=task.terms.margin)
    ),
    "skyplane": skyplane,
    "relayd": relayd,
}


def planner_named(name: str) -> DecisionPlanner:
    """Return a planner of one's own, such as ``my_planner:decide``.

    Raises
    ------
    InputError
        If it can't be imported.
    """
    module, colon, function = name.partition(":")
    if not module or not colon or not function.isidentifier():
        raise InputError("planner", "is not MODULE:FUNCTION", value=name)
    sys.path.append(str(Path.cwd()))  # where people keep what they try out
    try:
        planner: DecisionPlanner = getattr(import_module(module), function)
    except Exception as error:  # noqa: BLE001 - a module of others may do anything
        raise InputError("planner", f"can't be imported ({error})", value=name) from None
    if not callable(planner):
        raise InputError("planner", "can't be called", value=name)
    return planner


def choices_of(name: str, planner: DecisionPlanner, task: DecisionTask) -> list[RelayChoice]:
    """Ask a planner, and check that its choices can be judged.

    Raises
    ------
    InputError
        Naming the planner, and the transfer with the choice that is none.
    """
    try:
        answered = list(planner(task))
    except ImportError:
        raise
    except Exception as error:
        raise InputError(name, f"fails: {type(error).__name__}: {error}") from error
    if len(answered) != len(task.transfers):
        raise InputError(
            name, f"answers {len(answered):,} choices for {len(task.transfers):,} transfers"
        )
    found = []
    for transfer, answer in zip(task.transfers, answered, strict=True):
        choice = answer if isinstance(answer, RelayChoice) else RelayChoice(answer)
        pair = f"{transfer.src} -> {transfer.dst}"
        if not isinstance(choice.relay, str | None):
            raise InputError(name, f"answers for {pair} what is no choice", value=answer)
        if choice.relay not in (None, *task.relays(transfer.src, transfer.dst)):
            raise InputError(
                name, f"chooses a relay for {pair} that it can't go through", value=choice.relay
            )
        found.append(choice)
    return found
