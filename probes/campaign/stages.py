"""The stages of a campaign: their order, their tasks, and when to stop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from math import isfinite

from planner.model.network import Network
from planner.model.pricing import Prices
from probes.campaign.budget import UNLIMITED, Allowance, frugal_allowance
from probes.campaign.costing import all_pairs_tasks
from probes.campaign.engine import Engine
from probes.campaign.selection import cap_tasks, choose_links, per_flow_tasks, rtt_tasks
from probes.campaign.specification import CampaignSpec
from probes.campaign.state import CampaignLog, Probe, ProbeOutcome
from probes.campaign.tasks import PHASES, Phase, ProbeTask
from probes.fleet.hosts import Fleet

MOST_STAGES = 200
"""Rounds of choosing links; far more than any budget allows."""
BATCH = 20
BATCH_OF_HOST = 2
RTT_S = 2.0
ALL_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class CampaignInputs:
    """What a campaign chooses its probes by.

    Attributes
    ----------
    fleet : Fleet
    network : callable
        Returns the network of the fleet's regions, from all samples so far.
    prices : Prices
    """

    fleet: Fleet
    network: Callable[[], Network]
    prices: Prices


@dataclass
class CampaignResult:
    """How the stages of a campaign ended.

    Attributes
    ----------
    outcomes : list of ProbeOutcome
        Of this run.
    failed : list of ProbeOutcome
        Those that failed, to be listed.
    left_out : int
        Probes that the budget or the time did not allow.
    reason : str
        Why it stopped choosing links, as a clause.
    """

    outcomes: list[ProbeOutcome] = field(default_factory=list)
    left_out: int = 0
    reason: str = ""

    @property
    def failed(self) -> list[ProbeOutcome]:
        """The probes that failed."""
        return [outcome for outcome in self.outcomes if outcome.problem]


async def run_stages(
    spec: CampaignSpec,
    inputs: CampaignInputs,
    log: CampaignLog,
    engine: Engine,
    *,
    budget_usd: float = float("inf"),
    refresh: Callable[[Network], None] = lambda _: None,
    shape: Callable[[list[ProbeTask]], list[ProbeTask]] = list,
) -> CampaignResult:
    """Run a campaign to its end, or the rest of one that was interrupted.

    Parameters
    ----------
    budget_usd : float
        Without one, a campaign that chooses links itself keeps to
        :mod:`probes.campaign.budget`.
    refresh : callable
        Called with the network before each stage.
    shape : callable
        Adds ramps and whatever else the method needs to the tasks of a stage.

    Raises
    ------
    StoreError
        If results can't be kept.
    """
    result = CampaignResult()
    for stage in _stages(spec):
        network = inputs.network()
        refresh(network)
        probes = [probe for probe in log.probes() if probe.stage == stage]
        if not probes:
            left = allowance_of(spec, inputs, network, budget_usd)
            left = left.after(engine.ledger.usd, engine.ledger.sent_gb)
            failed = {pair for p in log.probes() if p.status == "failed" for pair in p.task.pairs}
            tasks, reason = stage_tasks(stage, spec, inputs, network, left, failed)
            result.reason = reason or result.reason
            if not tasks:
                if stage.startswith("aggregate"):
                    break
                continue
            probes = list(log.plan(stage, shape(tasks)))
        todo = [probe for probe in probes if probe.status != "done"]
        members, gone = _members(todo, inputs.fleet)
        if gone:
            log.record(gone)
            result.outcomes += gone
        if not members:
            continue
        result.outcomes += await engine.run(members)
        result.left_out += engine.progress.left_out
        if engine.progress.left_out:
            result.reason = "the budget or the time does not allow more"
            break
    return result


def stage_tasks(
    stage: str,
    spec: CampaignSpec,
    inputs: CampaignInputs,
    network: Network,
    left: Allowance = UNLIMITED,
    failed: frozenset[tuple[str, str]] | set[tuple[str, str]] = frozenset(),
    *,
    batch: int = BATCH,
) -> tuple[list[ProbeTask], str]:
    """Return the tasks of a stage by what is known now, and why there are no more."""
    region_of = inputs.fleet.region_of
    if stage == "rtt":
        if spec.pairs:
            return [ProbeTask("rtt", (pair,), 0, RTT_S) for pair in spec.pairs], ""
        return rtt_tasks(list(region_of), pings_s=RTT_S), ""
    if stage == "per-flow":
        if spec.flow_first_s:
            return [], ""
        if spec.pairs or spec.thorough:
            return _pairwise("per-flow", spec, region_of, network), ""
        return per_flow_tasks(region_of, network, duration_s=spec.flow_s), ""
    if stage == "caps":
        if spec.pairs:
            return [], ""
        every = spec.thorough
        return cap_tasks(region_of, network, every=every, connections=spec.connections), ""
    if spec.pairs or spec.thorough:
        return _pairwise("aggregate", spec, region_of, network), "no other pairs were asked for"
    choice = choose_links(
        region_of,
        network,
        inputs.prices,
        allowance=left,
        threshold=spec.threshold,
        batch=batch,
        batch_of_host=BATCH_OF_HOST * max(1, batch // BATCH),
        connections=spec.connections,
        duration_s=spec.aggregate_s,
    )
    # What failed a moment ago would be chosen again and again.
    fresh = [task for task in choice.tasks if not set(task.pairs) & set(failed)]
    return fresh, choice.reason


def allowance_of(
    spec: CampaignSpec, inputs: CampaignInputs, network: Network, budget_usd: float
) -> Allowance:
    """Return what a campaign may spend: the budget, or the default limit of a frugal one."""
    if isfinite(budget_usd) or spec.pairs or spec.thorough:
        return Allowance(budget_usd)
    everything = replace(spec, thorough=True)
    # A pair of regions is measured once, however many hosts they have.
    hosts = {region: host for host, region in reversed(inputs.fleet.region_of.items())}
    region_of = {host: region for region, host in reversed(hosts.items())}
    tasks = _pairwise("aggregate", everything, region_of, network)
    return frugal_allowance(tasks, region_of, inputs.prices)


def _stages(spec: CampaignSpec) -> list[str]:
    if spec.pairs or spec.thorough:
        # Caps last: their peers are chosen by what all pairs were found to carry.
        stages = ["rtt", "per-flow", "aggregate 1", "caps"]
        return [stage for stage in stages if stage.split()[0] in spec.phases]
    stages = [phase for phase in PHASES if phase in spec.phases and phase != "aggregate"]
    # Caps before aggregates: they bound what links can carry.
    stages.sort(key=["rtt", "per-flow", "caps"].index)
    if "aggregate" in spec.phases:
        numbers = count(1)
        stages += [f"aggregate {next(numbers)}" for _ in range(MOST_STAGES)]
    return stages


def _pairwise(
    phase: Phase, spec: CampaignSpec, region_of: Mapping[str, str], network: Network
) -> list[ProbeTask]:
    connections = 1 if phase == "per-flow" else spec.connections
    duration_s = spec.flow_s if phase == "per-flow" else spec.aggregate_s

    def expected_gbps(src: str, dst: str) -> float:
        link = network.links.get(region_of[src], {}).get(region_of[dst])
        return link.rate_gbps(connections) if link else 1.0

    if spec.pairs:
        return [
            ProbeTask(phase, (pair,), connections, duration_s, expected_gbps(*pair))
            for pair in spec.pairs
        ]
    tasks = all_pairs_tasks(
        list(region_of), expected_gbps, connections=connections, duration_s=duration_s
    )
    apart = [t for t in tasks if region_of[t.pairs[0][0]] != region_of[t.pairs[0][1]]]
    return [replace(task, phase=phase) for task in apart]


def _members(probes: Sequence[Probe], fleet: Fleet) -> tuple[list[Probe], list[ProbeOutcome]]:
    """Separate probes among hosts of the fleet from those whose hosts left its file."""
    members, gone = [], []
    for probe in probes:
        missing = sorted(host for host in probe.task.hosts if host not in fleet.hosts)
        if missing:
            problem = f"{missing[0]} is no longer in the fleet file"
            gone.append(ProbeOutcome(probe, attempts=0, problem=problem, host=missing[0]))
        else:
            members.append(probe)
    return members, gone
