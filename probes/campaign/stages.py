"""The stages of a campaign: their order, their tasks, and their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import combinations, permutations
from math import isfinite

from planner.model.link import Link
from planner.model.network import Network, Snapshot
from probes.campaign.costing import UNLIMITED, Allowance, Price, frugal_allowance
from probes.campaign.engine import Engine, critical_path_s
from probes.campaign.probing import warm_up_s
from probes.campaign.ramping import with_ramps
from probes.campaign.selection import cap_tasks, choose_links, first_hosts, per_flow_tasks
from probes.campaign.specification import CampaignSpec, Method
from probes.campaign.tasks import CampaignLimits, CampaignLog, Phase, Probe, ProbeOutcome, ProbeTask
from probes.fleet.hosts import Fleet

MOST_STAGES = 200  # rounds of choosing links; far more than any budget allows
BATCH = 20
BATCH_OF_HOST = 2
RTT_S = 2.0
ALL_AT_ONCE = 1_000_000
ASSUMED_RTT_MS = 150.0


@dataclass
class CampaignInputs:
    """The specification of a campaign, and the inputs by which it chooses and sizes its probes."""

    spec: CampaignSpec
    method: Method
    fleet: Fleet
    estimated: Callable[[], Network]  # of the fleet's regions, from all samples so far
    price: Price
    network: Network = field(init=False)  # as it was estimated last

    def __post_init__(self) -> None:
        self.network = self.estimated()

    def link(self, src: str, dst: str) -> Link | None:
        """Look up the estimate of the link between two hosts."""
        return self.network.links.get(self.fleet[src].region, {}).get(self.fleet[dst].region)

    def rtt_ms(self, src: str, dst: str) -> float:
        """Return the round-trip time to expect between two hosts."""
        link = self.link(src, dst)
        return link.rtt_ms.expected if link else ASSUMED_RTT_MS

    def allowance(self, budget_usd: float) -> Allowance:
        """Return the budget, or the default limit of a frugal campaign."""
        if isfinite(budget_usd) or self.spec.pairs or self.spec.thorough:
            return Allowance(budget_usd)
        # A pair of regions is measured once, however many hosts they have.
        hosts = first_hosts(self.fleet.region_of).values()
        tasks = self.all_pairs("aggregate", self.spec, hosts)
        return frugal_allowance(tasks, self.fleet.region_of, self.price)

    def tasks(
        self,
        stage: str,
        left: Allowance = UNLIMITED,
        before: Iterable[Probe] = (),
        *,
        batch: int = BATCH,
    ) -> tuple[list[ProbeTask], str]:
        """Return the tasks of a stage by the present estimates, and why there are no more.

        At most `batch` links are chosen, none of a pair that failed in probes of earlier stages.
        """
        before = list(before)
        spec, region_of, network = self.spec, self.fleet.region_of, self.network
        by_pair = bool(spec.pairs) or spec.thorough
        tasks, reason = [], ""
        if stage == "rtt":
            # Both directions share a route.
            pairs = spec.pairs or combinations(region_of, 2)
            tasks = [ProbeTask("rtt", (pair,), 0, RTT_S) for pair in pairs]
        elif stage == "per-flow" and by_pair:
            tasks = [] if spec.flow_first_s else self.all_pairs("per-flow", spec)
        elif stage == "per-flow":
            tasks = per_flow_tasks(region_of, network, duration_s=spec.flow_s)
        elif stage == "caps" and not spec.pairs:
            every = spec.thorough
            tasks = cap_tasks(region_of, network, every=every, connections=spec.connections)
        elif stage != "caps" and by_pair:
            tasks, reason = self.all_pairs("aggregate", spec), "no other pairs were asked for"
        elif stage != "caps":
            tasks, reason = choose_links(
                region_of,
                network,
                self.price,
                allowance=left,
                threshold=spec.threshold,
                batch=batch,
                batch_of_host=BATCH_OF_HOST * max(1, batch // BATCH),
                connections=spec.connections,
                duration_s=spec.aggregate_s,
            )
            # A pair that has just failed would be chosen again and again.
            failed = {pair for p in before if p.status == "failed" for pair in p.task.pairs}
            tasks = [task for task in tasks if not set(task.pairs) & failed]
        shaped = with_ramps(
            tasks,
            self.method,
            self.fleet,
            self.link,
            [probe.task for probe in before],
            lambda task: warm_up_s(task, self.rtt_ms),
            spec.flow_first_s,
            spec.aggregate_first_s,
        )
        return shaped, reason

    def all_pairs(
        self, phase: Phase, spec: CampaignSpec, hosts: Iterable[str] = ()
    ) -> list[ProbeTask]:
        """Return a task for each pair that was asked for, else for all between regions."""
        region_of = self.fleet.region_of
        one_flow = phase == "per-flow"
        connections = 1 if one_flow else spec.connections
        duration_s = spec.flow_s if one_flow else spec.aggregate_s

        def expected_gbps(src: str, dst: str) -> float:
            link = self.link(src, dst)
            return link.rate_gbps(connections) if link else 1.0

        return [
            ProbeTask(phase, ((src, dst),), connections, duration_s, expected_gbps(src, dst))
            for src, dst in spec.pairs or permutations(hosts or region_of, 2)
            if region_of[src] != region_of[dst]
        ]


@dataclass
class CampaignReport:
    """The results of a campaign's run."""

    outcomes: list[ProbeOutcome] = field(default_factory=list)
    left_out: int = 0  # probes that the budget or the time did not allow
    reason: str = ""  # why it stopped choosing links, as a clause
    sent_gb: float = 0.0  # of the campaign so far
    usd: float = 0.0
    duration_s: float = 0.0
    critical_s: float = 0.0  # duration if the tools alone took time
    snapshot: Snapshot | None = None  # taken at the end

    @property
    def failed(self) -> list[ProbeOutcome]:
        """The probes that failed."""
        return [outcome for outcome in self.outcomes if outcome.problem]

    @property
    def busy_s(self) -> float:
        """Time for which tools were at work, over all probes that succeeded."""
        return sum(outcome.busy_s for outcome in self.outcomes if not outcome.problem)

    @property
    def status(self) -> str:
        """``done``, or ``partly done`` if anything failed or was left out."""
        return "partly done" if self.failed or self.left_out else "done"


