"""Campaigns on a store: what is known goes in, samples and a snapshot come out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import ceil

from planner.model.catalogue import Catalogue
from planner.model.network import Link, Network, Snapshot
from planner.model.pricing import CataloguePrices, Prices
from planner.model.units import MBPS_PER_GBPS
from probes.campaign.costing import CampaignCost, Meter, campaign_cost
from probes.campaign.critical_path import critical_path_s
from probes.campaign.engine import Engine, StageProgress
from probes.campaign.limits import CampaignLimits
from probes.campaign.method import Method
from probes.campaign.probing import AS_ASKED, Prober, task_s, warm_up_s
from probes.campaign.ramping import with_ramps
from probes.campaign.rounds import Round, schedule
from probes.campaign.stages import (
    ALL_AT_ONCE,
    CampaignInputs,
    CampaignResult,
    CampaignSpec,
    allowance_of,
    run_stages,
    stage_tasks,
)
from probes.campaign.tasks import ProbeTask
from probes.estimation import Estimator
from probes.fleet.hosts import Fleet
from probes.fleet.sessions import Sessions, Timeouts
from relayd.snapshots.building import make_snapshot
from relayd.snapshots.evidence import add_current
from relayd.store import Store
from relayd.store.campaigns.log import Campaigns, StoredCampaign

ROUND_GAP_S = 0.5
"""What starting a round takes: servers up, a jittered start."""
USUAL_RTT_MS = 150.0


@dataclass(frozen=True)
class CampaignForecast:
    """What a campaign would do.

    Attributes
    ----------
    rounds : list of Round
    cost : CampaignCost
    everything : CampaignCost
        What measuring all pairs with 64 connections for 5 s would take.
    phase_s : dict of str to float
        Seconds by phase, with the time that the tools take around measuring.
    everything_s : float
    """

    rounds: list[Round]
    cost: CampaignCost
    phase_s: dict[str, float]
    everything: CampaignCost
    everything_s: float

    @property
    def duration_s(self) -> float:
        """Of the whole campaign."""
        return sum(self.phase_s.values())


@dataclass(frozen=True)
class CampaignReport:
    """What a campaign did.

    Attributes
    ----------
    duration_s : float
        From beginning to end.
    busy_s : float
        Of the tools, over all probes.
    critical_s : float
        What it would have taken had the tools alone taken time.
    """

    ending: CampaignResult
    sent_gb: float
    usd: float
    duration_s: float
    busy_s: float
    critical_s: float
    snapshot: Snapshot | None


class CampaignRunner:
    """A fleet, a catalogue and a store brought together.

    Parameters
    ----------
    fleet : Fleet
    catalogue : Catalogue
    store : Store | None
        None for a forecast on what is known without one.
    """

    def __init__(self, fleet: Fleet, catalogue: Catalogue, store: Store | None) -> None:
        self.fleet = fleet
        self.catalogue = catalogue
        self._store = store
        vm_types = {
            host.region: f"{host.provider}:{host.vm_type.removeprefix('Standard_')}"
            for host in fleet
            if host.vm_type
        }
        self._vm_types = {
            region: name for region, name in vm_types.items() if name in catalogue.vm_types
        }
        self._usd_per_gb = {
            host.region: host.egress_usd_per_gb
            for host in fleet
            if host.egress_usd_per_gb is not None
        }
        self._stated_gbps = {
            host.region: (_gbps(host.egress_mbps), _gbps(host.ingress_mbps))
            for host in fleet
            if host.egress_mbps or host.ingress_mbps
        }

    def network(self) -> Network:
        """Return the graph of the fleet's regions as the samples so far give it."""
        estimator = Estimator(self.catalogue, self._vm_types, self._stated_gbps)
        if self._store and (last := self._store.samples.last_id()):
            samples = self._store.samples.samples_for_estimates(through=last)
            add_current(estimator, samples)
        return _within(self._complete(estimator), {host.region for host in self.fleet})

    def _complete(self, estimator: Estimator) -> Network:
        """Return the graph; regions outside of the catalogue count from their first sample."""
        return estimator.network(Snapshot("", "", ""))

    def knowledge(self) -> CampaignInputs:
        """Return what a campaign goes by."""
        network = self.network()
        return CampaignInputs(self.fleet, self.network, self._prices(network))

    def _prices(self, network: Network) -> Prices:
        return _OverriddenPrices(CataloguePrices(self.catalogue, network), self._usd_per_gb)

    def meter(self) -> Meter:
        """Return a meter that prices what is sent."""
        return Meter(self.catalogue, usd_per_gb=self._usd_per_gb)

    def forecast(
        self, spec: CampaignSpec, budget_usd: float = float("inf"), *, method: Method = AS_ASKED
    ) -> CampaignForecast:
        """Return what a campaign is expected to do, at most: stages are chosen as if now."""
        known = self.knowledge()
        network = known.network()
        tasks: list[ProbeTask] = []
        allowance = allowance_of(spec, known, network, budget_usd)
        for stage in ("rtt", "per-flow", "caps", "aggregate 1"):
            if stage.split()[0] in spec.phases:
                so_far = self._cost(schedule(tasks, gap_s=ROUND_GAP_S))
                left = allowance.after(so_far.egress_usd, so_far.volume_gb)
                found, _ = stage_tasks(stage, spec, known, network, left, batch=ALL_AT_ONCE)
                tasks += self._shaped(found, method, network, ())
        rounds = schedule(tasks, gap_s=ROUND_GAP_S)
        everything = CampaignSpec(phases=("aggregate",), thorough=True)
        all_tasks, _ = stage_tasks("aggregate 1", everything, known, network)
        all_rounds = schedule(all_tasks, gap_s=ROUND_GAP_S)
        rtt_ms = self._rtt_ms(network)
        return CampaignForecast(
            rounds,
            self._cost(rounds),
            {
                phase: rounds_s([r for r in rounds if r.phase == phase], rtt_ms)
                for phase in dict.fromkeys(r.phase for r in rounds)
            },
            self._cost(all_rounds),
            rounds_s(all_rounds, rtt_ms),
        )

    def _shaped(
        self,
        tasks: Sequence[ProbeTask],
        method: Method,
        network: Network,
        before: Iterable[ProbeTask],
    ) -> list[ProbeTask]:
        """Return tasks with ramps and UDP as the method has them."""
        rtt_ms, region = self._rtt_ms(network), self.fleet.region_of

        def link(src: str, dst: str) -> Link | None:
            return network.links.get(region[src], {}).get(region[dst])

        return with_ramps(
            tasks, method, self.fleet, link, before, lambda task: warm_up_s(task, rtt_ms)
        )

    def _rtt_ms(self, network: Network) -> Callable[[str, str], float]:
        def rtt_ms(src: str, dst: str) -> float:
            link = network.links.get(self.fleet[src].region, {}).get(self.fleet[dst].region)
            return link.rtt_ms.expected if link else USUAL_RTT_MS

        return rtt_ms

    def _cost(self, rounds: list[Round]) -> CampaignCost:
        return campaign_cost(
            rounds,
            self.fleet.region_of,
            self.catalogue,
            usd_per_gb=self._usd_per_gb,
            gap_s=ROUND_GAP_S,
        )

    async def run(
        self,
        campaign: StoredCampaign,
        spec: CampaignSpec,
        limits: CampaignLimits,
        *,
        method: Method = AS_ASKED,
        timeouts: Timeouts | None = None,
        on_progress: Callable[[StageProgress], None] = lambda _: None,
        on_note: Callable[[str], None] = lambda _: None,
    ) -> CampaignReport:
        """Run a campaign to its end and take a snapshot of what is known then."""
        assert self._store
        with Campaigns(self._store).under_way():
            return await self._run(
                self._store, campaign, spec, limits, method, timeouts, on_progress, on_note
            )

    async def _run(
        self,
        store: Store,
        campaign: StoredCampaign,
        spec: CampaignSpec,
        limits: CampaignLimits,
        method: Method,
        timeouts: Timeouts | None,
        on_progress: Callable[[StageProgress], None],
        on_note: Callable[[str], None],
    ) -> CampaignReport:
        began_s = time.monotonic()
        known = self.knowledge()
        newest = [known.network()]

        def rtt_ms(src: str, dst: str) -> float:
            return self._rtt_ms(newest[0])(src, dst)

        def refresh(network: Network) -> None:
            newest[0] = network

        def shape(tasks: Sequence[ProbeTask]) -> list[ProbeTask]:
            before = [probe.task for probe in campaign.probes()]
            return self._shaped(tasks, method, newest[0], before)

        def contact(name: str, leftovers: int) -> None:
            if leftovers:
                on_note(f"{name}: ended {leftovers} processes that an earlier run had left.")

        owner = Campaigns(store).controller
        async with Sessions(
            method.of(self.fleet),
            owner,
            timeouts=timeouts,
            on_contact=contact,
            sysctls=method.sysctls,
        ) as sessions:
            prober = Prober(sessions, rtt_ms, method)
            engine = Engine(
                sessions,
                prober,
                campaign,
                self.meter(),
                limits,
                on_progress=on_progress,
                on_note=on_note,
            )
            ending = await run_stages(
                spec,
                known,
                campaign,
                engine,
                budget_usd=limits.budget_usd,
                refresh=refresh,
                shape=shape,
            )
        if not ending.failed and not ending.left_out:
            campaign.finish()
        sent_gb, usd = campaign.spent()
        snapshot = make_snapshot(store, self.catalogue)
        return CampaignReport(
            ending,
            sent_gb,
            usd,
            time.monotonic() - began_s,
            engine.busy_s,
            critical_path_s(ending.outcomes, limits),
            snapshot,
        )


