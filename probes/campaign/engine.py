"""Runs the probes of a campaign: rounds, retries, hosts that fail, the budget, keeping results.

Rounds give the order. A probe starts as soon as all its hosts are done with their earlier rounds,
so that a slow or hanging host delays only the probes that it takes part in.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapreplace
from math import inf
from typing import TYPE_CHECKING

from planner.model.errors import StoreError
from probes.campaign.costing import Ledger, Meter
from probes.campaign.probing import Prober, task_s
from probes.campaign.rounds import schedule
from probes.campaign.tasks import CampaignLimits, CampaignLog, Probe, ProbeOutcome
from probes.campaign.throughput_tests import Findings
from probes.fleet.failures import ProbeError

if TYPE_CHECKING:  # which loads asyncssh
    from probes.fleet.sessions import Sessions

PING_S = 2.5  # usual length of a round-trip probe, with login
RETRY_BUSY_S = 0.2  # wait of a probe that the budget may allow once running ones have ended
STORE_RETRIES_S = (1.0, 4.0, 10.0)
"""Waits before results are written again where the store can't take them."""
TIMES = 4.0  # factor of a probe's next allowance where the last one was too small


@dataclass
class StageProgress:
    """Progress of a stage; one object, updated and reported again and again."""

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


@dataclass(eq=False, kw_only=True)
class Job(ProbeOutcome):
    """A probe on its way through a stage, with the volume of all its attempts so far."""

    round: int  # from 1
    duration_s: float  # expected
    attempts: int = 0
    findings: Findings = field(default_factory=Findings)  # of the latest attempt
    due_s: float = 0.0  # earliest start, by time.monotonic()
    waits_for_host: bool = False  # until the end of the stage, because one of its hosts is skipped
    times: float = 1.0  # factor of the expected volume that it may send, by earlier attempts
    most_gb: float = inf  # allowance of the next attempt
    error: ProbeError | None = None  # of the latest attempt that failed

    def __post_init__(self) -> None:
        task = self.probe.task
        self.is_ping, self.client = task.phase == "rtt", task.pairs[0][0]
        # A ping occupies its sender alone, and the other end needs no login.
        self.hosts = frozenset({self.client}) if self.is_ping else task.hosts

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


