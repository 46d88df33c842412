"""``relayd probe``: price a campaign, ask, run it to its end, and print what it did."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from math import inf
from typing import TextIO

from planner.model.errors import InputError
from planner.model.units import (
    duration_text,
    parse_duration_s,
    parse_money_usd,
    parse_volume_gb,
    usd_text,
    volume_text,
)
from probes.analysis.evidence import Record
from probes.campaign.costing import PhaseCost
from probes.campaign.engine import StageProgress
from probes.campaign.specification import CampaignSpec, Method, parse_pairs
from probes.campaign.stages import CampaignReport
from probes.campaign.tasks import PHASES, CampaignLimits, ProbeOutcome
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from relayd.campaigns.forecast import CampaignForecast, forecast_campaign
from relayd.campaigns.inputs import MeasuredFleet, measured_caps
from relayd.campaigns.running import CampaignRunner, run_interruptibly
from relayd.cli.measuring.fleet import fleet_path, recreate_lines
from relayd.cli.options import agreed, catalogue_of, number, store_location, whole_number
from relayd.cli.text import redrawn, table
from relayd.settings import load_settings
from relayd.store import Location, open_if_there, open_store
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


LINE_EVERY_S = 10.0
REDRAW_EVERY_S = 0.2
SHOWN_REGIONS = 12


def say(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


def print_forecast(forecast: CampaignForecast, stream: TextIO) -> None:
    """Print what a campaign would take."""
    cost = forecast.cost
    whole = PhaseCost(cost.rounds, cost.volume_gb, cost.egress_usd)
    parts = [(phase, forecast.phase_s[phase], part) for phase, part in cost.by_phase.items()]
    rows = [
        [
            name,
            str(part.rounds),
            duration_text(duration_s),
            volume_text(part.volume_gb),
            usd_text(part.egress_usd),
        ]
        for name, duration_s, part in (*parts, ("in all, at most", forecast.duration_s, whole))
    ]
    print(table(("phase", "rounds", "time", "volume", "$ egress"), rows), file=stream)
    dearest = [item for item in cost.by_region.items() if item[1].egress_usd > 0][:SHOWN_REGIONS]
    if dearest:
        shown = [[name, volume_text(c.sent_gb), usd_text(c.egress_usd)] for name, c in dearest]
        print(file=stream)
        print(table(["sent from", "volume", "$ egress"], shown), file=stream)
        if (others := len(cost.by_region) - len(dearest)) > 0:
            print(f"and {others} other regions (--json lists all)", file=stream)
    everything = forecast.everything
    print(
        f"\nAll pairs with 64 connections for 5 s would take {everything.rounds} rounds, "
        f"{duration_text(forecast.everything_s)}, {volume_text(everything.volume_gb)} and "
        f"${usd_text(everything.egress_usd)}.",
        file=stream,
    )
    saved = forecast.regret_saved_per_usd
    worth = "" if saved is None else f"; a dollar saves {100 * saved:.2g} percentage points"
    print(
        "Expected regret, the share of throughput lost for lack of measurements: "
        f"{forecast.regret:.1%} now, {forecast.regret_after:.1%} after all of it{worth}.",
        file=stream,
    )
    if forecast.unknown_regions:
        unknown = ", ".join(forecast.unknown_regions)
        print(f"Nothing is known yet of {unknown}: the regret is not of them.", file=stream)


class ProgressDisplay:
    """Progress on standard error: one line that changes, or a line every ten seconds."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last_s = 0.0
        self._last_stage = ""
        self._drawn = False

    def progress(self, now: StageProgress) -> None:
        """Show how far a stage is, not too often."""
        every_s = REDRAW_EVERY_S if self._terminal else LINE_EVERY_S
        if time.monotonic() - self._last_s < every_s and now.stage == self._last_stage:
            return
        self._last_s, self._last_stage = time.monotonic(), now.stage
        line = (
            f"{now.stage}: round {now.round}/{now.rounds}, {now.done}/{now.total} done"
            + (f", {now.failed} failed" if now.failed else "")
            + f", {volume_text(now.sent_gb)}, ${usd_text(now.usd)}"
            + f", about {duration_text(now.left_s)} left"
        )
        if self._terminal:
            sys.stderr.write(redrawn(line[:118]))
            self._drawn = True
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def note(self, text: str) -> None:
        """Print a line above the progress."""
        self.end()
        say(text)

    def end(self) -> None:
        """Clear the line that changes."""
        if self._drawn:
            sys.stderr.write(redrawn())
            sys.stderr.flush()
            self._drawn = False


