"""``relayd probe``: price a campaign, ask, run it to its end, list what failed."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from typing import TYPE_CHECKING, Any

from planner.model.errors import InputError
from planner.model.units import parse_duration_s, parse_money_usd
from probes.campaign.engine import StageProgress
from probes.campaign.limits import CampaignLimits
from probes.campaign.method import Method
from probes.campaign.stages import CampaignSpec, parse_pairs
from probes.campaign.tasks import PHASES
from probes.fleet.file import load_fleet
from relayd.campaigns.forecast import forecast_as_json
from relayd.campaigns.running import (
    CampaignForecast,
    CampaignReport,
    CampaignRunner,
    spec_from_json,
    spec_to_json,
)
from relayd.campaigns.termination import cancelled_by_sigterm
from relayd.cli.measuring.caps import cap_json, measured_caps, recreate_lines
from relayd.cli.measuring.fleet import agreed, allow_many_connections, fleet_path
from relayd.cli.measuring.probe_method import kept_method, may_change, method_of
from relayd.cli.options import catalogue_of, store_place, whole_number
from relayd.cli.text import duration, table, usd, volume
from relayd.settings import load_settings
from relayd.store import Place, open_if_there, open_store
from relayd.store.campaigns.log import Campaigns, StoredCampaign

if TYPE_CHECKING:
    from collections.abc import Sequence

    from probes.analysis.fleet_caps import VmCap

PARTLY = 5
LINE_EVERY_S = 10.0
REDRAW_EVERY_S = 0.2
SHOWN_REGIONS = 12


def run(options: argparse.Namespace) -> int:
    """CampaignForecast, ask, measure; 5 if something is left to do."""
    settings = load_settings()
    catalogue = catalogue_of(options, settings)
    fleet = load_fleet(fleet_path(options))
    if len({host.region for host in fleet}) < 2:
        raise InputError(fleet.name, "has fewer than two regions", remedy="Add hosts of others.")
    place = store_place(options, settings)
    if options.dry_run:
        return _dry_run(options, CampaignRunner(fleet, catalogue, open_if_there(place)))
    found: list[VmCap] = []
    with open_store(place, mode="create") as store:
        campaigns = Campaigns(store)
        with campaigns.alone():
            measuring = CampaignRunner(fleet, catalogue, store)
            campaign = campaigns.unfinished()
            if options.resume:
                if campaign is None:
                    print("Nothing to resume: the last campaign was finished.", file=sys.stderr)
                    return 0
                kept = campaign.row.options
                spec, method = spec_from_json(kept["wish"]), kept_method(kept)
                _say(f"Resuming campaign {campaign.row.id}")
            else:
                if campaign is not None:
                    _say(f"Campaign {campaign.row.id} is unfinished: --resume goes on with it")
                spec, method = _spec(options, measuring), method_of(options)
                _limits(options, None)  # a wrong limit is told before anything is asked
                forecast = measuring.forecast(spec, _budget(options), method=method)
                _print_forecast(forecast, sys.stderr)
                if not (agreed("Measure?", options, "--yes") and may_change(method, options)):
                    return 0
                kept = {
                    "wish": spec_to_json(spec),
                    "method": method.to_json(),
                    "budget_usd": options.budget and _budget(options),
                }
                campaign = campaigns.begin(kept)
            report = _measure(options, measuring, campaign, spec, method, kept)
            found = measured_caps(store, catalogue)
    hosts = {host.name for host in fleet}
    slow = [cap for cap in found if cap.recreate and cap.host in hosts]
    return _conclude(options, campaign, report, place, slow)


def _budget(options: argparse.Namespace) -> float:
    if not options.budget:
        return float("inf")
    found = parse_money_usd(options.budget, "--budget")
    if found < 0:
        raise InputError("--budget", "is negative", value=options.budget)
    return found


def _spec(options: argparse.Namespace, measuring: CampaignRunner) -> CampaignSpec:
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
        pairs=parse_pairs(options.pairs, measuring.fleet),
        thorough=options.thorough,
        connections=connections,
        **lengths,
    )


# ---- forecast ----------------------------------------------------------------------------------


def _dry_run(options: argparse.Namespace, measuring: CampaignRunner) -> int:
    spec, method = _spec(options, measuring), method_of(options)
    forecast = measuring.forecast(spec, _budget(options), method=method)
    if options.json:
        print(json.dumps(forecast_as_json(forecast), indent=2))
    else:
        _print_forecast(forecast, sys.stdout)
    return 0


def _print_forecast(forecast: CampaignForecast, stream: Any) -> None:
    cost = forecast.cost
    rows = [
        [
            phase,
            str(part.rounds),
            duration(forecast.phase_s[phase]),
            volume(part.volume_gb),
            usd(part.egress_usd),
        ]
        for phase, part in cost.by_phase.items()
    ]
    rows.append(
        [
            "in all, at most",
            str(cost.rounds),
            duration(forecast.duration_s),
            volume(cost.volume_gb),
            usd(cost.egress_usd),
        ]
    )
    print(table(["phase", "rounds", "time", "volume", "$ egress"], rows), file=stream)
    dearest = [c for c in cost.by_region.values() if c.egress_usd > 0][:SHOWN_REGIONS]
    if dearest:
        shown = [[c.region, volume(c.sent_gb), usd(c.egress_usd)] for c in dearest]
        print(file=stream)
        print(table(["sent from", "volume", "$ egress"], shown), file=stream)
        if (others := len(cost.by_region) - len(dearest)) > 0:
            print(f"and {others} other regions (--json lists all)", file=stream)
    whole = forecast.everything
    print(
        f"\nAll pairs with 64 connections for 5 s would take {whole.rounds} rounds, "
        f"{duration(forecast.everything_s)}, {volume(whole.volume_gb)} and "
        f"${usd(whole.egress_usd)}.",
        file=stream,
    )


# ---- measuring ---------------------------------------------------------------------------------


def _measure(
    options: argparse.Namespace,
    measuring: CampaignRunner,
    campaign: StoredCampaign,
    spec: CampaignSpec,
    method: Method,
    kept: dict[str, Any],
) -> CampaignReport:
    limits = _limits(options, kept.get("budget_usd"))
    shown = _ProgressDisplay()

    async def interruptible() -> CampaignReport:
        cancelled_by_sigterm()
        return await measuring.run(
            campaign, spec, limits, method=method, on_progress=shown.progress, on_note=shown.note
        )

    allow_many_connections()
    try:
        return asyncio.run(interruptible())
    except (KeyboardInterrupt, asyncio.CancelledError):
        shown.end()
        _say("Interrupted; what was measured is kept. `relayd probe --resume` goes on.")
        raise KeyboardInterrupt from None
    finally:
        shown.end()


def _limits(options: argparse.Namespace, kept_budget_usd: float | None) -> CampaignLimits:
    """Return the limits of this run: its own, else the budget that the campaign began with."""
    if options.budget or kept_budget_usd is None:
        kept_budget_usd = _budget(options)
    at_once = whole_number(options.parallel, "--parallel") if options.parallel else 1_000
    if at_once < 1:
        raise InputError("--parallel", "must be at least 1", value=at_once)
    return CampaignLimits(
        budget_usd=kept_budget_usd,
        deadline_s=time.monotonic() + 60 * parse_minutes(options.max_minutes),
        at_once=at_once,
        pings_at_once=min(CampaignLimits().pings_at_once, 2 * at_once),
    )


def parse_minutes(text: str | None) -> float:
    """Read a number of minutes."""
    if not text:
        return float("inf")
    try:
        minutes = float(text)
    except ValueError:
        minutes = -1.0
    if not minutes > 0:
        raise InputError("--max-minutes", "is not a number of minutes", value=text)
    return minutes


class _ProgressDisplay:
    """StageProgress on standard error: one line that changes, or lines now and then."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._last_s = 0.0
        self._last_stage = ""
        self._drawn = False

    def progress(self, now: StageProgress) -> None:
        every_s = REDRAW_EVERY_S if self._terminal else LINE_EVERY_S
        if time.monotonic() - self._last_s < every_s and now.stage == self._last_stage:
            return
        self._last_s, self._last_stage = time.monotonic(), now.stage
        line = (
            f"{now.stage}: round {now.round}/{now.rounds}, {now.done}/{now.total} done"
            + (f", {now.failed} failed" if now.failed else "")
            + f", {volume(now.sent_gb)}, ${usd(now.usd)}, about {duration(now.left_s)} left"
        )
        if self._terminal:
            sys.stderr.write(f"\r\033[K{line[:118]}")
            self._drawn = True
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def note(self, text: str) -> None:
        self.end()
        _say(text)

    def end(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
            self._drawn = False


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ---- the end -----------------------------------------------------------------------------------


def _conclude(
    options: argparse.Namespace,
    campaign: StoredCampaign,
    report: CampaignReport,
    place: Place,
    slow: Sequence[VmCap],
) -> int:
    ending = report.ending
    done = sum(not outcome.problem for outcome in ending.outcomes)
    samples = sum(len(outcome.samples) for outcome in ending.outcomes)
    if options.json:
        content = {
            "campaign": campaign.row.id,
            "done": done,
            "failed": [
                {
                    "stage": o.probe.stage,
                    "pairs": [list(pair) for pair in o.probe.task.pairs],
                    "host": o.host,
                    "cause": o.cause,
                    "problem": o.problem,
                    "attempts": o.attempts,
                }
                for o in ending.failed
            ],
            "left_out": ending.left_out,
            "notes": [
                {
                    "stage": o.probe.stage,
                    "pairs": [list(pair) for pair in o.probe.task.pairs],
                    "note": note,
                }
                for o in ending.outcomes
                for note in o.notes
            ],
            "recreate": [cap_json(cap) for cap in slow],
            "reason": ending.reason,
            "samples": samples,
            "sent_gb": report.sent_gb,
            "egress_usd": report.usd,
            "duration_s": round(report.duration_s, 3),
            "busy_s": round(report.busy_s, 3),
            "critical_s": round(report.critical_s, 3),
            "snapshot": report.snapshot
            and {"id": report.snapshot.id, "as_of": report.snapshot.as_of},
            "db": str(place),
        }
        print(json.dumps(content, indent=2))
    else:
        print(
            f"{done} probes gave {samples} samples in {duration(report.duration_s)}; "
            f"{volume(report.sent_gb)} moved, ${usd(report.usd)}"
        )
        if ending.reason:
            print(f"Stopped because: {ending.reason}")
        for line in (*_listed(report), *recreate_lines(slow)):
            print(line)
        if report.snapshot:
            print(f"Snapshot {report.snapshot.id}, as of {report.snapshot.as_of}, in {place}")
    if ending.failed or ending.left_out:
        _say("Some probes are left to do: `relayd probe --resume` tries them again.")
        return PARTLY
    return 0


def _listed(report: CampaignReport) -> list[str]:
    lines = [
        f"note: {_pairs(outcome)}: {note}"
        for outcome in report.ending.outcomes
        for note in outcome.notes
    ]
    by_problem: dict[tuple[str, str], list[str]] = {}
    for outcome in report.ending.failed:
        where = f"{outcome.probe.task.phase} {_pairs(outcome)}"
        by_problem.setdefault((outcome.host, outcome.problem), []).append(where)
    for (host, problem), probes in by_problem.items():
        shown = ", ".join(probes[:3]) + (f" and {len(probes) - 3} more" if len(probes) > 3 else "")
        lines.append(f"failed: {host}: {problem} [{shown}]")
    if report.ending.left_out:
        lines.append(f"left out: {report.ending.left_out} probes")
    return lines


def _pairs(outcome: Any) -> str:
    pairs = outcome.probe.task.pairs
    text = f"{pairs[0][0]} > {pairs[0][1]}"
    return text if len(pairs) == 1 else f"{text} and {len(pairs) - 1} more together"
