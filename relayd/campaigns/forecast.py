"""What a campaign would do and cost: the command line's dry run and the service's forecast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

from planner.model.notebook import html_table
from planner.model.units import duration_text, usd_text, volume_text
from probes.campaign.costing import CampaignCost
from probes.campaign.limits import CampaignLimits
from probes.campaign.method import Method
from probes.campaign.probing import AS_ASKED, task_s
from probes.campaign.regret import regret_once_measured
from probes.campaign.rounds import Round, schedule
from probes.campaign.specification import CampaignSpec
from probes.campaign.stages import ALL_AT_ONCE, allowance_of, stage_tasks
from probes.campaign.tasks import ProbeTask
from relayd.campaigns.inputs import ROUND_GAP_S, MeasuredFleet

PHASE_HEADER = ("phase", "rounds", "time", "volume", "$ egress")


@dataclass(frozen=True)
class CampaignForecast:
    """What a campaign would do, at most.

    Attributes
    ----------
    rounds : list of Round
    cost : CampaignCost
    phase_s : dict of str to float
        Seconds by phase, with the time that the tools take around measuring.
    everything : CampaignCost
        What measuring all pairs with 64 connections for 5 s would take.
    everything_s : float
    regret, regret_after : float
        Expected share of throughput that direct transfers and those over one relay lose for lack
        of measurements, now and after all of the campaign, whatever its budget allows; the mean
        over all ordered pairs of regions of which something is known.
    unknown_regions : tuple of str
        Regions of the fleet of which nothing is known, so that the regret is not of them.
    """

    rounds: list[Round]
    cost: CampaignCost
    phase_s: dict[str, float]
    everything: CampaignCost
    everything_s: float
    regret: float
    regret_after: float
    unknown_regions: tuple[str, ...]

    @property
    def regret_saved_per_usd(self) -> float | None:
        """What a dollar saves of the expected regret; None where that or the cost is nothing."""
        usd, saved = self.cost.egress_usd, self.regret - self.regret_after
        return saved / usd if usd > 0 and saved > 0 else None

    @property
    def duration_s(self) -> float:
        """Of the whole campaign."""
        return sum(self.phase_s.values())

    def __repr__(self) -> str:
        return (
            f"<CampaignForecast: {self.cost.rounds} rounds, {self.duration_s:.0f} s, "
            f"{self.cost.volume_gb:.3g} GB, {self.cost.egress_usd:.2f} USD at most>"
        )

    def _repr_html_(self) -> str:
        return html_table(repr(self)[1:-1], PHASE_HEADER, self.phase_rows())

    def phase_rows(self) -> list[list[str]]:
        """Return a row of texts for each phase and for all, under :data:`PHASE_HEADER`."""
        rows = [
            [
                phase,
                str(part.rounds),
                duration_text(self.phase_s[phase]),
                volume_text(part.volume_gb),
                usd_text(part.egress_usd),
            ]
            for phase, part in self.cost.by_phase.items()
        ]
        whole = [
            "in all, at most",
            str(self.cost.rounds),
            duration_text(self.duration_s),
            volume_text(self.cost.volume_gb),
            usd_text(self.cost.egress_usd),
        ]
        return [*rows, whole]

    def as_json(self) -> dict[str, Any]:
        """Return the forecast as JSON types, beside what measuring all pairs would take."""
        return {
            "campaign": _cost_as_json(self.cost, self.duration_s),
            "all_pairs": _cost_as_json(self.everything, self.everything_s),
            "regret": {
                "before": self.regret,
                "after": self.regret_after,
                "saved_per_usd": self.regret_saved_per_usd,
                "unknown_regions": list(self.unknown_regions),
            },
        }


def forecast_campaign(
    measured: MeasuredFleet,
    spec: CampaignSpec,
    budget_usd: float = inf,
    *,
    method: Method = AS_ASKED,
) -> CampaignForecast:
    """Return what a campaign is expected to do, at most: all stages are chosen as of now."""
    network = measured.network()
    inputs = measured.inputs(network)
    tasks: list[ProbeTask] = []
    allowance = allowance_of(spec, inputs, network, budget_usd)
    for stage in ("rtt", "per-flow", "caps", "aggregate 1"):
        if stage.split()[0] in spec.phases:
            so_far = measured.cost(schedule(tasks, gap_s=ROUND_GAP_S))
            left = allowance.after(so_far.egress_usd, so_far.volume_gb)
            found, _ = stage_tasks(stage, spec, inputs, network, left, batch=ALL_AT_ONCE)
            tasks += measured.with_method(found, method, network, (), spec)
    rounds = schedule(tasks, gap_s=ROUND_GAP_S)
    everything = CampaignSpec(phases=("aggregate",), thorough=True)
    all_tasks, _ = stage_tasks("aggregate 1", everything, inputs, network)
    all_rounds = schedule(all_tasks, gap_s=ROUND_GAP_S)
    rtt_ms = measured.rtt_ms(network)
    region_of = measured.fleet.region_of
    links = {
        (region_of[src], region_of[dst])
        for task in tasks
        if task.phase == "aggregate"
        for src, dst in task.pairs
    }
    in_fleet = set(region_of.values())
    regions = [region for region in network.sites if region in in_fleet]
    return CampaignForecast(
        rounds,
        measured.cost(rounds),
        {
            phase: rounds_s([r for r in rounds if r.phase == phase], rtt_ms)
            for phase in dict.fromkeys(r.phase for r in rounds)
        },
        measured.cost(all_rounds),
        rounds_s(all_rounds, rtt_ms),
        regret_once_measured(network, regions, (), spec.connections),
        regret_once_measured(network, regions, links, spec.connections),
        tuple(sorted(in_fleet - network.sites.keys())),
    )


def rounds_s(rounds: list[Round], rtt_ms: Callable[[str, str], float]) -> float:
    """Return how long rounds take, with what the tools do before and after measuring."""
    return sum(_round_s(one_round, rtt_ms) for one_round in rounds)


def _round_s(one_round: Round, rtt_ms: Callable[[str, str], float]) -> float:
    longest_s = max(task_s(task, rtt_ms) for task in one_round.tasks)
    in_turn = 1
    if one_round.phase == "rtt":  # limited per host and in all
        usual = CampaignLimits()
        of_host = max(Counter(task.pairs[0][0] for task in one_round.tasks).values())
        in_turn = max(
            ceil(of_host / usual.pings_of_host), ceil(len(one_round.tasks) / usual.pings_at_once)
        )
    return in_turn * longest_s + ROUND_GAP_S


def _cost_as_json(cost: CampaignCost, duration_s: float) -> dict[str, Any]:
    return {
        "rounds": cost.rounds,
        "duration_s": round(duration_s, 3),
        "volume_gb": cost.volume_gb,
        "egress_usd": cost.egress_usd,
        "phases": {
            phase: {
                "rounds": part.rounds,
                "volume_gb": part.volume_gb,
                "egress_usd": part.egress_usd,
            }
            for phase, part in cost.by_phase.items()
        },
        "regions": {
            c.region: {
                "sent_gb": c.sent_gb,
                "received_gb": c.received_gb,
                "egress_usd": c.egress_usd,
            }
            for c in cost.by_region.values()
        },
    }
