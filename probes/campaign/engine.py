"""Runs probes to the end: each VM in one bandwidth probe at a time, failures kept to their own.

Rounds give the order. A probe starts as soon as all its hosts are done with their earlier
rounds, so that one slow or hanging host holds up only what it takes part in.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.model.errors import StoreError
from probes.campaign.costing import Meter
from probes.campaign.findings import Findings
from probes.campaign.probing import Prober
from probes.campaign.rounds import schedule
from probes.campaign.state import CampaignLog, Probe, ProbeOutcome
from probes.fleet.failures import ProbeError
from probes.fleet.sessions import Sessions


@dataclass(frozen=True, slots=True)
class CampaignLimits:
    """What a campaign keeps to.

    Attributes
    ----------
    budget_usd : float
    deadline_s : float
        By ``time.monotonic()``; no probe starts that would end after it.
    attempts : int
        For one probe.
    backoff_s : float
        Before the second attempt; four times as long before each further one.
    jitter_s : float
        Each bandwidth probe starts up to this much later: some clouds dip at full and half
        minutes, and tests that begin together meet in the same queues.
    at_once : int
        Bandwidth probes at a time.
    pings_at_once, pings_of_host : int
        Round-trip probes at a time, in all and from one host.
    host_failures : int
        After so many failures in a row a host is left alone until the end of the stage.
    """

    budget_usd: float = float("inf")
    deadline_s: float = float("inf")
    attempts: int = 3
    backoff_s: float = 1.0
    jitter_s: float = 0.25
    at_once: int = 1_000
    pings_at_once: int = 64
    pings_of_host: int = 4
    host_failures: int = 2


@dataclass
class StageProgress:
    """How far a stage is; the same object is updated and shown again and again."""

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


@dataclass
class _Job:
    probe: Probe
    round: int
    duration_s: float
    attempts: int = 0
    findings: Findings = field(default_factory=Findings)


class Engine:
    """Runs the stages of one campaign.

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
        Called with a line about something worth telling.
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
        self._meter = meter
        self._limits = limits
        self._on_progress = on_progress
        self._on_note = on_note
        self._random = random.Random(seed)  # noqa: S311 - spreads starts, keeps no secret
        self.progress = StageProgress()
        self.progress.sent_gb, self.progress.usd = log.spent()
        self.busy_s = 0.0
        self._in_flight_usd = 0.0

    async def run(self, probes: Sequence[Probe]) -> list[ProbeOutcome]:
        """Run the probes of a stage; returns what became of those that were begun.

        Raises
        ------
        StoreError
            If results can't be kept, after several tries.
        """
        stage = _Stage(self, probes)
        return await stage.run()


