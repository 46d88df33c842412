"""Verifies plans with the fleet: what would run, running it, and storing the results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.model.errors import DataError, InfeasibleError, InputError
from planner.model.link import Link
from planner.model.network import Network
from planner.model.units import MBPS_PER_GBPS
from probes.campaign.costing import Meter
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet
from probes.fleet.login import Timeouts
from probes.fleet.sessions import Sessions
from probes.samples import Sample
from probes.tools.running import Ports
from probes.verification.full_limits import FullLimit, filled_by
from probes.verification.limits import VerificationLimits, cost_usd, links_usd, runs_of, volume_gb
from probes.verification.outcomes import (
    Judgement,
    PathOutcome,
    RunOutcome,
    in_doubt,
    judged,
    samples_of,
)
from probes.verification.plan_documents import predicted
from probes.verification.predictions import PlanPrediction
from probes.verification.running import run
from probes.verification.runs import LEAST_GBPS, LIMITS, MOST_RECHECKED, Run, apart, available
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
    full : tuple of FullLimit
        What the plan fills, with the VMs that the fleet has.
    """

    plan: PlanPrediction
    runs: list[Run]
    network: Network
    limits: VerificationLimits
    notes: list[str]
    full: tuple[FullLimit, ...] = ()

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
            for path in one.paths if one.kind != LIMITS else ():
                rate_gbps = path.path.rate.expected_gbps
                rechecks[path.path.regions] = apart(
                    path, one.prediction, rate_gbps, self.limits.measured_s
                )
        most = sorted(rechecks.values(), key=lambda runs: -volume_gb(runs, at_most=True))
        return [run for found in most[:MOST_RECHECKED] for run in found]


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
    unfinished : Run | None
        The run that has begun to send and has not ended in good order.
    """

    job: VerificationJob
    outcomes: list[RunOutcome] = field(default_factory=list)
    rechecks: list[RunOutcome] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    error: ProbeError | None = None
    unfinished: Run | None = None

    def __repr__(self) -> str:
        plan = self.job.plan
        state = "failed" if self.error else "as" if self.is_as_predicted else "not as"
        suffix = "" if self.error else " predicted"
        return f"<Verification of {plan.plan_id}: {plan.title} {state}{suffix}>"

    @property
    def is_as_predicted(self) -> bool:
        """Whether runs carried what was predicted, in total and on each path, and limits hold."""
        runs_hold = all(
            outcome.judgement == "within"
            and all(
                judged(path.achieved_gbps, path.run.path.rate) == "within" for path in outcome.paths
            )
            for outcome in self.outcomes
            if outcome.run.kind != LIMITS
        )
        return runs_hold and all(judgement != "above" for _, _, judgement in self.filled())

    def filled(self) -> list[tuple[FullLimit, float, Judgement]]:
        """Return what the plan fills, and what it carried when its paths were allowed more."""
        found = []
        for outcome in self.outcomes:
            if outcome.run.kind == LIMITS:
                carried = outcome.carried()
                for full in self.job.full:
                    _, gbps = carried[full.kind, full.regions]
                    found.append((full, gbps, judged(gbps, full.rate)))
        return found

    @property
    def sent(self) -> list[tuple[str, str, float]]:
        """Source, destination and GB on the wire of all links.

        Of what has not ended in good order, the most that it may have sent.
        """
        ended = [
            link
            for outcome in (*self.outcomes, *self.rechecks)
            for path in outcome.paths
            for link in path.run.on_wire(path.sent_gb)
        ]
        return ended + (list(self.unfinished.sent(at_most=True)) if self.unfinished else [])


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
        self._ahead_gb = 0.0

    def price(self, src: str, dst: str, gb: float, ahead_gb: float | None = None) -> float:
        """Return what a volume costs in USD: sent first, or after others and their plans."""
        after_gb = 0.0 if ahead_gb is None else ahead_gb + self._ahead_gb
        return self._meter.price(src, dst, gb, after_gb)

    def job(self, plan: Mapping[str, Any], limits: VerificationLimits) -> VerificationJob:
        """Return the runs of a plan.

        Raises
        ------
        InputError
            If the document is no plan of a transfer, shuffle or broadcast, the fleet lacks a
            region of it, or the limits do not allow the shortest runs.
        """
        whole = predicted(plan, self._rtt_ms)
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
        if part.sets_rates:
            kept = part.at_least(LEAST_GBPS)
            if slow := len(part.paths) - len(kept.paths):
                share = 1 - kept.rate.expected_gbps / part.rate.expected_gbps
                notes.append(
                    f"{slow} {'path' if slow == 1 else 'paths'} of less than "
                    f"{LEAST_GBPS * MBPS_PER_GBPS:g} Mbit/s, {share:.1%} of all, can't be measured "
                    "and were left out."
                )
            part = kept
        predictions = {"plan": part}
        full: tuple[FullLimit, ...] = ()
        if whole.question == "transfer":
            network = self._wan.network_between(whole.src, whole.dst)
            if whole.verdict != "direct" and (direct := self._direct(plan, notes)):
                predictions["direct"] = direct.with_vms(have)
        else:
            network = self._wan.network_of(tuple(whole.vms))
            if full := filled_by(part, network):
                predictions[LIMITS] = part
        runs = runs_of(predictions, self._fleet, limits, self.price)
        job = VerificationJob(whole, runs, network, limits, notes, full)
        # Another plan may run at the same time, and reach the next tier of prices with this one.
        self._ahead_gb += volume_gb([*job.runs, *job.rechecks()], at_most=True)
        return job

    def _rtt_ms(self, src: str, dst: str) -> float:
        return self._wan.network_between(src, dst).link(src, dst).rtt_ms.expected

    def _direct(self, plan: Mapping[str, Any], notes: list[str]) -> PlanPrediction | None:
        """Return what the direct path is expected to carry with the plan's VMs at its ends."""
        request = plan["request"]
        try:
            ends = request["src"], request["dst"]
            found = self._wan.plan(
                *ends,
                relays="none",
                objective="time",
                volume_gb=float(request["volume_gb"]),
                connections=int(request["connections"]),
                vms_in={region: int(plan["vms"][region]) for region in ends},
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
        return predicted(found.model_dump("json"), self._rtt_ms)

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
            self._fleet,
            owner,
            timeouts=timeouts,
            on_contact=note_leftovers(on_note),
            permit=store.check_lease,
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
                one.outcomes.append(await self._run(one, what, sessions, ports))
            for path in in_doubt(one.outcomes):
                for recheck in apart(
                    path.run, one.job.plan, path.achieved_gbps, one.job.limits.measured_s
                ):
                    if self._within_limits(one, recheck):
                        one.rechecks.append(await self._run(one, recheck, sessions, ports))
                    else:
                        links = " -> ".join(recheck.paths[0].path.regions)
                        one.notes.append(f"{links} was not rechecked: the limits are reached.")
        except ProbeError as error:
            if error.cause == "unreachable":
                sessions.forget(error.host)
            one.error = error

    async def _run(
        self, one: Verification, what: Run, sessions: Sessions, ports: Ports
    ) -> RunOutcome:
        def begin() -> None:
            one.unfinished = what

        outcome = await run(sessions, ports, what, begin)
        one.unfinished = None
        return outcome

    def _within_limits(self, one: Verification, recheck: Run) -> bool:
        limits, sent = one.job.limits, one.sent
        so_far_gb = sum(gb for _, _, gb in sent)
        so_far_usd = links_usd(sent, self.price)
        return (
            so_far_gb + volume_gb([recheck], at_most=True) <= limits.most_gb
            and so_far_usd + cost_usd([recheck], self.price, at_most=True) <= limits.budget_usd
        )

    def _keep(self, one: Verification, kept: Verifications) -> None:
        plan = one.job.plan
        one.samples = samples_of(one.outcomes, one.rechecks, one.job.link, plan.plan_id)
        rows = [
            row for outcome in one.outcomes if outcome.run.kind != LIMITS for row in _rows(outcome)
        ]
        if not rows:
            return
        events = [_event_of_many(one)] if plan.sets_rates else []
        kept.record(rows, one.samples, events)


def _event_of_many(one: Verification) -> tuple[str, dict[str, object]]:
    """Return the subject and the detail of the event of a shuffle or broadcast."""
    plan, first = one.job.plan, one.outcomes[0]
    detail = {
        "plan_id": plan.plan_id,
        "verdict": plan.verdict,
        "expected_gbps": first.run.prediction.rate.expected_gbps,
        "achieved_gbps": first.achieved_gbps,
        "held": one.is_as_predicted,
    }
    return f"{plan.question} {plan.plan_id}", detail


def _rows(outcome: RunOutcome) -> list[VerificationRow]:
    plan = outcome.run.prediction
    alone = len(outcome.paths) == 1 and not plan.sets_rates

    def row(paths: Sequence[PathOutcome], name: str) -> VerificationRow:
        rate = plan.rate if not name else paths[0].run.path.rate
        bounds, regions = rate.of_one_run(), paths[0].run.path.regions
        return VerificationRow(
            plan.plan_id,
            plan.snapshot_id,
            regions[0],
            regions[-1],
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

    whole = [] if plan.sets_rates else [row(outcome.paths, "")]
    return whole + [row([path], ">".join(path.run.path.regions)) for path in outcome.paths]