def rounds_s(rounds: list[Round], rtt_ms: Callable[[str, str], float]) -> float:
    """Return how long rounds take, with what the tools do before and after measuring."""
    return sum(_round_s(one_round, rtt_ms) for one_round in rounds)


def _round_s(one_round: Round, rtt_ms: Callable[[str, str], float]) -> float:
    longest_s = max(task_s(task, rtt_ms) for task in one_round.tasks)
    in_turn = 1
    if one_round.phase == "rtt":  # a host sends some at a time, and so do all together
        usual = CampaignLimits()
        of_host = max(Counter(task.pairs[0][0] for task in one_round.tasks).values())
        in_turn = max(
            ceil(of_host / usual.pings_of_host), ceil(len(one_round.tasks) / usual.pings_at_once)
        )
    return in_turn * longest_s + ROUND_GAP_S


def _gbps(mbps: float | None) -> float | None:
    return None if mbps is None else mbps / MBPS_PER_GBPS


class _OverriddenPrices:
    """Prices of the catalogue, except where the fleet file states others."""

    def __init__(self, prices: Prices, usd_per_gb: dict[str, float]) -> None:
        self._prices = prices
        self._usd_per_gb = usd_per_gb

    def egress_usd_per_gb(self, src: str, dst: str, volume_gb: float) -> float:
        if src in self._usd_per_gb:
            return self._usd_per_gb[src]
        return self._prices.egress_usd_per_gb(src, dst, volume_gb)

    def vm_usd_per_h(self, region: str) -> float:
        return self._prices.vm_usd_per_h(region)


def _within(network: Network, regions: Iterable[str]) -> Network:
    """Return the part of a graph among some regions."""
    kept = set(regions)
    sites = {name: site for name, site in network.sites.items() if name in kept}
    links = {
        src: {dst: link for dst, link in network.links.get(src, {}).items() if dst in sites}
        for src in sites
    }
    return Network(sites, links, network.snapshot)


def spec_to_json(spec: CampaignSpec) -> dict[str, object]:
    """Return a spec as plain values, to be kept with its campaign."""
    return asdict(spec)


def spec_from_json(content: dict[str, object]) -> CampaignSpec:
    """Return the spec that :func:`spec_to_json` was given."""
    fields = dict(content)
    fields["phases"] = tuple(content["phases"])  # type: ignore[arg-type]
    fields["pairs"] = tuple((s, d) for s, d in content["pairs"])  # type: ignore[attr-defined]
    return CampaignSpec(**fields)  # type: ignore[arg-type]
