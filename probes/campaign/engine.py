"""Runs the probes of a campaign: retries, hosts that fail, the budget, and keeping results."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from planner.model.errors import StoreError
from probes.campaign.budget import Ledger
from probes.campaign.costing import Meter
from probes.campaign.limits import CampaignLimits
from probes.campaign.probing import Prober
from probes.campaign.queues import RETRY_BUSY_S, Job, JobQueues, jobs_in_rounds
from probes.campaign.state import CampaignLog, Probe, ProbeOutcome
from probes.fleet.failures import ProbeError
from probes.fleet.sessions import Sessions

STORE_RETRIES_S = (1.0, 4.0, 10.0)
"""Waits before results are written again where the store can't take them."""
TIMES = 4.0
"""How much more a probe may send where what it was allowed showed too little."""


@dataclass
class StageProgress:
    """How far a stage is; one object, updated and reported again and again."""

    stage: str = ""
    round: int = 0
    rounds: int = 0
    done: int = 0
    failed: int = 0
    left_out: int = 0
    total: int = 0
    sent_gb: float = 0.0
    usd: float = 0.0
    left_s: float = 0.0
    running: Counter[str] = field(default_factory=Counter)


class Engine:
    """Runs the stages of one campaign; holds what its stages have in common.

    Parameters
    ----------
    sessions : Sessions
    prober : Prober
    log : CampaignLog
    meter : Meter
        Prices what is sent, on top of what was before.
    limits : CampaignLimits
    on_progress : callable
        Called after every change with the :class:`StageProgress`.
    on_note : callable
        Called with a line that the operator should read.

    Attributes
    ----------
    ledger : Ledger
    busy_s : float
        How long tools were at work, over all probes that succeeded.
    """

    def __init__(
        self,
        sessions: Sessions,
        prober: Prober,
        log: CampaignLog,
        meter: Meter,
        limits: CampaignLimits,
        *,
        on_progress: Callable[[StageProgress], None] = lambda _: None,
        on_note: Callable[[str], None] = lambda _: None,
        seed: int | None = None,
    ) -> None:
        self.sessions = sessions
        self.prober = prober
        self.limits = limits
        self.ledger = Ledger(meter, sessions.fleet.region_of, limits.budget_usd, log.spent())
        self.on_note = on_note
        self.random = random.Random(seed)  # noqa: S311 - spreads starts, keeps no secret
        self.progress = StageProgress()
        self.busy_s = 0.0
        self._log = log
        self._on_progress = on_progress

    async def run(self, probes: Sequence[Probe]) -> list[ProbeOutcome]:
        """Run the probes of a stage; return the outcomes of those that were begun.

        Raises
        ------
        StoreError
            If results can't be kept, after several tries.
        """
        return await _Stage(self, probes).run()

    def report(self) -> None:
        """Report the progress."""
        self.progress.sent_gb, self.progress.usd = self.ledger.sent_gb, self.ledger.usd
        self._on_progress(self.progress)

    def reserve(self, jobs: Sequence[Job]) -> None:
        """Write to the log what jobs that are to start may send, on top of what they have sent."""
        starting = []
        for job in jobs:
            gb, usd = self.ledger.reserved(job.probe.task)
            starting.append((job.probe, job.sent_gb + gb, job.usd + usd))
        self._log.reserve(starting)

    def record(self, outcomes: Sequence[ProbeOutcome]) -> None:
        """Write outcomes to the log."""
        self._log.record(outcomes)

    async def attempt(self, job: Job) -> None:
        """Run a job's probe once."""
        if not job.is_ping:
            await asyncio.sleep(self.random.uniform(0.0, self.limits.jitter_s))
        # Samples of a part that failed halfway are dropped; what it sent was charged.
        job.findings = job.findings.again(job.most_gb)
        job.attempts += 1
        await self.prober.probe(job.probe.task, job.findings)

    async def answers(self, host: str) -> bool:
        """Whether a host can be logged in to."""
        try:
            await self.sessions.session(host)
        except ProbeError:
            return False
        return True


