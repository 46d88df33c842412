"""``relayd transfers``: report transfers under way, to a store or to a service."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from planner.model.errors import InputError
from planner.model.units import gbps_text, volume_text
from relayd.cli.options import catalogue_of, service_address, store_location, wan_of
from relayd.cli.output import print_rows, respond
from relayd.cli.questions.options import request_from
from relayd.cli.text import BOLD, page
from relayd.client.blocking import RemoteWan
from relayd.client.connection import TIMEOUT_S
from relayd.questions.holds import PoolUse
from relayd.snapshots.building import make_snapshot
from relayd.store import open_store
from relayd.store.events import this_user
from relayd.store.opening import Mode
from relayd.times import utc_text
from relayd.transfers.register import TransferRegister
from relayd.transfers.requests import (
    TransferEndRequest,
    TransferProgressRequest,
    TransferStartRequest,
)
from relayd.transfers.tracked import RestQuestion, TrackedTransfer, TransferDetails


def listed(options: argparse.Namespace) -> int:
    """List transfers, the newest first, or what they hold."""
    if options.pools:
        with opened_register(options, "read") as register:
            pools = register.pools()
        return print_rows(
            options,
            "pools",
            [_pool_row(one) for one in pools],
            document=lambda: {"pools": [asdict(one) for one in pools]},
        )
    with opened_register(options, "read") as register:
        found = register.transfers(options.state, options.src, options.dst)
    return print_rows(
        options,
        "transfers",
        [_row(transfer) for transfer in found],
        document=lambda: {"transfers": [asdict(transfer) for transfer in found]},
    )


def shown(options: argparse.Namespace) -> int:
    """Show one transfer, or its plan alone; raises an InputError if there is none."""
    with opened_register(options, "read") as register:
        found = register.transfer_details(options.id)
    if not options.plan:
        return respond(options, asdict(found), _human(found))
    if found.plan is None:
        raise InputError("--plan", "is not there: the transfer was begun without, or long ago")
    print(json.dumps(found.plan))
    return 0


def begin(options: argparse.Namespace) -> int:
    """Begin a transfer, and print its id."""
    request = request_from(options, TransferStartRequest)
    with opened_register(options, "create") as register:
        found = register.begin_transfer(**request.to_json())
    return respond(options, asdict(found), found.id)


def progress(options: argparse.Namespace) -> int:
    """Report how far a transfer is."""
    request = request_from(options, TransferProgressRequest)
    with opened_register(options, "write") as register:
        found = register.report_transfer(options.id, **request.to_json())
    return respond(options, asdict(found), found.reason)


def end(options: argparse.Namespace) -> int:
    """Say how a transfer ended; what it achieved enters a new snapshot."""
    request = request_from(options, TransferEndRequest)
    with opened_register(options, "write") as register:
        found = register.end_transfer(options.id, **request.to_json())
    learn(options, found)
    return respond(options, asdict(found), found.reason)


def learn(options: argparse.Namespace, ended: TrackedTransfer) -> None:
    """Make a snapshot of a store with what a transfer achieved that finished."""
    if ended.state == "finished" and not service_address(options):
        with open_store(store_location(options), mode="write") as store:
            make_snapshot(store, catalogue_of(options))


@contextmanager
def opened_register(
    options: argparse.Namespace, mode: Mode, timeout_s: float = TIMEOUT_S
) -> Iterator[TransferRegister | RemoteWan]:
    """Yield the register of the store, or the service, that a command names."""
    if url := service_address(options):
        with RemoteWan(url, ca=options.ca, timeout_s=timeout_s, attempts=2) as remote:
            yield remote
        return
    with open_store(store_location(options), mode=mode) as store:
        yield TransferRegister(store.database, wan_of(options), this_user())


def _row(of: TrackedTransfer) -> dict[str, Any]:
    end_s = of.forecast_end_s if of.ended_s is None else of.ended_s
    planned = of.expected.throughput_gbps if of.expected else None
    rate = of.mean_gbps if of.state == "finished" else of.rate_gbps
    return {
        "id": of.id,
        "transfer": f"{of.src} > {of.dst}",
        "state": of.state + (", late" if of.is_late else ", slow" if of.is_slow else ""),
        "moved": f"{volume_text(of.moved_gb)} of {volume_text(of.volume_gb)}",
        "Gbit/s": None if rate is None else gbps_text(rate),
        "planned": None if planned is None else gbps_text(planned),
        "ends": None if end_s is None else utc_text(end_s),
        "deadline": None if of.deadline_at_s is None else utc_text(of.deadline_at_s),
        "label": of.label or None,
    }


def _pool_row(use: PoolUse) -> dict[str, Any]:
    held = use.held
    of = [
        f"{gbps_text(gbps)} of {gbps_text(gbps + left)}" if left is not None else gbps_text(gbps)
        for gbps, left in (
            (held.egress_gbps, held.egress_gbps_left),
            (held.ingress_gbps, held.ingress_gbps_left),
        )
    ]
    left = "" if held.vms_left is None else f", {held.vms_left} more may run"
    is_vms = held.kind == "vms"
    return {
        "held of": f"{held.kind} {held.place}",
        "Gbit/s sent": None if is_vms else of[0],
        "received": of[1] if held.kind == "pool" else None,
        "VMs": f"{held.vms}{left}" if is_vms else None,
        "first ends": None if held.frees_at_s is None else utc_text(held.frees_at_s),
        "transfers": ", ".join(one.transfer for one in use.by) or None,
    }


_TIMES = {
    "Began": "began_s",
    "Last report": "reported_s",
    "Ended": "ended_s",
    "Ends": "forecast_end_s",
    "By plan": "planned_end_s",
    "Deadline": "deadline_at_s",
}


def _human(found: TransferDetails) -> str:
    of = found.transfer
    head = f"{of.src} -> {of.dst}, {volume_text(of.moved_gb)} of {volume_text(of.volume_gb)}"
    label = f", {of.label}" if of.label else ""
    times = {name: getattr(of, field) for name, field in _TIMES.items()}
    rows = [(name, utc_text(at_s)) for name, at_s in times.items() if at_s is not None]
    rows += [("Reported by", of.who)] * bool(of.who)
    blocks = [
        f"{page().styled(f'Transfer {of.id}', BOLD)}\n{page().filled(head + label)}",
        page().filled(of.reason),
        page().table(("", ""), rows, left=True),
    ]
    columns = "path | planned Gbit/s=planned_gbps | moved=moved_gb"
    blocks.append(
        page().table_of(found.paths, columns, path=lambda path: " -> ".join(path.regions))
    )
    blocks.append(page().filled(_rest(of, found.rest)) if found.rest else "")
    return "\n\n".join(filter(None, blocks))


def _rest(of: TrackedTransfer, rest: RestQuestion) -> str:
    begun = "Re-plan the rest: " if rest.advised else "What is left can be planned again: "
    if rest.question == "replan":
        moved, elapsed = rest.body["moved_gb"], rest.body["elapsed_s"]
        gbps = rest.body.get("rate_gbps")
        rate = "" if gbps is None else f" --rate {gbps:.4g}gbps"
        return (
            f"{begun}`relayd transfers show {of.id} --plan | relayd transfers replan - "
            f"--moved {moved:g}GB --elapsed {elapsed:g}s{rate}`"
        )
    deadline = rest.body.get("deadline_s")
    limit = "" if deadline is None else f" --deadline {deadline:.0f}s"
    return f"{begun}`relayd plan {of.src} {of.dst} --volume {rest.body['volume_gb']:g}GB{limit}`"
