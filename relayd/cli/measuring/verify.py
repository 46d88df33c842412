"""``relayd verify``: run plans with the fleet for a short time, and compare."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from planner.model.errors import InputError
from planner.model.network import Snapshot
from planner.model.units import duration_text, gbps_text, parse_money_usd, usd_text, volume_text
from planner.transfer.request import TransferRequest
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from probes.verification.predictions import Judgement, Limit, PlanPath, PlanPrediction, RateRange
from probes.verification.runs import (
    LIMITS,
    Run,
    VerificationLimits,
    available,
    cost_usd,
    links_of,
    volume_gb,
)
from relayd.campaigns.inputs import MeasuredFleet
from relayd.campaigns.running import run_interruptibly
from relayd.campaigns.verifying import Verification, Verifier
from relayd.cli import text
from relayd.cli.measuring.fleet import fleet_path
from relayd.cli.measuring.probe import say
from relayd.cli.options import agreed, catalogue_of, number, store_location, wan_of, whole_number
from relayd.cli.questions.options import request_from
from relayd.files.plans import document_of
from relayd.settings import load_settings
from relayd.snapshots.building import make_snapshot
from relayd.sources.wan import Wan
from relayd.store import Store, open_store
from relayd.store.campaigns.log import Campaigns
from relayd.store.changes import record_change
from relayd.store.failures import NoStoreError

OUTSIDE, PARTLY = 1, 5


def run(options: argparse.Namespace) -> int:
    """Forecast, ask, run, compare; 1 if a prediction was not met, 5 if something failed."""
    settings = load_settings()
    catalogue = catalogue_of(options, settings)
    fleet = load_fleet(fleet_path(options))
    limits = _limits(options)
    location = store_location(options, settings)
    if not options.dry_run:
        with suppress(NoStoreError):
            open_store(location, mode="write").close()  # brings an older one up to date
    wan = wan_of(options)
    verifier = Verifier(fleet, wan, MeasuredFleet(fleet, catalogue, None).meter())
    plans = [verifier.prepared(plan, limits) for plan in _plans(options, wan, fleet)]
    if options.dry_run:
        print(
            json.dumps(forecast_json(plans, verifier), indent=2)
            if options.json
            else forecast_text(plans, verifier)
        )
        return 0
    print(forecast_text(plans, verifier), file=sys.stderr)
    if not agreed("Run?", options, "--yes"):
        return 0
    with open_store(location, mode="create") as store, Campaigns(store).alone():
        titles = ", ".join(one.plan.title for one in plans)
        record_change(store.database, "verify", titles)
        _verify(verifier, plans, store)
        snapshot = make_snapshot(store, catalogue)
    if options.json:
        print(json.dumps(as_json(plans, verifier, snapshot), indent=2, allow_nan=False))
    else:
        print(human(plans, verifier, snapshot))
    if any(one.error for one in plans):
        return PARTLY
    return 0 if all(one.is_as_predicted for one in plans) else OUTSIDE


def _limits(options: argparse.Namespace) -> VerificationLimits:
    return VerificationLimits(
        whole_number(options.seconds, "--seconds")
        if options.seconds
        else VerificationLimits().measured_s,
        number(options.max_gb, "--max-gb") if options.max_gb else inf,
        parse_money_usd(options.max_usd) if options.max_usd else inf,
    )


def _plans(options: argparse.Namespace, wan: Wan, fleet: Fleet) -> list[Mapping[str, Any]]:
    if options.plans:
        if options.src or options.dst:
            raise InputError(
                "--src", "can't be used together with a plan", remedy="Use one or the other."
            )
        return [_read(name) for name in options.plans]
    if not (options.src and options.dst):
        raise InputError("plan", "is needed", remedy="Name a plan's file, or give --src and --dst.")
    # What is to be run needs hosts: no region without one sends, receives or relays.
    have = available(fleet)
    for end in wan.resolve_pair(options.src, options.dst)[:2]:
        if end not in have:
            raise InputError(
                "--fleet",
                f"has no host in {end}, where the transfer begins or ends",
                value=fleet.name,
                remedy="Add one to the fleet file.",
            )
    request = request_from(options, TransferRequest)
    without_host = [name for name in wan.known_regions() if name not in have]
    asked = replace(request, avoid=[*request.avoid, *without_host])
    if asked.vms is None:  # a plan for more would be run in part
        asked = replace(asked, vms_in={**have, **asked.vms_in})
    return [wan.ask(asked).model_dump("json")]


def _read(name: str) -> Mapping[str, Any]:
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        problem = getattr(fault, "strerror", None) or "is not text"
        raise InputError("plan", f"can't be read: {problem}", value=name) from None
    return document_of(text, name)


def _verify(verifier: Verifier, plans: Sequence[Verification], store: Store) -> None:
    def done(one: Verification) -> None:
        state = "as predicted" if one.is_as_predicted else "not as predicted"
        if one.error:
            state = f"failed: {one.error}"
        say(f"{one.plan.title} ({one.plan.verdict}): {state}")

    def interrupted() -> None:
        say("Interrupted; what was measured is kept, and nothing is left running.")

    run_interruptibly(verifier.verify(plans, store, on_done=done, on_note=say), interrupted)


KINDS = {"plan": "plan", "direct": "direct alone", LIMITS: "a quarter more", "apart": "link alone"}
SHOWN_PATHS = 8
WORDS: dict[Judgement, str] = {"within": "as predicted", "below": "BELOW", "above": "ABOVE"}


# ---- before ------------------------------------------------------------------------------------


def forecast_text(plans: Sequence[Verification], verifier: Verifier) -> str:
    """Return hosts, time, and the volume and dollars expected of every run; at most, of all."""
    rows, notes = [], []

    def add(name: str, runs: Sequence[Run], *, at_most: bool = False) -> None:
        taken = _taken(runs, verifier, at_most=at_most)
        rows.append(
            [
                name,
                str(len(taken["hosts"])),
                duration_text(taken["duration_s"]),
                volume_text(taken["volume_gb"]),
                usd_text(taken["egress_usd"]),
            ]
        )

    for one in plans:
        for run in one.runs:
            add(_name(run), [run])
        if rechecks := one.most_rechecks():
            add("  rechecks, if needed", rechecks)
        notes += one.notes
    add("in all, at most", _everything(plans), at_most=True)
    shown = [text.table(("run", "hosts", "time", "volume", "$ egress"), rows)]
    return "\n\n".join([*shown, *text.notes_block(notes)])


def _everything(plans: Sequence[Verification]) -> list[Run]:
    return [run for one in plans for run in (*one.runs, *one.most_rechecks())]


def _taken(runs: Sequence[Run], verifier: Verifier, *, at_most: bool = False) -> dict[str, Any]:
    sent = links_of(runs, at_most=at_most)
    return {
        "hosts": sorted({host for run in runs for host in run.hosts}),
        "duration_s": round(sum(run.duration_s for run in runs), 3),
        "volume_gb": volume_gb(sent),
        "egress_usd": cost_usd(sent, verifier.price),
    }


def _name(run: Run) -> str:
    if len(run.paths) > 3:
        return f"{KINDS[run.kind]}: {run.prediction.title}, {len(run.paths)} paths"
    return f"{KINDS[run.kind]}: {', '.join(' -> '.join(path.regions) for path in run.paths)}"


def forecast_json(plans: Sequence[Verification], verifier: Verifier) -> dict[str, Any]:
    """Return the same as plain values."""
    return {
        "plans": [
            {
                "plan_id": one.plan.plan_id,
                **_asked(one.plan),
                "runs": [
                    {
                        "run": run.kind,
                        "paths": [list(path.regions) for path in run.paths],
                        "measured_s": run.measured_s,
                        **_taken([run], verifier),
                    }
                    for run in one.runs
                ],
                "second_looks": _taken(one.most_rechecks(), verifier),
                "notes": one.notes,
            }
            for one in plans
        ],
        "at_most": _taken(_everything(plans), verifier, at_most=True),
    }


def _asked(plan: PlanPrediction) -> dict[str, Any]:
    return {
        "question": plan.question,
        "src": plan.src or None,
        "dst": plan.dst or None,
        "verdict": plan.verdict,
    }


# ---- after -------------------------------------------------------------------------------------


def human(plans: Sequence[Verification], verifier: Verifier, snapshot: Snapshot | None) -> str:
    """Return predicted against achieved for people."""
    blocks = []
    for one in plans:
        plan = one.plan
        rows = [row for run in one.compared for row in _rows(run)]
        rows += [_filled_row(*filled) for filled in one.filled()]
        rows += [row for recheck in one.rechecked for row in _rows(recheck)]
        block = text.styled(f"{plan.title}, {plan.verdict}, plan {plan.plan_id}", text.BOLD)
        if rows:
            header = ("run", "connections", "low", "predicted", "high", "achieved", "ratio", "")
            block += "\n" + text.table(header, rows)
        blocks.append(block)
        relays = {host: program for run in one.ended for host, program in run.relays.items()}
        if relays:
            named = ", ".join(f"{host} ({program})" for host, program in relays.items())
            blocks.append(f"Relayed by {named}.")
        if one.error:
            blocks.append(text.filled(f"Failed: {one.error}"))
        blocks += text.notes_block(one.notes)
    gb, usd = _spent(plans, verifier)
    samples = sum(len(one.samples) for one in plans)
    end = f"Rates are in Gbit/s. {volume_text(gb)} moved, ${usd_text(usd)}; "
    end += f"{samples} samples of links stored."
    if snapshot:
        end += f" Snapshot {snapshot.id}, as of {snapshot.as_of}."
    blocks.append(text.filled(end))
    return "\n\n".join(blocks)


def _rows(run: Run) -> list[tuple[str, ...]]:
    rows = []
    if len(run.paths) > 1:
        connections = sum(path.connections for path in run.paths)
        rows.append(_row(KINDS[run.kind], connections, run.prediction.rate, run.achieved_gbps))
    furthest = sorted(run.paths, key=_error, reverse=True)
    shown = run.paths if len(furthest) <= SHOWN_PATHS else furthest[:SHOWN_PATHS]
    for path in shown:
        way = " -> ".join(path.regions)
        name = f"  {way}" if rows else f"{KINDS[run.kind]}: {way}"
        if run.kind == "apart":
            least = "at least " if path.is_rate_limited else ""
            achieved = least + gbps_text(path.achieved_gbps)
            rows.append((name, str(path.connections), "", "", "", achieved, "", ""))
        else:
            rows.append(_row(name, path.connections, path.rate, path.achieved_gbps))
    if hidden := len(run.paths) - len(shown):
        rows.append((f"  {hidden} nearer to what was predicted", *[""] * 7))
    return rows


def _error(path: PlanPath) -> float:
    return abs(path.achieved_gbps / path.rate.expected_gbps - 1)


def _filled_row(limit: Limit, rate: RateRange, gbps: float) -> tuple[str, ...]:
    """Return the row of a limit that the plan fills, from the run that was allowed more."""
    kind, regions = limit
    name = " -> ".join(regions) if kind == "link" else f"{kind} of {regions[0]}"
    row = _row(f"full: {name}", 0, rate, gbps)
    return (row[0], "", *row[2:-1], row[-1] if rate.judged(gbps) != "below" else "")


def _row(name: str, connections: int, rate: RateRange, achieved_gbps: float) -> tuple[str, ...]:
    bounds = rate.of_one_run()
    return (
        name,
        str(connections),
        gbps_text(bounds.low_gbps),
        gbps_text(bounds.expected_gbps),
        gbps_text(bounds.high_gbps),
        gbps_text(achieved_gbps),
        f"{achieved_gbps / bounds.expected_gbps:.2f}",
        WORDS[rate.judged(achieved_gbps)],
    )


def _spent(plans: Sequence[Verification], verifier: Verifier) -> tuple[float, float]:
    sent = [link for one in plans for link in one.sent]
    return volume_gb(sent), cost_usd(sent, verifier.price)


def as_json(
    plans: Sequence[Verification], verifier: Verifier, snapshot: Snapshot | None
) -> dict[str, Any]:
    """Return the same as plain values."""
    gb, usd = _spent(plans, verifier)
    return {
        "plans": [
            {
                "plan_id": one.plan.plan_id,
                "snapshot_id": one.plan.snapshot_id,
                **_asked(one.plan),
                "vms": one.runs[0].prediction.vms,
                "share_of_vms": one.runs[0].prediction.share,
                "held": one.is_as_predicted and one.error is None,
                "runs": [_run_json(run) for run in one.ended],
                "full": [
                    {"limit": kind, "regions": list(regions), **_compared(rate, gbps)}
                    for (kind, regions), rate, gbps in one.filled()
                ],
                "second_looks": [
                    {
                        "path": list(recheck.paths[0].regions),
                        "achieved_gbps": recheck.achieved_gbps,
                        "held_back": recheck.paths[0].is_rate_limited,
                    }
                    for recheck in one.rechecked
                ],
                "samples": [
                    {
                        "src": s.src,
                        "dst": s.dst,
                        "metric": s.metric,
                        "value": s.value,
                        "connections": s.connections,
                    }
                    for s in one.samples
                ],
                "error": str(one.error) if one.error else None,
                "notes": one.notes,
            }
            for one in plans
        ],
        "sent_gb": gb,
        "egress_usd": usd,
        "snapshot": snapshot and {"id": snapshot.id, "as_of": snapshot.as_of},
    }


def _run_json(run: Run) -> dict[str, Any]:
    return {
        "run": run.kind,
        "measured_s": run.measured_s,
        "relays": dict(run.relays),
        **_compared(run.prediction.rate, run.achieved_gbps),
        "paths": [
            {
                "regions": list(path.regions),
                "connections": path.connections,
                "vm_pairs": len(path.streams),
                **_compared(path.rate, path.achieved_gbps),
            }
            for path in run.paths
        ],
        "vms": [
            {
                "region": regions[0],
                "direction": "out" if kind == "egress cap" else "in",
                "expected_gbps": expected_gbps,
                "achieved_gbps": achieved_gbps,
            }
            for (kind, regions), (expected_gbps, achieved_gbps) in run.carried().items()
            if kind != "link"
        ],
    }


def _compared(rate: RateRange, achieved_gbps: float) -> dict[str, Any]:
    bounds = rate.of_one_run()
    return {
        "low_gbps": bounds.low_gbps,
        "expected_gbps": bounds.expected_gbps,
        "high_gbps": bounds.high_gbps,
        "achieved_gbps": achieved_gbps,
        "judgement": rate.judged(achieved_gbps),
    }