class _Stage:
    """One run of :meth:`Engine.run`."""

    def __init__(self, engine: Engine, probes: Sequence[Probe]) -> None:
        self._engine = engine
        self._limits = engine.limits
        self._progress = engine.progress
        self._jobs = jobs_in_rounds(probes, lambda probe: engine.prober.expected_s(probe.task))
        self._queues = JobQueues(self._jobs, self._limits)
        self._starting: list[Job] = []
        self._running: dict[asyncio.Task[None], Job] = {}
        self._failures_in_a_row: Counter[str] = Counter()
        self._skipped_hosts: dict[str, ProbeError] = {}
        self._unwritten: list[ProbeOutcome] = []
        self._outcomes: list[ProbeOutcome] = []

    async def run(self) -> list[ProbeOutcome]:
        progress = self._progress
        progress.stage = self._jobs[0].probe.stage if self._jobs else ""
        progress.round, progress.rounds = 0, max((job.round for job in self._jobs), default=0)
        progress.done = progress.failed = progress.left_out = 0
        progress.total = len(self._jobs)
        try:
            await self._run_all()
            await self._second_chance()
        except BaseException:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._write()  # what was measured before the interruption is kept
            raise
        await self._stored(self._write)
        return self._outcomes

    async def _run_all(self) -> None:
        while True:
            self._queues.start(self._begin)
            if self._starting:
                await self._start()
            self._report()
            retry_s = self._queues.next_retry_s
            if not self._running:
                if retry_s is None:
                    return
                await asyncio.sleep(max(0.0, retry_s - time.monotonic()))
                continue
            timeout_s = 1.0 if retry_s is None else retry_s - time.monotonic()
            ended, _ = await asyncio.wait(
                self._running,
                timeout=max(0.01, min(1.0, timeout_s)),
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in ended:
                job = self._running.pop(task)
                self._release(job)
                self._judge(job, task)
            if self._unwritten:
                await self._stored(self._write)

    async def _second_chance(self) -> None:
        """Try hosts that were skipped once more, now that nothing else waits for them."""
        waiting = [job for job in self._jobs if job.waits_for_host]
        if not waiting:
            return
        back = await asyncio.gather(*map(self._is_back, self._skipped_hosts))
        answers = dict(zip(self._skipped_hosts, back, strict=True))
        for job in waiting:
            silent = [host for host in job.logins if not answers.get(host, True)]
            job.waits_for_host = False
            if silent:
                self._fail(job, self._skipped_hosts[silent[0]])
            else:
                job.attempts = self._limits.attempts - 1
                self._queues.retry(job, 0.0)
        self._skipped_hosts = {h: e for h, e in self._skipped_hosts.items() if not answers[h]}
        self._failures_in_a_row.clear()
        await self._stored(self._write)
        await self._run_all()
        for job in self._jobs:
            if job.waits_for_host:  # skipped again meanwhile
                host = next(host for host in job.logins if host in self._skipped_hosts)
                self._fail(job, self._skipped_hosts[host])

    async def _is_back(self, host: str) -> bool:
        return not self._skipped_hosts[host].lasting and await self._engine.answers(host)

    # ---- starting and ending -------------------------------------------------------------------

    def _begin(self, job: Job) -> bool:
        """Reserve what a job may send, unless a limit or a skipped host is in the way."""
        if not self._skipped_hosts.keys().isdisjoint(job.logins):
            self._set_aside(job)
            return False
        late = time.monotonic() + job.duration_s > self._limits.deadline_s
        most_gb = None if late else self._engine.ledger.reserve(job.probe.task, job.times)
        if most_gb is None:
            if (self._running or self._starting) and not late:
                # Running probes may send less than was reserved for them.
                self._queues.retry(job, time.monotonic() + RETRY_BUSY_S)
            elif job.error:
                self._fail(job, job.error)
            elif not late and job.one_flow_alone():
                self._progress.left_out += 1
                return self._begin(job)
            else:
                self._progress.left_out += 1
            return False
        job.most_gb = most_gb
        self._progress.round = max(self._progress.round, job.round)
        self._progress.running.update(job.hosts)
        self._starting.append(job)
        return True

    async def _start(self) -> None:
        """Start the jobs that were begun, once the log has what they may send."""
        await self._stored(lambda: self._engine.reserve(self._starting))
        for job in self._starting:
            self._running[asyncio.create_task(self._engine.attempt(job))] = job
        self._starting = []

    def _release(self, job: Job) -> None:
        self._queues.ended(job)
        self._engine.ledger.release(job.probe.task)
        sent_gb, usd = self._engine.ledger.charge(job.probe.task, job.findings.sent)
        job.sent_gb, job.usd = job.sent_gb + sent_gb, job.usd + usd
        # Unlike subtract(), this drops the hosts with nothing left.
        self._progress.running -= Counter(job.hosts)

    def _judge(self, job: Job, task: asyncio.Task[None]) -> None:
        """Count a success; retry, set aside or give up a failure."""
        error = task.exception()
        if error is None:
            for host in job.logins:
                self._failures_in_a_row[host] = 0
            self._progress.done += 1
            self._engine.busy_s += job.findings.busy_s
            self._add(job)
            return
        if not isinstance(error, ProbeError):
            raise error
        job.error = error
        if error.cause == "limit":
            job.times *= TIMES
            self._queues.retry(job, time.monotonic())
            return
        if error.of_the_host:
            if error.cause == "unreachable":
                self._engine.sessions.forget(error.host)
            self._failures_in_a_row[error.host] += 1
            failures = self._failures_in_a_row[error.host]
            if error.lasting or failures >= self._limits.host_failures:
                if error.host not in self._skipped_hosts:
                    self._skipped_hosts[error.host] = error
                    self._engine.on_note(f"{error} It is skipped for now.")
                self._set_aside(job)
                return
        if error.lasting or job.attempts >= self._limits.attempts:
            self._fail(job, error)
            return
        delay_s = self._limits.backoff_s * 4 ** (job.attempts - 1)
        delay_s *= self._engine.random.uniform(0.75, 1.25)
        self._queues.retry(job, time.monotonic() + delay_s)

    def _set_aside(self, job: Job) -> None:
        job.waits_for_host, job.attempts = True, 0

    def _fail(self, job: Job, error: ProbeError) -> None:
        self._progress.failed += 1
        self._add(job, error)

    def _add(self, job: Job, error: ProbeError | None = None) -> None:
        self._unwritten.append(
            ProbeOutcome(
                job.probe,
                tuple(job.findings.samples[: job.findings.kept] if error else job.findings.samples),
                job.sent_gb,
                job.usd,
                max(1, job.attempts),
                f"{error.problem}. {error.remedy}".strip() if error else "",
                error.cause if error else None,
                error.host if error else "",
                job.findings.busy_s,
                (*job.notes, *job.findings.notes),
            )
        )

    # ---- keeping and reporting -----------------------------------------------------------------

    async def _stored(self, write: Callable[[], None]) -> None:
        """Write to the log; wait and try again where the store can't take it now."""
        for wait_s in (*STORE_RETRIES_S, None):
            try:
                write()
            except StoreError as error:
                if wait_s is None:
                    raise
                self._engine.on_note(f"{error} Trying again in {wait_s:.0f} s.")
                await asyncio.sleep(wait_s)
            else:
                return

    def _write(self) -> None:
        if not self._unwritten:
            return
        self._engine.record(self._unwritten)
        self._outcomes += self._unwritten
        self._unwritten = []
        self._report()

    def _report(self) -> None:
        self._progress.left_s = self._queues.left_s()
        self._engine.report()
