"""Forecast of a campaign's probes and cost: the command line's dry run and the service's answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

from probes.campaign.costing import campaign_cost
from probes.campaign.probing import task_s
from probes.campaign.regret import regret_once_measured
from probes.campaign.rounds import Round, schedule
from probes.campaign.specification import AS_ASKED, CampaignSpec, Method
from probes.campaign.stages import ALL_AT_ONCE, CampaignInputs
from probes.campaign.tasks import CampaignLimits, ProbeTask
from relayd.campaigns.inputs import MeasuredFleet

ROUND_GAP_S = 0.5  # time to start a round: servers and a jittered start


@dataclass(frozen=True)
class CampaignForecast:
    """The rounds and the cost of a campaign, at most; and of measuring everything.

    The regret is the expected share of throughput that direct transfers and those over one relay
    lose for lack of measurements, now and after all of the campaign, whatever its budget allows;
    the mean over all ordered pairs of regions with estimates.
    """

    rounds: list[Round]
    cost: dict[str, Any]  # as campaign_cost has it, with duration_s
    phase_s: dict[str, float]  # with the time that the tools take around measuring
    everything: dict[str, Any]  # all pairs with 64 connections for 5 s
    regret: float
    regret_after: float
    unknown_regions: tuple[str, ...]  # of the fleet, without estimates, which the regret leaves out

    @property
    def regret_saved_per_usd(self) -> float | None:
        """Expected regret saved by a dollar; None where that or the cost is zero."""
        usd, saved = self.cost["egress_usd"], self.regret - self.regret_after
        return saved / usd if usd > 0 and saved > 0 else None

    def as_json(self) -> dict[str, Any]:
        """Return the forecast as JSON types, with that of measuring all pairs."""
        return {
            "campaign": self.cost,
            "all_pairs": self.everything,
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
    """Forecast the most that a campaign would do: all stages are chosen as of now."""
    inputs = measured.inputs(spec, method)
    region_of = measured.fleet.region_of

    def packed(tasks: list[ProbeTask]) -> tuple[list[Round], dict[str, Any]]:
        rounds = schedule(tasks, gap_s=ROUND_GAP_S)
        cost = campaign_cost(rounds, region_of, measured.meter())
        return rounds, cost | {"duration_s": round(sum(_round_s(r, inputs) for r in rounds), 3)}

    tasks: list[ProbeTask] = []
    allowance = inputs.allowance(budget_usd)
    for stage in ("rtt", "per-flow", "caps", "aggregate 1"):
        if stage.split()[0] in spec.phases:
            _, so_far = packed(tasks)
            left = allowance.after(so_far["egress_usd"], so_far["volume_gb"])
            tasks += inputs.tasks(stage, left, batch=ALL_AT_ONCE)[0]
    rounds, cost = packed(tasks)
    links = {
        (region_of[src], region_of[dst])
        for task in tasks
        if task.phase == "aggregate"
        for src, dst in task.pairs
    }
    known = inputs.network.sites
    regions = [region for region in known if region in set(region_of.values())]
    return CampaignForecast(
        rounds,
        cost,
        {
            phase: sum(_round_s(r, inputs) for r in rounds if r.phase == phase)
            for phase in cost["phases"]
        },
        packed(inputs.all_pairs("aggregate", CampaignSpec()))[1],
        regret_once_measured(inputs.network, regions, (), spec.connections),
        regret_once_measured(inputs.network, regions, links, spec.connections),
        tuple(sorted(set(region_of.values()) - known.keys())),
    )


def _round_s(one_round: Round, inputs: CampaignInputs) -> float:
    """Return the duration of a round, with the tools' time before and after measuring."""
    longest_s = max(task_s(task, inputs.rtt_ms) for task in one_round.tasks)
    in_turn = 1
    if one_round.phase == "rtt":  # limited per host and in all
        usual = CampaignLimits()
        of_host = max(Counter(task.pairs[0][0] for task in one_round.tasks).values())
        in_turn = max(
            ceil(of_host / usual.pings_of_host), ceil(len(one_round.tasks) / usual.pings_at_once)
        )
    return in_turn * longest_s + ROUND_GAP_S
