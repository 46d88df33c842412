"""``relayd probe``: price a campaign, ask, run it to its end, list what failed."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from math import inf

from planner.model.errors import InputError
from planner.model.units import parse_duration_s, parse_money_usd, parse_volume_gb
from probes.campaign.specification import CampaignSpec, Method, parse_pairs
from probes.campaign.stages import CampaignReport
from probes.campaign.tasks import PHASES, CampaignLimits
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from relayd.campaigns.forecast import forecast_campaign
from relayd.campaigns.inputs import MeasuredFleet, measured_caps
from relayd.campaigns.running import CampaignRunner, run_interruptibly
from relayd.cli.measuring.fleet import fleet_path
from relayd.cli.measuring.probe_answer import ProgressDisplay, print_forecast, print_report, say
from relayd.cli.options import agreed, catalogue_of, number, store_location, whole_number
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
        record_change(store.database, action, str(campaign.id))
        report = _measure(options, runner, campaign)
        caps = measured_caps(store, catalogue)
    slow = [cap for cap in caps if cap["recreate"] and cap["host"] in fleet.hosts]
    print_report(options, campaign.id, report, location, slow)
    if report.failed or report.left_out:
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
            say(f"Resuming campaign {unfinished.id}")
        return unfinished
    if unfinished is not None:
        say(f"Campaign {unfinished.id} is unfinished: --resume goes on with it")
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
    limits = limits_of(options, campaign.options.get("budget_usd"))
    display = ProgressDisplay()

    def interrupted() -> None:
        display.end()
        say("Interrupted; what was measured is kept. `relayd probe --resume` goes on.")

    work = runner.run(campaign, limits, on_progress=display.progress, on_note=display.note)
    try:
        return run_interruptibly(work, interrupted)
    finally:
        display.end()


_AS_IPERF3 = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)", re.IGNORECASE)
_FACTORS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def spec_of(options: argparse.Namespace, fleet: Fleet) -> CampaignSpec:
    """Read what to measure."""
    phases = tuple(dict.fromkeys(options.phases.split(","))) if options.phases else PHASES
    for phase in phases:
        if phase not in PHASES:
            raise InputError(
                "--phases",
                "names an unknown phase",
                value=phase,
                remedy=f"Phases are {', '.join(PHASES)}, joined by commas.",
            )
    connections = whole_number(options.connections, "--connections") if options.connections else 64
    if not 1 <= connections <= 128:
        raise InputError("--connections", "must be between 1 and 128", value=connections)
    lengths = {}
    for name, option in (("flow_s", "flow_time"), ("aggregate_s", "aggregate_time")):
        if text := getattr(options, option):
            seconds = parse_duration_s(text, f"--{option.replace('_', '-')}")
            if not 4 <= seconds <= 3600:
                raise InputError(
                    f"--{option.replace('_', '-')}", "must be between 4s and 1h", value=text
                )
            lengths[name] = seconds
    return CampaignSpec(
        phases=tuple(phase for phase in PHASES if phase in phases),
        pairs=parse_pairs(options.pairs, fleet),
        thorough=options.thorough,
        connections=connections,
        **lengths,
    )


def method_of(options: argparse.Namespace) -> Method:
    """Read how to measure.

    Raises
    ------
    InputError
        If something asked for can't be done, or not together.
    """
    ramp = "every" if options.ramp else "never" if options.connections else "first"
    method = Method(
        tool=options.tool,
        ramp=ramp,  # type: ignore[arg-type]
        full_time=options.full_time,
        udp=options.udp or options.udp_rates != 1 or options.udp_packet != 0,
        udp_rates=options.udp_rates,
        udp_bytes=options.udp_packet,
        trace=options.trace,
        window_bytes=window_bytes(options.tcp_window) if options.tcp_window else 0,
        congestion_control=options.congestion_control or "",
        change_sysctls=options.change_sysctls,
        addresses=options.addresses or "",
    )
    if options.change_sysctls and not method.sysctls:
        raise InputError(
            "--change-sysctls",
            "has nothing to change",
            remedy="It goes with --tcp-window, and with --congestion-control where the tool is "
            "nuttcp; iperf3 asks for an algorithm by itself.",
        )
    phases = options.phases.split(",") if options.phases else ["aggregate", "rtt"]
    needs = {"--udp": (method.udp, "aggregate"), "--trace": (method.trace, "rtt")}
    for name, (asked, phase) in needs.items():
        if asked and phase not in phases:
            raise InputError(name, f"is part of the phase {phase}, which was not asked for")
    return method


def may_change(method: Method, options: argparse.Namespace) -> bool:
    """Ask before settings of hosts are changed; True where there is nothing to ask."""
    if not method.sysctls:
        return True
    changes = ", ".join(f"{name} = {value}" for name, value in method.sysctls.items())
    print(f"On every host, as root, until the campaign ends: {changes}", file=sys.stderr)
    return agreed("Change these settings?", options, "--change-sysctls")


def window_bytes(text: str) -> int:
    """Read a window: ``8M`` as iperf3 does (2^20), or a volume such as ``8MB``."""
    if match := _AS_IPERF3.fullmatch(text.strip()):
        return round(float(match[1]) * _FACTORS[match[2].upper()])
    return round(parse_volume_gb(text, "--tcp-window") * 1e9)


def budget_of(options: argparse.Namespace) -> float:
    """Read the budget in USD; infinite without one."""
    if not options.budget:
        return inf
    found = parse_money_usd(options.budget, "--budget")
    if found < 0:
        raise InputError("--budget", "is negative", value=options.budget)
    return found


def limits_of(options: argparse.Namespace, kept_budget_usd: float | None) -> CampaignLimits:
    """Return the limits of this run: its own, else the budget that the campaign began with."""
    if options.budget or kept_budget_usd is None:
        kept_budget_usd = budget_of(options)
    at_once = whole_number(options.parallel, "--parallel") if options.parallel else 1_000
    if at_once < 1:
        raise InputError("--parallel", "must be at least 1", value=at_once)
    minutes = number(options.max_minutes, "--max-minutes") if options.max_minutes else inf
    if not minutes > 0:
        raise InputError("--max-minutes", "must be above 0", value=options.max_minutes)
    return CampaignLimits(
        budget_usd=kept_budget_usd,
        deadline_s=time.monotonic() + 60 * minutes,
        at_once=at_once,
        pings_at_once=min(CampaignLimits().pings_at_once, 2 * at_once),
    )
