"""Tasks into rounds: no VM in two bandwidth probes at once, and as few rounds as possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from probes.campaign.tasks import Phase, ProbeTask


@dataclass(frozen=True, slots=True)
class Round:
    """Tasks that run at the same time.

    Attributes
    ----------
    phase : Phase
    tasks : tuple of ProbeTask
        Their hosts are disjoint, except in the RTT phase.
    """

    phase: Phase
    tasks: tuple[ProbeTask, ...]

    @property
    def duration_s(self) -> float:
        """The round lasts as long as its longest task."""
        return max(task.duration_s for task in self.tasks)


def schedule(tasks: Sequence[ProbeTask], *, gap_s: float = 0.0) -> list[Round]:
    """Return rounds in the order of phases; RTT tasks all together in the first.

    Parameters
    ----------
    tasks : sequence of ProbeTask
    gap_s : float
        What starting a round costs; weighs fewer rounds against shorter ones.
    """
    raise NotImplementedError


def fewest_rounds(tasks: Sequence[ProbeTask]) -> int:
    """Return a number of rounds that no schedule can go below."""
    raise NotImplementedError


def schedule_s(rounds: Sequence[Round], *, gap_s: float = 0.0) -> float:
    """Return how long rounds take one after the other, with a gap before each."""
    raise NotImplementedError