class _Stage:
    """One run of :meth:`Engine.run`."""

    def __init__(self, engine: Engine, probes: Sequence[Probe]) -> None:
        self._engine = engine
        self._limits = engine._limits
        self._progress = engine.progress
        self._jobs = _ordered(probes, engine._prober)
        # Bandwidth probes wait in line at each of their hosts, in the order of rounds.
        self._lines: dict[str, deque[_Job]] = {}
        self._pings: deque[_Job] = deque()
        for job in self._jobs:
            if job.probe.task.phase == "rtt":
                self._pings.append(job)
            else:
                for host in job.probe.task.hosts:
                    self._lines.setdefault(host, deque()).append(job)
        self._pings_of: Counter[str] = Counter()
        self._running: dict[asyncio.Task[None], _Job] = {}
        self._again: list[tuple[float, _Job]] = []
        self._in_a_row: Counter[str] = Counter()
        self._left_alone: dict[str, ProbeError] = {}
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
        await self._keep()
        return self._outcomes

    async def _run_all(self) -> None:
        while True:
            self._start()
            self._show()
            if not self._running:
                if not self._again:
                    return
                await asyncio.sleep(max(0.0, min(t for t, _ in self._again) - time.monotonic()))
                continue
            wake_s = min((t for t, _ in self._again), default=time.monotonic() + 1.0)
            timeout_s = max(0.01, min(1.0, wake_s - time.monotonic()))
            ended, _ = await asyncio.wait(
                self._running, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            for task in ended:
                job = self._running.pop(task)
                self._release(job)
                self._judge(job, task)
            if self._unwritten:
                await self._keep()

    async def _second_chance(self) -> None:
        """Ask hosts that were left alone once more, now that nothing else waits for them."""
        waiting = [job for job in self._jobs if job.attempts < 0]
        if not waiting:
            return
        back = await asyncio.gather(*(self._answers(name) for name in self._left_alone))
        answers = dict(zip(self._left_alone, back, strict=True))
        for job in waiting:
            silent = [h for h in _needed(job) if not answers.get(h, True)]
            if silent:
                self._fail(job, self._left_alone[silent[0]])
            else:
                job.attempts = self._limits.attempts - 1
                self._again.append((0.0, job))
        self._left_alone = {h: e for h, e in self._left_alone.items() if not answers[h]}
        self._in_a_row.clear()
        await self._keep()
        await self._run_all()
        for job in self._jobs:
            if job.attempts < 0:  # left alone again meanwhile
                host = next(h for h in _needed(job) if h in self._left_alone)
                self._fail(job, self._left_alone[host])

    async def _answers(self, name: str) -> bool:
        if self._left_alone[name].lasting:
            return False
        try:
            await self._engine._sessions.session(name)
        except ProbeError:
            return False
        return True

    # ---- starting -----------------------------------------------------------------------------

    def _start(self) -> None:
        now_s = time.monotonic()
        busy = {h for job in self._running.values() if not _is_ping(job) for h in _hosts(job)}
        bandwidth = sum(not _is_ping(job) for job in self._running.values())
        due = [job for at_s, job in self._again if at_s <= now_s]
        self._again = [(at_s, job) for at_s, job in self._again if at_s > now_s]
        for job in due:
            fits = not (_hosts(job) & busy) and bandwidth < self._limits.at_once
            if not fits and not _is_ping(job):
                self._again.append((now_s + 0.2, job))
            elif self._begin(job):
                busy |= set() if _is_ping(job) else _hosts(job)
                bandwidth += not _is_ping(job)
        for line in list(self._lines.values()):
            while line and bandwidth < self._limits.at_once:
                job = line[0]
                if _hosts(job) & busy or any(self._lines[h][0] is not job for h in _hosts(job)):
                    break
                for host in _hosts(job):
                    self._lines[host].popleft()
                if self._begin(job):
                    busy |= _hosts(job)
                    bandwidth += 1
        self._start_pings()

    def _start_pings(self) -> None:
        pings = sum(_is_ping(job) for job in self._running.values())
        for _ in range(len(self._pings)):
            if pings >= self._limits.pings_at_once:
                return
            job = self._pings.popleft()
            if self._pings_of[_client(job)] >= self._limits.pings_of_host:
                self._pings.append(job)
            elif self._begin(job):
                pings += 1

    def _begin(self, job: _Job) -> bool:
        """Start a job unless a limit or a host that was left alone is in the way."""
        engine, limits = self._engine, self._limits
        for host in _needed(job):
            if host in self._left_alone:
                self._set_aside(job)
                return False
        usd = self._usd_expected(job)
        over_budget = engine.progress.usd + engine._in_flight_usd + usd > limits.budget_usd
        if over_budget or time.monotonic() + job.duration_s > limits.deadline_s:
            self._progress.left_out += 1
            return False
        engine._in_flight_usd += usd
        self._progress.round = max(self._progress.round, job.round)
        if _is_ping(job):
            self._pings_of[_client(job)] += 1
        for host in job.probe.task.hosts:
            self._progress.running[host] += 1
        self._running[asyncio.create_task(self._attempt(job))] = job
        return True

    def _usd_expected(self, job: _Job) -> float:
        task = job.probe.task
        region = self._engine._sessions.fleet.region_of
        gb = task.expected_gbps * task.duration_s / 8 / len(task.pairs)
        if not gb:
            return 0.0
        return sum(self._engine._meter.price(region[s], region[d], gb) for s, d in task.pairs)

    async def _attempt(self, job: _Job) -> None:
        if not _is_ping(job):
            await asyncio.sleep(self._engine._random.uniform(0.0, self._limits.jitter_s))
        before = job.findings
        # Samples of an attempt that failed halfway are not kept; what it moved is.
        job.findings = Findings(sent=before.sent)
        job.attempts += 1
        await self._engine._prober.probe(job.probe.task, job.findings)

    # ---- ending -------------------------------------------------------------------------------

    def _release(self, job: _Job) -> None:
        self._engine._in_flight_usd -= self._usd_expected(job)
        if _is_ping(job):
            self._pings_of[_client(job)] -= 1
        for host in job.probe.task.hosts:
            self._progress.running[host] -= 1
            if not self._progress.running[host]:
                del self._progress.running[host]

    def _judge(self, job: _Job, task: asyncio.Task[None]) -> None:
        error = task.exception()
        if error is None:
            for host in _needed(job):
                self._in_a_row[host] = 0
            self._progress.done += 1
            self._engine.busy_s += job.findings.busy_s
            self._add(job, "", None)
            return
        if not isinstance(error, ProbeError):
            raise error
        if error.of_the_host:
            if error.cause == "unreachable":
                self._engine._sessions.forget(error.host)
            self._in_a_row[error.host] += 1
            if error.lasting or self._in_a_row[error.host] >= self._limits.host_failures:
                if error.host not in self._left_alone:
                    self._left_alone[error.host] = error
                    self._engine._on_note(f"{error} It is left alone for now.")
                self._set_aside(job)
                return
        if error.lasting or job.attempts >= self._limits.attempts:
            self._fail(job, error)
            return
        delay_s = self._limits.backoff_s * 4 ** (job.attempts - 1)
        delay_s *= self._engine._random.uniform(0.75, 1.25)
        self._again.append((time.monotonic() + delay_s, job))

    def _set_aside(self, job: _Job) -> None:
        job.attempts = -1

    def _fail(self, job: _Job, error: ProbeError) -> None:
        job.attempts = max(job.attempts, 1)
        self._progress.failed += 1
        self._add(job, f"{error.problem}. {error.remedy}".strip(), error)

    def _add(self, job: _Job, problem: str, error: ProbeError | None) -> None:
        region = self._engine._sessions.fleet.region_of
        usd = sent_gb = 0.0
        for src, dst, gb in job.findings.sent:
            sent_gb += gb
            usd += self._engine._meter.add(region[src], region[dst], gb)
        self._progress.sent_gb += sent_gb
        self._progress.usd += usd
        self._unwritten.append(
            ProbeOutcome(
                job.probe,
                () if problem else tuple(job.findings.samples),
                sent_gb,
                usd,
                max(1, job.attempts),
                problem,
                error.cause if error else None,
                error.host if error else "",
                job.findings.busy_s,
                tuple(job.findings.notes),
            )
        )

    async def _keep(self) -> None:
        """Write what is known; wait and try again where the store has no room just now."""
        for wait_s in (1.0, 4.0, 10.0, None):
            try:
                self._write()
            except StoreError as error:
                if wait_s is None:
                    raise
                self._engine._on_note(f"{error} Trying again in {wait_s:.0f} s.")
                await asyncio.sleep(wait_s)
            else:
                return

    def _write(self) -> None:
        if not self._unwritten:
            return
        self._engine._log.record(self._unwritten)
        self._outcomes += self._unwritten
        self._unwritten = []
        self._show()

    def _show(self) -> None:
        self._progress.left_s = self._left_s()
        self._engine._on_progress(self._progress)

    def _left_s(self) -> float:
        """Return how long the rest takes at least: the longest line, or all pings."""
        lines = [sum(job.duration_s for job in line) for line in self._lines.values()]
        running = [job.duration_s for job in self._running.values()]
        of_host: Mapping[str, float] = Counter()
        totals: Counter[str] = Counter()
        for job in self._pings:
            totals[_client(job)] += 1
        of_host = {h: n * 2.5 / self._limits.pings_of_host for h, n in totals.items()}
        return max([0.0, *lines, *running, *of_host.values()])


def _ordered(probes: Sequence[Probe], prober: Prober) -> list[_Job]:
    """Return jobs in the order of their rounds."""
    ids = {id(probe.task): probe for probe in probes}
    jobs = []
    for number, one_round in enumerate(schedule([probe.task for probe in probes]), start=1):
        jobs += [_Job(ids[id(task)], number, prober.expected_s(task)) for task in one_round.tasks]
    assert len(jobs) == len(probes)
    return jobs


def _is_ping(job: _Job) -> bool:
    return job.probe.task.phase == "rtt"


def _hosts(job: _Job) -> frozenset[str]:
    return job.probe.task.hosts


def _needed(job: _Job) -> frozenset[str]:
    """Return the hosts that a job logs in to; the other end of a ping just answers."""
    return frozenset({_client(job)}) if _is_ping(job) else _hosts(job)


def _client(job: _Job) -> str:
    return job.probe.task.pairs[0][0]
