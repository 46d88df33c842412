"""``relayd measure verify``: run plans with the fleet for a short time, and compare."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any

from planner.model.errors import InputError
from planner.model.network import Snapshot
from planner.model.units import gbps_text, parse_money_usd, usd_text, volume_text
from planner.transfer.request import TransferRequest
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from probes.verification.predictions import Judgement, PlanPath, PlanPrediction, RateRange
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
from relayd.cli.measuring.fleet import PARTLY, fleet_path, say
from relayd.cli.options import agreed, catalogue_of, number, store_location, wan_of, whole_number
from relayd.cli.output import pick, respond, snapshot_as_json
from relayd.cli.questions.options import request_from
from relayd.files import document_of, read_text
from relayd.snapshots.building import make_snapshot
from relayd.sources.wan import Wan
from relayd.store import Store, open_store
from relayd.store.campaigns import Campaigns
from relayd.store.events import record_change
from relayd.store.failures import NoStoreError

OUTSIDE = 1


def run(options: argparse.Namespace) -> int:
    """Forecast, ask, run, compare; 1 if a prediction was not met, 5 if something failed."""
    catalogue = catalogue_of(options)
    fleet = load_fleet(fleet_path(options))
    limits = VerificationLimits(
        whole_number(options.seconds, "--seconds")
        if options.seconds
        else VerificationLimits().measured_s,
        number(options.max_gb, "--max-gb") if options.max_gb else inf,
        parse_money_usd(options.max_usd) if options.max_usd else inf,
    )
    location = store_location(options)
    if not options.dry_run:
        with suppress(NoStoreError):
            open_store(location, mode="write").close()  # brings an older one up to date
    wan = wan_of(options)
    verifier = Verifier(fleet, wan, MeasuredFleet(fleet, catalogue, None).meter())
    plans = [verifier.prepared(plan, limits) for plan in _plans(options, wan, fleet)]
    document, shown = _forecast(plans, verifier)
    if options.dry_run:
        return respond(options, document, shown)
    say(shown)
    if not agreed("Run?", options, "--yes"):
        return 0
    with open_store(location, mode="create") as store, Campaigns(store).alone():
        record_change(store.database, "verify", ", ".join(one.plan.title for one in plans))
        _verify(verifier, plans, store)
        snapshot = make_snapshot(store, catalogue)
    respond(options, *_results(plans, verifier, snapshot))
    if any(one.error for one in plans):
        return PARTLY
    return 0 if all(one.is_as_predicted for one in plans) else OUTSIDE


def _plans(options: argparse.Namespace, wan: Wan, fleet: Fleet) -> list[Mapping[str, Any]]:
    if options.plans:
        if options.src or options.dst:
            problem, remedy = "can't be used together with a plan", "Use one or the other."
            raise InputError("--src", problem, remedy=remedy)
        return [document_of(read_text(name, "plan"), name) for name in options.plans]
    if not (options.src and options.dst):
        remedy = "Name a plan's file, or give --src and --dst."
        raise InputError("plan", "is missing", remedy=remedy)
    # What is to be run needs hosts: no region without one sends, receives or relays.
    have = available(fleet)
    for end in wan.resolve_pair(options.src, options.dst)[:2]:
        if end not in have:
            problem = f"has no host in {end}, where the transfer begins or ends"
            remedy = "Add one to the fleet file."
            raise InputError("--fleet", problem, value=fleet.name, remedy=remedy)
    request = request_from(options, TransferRequest)
    without_host = [name for name in wan.known_regions() if name not in have]
    asked = replace(request, avoid=[*request.avoid, *without_host])
    if asked.vms is None:  # a plan for more would be run in part
        asked = replace(asked, vms_in={**have, **asked.vms_in})
    return [wan.ask(asked).model_dump("json")]


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


def _forecast(plans: Sequence[Verification], verifier: Verifier) -> tuple[dict[str, Any], str]:
    """Return hosts, time, volume and dollars of runs, and of all at most; and the same as text."""

    def taken(runs: Sequence[Run], *, at_most: bool = False) -> dict[str, Any]:
        sent = links_of(runs, at_most=at_most)
        return {
            "hosts": sorted({host for run in runs for host in run.hosts}),
            "duration_s": round(sum(run.duration_s for run in runs), 3),
            "volume_gb": volume_gb(sent),
            "egress_usd": cost_usd(sent, verifier.price),
        }

    def name(run: Run) -> str:
        paths = ", ".join(" -> ".join(path.regions) for path in run.paths)
        if len(run.paths) > 3:
            paths = f"{run.prediction.title}, {len(run.paths)} paths"
        return f"{KINDS[run.kind]}: {paths}"

    documents, rows, everything = [], [], list[Run]()
    for one in plans:
        rechecks, runs = one.most_rechecks(), []
        for run in one.runs:
            row = taken([run])
            rows.append({"run": name(run), **row})
            paths = [list(path.regions) for path in run.paths]
            runs.append({"run": run.kind, "paths": paths, "measured_s": run.measured_s, **row})
        if rechecks:
            rows.append({"run": "  rechecks, if needed", **taken(rechecks)})
        everything += [*one.runs, *rechecks]
        after = {"runs": runs, "second_looks": taken(rechecks), "notes": one.notes}
        documents.append({"plan_id": one.plan.plan_id, **_asked(one.plan), **after})
    at_most = taken(everything, at_most=True)
    shown = text.page().table_of(
        [*rows, {"run": "in all, at most", **at_most}],
        "run | hosts | time=duration_s | volume=volume_gb | $ egress=egress_usd",
        hosts=lambda row: str(len(row["hosts"])),
    )
    notes = text.page().notes([note for one in plans for note in one.notes])
    return {"plans": documents, "at_most": at_most}, "\n\n".join([shown, *notes])


def _asked(plan: PlanPrediction) -> dict[str, Any]:
    return pick(plan, "question", src=plan.src or None, dst=plan.dst or None, verdict=plan.verdict)


def _compared(rate: RateRange, achieved_gbps: float, **more: object) -> dict[str, Any]:
    bounds = rate.of_one_run()
    return {
        **more,
        **pick(bounds, "low_gbps expected_gbps high_gbps"),
        "achieved_gbps": achieved_gbps,
        "judgement": rate.judged(achieved_gbps),
    }


def _results(
    plans: Sequence[Verification], verifier: Verifier, snapshot: Snapshot | None
) -> tuple[dict[str, Any], str]:
    """Return predicted against achieved, and the same for people."""
    sent = [link for one in plans for link in one.sent]
    gb, usd = volume_gb(sent), cost_usd(sent, verifier.price)
    document = {
        "plans": [_plan_as_json(one) for one in plans],
        "sent_gb": gb,
        "egress_usd": usd,
        "snapshot": snapshot_as_json(snapshot),
    }
    end = f"Rates are in Gbit/s. {volume_text(gb)} moved, {usd_text(usd)}; "
    end += f"{sum(len(one.samples) for one in plans)} samples of links stored."
    if snapshot:
        end += f" Snapshot {snapshot.id}, as of {snapshot.as_of}."
    blocks = [block for one in plans for block in _plan_as_text(one)]
    return document, "\n\n".join([*blocks, text.page().filled(end)])


def _plan_as_text(one: Verification) -> list[str]:
    plan = one.plan
    rows = [row for run in one.compared for row in _rows(run)]
    for (kind, regions), rate, gbps in one.filled():
        name = " -> ".join(regions) if kind == "link" else f"{kind} of {regions[0]}"
        rows.append(_compared(rate, gbps, run=f"full: {name}"))
        if rows[-1]["judgement"] == "below":  # the run was allowed more than the limit
            rows[-1]["judgement"] = None
    rows += [row for recheck in one.rechecked for row in _rows(recheck)]
    block = text.page().styled(f"{plan.title}, {plan.verdict}, plan {plan.plan_id}", text.BOLD)
    if rows:
        shown = text.page().table_of(
            rows,
            "run | connections | low=low_gbps | predicted=expected_gbps | high=high_gbps | "
            "achieved=achieved_gbps | ratio | =judgement",
            ratio=lambda row: (
                f"{row['achieved_gbps'] / row['expected_gbps']:.2f}" if "low_gbps" in row else "-"
            ),
            judgement=lambda row: WORDS.get(row.get("judgement"), ""),
        )
        block += f"\n{shown}"
    blocks = [block]
    if relays := {host: name for run in one.ended for host, name in run.relays.items()}:
        named = ", ".join(f"{host} ({program})" for host, program in relays.items())
        blocks.append(f"Relayed by {named}.")
    if one.error:
        blocks.append(text.page().filled(f"Failed: {one.error}"))
    return [*blocks, *text.page().notes(one.notes)]


def _rows(run: Run) -> list[dict[str, Any]]:
    """Return the rows of a run: of the whole, and of the paths that were the furthest off."""
    rows = []
    if len(run.paths) > 1:
        connections = sum(path.connections for path in run.paths)
        whole = {"run": KINDS[run.kind], "connections": connections}
        rows.append(_compared(run.prediction.rate, run.achieved_gbps, **whole))
    shown: Sequence[PlanPath] = run.paths
    if len(shown) > SHOWN_PATHS:

        def error(path: PlanPath) -> float:
            return abs(path.achieved_gbps / path.rate.expected_gbps - 1)

        shown = sorted(shown, key=error, reverse=True)[:SHOWN_PATHS]
    for path in shown:
        way = " -> ".join(path.regions)
        named = {"run": f"  {way}" if rows else f"{KINDS[run.kind]}: {way}"}
        if run.kind == "apart":
            least = "at least " * path.is_rate_limited
            achieved = {"achieved_gbps": f"{least}{gbps_text(path.achieved_gbps)}"}
            rows.append({**named, "connections": path.connections, **achieved})
        else:
            named |= pick(path, "connections")
            rows.append(_compared(path.rate, path.achieved_gbps, **named))
    if hidden := len(run.paths) - len(shown):
        rows.append({"run": f"  {hidden} nearer to what was predicted"})
    return rows


def _plan_as_json(one: Verification) -> dict[str, Any]:
    planned = one.runs[0].prediction
    return {
        **pick(one.plan, "plan_id snapshot_id", **_asked(one.plan)),
        "vms": planned.vms,
        "share_of_vms": planned.share,
        "held": one.is_as_predicted and one.error is None,
        "runs": [_run_as_json(run) for run in one.ended],
        "full": [
            _compared(rate, gbps, limit=kind, regions=list(regions))
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
        "samples": [pick(sample, "src dst metric value connections") for sample in one.samples],
        "error": str(one.error) if one.error else None,
        "notes": one.notes,
    }


def _run_as_json(run: Run) -> dict[str, Any]:
    of_run = {"run": run.kind, "measured_s": run.measured_s, "relays": dict(run.relays)}
    paths = []
    for path in run.paths:
        of_path = {"regions": list(path.regions), "connections": path.connections}
        of_path["vm_pairs"] = len(path.streams)
        paths.append(_compared(path.rate, path.achieved_gbps, **of_path))
    vms = [
        {
            "region": regions[0],
            "direction": "out" if kind == "egress cap" else "in",
            "expected_gbps": expected_gbps,
            "achieved_gbps": achieved_gbps,
        }
        for (kind, regions), (expected_gbps, achieved_gbps) in run.carried().items()
        if kind != "link"
    ]
    whole = _compared(run.prediction.rate, run.achieved_gbps, **of_run)
    return {**whole, "paths": paths, "vms": vms}