class Engine:
    """Runs the stages of one campaign, one after the other.

    The meter prices volumes on top of earlier ones. `on_progress` is called after every change
    with the :class:`StageProgress`, `on_note` with a line that the operator should read.
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
        self._sessions = sessions
        self._prober = prober
        self._log = log
        self._limits = limits
        self._on_progress = on_progress
        self._on_note = on_note
        self._random = random.Random(seed)  # noqa: S311 - spreads starts, keeps no secret
        self.ledger = Ledger(meter, sessions.fleet.region_of, limits.budget_usd, log.spent())
        self.progress = StageProgress()
        self._waiting: list[Job] = []  # in the order in which they may start
        self._starting: list[Job] = []
        self._running: dict[asyncio.Task[None], Job] = {}
        self._unwritten: list[ProbeOutcome] = []

    async def run(self, probes: Sequence[Probe]) -> list[ProbeOutcome]:
        """Run the probes of a stage; return the outcomes of those that were begun.

        Raises StoreError if results can't be kept, after several tries.
        """
        of_task = {id(probe.task): probe for probe in probes}
        self._waiting = jobs = [
            Job(probe=of_task[id(task)], round=number, duration_s=task_s(task, self._prober.rtt_ms))
            for number, one_round in enumerate(schedule([probe.task for probe in probes]), start=1)
            for task in one_round.tasks
        ]
        self._failures_in_a_row: Counter[str] = Counter()
        self._skipped_hosts: dict[str, ProbeError] = {}
        self._outcomes: list[ProbeOutcome] = []
        progress = self.progress
        progress.stage = jobs[0].probe.stage if jobs else ""
        progress.round, progress.rounds = 0, max((job.round for job in jobs), default=0)
        progress.done = progress.failed = progress.left_out = 0
        progress.total = len(jobs)
        try:
            await self._run_all()
            await self._second_chance([job for job in jobs if job.waits_for_host])
        except BaseException:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)
            self._write()  # results from before the interruption are kept
            raise
        await self._stored(self._write)
        return self._outcomes

    async def _run_all(self) -> None:
        while True:
            self._begin_due()
            if self._starting:
                await self._start()
            self._report()
            if not (self._running or self._waiting):
                return
            now_s = time.monotonic()
            nexts_s = (job.due_s - now_s for job in self._waiting if job.due_s > now_s)
            wait_s = max(0.01, min([1.0, *nexts_s]))
            if not self._running:
                await asyncio.sleep(wait_s)
                continue
            ended, _ = await asyncio.wait(
                self._running, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED
            )
            for task in ended:
                job = self._running.pop(task)
                self.ledger.release(job.probe.task)
                sent_gb, usd = self.ledger.charge(job.probe.task, job.findings.sent)
                job.sent_gb, job.usd = job.sent_gb + sent_gb, job.usd + usd
                self._judge(job, task)
            if self._unwritten:
                await self._stored(self._write)

    async def _second_chance(self, waiting: Sequence[Job]) -> None:
        """Try hosts that were skipped once more, now that no other probe waits for them."""
        back = await asyncio.gather(*map(self._is_back, self._skipped_hosts))
        errors = zip(self._skipped_hosts.items(), back, strict=True)
        self._skipped_hosts = {host: error for (host, error), is_back in errors if not is_back}
        self._failures_in_a_row.clear()
        for job in waiting:
            job.waits_for_host, job.attempts = False, self._limits.attempts - 1
        self._waiting = list(waiting)
        await self._run_all()
        for job in waiting:
            if job.waits_for_host:  # still, or again
                skipped = self._skipped_hosts.items()
                self._end(job, next(error for host, error in skipped if host in job.hosts))

    async def _is_back(self, host: str) -> bool:
        if self._skipped_hosts[host].lasting:
            return False
        try:
            await self._sessions.session(host)
        except ProbeError:
            return False
        return True

    # ---- starting and ending -------------------------------------------------------------------

    def _begin_due(self) -> None:
        """Begin all jobs that may start now; whose turn it is keeps its hosts for it."""
        now_s, limits = time.monotonic(), self._limits
        bandwidth = [job for job in self._running.values() if not job.is_ping]
        room = limits.at_once - len(bandwidth)
        busy = {host for job in bandwidth for host in job.hosts}
        pings = Counter(job.client for job in self._running.values() if job.is_ping)
        waiting, self._waiting = self._waiting, []
        for job in waiting:
            if job.is_ping:
                may = pings.total() < limits.pings_at_once
                may = may and pings[job.client] < limits.pings_of_host
            else:
                may = room > 0 and busy.isdisjoint(job.hosts)
            if job.due_s > now_s or not may:
                self._waiting.append(job)
                busy |= frozenset() if job.is_ping or job.due_s > now_s else job.hosts
            elif self._begin(job):
                pings.update([job.client] if job.is_ping else [])
                room -= not job.is_ping
                busy |= frozenset() if job.is_ping else job.hosts

    def _begin(self, job: Job) -> bool:
        """Reserve a job's allowance, unless a limit or a skipped host is in the way."""
        if not self._skipped_hosts.keys().isdisjoint(job.hosts):
            self._set_aside(job)
            return False
        late = time.monotonic() + job.duration_s > self._limits.deadline_s
        most_gb = None if late else self.ledger.reserve(job.probe.task, job.times)
        if most_gb is None:
            if (self._running or self._starting) and not late:
                # Running probes may send less than was reserved for them.
                self._retry(job, RETRY_BUSY_S)
            elif job.error:
                self._end(job, job.error)
            else:
                self.progress.left_out += 1
                return not late and job.one_flow_alone() and self._begin(job)
            return False
        job.most_gb = most_gb
        self.progress.round = max(self.progress.round, job.round)
        self._starting.append(job)
        return True

    def _retry(self, job: Job, after_s: float) -> None:
        """Start a job again after a while, before those that have not begun."""
        job.due_s = time.monotonic() + after_s
        self._waiting.insert(0, job)

    async def _start(self) -> None:
        """Start the jobs that were begun, once the log has the most that each may have sent."""
        starting = []
        for job in self._starting:
            gb, usd = self.ledger.reserved(job.probe.task)
            starting.append((job.probe, job.sent_gb + gb, job.usd + usd))
        await self._stored(lambda: self._log.reserve(starting))
        for job in self._starting:
            self._running[asyncio.create_task(self._attempt(job))] = job
        self._starting = []

    async def _attempt(self, job: Job) -> None:
        if not job.is_ping:
            await asyncio.sleep(self._random.uniform(0.0, self._limits.jitter_s))
        # Samples of a part that failed halfway are dropped; its volume was charged.
        job.findings = job.findings.again(job.most_gb)
        job.attempts += 1
        await self._prober.probe(job.probe.task, job.findings)

    def _judge(self, job: Job, task: asyncio.Task[None]) -> None:
        """Count a success; retry, set aside or give up a failure."""
        error = task.exception()
        if error is None:
            for host in job.hosts:
                self._failures_in_a_row[host] = 0
            self._end(job)
            return
        if not isinstance(error, ProbeError):
            raise error
        job.error = error
        if error.cause == "limit":
            job.times *= TIMES
            self._retry(job, 0.0)
            return
        if error.of_the_host:
            if error.cause == "unreachable":
                self._sessions.forget(error.host)
            self._failures_in_a_row[error.host] += 1
            failures = self._failures_in_a_row[error.host]
            if error.lasting or failures >= self._limits.host_failures:
                if error.host not in self._skipped_hosts:
                    self._skipped_hosts[error.host] = error
                    self._on_note(f"{error} It is skipped for now.")
                self._set_aside(job)
                return
        if error.lasting or job.attempts >= self._limits.attempts:
            self._end(job, error)
            return
        delay_s = self._limits.backoff_s * 4 ** (job.attempts - 1)
        delay_s *= self._random.uniform(0.75, 1.25)
        self._retry(job, delay_s)

    def _set_aside(self, job: Job) -> None:
        job.waits_for_host, job.attempts = True, 0

    def _end(self, job: Job, error: ProbeError | None = None) -> None:
        """Count a job as done or as failed; of one that failed, the parts before that count."""
        findings = job.findings
        job.samples = tuple(findings.samples[: findings.kept] if error else findings.samples)
        job.busy_s, job.notes = findings.busy_s, (*job.notes, *findings.notes)
        job.attempts = max(1, job.attempts)
        if error:
            self.progress.failed += 1
            job.problem = f"{error.problem}. {error.remedy}".strip()
            job.cause, job.host = error.cause, error.host
        else:
            self.progress.done += 1
        self._unwritten.append(job)

    # ---- keeping and reporting -----------------------------------------------------------------

    async def _stored(self, write: Callable[[], None]) -> None:
        """Write to the log; wait and try again where the store can't take it now."""
        for wait_s in (*STORE_RETRIES_S, None):
            try:
                write()
            except StoreError as error:
                if wait_s is None:
                    raise
                self._on_note(f"{error} Trying again in {wait_s:.0f} s.")
                await asyncio.sleep(wait_s)
            else:
                return

    def _write(self) -> None:
        if not self._unwritten:
            return
        self._log.record(self._unwritten)
        self._outcomes += self._unwritten
        self._unwritten = []
        self._report()

    def _report(self) -> None:
        # A lower bound: the remaining time of the busiest host, or of a job.
        left_s: dict[str, float] = defaultdict(float)
        for job in self._waiting:
            own_s = PING_S / self._limits.pings_of_host if job.is_ping else job.duration_s
            for host in job.hosts:
                left_s[host] += own_s
        running_s = (job.duration_s for job in self._running.values())
        self.progress.left_s = max([0.0, *left_s.values(), *running_s])
        self.progress.sent_gb, self.progress.usd = self.ledger.sent_gb, self.ledger.usd
        self._on_progress(self.progress)


