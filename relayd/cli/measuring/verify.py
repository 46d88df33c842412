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
from planner.model.units import parse_money_usd
from planner.transfer.request import TransferRequest
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from probes.verification.runs import VerificationLimits, available
from relayd.campaigns.inputs import MeasuredFleet
from relayd.campaigns.running import run_interruptibly
from relayd.campaigns.verifying import Verification, Verifier
from relayd.cli.measuring.fleet import fleet_path
from relayd.cli.measuring.probe_answer import say
from relayd.cli.measuring.verify_answer import as_json, forecast_json, forecast_text, human
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
