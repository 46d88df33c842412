"""Verifies plans with the fleet: prepares their runs, runs them, and stores the results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from planner.model.errors import DataError, InfeasibleError, InputError
from planner.model.link import Link
from planner.model.network import Network
from planner.model.units import MBPS_PER_GBPS
from probes.campaign.costing import Meter
from probes.fleet.failures import ProbeError
from probes.fleet.hosts import Fleet
from probes.fleet.sessions import Sessions
from probes.samples import Sample
from probes.tools.interface import Ports
from probes.verification.outcomes import in_doubt, samples_of
from probes.verification.predictions import Limit, PlanPath, PlanPrediction, RateRange, predicted
from probes.verification.running import run_together
from probes.verification.runs import (
    LEAST_GBPS,
    LIMITS,
    MOST_RECHECKED,
    Run,
    Sent,
    VerificationLimits,
    apart,
    available,
    links_of,
    runs_of,
    volume_gb,
)
from relayd.sources.wan import Wan
from relayd.store import Store
from relayd.store.campaigns import Campaigns
from relayd.store.verifications import VerificationRow, Verifications


@dataclass
class Verification:
    """One plan, the runs that verify it with the VMs that the fleet has, and their results."""

    plan: PlanPrediction  # for all planned VMs
    runs: list[Run]
    network: Network  # of estimates now
    limits: VerificationLimits
    notes: list[str]
    full: Mapping[Limit, RateRange]  # caps and links that the plan fills, to their estimates
    rechecks: list[Run] = field(default_factory=list)  # of links
    samples: list[Sample] = field(default_factory=list)  # of links, as they were stored
    error: ProbeError | None = None  # that ended it early

    @property
    def hosts(self) -> frozenset[str]:
        """All hosts that take part."""
        return frozenset(host for one in self.runs for host in one.hosts)

    @property
    def ended(self) -> list[Run]:
        """The runs that ended in good order."""
        return [run for run in self.runs if run.measured_at_s]

    @property
    def compared(self) -> list[Run]:
        """Those of them that are compared with predictions."""
        return [run for run in self.ended if run.kind != LIMITS]

    @property
    def rechecked(self) -> list[Run]:
        """The rechecks that ended in good order."""
        return [run for run in self.rechecks if run.measured_at_s]

    @property
    def is_as_predicted(self) -> bool:
        """True if runs were as predicted, in total and on each path, and limits hold."""
        runs_hold = all(
            run.judgement == "within"
            and all(path.rate.judged(path.achieved_gbps) == "within" for path in run.paths)
            for run in self.compared
        )
        return runs_hold and all(rate.judged(gbps) != "above" for _, rate, gbps in self.filled())

    def filled(self) -> list[tuple[Limit, RateRange, float]]:
        """Return each limit that the plan fills, and its Gbit/s when paths were allowed more."""
        return [
            (limit, rate, carried[limit][1])
            for run in self.ended
            if run.kind == LIMITS
            for carried in [run.carried()]
            for limit, rate in self.full.items()
        ]

    @property
    def sent(self) -> list[Sent]:
        """Volumes of runs; of those that have not ended in good order, the most possible."""
        begun = [run for run in (*self.runs, *self.rechecks) if run.has_begun]
        return links_of(begun, at_most=True)

    def link(self, src: str, dst: str) -> Link | None:
        """Return the estimate of a link."""
        return self.network.links.get(src, {}).get(dst)

    def most_rechecks(self) -> list[Run]:
        """Return the most runs that are added where paths are not as predicted."""
        rechecks: dict[tuple[str, ...], list[Run]] = {}
        for run in self.runs:
            for path in run.paths if run.kind != LIMITS else ():
                rechecks[path.regions] = self.rechecks_of(path, path.rate.expected_gbps)
        most = sorted(rechecks.values(), key=lambda runs: -volume_gb(links_of(runs, at_most=True)))
        return [run for found in most[:MOST_RECHECKED] for run in found]

    def rechecks_of(self, path: PlanPath, achieved_gbps: float) -> list[Run]:
        """Return a recheck of each link of a path."""
        return apart(path, self.plan, achieved_gbps, self.limits.measured_s)


class Verifier:
    """Verifies plans with a fleet, by current estimates and prices."""

    def __init__(self, fleet: Fleet, wan: Wan, meter: Meter) -> None:
        self._fleet = fleet
        self._wan = wan
        self._meter = meter
        self._ahead_gb = 0.0

    def price(self, src: str, dst: str, gb: float, ahead_gb: float) -> float:
        """Return the price of a volume in USD: sent first, or after others and their plans."""
        return self._meter.price(src, dst, gb, ahead_gb and ahead_gb + self._ahead_gb)

    def prepared(self, plan: Mapping[str, Any], limits: VerificationLimits) -> Verification:
        """Return a plan with the runs that would verify it.

        Raises InputError if the document is no plan of a transfer, shuffle or broadcast, the fleet
        lacks a region of it, or the limits do not allow the shortest runs.
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
        full: Mapping[Limit, RateRange] = {}
        if whole.question == "transfer":
            network = self._wan.network_of((whole.src, whole.dst))
            if whole.verdict != "direct" and (direct := self._direct(plan, notes)):
                predictions["direct"] = direct.with_vms(have)
        else:
            network = self._wan.network_of(tuple(whole.vms))
            if full := part.filled(network):
                predictions[LIMITS] = part
        runs = runs_of(predictions, self._fleet, limits, self.price)
        found = Verification(whole, runs, network, limits, notes, full)
        # Another plan may run at the same time, and reach the next tier of prices with this one.
        self._ahead_gb += volume_gb(links_of([*runs, *found.most_rechecks()], at_most=True))
        return found

    def _rtt_ms(self, src: str, dst: str) -> float:
        return self._wan.network_of((src, dst)).link(src, dst).rtt_ms.expected

    def _direct(self, plan: Mapping[str, Any], notes: list[str]) -> PlanPrediction | None:
        """Predict the direct path with the plan's VMs at its ends."""
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
            problem = f"has no proper request: {type(fault).__name__} {fault}"
            remedy = "Give a document as `relayd plan --json` prints it."
            raise InputError("plan", problem, remedy=remedy) from None
        return predicted(found.model_dump("json"), self._rtt_ms)

    async def verify(
        self,
        plans: Sequence[Verification],
        store: Store,
        *,
        on_done: Callable[[Verification], None] = lambda _: None,
        on_note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Run plans, those without common hosts at the same time; store the results of each.

        A host that fails ends those that it takes part in.
        """
        kept = Verifications(store.database)
        async with Sessions(
            self._fleet, Campaigns(store).controller, on_note=on_note, permit=store.check_lease
        ) as sessions:
            ports = Ports()
            locks = {host: asyncio.Lock() for one in plans for host in one.hosts}

            async def one_plan(one: Verification) -> None:
                async with AsyncExitStack() as stack:
                    for host in sorted(one.hosts):  # all in one order, so that none wait in a ring
                        await stack.enter_async_context(locks[host])
                    try:
                        await self._verify(one, sessions, ports)
                    finally:  # also what was measured before an interruption
                        _keep(one, kept)
                    on_done(one)

            running = [asyncio.create_task(one_plan(one)) for one in plans]
            try:
                await asyncio.gather(*running)
            finally:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)

    async def _verify(self, one: Verification, sessions: Sessions, ports: Ports) -> None:
        try:
            for what in one.runs:
                await run_together(sessions, ports, what)
            for path in in_doubt(one.runs):
                for recheck in one.rechecks_of(path, path.achieved_gbps):
                    sent = [*one.sent, *recheck.sent(at_most=True)]
                    if one.limits.allow(sent, self.price):
                        one.rechecks.append(recheck)
                        await run_together(sessions, ports, recheck)
                    else:
                        links = " -> ".join(recheck.paths[0].regions)
                        one.notes.append(f"{links} was not rechecked: the limits are reached.")
        except ProbeError as error:
            if error.cause == "unreachable":
                sessions.forget(error.host)
            one.error = error


def _keep(one: Verification, kept: Verifications) -> None:
    one.samples = samples_of(one.ended, one.rechecked, one.link, one.plan.plan_id)
    if rows := [row for run in one.compared for row in _rows(run)]:
        events: list[tuple[str, dict[str, object]]] = []
        if one.plan.sets_rates:
            plan, first = one.plan, one.ended[0]
            detail = {
                "plan_id": plan.plan_id,
                "verdict": plan.verdict,
                "expected_gbps": first.prediction.rate.expected_gbps,
                "achieved_gbps": first.achieved_gbps,
                "held": one.is_as_predicted,
            }
            events.append((f"{plan.question} {plan.plan_id}", detail))
        kept.record(rows, one.samples, events)


def _rows(run: Run) -> list[VerificationRow]:
    plan = run.prediction
    parts: list[tuple[Sequence[PlanPath], RateRange, str]]
    parts = [([path], path.rate.of_one_run(), ">".join(path.regions)) for path in run.paths]
    if not plan.sets_rates:
        parts.insert(0, (run.paths, plan.rate.of_one_run(), ""))
    return [
        VerificationRow(
            plan.plan_id,
            plan.snapshot_id,
            paths[0].regions[0],
            paths[0].regions[-1],
            run.kind,
            plan.verdict,
            name,
            sum(path.connections for path in paths),
            sum(len(path.streams) for path in paths),
            len(run.paths) == 1 and not plan.sets_rates,
            rate.low_gbps,
            rate.expected_gbps,
            rate.high_gbps,
            sum(path.achieved_gbps for path in paths),
            run.measured_at_s,
        )
        for paths, rate, name in parts
    ]
