"""``relayd data samples``: which batches were sent by whom, and what is in quarantine."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, get_args

from planner.model.catalogue import Catalogue
from planner.model.errors import InputError
from planner.model.network import Snapshot
from probes.metrics import Metric
from relayd.cli import text
from relayd.cli.options import agreed, catalogue_of, region_id, store_of, time_s, whole_number
from relayd.cli.output import pick, print_rows, respond, snapshot_as_json
from relayd.snapshots.building import estimated, make_snapshot
from relayd.snapshots.changes import MOVED, Effect, effects_of
from relayd.store.events import this_user
from relayd.store.samples.decisions import (
    QuarantineFilter,
    Selection,
    decide,
    decisions,
    in_words,
    quarantined,
    selected,
    settle,
    to_decide,
)
from relayd.store.samples.reading import Decision
from relayd.times import utc_text

MOST_SHOWN = 20
_DONE: dict[Decision, str] = {"retract": "retracted", "restore": "restored", "confirm": "confirmed"}


def batches(options: argparse.Namespace) -> int:
    """List batches, the newest first, with the token, address or file that they are from."""
    if options.disputed:
        return disputed(options)
    with store_of(options, "read") as store:
        newest = store.samples.batches()[: -options.last - 1 : -1]
    rows = [
        {
            "batch": batch.id,
            "at": utc_text(batch.imported_at_s),
            **pick(batch, "name format"),
            "token": batch.reporter or None,
            "address": batch.address or None,
            **pick(batch, "accepted duplicates quarantined"),
        }
        for batch in newest
    ]
    return print_rows(options, "batches", rows)


def apart(options: argparse.Namespace) -> int:
    """List samples in quarantine, the newest first, with the reasons."""
    with store_of(options, "read") as store:
        found = quarantined(store.database, QuarantineFilter(options.state), limit=options.last)
    rows = []
    for row in found:
        shown = {
            "number": row.id,
            "batch": row.batch_id,
            "from": row.reporter or row.batch,
            "link": f"{row.sample.src} > {row.sample.dst}",
            **pick(row.sample, "metric value"),
            "measured at": utc_text(row.sample.measured_at_s),
            "reason": row.reason,
        }
        if row.decided_at_s is not None:
            shown |= {"decided by": row.decided_by, "decided at": utc_text(row.decided_at_s)}
            shown["because"] = row.decided_because
        rows.append(shown)
    return print_rows(options, "quarantine", rows)


def list_decisions(options: argparse.Namespace) -> int:
    """List what was decided, the newest first."""
    with store_of(options, "read") as store:
        found = decisions(store.database)[: options.last]
    rows = [
        {
            "decision": row.decision,
            "at": utc_text(row.at_s),
            "by": row.who,
            "samples": row.samples,
            "selection": row.selection if options.json else in_words(row.selection),
            "reason": row.reason,
        }
        for row in found
    ]
    return print_rows(options, "decisions", rows)


def disputed(options: argparse.Namespace) -> int:
    """List what contradicts others and does not count, and new levels that none confirmed."""
    catalogue = catalogue_of(options)
    with store_of(options, "read") as store:
        estimation = estimated(store, catalogue, through=store.samples.last_id())
    if not options.json:
        for note in estimation.estimator.other_vm_types():
            print(text.page().filled(f"{note}.", "  "))
    rows = [
        {
            "link": text.link(one.src, one.dst, one.address, " > "),
            "metric": one.metric,
            "by": ", ".join(one.sources),
            "samples": f"{one.samples} of {one.of}",
            "value": round(one.value, 3),
            "level": None if one.level is None else round(one.level, 3),
            "counts": "unconfirmed" if one.counts else "no",
        }
        for one in estimation.estimator.disputes()[: options.last]
    ]
    if estimation.impossible and not options.json:
        print(f"{estimation.impossible:,} stored samples can't be measurements and do not count.")
    return print_rows(options, "disputed", rows)


# --- decisions ------------------------------------------------------------------------------------


def run_decision(options: argparse.Namespace) -> int:
    """Show what a decision does to estimates, ask, decide, and take a snapshot."""
    catalogue = catalogue_of(options)
    decision: Decision = options.decision
    selection = _selection(options, catalogue)
    with store_of(options, "write") as store:
        through = store.samples.last_id()  # what comes while the user thinks was not shown
        ids = frozenset(selected(store.database, decision, selection, through=through))
        changed = effects_of(store, catalogue, change=(decision, ids)) if ids else []
        done = 0
        if _agreed(options, len(ids), changed):
            done = decide(store.database, decision, selection, **_by(options), through=through)
        snapshot = make_snapshot(store, catalogue) if done else None
    told = f"{done:,} samples {_DONE[decision]}." if done else ""
    return _print(options, len(ids), changed, {_DONE[decision]: done}, snapshot, told)


def run_on_quarantine(options: argparse.Namespace) -> int:
    """Accept or reject samples in quarantine, after showing what that changes."""
    catalogue = catalogue_of(options)
    numbers = [whole_number(number, "NUMBER") for number in options.numbers]
    accepting = options.decision == "accept"
    with store_of(options, "write") as store:
        samples = to_decide(store.database, numbers, accepting=accepting)
        changed = effects_of(store, catalogue, accepted=samples) if accepting else []
        is_done, batch = _agreed(options, len(samples), changed), None
        if is_done:
            batch = settle(store.database, options.decision, numbers, **_by(options))
        snapshot = make_snapshot(store, catalogue) if batch else None
    where = f"; `relayd data samples retract --batch {batch}` takes them back" if batch else ""
    told = f"{len(samples):,} samples {options.decision}ed{where}." if is_done else ""
    done = {"done": is_done, "batch": batch}
    return _print(options, len(samples), changed, done, snapshot, told)


def _by(options: argparse.Namespace) -> dict[str, str]:
    return {"who": this_user(), "reason": options.reason or ""}


def _agreed(options: argparse.Namespace, count: int, changed: Sequence[Effect]) -> bool:
    """Show what a decision changes, and ask, where there is anything to decide."""
    if not options.json:
        figures = f"{len(changed):,} figures change by over {MOVED:.1%}"
        print(f"{count:,} samples to {options.decision}; {figures}.")
        if changed:
            shown = text.page().table_of(
                changed[:MOST_SHOWN],
                "link or VM=link | figure | now=before | then=after | change",
                left=True,
                link=lambda one: text.link(one.src, one.dst, one.address, " > "),
                change=_change,
            )
            print(shown)
        if len(changed) > MOST_SHOWN:
            print(f"... and {len(changed) - MOST_SHOWN:,} more")
    return bool(count) and agreed(f"{options.decision.capitalize()} them?", options, "--yes")


def _print(
    options: argparse.Namespace,
    count: int,
    changed: Sequence[Effect],
    done: dict[str, Any],
    snapshot: Snapshot | None,
    told: str,
) -> int:
    document = {
        "decision": options.decision,
        "selected": count,
        "changed": [effect._asdict() for effect in changed],
        **done,
        "snapshot": snapshot_as_json(snapshot),
    }
    if snapshot:
        told += f"\nSnapshot {snapshot.id}, as of {snapshot.as_of}"
    return respond(options, document, told) if told or options.json else 0


def _selection(options: argparse.Namespace, catalogue: Catalogue) -> Selection:
    if options.metric is not None and options.metric not in get_args(Metric):
        remedy = f"One of {', '.join(get_args(Metric))}."
        problem = "is not one that relayd knows"
        raise InputError("--metric", problem, value=options.metric, remedy=remedy)
    return {
        **pick(options, "source token address tool metric"),
        "batch": whole_number(options.batch, "--batch") if options.batch else None,
        "src": region_id(options.src, "--src", catalogue) or None,
        "dst": region_id(options.dst, "--dst", catalogue) or None,
        "since_s": None if options.since is None else time_s(options.since, "--since"),
        "until_s": None if options.until is None else time_s(options.until, "--until"),
    }


def _change(effect: Effect) -> str:
    if effect.after is None:
        return "vanishes"
    if effect.before is None:
        return "appears"
    return f"{effect.after / effect.before - 1:+.0%}" if effect.before else "-"
