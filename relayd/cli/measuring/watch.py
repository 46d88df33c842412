"""``relayd measure watch``: continuous operation in the foreground, until stopped."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from math import inf
from typing import Any

from planner.model.units import parse_duration_s, parse_money_usd, usd_text
from probes.campaign.specification import parse_pairs
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from relayd.campaigns.forecast import forecast_campaign
from relayd.campaigns.inputs import MeasuredFleet
from relayd.cli.measuring.fleet import fleet_path
from relayd.cli.measuring.probe import forecast_text
from relayd.cli.options import catalogue_of, number, store_location, whole_number
from relayd.cli.output import respond
from relayd.store import Location, open_if_there
from relayd.watch.settings import QuietHours, WatchOptions
from relayd.watch.watcher import Watcher
from relayd.watch.webhook import Webhook


def run(options: argparse.Namespace) -> int:
    """Watch until SIGINT or SIGTERM; notes on standard error, the last status on output.

    A dry run shows what a campaign that is due would take, at most.
    """
    catalogue = catalogue_of(options)
    fleet = load_fleet(fleet_path(options))
    path, wanted = store_location(options), watch_options(options, fleet)
    if options.dry_run:
        measured = MeasuredFleet(fleet, catalogue, open_if_there(path))
        forecast = forecast_campaign(measured, wanted.campaign, wanted.daily_budget_usd)
        return respond(options, forecast.as_json(), lambda: forecast_text(forecast))
    watcher = Watcher(path, fleet, catalogue, wanted, _say)
    status = asyncio.run(_until_stopped(watcher))
    if options.json or "legs" in status:
        respond(options, status, lambda: _summary(status, path))
    return 0


def _summary(status: dict[str, Any], path: Location) -> str:
    links = status["legs"]
    return (
        f"Watched {links['watched']} links: {links['up']} up, {links['degraded']} degraded, "
        f"{links['down']} down; {usd_text(status['spent_today_usd'])} of "
        f"{usd_text(status['daily_budget_usd'])} spent today, in {path}"
    )


def watch_options(options: argparse.Namespace, fleet: Fleet) -> WatchOptions:
    """Read the settings; raises InputError naming the option that is wrong."""
    values: dict[str, Any] = {}
    for name in ("interval", "campaign_every", "retain"):
        if text := getattr(options, name):
            never = text == "never" and name != "interval"
            field = f"--{name.replace('_', '-')}"
            values[f"{name}_s"] = inf if never else parse_duration_s(text, field)
    if options.hold:
        values["hold_intervals"] = whole_number(options.hold, "--hold")
    if options.regret:
        values["regret"] = number(options.regret, "--regret")
    if options.quiet_hours:
        values["quiet"] = QuietHours.parse(options.quiet_hours)
    if options.webhook:
        values["webhook"] = Webhook.from_environment(options.webhook, "--webhook")
    return WatchOptions(
        parse_money_usd(options.daily_budget, "--daily-budget"),
        pairs=parse_pairs(options.pairs, fleet),
        **values,
    )


async def _until_stopped(watcher: Watcher) -> dict[str, Any]:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for ending in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(ending, stop.set)
    await watcher.run(stop)
    return watcher.status()


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", file=sys.stderr, flush=True)
