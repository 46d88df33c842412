"""What a planner is told, and what it answers: the interface for planners of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from planner.model.errors import InputError
from planner.model.network import Network
from planner.model.pricing import Prices
from planner.transfer.request import TransferRequest

Pair: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class DecisionTask:
    """A network as it was known, and transfers to decide.

    Attributes
    ----------
    split : str
        ``tenth``, ``quarter``, ``half`` or ``later``.
    network : Network
        Estimates of all links with bounds, their round-trip times, and the caps of VMs. A link that
        was not measured afterwards is left out: nobody could be judged on it.
    measured_gbps : mapping
        Source and destination to the steady rate (64 connections, one VM pair) of each link that
        was measured before. The other links of the network were not.
    prices : Prices
        ``egress_usd_per_gb(src, dst, volume_gb)`` and ``vm_usd_per_h(region)``.
    transfers : tuple of TransferRequest
        One VM a region; each direct, or through one relay.
    """

    split: str
    network: Network
    measured_gbps: Mapping[Pair, float]
    prices: Prices
    transfers: tuple[TransferRequest, ...]

    def relays(self, src: str, dst: str) -> tuple[str, ...]:
        """Return the regions that a transfer may go through."""
        links = self.network.links
        return tuple(via for via in links.get(src, {}) if dst in links.get(via, {}))


class RelayChoice(NamedTuple):
    """How one transfer goes.

    Attributes
    ----------
    relay : str | None
        A region, or None for direct.
    low_gbps, high_gbps : float | None
        Between which the planner expects the rate of that path with a probability of 90 %.
    """

    relay: str | None
    low_gbps: float | None = None
    high_gbps: float | None = None


DecisionPlanner: TypeAlias = Callable[[DecisionTask], Sequence[RelayChoice | str | None]]
"""Answers with one choice for each transfer, in their order; a bare region is a relay."""


def choices_of(name: str, planner: DecisionPlanner, task: DecisionTask) -> list[RelayChoice]:
    """Ask a planner, and check that its choices can be judged.

    Raises
    ------
    InputError
        Naming the planner, and the transfer with the choice that is none.
    """
    try:
        answered = list(planner(task))
    except Exception as error:
        raise InputError(
            name,
            f"fails: {type(error).__name__}: {error}",
            remedy="It must return a list with a choice for each of task.transfers.",
        ) from error
    if len(answered) != len(task.transfers):
        raise InputError(
            name,
            f"answers {len(answered):,} choices for {len(task.transfers):,} transfers",
            remedy="Return one for each of task.transfers, in their order.",
        )
    found = []
    for transfer, answer in zip(task.transfers, answered, strict=True):
        choice = answer if isinstance(answer, RelayChoice) else RelayChoice(answer)
        stated: tuple[object, ...] = choice  # of whatever types these are
        relay, *bounds = stated
        if not (relay is None or isinstance(relay, str)) or not all(
            isinstance(bound, float | int | None) for bound in bounds
        ):
            raise InputError(
                name,
                f"answers for {transfer.src} -> {transfer.dst} what is no choice",
                value=answer,
                remedy="Answer a region, None for direct, or a RelayChoice.",
            )
        links = task.network.links
        via = choice.relay
        if via is not None and (
            via not in links.get(transfer.src, {}) or transfer.dst not in links.get(via, {})
        ):
            raise InputError(
                name,
                f"chooses a relay for {transfer.src} -> {transfer.dst} that it can't go through",
                value=via,
                remedy="Choose one of task.relays(src, dst), or None for direct.",
            )
        found.append(choice)
    return found