async def run_stages(
    inputs: CampaignInputs, log: CampaignLog, engine: Engine, limits: CampaignLimits
) -> CampaignReport:
    """Run a campaign to its end, or the rest of one that was interrupted.

    Without a budget, a campaign that chooses links itself keeps to :mod:`probes.campaign.costing`.

    Raises StoreError if results can't be kept.
    """
    report = CampaignReport()
    for stage in _stages(inputs.spec):
        inputs.network = inputs.estimated()
        before = log.probes()
        probes = [probe for probe in before if probe.stage == stage]
        if not probes:
            left = inputs.allowance(limits.budget_usd)
            left = left.after(engine.ledger.usd, engine.ledger.sent_gb)
            tasks, reason = inputs.tasks(stage, left, before)
            report.reason = reason or report.reason
            if not tasks:
                if stage.startswith("aggregate"):
                    break
                continue
            probes = list(log.plan(stage, tasks))
        gone, members = [], []
        for probe in (p for p in probes if p.status != "done"):
            if missing := sorted(probe.task.hosts - inputs.fleet.hosts.keys()):
                problem = f"{missing[0]} is no longer in the fleet file"
                gone.append(ProbeOutcome(probe, attempts=0, problem=problem, host=missing[0]))
            else:
                members.append(probe)
        if gone:
            log.record(gone)
            report.outcomes += gone
        if not members:
            continue
        report.outcomes += await engine.run(members)
        report.left_out += engine.progress.left_out
        if engine.progress.left_out:
            report.reason = "the budget or the time does not allow more"
            break
    report.critical_s = critical_path_s(report.outcomes, limits)
    report.sent_gb, report.usd = log.spent()
    return report


def _stages(spec: CampaignSpec) -> list[str]:
    if spec.pairs or spec.thorough:
        # Caps last: their peers are chosen by the measured rates of all pairs.
        stages = ["rtt", "per-flow", "aggregate 1", "caps"]
    else:  # caps before aggregates: they bound what links can carry
        links = [f"aggregate {number}" for number in range(1, MOST_STAGES + 1)]
        stages = ["rtt", "per-flow", "caps", *links]
    return [stage for stage in stages if stage.split()[0] in spec.phases]
