"""Queues of the probes of a stage: each VM is in one bandwidth probe at a time.

Rounds give the order. A probe starts as soon as all its hosts are done with their earlier
rounds, so that a slow or hanging host delays only the probes that it takes part in.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from probes.campaign.rounds import schedule
from probes.campaign.tasks import CampaignLimits, Probe, ProbeOutcome
from probes.campaign.throughput_tests import Findings
from probes.fleet.failures import ProbeError

PING_S = 2.5
"""Usual length of a round-trip probe, with login."""
RETRY_BUSY_S = 0.2
"""Wait of a probe that is due again while its hosts are busy."""


@dataclass(eq=False, kw_only=True)
class Job(ProbeOutcome):
    """A probe on its way through a stage, with the volume of all its attempts so far.

    Attributes
    ----------
    round : int
        From 1.
    duration_s : float
        Expected.
    findings : Findings
        Of the latest attempt.
    waits_for_host : bool
        Whether it waits for the end of the stage, because one of its hosts is skipped.
    times : float
        Factor of the expected volume that it may send, by the results of earlier attempts.
    most_gb : float
        Allowance of the next attempt.
    error : ProbeError | None
        Of the latest attempt that failed.
    """

    round: int
    duration_s: float
    attempts: int = 0
    findings: Findings = field(default_factory=Findings)
    waits_for_host: bool = False
    times: float = 1.0
    most_gb: float = inf
    error: ProbeError | None = None

    @property
    def is_ping(self) -> bool:
        """True for a probe of round-trip times."""
        return self.probe.task.phase == "rtt"

    @property
    def hosts(self) -> frozenset[str]:
        """All hosts that take part."""
        return self.probe.task.hosts

    @property
    def client(self) -> str:
        """The first source."""
        return self.probe.task.pairs[0][0]

    @property
    def logins(self) -> frozenset[str]:
        """The hosts to log in to; the other end of a ping needs no login."""
        return frozenset({self.client}) if self.is_ping else self.hosts

    def one_flow_alone(self) -> bool:
        """Leave the many connections out of a probe that measures one by itself before them.

        Returns False for other probes, which do not change.
        """
        task = self.probe.task
        if not task.flow_s or self.findings.parts:
            return False
        one, many = task.in_turn
        self.probe = replace(self.probe, task=one)
        self.duration_s *= one.duration_s / (one.duration_s + many.duration_s)
        self.notes = ("one connection alone: the budget does not allow many",)
        return True


def jobs_in_rounds(probes: Sequence[Probe], expected_s: Callable[[Probe], float]) -> list[Job]:
    """Return a job for each probe, in the order of their rounds."""
    of_task = {id(probe.task): probe for probe in probes}
    return [
        Job(probe=probe, round=number, duration_s=expected_s(probe))
        for number, one_round in enumerate(schedule([probe.task for probe in probes]), start=1)
        for probe in [of_task[id(task)] for task in one_round.tasks]
    ]


class JobQueues:
    """Jobs that wait and jobs that run.

    Parameters
    ----------
    jobs : sequence of Job
        In the order of their rounds.
    limits : CampaignLimits
    """

    def __init__(self, jobs: Sequence[Job], limits: CampaignLimits) -> None:
        self._limits = limits
        self._waiting = dict.fromkeys(jobs)
        self._retries: list[tuple[float, Job]] = []
        self._running: set[Job] = set()

    def start(self, begin: Callable[[Job], bool]) -> None:
        """Begin all jobs that may start now.

        Parameters
        ----------
        begin : callable
            Begins a job; returns False where a limit is in the way, and the job is dropped.
        """
        now_s = time.monotonic()
        bandwidth = [job for job in self._running if not job.is_ping]
        room = self._limits.at_once - len(bandwidth)
        busy = {host for job in bandwidth for host in job.hosts}
        pings = Counter(job.client for job in self._running if job.is_ping)
        due = [job for at_s, job in self._retries if at_s <= now_s]
        self._retries = [(at_s, job) for at_s, job in self._retries if at_s > now_s]
        for job in [*due, *self._waiting]:
            is_new = job in self._waiting
            if job.is_ping:
                may = not is_new or (
                    pings.total() < self._limits.pings_at_once
                    and pings[job.client] < self._limits.pings_of_host
                )
            else:
                may = room > 0 and busy.isdisjoint(job.hosts)
            if may:
                self._waiting.pop(job, None)
                if begin(job):
                    self._running.add(job)
                    pings.update([job.client] if job.is_ping else [])
                    room -= not job.is_ping
                    busy |= frozenset() if job.is_ping else job.hosts
            elif not is_new:
                self.retry(job, now_s + RETRY_BUSY_S)
            elif not job.is_ping:
                busy |= job.hosts  # its turn comes before that of others in line there

    def retry(self, job: Job, at_s: float) -> None:
        """Start a job again at a time, by ``time.monotonic()``."""
        self._retries.append((at_s, job))

    def ended(self, job: Job) -> None:
        """Take a job out of the running ones."""
        self._running.remove(job)

    @property
    def next_retry_s(self) -> float | None:
        """Time of the next retry, by ``time.monotonic()``; None without any."""
        return min((at_s for at_s, _ in self._retries), default=None)

    def left_s(self) -> float:
        """Return a lower bound on the remaining time: that of the busiest host, or of a job."""
        left_s: dict[str, float] = defaultdict(float)
        for job in self._waiting:
            own_s = PING_S / self._limits.pings_of_host if job.is_ping else job.duration_s
            for host in {job.client} if job.is_ping else job.hosts:
                left_s[host] += own_s
        return max([0.0, *left_s.values(), *(job.duration_s for job in self._running)])
