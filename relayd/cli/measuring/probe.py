"""``relayd probe``: price a campaign, ask, run it to its end, list what failed."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from planner.model.errors import InputError
from probes.fleet.file import load_fleet
from relayd.campaigns.caps import measured_caps
from relayd.campaigns.forecast import forecast_campaign
from relayd.campaigns.inputs import MeasuredFleet
from relayd.campaigns.running import CampaignReport, CampaignRunner
from relayd.campaigns.termination import cancelled_by_sigterm
from relayd.cli.measuring.fleet import fleet_path
from relayd.cli.measuring.probe_answer import ProgressDisplay, print_forecast, print_report, say
from relayd.cli.measuring.probe_options import budget_of, limits_of, may_change, method_of, spec_of
from relayd.cli.options import agreed, catalogue_of, store_location
from relayd.settings import load_settings
from relayd.store import open_if_there, open_store
from relayd.store.campaigns.log import Campaigns, StoredCampaign
from relayd.store.changes import record_change

PARTLY = 5


def run(options: argparse.Namespace) -> int:
    """Forecast, ask, measure; 5 if something is left to do."""
    settings = load_settings()
    catalogue = catalogue_of(options, settings)
    fleet = load_fleet(fleet_path(options))
    if len({host.region for host in fleet}) < 2:
        raise InputError(fleet.name, "has fewer than two regions", remedy="Add hosts of others.")
    location = store_location(options, settings)
    if options.dry_run:
        return _dry_run(options, MeasuredFleet(fleet, catalogue, open_if_there(location)))
    with open_store(location, mode="create") as store, Campaigns(store).alone():
        runner = CampaignRunner(fleet, catalogue, store)
        campaign = _campaign(options, runner, Campaigns(store).unfinished())
        if campaign is None:
            return 0
        action = "campaign resume" if options.resume else "campaign start"
        record_change(store.database, action, str(campaign.row.id))
        report = _measure(options, runner, campaign)
        caps = measured_caps(store, catalogue)
    slow = [cap for cap in caps if cap.recreate and cap.host in fleet.hosts]
    print_report(options, campaign.row.id, report, location, slow)
    if report.result.failed or report.result.left_out:
        say("Some probes are left to do: `relayd probe --resume` tries them again.")
        return PARTLY
    return 0


def _campaign(
    options: argparse.Namespace, runner: CampaignRunner, unfinished: StoredCampaign | None
) -> StoredCampaign | None:
    """Return the campaign to run: a new one that was agreed to, or the unfinished one."""
    if options.resume:
        if unfinished is None:
            say("Nothing to resume: no campaign of this store is unfinished.")
        else:
            say(f"Resuming campaign {unfinished.row.id}")
        return unfinished
    if unfinished is not None:
        say(f"Campaign {unfinished.row.id} is unfinished: --resume goes on with it")
    spec, method = spec_of(options, runner.measured.fleet), method_of(options)
    limits_of(options, None)  # report a wrong limit before asking anything
    budget_usd = budget_of(options)
    forecast = forecast_campaign(runner.measured, spec, budget_usd, method=method)
    print_forecast(forecast, sys.stderr)
    if not (agreed("Measure?", options, "--yes") and may_change(method, options)):
        return None
    return runner.begin(spec, method, budget_usd if options.budget else None)


def _dry_run(options: argparse.Namespace, measured: MeasuredFleet) -> int:
    spec, method = spec_of(options, measured.fleet), method_of(options)
    forecast = forecast_campaign(measured, spec, budget_of(options), method=method)
    if options.json:
        print(json.dumps(forecast.as_json(), indent=2))
    else:
        print_forecast(forecast, sys.stdout)
    return 0


def _measure(
    options: argparse.Namespace, runner: CampaignRunner, campaign: StoredCampaign
) -> CampaignReport:
    limits = limits_of(options, campaign.row.options.get("budget_usd"))
    display = ProgressDisplay()

    async def interruptible() -> CampaignReport:
        cancelled_by_sigterm()
        return await runner.run(
            campaign, limits, on_progress=display.progress, on_note=display.note
        )

    try:
        return asyncio.run(interruptible())
    except (KeyboardInterrupt, asyncio.CancelledError):
        display.end()
        say("Interrupted; what was measured is kept. `relayd probe --resume` goes on.")
        raise KeyboardInterrupt from None
    finally:
        display.end()