def critical_path_s(outcomes: Sequence[ProbeOutcome], limits: CampaignLimits) -> float:
    """Return the length of the critical path: a campaign's duration if tools alone took time.

    Stages follow one another. Within one, a probe needs all its hosts, and limits hold for probes
    at once; the longest chain of probes that waited for one another is the critical path. The rest
    of a campaign's time is the cost of orchestration: logins, servers that start, jitter, the
    store, choosing.

    Outcomes are in the order of their ends. They are replayed in the order of their beginnings, as
    far as their samples show them, under the limits under which they ran.
    """

    def began_s(outcome: ProbeOutcome) -> float:
        return min((sample.measured_at_s for sample in outcome.samples), default=0.0)

    stages: dict[str, list[ProbeOutcome]] = defaultdict(list)
    for outcome in sorted(outcomes, key=began_s):
        if outcome.busy_s > 0:
            stages[outcome.probe.stage].append(outcome)
    total_s = 0.0
    for stage in stages.values():
        pings = stage[0].probe.task.phase == "rtt"
        together = limits.pings_at_once if pings else limits.at_once
        each = limits.pings_of_host if pings else 1
        lanes = [0.0] * min(together, len(stage))
        seats: dict[str, list[float]] = {}
        for outcome in stage:
            task = outcome.probe.task
            # A ping occupies its sender alone, and only in part.
            hosts = {task.pairs[0][0]} if pings else task.hosts
            places = [seats.setdefault(host, [0.0] * each) for host in hosts]
            end_s = max(lanes[0], *(place[0] for place in places)) + outcome.busy_s
            for heap in (lanes, *places):
                heapreplace(heap, end_s)
        total_s += max(lanes)
    return total_s
