"""``relayd probe``: price a campaign, ask, run it to its end, and print what it did."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from math import inf

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
from probes.campaign.engine import StageProgress
from probes.campaign.specification import CampaignSpec, Method, parse_pairs
from probes.campaign.stages import CampaignReport
from probes.campaign.tasks import PHASES, CampaignLimits, ProbeOutcome
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from relayd.campaigns.forecast import CampaignForecast, forecast_campaign
from relayd.campaigns.inputs import MeasuredFleet, measured_caps
from relayd.campaigns.running import CampaignRunner, run_interruptibly
from relayd.cli.measuring.fleet import PARTLY, fleet_path, recreate_lines, say
from relayd.cli.options import agreed, catalogue_of, number, store_location, whole_number
from relayd.cli.output import pick, respond, snapshot_as_json
from relayd.cli.text import Progress, page
from relayd.store import Location, open_if_there, open_store
from relayd.store.campaigns import Campaigns, StoredCampaign
from relayd.store.events import record_change

SHOWN_REGIONS = 12
_AS_IPERF3 = re.compile(r"(\d+(?:\.\d+)?)([KMG]?)", re.IGNORECASE)


def run(options: argparse.Namespace) -> int:
    """Forecast, ask, measure; 5 if something is left to do.

    Raises an InputError if the fleet has fewer than two regions.
    """
    catalogue = catalogue_of(options)
    fleet = load_fleet(fleet_path(options))
    if len({host.region for host in fleet}) < 2:
        raise InputError(fleet.name, "has fewer than two regions", remedy="Add hosts of others.")
    location = store_location(options)
    if options.dry_run:
        forecast = _forecast(options, MeasuredFleet(fleet, catalogue, open_if_there(location)))
        return respond(options, forecast.as_json(), forecast_text(forecast))
    with open_store(location, mode="create") as store, Campaigns(store).alone():
        runner = CampaignRunner(fleet, catalogue, store)
        left = runner.unfinished() if options.resume else Campaigns(store).unfinished()
        campaign = _campaign(options, runner, left)
        if campaign is None:
            return 0
        action = "campaign resume" if options.resume else "campaign start"
        record_change(store.database, action, str(campaign.id))
        report = _measure(options, runner, campaign)
        caps = measured_caps(store, catalogue)
    slow = [cap for cap in caps if cap["recreate"] and cap["host"] in fleet.hosts]
    _report(options, campaign.id, report, location, slow)
    if report.failed or report.left_out:
        say("Some probes are left to do: `relayd probe --resume` tries them again.")
        return PARTLY
    return 0


def _forecast(options: argparse.Namespace, measured: MeasuredFleet) -> CampaignForecast:
    spec, method = spec_of(options, measured.fleet), method_of(options)
    return forecast_campaign(measured, spec, budget_of(options), method=method)


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
    limits_of(options, None)  # report a wrong limit before asking anything
    say(forecast_text(_forecast(options, runner.measured)))
    method = method_of(options)
    if not agreed("Measure?", options, "--yes"):
        return None
    if method.sysctls:
        changes = ", ".join(f"{name} = {value}" for name, value in method.sysctls.items())
        say(f"On every host, as root, until the campaign ends: {changes}")
        if not agreed("Change these settings?", options, "--change-sysctls"):
            return None
    spec = spec_of(options, runner.measured.fleet)
    return runner.begin(spec, method, budget_of(options) if options.budget else None)


def _measure(
    options: argparse.Namespace, runner: CampaignRunner, campaign: StoredCampaign
) -> CampaignReport:
    limits = limits_of(options, campaign.options.get("budget_usd"))
    display = Progress(line_every_s=10.0)

    def progress(now: StageProgress) -> None:
        failed = f", {now.failed} failed" if now.failed else ""
        display.show(
            f"{now.stage}: round {now.round}/{now.rounds}, {now.done}/{now.total} done{failed}, "
            f"{volume_text(now.sent_gb)}, {usd_text(now.usd)}, "
            f"about {duration_text(now.left_s)} left",
            now.stage,
        )

    def note(text: str) -> None:
        display.end()
        say(text)

    def interrupted() -> None:
        note("Interrupted; what was measured is kept. `relayd probe --resume` goes on.")

    work = runner.run(campaign, limits, on_progress=progress, on_note=note)
    try:
        return run_interruptibly(work, interrupted)
    finally:
        display.end()


def spec_of(options: argparse.Namespace, fleet: Fleet) -> CampaignSpec:
    """Read what to measure; raises an InputError if a phase is unknown or a number out of range."""
    phases = options.phases.split(",") if options.phases else PHASES
    for phase in phases:
        if phase not in PHASES:
            remedy = f"Phases are {', '.join(PHASES)}, joined by commas."
            raise InputError("--phases", "names an unknown phase", value=phase, remedy=remedy)
    connections = whole_number(options.connections, "--connections") if options.connections else 64
    if not 1 <= connections <= 128:
        raise InputError("--connections", "must be between 1 and 128", value=connections)
    lengths = {}
    for name in ("flow", "aggregate"):
        if text := getattr(options, f"{name}_time"):
            seconds = lengths[f"{name}_s"] = parse_duration_s(text, f"--{name}-time")
            if not 4 <= seconds <= 3600:
                raise InputError(f"--{name}-time", "must be between 4s and 1h", value=text)
    return CampaignSpec(
        phases=tuple(phase for phase in PHASES if phase in phases),
        pairs=parse_pairs(options.pairs, fleet),
        thorough=options.thorough,
        connections=connections,
        **lengths,
    )


def method_of(options: argparse.Namespace) -> Method:
    """Read how to measure.

    Raises InputError if something asked for can't be done, or not together.
    """
    method = Method(
        **pick(options, "full_time udp_rates trace change_sysctls"),
        ramp="every" if options.ramp else "never" if options.connections else "first",
        udp=options.udp or options.udp_rates != 1 or options.udp_packet != 0,
        udp_bytes=options.udp_packet,
        window_bytes=window_bytes(options.tcp_window) if options.tcp_window else 0,
        congestion_control=options.congestion_control or "",
        addresses=options.addresses or "",
    )
    if options.change_sysctls and not method.sysctls:
        remedy = "It goes with --tcp-window and --congestion-control."
        raise InputError("--change-sysctls", "has nothing to change", remedy=remedy)
    phases = options.phases.split(",") if options.phases else ["aggregate", "rtt"]
    needs = {"--udp": (method.udp, "aggregate"), "--trace": (method.trace, "rtt")}
    for name, (asked, phase) in needs.items():
        if asked and phase not in phases:
            raise InputError(name, f"is part of the phase {phase}, which was not asked for")
    return method


def window_bytes(text: str) -> int:
    """Read a window: ``8M`` as iperf3 does (2^20), or a volume such as ``8MB``."""
    if match := _AS_IPERF3.fullmatch(text.strip()):
        return round(float(match[1]) * 1024.0 ** " KMG".index(match[2].upper() or " "))
    return round(parse_volume_gb(text, "--tcp-window") * 1e9)


def budget_of(options: argparse.Namespace) -> float:
    """Read the budget in USD, infinite without one; raises an InputError if it is negative."""
    found = parse_money_usd(options.budget, "--budget") if options.budget else inf
    if found < 0:
        raise InputError("--budget", "is negative", value=options.budget)
    return found


def limits_of(options: argparse.Namespace, kept_budget_usd: float | None) -> CampaignLimits:
    """Return the limits of this run: its own, else the budget that the campaign began with.

    Raises an InputError if an option is out of range.
    """
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


def forecast_text(forecast: CampaignForecast) -> str:
    """Word the forecast of a campaign."""
    cost, everything = forecast.cost, forecast.everything
    phases = [
        {"phase": phase, "duration_s": forecast.phase_s[phase], **part}
        for phase, part in cost["phases"].items()
    ]
    phases.append({"phase": "in all, at most", **cost})
    columns = "phase | rounds | time=duration_s | volume=volume_gb | $ egress=egress_usd"
    blocks = [page().table_of(phases, columns)]
    paid = {region: part for region, part in cost["regions"].items() if part["egress_usd"] > 0}
    if paid:
        rows = [{"region": region, **part} for region, part in list(paid.items())[:SHOWN_REGIONS]]
        columns = "sent from=region | volume=sent_gb | $ egress=egress_usd"
        blocks.append(page().table_of(rows, columns))
        if (others := len(cost["regions"]) - len(rows)) > 0:
            blocks[-1] += f"\nand {others} other regions (--json lists all)"
    saved = forecast.regret_saved_per_usd
    worth = "" if saved is None else f"; a dollar saves {100 * saved:.2g} percentage points"
    told = [
        f"All pairs with 64 connections for 5 s would take {everything['rounds']} rounds, "
        f"{duration_text(everything['duration_s'])}, {volume_text(everything['volume_gb'])} and "
        f"{usd_text(everything['egress_usd'])}.",
        "Expected regret, the share of throughput lost for lack of measurements: "
        f"{forecast.regret:.1%} now, {forecast.regret_after:.1%} after all of it{worth}.",
    ]
    if forecast.unknown_regions:
        unknown = ", ".join(forecast.unknown_regions)
        told.append(f"Nothing is known yet of {unknown}: the regret is not of them.")
    return "\n\n".join([*blocks, "\n".join(told)])


def _report(
    options: argparse.Namespace,
    campaign: int,
    report: CampaignReport,
    location: Location,
    slow: Sequence[Record],
) -> None:
    """Print what a campaign did, and the caps of VMs that it may pay to recreate."""
    outcomes, snapshot = report.outcomes, report.snapshot
    done = len(outcomes) - len(report.failed)
    samples = sum(len(outcome.samples) for outcome in outcomes)

    def where(outcome: ProbeOutcome) -> dict[str, object]:
        probe = outcome.probe
        return {"stage": probe.stage, "pairs": [list(pair) for pair in probe.task.pairs]}

    document = {
        "campaign": campaign,
        "done": done,
        "failed": [pick(o, "host cause problem attempts", **where(o)) for o in report.failed],
        "left_out": report.left_out,
        "notes": [{**where(o), "note": note} for o in outcomes for note in o.notes],
        "recreate": list(slow),
        "reason": report.reason,
        "samples": samples,
        "sent_gb": report.sent_gb,
        "egress_usd": report.usd,
        **{
            name: round(getattr(report, name), 3) for name in ("duration_s", "busy_s", "critical_s")
        },
        "snapshot": snapshot_as_json(snapshot),
        "db": str(location),
    }
    lines = [
        f"{done} probes gave {samples} samples in {duration_text(report.duration_s)}; "
        f"{volume_text(report.sent_gb)} moved, {usd_text(report.usd)}"
    ]
    if report.reason:
        lines.append(f"Stopped because: {report.reason}")
    lines += [*_listed(report), *recreate_lines(slow)]
    if snapshot:
        lines.append(f"Snapshot {snapshot.id}, as of {snapshot.as_of}, in {location}")
    respond(options, document, "\n".join(lines))


def _listed(report: CampaignReport) -> list[str]:
    lines = [f"note: {_pairs(one)}: {note}" for one in report.outcomes for note in one.notes]
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
    more = f" and {len(pairs) - 1} more together" if len(pairs) > 1 else ""
    return f"{pairs[0][0]} > {pairs[0][1]}{more}"
