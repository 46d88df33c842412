"""What ``relayd probe`` prints: the forecast, the progress and the result."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from typing import TextIO

from planner.model.units import duration_text, usd_text, volume_text
from probes.analysis.evidence import Record
from probes.campaign.costing import PhaseCost
from probes.campaign.engine import StageProgress
from probes.campaign.stages import CampaignReport
from probes.campaign.tasks import ProbeOutcome
from relayd.campaigns.forecast import CampaignForecast
from relayd.cli.measuring.fleet import recreate_lines
from relayd.cli.text import redrawn, table
from relayd.store import Location

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
    done = sum(not outcome.problem for outcome in report.outcomes)
    samples = sum(len(outcome.samples) for outcome in report.outcomes)
    if options.json:
        content = {
            "campaign": number,
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
                for o in report.failed
            ],
            "left_out": report.left_out,
            "notes": [
                {
                    "stage": o.probe.stage,
                    "pairs": [list(pair) for pair in o.probe.task.pairs],
                    "note": note,
                }
                for o in report.outcomes
                for note in o.notes
            ],
            "recreate": list(slow),
            "reason": report.reason,
            "samples": samples,
            "sent_gb": report.sent_gb,
            "egress_usd": report.usd,
            "duration_s": round(report.duration_s, 3),
            "busy_s": round(report.busy_s, 3),
            "critical_s": round(report.critical_s, 3),
            "snapshot": report.snapshot
            and {"id": report.snapshot.id, "as_of": report.snapshot.as_of},
            "db": str(location),
        }
        print(json.dumps(content, indent=2))
    else:
        print(
            f"{done} probes gave {samples} samples in {duration_text(report.duration_s)}; "
            f"{volume_text(report.sent_gb)} moved, ${usd_text(report.usd)}"
        )
        if report.reason:
            print(f"Stopped because: {report.reason}")
        for line in (*_listed(report), *recreate_lines(slow)):
            print(line)
        if report.snapshot:
            print(f"Snapshot {report.snapshot.id}, as of {report.snapshot.as_of}, in {location}")


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
