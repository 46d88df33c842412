"""Forecasts of campaigns before they run."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from planner.model.baseline.modelled_links import baseline_network
from probes.campaign.specification import AS_ASKED, CampaignSpec
from probes.campaign.tasks import PHASES, Phase
from probes.fleet.hosts import Fleet
from relayd.campaigns.forecast import CampaignForecast, forecast_campaign
from relayd.campaigns.inputs import MeasuredFleet
from relayd.catalogue.loading import load_catalogue
from relayd.cli.measuring.probe import forecast_text
from tests.relayd.building import unreachable

CATALOGUE = load_catalogue()
# Where windows limit far links, a smaller VM does not carry less in proportion.
TUNED = replace(
    CATALOGUE,
    vm_types={name: replace(vm, hosts="tuned") for name, vm in CATALOGUE.vm_types.items()},
)
REGIONS = [region.id for region in CATALOGUE.regions.values() if region.baseline]
THOROUGH = CampaignSpec(phases=("aggregate",), thorough=True)


def fleet_of(regions: list[str], scale: float | None = None) -> Fleet:
    """One host a region; with a scale, each with so much of its type's caps."""
    sites = baseline_network(CATALOGUE).sites
    fleet = unreachable(Path(), *regions)
    if scale is None:
        return fleet
    return Fleet(
        {
            region: replace(
                host,
                egress_mbps=1000 * scale * sites[region].egress_gbps.expected,
                ingress_mbps=1000 * scale * sites[region].ingress_gbps.expected,
            )
            for region, host in fleet.hosts.items()
        }
    )


def test_regions_of_which_nothing_is_known_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    fleet = fleet_of(REGIONS[:4])
    known = forecast_campaign(MeasuredFleet(fleet, CATALOGUE, None), CampaignSpec())
    unknown = next(region.id for region in CATALOGUE.regions.values() if not region.baseline)
    elsewhere = replace(fleet.hosts[REGIONS[0]], name="new", region=unknown)
    fleet = Fleet({**fleet.hosts, "new": elsewhere})
    forecast = forecast_campaign(MeasuredFleet(fleet, CATALOGUE, None), CampaignSpec())
    assert forecast.unknown_regions == (unknown,)
    assert forecast.regret == known.regret
    print(forecast_text(forecast))
    assert f"Nothing is known yet of {unknown}" in capsys.readouterr().out


def test_frugal_is_a_twentieth_of_all_pairs_of_forty_regions() -> None:
    measured = MeasuredFleet(fleet_of(REGIONS), CATALOGUE, None)
    forecast = forecast_campaign(measured, CampaignSpec())
    assert len(REGIONS) == 40
    assert forecast.everything["volume_gb"] > 4_000
    assert forecast.cost["volume_gb"] <= forecast.everything["volume_gb"] / 20
    assert forecast.cost["egress_usd"] <= forecast.everything["egress_usd"] / 20
    assert forecast.cost["duration_s"] < forecast.everything["duration_s"] / 2
    assert 0 < forecast.regret_after < forecast.regret < 1
    told = forecast_campaign(measured, CampaignSpec(), budget_usd=100.0)
    assert forecast.cost["egress_usd"] < told.cost["egress_usd"] <= 101.0
    # More money saves more regret, and less of it for each dollar.
    assert told.regret == forecast.regret
    assert told.regret_after < forecast.regret_after
    assert forecast.regret_saved_per_usd is not None
    assert told.regret_saved_per_usd is not None
    assert forecast.regret_saved_per_usd > told.regret_saved_per_usd > 0


def test_round_trips_alone_save_no_regret() -> None:
    measured = MeasuredFleet(fleet_of(REGIONS[::4]), CATALOGUE, None)
    pings = forecast_campaign(measured, CampaignSpec(phases=("rtt",)))
    assert pings.regret_after == pings.regret > 0


def test_a_thorough_campaign_takes_the_rounds_that_the_docs_say() -> None:
    measured = MeasuredFleet(fleet_of(REGIONS), CATALOGUE, None)
    phases = forecast_campaign(measured, CampaignSpec(thorough=True)).cost["phases"]
    rounds = {phase: cost["rounds"] for phase, cost in phases.items()}
    page = (Path(__file__).parents[2] / "docs" / "measuring-method.md").read_text()
    assert f"caps ({rounds['caps']} by the forecast" in page
    assert f"takes {sum(rounds.values())} rounds." in page
    assert (rounds["rtt"], rounds["aggregate"]) == (1, 78)


def test_one_flow_and_many_share_the_rounds_of_all_pairs() -> None:
    measured = MeasuredFleet(fleet_of(REGIONS[::4]), CATALOGUE, None)

    def forecast(*phases: Phase) -> CampaignForecast:
        return forecast_campaign(measured, CampaignSpec(phases=phases, thorough=True))

    flows, many, both = (
        forecast(*phases) for phases in (("per-flow",), ("aggregate",), ("per-flow", "aggregate"))
    )
    # Ten hosts: five pairs at once.
    assert (len(flows.rounds), len(many.rounds), len(both.rounds)) == (18, 18, 18)
    assert both.cost["volume_gb"] == pytest.approx(flows.cost["volume_gb"] + many.cost["volume_gb"])
    assert both.cost["duration_s"] < flows.cost["duration_s"] + many.cost["duration_s"]
    assert forecast(*PHASES).cost["phases"].keys() == {"rtt", "aggregate", "caps"}


def test_hosts_with_caps_of_their_own_are_forecast_by_them() -> None:
    full, small = (
        forecast_campaign(MeasuredFleet(fleet_of(REGIONS[::4], scale), TUNED, None), THOROUGH).cost
        for scale in (None, 0.02)
    )
    assert small["volume_gb"] == pytest.approx(0.02 * full["volume_gb"], rel=0.1)
    assert small["egress_usd"] == pytest.approx(0.02 * full["egress_usd"], rel=0.1)
    # Further hosts of a region do not raise what may be spent.
    one = fleet_of(REGIONS)
    others = {f"{name}#2": replace(host, name=f"{name}#2") for name, host in one.hosts.items()}
    first, second = (
        MeasuredFleet(fleet, CATALOGUE, None).inputs(CampaignSpec(), AS_ASKED).allowance(inf)
        for fleet in (one, Fleet({**one.hosts, **others}))
    )
    assert (second.gb, second.usd) == pytest.approx((first.gb, first.usd))