def print_report(
    options: argparse.Namespace,
    number: int,
    report: CampaignReport,
    location: Location,
    slow: Sequence[Record],
) -> None:
    """Print what a campaign did.

    Parameters
    ----------
    number : int
        Of the campaign.
    slow : sequence of dict
        Caps of VMs that it may pay to recreate.
    """
    if options.json:
        print(json.dumps(_as_json(number, report, location, slow), indent=2))
        return
    print(
        f"{_done(report)} probes gave {_samples(report)} samples in "
        f"{duration_text(report.duration_s)}; {volume_text(report.sent_gb)} moved, "
        f"${usd_text(report.usd)}"
    )
    if report.reason:
        print(f"Stopped because: {report.reason}")
    for line in (*_listed(report), *recreate_lines(slow)):
        print(line)
    if report.snapshot:
        print(f"Snapshot {report.snapshot.id}, as of {report.snapshot.as_of}, in {location}")


def _done(report: CampaignReport) -> int:
    return sum(not outcome.problem for outcome in report.outcomes)


def _samples(report: CampaignReport) -> int:
    return sum(len(outcome.samples) for outcome in report.outcomes)


def _as_json(
    number: int, report: CampaignReport, location: Location, slow: Sequence[Record]
) -> dict[str, object]:
    def where(outcome: ProbeOutcome) -> dict[str, object]:
        probe = outcome.probe
        return {"stage": probe.stage, "pairs": [list(pair) for pair in probe.task.pairs]}

    return {
        "campaign": number,
        "done": _done(report),
        "failed": [
            {
                **where(o),
                "host": o.host,
                "cause": o.cause,
                "problem": o.problem,
                "attempts": o.attempts,
            }
            for o in report.failed
        ],
        "left_out": report.left_out,
        "notes": [{**where(o), "note": note} for o in report.outcomes for note in o.notes],
        "recreate": list(slow),
        "reason": report.reason,
        "samples": _samples(report),
        "sent_gb": report.sent_gb,
        "egress_usd": report.usd,
        "duration_s": round(report.duration_s, 3),
        "busy_s": round(report.busy_s, 3),
        "critical_s": round(report.critical_s, 3),
        "snapshot": report.snapshot and {"id": report.snapshot.id, "as_of": report.snapshot.as_of},
        "db": str(location),
    }


def _listed(report: CampaignReport) -> list[str]:
    lines = [
        f"note: {_pairs(outcome)}: {note}" for outcome in report.outcomes for note in outcome.notes
    ]
    by_problem: dict[tuple[str, str], list[str]] = {}
    for outcome in report.failed:
        where = f"{outcome.probe.task.phase} {_pairs(outcome)}"
        by_problem.setdefault((outcome.host, outcome.problem), []).append(where)
    for (host, problem), probes in by_problem.items():
        shown = ", ".join(probes[:3]) + (f" and {len(probes) - 3} more" if len(probes) > 3 else "")
        lines.append(f"failed: {host}: {problem} [{shown}]")
    if report.left_out:
        lines.append(f"left out: {report.left_out} probes")
    return lines


def _pairs(outcome: ProbeOutcome) -> str:
    pairs = outcome.probe.task.pairs
    text = f"{pairs[0][0]} > {pairs[0][1]}"
    return text if len(pairs) == 1 else f"{text} and {len(pairs) - 1} more together"
