"""One campaign in a process of its own, told on standard input what to do.

Estimating and choosing legs takes seconds of a core, and SSH has its own event loop: neither is
to hold up answers. What it does is in the store, so that the end of either process loses nothing.
Its first line of output is the campaign's number, or a problem.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from planner.errors import InputError, RelaydError
from probes.campaign.course import Wish, parse_pairs
from probes.campaign.engine import Limits, Progress
from probes.campaign.method import Method
from probes.campaign.tasks import PHASES
from probes.fleet.file import load_fleet
from probes.fleet.hosts import Fleet
from relayd.catalogue import load_catalogue
from relayd.cli.fleet import allow_many_connections
from relayd.measuring import Measuring, Report, wish_from_json, wish_to_json
from relayd.service.problems import ProblemError, problem_of
from relayd.store import Store, open_store
from relayd.store.campaigns import Campaigns, StoredCampaign
from relayd.store.events import Events

EVENT_EVERY_S = 5.0
SUBJECT = "campaign"


def main() -> int:
    """Run the campaign that standard input describes."""
    asked = json.load(sys.stdin)
    try:
        catalogue = load_catalogue([Path(name) for name in asked["catalogues"]])
        fleet = _fleet(Path(asked["fleet"]))
        with open_store(asked["db"], mode="create") as store:
            campaigns = Campaigns(store)
            with _alone(campaigns):
                measuring = Measuring(fleet, catalogue, store)
                campaign = _campaign(campaigns, measuring, asked["request"])
                _say({"id": campaign.row.id})
                asyncio.run(_run(store, measuring, campaign, asked["request"]))
    except (RelaydError, ProblemError) as error:
        problem = problem_of(error)
        _say({"status": problem.status, "problem": problem.content})
        return 1
    return 0


def _fleet(path: Path) -> Fleet:
    """Read the fleet file; what is wrong with it is not the fault of who asked."""
    try:
        return load_fleet(path)
    except InputError as error:
        print(f"relayd: {error}", file=sys.stderr)  # noqa: T201 - the operator's log
        raise ProblemError(
            503, "unavailable", "The fleet file of this service can't be used; its log says why."
        ) from None


@contextmanager
def _alone(campaigns: Campaigns) -> Iterator[None]:
    """Be the only campaign on the store, also beside `relayd probe`."""
    with ExitStack() as stack:
        try:
            stack.enter_context(campaigns.alone())
        except InputError:
            raise ProblemError(
                409, "conflict", "Another process is running a campaign on the same store."
            ) from None
        yield


def _campaign(
    campaigns: Campaigns, measuring: Measuring, request: dict[str, Any]
) -> StoredCampaign:
    unfinished = campaigns.unfinished()
    if request["resume"]:
        if unfinished is None:
            raise InputError("resume", "finds nothing: the last campaign was finished", value=True)
        return unfinished
    phases = request["phases"] or PHASES
    wish = Wish(
        phases=tuple(phase for phase in PHASES if phase in phases),
        pairs=parse_pairs(request["pairs"], measuring.fleet),
        thorough=request["thorough"],
        connections=request["connections"],
    )
    return campaigns.begin(
        {"wish": wish_to_json(wish), "method": Method().to_json(),
         "budget_usd": request["budget_usd"]}
    )  # fmt: skip


async def _run(
    store: Store, measuring: Measuring, campaign: StoredCampaign, request: dict[str, Any]
) -> None:
    events = Events(store.database)
    number = str(campaign.row.id)
    task = asyncio.current_task()
    assert task
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    told_s = 0.0
    stage = ""

    def progress(now: Progress) -> None:
        nonlocal told_s, stage
        if now.stage == stage and time.monotonic() - told_s < EVENT_EVERY_S:
            return
        told_s, stage = time.monotonic(), now.stage
        events.add(SUBJECT, number, {
            "status": "running", "stage": now.stage, "done": now.done, "failed": now.failed,
            "total": now.total, "sent_gb": now.sent_gb, "usd": now.usd, "left_s": now.left_s,
        })  # fmt: skip

    deadline_s = float("inf")
    if request["max_minutes"] is not None:
        deadline_s = time.monotonic() + 60 * request["max_minutes"]
    allow_many_connections()
    events.add(SUBJECT, number, {"status": "started"})
    try:
        report = await measuring.run(
            campaign, wish_from_json(campaign.row.options["wish"]),
            Limits(budget_usd=request["budget_usd"], deadline_s=deadline_s),
            method=Method.from_json(campaign.row.options.get("method", {})), on_progress=progress,
        )  # fmt: skip
    except asyncio.CancelledError:
        events.add(SUBJECT, number, {"status": "interrupted"})
    except RelaydError as error:
        events.add(SUBJECT, number, {"status": "failed", "problem": str(error)})
        raise
    else:
        events.add(SUBJECT, number, _conclusion(report))


def _conclusion(report: Report) -> dict[str, Any]:
    left = len(report.ending.failed) + report.ending.left_out
    return {
        "status": "partly done" if left else "done",
        "failed": len(report.ending.failed),
        "left_out": report.ending.left_out,
        "sent_gb": report.sent_gb,
        "usd": report.usd,
        "snapshot": report.snapshot.id if report.snapshot else None,
    }


def _say(content: dict[str, Any]) -> None:
    print(json.dumps(content), flush=True)  # noqa: T201 - the service reads this


if __name__ == "__main__":
    sys.exit(main())
