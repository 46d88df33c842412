"""Verifies plans with the fleet: what would run, running it, and storing the results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from planner.model.errors import DataError, InfeasibleError, InputError
from planner.model.link import Link
from planner.model.network import Network
from planner.model.predictions import PlanPrediction, predicted
from probes.campaign.costing import Meter
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet
from probes.fleet.login import Timeouts
from probes.fleet.sessions import Sessions
from probes.samples import Sample
from probes.tools.running import Ports
from probes.verification.outcomes import PathOutcome, RunOutcome, in_doubt, judged, samples_of
from probes.verification.running import run
from probes.verification.runs import (
    Run,
    VerificationLimits,
    apart,
    available,
    cost_usd,
    runs_of,
    volume_gb,
)
from relayd.campaigns.running import note_leftovers
from relayd.sources.wan import Wan
from relayd.store import Store
from relayd.store.campaigns.log import Campaigns
from relayd.store.verifications import VerificationRow, Verifications


@dataclass(frozen=True, slots=True)
class VerificationJob:
    """One plan and its runs.

    Attributes
    ----------
    plan : PlanPrediction
        For all planned VMs.
    runs : list of Run
        With the VMs that the fleet has.
    network : Network
        Estimates of the links now.
    limits : VerificationLimits
    notes : list of str
    """

    plan: PlanPrediction
    runs: list[Run]
    network: Network
    limits: VerificationLimits
    notes: list[str]

    @property
    def hosts(self) -> frozenset[str]:
        """All hosts that take part."""
        return frozenset(host for one in self.runs for host in one.hosts)

    def link(self, src: str, dst: str) -> Link | None:
        """Return the estimate of a link."""
        return self.network.links.get(src, {}).get(dst)

    def rechecks(self) -> list[Run]:
        """Return the most runs that are added where paths are not as predicted."""
        rechecks: dict[tuple[str, ...], list[Run]] = {}
        for one in self.runs:
            for path in one.paths:
                if len(path.path.regions) == 3 or len(one.paths) == 1:
                    rate_gbps = path.path.rate.expected_gbps
                    rechecks[path.path.regions] = apart(
                        path, one.prediction, rate_gbps, self.limits.measured_s
                    )
        return [run for found in rechecks.values() for run in found]


@dataclass
class Verification:
    """The result of verifying one plan.

    Attributes
    ----------
    outcomes, rechecks : list of RunOutcome
        Of the plan and of direct, and of rechecked links.
    samples : list of Sample
        Of links, as they were stored.
    error : ProbeError | None
        What ended it early.
    """

    job: VerificationJob
    outcomes: list[RunOutcome] = field(default_factory=list)
    rechecks: list[RunOutcome] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: ProbeError | None = None

    def __repr__(self) -> str:
        plan = self.job.plan
        state = "failed" if self.error else "as" if self.is_as_predicted else "not as"
        suffix = "" if self.error else " predicted"
        return f"<Verification of {plan.plan_id}: {plan.src} -> {plan.dst} {state}{suffix}>"

    @property
    def is_as_predicted(self) -> bool:
        """Whether all runs carried what was predicted, in total and on each path."""
        return all(
            outcome.judgement == "within"
            and all(
                judged(path.achieved_gbps, path.run.path.rate) == "within" for path in outcome.paths
            )
            for outcome in self.outcomes
        )

    @property
    def sent(self) -> list[tuple[str, str, float]]:
        """Source, destination and GB of all links."""
        return [
            link
            for outcome in (*self.outcomes, *self.rechecks)
            for path in outcome.paths
            for link in _sent(path)
        ]


class Verifier:
    """Verifies plans with a fleet.

    Parameters
    ----------
    fleet : Fleet
    wan : Wan
        Current estimates.
    meter : Meter
        Prices what is sent.
    """

    def __init__(self, fleet: Fleet, wan: Wan, meter: Meter) -> None:
        self._fleet = fleet
        self._wan = wan
        self._meter = meter

    def price(self, src: str, dst: str, gb: float) -> float:
        """Return what a volume costs in USD."""
        return self._meter.price(src, dst, gb)

    def job(self, plan: Mapping[str, Any], limits: VerificationLimits) -> VerificationJob:
        """Return the runs of a plan.

        Raises
        ------
        InputError
            If the document is no transfer's plan, the fleet lacks a region of it, or the limits
            do not allow the shortest runs.
        """
        whole = predicted(plan)
        have = available(self._fleet)
        part = whole.with_vms(have)
        notes = []
        if part.share < 1:
            vms = ", ".join(f"{part.vms[r]} of {n} at {r}" for r, n in whole.vms.items())
            notes.append(
                f"Run with {part.share:.0%} of the plan's VMs ({vms}); predictions are in "
                "proportion."
            )
        if whole.snapshot_id != self._wan.snapshot.id:
            notes.append(
                f"The plan rests on snapshot {whole.snapshot_id}; the newest is "
                f"{self._wan.snapshot.id}."
            )
        predictions = {"plan": part}
        if whole.verdict != "direct" and (direct := self._direct(plan, notes)):
            predictions["direct"] = direct.with_vms(have)
        runs = runs_of(predictions, self._fleet, limits, self.price)
        network = self._wan.network_between(whole.src, whole.dst)
        return VerificationJob(whole, runs, network, limits, notes)

    def _direct(self, plan: Mapping[str, Any], notes: list[str]) -> PlanPrediction | None:
        """Return what the direct path is expected to carry with the VMs of the request."""
        request = plan["request"]
        try:
            found = self._wan.plan(
                request["src"],
                request["dst"],
                relays="none",
                objective="time",
                volume_gb=float(request["volume_gb"]),
                connections=int(request["connections"]),
                vms=int(request.get("vms", 1)),
                vms_in=dict(request.get("vms_in", {})),
            )
        except (DataError, InfeasibleError) as error:
            notes.append(f"Not compared with the direct path: {error}")
            return None
        except (KeyError, TypeError, ValueError) as fault:
            if isinstance(fault, InputError):
                raise
            raise InputError(
                "plan",
                f"has no proper request: {type(fault).__name__} {fault}",
                remedy="Give a document as `relayd plan --json` prints it.",
            ) from None
        return predicted(found.model_dump("json"))

    async def verify(
        self,
        jobs: Sequence[VerificationJob],
        store: Store,
        *,
        timeouts: Timeouts | None = None,
        on_done: Callable[[Verification], None] = lambda _: None,
        on_note: Callable[[str], None] = lambda _: None,
    ) -> list[Verification]:
        """Run jobs, those without common hosts at the same time; store the results of each.

        A host that fails ends the jobs that it takes part in.
        """
        owner = Campaigns(store).controller
        found = [Verification(job) for job in jobs]
        kept = Verifications(store.database)
        async with Sessions(
            self._fleet, owner, timeouts=timeouts, on_contact=note_leftovers(on_note)
        ) as sessions:
            ports = Ports()
            waiting, running = list(found), dict[asyncio.Task[None], Verification]()
            try:
                while waiting or running:
                    busy = {host for one in running.values() for host in one.job.hosts}
                    for one in list(waiting):
                        if not one.job.hosts & busy:
                            waiting.remove(one)
                            busy |= one.job.hosts
                            task = asyncio.create_task(self._verify(one, sessions, ports))
                            running[task] = one
                    ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for task in ended:
                        one = running.pop(task)
                        task.result()
                        self._keep(one, kept)
                        on_done(one)
            except BaseException:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
                for one in running.values():
                    self._keep(one, kept)  # what was measured before the interruption
                raise
        return found

    async def _verify(self, one: Verification, sessions: Sessions, ports: Ports) -> None:
        try:
            for what in one.job.runs:
                one.outcomes.append(await run(sessions, ports, what))
            for path in in_doubt(one.outcomes):
                for recheck in apart(
                    path.run, one.job.plan, path.achieved_gbps, one.job.limits.measured_s
                ):
                    if self._within_limits(one, recheck):
                        one.rechecks.append(await run(sessions, ports, recheck))
                    else:
                        links = " -> ".join(recheck.paths[0].path.regions)
                        one.notes.append(f"{links} was not rechecked: the limits are reached.")
        except ProbeError as error:
            if error.cause == "unreachable":
                sessions.forget(error.host)
            one.error = error

    def _within_limits(self, one: Verification, recheck: Run) -> bool:
        limits, sent = one.job.limits, one.sent
        so_far_gb = sum(gb for _, _, gb in sent)
        so_far_usd = sum(self.price(*link) for link in sent)
        return (
            so_far_gb + volume_gb([recheck], at_most=True) <= limits.most_gb
            and so_far_usd + cost_usd([recheck], self.price, at_most=True) <= limits.budget_usd
        )

    def _keep(self, one: Verification, kept: Verifications) -> None:
        one.samples = samples_of(one.outcomes, one.rechecks, one.job.link, one.job.plan.plan_id)
        rows = [row for outcome in one.outcomes for row in _rows(outcome)]
        if rows:
            kept.record(rows, one.samples)


def _rows(outcome: RunOutcome) -> list[VerificationRow]:
    plan, alone = outcome.run.prediction, len(outcome.paths) == 1

    def row(paths: Sequence[PathOutcome], name: str) -> VerificationRow:
        rate = plan.rate if not name else paths[0].run.path.rate
        bounds = rate.of_one_run()
        return VerificationRow(
            plan.plan_id,
            plan.snapshot_id,
            plan.src,
            plan.dst,
            outcome.run.kind,
            plan.verdict,
            name,
            sum(p.run.path.connections for p in paths),
            sum(len(p.run.streams) for p in paths),
            alone,
            bounds.low_gbps,
            bounds.expected_gbps,
            bounds.high_gbps,
            sum(p.achieved_gbps for p in paths),
            outcome.measured_at_s,
        )

    return [
        row(outcome.paths, ""),
        *(row([path], ">".join(path.run.path.regions)) for path in outcome.paths),
    ]


def _sent(path: PathOutcome) -> list[tuple[str, str, float]]:
    return [(src, dst, path.sent_gb) for src, dst in pairwise(path.run.path.regions)]
