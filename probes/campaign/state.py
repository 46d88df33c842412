"""What a campaign records while it runs, so that it can resume after any interruption."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from probes.campaign.tasks import ProbeTask
from probes.fleet.failures import Cause
from probes.samples import Sample

Status: TypeAlias = Literal["planned", "done", "failed"]


@dataclass(frozen=True, slots=True)
class Probe:
    """A task of a campaign.

    Attributes
    ----------
    id : int
        Of the log.
    stage : str
        Tasks of one stage are chosen together: ``rtt``, ``per-flow``, ``caps``, ``aggregate 1``.
    status : Status
    problem : str
        Why it failed last, or ``""``.
    """

    id: int
    stage: str
    task: ProbeTask
    status: Status = "planned"
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """The result of a probe.

    Attributes
    ----------
    probe : Probe
    samples : tuple of Sample
    sent_gb, usd : float
        What it moved in all its attempts, and what that costs on the wire.
    attempts : int
    problem : str
        Why it failed; ``""`` if it did not.
    cause, host : Cause | None, str
        Of the failure.
    busy_s : float
        How long the tools were at work on the attempt that counted.
    notes : tuple of str
        Remarks on a probe that succeeded.
    """

    probe: Probe
    samples: tuple[Sample, ...] = ()
    sent_gb: float = 0.0
    usd: float = 0.0
    attempts: int = 1
    problem: str = ""
    cause: Cause | None = None
    host: str = ""
    busy_s: float = 0.0
    notes: tuple[str, ...] = field(default=())


class CampaignLog(Protocol):
    """Where a campaign is recorded. Everything is on disk when a method returns."""

    def probes(self) -> Sequence[Probe]:
        """Return all probes so far, in the order in which they were planned."""

    def plan(self, stage: str, tasks: Sequence[ProbeTask]) -> Sequence[Probe]:
        """Keep the tasks of a stage."""

    def reserve(self, starting: Sequence[tuple[Probe, float, float]]) -> None:
        """Keep the most GB and USD of each probe until it is recorded, before it starts."""

    def record(self, outcomes: Sequence[ProbeOutcome]) -> None:
        """Keep samples together with the fact that their probes are done: all or nothing."""

    def charge_lost(self) -> None:
        """Count what is reserved as spent: by probes that an earlier run started and lost."""

    def spent(self) -> tuple[float, float]:
        """Return GB and USD so far, with what is reserved."""


def task_to_json(task: ProbeTask) -> dict[str, Any]:
    """Return a task as plain values."""
    return asdict(task)


def task_from_json(content: dict[str, Any]) -> ProbeTask:
    """Return the task that :func:`task_to_json` was called with."""
    pairs = tuple((src, dst) for src, dst in content["pairs"])
    return ProbeTask(**{**content, "pairs": pairs})
